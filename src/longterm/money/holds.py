"""Holds: amounts set aside for open requests, whose shortfall is a long-term constraint.

A hold h is set before the cost c is known. `ExcessHold` moves h ← [h + η((c − h)₊ − εc)]₊, so that on every sequence
Σ (c − h)₊ ≤ ε Σ c + C/η, with C the largest cost. If up to D costs come while a request is open, the bound is larger by
D·C. `ExcessHold.bound` evaluates what the D late costs have added so far.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from longterm._base import validate
from longterm._base.display import ReprMixin
from longterm.errors import InputError


class HoldState(NamedTuple):
    """One key's hold, its number of costs, Σ cost, Σ (cost − hold)₊ and the largest cost."""

    hold: float = 0.0
    settled: int = 0
    costs: float = 0.0
    excess: float = 0.0
    largest: float = 0.0

    def require_sound(self) -> None:
        """Raise a ValueError unless a state from a file can be used."""
        if type(self.settled) is not int or not all(0 <= number < math.inf for number in self):
            raise ValueError("a hold is below 0 or not finite")


@dataclass(repr=False)
class ExcessHold(ReprMixin):
    """Holds per key whose average excess is a given share of the costs, on every sequence.

    Parameters
    ----------
    share : float
        ε in (0, 1): Σ (cost − hold)₊ as a share of Σ cost.
    step : float
        η in (0, 1].
    warm_up : int
        Costs of a key to see before its hold may be below the `largest` given to `predict`.

    Examples
    --------
    >>> from longterm.money.holds import ExcessHold
    >>> holds = ExcessHold(share=0.02, warm_up=3)
    >>> holds.predict("large model", largest=1.0)
    1.0
    >>> for cost in (0.2, 0.3, 0.1):
    ...     holds.update("large model", cost)
    >>> 0.2 < holds.predict("large model", largest=1.0) < 0.4
    True
    """

    share: float = 0.02
    step: float = 0.1
    warm_up: int = 30
    _states: dict[Hashable, HoldState] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.share = validate.positive_scalar("share", self.share)
        self.step = validate.positive_scalar("step", self.step)
        if self.share >= 1.0:
            raise InputError("share", f"{self.share!r} is not below 1", "Give a share of the costs, such as 0.02")
        if self.step > 1.0:
            raise InputError("step", f"{self.step!r} is above 1", "Give a step of at most 1")
        self.warm_up = int(validate.non_negative_scalar("warm_up", self.warm_up))

    def amount(self, state: HoldState, largest: float) -> float:
        """Return the amount to hold: the worst case until `warm_up` costs are known."""
        return largest if state.settled < self.warm_up else min(state.hold, largest)

    def after(self, state: HoldState, cost: float, held: float | None = None) -> HoldState:
        """Return the state after a cost. `held` is the hold that the request had, if other costs came since."""
        # During the warm-up the worst case is held, so the state learns from its own hold.
        over = max(cost - (state.hold if held is None or state.settled < self.warm_up else held), 0.0)
        step = max(self.step, 1.0 / (state.settled + 1))  # the first cost sets the hold, and steps do not increase
        hold = max(state.hold + step * (over - self.share * cost), 0.0)
        return HoldState(hold, state.settled + 1, state.costs + cost, state.excess + over, max(state.largest, cost))

    def predict(self, key: Hashable, largest: float | None = None) -> float:
        """Return the amount to hold for a request of this key: a model, a group, or a tuple of both.

        The worst case `largest` is held until `warm_up` costs are known. It is needed before the first cost.
        """
        state = self._states.get(key)
        if largest is not None:
            return self.amount(state or HoldState(), validate.non_negative_scalar("largest", largest))
        if state is None:
            raise InputError(
                "largest", f"is missing, and no cost of {key!r} has been observed yet", "Give the largest possible cost"
            )
        return state.hold if state.settled >= self.warm_up else max(state.hold, state.largest)

    def update(self, key: Hashable, cost: float, held: float | None = None) -> None:
        """Take the cost that a request of this key had, and its hold if other costs came since."""
        paid = validate.non_negative_scalar("cost", cost)
        before = None if held is None else validate.non_negative_scalar("held", held)
        self._states[key] = self.after(self._states.get(key, HoldState()), paid, before)

    def excess(self, key: Hashable) -> float:
        """Return Σ (cost − hold)₊ of a key."""
        return self._states[key].excess if key in self._states else 0.0

    def bound(self, key: Hashable) -> float:
        """Return the limit of `excess` that holds on every sequence: ε Σ cost + max(C, h)/η.

        C is the largest cost so far and h the present hold. If the costs are on time, h ≤ C. If at most D costs come
        between a request and its own cost, and no cost is above the `largest` of its request, h/η ≤ C/η + D·C.
        """
        state = self._states.get(key)
        if state is None:
            return 0.0
        return self.share * state.costs + max(state.largest, state.hold) * min(float(state.settled), 1.0 / self.step)
