"""Budgets, the ledger that keeps within them, and the dual learners that price them.

**Budgets**: what may be spent in all, or must be, and the ledger that keeps within it.

A `Budget` is Σ_t c_t ≤ limit ("at most") or Σ_t c_t ≥ limit ("at least"). Rules work in units in which every budget is
equally tight: with c ≤ `largest` and T requests, ρ̂_i = limit_i / (T · largest_i) and ρ = min ρ̂_i,

    ĉ_i = c_i · ρ / (ρ̂_i · largest_i)  ∈  [0, 1],     so that Σ c_i ≤ limit_i   ⟺   mean ĉ_i ≤ ρ.

The ledger adds up what is spent *and* what open requests may still cost. Its sum is compensated (Neumaier), with an
error of two units in the last place whatever the number of terms, and the guard stays four below the limit: "never
over" is meant of the exact sum of the costs. Where nothing was ever lost (whole cents, tokens) the limit itself can be
reached.

**Dual learners**: the price λ of each budget, moved by what was spent beyond the plan.

Every dual keeps 0 ≤ λ, ‖λ‖₁ ≤ M, and is told g_t = σ(ĉ_t − ρ_t), at most 1 in
absolute value. Its regret is max_λ Σ ⟨λ − λ_t, g_t⟩ over {λ ≥ 0, ‖λ‖₁ ≤ M}; `regret` bounds it after every round up
to T.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.errors import InputError

ROUNDING = 4 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Budget:
    """One long-term constraint on what actions cost.

    Parameters
    ----------
    limit : float
        The total over all requests.
    largest : float
        What one request can cost at most. It scales the prices, and it is what is held back where no bound is
        announced.
    kind : {"at most", "at least"}
        A cap (packing) or a floor (covering). Only caps can be kept by construction.
    above_cheapest : bool
        Count only what an action costs more than the cheapest action of the same request was announced to cost; the
        cheapest itself counts 0, whatever it costs in the end. A request must be answered, so the cheapest answer
        is always affordable, and no plan for the rest of the day can be wrong.
    name : str
        For messages and tables.

    Examples
    --------
    >>> from longterm.decisions import Budget
    >>> Budget(100.0, largest=2.0).rate(1000)
    0.05
    """

    limit: float
    largest: float
    kind: Literal["at most", "at least"] = "at most"
    above_cheapest: bool = False
    name: str = "money"

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive_scalar, "limit", "largest")
        if self.kind not in ("at most", "at least"):
            raise InputError("kind", f"{self.kind!r} is not known", "Choose 'at most' or 'at least'")
        if self.above_cheapest and self.kind == "at least":
            raise InputError("above_cheapest", "makes no sense for a floor", "Give it to a budget of kind 'at most'")

    def rate(self, horizon: int) -> float:
        """ρ̂ = limit / (T · largest), the share of requests that could be the dearest possible."""
        return self.limit / (horizon * self.largest)


@dataclass(frozen=True, eq=False)
class Books:
    """All budgets of one game, with their units."""

    budgets: tuple[Budget, ...]
    horizon: int

    @classmethod
    def of(cls, budgets: Budget | Sequence[Budget], horizon: int) -> Books:
        """Check that the budgets go together."""
        given = (budgets,) if isinstance(budgets, Budget) else tuple(budgets)
        if not given:
            raise InputError("budgets", "there is none", "Give at least one Budget")
        if any(budget.above_cheapest for budget in given) and sum(b.kind == "at most" for b in given) > 1:
            raise InputError(
                "budgets",
                "one counts above the cheapest action, and there are several caps",
                "What is cheapest for one is dear for another: give several caps a free action instead",
            )
        return cls(given, validate.count("horizon", horizon))

    @cached_property
    def sign(self) -> FloatArray:
        """σ: +1 for a cap, −1 for a floor."""
        return np.array([1.0 if budget.kind == "at most" else -1.0 for budget in self.budgets])

    @cached_property
    def limit(self) -> FloatArray:
        """Of each, shape (m,)."""
        return np.array([budget.limit for budget in self.budgets])

    @cached_property
    def largest(self) -> FloatArray:
        """Of each, shape (m,)."""
        return np.array([budget.largest for budget in self.budgets])

    @cached_property
    def rate(self) -> float:
        """ρ: what a request may cost on average, in the units of the rules; the same for every budget."""
        return float(min(budget.rate(self.horizon) for budget in self.budgets))

    @cached_property
    def unit(self) -> FloatArray:
        """What one unit of the rules is, in the units of each budget: ĉ = c / unit."""
        rates = np.array([budget.rate(self.horizon) for budget in self.budgets])
        return np.asarray(self.largest * rates / self.rate)

    @cached_property
    def above_cheapest(self) -> NDArray[np.bool_]:
        """Of each, shape (m,)."""
        return np.array([budget.above_cheapest for budget in self.budgets])


class Ledger(NamedTuple):
    """Committed: spent, and held back for what is open. A compensated sum."""

    total: FloatArray
    correction: FloatArray

    @classmethod
    def empty(cls, resources: int) -> Ledger:
        """Nothing yet."""
        return cls(np.zeros(resources), np.zeros(resources))

    def add(self, amount: FloatArray) -> Ledger:
        """Neumaier's step: what the addition lost is kept beside."""
        total = self.total + amount
        lost = np.where(
            np.abs(self.total) >= np.abs(amount), (self.total - total) + amount, (amount - total) + self.total
        )
        return Ledger(total, self.correction + lost)

    @property
    def value(self) -> FloatArray:
        """The sum, shape (m,)."""
        return self.total + self.correction


def affordable(books: Books, committed: Ledger, bounds: FloatArray) -> NDArray[np.bool_]:
    """Which actions keep every cap, whatever the open requests cost, shape (K,).

    What costs nothing is always affordable.
    """
    caps = books.sign > 0
    after = committed.add(bounds)
    exact = (committed.correction == 0) & (after.correction == 0)
    fits = after.value <= np.where(exact, books.limit, books.limit * (1 - ROUNDING))
    return np.asarray((fits | (bounds <= 0))[:, caps].all(axis=1))


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
        validate.validate_fields(self, validate.positive_scalar, "step", optional=True)

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
        validate.validate_fields(self, validate.positive_scalar, "start")
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
