r"""Primal learners: which action to play, given the prices. The interface, and rules without a context.

The payoff of action a in round t is r_t(a) − ⟨λ_t, σĉ_t(a)⟩. A primal answers a request with *probabilities*, and
the action is drawn from them by the template: so the probability of what was played is known in every round,
exactly.

Hedge (all outcomes seen) and EXP3-IX (only that of the action played) work on losses in [0, 1],
ℓ_t(a) = (top − payoff_t(a)) / width, with the prices of round t.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.decisions.duals import Game, Stepping
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


def normalised(weights: FloatArray, allowed: NDArray[np.bool_]) -> FloatArray:
    """Weights over what is allowed, summing to 1."""
    kept = np.where(allowed, weights, 0.0)
    total = kept.sum()
    return np.asarray(kept / total if total > 0 else allowed / allowed.sum())


def require_features(context: FloatArray, features: int, round: int) -> None:
    """A context of the length that a linear primal was made for."""
    if context.shape != (features,):
        raise InputError(
            "context",
            f"has shape {context.shape}, this rule was made for ({features},)",
            "Give the features of the request, one number each",
            round=round,
        )


class LossState(NamedTuple):
    """The (estimated) losses so far, shape (K,)."""

    losses: FloatArray


class _Exponential(Stepping, Primal[LossState]):
    """Weights e^{−ηL}."""

    def __post_init__(self) -> None:
        validate.count("actions", self.actions)
        super().__post_init__()

    def init(self, game: Game) -> LossState:
        return LossState(np.zeros(self.actions))

    def weigh(self, state: LossState, request: Request, rng: np.random.Generator) -> FloatArray:
        assert self.step is not None
        scores = np.where(request.allowed, -self.step * state.losses, -np.inf)
        return normalised(np.exp(scores - scores.max()), request.allowed)


@dataclass(frozen=True)
class Hedge(_Exponential):
    r"""Exponential weights, where the outcome of every action is seen.

    .. math:: p(a) ∝ e^{-η L(a)}, \qquad L(a) = \sum_t ℓ_t(a)

    Regret ≤ width · (ln K/η + ηT/8) = width · √(T ln K/2) with the default η = √(8 ln K/T).

    Parameters
    ----------
    actions : int
        K.
    step : float, optional
        η.

    Examples
    --------
    >>> from longterm.decisions import Budget, Chooser, Hedge, HedgeDual, PrimalDual
    >>> rule = PrimalDual(Hedge(2), HedgeDual(), Budget(50.0, largest=1.0), horizon=100)
    >>> chooser = Chooser(rule, seed=1)
    >>> choice = chooser.act()
    >>> chooser.settle(choice, rewards=[0.0, 1.0], costs=[0.0, 1.0])
    >>> choice.probabilities
    array([0.5, 0.5])
    """

    actions: int
    step: float | None = None

    def usual_step(self, game: Game) -> float:
        return float(np.sqrt(8 * np.log(self.actions) / game.horizon))

    def learn(self, state: LossState, request: Request, lesson: Lesson, game: Game) -> LossState:
        if not lesson.seen.all():
            raise InputError(
                "rewards", "of all actions are needed by Hedge", "Give rewards= and costs=, or take EXP3IX"
            )
        return LossState(state.losses + _losses(request, lesson, game))

    def regret(self, game: Game, *, known_costs: bool) -> float:
        step = self.step_in(game)
        return float(game.width * (np.log(self.actions) / step + step * game.horizon / 8))


@dataclass(frozen=True)
class EXP3IX(_Exponential):
    r"""Exponential weights with implicit exploration, where only the action played is seen (Neu, 2015).

    .. math:: p(a) ∝ e^{-η L̂(a)}, \qquad L̂(a) \mathrel{+}= \frac{ℓ_t(a) 1\{a = a_t\}}{p_t(a) + η/2}

    Expected regret ≤ width · (ln K/η + ηKT) = 2 width · √(KT ln K) with the default η = √(ln K/(KT)).

    *Proof.* Hedge's inequality gives Σ_t⟨p_t, ℓ̂_t⟩ − ℓ̂_t(a*) ≤ ln K/η + (η/2) Σ_t Σ_a p_t(a) ℓ̂_t(a)². With γ = η/2,
    ⟨p_t, ℓ̂_t⟩ = ℓ_t(a_t) − γ Σ_a ℓ̂_t(a), and p ℓ̂² ≤ ℓ̂. So Σ ℓ_t(a_t) − ℓ̂_t(a*) ≤ ln K/η + η Σ_t Σ_a ℓ̂_t(a),
    and E ℓ̂ ≤ ℓ ≤ 1. ∎ (Against an adversary that reacts, too: the comparator is fixed.) Where outcomes of several
    actions happen to be seen, each is used with its own probability of having been seen, the one it was drawn with
    for the action and 1 for the others.

    Parameters
    ----------
    actions : int
        K.
    step : float, optional
        η.
    """

    actions: int
    step: float | None = None

    def usual_step(self, game: Game) -> float:
        return float(np.sqrt(np.log(self.actions) / (self.actions * game.horizon)))

    def learn(self, state: LossState, request: Request, lesson: Lesson, game: Game) -> LossState:
        chance = np.where(lesson.seen, 1.0, np.inf)  # all seen: nothing was left to chance
        if lesson.seen.sum() == 1:
            chance[lesson.action] = lesson.probability + self.step_in(game) / 2
        return LossState(state.losses + _losses(request, lesson, game) / chance)

    def regret(self, game: Game, *, known_costs: bool) -> float:
        step = self.step_in(game)
        return float(game.width * (np.log(self.actions) / step + step * self.actions * game.horizon))


@dataclass(frozen=True)
class FixedMixture(Primal[LossState]):
    """Always the same probabilities: a random mix, the best fixed mix of hindsight, or a policy to log with.

    Parameters
    ----------
    shares : tuple of float
        The probabilities, one for each action.
    """

    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        shares = validate.vector("shares", self.shares)
        if np.any(shares < 0) or abs(shares.sum() - 1) > 1e-9:
            raise InputError("shares", f"{self.shares!r} are not probabilities", "Give numbers ≥ 0 that add up to 1")
        validate.set_frozen(self, shares=tuple(shares.tolist()))

    @property
    def actions(self) -> int:  # type: ignore[override]
        return len(self.shares)

    def fitted(self, game: Game) -> Self:
        return self

    def init(self, game: Game) -> LossState:
        return LossState(np.zeros(self.actions))

    def weigh(self, state: LossState, request: Request, rng: np.random.Generator) -> FloatArray:
        return normalised(np.asarray(self.shares), request.allowed)

    def learn(self, state: LossState, request: Request, lesson: Lesson, game: Game) -> LossState:
        return state


def _losses(request: Request, lesson: Lesson, game: Game) -> FloatArray:
    payoffs = lesson.rewards - lesson.costs @ request.prices  # with the prices of that round
    return np.where(lesson.seen, (game.lowest + game.width - payoffs) / game.width, 0.0)
