r"""Inverse gap weighting (Foster and Rakhlin 2020; with budgets Slivkins et al., JMLR 25, 2024), and its regressors.

A regressor predicts the outcomes of all actions and learns from the one seen. `energy(T)` bounds E Σ_t (prediction −
mean)² at the played pairs, where the class is right. For the Vovk–Azoury–Warmuth forecast, which shrinks by the request
at hand, ŷ = ⟨x, w_a⟩/(1 + xᵀP_{aa}x), the sum of squares exceeds that of the best weights by at most λ‖w‖² + Y² Σ_a ln
det, and the excess *is* the energy in expectation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.decisions.duals import Game
from longterm.decisions.linear import LinearBelief
from longterm.decisions.primals import Lesson, Primal, Request, require_features
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
        validate.validate_fields(self, validate.positive_scalar, "ridge")

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


@dataclass(frozen=True)
class InverseGapWeighting(Primal[Any]):
    r"""The better an action looks, the likelier; none is ever given up.

    .. math:: b = \arg\max L̂, \qquad p(a) = \frac{1}{K + γ(L̂(b) − L̂(a))}\ (a ≠ b), \qquad \text{the rest on } b

    with L̂(a) = r̂(a) − ⟨λ, ĉ(a)⟩; announced costs are used as they are.

    **Regret.** E_P ≤ 2KT/γ + (γ/2) U_L against the best action *of each context*, U_L ≥ E Σ (L̂ − L)² at the played
    pairs: U where costs are announced, 2U(1 + mM²) where they are learned. *Proof.* With gaps δ(a) = L̂(b) − L̂(a)
    and errors e(a) = L̂(a) − L(a), L(a*) − L(a) = δ(a) + e(a) − e(a*) − δ(a*). Σ p δ ≤ (K−1)/γ; Σ p e ≤ (γ/4) Σ p
    e² + 1/γ; and −e(a*) ≤ (γ/4) p(a*) e(a*)² + 1/(γ p(a*)), where 1/p(a*) ≤ K + γδ(a*), which takes up −δ(a*) and
    leaves K/γ. (If a* = b, p(b) ≥ 1/K.) Add: 2K/γ + (γ/2) Σ p e². ∎ The γ that balances it is 2√(KT/U_L), and it
    explores far too much: `multiple` times it is used, and `regret` says what that costs in theory. The theorem's γ
    in the paper lacks a factor, and the quoted bound a √K; this is re-derived.

    Parameters
    ----------
    actions : int
        K.
    regressor : Regressor
        The oracle.
    sharpness : float, optional
        γ; by default `multiple` times the theorem's.
    multiple : float
        1 is the theorem; about 20 is better in practice.
    """

    actions: int
    regressor: Regressor[Any]
    sharpness: float | None = None
    multiple: float = 20.0

    def __post_init__(self) -> None:
        validate.count("actions", self.actions)
        validate.validate_fields(self, validate.positive_scalar, "multiple")
        validate.validate_fields(self, validate.positive_scalar, "sharpness", optional=True)

    def fitted(self, game: Game) -> Self:
        if self.sharpness is not None:
            return self
        # Announced costs are the usual case; learned ones only make γ too large by a constant factor of the rates.
        best = 2 * np.sqrt(self.actions * game.horizon / self.regressor.energy(self.actions, game.horizon))
        return replace(self, sharpness=float(self.multiple * best))

    def init(self, game: Game) -> Any:
        return self.regressor.init(self.actions, 1 + game.resources)

    def weigh(self, state: Any, request: Request, rng: np.random.Generator) -> FloatArray:
        assert self.sharpness is not None
        predicted = self.regressor.predict(state, request.context)
        costs = predicted[1:].T if request.costs is None else request.costs
        payoff = np.where(request.allowed, predicted[0] - costs @ request.prices, -np.inf)
        best = int(payoff.argmax())
        chances = np.where(
            request.allowed, 1.0 / (request.allowed.sum() + self.sharpness * (payoff[best] - payoff)), 0.0
        )
        chances[best] = 0.0
        chances[best] = 1.0 - chances.sum()
        return chances

    def learn(self, state: Any, request: Request, lesson: Lesson, game: Game) -> Any:
        for action in np.flatnonzero(lesson.seen).tolist():
            outcomes = np.concatenate([[lesson.rewards[action]], lesson.costs[action]])
            state = self.regressor.learn(state, request.context, action, outcomes)
        return state

    def check(self, context: FloatArray, round: int) -> None:
        self.regressor.check(context, round)

    def regret(self, game: Game, *, known_costs: bool) -> float:
        gamma = self.fitted(game).sharpness
        assert gamma is not None
        energy = self.regressor.energy(self.actions, game.horizon)
        if not known_costs:
            energy *= 2 * (1 + game.resources * game.radius**2)
        return float(2 * self.actions * game.horizon / gamma + gamma / 2 * energy)
