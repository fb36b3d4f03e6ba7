"""A user's projection onto the feasible set: is it one, as far as a few points can tell?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from longterm._arrays import Array
from longterm.errors import InputError
from longterm.problems import Problem

Projection = Callable[[Array], Array]
"""Π, batched: (..., d) → (..., d)."""

TOLERANCE = 1e-6
"""Solvers that stop early count as projections up to this share of D, and of the diameter."""


def require_projection(
    problem: Problem, project: Projection, *, into_set: bool, stretch: float = 1.0, samples: int = 32
) -> None:
    """Raise if what `project` returns is infeasible, or if it moves points that are feasible already.

    Tried on points of B, moved away from its centre by the factor `stretch`. With `into_set` the points returned have
    to lie in B too.
    """
    if not callable(project):
        raise InputError("project", f"{project!r} cannot be called", "Give the Euclidean projection onto {g ≤ 0}")
    over = problem.enclosing_set
    points = over.centre + stretch * (over.sample(np.random.default_rng(0), samples) - over.centre)
    projected = np.asarray(project(points))
    if projected.shape != points.shape:
        raise InputError(
            "project",
            f"returned shape {projected.shape} for points of shape {points.shape}",
            "Write it for x of shape (..., d), so that it returns the same shape",
        )
    constants = problem.constants
    worst = float(problem.constraint.values(projected).max())
    if not worst <= TOLERANCE * constants.constraint_bound:
        raise InputError(
            "project", f"returned a point with g = {worst:.3g}", "Give the Euclidean projection onto {g ≤ 0}"
        )
    if into_set and not np.all(over.contains(projected, TOLERANCE)):
        raise InputError("project", "returned a point outside B", "Give the Euclidean projection onto {g ≤ 0} ∩ B")
    feasible = (problem.constraint.values(points).max(axis=-1) <= 0) & over.contains(points)
    moved = float(np.max(np.linalg.norm(projected - points, axis=-1)[feasible], initial=0.0))
    if moved > TOLERANCE * constants.diameter:
        raise InputError(
            "project", f"moved a feasible point by {moved:.3g}", "A projection leaves feasible points where they are"
        )
