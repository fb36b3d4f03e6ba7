"""Whole logs of first-price auctions, compiled (extra `linear`: Numba).

The loop is `play_first_price` with the estimates of `landscapes` written out on histograms that change in place, in the
same order of operations: bids agree to the last auction, prices of money to the rounding of exp.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.pacing.compiled import compiled
from longterm.pacing.landscapes import Landscape, LostPrices, SeenPrices, WonOrLost

SEEN, LOST, WON = 0, 1, 2
_KINDS: dict[type[Landscape], int] = {SeenPrices: SEEN, LostPrices: LOST, WonOrLost: WON}


def can_play(landscape: Landscape) -> bool:
    """Whether there is a compiled loop for this landscape, and Numba to compile it."""
    return type(landscape) in _KINDS and find_spec("numba") is not None


def play_compiled(
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
    compiled(_play)(values, prices, cells, places, grid, shape, weight, kind, *terms, bids, price)
    return bids, price


def _play(  # type: ignore[no-untyped-def]
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
