r"""The interface of primal learners, which choose an action given the prices.

The payoff of action a in round t is r_t(a) − ⟨λ_t, σĉ_t(a)⟩. A primal answers a request with *probabilities*, and the
rule draws the action from them. So the probability of the action is known exactly in every round.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import Array, FloatArray
from longterm.errors import InputError
from longterm.money.choosing.duals import Setting


class ChoiceRequest(NamedTuple):
    """A request as a primal sees it before it acts."""

    round: int
    """t, from 1."""
    context: FloatArray
    """Features of the request, shape (d,); empty if there are none."""
    costs: FloatArray | None
    """σĉ, shape (K, m), if costs are announced."""
    prices: FloatArray
    """λ_t, shape (m,)."""
    allowed: NDArray[np.bool_]
    """The actions that may be played, shape (K,); at least one."""
    unspent: float = 0.0
    """The part of the money meant for the requests so far that was neither spent nor held back, in [0, 1], if all
    prices are 0; else 0."""


class ActionOutcomes(NamedTuple):
    """Outcomes of the action played (bandit feedback) or of several actions."""

    seen: NDArray[np.bool_]
    """The actions whose outcomes are known, shape (K,)."""
    rewards: FloatArray
    """Shape (K,); 0 where not seen."""
    costs: FloatArray
    """Shape (K, m); 0 where not seen. Primals get σĉ, choosers keep them as the budgets count."""


class OpenChoice(NamedTuple):
    """A request that was answered and is not settled, with everything its outcome will need."""

    round: int
    context: FloatArray
    prices: FloatArray
    """λ_t, shape (m,)."""
    allowed: NDArray[np.bool_]
    action: int
    """The action drawn; −1 if the request was refused."""
    probabilities: FloatArray
    """Of all actions, shape (K,)."""
    target: FloatArray
    """ρ_t, shape (m,), in units of the rules."""
    counted: FloatArray | None
    """The announced costs as the budgets count, shape (K, m)."""
    bound: FloatArray
    """The money held back, shape (m,)."""
    base: FloatArray
    """The cost of the cheapest action for budgets that count above it, else 0. Shape (m,)."""
    paid: FloatArray | None = None
    """The cost of the action as the budgets count, shape (m,), once it is known."""
    outcomes: ActionOutcomes | None = None
    """The outcomes, if the reward came before the cost."""
    epoch: int = 0
    """The epoch of the chooser that answered."""
    group: str = ""
    """The group of the request, for calibrated holds."""

    def extended(self) -> OpenChoice:
        """Return the choice with one more action, which was not allowed and whose outcome is not known."""
        outcomes = self.outcomes
        if outcomes is not None:
            outcomes = ActionOutcomes(*(_with_zero(part) for part in outcomes))
        return self._replace(
            allowed=_with_zero(self.allowed),
            probabilities=_with_zero(self.probabilities),
            counted=None if self.counted is None else _with_zero(self.counted),
            outcomes=outcomes,
        )

    @property
    def probability(self) -> float:
        """The probability of the action when it was drawn."""
        return float(self.probabilities[self.action])


class Prediction(NamedTuple):
    """Expected outcomes of all actions for several contexts."""

    rewards: FloatArray
    """Shape (rows, K)."""
    costs: FloatArray
    """σĉ, shape (rows, K, m)."""


S = TypeVar("S")


class Primal(ABC, Generic[S]):
    """A learner of actions: frozen hyper-parameters and pure functions on a named tuple of arrays."""

    actions: int
    """K, the number of actions."""

    def fitted(self, setting: Setting) -> Self:
        """Return the same primal with its step size, if it has one, set for this problem."""
        return self

    @abstractmethod
    def init(self, setting: Setting) -> S:
        """Return the state before the first request."""

    @abstractmethod
    def weigh(self, state: S, request: ChoiceRequest, rng: np.random.Generator) -> FloatArray:
        """Return the probabilities of the actions, shape (K,)."""

    @abstractmethod
    def learn(self, state: S, choice: OpenChoice, outcomes: ActionOutcomes, setting: Setting) -> S:
        """Return the state after the outcomes of a choice, with costs as σĉ."""

    def predict_recent(self, state: S, request: ChoiceRequest) -> Prediction:
        """Return the expected outcomes of recent requests, with this one last."""
        raise InputError(
            "primal",
            f"{type(self).__name__} keeps no recent requests, but this call needs them",
            "Use a linear primal with window=512, for example",
        )

    def extended(self, state: S) -> S:
        """Return the state with one more action."""
        raise InputError("primal", f"{type(self).__name__} cannot change its number of actions", "Use a linear primal")

    def require_context(self, context: FloatArray, round: int) -> None:
        """Raise an InputError unless this primal can use such a context."""

    def require_sound(self, state: S) -> None:
        """Raise a ValueError unless a state from a file can be used."""
        for part in (state, *(state if isinstance(state, tuple) else ())):
            if hasattr(part, "require_sound"):
                part.require_sound()

    def regret(self, setting: Setting, *, known_costs: bool) -> float:
        """Return a bound on the expected regret of the payoffs after any number of rounds up to T."""
        raise InputError(
            "primal",
            f"{type(self).__name__} has no proved bound with its default constants",
            "Use ExponentialWeights, EXP3IX, InverseGapWeighting or LinearUCB",
        )


def _with_zero(array: Array) -> Array:
    return np.concatenate([array, np.zeros_like(array[:1])])


def normalise(weights: FloatArray, allowed: NDArray[np.bool_]) -> FloatArray:
    """Return weights over the allowed actions that sum to 1."""
    masked = np.where(allowed, weights, 0.0)
    total = masked.sum()
    return np.asarray(masked / total if total > 0 else allowed / allowed.sum())
