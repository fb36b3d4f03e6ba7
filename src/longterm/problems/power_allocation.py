"""Power for several devices, bought at prices that change, with limits that hold on average."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm.constraints import Affine
from longterm.errors import InputError
from longterm.losses import PricedUtility
from longterm.problems.problem import Problem
from longterm.sets import Box

DEFAULT_CAP = 4.0
DEFAULT_LIMIT = 2.0
DEFAULT_SHARE = 0.7


def power_allocation(prices: ArrayLike, devices: int = 5) -> Problem:
    """f_t(x) = p_t Σ_i x_i − Σ_i w_i log(1 + a_i x_i) on 0 ≤ x ≤ 4, with x_i ≤ 2 and Σ_i x_i ≤ 1.4 n on average.

    Device i of n turns power x_i into w_i log(1 + a_i x_i) of value, as a channel of gain a_i turns it into bits. It
    can run at 4, but must not run above 2 in the long run (heat), nor all together above 70 % of that (their supply).
    Where prices are high, little power is worth buying and the limits let go; where they fall, the limits bind. For
    real prices: ``10 * load_elec2().nsw_price`` in a `longterm.streams.Windows`. Only the lowest and the highest of
    `prices` are used here. Weights are spread from 1 to 2 and gains from 2 to 1, so that devices differ in where they
    saturate. The best fixed x in hindsight fills water up to one level (`longterm.hindsight.best_power`). The problem
    is ours, after the water-filling of communication theory and the priced power of Yu, Neely and Wei (2017).

    R = 2√n, Δ = 4√n, D = max(2, 2.6n), G and F exact (`longterm.losses.PricedUtility`), σ = min_i w_i a_i²/(1 + 4a_i)².
    Buying nothing is a Slater point, with slack min(2, 1.4n).

    >>> from longterm.problems import power_allocation
    >>> problem = power_allocation([0.2, 3.0], devices=5)
    >>> c = problem.constants
    >>> round(c.radius, 4), c.constraint_bound, round(c.gradient_bound, 4), round(c.strong_convexity, 4)
    (4.4721, 13.0, 6.0025, 0.0494)
    """
    n = validate.dimension("devices", devices)
    given = np.asarray(prices, dtype=np.float64)
    if given.size == 0 or not np.all(np.isfinite(given)) or given.min() < 0:
        raise InputError("prices", "are empty, negative or not finite", "Give the prices that the stream will show")
    caps = np.full(n, DEFAULT_CAP)
    loss = PricedUtility(
        weights=np.linspace(1.0, 2.0, n),
        gains=np.linspace(2.0, 1.0, n),
        caps=caps,
        prices=(float(given.min()), float(given.max())),
    )
    matrix = np.concatenate([np.eye(n), np.ones((1, n))])
    offset = np.concatenate([np.full(n, DEFAULT_LIMIT), [DEFAULT_SHARE * DEFAULT_LIMIT * n]])
    return Problem(Box(np.zeros(n), caps), loss, Affine(matrix, offset), name=f"power for {n} devices")
