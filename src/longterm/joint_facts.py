"""Facts about all constraints together, for learners that weigh each of them by itself."""

from __future__ import annotations

import numpy as np

from longterm.constraints.prox import AffineProx
from longterm.problems import Problem


def joint_gradient_bound(problem: Problem) -> float:
    """G_m with ‖Σ_j w_j ∇g_j(x)‖ ≤ G_m‖w‖ on B, which makes x ↦ (g_1(x), …, g_m(x)) G_m-Lipschitz.

    σ_max(A) for fixed affine constraints, √m G_g for others.

    >>> from longterm import doubly_stochastic, two_dimensional
    >>> from longterm.joint_facts import joint_gradient_bound
    >>> joint_gradient_bound(two_dimensional()), round(joint_gradient_bound(doubly_stochastic(8)) ** 2, 9)
    (1.0, 33.0)
    """
    affine = problem.constraint.as_affine()
    if affine is not None:
        return float(np.linalg.norm(affine.matrix, 2))
    return float(np.sqrt(problem.constraint.count) * problem.constants.constraint_gradient_bound)


def joint_value_bound(problem: Problem) -> float:
    """D_m ≥ ‖(g_1(x), …, g_m(x))‖ on B: at most √m D, D itself where there is one constraint."""
    separate = float(np.sqrt(problem.constraint.count) * problem.constants.constraint_bound)
    if problem.constraint.as_affine() is None:
        return separate
    return min(separate, AffineProx(problem.constraint, problem.enclosing_set).values_norm_bound())
