"""The interface of primal learners: which action to play, given the prices.

The payoff of action a in round t is r_t(a) − ⟨λ_t, σĉ_t(a)⟩. A primal answers a request with *probabilities*, and
the action is drawn from them by the template: so the probability of what was played is known in every round,
exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.decisions.duals import Game
from longterm.errors import InputError


class Request(NamedTuple):
    """What a primal sees before it acts; kept while the request is open, because the lesson belongs to it."""

    round: int
    """t, from 1."""
    context: FloatArray
    """Features of the request, shape (d,); empty where there are none."""
    costs: FloatArray | None
    """σĉ, shape (K, m), where costs are announced."""
    prices: FloatArray
    """λ_t, shape (m,)."""
    allowed: NDArray[np.bool_]
    """Which actions are affordable, shape (K,); at least one is."""


class Lesson(NamedTuple):
    """What a round taught: outcomes of the action played (bandit feedback) or of several."""

    action: int
    probability: float
    """Of the action, when it was drawn."""
    seen: NDArray[np.bool_]
    """Whose outcomes are known, shape (K,)."""
    rewards: FloatArray
    """Shape (K,); 0 where not seen."""
    costs: FloatArray
    """σĉ, shape (K, m); 0 where not seen."""


S = TypeVar("S")


class Primal(ABC, Generic[S]):
    """A learner of actions: a frozen bundle of hyper-parameters, pure functions on a named tuple of arrays."""

    actions: int
    """K, the number of actions."""

    @abstractmethod
    def fitted(self, game: Game) -> Self:
        """The same primal with what was left open (its step) set for this game."""

    @abstractmethod
    def init(self, game: Game) -> S:
        """The state before the first request."""

    @abstractmethod
    def weigh(self, state: S, request: Request, rng: np.random.Generator) -> FloatArray:
        """Probabilities over actions, 0 for what is not allowed, shape (K,)."""

    @abstractmethod
    def learn(self, state: S, request: Request, lesson: Lesson, game: Game) -> S:
        """The state after a lesson."""

    def check(self, context: FloatArray, round: int) -> None:
        """Raise unless this primal can use such a context."""

    def require_sound(self, state: S) -> None:
        """ValueError unless a state can be played on; for what a file says."""
        for part in state if isinstance(state, tuple) else ():
            if hasattr(part, "require_sound"):
                part.require_sound()
        if hasattr(state, "require_sound"):
            state.require_sound()

    def regret(self, game: Game, *, known_costs: bool) -> float:
        """A bound on the expected regret of the payoffs, after any number of rounds up to T."""
        raise InputError(
            "primal",
            f"{type(self).__name__} has no bound that we can prove with its default constants",
            "Hedge, EXP3IX, InverseGapWeighting and LinearUCB have one",
        )


def payoffs(request: Request, lesson: Lesson) -> FloatArray:
    """R − ⟨λ_t, σĉ⟩ with the prices of that round, shape (K,); meaningless where not seen."""
    return lesson.rewards - lesson.costs @ request.prices


def normalised(weights: FloatArray, allowed: NDArray[np.bool_]) -> FloatArray:
    """Weights over what is allowed, summing to 1."""
    kept = np.where(allowed, weights, 0.0)
    total = kept.sum()
    return np.asarray(kept / total if total > 0 else allowed / allowed.sum())


def with_look(probabilities: FloatArray, share: float, allowed: NDArray[np.bool_]) -> FloatArray:
    """With probability `share`, any allowed action."""
    return np.asarray((1 - share) * probabilities + share * (allowed / allowed.sum()))


def require_features(context: FloatArray, features: int, round: int) -> None:
    """A context of the length that a linear primal was made for."""
    if context.shape != (features,):
        raise InputError(
            "context",
            f"has shape {context.shape}, this rule was made for ({features},)",
            "Give the features of the request, one number each",
            round=round,
        )


def actions_of(primal: Any) -> int:
    """K, checked: at least two actions make a choice."""
    return validate.count("actions", primal.actions)
