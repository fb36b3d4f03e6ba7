"""The answer to a request, what is kept of it until its outcome is known, and what a user says of that outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from longterm._arrays import Array, FloatArray
from longterm.decisions.primal_dual import Open, PrimalDual
from longterm.decisions.primals import Request
from longterm.errors import InputError, NonFiniteError
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


def cost_table(rule: PrimalDual, name: str, given: ArrayLike | None, round: int) -> FloatArray | None:
    """Costs (K, m) of all actions."""
    if given is None:
        return None
    table = numbers(name, given, round)
    K, m = rule.actions, rule.game.resources
    if table.shape == (K,) and m == 1:
        table = table[:, None]
    if table.shape != (K, m):
        raise InputError(name, f"have shape {table.shape}", f"Give ({K}, {m}): actions × budgets", round=round)
    if np.any(table < 0):
        raise InputError(name, "are negative", "Give costs of at least 0", round=round)
    return table


def paid_of(
    rule: PrimalDual, pending: Pending, cost: ArrayLike | None, costs: ArrayLike | None, number: int, *, needs: bool
) -> FloatArray | None:
    """The cost of the action played, as the budgets count; None where it is not known yet."""
    opened, m = pending.open, rule.game.resources
    if cost is None and costs is not None:
        table = cost_table(rule, "costs", costs, number)
        assert table is not None
        return np.asarray(counted(rule, opened, table)[opened.action])
    if cost is None:
        if needs and pending.cost is None and opened.costs is None:
            return None  # the reward came first: keep it until the cost is here
        return opened.costs[opened.action] if needs and opened.costs is not None else None
    paid = numbers("cost", cost, number).reshape(-1)
    if paid.shape != (m,) or np.any(paid < 0):
        raise InputError("cost", f"is {cost!r}", f"Give {m} number(s) of at least 0", round=number)
    return np.asarray(counted(rule, opened, np.broadcast_to(paid, (rule.actions, m)))[opened.action])


def told_of(
    rule: PrimalDual,
    opened: Open,
    reward: float | None,
    rewards: ArrayLike | None,
    costs: ArrayLike | None,
    number: int,
) -> Told | None:
    """Which outcomes are known; the costs of actions not played are those announced, or given now."""
    K, m = rule.actions, rule.game.resources
    known = np.zeros((K, m)) if opened.costs is None else opened.costs
    if rewards is not None:
        table = cost_table(rule, "costs", costs, number)
        if table is not None:
            known = counted(rule, opened, table)
        elif opened.costs is None:
            raise InputError("costs", "of all actions are not known", "Give costs= with rewards=", round=number)
        return np.ones(K, dtype=np.bool_), rewards_of(rewards, K, number), known
    if reward is None:
        return None
    gained = np.zeros(K)
    gained[opened.action] = rewards_of([reward], 1, number)[0]
    seen = np.zeros(K, dtype=np.bool_)
    seen[opened.action] = True
    return seen, gained, known


def counted(rule: PrimalDual, opened: Open, table: FloatArray) -> FloatArray:
    """Costs (K, m) as the budgets count: above the cheapest is what is above its announced cost.

    The cheapest itself counts 0 whatever it costs in the end. It is played where nothing else is affordable, so if a
    dear answer of it counted, no cap could be kept.
    """
    above = np.maximum(table - opened.base, 0.0)
    if opened.costs is None:
        return above
    return np.where(rule.books.above_cheapest & (opened.costs == 0), 0.0, above)


def numbers(name: str, value: ArrayLike, round: int | None) -> FloatArray:
    """Finite numbers, or an error that names them."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(name, f"{value!r} is not made of numbers", "Give real numbers", round=round) from None
    if not np.all(np.isfinite(array)):
        raise NonFiniteError(name, f"is {value!r}", "Leave this request out; the state is as it was", round=round)
    return array


def rewards_of(value: ArrayLike, actions: int, round: int | None) -> FloatArray:
    """Rewards in [0, 1], shape (K,)."""
    array = numbers("reward", value, round).reshape(-1)
    if array.shape != (actions,) or np.any(array < 0) or np.any(array > 1):
        raise InputError(
            "reward", f"{value!r} is not {actions} number(s) in [0, 1]", "Scale rewards to [0, 1]", round=round
        )
    return array
