"""The step of the prox-penalty family in closed form, with the positive part of the latest constraint in it.

    x⁺ = argmin_{x ∈ B} ⟨z, x⟩ + w [g_t(x)]₊ + (a/2) ‖x − x_t‖²

It is the argmin for ν g_t with the smallest ν in [0, w] that makes g_t ≤ 0, or with w (`docs/proofs/aftrl.md`, "the
positive part"). Budgets have that ν from `PenaltyProx`. The half-space step needs only the value and gradient of an
affine g_t at x_t, so g_t may change. `PolyhedronStep` searches for the active ones of several affine constraints, with
g_t = max_j g_{t,j}. For other constraints write a `PenaltyStep` that solves your sub-problem.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import Array, as_column, dot, like, namespace, norm, through_numpy
from longterm.errors import InputError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.prox_learner import require_same_constraint
from longterm.learners.saddle_point.multiplier_rules import Duals, OneForTheMaximum, OnePerConstraint
from longterm.problems import Problem
from longterm.problems.constraints import VaryingAffine
from longterm.problems.constraints.prox import PenaltyProx
from longterm.problems.projections.least_distance import penalised_point
from longterm.problems.sets import Ball, Box, Set


class PenaltyStepResult(NamedTuple):
    """The new point, and g_t there."""

    x: Array
    constraint: Array
    multiplier: Array
    """ν ≤ w, shape (...,)."""


class PenaltyStep(ABC):
    """The argmin above on one set. Everything is batched over leading axes."""

    over: Set
    duals: Duals = OneForTheMaximum()
    """The values of the feedback that the step reads: the maximum, or every constraint and their pullback."""

    @abstractmethod
    def step(self, x: Array, feedback: Feedback, weight: Array, curvature: Array) -> PenaltyStepResult:
        """Return the argmin from x_t with z = ∇f_t(x_t), for weights w and curvatures a of shape (...,)."""


@dataclass(frozen=True, eq=False)
class BudgetStep(PenaltyStep):
    """The step for a fixed constraint with a `PenaltyProx`."""

    prox: PenaltyProx

    @property
    def over(self) -> Set:  # type: ignore[override]
        """The set of the prox."""
        return self.prox.over

    def step(self, x: Array, feedback: Feedback, weight: Array, curvature: Array) -> PenaltyStepResult:
        slope = feedback.loss_gradient - as_column(curvature) * x
        least = namespace(x).minimum(self.prox.least_weight(slope, curvature), weight)
        moved = self.prox.argmin(slope, as_column(least), curvature)
        return PenaltyStepResult(moved, self.prox.constraint.values(moved)[..., 0], least)


@dataclass(frozen=True, eq=False)
class HalfSpaceStep(PenaltyStep):
    """The step for one affine constraint, fixed or changing, on a ball or a box: x⁺ = Π_B(y − ν s/a), s = ∇g_t.

    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import sets
    >>> from longterm.learners.penalties.penalty_step import HalfSpaceStep
    >>> feedback = lt.Feedback(np.array([-1.0, -3.0]), np.asarray(-0.2), np.array([1.0, 0.0]))  # g_t = x₁ − 0.2
    >>> HalfSpaceStep(sets.Ball(2)).step(np.zeros(2), feedback, np.asarray(9.0), np.asarray(1.0)).x.round(3)
    array([0.2 , 0.98])
    """

    over: Ball | Box

    def step(self, x: Array, feedback: Feedback, weight: Array, curvature: Array) -> PenaltyStepResult:
        slope = feedback.constraint_gradient
        free = x - feedback.loss_gradient / as_column(curvature)
        offset = dot(slope, x) - feedback.constraint  # g_t(x) = ⟨s, x⟩ − offset
        if isinstance(self.over, Ball):
            distance = _distance_in_ball(self.over, free, slope, offset)
        else:
            distance = _distance_in_box(self.over, free, slope, offset)
        least = namespace(x).minimum(curvature * distance, weight)
        moved = self.over.project(free - as_column(least / curvature) * slope)
        return PenaltyStepResult(moved, dot(slope, moved) - offset, least)


def _distance_in_ball(over: Ball, y: Array, slope: Array, offset: Array) -> Array:
    """Return the least τ ≥ 0 with ⟨s, Π_B(y − τs)⟩ ≤ offset, or ∞ where no point of the ball has that."""
    # About the centre, in units of R, p and q are the parts of y parallel and orthogonal to s. Π_B scales (p − τ‖s‖, q)
    # into the ball; its first part is the offset β when p − τ‖s‖ is β, or, where that leaves the ball, β q/√(1 − β²).
    xp, centre = namespace(y), like(over.centre, y)
    length = norm(slope)
    safe = xp.where(length > 0, length, 1.0)
    away = (y - centre) / over.radius
    parallel = dot(slope, away) / safe
    orthogonal = norm(away - as_column(parallel / safe) * slope)
    beta = (offset - dot(slope, centre)) / (safe * over.radius)
    inside = xp.abs(beta) < 1
    rest = xp.sqrt(xp.where(inside, 1 - beta**2, 1.0))
    wanted = beta * xp.maximum(orthogonal / rest, 1.0)
    wanted = xp.where(inside, wanted, xp.where(beta > 0, beta + xp.inf, beta - xp.inf))
    return xp.maximum(parallel - wanted, 0.0) * over.radius / safe


def _distance_in_box(over: Box, y: Array, slope: Array, offset: Array) -> Array:
    """Return the same τ on a box: ⟨s, Π_B(y − τs)⟩ is linear until a coordinate meets a bound."""
    xp = namespace(y)
    lower, upper = like(over.lower, y), like(over.upper, y)
    moving = slope != 0
    safe = xp.where(moving, slope, 1.0)
    ends = xp.concat([(y - lower) / safe, (y - upper) / safe], axis=-1)
    both = xp.concat([moving, moving], axis=-1)
    ends = xp.concat([xp.zeros_like(y[..., :1]), xp.where(both, xp.maximum(ends, 0.0), 0.0)], axis=-1)
    points = over.project(y[..., None, :] - as_column(ends) * slope[..., None, :])  # (..., 2d + 1, d)
    height = dot(points, slope[..., None, :]) - as_column(offset)
    above = height > 0
    start = xp.max(xp.where(above, ends, 0.0), axis=-1)  # the last end that is still above, the first that is not
    stop = xp.min(xp.where(above, xp.inf, ends), axis=-1)
    high = xp.max(xp.where(ends == as_column(start), height, -xp.inf), axis=-1)
    low = xp.max(xp.where(ends == as_column(stop), height, -xp.inf), axis=-1)
    drop = high - low
    share = high / xp.where(drop > 0, drop, 1.0)
    width = xp.where(xp.isfinite(stop), stop - start, 0.0)
    reached = xp.where(high > 0, start + share * width, 0.0)
    return xp.where(xp.isfinite(stop), reached, xp.inf)


@dataclass(frozen=True, eq=False)
class PolyhedronStep(PenaltyStep):
    """The step for several affine constraints, fixed or changing, on a ball or a polyhedron.

    `penalised_point` finds it for one learner at a time, in NumPy.

    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import constraints, losses, sets
    >>> g = constraints.Affine(np.eye(2), [0.5, 0.25])
    >>> problem = lt.Problem(sets.Box.cube(2, 0.0, 1.0), losses.Linear(2), g)
    >>> learner = lt.learners.ProxPenalty.for_problem(problem)
    >>> feedback = lt.observe(problem, np.zeros(2), [np.array([-9.0, -9.0])])
    >>> learner.penalty_step.step(np.zeros(2), feedback, np.asarray(20.0), np.asarray(1.0)).x
    array([0.5 , 0.25])
    """

    over: Set
    count: int

    def __post_init__(self) -> None:
        validate.set_frozen(self, duals=OnePerConstraint(self.count))

    def step(self, x: Array, feedback: Feedback, weight: Array, curvature: Array) -> PenaltyStepResult:
        xp, m, d = namespace(x), self.count, x.shape[-1]
        one = xp.eye(m, dtype=x.dtype)
        weights = xp.reshape(one, (m, *(1,) * (x.ndim - 1), m)) + 0 * feedback.constraint_values
        rows = xp.moveaxis(self.duals.pullback(feedback, weights), 0, -2)  # (..., m, d)
        limits = xp.vecdot(rows, x[..., None, :]) - feedback.constraint_values
        free = x - feedback.loss_gradient / as_column(curvature)
        scaled = as_column(weight / curvature + 0 * free[..., 0])
        packed = xp.concat([xp.reshape(rows, (*x.shape[:-1], m * d)), limits, free, scaled], axis=-1)

        def search(numbers: NDArray[Any]) -> tuple[NDArray[Any], ...]:
            flat = numbers.astype(np.float64).reshape(-1, numbers.shape[-1])
            found = [
                penalised_point(row[: m * d].reshape(m, d), row[m * d : -d - 1], row[-d - 1 : -1], row[-1], self.over)
                for row in flat
            ]
            points = np.stack([one.point for one in found]).reshape(*numbers.shape[:-1], d)
            return points, np.asarray([one.multiplier for one in found]).reshape(numbers.shape[:-1])

        point, multiplier = through_numpy(search, packed, [x.shape, x.shape[:-1]])
        moved = self.over.project(point)
        values = xp.vecdot(rows, moved[..., None, :]) - limits
        return PenaltyStepResult(moved, xp.max(values, axis=-1), multiplier * curvature)


def penalty_step_of(problem: Problem) -> PenaltyStep | None:
    """Return the closed form of this problem, or None."""
    constraint, over = problem.constraint, problem.enclosing_set
    prox = None if constraint.parameters else constraint.prox(over)
    if isinstance(prox, PenaltyProx) and prox.set_holds_budget:
        return BudgetStep(prox)
    affine = isinstance(constraint, VaryingAffine) or constraint.as_affine() is not None
    if affine and constraint.count == 1 and isinstance(over, (Ball, Box)):
        return HalfSpaceStep(over)
    if affine and (isinstance(over, Ball) or over.half_spaces() is not None):
        return PolyhedronStep(over, constraint.count)
    return None


def require_penalty_step(learner: str, problem: Problem) -> PenaltyStep:
    """Return the closed form of this problem. Raise if there is none."""
    step = penalty_step_of(problem)
    if step is None:
        what = f"{learner} minimises a function with [g_t]₊ in each round, and {problem.name!r} has no closed form"
        remedy = "Use affine constraints on a ball, box or simplex, a budget inside a ball about 0, or a PenaltyStep"
        raise InputError("learner", what, remedy)
    return step


def require_same_step(step: PenaltyStep, problem: Problem) -> None:
    """Raise if a step with a closed form was made for other functions than the problem's."""
    if type(step) not in (BudgetStep, HalfSpaceStep, PolyhedronStep):
        return
    if type(penalty_step_of(problem)) is not type(step):
        what = f"was made for another constraint than that of {problem.name!r}"
        raise InputError("learner", what, "Build the learner from the problem that it is to play")
    if isinstance(step, PolyhedronStep) and step.count != problem.constraint.count:
        what = f"was made for {step.count} constraints, and {problem.name!r} has {problem.constraint.count}"
        raise InputError("learner", what, "Build the learner from the problem that it is to play")
    if isinstance(step, BudgetStep):
        require_same_constraint(step.prox, problem)
