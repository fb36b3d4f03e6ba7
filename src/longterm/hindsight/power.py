"""The best fixed power in hindsight: one water level for all devices.

Σ_{s≤t} f_s(x) = t (p̄ Σ_i x_i − Σ_i w_i log(1 + a_i x_i)) with p̄ the mean price. On 0 ≤ x_i ≤ u_i with Σ_i x_i ≤ S, the
multiplier λ ≥ 0 of the sum adds to the price, and each device buys until a unit is worth no more than that:

    x_i(λ) = clip( w_i/(p̄ + λ) − 1/a_i, 0, u_i ),      λ = 0, or the root of Σ_i x_i(λ) = S.

The sum falls as λ grows, so there is one root. The gap is certified (`certified_gap`) like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from longterm._arrays import FloatArray
from longterm.constraints import Affine
from longterm.errors import InputError
from longterm.hindsight.base import Hindsight
from longterm.hindsight.certificates import certified_gap
from longterm.hindsight.rounds import Solution, best_of_each
from longterm.losses import PricedUtility
from longterm.problems import Problem
from longterm.sets import Box
from longterm.streams import Block, Seeds, Stream


def best_power(
    problem: Problem, stream: Stream, rounds: Sequence[int] | NDArray[np.int64], *, seeds: Seeds = 0
) -> Hindsight:
    """x*_t for each t in `rounds` (increasing), for a problem like `longterm.power_allocation`.

    >>> import numpy as np
    >>> from longterm.problems import power_allocation
    >>> from longterm.hindsight import best_power
    >>> from longterm.streams import Windows
    >>> prices = np.array([0.2, 3.0, 0.2, 0.2])
    >>> best = best_power(power_allocation(prices, devices=2), Windows(prices), [1, 4])
    >>> best.x.round(3)  # cheap: 2.8 in all; dearer: less
    array([[0.933, 1.867],
           [0.611, 1.222]])
    """
    loss, limits = problem.loss, problem.constraint
    n = problem.dimension
    if (
        not isinstance(loss, PricedUtility)
        or not isinstance(limits, Affine)
        or not isinstance(problem.enclosing_set, Box)
        or not np.array_equal(limits.matrix, np.concatenate([np.eye(n), np.ones((1, n))]))
        or np.any(problem.enclosing_set.lower != 0)
    ):
        what = f"{problem.name!r} does not buy power for devices within limits on each and on their sum"
        raise InputError("problem", what, "Use longterm.power_allocation, or best_by_cvxpy for other problems")
    highest = np.minimum(problem.enclosing_set.upper, limits.offset[:n])

    def solve(played: Block) -> Solution:
        (prices,) = played.loss
        x = water_level(loss, float(prices.mean()), highest, float(limits.offset[n]))
        values, gradients = loss.value_and_gradient(np.broadcast_to(x, (len(prices), n)), prices)
        return Solution(x, float(values.sum()), float(certified_gap(problem, x, gradients.sum(axis=0))))

    return best_of_each(solve, stream, rounds, seeds)


def water_level(loss: PricedUtility, price: float, highest: FloatArray, total: float) -> FloatArray:
    """Argmin of price Σ_i x_i − Σ_i w_i log(1 + a_i x_i) over 0 ≤ x ≤ highest, Σ_i x_i ≤ total."""

    def bought(extra: float) -> FloatArray:
        dear = max(price + extra, 1e-300)  # for nothing, a device takes all it can
        return np.clip(loss.weights / dear - 1 / loss.gains, 0.0, highest)

    if bought(0.0).sum() <= total:
        return bought(0.0)
    too_dear = float((loss.weights * loss.gains).max())  # the first unit of no device is worth more
    return bought(float(brentq(lambda extra: bought(extra).sum() - total, 0.0, too_dear, xtol=1e-15, rtol=1e-15)))
