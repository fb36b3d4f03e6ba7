r"""Dual learners: the price λ of each budget, moved by what was spent beyond the plan.

Every dual keeps 0 ≤ λ, ‖λ‖₁ ≤ M, and is told g_t = σ(ĉ_t − ρ_t), at most 1 in
absolute value. Its regret is max_λ Σ ⟨λ − λ_t, g_t⟩ over {λ ≥ 0, ‖λ‖₁ ≤ M}; `regret` bounds it after every round up
to T.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.errors import InputError


class Game(NamedTuple):
    """What a slot needs to know of the game it is in."""

    unit: FloatArray
    """One unit of the rules in the units of each budget, shape (m,)."""
    horizon: int
    """T, the requests expected."""
    radius: float
    """M, the largest price."""
    rate: float
    """ρ, what a request may cost on average."""
    lowest: float
    """The least that a payoff r − ⟨λ, σĉ⟩ can be."""
    width: float
    """How far payoffs can be apart."""

    @property
    def resources(self) -> int:
        """m, the number of budgets."""
        return len(self.unit)


class Dual(ABC):
    """A learner of prices: pure functions on an array of m numbers."""

    @abstractmethod
    def fitted(self, game: Game) -> Self:
        """The same dual with what was left open (its step) set for this game."""

    def init(self, game: Game) -> FloatArray:
        """The state before the first request."""
        return np.zeros(game.resources)

    @abstractmethod
    def prices(self, state: FloatArray, game: Game) -> FloatArray:
        """λ, shape (m,), in reward per unit of the rules."""

    @abstractmethod
    def update(self, state: FloatArray, gradient: FloatArray, game: Game) -> FloatArray:
        """The state after g_t = σ(ĉ_t − ρ_t)."""

    @abstractmethod
    def regret(self, game: Game, total_delay: float = 0.0) -> float:
        """A bound on the dual's regret after any number of rounds up to T.

        `total_delay` is Σ τ_t, where the gradient of round t came τ_t rounds late.
        """


class Stepping(ABC):
    """What learners with a step share: it is set for the game where it was left open."""

    step: float | None

    def __post_init__(self) -> None:
        validate.fields(self, validate.positive_scalar, "step", optional=True)

    @abstractmethod
    def usual_step(self, game: Game) -> float:
        """The step that is best for this game by the bound."""

    def step_in(self, game: Game) -> float:
        """The step itself."""
        return self.usual_step(game) if self.step is None else self.step

    def fitted(self, game: Game) -> Self:
        """The same with its step set."""
        given: Any = self
        return self if self.step is not None else replace(given, step=self.usual_step(game))


@dataclass(frozen=True)
class HedgeDual(Stepping, Dual):
    r"""Entropic mirror descent over M·Δ_{m+1}; the last coordinate is slack, so that nothing need bind.

    .. math:: λ_i = M \frac{e^{s_i}}{1 + \sum_j e^{s_j}}, \qquad s_i = ε \sum_t g_{t,i}

    Regret ≤ M (ln(m+1)/ε + ε w² T/8) with w the width of (g, 0): 1 for caps or floors alone, 2 for both.
    (Hoeffding; the slack has g = 0.) The default ε = √(8 ln(m+1)/T)/w gives M w √(T ln(m+1)/2). Gradients that come
    late add 2 ε w² M Σ τ_t.

    Parameters
    ----------
    step : float, optional
        ε.
    """

    step: float | None = None

    def usual_step(self, game: Game) -> float:
        return float(np.sqrt(8 * np.log(game.resources + 1) / game.horizon) / _width(game))

    def prices(self, state: FloatArray, game: Game) -> FloatArray:
        scores = self.step_in(game) * state
        top = max(float(scores.max()), 0.0)
        weights = np.exp(scores - top)
        return np.asarray(game.radius * weights / (weights.sum() + np.exp(-top)))

    def update(self, state: FloatArray, gradient: FloatArray, game: Game) -> FloatArray:
        return state + gradient

    def regret(self, game: Game, total_delay: float = 0.0) -> float:
        step, width = self.step_in(game), _width(game)
        steps = step * width**2 * (game.horizon / 8 + 2 * total_delay)
        return float(game.radius * (np.log(game.resources + 1) / step + steps))


@dataclass(frozen=True)
class EuclideanDual(Stepping, Dual):
    r"""Projected gradient steps on {λ ≥ 0, ‖λ‖₁ ≤ M}, from λ = 0.

    .. math:: λ_{t+1} = Π(λ_t + γ g_t)

    Regret ≤ M²/(2γ) + γ m T/2, because ‖g‖² ≤ m; the default γ = M/√(mT) gives M√(mT). Late gradients add 2 γ m Σ τ_t.

    Parameters
    ----------
    step : float, optional
        γ.
    """

    step: float | None = None

    def usual_step(self, game: Game) -> float:
        return float(game.radius / np.sqrt(game.resources * game.horizon))

    def prices(self, state: FloatArray, game: Game) -> FloatArray:
        return state

    def update(self, state: FloatArray, gradient: FloatArray, game: Game) -> FloatArray:
        return onto_corner(state + self.step_in(game) * gradient, game.radius)

    def regret(self, game: Game, total_delay: float = 0.0) -> float:
        step = self.step_in(game)
        return game.radius**2 / (2 * step) + step * game.resources * (game.horizon / 2 + 2 * total_delay)


@dataclass(frozen=True)
class EntropicDual(Stepping, Dual):
    r"""Multiplicative prices: what a router or a bidder runs.

    .. math:: λ_{t+1,i} = \min(1, M/\|u\|_1)\, u_i, \qquad u_i = λ_{t,i} e^{ε g_{t,i}/ρ}

    It needs a first price. Before the cap ln λ is a sum, so the order in which late costs arrive does not matter. With
    y = εg/ρ ≤ 1, e^y ≤ 1 + y + y² gives for every λ with ‖λ‖₁ ≤ M

        Σ ⟨λ − λ_t, g_t⟩ ≤ (ρ/ε) [M ln(M/λ_1) − M]₊ + (ρ/ε) ‖λ_1‖₁ + (ε/ρ) M T,

    so ε ≤ ρ is needed for the theorem. (Steps that large requests make longer than that work well, and have none.)

    Parameters
    ----------
    start : float
        λ_1, in reward per unit of the budget's own money (of each budget's, where there are several): what it
        should bring.
    step : float, optional
        ε, per unit of ĉ/ρ. By default ρ · √(max(ln(M/λ_1), 1)/T), at most ρ.
    """

    start: float
    step: float | None = None

    def __post_init__(self) -> None:
        validate.fields(self, validate.positive_scalar, "start")
        super().__post_init__()

    def usual_step(self, game: Game) -> float:
        spread = max(float(np.log(game.radius / self._first(game).min())), 1.0)
        return float(game.rate * min(1.0, np.sqrt(spread / game.horizon)))

    def init(self, game: Game) -> FloatArray:
        return np.log(self._first(game))

    def prices(self, state: FloatArray, game: Game) -> FloatArray:
        return np.exp(state)

    def update(self, state: FloatArray, gradient: FloatArray, game: Game) -> FloatArray:
        moved = state + (self.step_in(game) / game.rate) * gradient
        top = np.log(game.radius)
        # The nearest point of ‖λ‖₁ ≤ M in relative entropy: all prices in proportion. (One price: the lesser of two.)
        return np.asarray(np.minimum(moved - max(float(np.logaddexp.reduce(moved)) - top, 0.0), top))

    def regret(self, game: Game, total_delay: float = 0.0) -> float:
        step = self.step_in(game)
        if step > game.rate * (1 + 1e-12):
            raise InputError(
                "step",
                f"{step:g} is above ρ = {game.rate:g}, and no theorem covers it",
                "Leave the step out, or take HedgeDual",
            )
        if total_delay:
            raise InputError("total_delay", "has no theorem for EntropicDual", "Take HedgeDual or EuclideanDual")
        M, first, eta = game.radius, self._first(game), step / game.rate
        distance = max(M * np.log(M / first.min()) - M, 0.0) + first.sum()
        return float(distance / eta + eta * M * game.horizon)

    def _first(self, game: Game) -> FloatArray:
        first = self.start * game.unit
        return np.asarray(first * min(1.0, game.radius / float(first.sum())))


def onto_corner(point: FloatArray, radius: float) -> FloatArray:
    """The nearest point of {λ ≥ 0, ‖λ‖₁ ≤ radius}."""
    positive = np.maximum(point, 0.0)
    if positive.sum() <= radius:
        return positive
    ordered = np.sort(positive)[::-1]
    excess = (np.cumsum(ordered) - radius) / np.arange(1, len(ordered) + 1)
    return np.asarray(np.maximum(positive - excess[np.flatnonzero(ordered > excess)[-1]], 0.0))


def _width(game: Game) -> float:
    """Of the numbers g_1 … g_m and 0: caps and floors together span [−1, 1]."""
    return 1.0 if game.width <= 1 + game.radius * (1 + 1e-12) else 2.0
