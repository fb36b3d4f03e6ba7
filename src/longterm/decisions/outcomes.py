"""What a user says of costs and rewards, checked and counted as the budgets count."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm._arrays import FloatArray
from longterm.decisions.choice import Pending, Told
from longterm.decisions.primal_dual import Open, PrimalDual
from longterm.errors import InputError, NonFiniteError


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
