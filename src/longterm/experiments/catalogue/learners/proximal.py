"""Learners that take the constraint itself into their steps: by its prox, or by that of its positive part."""

from __future__ import annotations

from typing import Any, Literal

from longterm import bounds
from longterm.experiments.catalogue.base import LearnerEntry
from longterm.experiments.catalogue.learners.common import (
    BETA,
    BOTH_STEPS,
    EACH,
    HARD,
    Bounds,
    Rounds,
    Steps,
    named,
    slack,
)
from longterm.learners import (
    AFTRL,
    COLDQ,
    RECOO,
    Learner,
    PenalisedFTRL,
    ProximalAOGD,
    ProxPenalty,
    StronglyConvexAFTRL,
    YuNeely,
)
from longterm.problems import Problem


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
    return PenalisedFTRL.for_problem(problem, w_0=w_0, growth=growth)


def yu_neely(problem: Problem, rounds: int, steps: Literal["tuned", "published"] = "tuned") -> Learner[Any]:
    """Yu and Neely's virtual queues for a fixed constraint and a known horizon: violation O(1) with an interior."""
    return (
        YuNeely.for_problem(problem, horizon=rounds)
        if steps == "tuned"
        else YuNeely.for_problem(problem, horizon=rounds, steps="published")
    )


def prox_penalty(
    problem: Problem, rounds: int, steps: Steps = "convex", w_0: float | None = None, growth: float = 0.5
) -> Learner[Any]:
    """A gradient step that holds [g_t]₊ itself, under a growing weight: little hard violation."""
    build = ProxPenalty.convex if steps == "convex" else ProxPenalty.strongly_convex
    return build(problem, w_0, growth)


def recoo(problem: Problem, rounds: int, gamma: float = 1.0) -> Learner[Any]:
    """RECOO: the weight on [g_t]₊ is a queue of what was broken, which never falls below a floor that grows."""
    return RECOO.for_problem(problem, gamma=gamma)


def coldq(problem: Problem, rounds: int, alpha: float = 1.0) -> Learner[Any]:
    """COLDQ: the weight on [g_t]₊ is a queue that forgets and has a floor, for a known horizon."""
    return COLDQ.for_problem(problem, horizon=rounds, alpha=alpha)


def _aftrl_bound(learner: AFTRL | StronglyConvexAFTRL, problem: Problem, rounds: Rounds) -> Bounds:
    if isinstance(learner, AFTRL):
        return named(bounds.aftrl(learner, problem.constants, rounds), EACH)
    return named(bounds.strongly_convex_aftrl(learner, problem.constants, rounds), EACH)


def _proximal_bound(learner: ProximalAOGD, problem: Problem, rounds: Rounds) -> Bounds:
    return named(bounds.proximal_aogd(learner, problem.constants, rounds), EACH)


def _penalised_bound(learner: PenalisedFTRL, problem: Problem, rounds: Rounds) -> Bounds:
    return named(bounds.penalised_ftrl(learner, problem.constants, rounds), HARD)


def _yu_neely_bound(learner: YuNeely, problem: Problem, rounds: Rounds) -> Bounds:
    if not all(assumption.holds for assumption in learner.assumptions):
        return {}
    return named(bounds.yu_neely(learner, problem.constants, rounds, slack=slack(problem)), EACH)


def _family_bound(learner: Any, problem: Problem, rounds: Rounds) -> Bounds:
    if not all(assumption.holds for assumption in learner.assumptions):
        return {}
    theorem = bounds.prox_penalty_varying if problem.constraint.parameters else bounds.prox_penalty
    return named(theorem(learner, problem.constants, rounds), HARD)


ENTRIES = (
    LearnerEntry("aftrl", aftrl, "A-FTRL", _aftrl_bound, variants=BOTH_STEPS),
    LearnerEntry("proximal_aogd", proximal_aogd, "Proximal A-OGD", _proximal_bound, variants=BOTH_STEPS),
    LearnerEntry("penalised_ftrl", penalised_ftrl, "Penalised FTRL", _penalised_bound),
    LearnerEntry("yu_neely", yu_neely, "Yu–Neely", _yu_neely_bound, variants=({}, {"steps": "published"})),
    LearnerEntry("prox_penalty", prox_penalty, "Prox penalty", _family_bound, variants=BOTH_STEPS),
    LearnerEntry("recoo", recoo, "RECOO", _family_bound),
    LearnerEntry("coldq", coldq, "COLDQ", _family_bound),
)
