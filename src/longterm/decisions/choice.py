"""The answer to a request, and what is kept of it until its outcome is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from longterm._arrays import Array, FloatArray
from longterm.decisions.primal_dual import Open
from longterm.decisions.primals import Request


@dataclass(frozen=True, eq=False)
class Choice:
    """The answer to one request; keep it, or its number, to settle it.

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


Told = tuple[Any, FloatArray, FloatArray]
"""Whose outcomes are known (K,), rewards (K,) and costs (K, m), as the budgets count."""


class Pending(NamedTuple):
    """An open request and what of its outcome is here already."""

    open: Open
    cost: FloatArray | None
    """Of the action, as the budgets count, once settled."""
    told: Told | None
    """Where the reward came before the cost."""


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
