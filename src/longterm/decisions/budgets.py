"""Budgets: what may be spent in all, or must be, and the ledger that keeps within it.

A `Budget` is Σ_t c_t ≤ limit ("at most") or Σ_t c_t ≥ limit ("at least"). Rules work in units in which every budget is
equally tight: with c ≤ `largest` and T requests, ρ̂_i = limit_i / (T · largest_i) and ρ = min ρ̂_i,

    ĉ_i = c_i · ρ / (ρ̂_i · largest_i)  ∈  [0, 1],     so that Σ c_i ≤ limit_i   ⟺   mean ĉ_i ≤ ρ.

The ledger adds up what is spent *and* what open requests may still cost. Its sum is compensated (Neumaier), with an
error of two units in the last place whatever the number of terms, and the guard stays four below the limit: "never
over" is meant of the exact sum of the costs. Where nothing was ever lost (whole cents, tokens) the limit itself can be
reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

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
        validate.fields(self, validate.positive_scalar, "limit", "largest")
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
