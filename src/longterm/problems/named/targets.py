"""Problems with targets, f_t(x) = ½‖x − target_t‖²: in the plane, over matrices, and for agents on a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from longterm._base import validate
from longterm.errors import InputError
from longterm.problems.constraints import Affine, Consensus, DoublyStochastic, PositiveSemidefinite
from longterm.problems.constraints.extreme_eigenvector import ExtremeEigenvector, full_decomposition
from longterm.problems.losses import SquaredDistance
from longterm.problems.problem import Problem
from longterm.problems.sets import Ball, Box, Product, RowStochastic, Set


def two_dimensional() -> Problem:
    """Return f_t(x) = ½ ‖x − target_t‖² on the unit disc with g(x) = x_1 − ¼.

    R = 1, G = 2, D = 5/4, F = 2, σ = 1. The best fixed decision is the projection of the mean target.

    Examples
    --------
    >>> from longterm.problems.named.targets import two_dimensional
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
    """Return f_t(X) = ½ ‖X − Y_t‖² over p × p doubly-stochastic X, flattened.

    `enclosing="ball"` is the paper's choice: B is the ball of radius √p, m = p² + 4p, G = 2√p, F = 2p. D = p + 1 is
    attained by one row of −1's. The paper's D = √p is too small. Declare it to get the paper's bound:
    ``dataclasses.replace(problem, declared={"constraint_bound": p**0.5})``.

    `enclosing="rows"` takes the row-stochastic matrices as B. Then Δ = √(2p) and only the 2p column constraints remain.
    Targets must lie in B, as permutation matrices do.

    Parameters
    ----------
    size : int
        p.
    enclosing : {"ball", "rows"}
        The enclosing set B.

    Examples
    --------
    >>> from longterm.problems.named.targets import doubly_stochastic
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
        limit = np.concatenate([np.ones(p), -np.ones(p)])
        return Problem(
            RowStochastic(p, p),
            SquaredDistance(p * p),
            Affine(np.concatenate([columns, -columns]), limit),
            name=f"doubly-stochastic p={p} in row-stochastic",
        )
    raise InputError("enclosing", f"{enclosing!r} is not known", "Choose 'ball' or 'rows'")


def noisy_doubly_stochastic(size: int, noise: float = 0.5) -> Problem:
    """Return f_t(X) = ½ ‖X − Y_t‖² over p × p doubly-stochastic X for permutation matrices Y_t with errors.

    In the paper's first experiment the mean of the targets is feasible, so a learner without constraints does well.
    Here the targets of `streams.points.NoisyPermutations` have errors that do not average out. The best matrix in
    hindsight is the projection of their mean onto the Birkhoff polytope. With ν the noise:

        R = √p,  D = p + 1,  G = R + ρ,  F = 2Rρ,  σ = 1,     ρ² = p (1 + ν)² + (p² − p) ν² ≥ ‖Y_t‖², attained.

    Parameters
    ----------
    size : int
        p.
    noise : float
        ν, the largest error of an entry.

    Examples
    --------
    >>> from longterm.problems.named.targets import noisy_doubly_stochastic
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
    """Return f_t(X) = ½ ‖X − Y_t‖² over symmetric n × n matrices X with λ_min(X) ≥ floor, flattened.

    The targets Y_t consist of pairs measured at different times (`streams.points.PairwiseSigns`), so they and their
    mean are not positive semi-definite. The floor keeps the estimate invertible. Targets must be symmetric and in the
    box below. The identity is the centre and a Slater point with g = floor − 1. R = √(n(n−1)), Δ = 2R, G = 2R, σ = 1.

    - With `unit_diagonal` (correlation), B is the box X_ii = 1, |X_ij| ≤ 1. The projection onto X, the nearest
      correlation matrix, costs several eigendecompositions.
    - Otherwise (covariance), B is the ball about the identity that contains this box. The projection onto X costs one.

    Parameters
    ----------
    size : int
        n.
    floor : float
        The lower bound on the eigenvalues.
    unit_diagonal : bool
        True for correlation, False for covariance.
    eigenvector : ExtremeEigenvector
        The method that finds the extreme eigenvector.

    Examples
    --------
    >>> from longterm.problems.named.targets import covariance
    >>> c = covariance(4, unit_diagonal=False).constants
    >>> round(c.radius**2, 9), c.constraint_gradient_bound, round(c.constraint_bound, 6)
    (12.0, 1.0, 2.632051)
    """
    n = validate.dimension("size", size)
    if n < 2:
        raise InputError("size", "one variable has no correlations", "Give a size of at least 2")
    if not validate.non_negative_scalar("floor", floor) < 1:
        what = f"{floor!r} leaves no interior"
        raise InputError("floor", what, "Give a floor below 1, the eigenvalue of the identity")
    identity = np.eye(n).ravel()
    B = (
        Box(2 * identity - 1, np.ones(n * n))
        if unit_diagonal
        else Ball(n * n, radius=float(np.sqrt(n * (n - 1))), centre=identity)
    )
    kind = "correlation" if unit_diagonal else "covariance"
    return Problem(B, SquaredDistance(n * n), PositiveSemidefinite(n, floor, eigenvector), name=f"{kind} n={n}")


def consensus(agents: int, edges: Sequence[tuple[int, int]], each: Set) -> Problem:
    """Return the losses Σ_i ½‖x_i − y_{i,t}‖² of agents i with decisions in `each`, and x_i = x_j along every edge.

    Decisions and targets are concatenated over the agents. Targets lie in the set (`streams.NoisyTargets`).
    The best common point in hindsight is the mean of all targets of all agents.

    Parameters
    ----------
    agents : int
        The number of agents.
    edges : sequence of (int, int)
        The pairs of neighbours, numbered from 0.
    each : Set
        The set of one agent's decisions.

    Examples
    --------
    >>> from longterm.problems.named.targets import consensus
    >>> from longterm.problems.sets import Box
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
