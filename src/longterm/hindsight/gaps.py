"""Certificates: upper bounds on F(x) − min_X F that do not rely on a solver.

Let F be convex and c = ∇F(x). For every s in X: F(x) − F(s) ≤ ⟨c, x − s⟩.

**Frank–Wolfe gap.** ⟨c, x⟩ + max_X ⟨−c, s⟩, where the maximum has a closed form. For the elastic-net ball
X = {l1 ‖s‖₁ + ½ l2 ‖s‖² ≤ ρ} and a_1 ≥ a_2 ≥ … the sorted |c_i|, Lagrange duality gives

    max_X ⟨c, s⟩ = min_{ν>0} νρ + Σ_i (a_i − l1 ν)₊² / (2 l2 ν)

The derivative is 0 where Σ_{i≤k} (a_i² − l1² ν²) = 2ρ l2 ν², with k the number of a_i > l1 ν. The brackets are positive
for these i only, so the sum is its maximum over k, and

    ν² = max_k  Σ_{i≤k} a_i² / (k l1² + 2ρ l2)

Any ν > 0 gives an upper bound, so rounding cannot make the certificate false. With l2 = 0 it is ρ a_1/l1.

**Lagrangian gap.** For any μ ≥ 0 and s in X, 0 ≥ Σ_j μ_j g_j(s) ≥ Σ_j μ_j (g_j(x) + ⟨∇g_j(x), s − x⟩). With
r = c + Σ_j μ_j ∇g_j(x),

    F(x) − F(s) ≤ ⟨r, x⟩ + max_B ⟨−r, s⟩ − Σ_j μ_j g_j(x)

for any fixed g. The right side is convex in μ, and any μ ≥ 0 is valid. The search starts from the non-negative least
squares of ‖r‖ and continues with cutting planes (Kelley 1960). The gap is tight if the g_j are smooth at x. At a kink
it can be loose, because it uses one subgradient.

**Semidefinite gap.** λ_min has a kink where it is repeated. For X = {S ⪰ floor·I} a matrix Z ⪰ 0 replaces μ∇g:
⟨Z, S − floor·I⟩ ≥ 0 on X, so

    F(x) − F(s) ≤ ⟨c, x⟩ − floor · tr Z + max_B ⟨Z − c, s⟩.

At the best x, Z = c + diag(y) if B fixes the diagonal (Z = c inside a ball), and Z v = 0 for every eigenvector v of x
above the floor. Least squares gives y, and negative eigenvalues of Z from rounding are set to 0.
"""

from __future__ import annotations

import numpy as np

from longterm._base.arrays import Array, FloatArray, dot, namespace
from longterm.problems import Problem
from longterm.problems.constraints import ElasticNetBudget, PositiveSemidefinite
from longterm.problems.projections.psd import as_symmetric

MAX_CUTS = 100
AT_FLOOR = 1e-7
"""Eigenvalues within this share of the largest count as equal to the floor."""
GAP_TOLERANCE = 1e-11
"""The search for a Lagrangian gap stops within this share of ‖∇F‖ Δ of the best one."""
CONSTRAINTS_PER_COORDINATE = 4
"""A Lagrangian gap uses at most this many constraints per coordinate, the largest ones."""


def support_of_elastic_net(direction: Array, budget: float, l1: float = 1.0, l2: float = 1.0) -> Array:
    """Return the maximum of ⟨direction, s⟩ over {l1 ‖s‖₁ + ½ l2 ‖s‖² ≤ budget}, along the last axis.

    Parameters
    ----------
    direction : Array
        Shape (..., d).
    budget, l1, l2 : float
        ρ, the weight of ‖s‖₁ and the weight of ½‖s‖².

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.hindsight.gaps import support_of_elastic_net
    >>> float(support_of_elastic_net(np.array([3.0, -1.0, 0.5]), budget=1.5))  # attained at (1, 0, 0)
    3.0
    >>> float(support_of_elastic_net(np.array([3.0, -4.0]), budget=2.0, l1=0.0))  # the disc of radius 2
    10.0
    """
    xp = namespace(direction)
    size = xp.abs(direction)
    if l2 == 0:
        return xp.max(size, axis=-1) * (budget / l1)
    nu = support_multiplier(size, budget, l1, l2)
    above = xp.maximum(size - l1 * nu[..., None], 0.0)
    return nu * budget + dot(above, above) / (2 * l2 * xp.where(nu > 0, nu, 1.0))


def support_multiplier(size: Array, budget: float, l1: float, l2: float) -> Array:
    """Return ν of a direction with these absolute coordinates, for l2 > 0."""
    xp = namespace(size)
    largest_first = xp.sort(size, axis=-1, descending=True)
    squares = xp.cumulative_sum(largest_first * largest_first, axis=-1)
    counts = xp.arange(1, size.shape[-1] + 1, dtype=size.dtype)
    return xp.sqrt(xp.max(squares / (counts * l1**2 + 2 * budget * l2), axis=-1))


def elastic_net_gap(x: Array, gradient: Array, budget: float, l1: float = 1.0, l2: float = 1.0) -> Array:
    """Return the Frank–Wolfe gap, the maximum of ⟨gradient, x − s⟩ over s in the elastic-net ball.

    Parameters
    ----------
    x : Array
        Shape (..., d).
    gradient : Array
        ∇F(x).
    budget, l1, l2 : float
        ρ, the weight of ‖s‖₁ and the weight of ½‖s‖².
    """
    gap = dot(gradient, x) + support_of_elastic_net(-gradient, budget, l1, l2)
    return namespace(x).maximum(gap, 0.0)


def certified_gap(problem: Problem, x: FloatArray, gradient: FloatArray) -> FloatArray:
    """Return an upper bound on F(x) − min_X F for a convex F with this gradient at x.

    It is the Frank–Wolfe gap for an elastic-net budget, the semidefinite gap for positive semi-definite matrices, and
    the Lagrangian gap otherwise.

    Parameters
    ----------
    problem : Problem
        The problem, with a fixed g. Its losses are not used.
    x : FloatArray
        Shape (..., d).
    gradient : FloatArray
        ∇F(x).
    """
    g = problem.constraint
    if isinstance(g, ElasticNetBudget):
        return np.asarray(elastic_net_gap(x, gradient, g.budget, g.l1, g.l2))
    gap = _semidefinite_gap if isinstance(g, PositiveSemidefinite) else _lagrangian_gap
    points, slopes = x.reshape(-1, x.shape[-1]), gradient.reshape(-1, x.shape[-1])
    gaps = [gap(problem, point, slope) for point, slope in zip(points, slopes, strict=True)]
    return np.asarray(gaps, dtype=np.float64).reshape(x.shape[:-1])


def _semidefinite_gap(problem: Problem, x: FloatArray, gradient: FloatArray) -> float:
    g, B = problem.constraint, problem.enclosing_set
    assert isinstance(g, PositiveSemidefinite)
    c = np.asarray(as_symmetric(gradient, g.size))
    values, vectors = np.linalg.eigh(as_symmetric(x, g.size))
    above = vectors[:, values > g.floor + AT_FLOOR * max(abs(values[-1]), 1.0)]
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
    from scipy.optimize import linprog, nnls

    size = float(np.linalg.norm(gradient))
    if size == 0:
        return 0.0
    g, B, c = problem.constraint, problem.enclosing_set, gradient / size
    # Leaving out constraints enlarges X, so the bound stays valid.
    all_values = np.asarray(g.values(x))
    nearest = np.argsort(-all_values, kind="stable")[: CONSTRAINTS_PER_COORDINATE * g.dimension]
    values = all_values[nearest]
    slopes = np.asarray(g.gradient_of(np.broadcast_to(x, (len(nearest), g.dimension)), nearest))
    # Slack is divided by the diameter, so that both parts of the gap have the same unit.
    system = np.concatenate([slopes.T, np.diag(np.maximum(-values, 0.0) / B.diameter)])
    multipliers, _ = nnls(system, np.concatenate([-c, np.zeros(len(nearest))]))
    gap, lower = np.inf, 0.0
    cuts: list[FloatArray] = []
    while True:
        rest = c + multipliers @ slopes
        difference = x - B.extreme_point(-rest)
        gap = min(gap, float(rest @ difference - multipliers @ values))
        if gap <= lower + GAP_TOLERANCE * B.diameter or len(cuts) == MAX_CUTS:
            return size * max(0.0, gap)
        cuts.append(np.array([c @ difference, *(slopes @ difference - values)]))
        table = np.array(cuts)
        # Minimise τ ≥ 0 with τ ≥ ⟨c, difference⟩ + ⟨μ, …⟩ for every cut, over (τ, μ).
        cost = np.concatenate([[1.0], np.zeros(len(nearest))])
        left = np.column_stack([-np.ones(len(table)), table[:, 1:]])
        solved = linprog(cost, A_ub=left, b_ub=-table[:, 0], bounds=(0, None))
        if solved.fun is None or solved.x is None:
            return size * max(0.0, gap)
        lower, multipliers = float(solved.fun), np.maximum(solved.x[1:], 0.0)
