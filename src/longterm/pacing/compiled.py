"""Whole logs, compiled (extra `linear`: Numba): the rules of four pacers, auction by auction, on plain numbers.

Each loop is the reference's `play` with the rule's own `bid` and `update` written for one number, in the same order of
operations: payments agree to the last auction, prices of money to the rounding of exp. That of first-price auctions is
`play_first_price` with the estimates of `landscapes` written out on histograms that change in place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.pacing.base import Pacer
from longterm.pacing.controller import LARGEST, SMALLEST, ProportionalController
from longterm.pacing.landscapes import Landscape, LostPrices, SeenPrices, WonOrLost
from longterm.pacing.mirror_descent import FARTHEST, LONGEST_MOVE, DualMirrorDescent, PlannedMirrorDescent

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
    _compiled(loop)(values, prices, *arguments(pacer, shape), *made)
    paid, won, price = (array.reshape(len(prices), *shape) for array in made)
    return paid, won, price


def _flat(shape: tuple[int, ...], *numbers: Any) -> tuple[FloatArray, ...]:
    return tuple(np.ascontiguousarray(np.broadcast_to(np.asarray(n, np.float64), shape)).reshape(-1) for n in numbers)


@cache
def _compiled(loop: Callable[..., None]) -> Any:
    """The loop, compiled and kept as the kernels of linear models are: a damaged or full disk is no error."""
    from longterm.storage.compiled import compiled

    return compiled(loop)


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


SEEN, LOST, WON = 0, 1, 2
_KINDS: dict[type[Landscape], int] = {SeenPrices: SEEN, LostPrices: LOST, WonOrLost: WON}


def can_play_first_price(landscape: Landscape) -> bool:
    """Whether there is a compiled loop for this landscape, and Numba to compile it."""
    return type(landscape) in _KINDS and find_spec("numba") is not None


def play_first_price_compiled(
    landscape: Landscape,
    values: FloatArray,
    prices: FloatArray,
    cells: NDArray[np.int64],
    money: tuple[float, int, float, float, float],
    euclidean: bool,
    replan: bool,
) -> tuple[FloatArray, FloatArray]:
    """The bids and the prices of money; `money` is budget, horizon, first price, step and κ."""
    bids, price = np.empty(len(prices)), np.empty(len(prices))
    places = np.searchsorted(landscape.bids, prices, side="left")
    shape = np.zeros((2, landscape.cells + 1, len(landscape.bids) + 1))
    kind, weight = _KINDS[type(landscape)], landscape.weight
    grid = np.ascontiguousarray(landscape.bids)
    fit = (landscape.smooth, landscape.straight) if isinstance(landscape, WonOrLost) else (0.0, 0.0)
    terms = (*fit, *money, euclidean, replan)
    _compiled(_play_first_price)(values, prices, cells, places, grid, shape, weight, kind, *terms, bids, price)
    return bids, price


def _play_first_price(  # type: ignore[no-untyped-def]
    values, prices, cells, places, grid, counts, weight, kind, smooth, straight,
    budget, horizon, start, step, kappa, euclidean, replan, bids, price,
):  # fmt: skip
    money, left, n = start, budget, len(grid)
    first, second = np.empty(n + 1), np.empty(n + 1)
    chance, total, mass, middle, lines = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    begins = np.empty(n + 1, np.int64)
    for t in range(len(prices)):
        cell, lean = cells[t], (weight / t if t else 0.0)
        for j in range(n + 1):
            first[j] = counts[0, cell, j] + lean * counts[0, -1, j]
            second[j] = counts[1, cell, j] + lean * counts[1, -1, j]
        if kind == 0:  # the empirical law
            running = 0.0
            for j in range(n):
                running += first[j]
                chance[j] = running
            running += first[n]
            for j in range(n):
                chance[j] = chance[j] / running if running > 0 else 1.0
        elif kind == 1:  # the product limit, from the top; at risk: lost at most here, or won below
            lost, won = first[0], 0.0
            for j in range(1, n + 1):
                lost += first[j]
                won += second[j - 1]
                at_risk = lost + won
                chance[j - 1] = 1.0 - (first[j] / at_risk if at_risk > 0 else 0.0)
            for j in range(n - 2, -1, -1):
                chance[j] *= chance[j + 1]
        else:  # isotonic regression: what falls is pooled; a bid never tried has the chance of the next one tried
            for turn in range(2):
                blocks = 0
                begins[0] = 0
                for j in range(n):
                    tried = first[j] + second[j]
                    if tried <= 0:
                        continue
                    total[blocks], mass[blocks], middle[blocks] = second[j], tried, tried * grid[j]
                    blocks += 1
                    begins[blocks] = j + 1
                    while blocks > 1 and total[blocks - 2] * mass[blocks - 1] >= total[blocks - 1] * mass[blocks - 2]:
                        total[blocks - 2] += total[blocks - 1]
                        mass[blocks - 2] += mass[blocks - 1]
                        middle[blocks - 2] += middle[blocks - 1]
                        blocks -= 1
                        begins[blocks] = j + 1
                for k in range(blocks):
                    middle[k] /= mass[k]
                    for j in range(begins[k], begins[k + 1]):
                        chance[j] = total[k] / mass[k]
                for j in range(begins[blocks], n):
                    chance[j] = 1.0
                k, left_bid, left_share = 0, 0.0, 0.0
                for j in range(n):  # lines through the blocks, from (0, 0); beyond the last, its step
                    while k < blocks and middle[k] < grid[j]:
                        left_bid, left_share = middle[k], total[k] / mass[k]
                        k += 1
                    lines[j] = chance[j]
                    if k < blocks:
                        lines[j] = total[k] / mass[k]
                        if middle[k] > left_bid:
                            slope = (lines[j] - left_share) / (middle[k] - left_bid)
                            lines[j] = slope * (grid[j] - left_bid) + left_share
                if turn == 0:  # for the second fit
                    for j in range(n):
                        first[j] += smooth * (1 - lines[j])
                        second[j] += smooth * lines[j]
            for j in range(n):
                chance[j] = (1 - straight) * chance[j] + straight * lines[j]
        value, weighed, best, chosen = values[t], kappa + money, -np.inf, 0
        for j in range(n):
            if grid[j] > left:
                break
            payoff = (value - weighed * grid[j]) * chance[j]
            if payoff > best:
                best, chosen = payoff, j
        bid = grid[chosen]
        bids[t], price[t] = bid, money
        won_it = bid >= prices[t]
        paid = bid if won_it else 0.0
        plan = left / max(horizon - t, 1) if replan else budget / horizon
        if euclidean:
            money = max(money + step * (paid - plan), 0.0)
        elif plan > 0:
            money *= np.exp(step * (paid - plan) / plan)
        left -= paid
        place = places[t] if kind == 0 or (kind == 1 and not won_it) else chosen
        which = 1 if won_it and kind != 0 else 0
        counts[which, cell, place] += 1.0
        counts[which, -1, place] += 1.0
