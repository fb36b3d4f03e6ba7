"""Resources with limits in the long run: a linear program, power for devices, servers and their jobs."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.constraints import Affine, VaryingAffine
from longterm.errors import InputError
from longterm.losses import Linear, PricedUtility
from longterm.problems.problem import Problem
from longterm.sets import Box


def online_linear_program(
    rounds: int = 5000, *, instance: int = 0, dimension: int = 2, constraints: int = 3
) -> Problem:
    """f_t(x) = ⟨c_t, x⟩ over [−1, 1]^d with A x ≤ b, entries of A uniform in [0, 1], of b in [0, 2].

    A and b are drawn once for the `instance`; the costs are those of `longterm.streams.DriftingCosts` with the same
    dimension and rounds, whose level changes sign four times, so that the best corner moves and the constraints
    bind and let go. The paper has d = 2, three constraints, 5000 rounds and a thousand runs (H. Yu, M. J. Neely,
    JMLR 21 (2020)). 0 is feasible, and (−1, …, −1) is a Slater point. R = √d, Δ = 2R, and with
    ρ = √d (T^0.1 + 2) ≥ ‖c_t‖: G = max(ρ, max_j ‖a_j‖), F = 2Rρ, D = max_j (Σ_k a_jk + b_j).

    Parameters
    ----------
    rounds : int
        T, which bounds the costs.
    instance : int
        The seed of A and b.
    dimension : int
        d.
    constraints : int
        m.

    Returns
    -------
    Problem
        With exact constants.

    Examples
    --------
    >>> from longterm.problems import online_linear_program
    >>> c = online_linear_program(1024).constants
    >>> round(c.loss_gradient_bound, 4), round(c.loss_range, 4)  # √2 · 4, and 2√2 times that
    (5.6569, 16.0)
    """
    d, m = validate.dimension("dimension", dimension), validate.dimension("constraints", constraints)
    rng = np.random.default_rng(validate.seed("instance", instance))
    matrix, offset = rng.random((m, d)), 2 * rng.random(m)
    longest = float(np.sqrt(d)) * (validate.count("rounds", rounds) ** 0.1 + 2)
    return Problem(
        Box.cube(d, -1.0, 1.0), Linear(d, longest), Affine(matrix, offset), name=f"online linear program {instance}"
    )


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
    saturate. The best fixed x in hindsight fills water up to one level (`water_level`). The problem is ours, after the
    water-filling of communication theory and the priced power of Yu, Neely and Wei (2017).

    R = 2√n, Δ = 4√n, D = max(2, 2.6n), G and F exact (`longterm.losses.PricedUtility`), σ = min_i w_i a_i²/(1 + 4a_i)².
    Buying nothing is a Slater point, with slack min(2, 1.4n).

    Parameters
    ----------
    prices : array_like
        All prices that the stream will show.
    devices : int
        n.

    Returns
    -------
    Problem
        With exact constants.

    Examples
    --------
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
    level = partial(_best_power, loss=loss, highest=np.minimum(caps, offset[:n]), total=float(offset[n]))
    name = f"power for {n} devices"
    return Problem(Box(np.zeros(n), caps), loss, Affine(matrix, offset), name=name, minimiser=level)


def water_level(loss: PricedUtility, price: float, highest: FloatArray, total: float) -> FloatArray:
    """Argmin of price Σ_i x_i − Σ_i w_i log(1 + a_i x_i) over 0 ≤ x ≤ highest, Σ_i x_i ≤ total.

    The multiplier λ ≥ 0 of the sum adds to the price, and each device buys until a unit is worth no more than that:

        x_i(λ) = clip( w_i/(price + λ) − 1/a_i, 0, highest_i ),      λ = 0, or the root of Σ_i x_i(λ) = total.

    The sum falls as λ grows, so there is one root.
    """

    def bought(extra: float) -> FloatArray:
        dear = max(price + extra, 1e-300)  # for nothing, a device takes all it can
        return np.clip(loss.weights / dear - 1 / loss.gains, 0.0, highest)

    if bought(0.0).sum() <= total:
        return bought(0.0)
    from scipy.optimize import brentq  # loaded when asked for

    too_dear = float((loss.weights * loss.gains).max())  # the first unit of no device is worth more
    return bought(float(brentq(lambda extra: bought(extra).sum() - total, 0.0, too_dear, xtol=1e-15, rtol=1e-15)))


def _best_power(prices: FloatArray, loss: PricedUtility, highest: FloatArray, total: float) -> FloatArray:
    """Σ_s f_s is t times the f of the mean price."""
    return water_level(loss, float(prices.mean()), highest, total)


def speeds_of_servers(servers: int) -> FloatArray:
    """From ½ to 3/2 jobs a round, evenly: n jobs by n servers that all run.

    Parameters
    ----------
    servers : int
        n.

    Returns
    -------
    FloatArray
        h.
    """
    n = validate.dimension("servers", servers)
    if n < 2:
        raise InputError("servers", "one has nobody to share the work with", "Give at least 2")
    return np.linspace(0.5, 1.5, n)


def mean_of_arrivals(servers: int) -> Affine:
    """E g(x) ≤ 0 for `job_scheduling`: n/2 − ⟨h, x⟩ ≤ 0, what the benchmark `InExpectation` asks for.

    Parameters
    ----------
    servers : int
        n.

    Returns
    -------
    Affine
        E g.

    Examples
    --------
    >>> from longterm.problems import mean_of_arrivals
    >>> mean_of_arrivals(3).matrix, mean_of_arrivals(3).offset
    (array([[-0.5, -1. , -1.5]]), array([-1.5]))
    """
    h = speeds_of_servers(servers)
    return Affine(-h[None], np.array([-len(h) / 2]))


def job_scheduling(servers: int = 12) -> Problem:
    """f_t(x) = ⟨prices of the round, x⟩ over x in [0, 1]^n, and g_t(x) = ω_t − ⟨h, x⟩, ω_t jobs having arrived.

    Server i runs at x_i, does h_i x_i jobs and pays the price of its zone; jobs must be done in the long run. Yu, Neely
    and Wei (2017) have this as their example, with concave h_i, prices of New York and Poisson arrivals; here h is
    linear (from ½ to 3/2 jobs), so that comparators are linear programs, prices (in [0, 1]) and arrivals are invented
    (`longterm.streams.JobsAndPrices`), and ω_t is binomial, B(n, ½), so that |g_t| has a bound; its mean is n/2.

    The comparators differ by much: x must do n/2 jobs to be feasible in expectation, and nearly all n to be feasible in
    every round. R = √n/2, Δ = √n, G = max(√n, ‖h‖), F = n, D = n; x = 1 is a Slater point in expectation, with n/2.

    Parameters
    ----------
    servers : int
        n.

    Returns
    -------
    Problem
        With exact constants.

    Examples
    --------
    >>> from longterm.problems import job_scheduling
    >>> c = job_scheduling(4).constants
    >>> c.diameter, c.loss_gradient_bound, c.loss_range, c.constraint_bound
    (2.0, 2.0, 4.0, 4.0)
    """
    h = speeds_of_servers(servers)
    n = len(h)
    constraint = VaryingAffine(n, 1, row_norm=float(np.linalg.norm(h)), offset_bound=float(n))
    loss = Linear(n, float(np.sqrt(n)))
    exact = {"constraint_bound": float(n)}
    return Problem(Box.cube(n, 0.0, 1.0), loss, constraint, name=f"jobs for {n} servers", declared=exact)
