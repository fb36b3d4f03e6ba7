"""A-OGD and what was made of it: other penalties, other steps, restarts."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike

from longterm import bounds
from longterm.errors import ScheduleError
from longterm.experiments.catalogue.base import LearnerEntry
from longterm.experiments.catalogue.learners.common import (
    BETA,
    BOTH_STEPS,
    EACH,
    HARD,
    SIGNED,
    Bounds,
    Rounds,
    Steps,
    named,
)
from longterm.learners import (
    AFTRL,
    AOGD,
    DiagonalAdaGradAOGD,
    Learner,
    PenaltyAOGD,
    QuadraticPenaltyOGD,
    Restarted,
)
from longterm.problems import Problem
from longterm.theory.penalties import Penalty
from longterm.theory.schedules import StronglyConvexSchedule


def aogd(problem: Problem, rounds: int, steps: Steps = "convex", beta: float = BETA) -> Learner[Any]:
    """A-OGD, the paper's method, with one column of its Table 1."""
    return (
        AOGD.for_problem(problem, beta=beta)
        if steps == "convex"
        else AOGD.for_problem(problem, steps="strongly convex", beta=beta)
    )


def penalty_aogd(problem: Problem, rounds: int, weight: float = 0.3, beta: float = BETA) -> Learner[Any]:
    """A-OGD with the penalty φ(u) = weight · u² on the multiplier; the paper has ½, the theorem holds from ¼ on."""
    penalty = Penalty(lambda u: weight * u**2, lambda u: 2 * weight * u, strong_convexity=2 * weight)
    return AOGD.for_problem(problem, penalty=penalty, beta=beta)


def diagonal_adagrad_aogd(problem: Problem, rounds: int, beta: float = BETA) -> Learner[Any]:
    """A-OGD with AdaGrad's step for each coordinate, on a box."""
    return DiagonalAdaGradAOGD.for_problem(problem, beta=beta)


def quadratic_penalty(
    problem: Problem, rounds: int, steps: Steps = "convex", every: bool = False, factor: float = 2.0
) -> Learner[Any]:
    """Gradient descent on the loss and a quadratic penalty of what is broken, of the maximum or of every constraint."""
    build = QuadraticPenaltyOGD.convex if steps == "convex" else QuadraticPenaltyOGD.strongly_convex
    return build(problem, factor=factor, every=every)


def restarted(problem: Problem, rounds: int, of: Literal["aogd", "aftrl"] = "aogd", every: int = 500) -> Learner[Any]:
    """A-OGD or A-FTRL, begun anew after every so many rounds: for what changes."""
    return Restarted(AOGD.for_problem(problem) if of == "aogd" else AFTRL.for_problem(problem), every)


def _aogd_bound(learner: Any, problem: Problem, rounds: Rounds) -> Bounds:
    strongly = isinstance(learner.schedule, StronglyConvexSchedule)
    theorem = bounds.theorem_1_strongly_convex if strongly else bounds.theorem_1
    return named(theorem(problem.constants, rounds, learner.schedule.beta), SIGNED)


def _aogd_printed(learner: Any, problem: Problem, rounds: Rounds) -> Bounds:
    if isinstance(learner.schedule, StronglyConvexSchedule):
        return {}
    return named(bounds.theorem_1_as_printed(problem.constants, rounds, learner.schedule.beta), SIGNED)


def _penalty_bound(learner: PenaltyAOGD, problem: Problem, rounds: Rounds) -> Bounds:
    try:
        return named(bounds.penalty_aogd(learner, problem.constants, rounds), SIGNED)
    except ScheduleError:  # a penalty that the theorem does not cover
        return {}


def _diagonal_bound(learner: DiagonalAdaGradAOGD, problem: Problem, rounds: Rounds) -> Bounds:
    return named(bounds.diagonal_adagrad_aogd(learner, problem.constants, rounds), SIGNED)


def _quadratic_bound(learner: QuadraticPenaltyOGD, problem: Problem, rounds: Rounds) -> Bounds:
    squared = bounds.quadratic_penalty_squared(learner, problem.constants, rounds)
    both = named(bounds.quadratic_penalty(learner, problem.constants, rounds), HARD)
    return {**both, "squared_violation": squared}


def _restarted_bound(learner: Restarted, problem: Problem, rounds: Rounds) -> Bounds:
    inner: Any = learner.learner

    def of_aogd(n: ArrayLike) -> bounds.Bound:
        return bounds.theorem_1(problem.constants, n, inner.schedule.beta)

    def of_aftrl(n: ArrayLike) -> bounds.Bound:
        return bounds.aftrl(inner, problem.constants, n)

    theorem, measure = (of_aogd, SIGNED) if isinstance(inner, AOGD) else (of_aftrl, EACH)
    return named(bounds.restarted(theorem, learner.every, rounds), measure)


ENTRIES = (
    LearnerEntry("aogd", aogd, "A-OGD", _aogd_bound, _aogd_printed, BOTH_STEPS),
    LearnerEntry("penalty_aogd", penalty_aogd, "A-OGD, lighter penalty", _penalty_bound),
    LearnerEntry("diagonal_adagrad_aogd", diagonal_adagrad_aogd, "Diagonal AdaGrad A-OGD", _diagonal_bound),
    LearnerEntry(
        "quadratic_penalty",
        quadratic_penalty,
        "Quadratic penalty",
        _quadratic_bound,
        variants=(*BOTH_STEPS, {"every": True}),
    ),
    LearnerEntry("restarted", restarted, "Restarted A-OGD", _restarted_bound),
)
