"""Learners that stay feasible, or nearly so, by projecting onto {g ≤ 0} or by stepping back from its edge."""

from __future__ import annotations

from typing import Any

from longterm import bounds
from longterm.experiments.catalogue.base import LearnerEntry
from longterm.experiments.catalogue.learners.common import (
    BOTH_STEPS,
    EACH,
    HARD,
    SIGNED,
    Bounds,
    Rounds,
    Steps,
    interior,
    named,
    projection_of,
)
from longterm.learners import (
    FeasibleOnlineADM,
    Learner,
    OneProjectionSGD,
    OnlineADM,
    PolyakFeasibility,
    ProjectedOGD,
)
from longterm.problems import Problem


def projected_ogd(problem: Problem, rounds: int, steps: Steps = "convex") -> Learner[Any]:
    """Online gradient descent that projects onto {g ≤ 0} in every round: no violation, at the price of projecting."""
    return (
        ProjectedOGD.for_problem(problem)
        if steps == "convex"
        else ProjectedOGD.for_problem(problem, steps="strongly convex")
    )


def online_adm(problem: Problem, rounds: int) -> Learner[Any]:
    """Online alternating directions: x_t in B and z_t in {g ≤ 0}, drawn together by a multiplier."""
    return OnlineADM.for_problem(problem, horizon=rounds, projection=projection_of(problem, "online ADM"))


def feasible_online_adm(problem: Problem, rounds: int) -> Learner[Any]:
    """Online alternating directions that plays z_t: feasible in every round."""
    return FeasibleOnlineADM.for_problem(problem, horizon=rounds, projection=projection_of(problem, "online ADM"))


def one_projection_sgd(problem: Problem, rounds: int, slope: float | None = None) -> Learner[Any]:
    """Stochastic gradients with one projection at the end; what it plays on the way is judged here.

    `slope` is a ρ with dist(x, X) ≤ [g(x)]₊/ρ on B. Left out: ε/Δ, which a Slater point of slack ε gives.
    """
    found = interior(problem).epsilon / problem.constants.diameter if slope is None else slope
    return OneProjectionSGD.for_problem(
        problem, horizon=rounds, projection=projection_of(problem, "one projection"), slope=found
    )


def polyak_feasibility(problem: Problem, rounds: int) -> Learner[Any]:
    """Polyak feasibility steps: every round feasible without projecting, for a set with an interior."""
    return PolyakFeasibility.for_problem(problem, horizon=rounds, slater=interior(problem))


def _projected_bound(learner: ProjectedOGD, problem: Problem, rounds: Rounds) -> Bounds:
    theorem = bounds.hazan_agarwal_kale if learner.decay == 1 else bounds.zinkevich
    return named(theorem(problem.constants, rounds), HARD)


def _adm_bound(learner: OnlineADM, problem: Problem, rounds: Rounds) -> Bounds:
    if isinstance(learner, FeasibleOnlineADM):
        return named(bounds.feasible_online_adm(learner, problem.constants, rounds), HARD)
    both = named(bounds.online_adm(learner, problem.constants, rounds), HARD)
    if problem.constraint.as_affine() is None:
        return both
    return {**both, EACH: bounds.online_adm_affine(learner, problem.constants, rounds)}


def _one_projection_bound(learner: OneProjectionSGD, problem: Problem, rounds: Rounds) -> Bounds:
    return named(bounds.one_projection_sgd(learner, problem.constants, rounds), SIGNED)


def _polyak_bound(learner: PolyakFeasibility, problem: Problem, rounds: Rounds) -> Bounds:
    if not all(assumption.holds for assumption in learner.assumptions):
        return {}
    return named(bounds.polyak_feasibility(learner, problem.constants, rounds), HARD)


ENTRIES = (
    LearnerEntry("projected_ogd", projected_ogd, "Projected OGD", _projected_bound, variants=BOTH_STEPS),
    LearnerEntry("online_adm", online_adm, "Online ADM", _adm_bound),
    LearnerEntry("feasible_online_adm", feasible_online_adm, "Feasible online ADM", _adm_bound),
    LearnerEntry("one_projection_sgd", one_projection_sgd, "SGD with one projection", _one_projection_bound),
    LearnerEntry("polyak_feasibility", polyak_feasibility, "Polyak feasibility", _polyak_bound),
)
