"""The step of the prox-penalty family in closed form, with the positive part of the latest constraint in it.

    x⁺ = argmin_{x ∈ B} ⟨z, x⟩ + w [g_t(x)]₊ + (a/2) ‖x − x_t‖²

It is the argmin for ν g_t with the smallest ν in [0, w] that makes g_t ≤ 0, or with w (`docs/proofs/aftrl.md`, "the
positive part"). Budgets have that ν from `PenaltyProx`. The half-space step needs only the value and gradient of an
affine g_t at x_t, so g_t may change. For several constraints write a `PenaltyStep` that solves your sub-problem.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from longterm._base.arrays import Array, as_column, dot, like, namespace, norm
from longterm.errors import InputError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.prox_learner import require_same_constraint
from longterm.problems import Problem
from longterm.problems.constraints import VaryingAffine
from longterm.problems.constraints.prox import PenaltyProx
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


def penalty_step_of(problem: Problem) -> PenaltyStep | None:
    """Return the closed form of this problem, or None."""
    constraint, over = problem.constraint, problem.enclosing_set
    prox = None if constraint.parameters else constraint.prox(over)
    if isinstance(prox, PenaltyProx) and prox.set_holds_budget:
        return BudgetStep(prox)
    affine = isinstance(constraint, VaryingAffine) or constraint.as_affine() is not None
    if affine and constraint.count == 1 and isinstance(over, (Ball, Box)):
        return HalfSpaceStep(over)
    return None


def require_penalty_step(learner: str, problem: Problem) -> PenaltyStep:
    """Return the closed form of this problem. Raise if there is none."""
    step = penalty_step_of(problem)
    if step is None:
        what = f"{learner} needs the argmin that holds [g_t]₊ itself, and {problem.name!r} has no closed form for it"
        remedy = "Use one affine constraint on a ball or a box, a budget inside a ball about 0, or give a PenaltyStep"
        raise InputError("learner", what, remedy)
    return step


def require_same_step(step: PenaltyStep, problem: Problem) -> None:
    """Raise if a step with a closed form was made for other functions than the problem's."""
    if type(step) not in (BudgetStep, HalfSpaceStep):
        return
    if type(penalty_step_of(problem)) is not type(step):
        what = f"was made for another constraint than that of {problem.name!r}"
        raise InputError("learner", what, "Build the learner from the problem that it is to play")
    if isinstance(step, BudgetStep):
        require_same_constraint(step.prox, problem)
