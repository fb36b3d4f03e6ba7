"""What learners with a prox share: how they get it, what they read of a round, their multipliers' ascent and its price.

For steps θ_t = θ_0/t^β, μ_t = 1/(θ_t (t + 1)), a primal side Σ Δf_t + Σ ⟨λ_t, g(x_t)⟩ ≤ P and D the bound of the vector
(g_1, …, g_m)'s length (`docs/aftrl.md`),

    Σ Δf_t                 ≤ P + Q,   Q = (D²/2) Σ 1/(θ_t t)
    Σ_j [ Σ_t g_j(x_t) ]₊² ≤ 2 (S_θ + θ_0) (P + Q + F T)

A user's projection onto the feasible set: is it one, as far as a few points can tell?
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np

from longterm._arrays import Array, FloatArray, column, namespace
from longterm._validate import Hyper, positive_scalar, remember
from longterm.constraints.derived import SmoothProx
from longterm.constraints.prox import PenaltyProx, Prox
from longterm.errors import InputError
from longterm.learners.base import Learner, S, require_strong_convexity
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need, require_needs
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.bounds import LONG_TERM, REGRET, NoTheoremError
from longterm.theory.conditions import power_sum
from longterm.theory.schedules import DecoupledSchedule, Steps, StronglyConvexDecoupledSchedule


def prox_of(learner: str, needs: frozenset[Need], problem: Problem) -> Prox:
    """The problem's own prox, or the reason why this learner cannot have one."""
    require_needs(learner, needs, problem)
    return cast(Prox, problem.constraint.prox(problem.enclosing_set))


def penalty_prox_of(learner: str, needs: frozenset[Need], problem: Problem) -> PenaltyProx:
    """The same for the positive part of the problem's constraint."""
    return cast(PenaltyProx, prox_of(learner, needs, problem))


def require_same_constraint(prox: Prox, problem: Problem) -> None:
    """Raise if the prox is that of other functions than the problem's, as far as a few points can tell."""
    points = problem.enclosing_set.sample(np.random.default_rng(0), 8)
    ours, theirs = prox.constraint.values(points), problem.constraint.values(points)
    if ours.shape != theirs.shape or not np.allclose(ours, theirs):
        what = f"was made for another constraint than that of {problem.name!r}"
        raise InputError("learner", what, "Build the learner from the problem that it is to play")


def default_theta(problem: Problem, prox: Prox, theta_0: Hyper | None) -> Hyper:
    """θ_0 where none is given: D²/(10F), with D for the vector of all constraints.

    Bounds would choose about seven times as much. On ijcnn1 and covtype that left the losses as they were and more
    than doubled the hard violation.
    """
    if theta_0 is not None:
        return theta_0
    return prox.values_norm_bound() ** 2 / (10 * positive_scalar("loss_range", problem.constants.loss_range))


def values_of(feedback: Feedback, count: int) -> Array:
    """(g_1(x_t), …, g_m(x_t)), shape (..., m)."""
    if count == 1:
        return column(feedback.constraint)
    if feedback.constraint_values is None:
        what = f"is missing, and the learner has {count} multipliers"
        raise InputError("constraint_values", what, "Tell it g_j(x_t) for every constraint, as `observe` does")
    return feedback.constraint_values


def ascend(multiplier: Array, values: Array, steps: Steps) -> Array:
    """The paper's dual step, one multiplier per constraint: [λ_t + μ_t (g(x_t) − θ_t λ_t)]₊."""
    ascent = values - column(steps.theta) * multiplier
    return namespace(values).maximum(multiplier + column(steps.mu) * ascent, 0.0)


def as_reported(multiplier: Array) -> Array:
    """Multipliers (..., m) for the trace: a plain (...,) where there is one."""
    return multiplier[..., 0] if multiplier.shape[-1] == 1 else multiplier


def require_exact(prox: Prox) -> None:
    """Raise a NoTheoremError where the argmin is found by steps: Λ grows, and with it what N of them leave over."""
    if isinstance(prox, SmoothProx):
        raise NoTheoremError("the argmin of constraints.Smooth is found by N steps, whose error no bound accounts for")


def length_bound(prox: Prox, problem: Problem) -> float:
    """D for the vector (g_1, …, g_m), from the prox or from the problem's D, whichever is smaller."""
    return float(min(prox.values_norm_bound(), np.sqrt(prox.constraint.count) * problem.constants.constraint_bound))


def with_dual(
    primal: FloatArray,
    prox: Prox,
    schedule: DecoupledSchedule | StronglyConvexDecoupledSchedule,
    problem: Problem,
    T: FloatArray,
) -> Mapping[str, FloatArray]:
    """From P to both bounds."""
    require_exact(prox)
    theta_0, beta = np.asarray(schedule.theta_0), np.asarray(schedule.beta)
    regret = primal + length_bound(prox, problem) ** 2 / (2 * theta_0) * power_sum(T, 1 - beta)
    weight = theta_0 * (power_sum(T, beta) + 1)
    return {REGRET: regret, LONG_TERM: np.sqrt(2 * weight * (regret + problem.constants.loss_range * T))}


@dataclass(frozen=True, eq=False)
class DecoupledLearner(Learner[S]):
    """A prox, and a schedule whose θ does not follow from η: what A-FTRL and proximal A-OGD have in common."""

    prox: Prox
    schedule: DecoupledSchedule | StronglyConvexDecoupledSchedule
    enclosing_set: Set = field(init=False, repr=False)

    needs: ClassVar[frozenset[Need]] = frozenset({Need.FIXED_CONSTRAINT, Need.PROX})
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T + T^β), O(log T + T^β)",
        LONG_TERM: "O(T^(1−β/2))",
    }
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"steps": "strongly convex"})

    def __post_init__(self) -> None:
        remember(self, enclosing_set=self.prox.over)

    @property
    def strong_convexity(self) -> Hyper:
        return self.schedule.strong_convexity

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        require_same_constraint(self.prox, problem)

    def report(self, state: Any) -> dict[str, Array]:
        theta, eta, mu = self.schedule.at(state.round, state.x)
        return {"multiplier": as_reported(state.multiplier), "theta": theta, "eta": eta, "mu": mu}


def strongly_convex_steps(
    problem: Problem, prox: Prox, steps: str, theta_0: Hyper | None, beta: Hyper
) -> StronglyConvexDecoupledSchedule:
    """η_t = 1/(σt), of a problem that has a σ."""
    sigma = require_strong_convexity(problem, steps)
    return StronglyConvexDecoupledSchedule(sigma, default_theta(problem, prox, theta_0), beta)


Projection = Callable[[Array], Array]
"""Π, batched: (..., d) → (..., d)."""

SAMPLES = 32
TOLERANCE = 1e-6
"""Solvers that stop early count as projections up to this share of D, and of the diameter."""


def known_projection(learner: type[Learner[Any]], problem: Problem, given: Projection | None) -> Projection:
    """The projection that was given, or the problem's own onto {g ≤ 0} ∩ B; refused where neither is known."""
    require_needs(learner.__name__, learner.needs, problem)
    known = problem.projection if given is None else given
    if known is None:
        what = f"{learner.__name__} needs {Need.PROJECTION.value} and B, and none is known for {problem.name!r}"
        remedy = "Give the exact Euclidean projection as projection=, or choose a learner without, A-OGD for example"
        raise InputError("problem", what, remedy)
    return known


def require_projection(problem: Problem, project: Projection, *, into_set: bool, stretch: float = 1.0) -> None:
    """Raise if what `project` returns is infeasible, or if it moves points that are feasible already."""
    points = _tried(problem, stretch)
    projected = require_feasible_image(problem, project, into_set=into_set, stretch=stretch)
    over = problem.enclosing_set
    feasible = (problem.constraint.values(points).max(axis=-1) <= 0) & over.contains(points)
    moved = float(np.max(np.linalg.norm(projected - points, axis=-1)[feasible], initial=0.0))
    if moved > TOLERANCE * problem.constants.diameter:
        what = f"moved a feasible point by {moved:.3g}"
        raise InputError("projection", what, "A projection leaves feasible points where they are")


def require_feasible_image(
    problem: Problem, project: Projection, *, into_set: bool, stretch: float = 1.0
) -> FloatArray:
    """Raise if what `project` returns is infeasible; with `into_set` it has to lie in B too. Returns what it did."""
    if not callable(project):
        raise InputError("projection", f"{project!r} cannot be called", "Give the Euclidean projection onto {g ≤ 0}")
    points = _tried(problem, stretch)
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


def _tried(problem: Problem, stretch: float) -> FloatArray:
    """Points of B, moved away from its centre by the factor `stretch`."""
    over = problem.enclosing_set
    return np.asarray(over.centre + stretch * (over.sample(np.random.default_rng(0), SAMPLES) - over.centre))
