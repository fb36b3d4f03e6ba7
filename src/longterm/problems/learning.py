"""What is learned from data under a constraint.

Targets to stay close to, f_t(x) = ½‖x − target_t‖²: in the plane, over matrices, for agents who want to agree. Labelled
rows: logistic regression under an elastic-net budget, the paper's second experiment, and one that is fair besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm.constraints import Affine, Consensus, DoublyStochastic, ElasticNetBudget, PositiveSemidefinite, Stack
from longterm.constraints.extreme_eigenvector import ExtremeEigenvector, full_decomposition
from longterm.errors import InputError
from longterm.losses import Logistic, SquaredDistance
from longterm.problems.problem import Problem
from longterm.sets import Ball, Box, Product, RowStochastic, Set


def two_dimensional() -> Problem:
    """Stay close to targets in the unit disc, with x_1 ≤ ¼ in the long run.

    f_t(x) = ½ ‖x − target_t‖², g(x) = x_1 − ¼, B the unit disc: R = 1, G = 2, D = 5/4, F = 2, σ = 1.
    The best fixed decision is the mean of the targets with its first coordinate cut off at ¼.

    Returns
    -------
    Problem
        With exact constants.

    Examples
    --------
    >>> from longterm.problems import two_dimensional
    >>> two_dimensional().constants.constraint_bound
    1.25
    """
    return Problem(
        Ball(2, radius=1.0),
        SquaredDistance(2),
        Affine(np.array([[1.0, 0.0]]), np.array([0.25])),
        name="two-dimensional",
    )


def doubly_stochastic(size: int, enclosing: Literal["ball", "rows"] = "ball") -> Problem:
    """f_t(X) = ½ ‖X − Y_t‖² over p × p doubly-stochastic X, flattened.

    `enclosing="ball"` is the paper's: B the ball of radius √p, m = p² + 4p constraints, G = 2√p, F = 2p.
    D = p + 1, attained by one row of −1's; the paper's D = √p is too small (declare it to get its bound:
    ``dataclasses.replace(problem, declared={"constraint_bound": p**0.5})``).
    `enclosing="rows"` takes B = row-stochastic matrices: Δ = √(2p), and only the 2p column constraints remain.
    Targets must lie in B; permutation matrices do.

    Parameters
    ----------
    size : int
        p.
    enclosing : {"ball", "rows"}
        Which B.

    Returns
    -------
    Problem
        With exact constants.

    Examples
    --------
    >>> from longterm.problems import doubly_stochastic
    >>> constants = doubly_stochastic(4).constants
    >>> constants.radius, constants.gradient_bound, constants.constraint_bound, constants.loss_range
    (2.0, 4.0, 5.0, 8.0)
    """
    p = validate.dimension("size", size)
    if enclosing == "ball":
        return Problem(
            Ball(p * p, radius=float(np.sqrt(p))),
            SquaredDistance(p * p),
            DoublyStochastic(p),
            name=f"doubly-stochastic p={p}",
        )
    if enclosing == "rows":
        columns = np.kron(np.ones(p), np.eye(p))
        offsets = np.concatenate([np.ones(p), -np.ones(p)])
        return Problem(
            RowStochastic(p, p),
            SquaredDistance(p * p),
            Affine(np.concatenate([columns, -columns]), offsets),
            name=f"doubly-stochastic p={p} in row-stochastic",
        )
    raise InputError("enclosing", f"{enclosing!r} is not known", "Choose 'ball' or 'rows'")


def noisy_doubly_stochastic(size: int, noise: float = 0.5) -> Problem:
    """f_t(X) = ½ ‖X − Y_t‖² over p × p doubly-stochastic X, Y_t a permutation matrix plus entries of at most `noise`.

    In the paper's first experiment the mean of the targets is itself feasible: whoever follows the losses alone
    ends up there. Here the targets of `longterm.streams.NoisyPermutations` have errors that do not average out, sums
    that are not 1 and entries below 0; in hindsight the best matrix is the projection of their mean onto Birkhoff's
    polytope. With ν the noise:

        R = √p,  D = p + 1,  G = R + ρ,  F = 2Rρ,  σ = 1,     ρ² = p (1 + ν)² + (p² − p) ν² ≥ ‖Y_t‖², attained.

    Parameters
    ----------
    size : int
        p.
    noise : float
        ν.

    Returns
    -------
    Problem
        With exact constants.

    Examples
    --------
    >>> from longterm.problems import noisy_doubly_stochastic
    >>> c = noisy_doubly_stochastic(4, noise=0.5).constants
    >>> c.radius, c.constraint_bound, round(c.gradient_bound, 4), round(c.loss_range, 4)  # ρ = √12
    (2.0, 5.0, 5.4641, 13.8564)
    """
    p, nu = validate.dimension("size", size), validate.non_negative_scalar("noise", noise)
    longest = float(np.sqrt(p * (1 + nu) ** 2 + (p * p - p) * nu**2))
    loss = SquaredDistance(p * p, targets=Ball(p * p, radius=longest))
    return replace(doubly_stochastic(p), loss=loss, name=f"noisy doubly-stochastic p={p}")


def covariance(
    size: int,
    floor: float = 0.1,
    *,
    unit_diagonal: bool = True,
    eigenvector: ExtremeEigenvector = full_decomposition,
) -> Problem:
    """f_t(X) = ½ ‖X − Y_t‖² over symmetric n × n matrices X with λ_min(X) ≥ floor, flattened.

    The targets Y_t are put together from pairs measured at different times (`longterm.streams.PairwiseSigns`), so
    neither they nor their mean are positive semi-definite; the floor keeps the estimate safe to invert. Both forms
    start from the identity, which is their Slater point with g = floor − 1, and have R = √(n(n−1)), Δ = 2R, G = 2R,
    σ = 1:

    - `unit_diagonal` (correlation): B is the box X_ii = 1, |X_ij| ≤ 1. Π_B is free; Π_X, the nearest correlation
      matrix, costs several eigendecompositions.
    - otherwise (covariance): B is the ball about the identity that holds that box. Π_X is one eigendecomposition.

    Targets must be symmetric and in the box. Then every learner that starts at the centre stays symmetric.

    Parameters
    ----------
    size : int
        n.
    floor : float
        The least eigenvalue allowed.
    unit_diagonal : bool
        Correlation (True) or covariance.
    eigenvector : ExtremeEigenvector
        How the extreme eigenvector is found.

    Returns
    -------
    Problem
        With exact constants.

    Examples
    --------
    >>> from longterm.problems import covariance
    >>> c = covariance(4, unit_diagonal=False).constants
    >>> round(c.radius**2, 9), c.constraint_gradient_bound, round(c.constraint_bound, 6)
    (12.0, 1.0, 2.632051)
    """
    n = validate.dimension("size", size)
    if n < 2:
        raise InputError("size", "one variable has no correlations", "Give a size of at least 2")
    if not validate.non_negative_scalar("floor", floor) < 1:
        raise InputError(
            "floor", f"{floor!r} leaves no interior", "Give a floor below 1, the eigenvalue of the identity"
        )
    identity = np.eye(n).ravel()
    B = (
        Box(2 * identity - 1, np.ones(n * n))
        if unit_diagonal
        else Ball(n * n, radius=float(np.sqrt(n * (n - 1))), centre=identity)
    )
    kind = "correlation" if unit_diagonal else "covariance"
    return Problem(B, SquaredDistance(n * n), PositiveSemidefinite(n, floor, eigenvector), name=f"{kind} n={n}")


def consensus(agents: int, edges: Sequence[tuple[int, int]], each: Set) -> Problem:
    """Agent i plays x_i in the set `each` and pays ½‖x_i − y_{i,t}‖²; x_i = x_j along every edge (i, j).

    A decision holds all agents, one after another, and so does a target (targets lie in the set too: `NoisyTargets`
    makes such a stream). In hindsight the best common point is the mean of all targets of all agents.

    Parameters
    ----------
    agents : int
        How many.
    edges : sequence of (int, int)
        Who talks to whom, counted from 0.
    each : Set
        The set of one agent's decisions.

    Returns
    -------
    Problem
        With exact constants.

    Examples
    --------
    >>> from longterm.problems import consensus
    >>> from longterm.sets import Box
    >>> ring = consensus(4, [(0, 1), (1, 2), (2, 3), (3, 0)], Box.cube(1, -1.0, 1.0))
    >>> ring.dimension, ring.constraint.count, ring.constants.constraint_bound
    (4, 8, 2.0)
    """
    n = validate.dimension("agents", agents)
    return Problem(
        Product([each] * n),
        SquaredDistance(n * each.dimension),
        Consensus(n, each.dimension, edges),
        name=f"consensus of {n} agents",
    )


def budgeted_logistic(features: ArrayLike, budget: float, *, l1: float = 1.0, l2: float = 1.0) -> Problem:
    """Log-loss of rows u_t with labels ±1, subject to l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ budget.

    `features` are the rows the stream will draw from; only the length of the longest is used. With
    l1 = l2 = 1 and ρ the budget, the constants are R = √(1 + 2ρ) − 1, G = max(√d + R, max ‖u_t‖),
    D = max(ρ, (√d − 1) R) and F = R max ‖u_t‖.

    Parameters
    ----------
    features : array_like
        The rows that will be drawn from.
    budget : float
        ρ.
    l1 : float
        The weight of ‖x‖₁.
    l2 : float
        The weight of ½‖x‖².

    Returns
    -------
    Problem
        With exact constants.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems import budgeted_logistic
    >>> c = budgeted_logistic(np.array([[3.0, 4.0, 0.0, 0.0]]), budget=1.5).constants
    >>> c.radius, c.gradient_bound, c.constraint_bound, round(c.loss_range, 12)
    (1.0, 5.0, 1.5, 5.0)
    """
    rows = np.asarray(features)
    if rows.ndim != 2 or 0 in rows.shape or rows.dtype.kind not in "fiub":
        what = f"has shape {rows.shape} and dtype {rows.dtype}"
        raise InputError("features", what, "Give one row of numbers per example, shape (n, d)")
    # In parts and in float64: integers would overflow, and a copy of all rows may not fit.
    parts = (rows[i : i + 65536].astype(np.float64, copy=False) for i in range(0, len(rows), 65536))
    feature_norm = float(np.sqrt(np.max([np.vecdot(part, part).max() for part in parts])))
    if not np.isfinite(feature_norm):
        raise InputError("features", "holds NaN or infinite values", "Clean the rows first")
    d = rows.shape[1]
    constraint = ElasticNetBudget(d, budget, l1=l1, l2=l2)
    return Problem(
        constraint.enclosing_ball(), Logistic(d, feature_norm), constraint, name=f"budgeted logistic ρ={budget:g}"
    )


def fair_logistic(features: ArrayLike, sensitive: ArrayLike, budget: float, limit: float) -> Problem:
    """Log-loss of rows u_t with labels ±1, subject to ‖x‖₁ + ½ ‖x‖² ≤ budget and |cov(z, ⟨u, x⟩)| ≤ limit.

    z is the sensitive attribute of each row (for Adult and a9a: 1 for Female, column 72 of a9a counted from 1, which
    with its twin, column 73, is best left out of the features). The covariance of attribute and score is linear
    in x, so its two signs are two affine constraints (Zafar, Valera, Gomez Rodriguez and Gummadi, *Fairness
    constraints: mechanisms for fair classification*, AISTATS 2017):

        ⟨v, x⟩ − limit ≤ 0,   −⟨v, x⟩ − limit ≤ 0,      v = (1/n) Σ_i (z_i − z̄) u_i over all n rows.

    R and F are those of `longterm.problems.budgeted_logistic`; G = max(√d + R, max ‖u_t‖, ‖v‖), and D is the largest of
    the constraints' own: ρ, (√d − 1) R and R‖v‖ + limit. 0 is a Slater point.

    Parameters
    ----------
    features : array_like
        The rows that will be drawn from.
    sensitive : array_like
        z, one number for each row.
    budget : float
        ρ.
    limit : float
        c, the largest covariance allowed.

    Returns
    -------
    Problem
        With exact constants.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems import fair_logistic
    >>> rows = np.array([[3.0, 4.0], [3.0, 0.0]])
    >>> problem = fair_logistic(rows, sensitive=[1, 0], budget=1.5, limit=0.25)
    >>> problem.constraint.values(np.array([0.0, 1.0]))  # 1 + ½ − 1½; the covariance is 1
    array([ 0.  ,  0.75, -1.25])
    """
    plain = budgeted_logistic(features, budget)
    rows = np.asarray(features)
    z = validate.vector("sensitive", sensitive, len(rows))
    if np.ptp(z) == 0:
        raise InputError("sensitive", "is the same in every row", "Give an attribute that differs, 0 and 1 for example")
    v = (z - z.mean()) @ rows / len(rows)
    bound = np.full(2, validate.positive_scalar("limit", limit))
    constraint = Stack([plain.constraint, Affine(np.stack([v, -v]), bound)])
    return Problem(plain.enclosing_set, plain.loss, constraint, name=f"fair logistic ρ={budget:g}, c={limit:g}")
