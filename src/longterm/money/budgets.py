"""Budgets: caps, floors and ceilings on what actions cost.

A `Budget` is Σ_t c_t ≤ limit ("at most") or Σ_t c_t ≥ limit ("at least"). Rules work in units in which every budget is
equally tight. With c ≤ `largest` and T requests, ρ̂_i = limit_i / (T · largest_i) and ρ = min ρ̂_i,

    ĉ_i = c_i · ρ / (ρ̂_i · largest_i)  ∈  [0, 1],     so that Σ c_i ≤ limit_i   ⟺   mean ĉ_i ≤ ρ.

A limit that is changed later leaves the units c_i / ĉ_i as they are. Then each budget has its own rate, and ρ is the
smallest of them.

A `Ceiling` is open-ended: after t requests Σ c ≤ per_request · t + credit, at any time. Money that was not spent can be
spent later, or up to an amount `bank`: then it is a token bucket.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm._base.exact_sum import GUARD, ExactSum
from longterm._base.validate import Hyper
from longterm.errors import InputError

LARGEST_NUMBER = 1e50
"""Contexts, costs and limits are at most this large, so that products of several are finite."""
LARGEST_STORED = 1e150
"""Numbers that rules compute from such input are smaller. Files with larger ones are refused."""

LARGEST_RATIO = 1e12
"""A cost is at most so many times its limit, also if it is forced. Beyond it, sums would lose the digits of others."""


def in_range(argument: str, value: Any) -> Hyper:
    """Return a number, or an array of numbers, from 0 to `LARGEST_NUMBER`."""
    checked = validate.non_negative(argument, value)
    if np.any(checked > LARGEST_NUMBER):
        raise out_of_range(argument, value)
    return checked


def positive_in_range(argument: str, value: Any) -> Hyper:
    """Return a number, or an array of numbers, from 1 / `LARGEST_NUMBER` to `LARGEST_NUMBER`."""
    checked = validate.positive(argument, value)
    if np.any((checked < 1 / LARGEST_NUMBER) | (checked > LARGEST_NUMBER)):
        raise out_of_range(argument, value)
    return checked


def scalar_in_range(argument: str, value: Any) -> float:
    """Return a single number from 0 to `LARGEST_NUMBER`."""
    return validate.scalar(argument, in_range(argument, value))


def positive_scalar_in_range(argument: str, value: Any) -> float:
    """Return a single number from 1 / `LARGEST_NUMBER` to `LARGEST_NUMBER`."""
    return validate.scalar(argument, positive_in_range(argument, value))


def out_of_range(argument: str, value: Any, round: int | None = None) -> InputError:
    """Return the error for a number that is so large or small that products of several may overflow."""
    remedy = f"Give a number between {1 / LARGEST_NUMBER:g} and {LARGEST_NUMBER:g}, in another unit of money if need be"
    return InputError(argument, f"{value} is out of range", remedy, round=round)


def out_of_proportion(argument: str, cost: float, round: int) -> InputError:
    """Return the error for a cost that is so large that the costs of other requests would be lost beside it."""
    what = f"{cost:g} is more than {LARGEST_RATIO:g} times the limit and the largest cost expected"
    return InputError(argument, what, "Check it: sums would lose the costs of other requests", round=round)


@dataclass(frozen=True)
class Budget:
    """One long-term constraint on the cost of actions.

    Parameters
    ----------
    limit : float
        The total over all requests.
    largest : float
        The largest cost of one request. It scales the prices. It is also the amount held back for a request
        without announced costs.
    kind : {"at most", "at least"}
        A cap (packing) or a floor (covering). Only caps can be kept by construction.
    above_cheapest : bool
        Count only the cost above that of the cheapest action of the same request. The cheapest action counts 0
        whatever it costs in the end, so it is always affordable.
    name : str
        For messages and tables.

    Examples
    --------
    >>> from longterm.money.budgets import Budget
    >>> Budget(100.0, largest=2.0).rate(1000)
    0.05
    """

    limit: float
    largest: float
    kind: Literal["at most", "at least"] = "at most"
    above_cheapest: bool = False
    name: str = "money"

    def __post_init__(self) -> None:
        validate.validate_fields(self, positive_scalar_in_range, "limit", "largest")
        if self.kind not in ("at most", "at least"):
            raise InputError("kind", f"{self.kind!r} is not known", "Choose 'at most' or 'at least'")
        if self.above_cheapest and self.kind == "at least":
            raise InputError(
                "above_cheapest",
                "applies to caps only, and this budget is a floor",
                "Leave it out, or set kind='at most'",
            )

    def rate(self, horizon: int | None) -> float:
        """Return ρ̂ = limit / (T · largest)."""
        assert horizon is not None
        return self.limit / (horizon * self.largest)


@dataclass(frozen=True)
class Ceiling:
    """A cap on the average cost of a request, at any time and without a horizon.

    After t requests at most per_request · t + credit has been spent. The requests still open count with their bounds.

    Parameters
    ----------
    per_request : float
        The average cost that a request may have.
    largest : float
        The largest cost of one request.
    credit : float
        Money that may be spent ahead of the ceiling.
    bank : float, optional
        The most money that is saved, in requests: money beyond bank · per_request + credit is given up. Then the bill
        of any n requests in a row is at most per_request · n + bank · per_request + credit. By default all is saved.
    always_answer : bool
        Allow the action with the smallest announced cost even if it does not fit. Then every request is answered,
        and only that action can exceed the ceiling. With False, such a request is refused.
    name : str
        For messages and tables.
    """

    per_request: float
    largest: float
    credit: float = 0.0
    always_answer: bool = False
    name: str = "money"
    bank: float | None = None

    kind: ClassVar[str] = "at most"
    above_cheapest: ClassVar[bool] = False

    def __post_init__(self) -> None:
        validate.validate_fields(self, positive_scalar_in_range, "per_request", "largest")
        validate.validate_fields(self, scalar_in_range, "credit")
        validate.validate_fields(self, scalar_in_range, "bank", optional=True)

    def rate(self, horizon: int | None) -> float:
        """Return ρ̂ = per_request / largest, at most 1."""
        return min(self.per_request / self.largest, 1.0)


@dataclass(frozen=True, eq=False)
class BudgetSet:
    """All budgets of one rule, with their units."""

    budgets: tuple[Budget | Ceiling, ...]
    horizon: int | None
    given_unit: tuple[float, ...] | None = None
    """The units of a set whose limits have been changed since."""

    @classmethod
    def of(
        cls,
        budgets: Budget | Ceiling | Sequence[Budget | Ceiling],
        horizon: int | None,
        unit: Sequence[float] | None = None,
    ) -> BudgetSet:
        """Return the set, once the budgets are known to be compatible."""
        given = (budgets,) if isinstance(budgets, (Budget, Ceiling)) else tuple(budgets)
        if not given:
            raise InputError("budgets", "is empty", "Give at least one Budget")
        if any(budget.above_cheapest for budget in given) and sum(b.kind == "at most" for b in given) > 1:
            raise InputError(
                "budgets",
                "has a cap with above_cheapest=True beside other caps",
                "Leave above_cheapest out and make one action free. The cheapest action differs from cap to cap",
            )
        if horizon is None and any(isinstance(budget, Budget) for budget in given):
            raise InputError(
                "horizon",
                "is missing, but a Budget has a limit for the whole horizon",
                "Give the number of requests, or use Ceiling, which needs no horizon",
            )
        if unit is not None:
            unit = tuple(validate.positive_scalar("unit", one) for one in unit)
            if len(unit) != len(given) or any(one < b.largest * (1 - 1e-9) for one, b in zip(unit, given, strict=True)):
                raise InputError("unit", f"is {unit}", "Give one for each budget, at least its largest cost")
        return cls(given, None if horizon is None else validate.count("horizon", horizon), unit)

    @cached_property
    def sign(self) -> FloatArray:
        """σ, shape (m,): +1 for a cap, −1 for a floor."""
        return np.array([1.0 if budget.kind == "at most" else -1.0 for budget in self.budgets])

    @cached_property
    def is_cap(self) -> NDArray[np.bool_]:
        """A mask of the caps, shape (m,)."""
        return np.asarray(self.sign > 0)

    @cached_property
    def is_goal(self) -> NDArray[np.bool_]:
        """A mask of the limits that are meant to be reached, ceilings and floors, shape (m,)."""
        return np.asarray(~self.is_cap | (self.lines[1] > 0))

    @cached_property
    def has_caps_only(self) -> bool:
        """True if no budget is a floor."""
        return bool(self.is_cap.all())

    @cached_property
    def counts_above(self) -> bool:
        """True if a budget counts above the cheapest action."""
        return bool(self.above_cheapest.any())

    @cached_property
    def lines(self) -> tuple[FloatArray, FloatArray]:
        """The limits as functions of the number of requests: offsets and slopes, shape (m,)."""
        down = 1 - GUARD
        lines = [
            (b.limit, 0.0) if isinstance(b, Budget) else (b.credit * down, b.per_request * down) for b in self.budgets
        ]
        offsets, slopes = np.array(lines).T
        return offsets, slopes

    @cached_property
    def has_ceiling(self) -> bool:
        """True if a budget is open-ended."""
        return any(isinstance(budget, Ceiling) for budget in self.budgets)

    @cached_property
    def always_answers(self) -> bool:
        """True if the action with the smallest announced cost is always allowed."""
        return any(isinstance(budget, Ceiling) and budget.always_answer for budget in self.budgets)

    def limit(self, requests: int) -> FloatArray:
        """Return the limits after so many requests, shape (m,). Those of ceilings are rounded down."""
        offsets, slopes = self.lines
        return offsets + slopes * requests if self.has_ceiling else offsets

    def withheld(self, before: BudgetSet, requests: int) -> FloatArray:
        """Return by how much the limits are to be lower because ceilings were different until now, shape (m,).

        It is negative if they were higher. So a new ceiling counts for the requests that come, and not for the past.
        """
        new, old = (one.lines[1] * requests for one in (self, before))
        return np.asarray(np.where(new == old, 0.0, new - old + 2 * GUARD * (new + old)))

    @cached_property
    def _banks(self) -> FloatArray:
        """The most money that is saved beyond the credit, rounded down, shape (m,); infinite without a bank."""
        caps = [
            b.bank * b.per_request if isinstance(b, Ceiling) and b.bank is not None else np.inf for b in self.budgets
        ]
        return np.array(caps) * (1 - GUARD)

    @cached_property
    def has_bank(self) -> bool:
        """True if a ceiling gives up savings beyond its bank."""
        return bool(np.isfinite(self._banks).any())

    def forfeited(self, before: FloatArray, spent: ExactSum, requests: int) -> FloatArray:
        """Return the money given up so far, shape (m,), from that before the request.

        Unspent money counts with the bounds of open requests, so that a refund cannot overfill the bank. The credit is
        in the limit and in the most that is saved, so it cancels. With a large credit, the difference of the two would
        have only rounding errors.
        """
        if not self.has_bank:
            return before
        earned = self.lines[1] * requests
        return np.asarray(np.maximum(before, earned - spent.value - self._banks + 2 * GUARD * earned))

    def plan(self, requests: int) -> FloatArray:
        """Return what an even spender has spent after so many requests, shape (m,)."""
        shares = [
            1.0 if isinstance(budget, Ceiling) or self.horizon is None else min(requests / self.horizon, 1.0)
            for budget in self.budgets
        ]
        return np.asarray(self.limit(requests) * shares * (requests > 0))

    def unspent(self, committed: ExactSum, requests: int, forfeited: FloatArray | float = 0.0) -> float:
        """Return the part of an even spender's money that was not used, in [0, 1]: of the scarcest cap, without credit.

        Money that is `forfeited` does not count. Without a cap it is 0.
        """
        if not self.is_cap.any():
            return 0.0
        slopes = self.lines[1]
        if len(self.budgets) == 1 and slopes[0] > 0:  # the same in Python's numbers, which are faster
            even_money = float(slopes[0]) * requests - float(np.max(forfeited))
            return min(max(1.0 - float(committed.value[0]) / max(even_money, 1 / LARGEST_NUMBER), 0.0), 1.0)
        even = np.where(slopes > 0, slopes * requests, self.plan(requests)) - forfeited
        used = np.where(self.is_cap, committed.value / np.maximum(even, 1 / LARGEST_NUMBER), 0.0)
        return float(min(max(1.0 - used.max(), 0.0), 1.0))

    @cached_property
    def largest(self) -> FloatArray:
        """The largest cost of one request, shape (m,)."""
        return np.array([budget.largest for budget in self.budgets])

    @cached_property
    def rate(self) -> float:
        """ρ: the average cost that a request may have, in the units of the rules."""
        return float(self.rates.min())

    @cached_property
    def _own_rates(self) -> FloatArray:
        """ρ̂, shape (m,)."""
        return np.array([budget.rate(self.horizon) for budget in self.budgets])

    @cached_property
    def rates(self) -> FloatArray:
        """The average cost of a request that each budget allows, in units of the rules, shape (m,)."""
        if self.given_unit is None:
            return np.full(len(self.budgets), self._own_rates.min())
        return np.asarray(self._own_rates * self.largest / self.unit)

    @cached_property
    def unit(self) -> FloatArray:
        """One unit of the rules in the units of each budget, shape (m,): ĉ = c / unit."""
        if self.given_unit is not None:
            return np.array(self.given_unit)
        return np.asarray(self.largest * self._own_rates / self._own_rates.min())

    @cached_property
    def above_cheapest(self) -> NDArray[np.bool_]:
        """A mask of the budgets that count above the cheapest action, shape (m,)."""
        return np.array([budget.above_cheapest for budget in self.budgets])

    def affordable(self, committed: ExactSum, bounds: FloatArray, limit: FloatArray) -> NDArray[np.bool_]:
        """Return a mask (K,) of the actions that keep every cap if they cost at most `bounds`, shape (K, m).

        `committed` is the money spent and held back for open requests. A free action is always affordable.
        """
        if len(self.budgets) == 1 and self.has_caps_only:  # the same in Python's numbers, which are faster
            rest = ExactSum(float(committed.total[0]), float(committed.correction[0])).remaining(float(limit[0]))
            return np.array([bound <= max(rest, 0.0) for bound in bounds[:, 0].tolist()])
        fits = (bounds <= committed.remaining(limit)) | (bounds <= 0)
        return np.asarray((fits | ~self.is_cap).all(axis=1))
