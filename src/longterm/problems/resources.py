"""Resources with limits in the long run: a linear program, power for devices, servers and their jobs, networks.

In a network latencies change, and no edge may carry more than its capacity in the long run.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.constraints import Affine, VaryingAffine
from longterm.errors import InputError
from longterm.losses import Linear, PricedUtility
from longterm.problems.problem import Problem
from longterm.sets import Box, Product, Simplex


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
    >>> mean_of_arrivals(3).matrix, mean_of_arrivals(3).limit
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
    constraint = VaryingAffine(n, 1, row_norm=float(np.linalg.norm(h)), limit_bound=float(n))
    loss = Linear(n, float(np.sqrt(n)))
    exact = {"constraint_bound": float(n)}
    return Problem(Box.cube(n, 0.0, 1.0), loss, constraint, name=f"jobs for {n} servers", declared=exact)


Edge = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Network:
    """Directed edges with capacities, and demands: how much has to go from one node to another.

    `paths` are all simple paths of every demand, `incidence` (edges, paths) tells which edges a path uses.

    Parameters
    ----------
    capacities : Mapping[Edge, float]
        Of every edge.
    demands : Mapping[Edge, float]
        How much goes from one node to another.

    Examples
    --------
    >>> from longterm.problems.resources import Network
    >>> net = Network({(0, 1): 1.0, (1, 2): 1.0, (0, 2): 0.5}, demands={(0, 2): 1.0})
    >>> net.paths
    (((0, 1), (1, 2)), ((0, 2),))
    >>> net.incidence
    array([[1., 0.],
           [1., 0.],
           [0., 1.]])
    """

    capacities: Mapping[Edge, float]
    demands: Mapping[Edge, float]
    paths: tuple[tuple[Edge, ...], ...] = field(init=False)
    counts: tuple[int, ...] = field(init=False)
    """How many of the paths belong to each demand, in order."""
    incidence: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for edge, amount in itertools.chain(self.capacities.items(), self.demands.items()):
            validate.positive_scalar(f"capacities or demands of {edge}", amount)
        by_demand = [tuple(self._from(source, target, (source,))) for source, target in self.demands]
        for demand, found in zip(self.demands, by_demand, strict=True):
            if not found:
                raise InputError("demands", f"no path goes from {demand[0]} to {demand[1]}", "Add edges")
        paths = tuple(itertools.chain(*by_demand))
        incidence = np.array([[float(edge in path) for path in paths] for edge in self.capacities])
        counts = tuple(len(found) for found in by_demand)
        validate.set_frozen(self, paths=paths, counts=counts, incidence=validate.frozen(incidence))

    def _from(self, node: int, target: int, visited: tuple[int, ...]) -> list[tuple[Edge, ...]]:
        if node == target:
            return [()]
        return [
            ((node, after), *rest)
            for start, after in self.capacities
            if start == node and after not in visited
            for rest in self._from(after, target, (*visited, after))
        ]


SMALL = Network(
    {
        (0, 1): 0.7,
        (0, 2): 0.7,
        (1, 2): 0.4,
        (1, 3): 0.5,
        (1, 4): 0.5,
        (2, 3): 0.5,
        (2, 4): 0.5,
        (3, 5): 0.7,
        (4, 5): 0.7,
    },
    demands={(0, 5): 1.0, (1, 4): 0.4},
)
"""Six nodes, nine edges, two demands that share edges: six paths and two."""


def routing(network: Network = SMALL) -> Problem:
    """f_t(x) = ⟨latencies of the paths in round t, x⟩, x the flow on every path; load of an edge ≤ its capacity.

    The flows of a demand are split over its simple paths: B is a product of simplices. Latencies of edges are in
    [0, 1] and add up along a path (`longterm.streams.EdgeLatencies`). The quickest paths have not room for all, so
    who follows latencies alone overloads edges. In hindsight the best split is a linear program. The problem is ours,
    after online shortest paths (Takimoto and Warmuth 2003) and the minimum-cost flow with capacities.

    With P the incidence of edges and paths: G = max(‖Pᵀ1‖, longest row of P), D and Δ exact on the product, and F the
    largest Σ_e [Σ_k amount_k (P_{e,i_k} − P_{e,j_k})]₊ over pairs i_k, j_k of paths of the demands k: latencies that
    are 1 where one split has more and 0 where the other has.

    Parameters
    ----------
    network : Network
        Edges, capacities and demands.

    Returns
    -------
    Problem
        With exact constants.

    Examples
    --------
    >>> from longterm.problems import routing
    >>> problem = routing()
    >>> c = problem.constants
    >>> problem.dimension, problem.constraint.count, round(c.loss_gradient_bound, 4), round(c.loss_range, 2)
    (8, 9, 8.544, 4.8)
    """
    P = network.incidence
    amounts = list(network.demands.values())
    flows = Product([Simplex(count, amount) for count, amount in zip(network.counts, amounts, strict=True)])
    loss = Linear(P.shape[1], float(np.linalg.norm(P.sum(axis=0))))
    constraint = Affine(P, np.array(list(network.capacities.values())))
    name = f"routing over {len(network.capacities)} edges"
    return Problem(flows, loss, constraint, name=name, declared={"loss_range": _largest_difference(network)})


def _largest_difference(network: Network) -> float:
    ends = np.cumsum(network.counts)
    of_demand = []
    for end, count, amount in zip(ends, network.counts, network.demands.values(), strict=True):
        paths = network.incidence[:, end - count : end].T
        of_demand.append([amount * (one - other) for one in paths for other in paths])
    return float(max(np.maximum(sum(choice), 0.0).sum() for choice in itertools.product(*of_demand)))
