r"""Regression oracles for inverse gap weighting: predict the outcomes of all actions, learn from the one seen.

`energy(T)` bounds E Σ_t (prediction − mean)² at the played pairs, where the class is right. For the
Vovk–Azoury–Warmuth forecast, which shrinks by the request at hand, ŷ = ⟨x, w_a⟩/(1 + xᵀP_{aa}x), the sum of squares
exceeds that of the best weights by at most λ‖w‖² + Y² Σ_a ln det, and the excess *is* the energy in expectation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.decisions.beliefs import LinearBelief
from longterm.decisions.primals.base import require_features
from longterm.errors import InputError

S = TypeVar("S")


class Regressor(ABC, Generic[S]):
    """Predicts `outputs` outcomes of K actions."""

    @abstractmethod
    def init(self, actions: int, outputs: int) -> S: ...

    @abstractmethod
    def predict(self, state: S, context: FloatArray) -> FloatArray:
        """Shape (outputs, K)."""

    @abstractmethod
    def learn(self, state: S, context: FloatArray, action: int, outcomes: FloatArray) -> S: ...

    def energy(self, actions: int, horizon: int) -> float:
        """U: a bound on E Σ (prediction − mean)² for one outcome in [0, 1]."""
        raise InputError(
            "regressor", f"{type(self).__name__} has no bound on its error", "Give inverse gap weighting γ"
        )

    def check(self, context: FloatArray, round: int) -> None:
        """Raise unless this regressor can use such a context."""


@dataclass(frozen=True)
class RidgeRegressor(Regressor[LinearBelief]):
    r"""Ridge regression for each action (`shared` = 0), or with shared weights; the forecast of Vovk, Azoury and
    Warmuth.

    U = ridge · K s² + K d ln(1 + T/(ridge K d)) for ‖x‖ ≤ 1, ‖w_a‖ ≤ s = 1, separate weights.

    Parameters
    ----------
    features : int
        d.
    ridge : float
        λ, the weight of the penalty.
    shared : float
        The deviation of the shared weights, where that of an action's own is 1.
    """

    features: int
    ridge: float = 1.0
    shared: float = 0.0

    def __post_init__(self) -> None:
        validate.count("features", self.features)
        validate.remember(self, ridge=validate.positive_scalar("ridge", self.ridge))

    def init(self, actions: int, outputs: int) -> LinearBelief:
        return LinearBelief.prior(actions, self.features, outputs, self.shared, 1.0, float(np.sqrt(self.ridge)))

    def predict(self, state: LinearBelief, context: FloatArray) -> FloatArray:
        return state.expected(context) / (1.0 + np.diagonal(state.spread(context)))

    def learn(self, state: LinearBelief, context: FloatArray, action: int, outcomes: FloatArray) -> LinearBelief:
        return state.updated(context, action, outcomes)

    def energy(self, actions: int, horizon: int) -> float:
        if self.shared:
            raise InputError("shared", "the bound is for separate weights", "Take shared=0, or give γ")
        size = actions * self.features
        return float(self.ridge * actions + size * np.log1p(horizon / (self.ridge * size)))

    def check(self, context: FloatArray, round: int) -> None:
        require_features(context, self.features, round)


class TableState(NamedTuple):
    """Sums (outputs, K, cells) and counts (K, cells)."""

    sums: FloatArray
    counts: FloatArray

    def require_sound(self) -> None:
        """ValueError unless these are sums of so many numbers in [−1, 1] or so; for what a file says."""
        if self.counts.min() < 0 or np.abs(self.sums).max() > 1e100 or self.counts.max() > 1e100:
            raise ValueError("a table holds a number that no lesson leads to")


@dataclass(frozen=True)
class TableRegressor(Regressor[TableState]):
    r"""A mean for each cell of contexts; the context is the cell's number. The forecast is sum/(n + 1 + 1), ridge 1.

    U = K·cells·(1 + ln(1 + T/(K·cells))).

    Parameters
    ----------
    cells : int
        How many.
    """

    cells: int

    def __post_init__(self) -> None:
        validate.count("cells", self.cells)

    def init(self, actions: int, outputs: int) -> TableState:
        return TableState(np.zeros((outputs, actions, self.cells)), np.zeros((actions, self.cells)))

    def predict(self, state: TableState, context: FloatArray) -> FloatArray:
        cell = int(context[0])
        return np.asarray(state.sums[:, :, cell] / (state.counts[:, cell] + 2.0))

    def learn(self, state: TableState, context: FloatArray, action: int, outcomes: FloatArray) -> TableState:
        cell = int(context[0])
        sums, counts = state.sums.copy(), state.counts.copy()
        sums[:, action, cell] += outcomes
        counts[action, cell] += 1.0
        return TableState(sums, counts)

    def energy(self, actions: int, horizon: int) -> float:
        size = actions * self.cells
        return float(size * (1.0 + np.log1p(horizon / size)))

    def check(self, context: FloatArray, round: int) -> None:
        if context.shape != (1,) or context[0] % 1 or not 0 <= context[0] < self.cells:
            raise InputError(
                "context",
                f"{context} is not a cell",
                f"Give a whole number from 0 to {self.cells - 1}",
                round=round,
            )


@dataclass(frozen=True)
class PartialFit(Regressor[list[list[Any]]]):
    """Any scikit-style regressor with `partial_fit`, one for each outcome and action.

    Its state changes in place and cannot be stored.

    Parameters
    ----------
    make : callable
        Makes an estimator.
    first : float
        What is predicted before an action was seen.
    """

    make: Callable[[], Any]
    first: float = 0.5

    def init(self, actions: int, outputs: int) -> list[list[Any]]:
        return [[[self.make(), False] for _ in range(actions)] for _ in range(outputs)]

    def predict(self, state: list[list[Any]], context: FloatArray) -> FloatArray:
        row = context[None, :]
        return np.array([[float(model.predict(row)[0]) if fit else self.first for model, fit in ms] for ms in state])

    def learn(self, state: list[list[Any]], context: FloatArray, action: int, outcomes: FloatArray) -> list[list[Any]]:
        for models, outcome in zip(state, outcomes.tolist(), strict=True):
            models[action][0].partial_fit(context[None, :], [outcome])
            models[action][1] = True
        return state
