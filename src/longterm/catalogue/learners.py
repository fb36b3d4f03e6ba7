"""The learners that can be named, each built from a problem, the number of rounds and a few plain parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longterm import bounds
from longterm._arrays import FloatArray
from longterm.catalogue.base import LearnerEntry
from longterm.catalogue.paper import papers_constraint_bound
from longterm.errors import ScheduleError
from longterm.learners import (
    AFTRL,
    AOGD,
    Learner,
    MahdaviOGD,
    MirrorProx,
    PenalisedFTRL,
    ProjectedOGD,
    ProximalAOGD,
    StronglyConvexAFTRL,
    smallest_root,
    twice,
)
from longterm.problems import Problem
from longterm.schedules import StronglyConvexSchedule

Rounds = NDArray[np.int64]
Bounds = Mapping[str, FloatArray]
Steps = Literal["convex", "strongly convex"]
BETA = 2 / 3


def aogd(problem: Problem, rounds: int, steps: Steps = "convex", beta: float = BETA) -> Learner[Any]:
    """A-OGD, the paper's method, with one column of its Table 1."""
    return AOGD.convex(problem, beta) if steps == "convex" else AOGD.strongly_convex(problem, beta)


def mahdavi_ogd(
    problem: Problem,
    rounds: int,
    multipliers: Literal["one", "each", "one, counted as many"] = "one",
    delta: Literal["smallest root", "twice"] = "smallest root",
    constraint_bound: float | Literal["exact", "paper"] = "exact",
) -> Learner[Any]:
    """Convex OGD of Mahdavi, Jin and Yang: one multiplier for the maximum or one each, for a known horizon.

    `constraint_bound` is the D that its steps are made for: the problem's own, the one that the A-OGD paper states, or
    a number. "one, counted as many" is what that paper must have drawn.
    """
    rule = twice if delta == "twice" else smallest_root
    if constraint_bound == "exact":
        D = problem.constants.constraint_bound
    else:
        D = papers_constraint_bound(problem) if constraint_bound == "paper" else float(constraint_bound)
    if multipliers == "one, counted as many":
        return MahdaviOGD.one_multiplier_counted_as_many(problem, rounds, constraint_bound=D)
    stated = replace(problem, declared={**problem.declared, "constraint_bound": D})
    build = MahdaviOGD.aggregate if multipliers == "one" else MahdaviOGD.vector
    return build(stated, rounds, rule)


def mirror_prox(problem: Problem, rounds: int) -> Learner[Any]:
    """Mirror prox of Mahdavi, Jin and Yang, for affine constraints and a known horizon."""
    return MirrorProx.tuned(problem, rounds)


def aftrl(
    problem: Problem, rounds: int, steps: Steps = "convex", beta: float = BETA, theta_0: float | None = None
) -> Learner[Any]:
    """A-FTRL: the paper's dual with a follow-the-regularised-leader primal."""
    return (AFTRL if steps == "convex" else StronglyConvexAFTRL).tuned(problem, beta, theta_0)


def proximal_aogd(
    problem: Problem, rounds: int, steps: Steps = "convex", beta: float = BETA, theta_0: float | None = None
) -> Learner[Any]:
    """A-OGD with the multiplier's part taken exactly, by the prox of the constraint."""
    build = ProximalAOGD.convex if steps == "convex" else ProximalAOGD.strongly_convex
    return build(problem, beta, theta_0)


def penalised_ftrl(problem: Problem, rounds: int, w_0: float | None = None, growth: float = 0.5) -> Learner[Any]:
    """Follow the regularised leader under a growing penalty on [g]₊: hardly any violation."""
    return PenalisedFTRL.tuned(problem, w_0, growth)


def projected_ogd(problem: Problem, rounds: int, steps: Steps = "convex") -> Learner[Any]:
    """Online gradient descent that projects onto {g ≤ 0} in every round: no violation, at the price of projecting."""
    return ProjectedOGD.convex(problem) if steps == "convex" else ProjectedOGD.strongly_convex(problem)


def _aogd_bound(learner: AOGD, problem: Problem, rounds: Rounds) -> Bounds:
    strongly = isinstance(learner.schedule, StronglyConvexSchedule)
    theorem = bounds.theorem_1_strongly_convex if strongly else bounds.theorem_1
    return _named(theorem(problem.constants, rounds, learner.schedule.beta), "signed_violation")  # type: ignore[attr-defined]


def _aogd_printed(learner: AOGD, problem: Problem, rounds: Rounds) -> Bounds:
    if isinstance(learner.schedule, StronglyConvexSchedule):
        return {}
    beta = learner.schedule.beta  # type: ignore[attr-defined]
    return _named(bounds.theorem_1_as_printed(problem.constants, rounds, beta), "signed_violation")


def _mahdavi_bound(learner: MahdaviOGD, problem: Problem, rounds: Rounds) -> Bounds:
    measure = "signed_violation" if learner.duals.count == 1 else "per_constraint_violation"
    try:
        return _named(bounds.vector_lemma(learner.schedule, problem.constants, rounds, learner.duals.count), measure)
    except ScheduleError:  # steps that its theorem does not cover
        return {}


def _mirror_prox_bound(learner: MirrorProx, problem: Problem, rounds: Rounds) -> Bounds:
    if not all(assumption.holds for assumption in learner.assumptions):
        return {}
    return _named(bounds.mahdavi_theorem_12(learner, problem.constants, rounds), "per_constraint_violation")


def _aftrl_bound(learner: AFTRL | StronglyConvexAFTRL, problem: Problem, rounds: Rounds) -> Bounds:
    if isinstance(learner, AFTRL):
        return _named(bounds.aftrl(learner, problem.constants, rounds), "per_constraint_violation")
    return _named(bounds.strongly_convex_aftrl(learner, problem.constants, rounds), "per_constraint_violation")


def _proximal_bound(learner: ProximalAOGD, problem: Problem, rounds: Rounds) -> Bounds:
    return _named(bounds.proximal_aogd(learner, problem.constants, rounds), "per_constraint_violation")


def _named(bound: bounds.Bound, violation: str) -> Bounds:
    return {"regret": np.asarray(bound.regret), violation: np.asarray(bound.violation)}


LEARNERS = (
    LearnerEntry("aogd", aogd, "A-OGD", _aogd_bound, _aogd_printed),
    LearnerEntry("aftrl", aftrl, "A-FTRL", _aftrl_bound),
    LearnerEntry("proximal_aogd", proximal_aogd, "Proximal A-OGD", _proximal_bound),
    LearnerEntry("penalised_ftrl", penalised_ftrl, "Penalised FTRL"),
    LearnerEntry("mahdavi_ogd", mahdavi_ogd, "Convex OGD", _mahdavi_bound),
    LearnerEntry("mirror_prox", mirror_prox, "Mirror prox", _mirror_prox_bound),
    LearnerEntry("projected_ogd", projected_ogd, "Projected OGD"),
)
"""Ours."""
