"""How far from the best a point can be at most: two bounds that need no solver and trust none.

Let F be convex, x any point, c = ∇F(x). For every s in X: F(x) − F(s) ≤ ⟨c, x − s⟩.

**Frank–Wolfe gap.** Where the maximum of ⟨−c, s⟩ over X is known, the gap is ⟨c, x⟩ + max_X ⟨−c, s⟩. For the
elastic-net ball X = {l1 ‖s‖₁ + ½ l2 ‖s‖² ≤ ρ} it is known: by Lagrange, with a_1 ≥ a_2 ≥ … the |c_i| in order,

    max_X ⟨c, s⟩ = min_{ν>0} νρ + Σ_i (a_i − l1 ν)₊² / (2 l2 ν)

The derivative vanishes where Σ_{i≤k} (a_i² − l1² ν²) = 2ρ l2 ν², with k the number of a_i > l1 ν. The brackets are
positive exactly for these i, so the sum is its own maximum over k, and solving for ν needs no search:

    ν² = max_k  Σ_{i≤k} a_i² / (k l1² + 2ρ l2)

*Any* ν > 0 gives an upper bound: rounding ν cannot make the certificate false. With l2 = 0 this is ρ a_1/l1.

**Lagrangian gap.** For any μ ≥ 0 and s in X also 0 ≥ Σ_j μ_j g_j(s) ≥ Σ_j μ_j (g_j(x) + ⟨∇g_j(x), s − x⟩). With
r = c + Σ_j μ_j ∇g_j(x),

    F(x) − F(s) ≤ ⟨r, x⟩ + max_B ⟨−r, s⟩ − Σ_j μ_j g_j(x)

for any problem with a fixed g. The right side is convex in μ. The search starts at the non-negative least squares of
‖r‖, which is all that is needed where x is inside B, and goes on by cutting planes (Kelley 1960): each maximiser s over
B gives a cut, a linear program the next μ, until no μ is better. Again any μ ≥ 0 is valid. The gap is tight where the
g_j are smooth at x, and loose at kinks, where one subgradient has to stand for many.

**Semidefinite gap.** λ_min has such a kink wherever it is repeated. For X = {S ⪰ floor·I} any matrix Z ⪰ 0 takes the
place of μ∇g: ⟨Z, S − floor·I⟩ ≥ 0 on X, so

    F(x) − F(s) ≤ ⟨c, x⟩ − floor · tr Z + max_B ⟨Z − c, s⟩.

At the best x, Z = c + diag(y) where B fixes the diagonal (Z = c inside a ball), and Z v = 0 for every eigenvector v of
x above the floor: that gives y by least squares, and what rounding makes negative in Z is cut off.
"""

from __future__ import annotations

import numpy as np

from longterm._arrays import Array, FloatArray, dot, namespace
from longterm.constraints import ElasticNetBudget, PositiveSemidefinite
from longterm.problems import Problem
from longterm.projections.psd import as_symmetric

MOST_CUTS = 100
AT_THE_FLOOR = 1e-7
"""Eigenvalues within this share of the largest count as being at the floor."""
EXACT = 1e-11
"""A Lagrangian gap within this share of ‖∇F‖ Δ of the best one will do."""

ROWS_PER_COORDINATE = 4
"""Of many constraints, so many for each coordinate take part in a Lagrangian gap."""


def support_of_elastic_net(direction: Array, budget: float, l1: float = 1.0, l2: float = 1.0) -> Array:
    """The largest ⟨direction, s⟩ over {l1 ‖s‖₁ + ½ l2 ‖s‖² ≤ budget}, along the last axis.

    Parameters
    ----------
    direction : Array
        Shape (..., d).
    budget : float
        ρ.
    l1 : float
        The weight of ‖s‖₁.
    l2 : float
        The weight of ½‖s‖².

    Returns
    -------
    Array
        Shape (...,).

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.hindsight import support_of_elastic_net
    >>> float(support_of_elastic_net(np.array([3.0, -1.0, 0.5]), budget=1.5))  # attained at (1, 0, 0)
    3.0
    >>> float(support_of_elastic_net(np.array([3.0, -4.0]), budget=2.0, l1=0.0))  # the disc of radius 2
    10.0
    """
    xp = namespace(direction)
    size = xp.abs(direction)
    if l2 == 0:
        return xp.max(size, axis=-1) * (budget / l1)
    nu = multiplier(size, budget, l1, l2)
    above = xp.maximum(size - l1 * nu[..., None], 0.0)
    return nu * budget + dot(above, above) / (2 * l2 * xp.where(nu > 0, nu, 1.0))


def multiplier(size: Array, budget: float, l1: float, l2: float) -> Array:
    """The ν of a direction whose coordinates have these sizes; l2 > 0."""
    xp = namespace(size)
    largest_first = xp.sort(size, axis=-1, descending=True)
    squares = xp.cumulative_sum(largest_first * largest_first, axis=-1)
    counts = xp.arange(1, size.shape[-1] + 1, dtype=size.dtype)
    return xp.sqrt(xp.max(squares / (counts * l1**2 + 2 * budget * l2), axis=-1))


def elastic_net_gap(x: Array, gradient: Array, budget: float, l1: float = 1.0, l2: float = 1.0) -> Array:
    """The largest ⟨gradient, x − s⟩ over the elastic-net ball: the Frank–Wolfe gap, at least 0 for x in the ball.

    Parameters
    ----------
    x : Array
        Shape (..., d).
    gradient : Array
        ∇F(x).
    budget : float
        ρ.
    l1 : float
        The weight of ‖s‖₁.
    l2 : float
        The weight of ½‖s‖².

    Returns
    -------
    Array
        Shape (...,).
    """
    gap = dot(gradient, x) + support_of_elastic_net(-gradient, budget, l1, l2)
    return namespace(x).maximum(gap, 0.0)


def certified_gap(problem: Problem, x: FloatArray, gradient: FloatArray) -> FloatArray:
    """F(x) − min_X F is at most this, F convex with this gradient at x; shapes (..., d) to (...,).

    The Frank–Wolfe gap for an elastic-net budget (B, which holds it, does not matter), the semidefinite gap for
    positive semi-definite matrices, the Lagrangian gap for others.

    Parameters
    ----------
    problem : Problem
        B and a fixed g; the losses do not matter.
    x : FloatArray
        Shape (..., d).
    gradient : FloatArray
        ∇F(x).

    Returns
    -------
    FloatArray
        Shape (...,).
    """
    g = problem.constraint
    if isinstance(g, ElasticNetBudget):
        return np.asarray(elastic_net_gap(x, gradient, g.budget, g.l1, g.l2))
    one = _semidefinite_gap if isinstance(g, PositiveSemidefinite) else _lagrangian_gap
    points, slopes = x.reshape(-1, x.shape[-1]), gradient.reshape(-1, x.shape[-1])
    gaps = [one(problem, point, slope) for point, slope in zip(points, slopes, strict=True)]
    return np.asarray(gaps, dtype=np.float64).reshape(x.shape[:-1])


def _semidefinite_gap(problem: Problem, x: FloatArray, gradient: FloatArray) -> float:
    g, B = problem.constraint, problem.enclosing_set
    assert isinstance(g, PositiveSemidefinite)
    c = np.asarray(as_symmetric(gradient, g.size))
    values, vectors = np.linalg.eigh(as_symmetric(x, g.size))
    above = vectors[:, values > g.floor + AT_THE_FLOOR * max(abs(values[-1]), 1.0)]
    lengths = np.vecdot(above, above)
    y = np.divide(-np.vecdot(c @ above, above), lengths, out=np.zeros(g.size), where=lengths > 0)
    gap = _lagrangian_gap(problem, x, gradient)
    for Z in (c, c + np.diag(y)):
        sizes, directions = np.linalg.eigh(Z)
        Z = (directions * np.maximum(sizes, 0.0)) @ directions.T
        reach = B.support(Z.ravel() - gradient)
        gap = min(gap, float(gradient @ x - g.floor * np.trace(Z) + reach))
    return max(gap, 0.0)


def _lagrangian_gap(problem: Problem, x: FloatArray, gradient: FloatArray) -> float:
    from scipy.optimize import linprog, nnls  # loaded when asked for

    size = float(np.linalg.norm(gradient))
    if size == 0:
        return 0.0
    g, B, c = problem.constraint, problem.enclosing_set, gradient / size
    # Constraints far from being active can be left out: X is larger without them, and the bound still true.
    every = np.asarray(g.values(x))
    nearest = np.argsort(-every, kind="stable")[: ROWS_PER_COORDINATE * g.dimension]
    values = every[nearest]
    slopes = np.asarray(g.gradient_of(np.broadcast_to(x, (len(nearest), g.dimension)), nearest))
    # Slack counts as distance, in diameters: the two parts of the gap are then in the same units.
    system = np.concatenate([slopes.T, np.diag(np.maximum(-values, 0.0) / B.diameter)])
    multipliers, _ = nnls(system, np.concatenate([-c, np.zeros(len(nearest))]))
    gap, lower = np.inf, 0.0
    cuts: list[FloatArray] = []
    while True:
        rest = c + multipliers @ slopes
        away = x - B.extreme_point(-rest)
        gap = min(gap, float(rest @ away - multipliers @ values))
        if gap <= lower + EXACT * B.diameter or len(cuts) == MOST_CUTS:
            return size * max(0.0, gap)
        cuts.append(np.array([c @ away, *(slopes @ away - values)]))
        table = np.array(cuts)
        # The least τ ≥ 0 with τ ≥ ⟨c, away⟩ + ⟨μ, …⟩ for every cut; the unknowns are (τ, μ).
        cost = np.concatenate([[1.0], np.zeros(len(nearest))])
        left = np.column_stack([-np.ones(len(table)), table[:, 1:]])
        solved = linprog(cost, A_ub=left, b_ub=-table[:, 0], bounds=(0, None))
        if solved.fun is None or solved.x is None:
            return size * max(0.0, gap)
        lower, multipliers = float(solved.fun), np.maximum(solved.x[1:], 0.0)
