"""Power allocation to devices with long-term limits."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.problems.constraints import Affine
from longterm.problems.losses.priced_utility import PricedUtility
from longterm.problems.problem import Problem
from longterm.problems.sets import Box

CAP = 4.0
"""The largest power of a device in one round."""
LIMIT = 2.0
"""The long-term limit of a device."""
SHARE = 0.7
"""The long-term limit of all devices, as a share of the sum of their limits."""


def power_allocation(prices: ArrayLike, devices: int = 5) -> Problem:
    """Return f_t(x) = p_t Σ_i x_i − Σ_i w_i log(1 + a_i x_i) on 0 ≤ x ≤ 4 with limits x_i ≤ 2, Σ_i x_i ≤ 1.4 n.

    Device i turns power x_i into the utility w_i log(1 + a_i x_i). The limits bind at low prices and are slack at high
    ones. For real prices use ``10 * load_elec2().nsw_price`` with `streams.Windows`. Weights range from 1 to
    2 and gains from 2 to 1. The best fixed x in hindsight has a closed form, water-filling (`water_level`). Related:
    the priced power of Yu, Neely and Wei (2017).

    R = 2√n, Δ = 4√n, D = max(2, 2.6n), σ = min_i w_i a_i²/(1 + 4a_i)², G and F as in
    `losses.priced_utility.PricedUtility`. x = 0 is a Slater point with slack min(2, 1.4n).

    Parameters
    ----------
    prices : array_like
        All prices of the stream. Only the lowest and the highest are used.
    devices : int
        n.

    Examples
    --------
    >>> from longterm.problems.named.power import power_allocation
    >>> problem = power_allocation([0.2, 3.0], devices=5)
    >>> c = problem.constants
    >>> round(c.radius, 4), c.constraint_bound, round(c.gradient_bound, 4), round(c.strong_convexity, 4)
    (4.4721, 13.0, 6.0025, 0.0494)
    """
    n = validate.dimension("devices", devices)
    given = np.asarray(prices, dtype=np.float64)
    if given.size == 0 or not np.all(np.isfinite(given)) or given.min() < 0:
        raise InputError("prices", "are empty, negative or not finite", "Give the prices of the stream")
    caps = np.full(n, CAP)
    loss = PricedUtility(
        weights=np.linspace(1.0, 2.0, n),
        gains=np.linspace(2.0, 1.0, n),
        caps=caps,
        prices=(float(given.min()), float(given.max())),
    )
    matrix = np.concatenate([np.eye(n), np.ones((1, n))])
    limit = np.concatenate([np.full(n, LIMIT), [SHARE * LIMIT * n]])
    minimiser = partial(_best_power, loss=loss, highest=np.minimum(caps, limit[:n]), total=float(limit[n]))
    name = f"power for {n} devices"
    return Problem(Box(np.zeros(n), caps), loss, Affine(matrix, limit), name=name, minimiser=minimiser)


def water_level(loss: PricedUtility, price: float, highest: FloatArray, total: float) -> FloatArray:
    """Return the argmin of price Σ_i x_i − Σ_i w_i log(1 + a_i x_i) over 0 ≤ x ≤ highest, Σ_i x_i ≤ total.

    With the multiplier λ ≥ 0 of the sum, each device buys until its marginal utility equals price + λ:

        x_i(λ) = clip( w_i/(price + λ) − 1/a_i, 0, highest_i ),      λ = 0, or the root of Σ_i x_i(λ) = total.

    The sum decreases in λ, so the root is unique.
    """

    def power(multiplier: float) -> FloatArray:
        total_price = max(price + multiplier, 1e-300)  # at price 0 a device takes its maximum
        return np.clip(loss.weights / total_price - 1 / loss.gains, 0.0, highest)

    if power(0.0).sum() <= total:
        return power(0.0)
    from scipy.optimize import brentq

    most = float((loss.weights * loss.gains).max())  # at this multiplier no device buys
    return power(float(brentq(lambda multiplier: power(multiplier).sum() - total, 0.0, most, xtol=1e-15, rtol=1e-15)))


def _best_power(prices: FloatArray, loss: PricedUtility, highest: FloatArray, total: float) -> FloatArray:
    """Return the minimiser of Σ_s f_s, which is t times f at the mean price."""
    return water_level(loss, float(prices.mean()), highest, total)
