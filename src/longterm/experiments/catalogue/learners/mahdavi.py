"""The methods of Mahdavi, Jin and Yang (2012), and those that keep every violation at nought in the long run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from longterm import bounds
from longterm.errors import ScheduleError
from longterm.experiments.catalogue.base import LearnerEntry
from longterm.experiments.catalogue.learners.common import BETA, EACH, SIGNED, Bounds, Rounds, interior, named
from longterm.experiments.catalogue.paper import papers_constraint_bound
from longterm.learners import (
    AOGD,
    DecayingMarginAOGD,
    DoublingAOGD,
    Learner,
    MahdaviOGD,
    MirrorProx,
    NoViolationAOGD,
    NoViolationMahdaviOGD,
    NoViolationMirrorProx,
    smallest_root,
    twice,
)
from longterm.problems import Problem


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
        return MahdaviOGD.for_problem(problem, horizon=rounds, multipliers="one, counted as many", constraint_bound=D)
    stated = replace(problem, declared={**problem.declared, "constraint_bound": D})
    build = MahdaviOGD.aggregate if multipliers == "one" else MahdaviOGD.vector
    return build(stated, rounds, rule)


def mirror_prox(problem: Problem, rounds: int) -> Learner[Any]:
    """Mirror prox of Mahdavi, Jin and Yang, for affine constraints and a known horizon."""
    return MirrorProx.for_problem(problem, horizon=rounds)


def no_violation_aogd(
    problem: Problem, rounds: int, margin: Literal["exact sums", "theorem"] = "exact sums", beta: float = BETA
) -> Learner[Any]:
    """A-OGD on g + γ: no violation in the long run, for a known horizon and a set with an interior."""
    build = NoViolationAOGD.by_exact_sums if margin == "exact sums" else NoViolationAOGD.by_theorem
    return build(AOGD.for_problem(problem, beta=beta), problem, rounds, slater=interior(problem))


def decaying_margin_aogd(problem: Problem, rounds: int, beta: float = BETA, scale: float = 1.0) -> Learner[Any]:
    """A-OGD on g + γ_t with a margin that falls: no violation in the long run, without a horizon."""
    return DecayingMarginAOGD.for_problem(problem, beta=beta, scale=scale, slater=interior(problem))


def doubling_aogd(problem: Problem, rounds: int, beta: float = BETA, first_epoch: int | None = None) -> Learner[Any]:
    """A-OGD on g + γ in epochs that double: no violation in the long run, without a horizon."""
    rule = AOGD.for_problem(problem, beta=beta)
    return DoublingAOGD.of(rule, problem, first_epoch=first_epoch, slater=interior(problem))


def no_violation_ogd(problem: Problem, rounds: int) -> Learner[Any]:
    """Convex OGD of Mahdavi, Jin and Yang on g + γ (their Theorem 8)."""
    return NoViolationMahdaviOGD.for_problem(problem, horizon=rounds, slater=interior(problem))


def no_violation_mirror_prox(problem: Problem, rounds: int) -> Learner[Any]:
    """Mirror prox on g + γ (Corollary 13 of Mahdavi, Jin and Yang)."""
    return NoViolationMirrorProx.for_problem(problem, horizon=rounds)


def _mahdavi_bound(learner: MahdaviOGD, problem: Problem, rounds: Rounds) -> Bounds:
    measure = SIGNED if learner.duals.count == 1 else EACH
    try:
        return named(bounds.vector_lemma(learner.schedule, problem.constants, rounds, learner.duals.count), measure)
    except ScheduleError:  # steps that its theorem does not cover
        return {}


def _mirror_prox_bound(learner: MirrorProx, problem: Problem, rounds: Rounds) -> Bounds:
    if not learner.assumptions[0].holds:  # the proof needs this one alone
        return {}
    theorem: Any = bounds.mahdavi_theorem_12
    if isinstance(learner, NoViolationMirrorProx):
        theorem = bounds.mahdavi_corollary_13
    return named(theorem(learner, problem.constants, rounds), EACH)


def _tightened_bound(learner: Any, problem: Problem, rounds: Rounds) -> Bounds:
    """Corollary 1: Lemma 5 on g + γ, for whatever schedule has C1 to C3 and one multiplier."""
    try:
        return named(bounds.corollary_1(learner, problem.constants, rounds), SIGNED)
    except ScheduleError:
        return {}


def _decaying_bound(learner: DecayingMarginAOGD, problem: Problem, rounds: Rounds) -> Bounds:
    return named(bounds.decaying_margin(learner, problem.constants, rounds), SIGNED)


def _doubling_bound(learner: DoublingAOGD, problem: Problem, rounds: Rounds) -> Bounds:
    return named(bounds.doubling_epochs(learner, problem.constants, rounds), SIGNED)


ENTRIES = (
    LearnerEntry("mahdavi_ogd", mahdavi_ogd, "Convex OGD", _mahdavi_bound, variants=({}, {"multipliers": "each"})),
    LearnerEntry("mirror_prox", mirror_prox, "Mirror prox", _mirror_prox_bound),
    LearnerEntry("no_violation_aogd", no_violation_aogd, "No-violation A-OGD", _tightened_bound),
    LearnerEntry("decaying_margin_aogd", decaying_margin_aogd, "Decaying-margin A-OGD", _decaying_bound),
    LearnerEntry("doubling_aogd", doubling_aogd, "Doubling no-violation A-OGD", _doubling_bound),
    LearnerEntry("no_violation_ogd", no_violation_ogd, "No-violation Convex OGD", _tightened_bound),
    LearnerEntry("no_violation_mirror_prox", no_violation_mirror_prox, "No-violation mirror prox", _mirror_prox_bound),
)
