"""The answer to a request, and what is kept of it until its outcome is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from longterm._arrays import Array, FloatArray
from longterm.decisions.primal_dual import Open, PrimalDual
from longterm.decisions.primals import Request
from longterm.live.tokens import Token


@dataclass(frozen=True, eq=False)
class Choice:
    """The answer to one request; keep it, or its text ``str(choice)``, to settle it.

    Parameters
    ----------
    number : int
        From 1, in the order of the requests.
    action : int or None
        What to do; None: nothing is affordable, the request is refused and needs no settling.
    probability : float
        With which the action was drawn, given all that was known: what weighing a log divides by.
    probabilities : array, shape (K,)
        Of all actions.
    prices : array, shape (m,)
        λ_t, in reward per unit of each budget's money.
    life : int
        Of the chooser, when it answered.
    """

    number: int
    action: int | None
    probability: float
    probabilities: FloatArray
    prices: FloatArray
    life: int = 0

    def __str__(self) -> str:
        """A short text that JSON can hold; `settle` and `forget` take it as well."""
        return str(Token(self.number, None, self.life))


LARGEST = 1e100
"""No number of a request is as large, and squares of smaller ones are finite."""
Told = tuple[Any, FloatArray, FloatArray]
"""Whose outcomes are known (K,), rewards (K,) and costs (K, m), as the budgets count."""


class Pending(NamedTuple):
    """An open request and what of its outcome is here already."""

    open: Open
    cost: FloatArray | None
    """Of the action, as the budgets count, once settled."""
    told: Told | None
    """Where the reward came before the cost."""

    def require_sound(self, rule: PrimalDual, number: int, round: int) -> None:
        """ValueError unless a request with this number can be open before that round; for what a file says."""
        (asked, context, offered, prices, allowed), action, probabilities, target, costs, bound, base = self.open
        K, m = rule.actions, rule.game.resources
        seen, rewards, known = (None, None, None) if self.told is None else self.told
        rule.primal.check(context, number)
        rows = {"context": context, "offered": offered, "costs": costs, "known": known, "rewards": rewards}
        shapes = {"offered": (K, m), "costs": (K, m), "known": (K, m), "rewards": (K,), "probabilities": (K,)}
        rows |= {"prices": prices, "target": target, "bound": bound, "base": base, "settled": self.cost}
        rows |= {"probabilities": probabilities}
        for name, value in rows.items():
            fits = value is None or (
                value.dtype == np.float64
                and value.shape == shapes.get(name, (m,) if name != "context" else value.shape)
                and np.abs(value).max(initial=0.0) < LARGEST
            )
            if not fits:
                raise ValueError(f"open.{number}.{name} is not what a request leaves")
        for name, mask in {"allowed": allowed, "seen": seen}.items():
            if mask is not None and (mask.dtype != np.bool_ or mask.shape != (K,)):
                raise ValueError(f"open.{number}.{name} is not what a request leaves")
        if not (asked == number and 1 <= number < round and 0 <= action < K and allowed[action]):
            raise ValueError(f"choice {number} is none that can be open")
        if probabilities.min() < 0 or probabilities[action] <= 0 or bound.min() < 0:
            raise ValueError(f"choice {number} has a probability or a bound below 0")


def arrays_of(pending: Mapping[int, Pending]) -> dict[str, Array]:
    """Open requests as named arrays, for a snapshot."""
    arrays: dict[str, Array] = {}
    for number, kept in pending.items():
        request, opened = kept.open.request, kept.open
        fields = request._asdict() | opened._asdict() | {"offered": request.costs, "settled": kept.cost}
        if kept.told is not None:
            fields |= dict(zip(("seen", "rewards", "known"), kept.told, strict=True))
        fields = {k: v for k, v in fields.items() if k != "request" and v is not None}
        arrays |= {f"open.{number}.{name}": np.asarray(value) for name, value in fields.items()}
    return arrays


def pending_of(numbers: Iterable[int], arrays: Mapping[str, Array]) -> dict[int, Pending]:
    """The open requests of a snapshot, oldest first."""
    found = {}
    for number in numbers:
        start = f"open.{number}."
        own = {name.removeprefix(start): value for name, value in arrays.items() if name.startswith(start)}
        request = Request(int(own["round"]), own["context"], own.get("offered"), own["prices"], own["allowed"])
        opened = Open(
            request,
            int(own["action"]),
            own["probabilities"],
            own["target"],
            own.get("costs"),
            own["bound"],
            own["base"],
        )
        told = (own["seen"], own["rewards"], own["known"]) if "seen" in own else None
        found[int(number)] = Pending(opened, own.get("settled"), told)
    return found
