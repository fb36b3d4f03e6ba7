"""Whole logs, compiled (extra `linear`: Numba): the rules of three pacers, auction by auction, on plain numbers.

Each loop is the reference's `play` with the rule's own `bid` and `update` written for one number, in the same order of
operations: payments agree to the last auction, prices of money to the rounding of exp.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from longterm._arrays import FloatArray
from longterm.pacing.base import Pacer
from longterm.pacing.controller import LARGEST, SMALLEST, ProportionalController
from longterm.pacing.mirror_descent import FARTHEST, LONGEST_MOVE, DualMirrorDescent
from longterm.pacing.planned import PlannedMirrorDescent

Played = tuple[FloatArray, FloatArray, FloatArray]
"""Paid, won, the price of money in force; auctions on the leading axis."""


def can_play(pacer: Pacer[Any]) -> bool:
    """Whether there is a compiled loop for this rule, and Numba to compile it."""
    return type(pacer) in _LOOPS and find_spec("numba") is not None


def play_compiled(pacer: Pacer[Any], values: FloatArray, prices: FloatArray) -> Played:
    """What `auctions.play` does, for pacers that `can_play` names."""
    shape = pacer.batch_shape
    count = int(np.prod(shape, dtype=np.int64))
    made = tuple(np.empty((len(prices), count)) for _ in range(3))
    loop, arguments = _LOOPS[type(pacer)]
    compiled(loop)(values, prices, *arguments(pacer, shape), *made)
    paid, won, price = (array.reshape(len(prices), *shape) for array in made)
    return paid, won, price


def _flat(shape: tuple[int, ...], *numbers: Any) -> tuple[FloatArray, ...]:
    return tuple(np.ascontiguousarray(np.broadcast_to(np.asarray(n, np.float64), shape)).reshape(-1) for n in numbers)


@cache
def compiled(loop: Callable[..., None]) -> Any:
    """The loop, compiled by Numba and kept as the kernels of linear models are: a damaged or full disk is no error."""
    import numba

    from longterm.storage.compiled import kept

    made: Any = numba.njit(nogil=True, error_model="numpy")(loop)
    where = kept(loop) if made is not loop else None  # it is the same with NUMBA_DISABLE_JIT
    if where is not None:
        made._cache = where
    return made


def _dual(pacer: DualMirrorDescent, shape: tuple[int, ...]) -> tuple[Any, ...]:
    rates = np.asarray(pacer.budget) / pacer.horizon, np.asarray(pacer.floor) / pacer.horizon
    numbers = _flat(shape, pacer.budget, *rates, pacer.step, pacer.start, pacer.cost_weight)
    return (*numbers, pacer.mirror == "euclidean", LONGEST_MOVE, FARTHEST)


def _play_dual(  # type: ignore[no-untyped-def]
    values, prices, budget, rate, floor_rate, step, start, anchor, euclidean, longest, farthest, paid, won, price
):
    for k in range(len(budget)):
        money, left = start[k], budget[k]
        for t in range(len(prices)):
            value, cost = values[t], prices[t]
            price[t, k] = money
            bid = value / money if value < money * left else left
            wins = min(bid, left) >= cost
            pays = cost if wins else 0.0
            won[t, k], paid[t, k] = 1.0 if wins else 0.0, pays
            move = step[k] * (pays - rate[k])
            if euclidean:
                lowest = money + move
            else:
                factor = math.exp(min(max(move, -longest), longest))
                lowest = min(max(money * factor, start[k] / farthest), start[k] * farthest)
            if anchor[k] > lowest:
                move = step[k] * (pays - floor_rate[k])
                if euclidean:
                    highest = money + move
                else:
                    factor = math.exp(min(max(move, -longest), longest))
                    highest = min(max(money * factor, start[k] / farthest), start[k] * farthest)
                lowest = max(lowest, min(highest, anchor[k]))
            money = lowest
            left = left - pays


def _planned(pacer: PlannedMirrorDescent, shape: tuple[int, ...]) -> tuple[Any, ...]:
    history = pacer.history
    numbers = _flat(shape, pacer.budget, pacer.rate, pacer.step, pacer.start, pacer.history_days)
    mean = _flat(shape, history.expected_payment(np.asarray(history.mean_value / np.asarray(pacer.start, np.float64))))
    return (*numbers, *mean, pacer.horizon, history.prices, history._payments, LONGEST_MOVE, FARTHEST)


def _play_planned(  # type: ignore[no-untyped-def]
    values, prices, budget, rate, step, start, days, mean_request, horizon, past_prices, payments, longest, farthest,
    paid, won, price,
):  # fmt: skip
    for k in range(len(budget)):
        money, left, expected = start[k], budget[k], 0.0
        past = horizon * days[k]
        of_history = past * max(mean_request[k], 1e-9 * rate[k])
        for t in range(len(prices)):
            value, cost = values[t], prices[t]
            price[t, k] = money
            bid = value / money if value < money * left else left
            wins = min(bid, left) >= cost
            pays = cost if wins else 0.0
            won[t, k], paid[t, k] = 1.0 if wins else 0.0, pays
            this = payments[np.searchsorted(past_prices, value / start[k], side="right")]
            expected = expected + this
            mean = (of_history + expected) / (past + (t + 1.0))
            to_come = max(horizon - (t + 1.0) + 1, 1.0) * mean
            move = step[k] * (pays - left * this / to_come)
            factor = math.exp(min(max(move, -longest), longest))
            money = min(max(money * factor, start[k] / farthest), start[k] * farthest)
            left = left - pays


def _controlled(pacer: ProportionalController, shape: tuple[int, ...]) -> tuple[Any, ...]:
    numbers = _flat(shape, pacer.budget, pacer.base_bid, pacer.gain)
    return (*numbers, pacer.mean_value, pacer.horizon, pacer.every, SMALLEST, LARGEST)


def _play_controlled(  # type: ignore[no-untyped-def]
    values, prices, budget, base, gain, mean_value, horizon, every, smallest, largest, paid, won, price
):
    for k in range(len(budget)):
        factor, left = 1.0, budget[k]
        for t in range(len(prices)):
            cost = prices[t]
            money = mean_value / (base[k] * factor)
            price[t, k] = money
            wins = min(values[t] / money, left) >= cost
            pays = cost if wins else 0.0
            won[t, k], paid[t, k] = 1.0 if wins else 0.0, pays
            left = left - pays
            if (t + 1) % every == 0:
                planned = budget[k] * ((t + 1.0) / horizon)
                factor = 1 + gain[k] * (planned - (budget[k] - left)) / budget[k]
                factor = min(max(factor, smallest), largest)


_LOOPS: dict[type[Any], tuple[Callable[..., None], Callable[..., tuple[Any, ...]]]] = {
    DualMirrorDescent: (_play_dual, _dual),
    PlannedMirrorDescent: (_play_planned, _planned),
    ProportionalController: (_play_controlled, _controlled),
}
