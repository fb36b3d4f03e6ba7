"""The compiled loop of a whole log, for dual and planned mirror descent (extra `linear`: Numba).

It is the reference loop of `play` with the rule's `bid` and `update` written for single numbers, in the same order of
operations. A test compares the two: payments are equal, and prices agree to the rounding of exp.
"""

from __future__ import annotations

import math
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from longterm._base.arrays import FloatArray
from longterm._base.exact_sum import GUARD
from longterm.money.pacing.base import Pacer
from longterm.money.pacing.mirror_descent import DualMirrorDescent
from longterm.money.pacing.planned import PlannedMirrorDescent
from longterm.money.prices import MAX_LOG_STEP, MAX_PRICE_RATIO


def has_kernel(pacer: Pacer[Any]) -> bool:
    """Return True if the compiled loop covers this rule and Numba is installed."""
    return type(pacer) in (DualMirrorDescent, PlannedMirrorDescent) and find_spec("numba") is not None


def play_compiled(
    pacer: Pacer[Any], values: FloatArray, prices: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return bids, payments, wins and prices of money, with the auctions on the leading axis."""
    shape = pacer.batch_shape
    T, count = len(prices), int(np.prod(shape, dtype=np.int64))

    def flat(number: Any) -> FloatArray:
        return np.ascontiguousarray(np.broadcast_to(np.asarray(number, np.float64), shape)).reshape(-1)

    start, is_planned = flat(pacer.start), isinstance(pacer, PlannedMirrorDescent)  # type: ignore[attr-defined]
    expected, past, past_payments = np.zeros((0, 0)), np.zeros(count), np.zeros(count)
    floor_rate, anchor, euclidean = np.zeros(count), np.zeros(count), False
    if isinstance(pacer, PlannedMirrorDescent):
        expected = pacer.history.expected_payment(values[:, None] / start)
        past, past_payments = flat(pacer.past_requests), flat(pacer.past_payments(start.reshape(shape)))
    elif isinstance(pacer, DualMirrorDescent):
        floor_rate, anchor = flat(np.asarray(pacer.floor) / pacer.horizon), flat(pacer.cost_weight)
        euclidean = pacer.mirror == "euclidean"
    bids, paid, won, price = (np.empty((T, count)) for _ in range(4))
    rule = flat(pacer.budget), flat(pacer.rate), floor_rate, flat(pacer.step), start, anchor  # type: ignore[attr-defined]
    plan = is_planned, expected, past, past_payments, pacer.horizon
    _kernel()(values, prices, *rule, euclidean, *plan, MAX_LOG_STEP, MAX_PRICE_RATIO, GUARD, bids, paid, won, price)
    bids, paid, won, price = (array.reshape(T, *shape) for array in (bids, paid, won, price))
    return bids, paid, won, price


@cache
def _kernel() -> Any:
    from longterm._base.compiling import compiled

    return compiled(_play)


def _play(  # type: ignore[no-untyped-def]
    values, prices, budget, rate, floor_rate, step, start, anchor, euclidean, planned, expected, past, past_payments,
    horizon, max_log_step, max_ratio, guard, bids, paid, won, price,
):  # fmt: skip
    for k in range(len(budget)):
        money, total, correction, seen = start[k], 0.0, 0.0, 0.0
        for t in range(len(prices)):
            # The money left, as Ledger.remaining computes it.
            left = budget[k] - total
            part = left - budget[k]
            lost = (budget[k] - (left - part)) + (-total - part)
            if correction != 0.0 or lost != 0.0:
                left = budget[k] * (1 - guard) - (total + correction)
            price[t, k] = money
            bid = values[t] / money if values[t] < money * left else left
            bid = max(min(bid, left), 0.0)
            pays = prices[t] if bid >= prices[t] else 0.0
            bids[t, k], won[t, k], paid[t, k] = bid, 1.0 if bid >= prices[t] else 0.0, pays
            target = rate[k]
            if planned:
                seen = seen + expected[t, k]
                to_come = max(horizon - (t + 1.0) + 1, 1.0) * ((past_payments[k] + seen) / (past[k] + (t + 1.0)))
                target = (budget[k] - (total + correction)) * expected[t, k] / to_come
            move = step[k] * (pays - target)
            if euclidean:
                after = money + move
            else:
                factor = math.exp(min(max(move, -max_log_step), max_log_step))
                after = min(max(money * factor, start[k] / max_ratio), start[k] * max_ratio)
            if anchor[k] > after:
                move = step[k] * (pays - floor_rate[k])
                if euclidean:
                    highest = money + move
                else:
                    factor = math.exp(min(max(move, -max_log_step), max_log_step))
                    highest = min(max(money * factor, start[k] / max_ratio), start[k] * max_ratio)
                after = max(after, min(highest, anchor[k]))
            money = after
            # Ledger.add
            sum_ = total + pays
            part = sum_ - total
            correction += (total - (sum_ - part)) + (pays - part)
            total = sum_
