"""Checks of a projection onto {g ≤ 0} ∩ B, on a sample of points."""

from __future__ import annotations

import numpy as np

from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.learners.interface.needs import Need, require_needs
from longterm.problems import Problem
from longterm.problems.projections.base import Projection

SAMPLES = 32
TOLERANCE = 1e-6
"""The error that a projection may have, as a share of D and of the diameter."""


def known_projection(learner: str, needs: frozenset[Need], problem: Problem, given: Projection | None) -> Projection:
    """Return the given projection, or the problem's own onto {g ≤ 0} ∩ B. Raise where neither is known."""
    require_needs(learner, needs, problem)
    known = problem.projection if given is None else given
    if known is None:
        what = f"{learner} needs {Need.PROJECTION.value} and B, and none is known for {problem.name!r}"
        remedy = (
            "Give the exact Euclidean projection as projection=, or choose a learner that needs none, such as A-OGD"
        )
        raise InputError("problem", what, remedy)
    return known


def require_projection(problem: Problem, project: Projection, *, into_set: bool, stretch: float = 1.0) -> None:
    """Raise if `project` returns an infeasible point, or moves a feasible one."""
    points = _sample(problem, stretch)
    projected = require_feasible_image(problem, project, into_set=into_set, stretch=stretch)
    feasible = (problem.constraint.values(points).max(axis=-1) <= 0) & problem.enclosing_set.contains(points)
    moved = float(np.max(np.linalg.norm(projected - points, axis=-1)[feasible], initial=0.0))
    if moved > TOLERANCE * problem.constants.diameter:
        what = f"moved a feasible point by {moved:.3g}"
        raise InputError("projection", what, "A projection leaves feasible points where they are")


def require_feasible_image(
    problem: Problem, project: Projection, *, into_set: bool, stretch: float = 1.0
) -> FloatArray:
    """Return the projected sample. Raise if a point is infeasible, or, with `into_set`, outside B."""
    if not callable(project):
        raise InputError("projection", f"{project!r} cannot be called", "Give the Euclidean projection onto {g ≤ 0}")
    points = _sample(problem, stretch)
    projected = np.asarray(project(points))
    if projected.shape != points.shape:
        what = f"returned shape {projected.shape} for points of shape {points.shape}"
        raise InputError("projection", what, "Write it for x of shape (..., d), so that it returns the same shape")
    worst = float(problem.constraint.values(projected).max())
    if not worst <= TOLERANCE * problem.constants.constraint_bound:
        what = f"returned a point with g = {worst:.3g}"
        raise InputError("projection", what, "Give the Euclidean projection onto {g ≤ 0}")
    if into_set and not np.all(problem.enclosing_set.contains(projected, TOLERANCE)):
        raise InputError("projection", "returned a point outside B", "Give the Euclidean projection onto {g ≤ 0} ∩ B")
    return projected


def _sample(problem: Problem, stretch: float) -> FloatArray:
    """Return points of B, moved away from its centre by the factor `stretch`."""
    over = problem.enclosing_set
    return np.asarray(over.centre + stretch * (over.sample(np.random.default_rng(0), SAMPLES) - over.centre))
