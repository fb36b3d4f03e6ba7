r"""Regressors for inverse gap weighting: they predict the outcomes of all actions and learn from the one seen.

`energy(T)` bounds E Σ_t (prediction − mean)² at the played pairs if the class is right. The Vovk–Azoury–Warmuth
forecast ŷ = ⟨x, w_a⟩/(1 + xᵀP_{aa}x) shrinks by the request at hand. Its sum of squares exceeds that of the best
weights by at most λ‖w‖² + Y² Σ_a ln det, and in expectation that excess is the energy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.money.budgets import LARGEST_STORED
from longterm.money.choosing.beliefs import LinearBelief, require_features

S = TypeVar("S")


class Regressor(ABC, Generic[S]):
    """A predictor of `outputs` outcomes of K actions."""

    @abstractmethod
    def init(self, actions: int, outputs: int) -> S:
        """Return the state before any outcome."""

    @abstractmethod
    def predict(self, state: S, context: FloatArray) -> FloatArray:
        """Return the predicted outcomes, shape (outputs, K)."""

    @abstractmethod
    def learn(self, state: S, context: FloatArray, action: int, outcomes: FloatArray) -> S:
        """Return the state after outcomes (outputs,) of one action."""

    def energy(self, actions: int, horizon: int) -> float:
        """Return U, a bound on E Σ (prediction − mean)² for one outcome in [0, 1]."""
        raise InputError(
            "regressor", f"{type(self).__name__} has no proved bound on its error", "Give InverseGapWeighting its γ"
        )

    def require_context(self, context: FloatArray, round: int) -> None:
        """Raise an InputError unless this regressor can use such a context."""


@dataclass(frozen=True)
class RidgeRegressor(Regressor[LinearBelief]):
    r"""Predict the reward of each action from the context by ridge regression.

    This is the Vovk–Azoury–Warmuth forecast, with weights for each action or with shared weights.

    U = ridge · K s² + K d ln(1 + T/(ridge K d)) for ‖x‖ ≤ 1, ‖w_a‖ ≤ s = 1 and separate weights.

    Parameters
    ----------
    features : int
        d.
    ridge : float
        λ, the weight of the penalty.
    shared_scale : float
        The deviation of the shared weights, relative to that of an action's own weights.
    """

    features: int
    ridge: float = 1.0
    shared_scale: float = 0.0

    def __post_init__(self) -> None:
        validate.count("features", self.features)
        validate.validate_fields(self, validate.positive_scalar, "ridge")

    def init(self, actions: int, outputs: int) -> LinearBelief:
        ones = np.full(self.features, 1 / self.ridge)
        return LinearBelief.prior(actions, outputs, self.shared_scale**2 * ones, ones)

    def predict(self, state: LinearBelief, context: FloatArray) -> FloatArray:
        state = state.rescaled(context)
        return state.expected(context) / (1.0 + np.diagonal(state.spread(context)))

    def learn(self, state: LinearBelief, context: FloatArray, action: int, outcomes: FloatArray) -> LinearBelief:
        return state.updated(context, action, outcomes)

    def energy(self, actions: int, horizon: int) -> float:
        if self.shared_scale:
            raise InputError(
                "shared_scale",
                "is above 0, and the bound covers separate weights only",
                "Use shared_scale=0, or give γ",
            )
        size = actions * self.features
        return float(self.ridge * actions + size * np.log1p(horizon / (self.ridge * size)))

    def require_context(self, context: FloatArray, round: int) -> None:
        require_features(context, self.features, round)


class CellState(NamedTuple):
    """Sums (outputs, K, cells) and counts (K, cells)."""

    sums: FloatArray
    counts: FloatArray

    def require_sound(self) -> None:
        """Raise a ValueError unless sums and counts from a file can be used."""
        if self.counts.min() < 0 or np.abs(self.sums).max() > LARGEST_STORED or self.counts.max() > LARGEST_STORED:
            raise ValueError("a table of cells holds a number that no outcome can produce")


@dataclass(frozen=True)
class TableRegressor(Regressor[CellState]):
    r"""Predict the reward of each action by its mean in the cell that the context names.

    The mean is sum/(n + 2), and the context is the number of the cell.

    U = K·cells·(1 + ln(1 + T/(K·cells))).

    Parameters
    ----------
    cells : int
        The number of cells.
    """

    cells: int

    def __post_init__(self) -> None:
        validate.count("cells", self.cells)

    def init(self, actions: int, outputs: int) -> CellState:
        return CellState(np.zeros((outputs, actions, self.cells)), np.zeros((actions, self.cells)))

    def predict(self, state: CellState, context: FloatArray) -> FloatArray:
        cell = int(context[0])
        return np.asarray(state.sums[:, :, cell] / (state.counts[:, cell] + 2.0))

    def learn(self, state: CellState, context: FloatArray, action: int, outcomes: FloatArray) -> CellState:
        cell = int(context[0])
        sums, counts = state.sums.copy(), state.counts.copy()
        sums[:, action, cell] += outcomes
        counts[action, cell] += 1.0
        return CellState(sums, counts)

    def energy(self, actions: int, horizon: int) -> float:
        size = actions * self.cells
        return float(size * (1.0 + np.log1p(horizon / size)))

    def require_context(self, context: FloatArray, round: int) -> None:
        if context.shape != (1,) or context[0] % 1 or not 0 <= context[0] < self.cells:
            raise InputError(
                "context",
                f"{context} is not a cell",
                f"Give a whole number from 0 to {self.cells - 1}",
                round=round,
            )
