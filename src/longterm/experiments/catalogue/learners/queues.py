"""Learners for constraints that change: virtual queues, prices of what was broken, exponential weights, two points."""

from __future__ import annotations

from typing import Any, Literal

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
    named,
    slack,
)
from longterm.learners import (
    LEWA,
    AdaGradDiagonal,
    DoublingRestarts,
    DriftPlusPenalty,
    HardYuLeeLee,
    Learner,
    NetworkedSaddlePoint,
    Published,
    Sharp,
    SinhaVaze,
    StronglyConvexOGD,
    TwoPointBandit,
    YuLeeLee,
    YuNeely,
)
from longterm.problems import Problem

HORIZON_OF_ONE = 1
"""`DoublingRestarts` makes the steps for every epoch itself."""


def drift_plus_penalty(
    problem: Problem,
    rounds: int,
    preset: Literal["tuned", "yu-neely-wei", "neely-yu", "liakopoulos"] = "tuned",
    window: int = 10,
) -> Learner[Any]:
    """Drift plus penalty for a known horizon; `window` is Liakopoulos's K, over which x* is feasible on average."""
    if preset == "liakopoulos":
        return DriftPlusPenalty.for_problem(problem, horizon=rounds, preset="liakopoulos", window=window)
    builders = {
        "tuned": DriftPlusPenalty.tuned,
        "yu-neely-wei": DriftPlusPenalty.yu_neely_wei,
        "neely-yu": DriftPlusPenalty.neely_yu,
    }
    return builders[preset](problem, rounds)


def sinha_vaze(
    problem: Problem, rounds: int, steps: Steps = "convex", inner: Literal["norm", "diagonal"] = "norm"
) -> Learner[Any]:
    """Sinha and Vaze: gradient descent on loss plus an exponential price of the violation so far, known horizon."""
    if steps == "strongly convex":
        return SinhaVaze.for_problem(problem, horizon=rounds, steps="strongly convex")
    return SinhaVaze.for_problem(
        problem, horizon=rounds, inner=AdaGradDiagonal(problem.enclosing_set) if inner == "diagonal" else None
    )


def yu_lee_lee(
    problem: Problem,
    rounds: int,
    steps: Steps = "convex",
    rates: Literal["published", "sharp"] = "sharp",
    hard: bool = False,
) -> Learner[Any]:
    """Yu, Lee and Lee: an exponential price without a horizon, of the signed or (hard) of the positive part."""
    rule, chosen = HardYuLeeLee if hard else YuLeeLee, Sharp if rates == "sharp" else Published
    return rule.convex(problem, chosen) if steps == "convex" else rule.strongly_convex(problem, chosen)


def doubling_restarts(
    problem: Problem,
    rounds: int,
    of: Literal["yu_neely", "drift_plus_penalty", "sinha_vaze"] = "drift_plus_penalty",
    first_epoch: int = 16,
) -> Learner[Any]:
    """A learner that needs the horizon, played without it: in epochs that double."""
    builders: dict[str, Any] = {
        "yu_neely": YuNeely.tuned,
        "drift_plus_penalty": DriftPlusPenalty.tuned,
        "sinha_vaze": SinhaVaze.convex,
    }
    return DoublingRestarts(builders[of](problem, HORIZON_OF_ONE), first_epoch)


def two_point_bandit(problem: Problem, rounds: int, seed: int = 0) -> Learner[Any]:
    """Gradients of the loss, but of the constraint only values at two points a round; on balls and boxes."""
    return TwoPointBandit.for_problem(problem, horizon=rounds, seed=seed)


def lewa(problem: Problem, rounds: int) -> Learner[Any]:
    """Exponential weights with a multiplier, on a simplex and for a known horizon."""
    return LEWA.for_problem(problem, horizon=rounds)


def networked_saddle_point(problem: Problem, rounds: int) -> Learner[Any]:
    """A saddle point that agents on a graph look for by talking to their neighbours, for a known horizon."""
    return NetworkedSaddlePoint.for_problem(problem, horizon=rounds)


def _drift_bound(learner: DriftPlusPenalty, problem: Problem, rounds: Rounds) -> Bounds:
    return named(bounds.drift_plus_penalty(learner, problem.constants, rounds, slack=slack(problem)), EACH)


def _sinha_vaze_bound(learner: SinhaVaze, problem: Problem, rounds: Rounds) -> Bounds:
    strongly = isinstance(learner.inner, StronglyConvexOGD)
    theorem = bounds.sinha_vaze_strongly_convex if strongly else bounds.sinha_vaze
    return named(theorem(learner, problem.constants, rounds), HARD)


def _yu_lee_lee_bound(learner: YuLeeLee, problem: Problem, rounds: Rounds) -> Bounds:
    measure = HARD if isinstance(learner, HardYuLeeLee) else SIGNED
    return named(bounds.yu_lee_lee(learner, problem.constants, rounds), measure)


def _doubling_bound(learner: DoublingRestarts, problem: Problem, rounds: Rounds) -> Bounds:
    c, epsilon, inner = problem.constants, slack(problem), learner.learner

    def of_one_epoch(one: Any, n: int) -> bounds.Bound:
        if isinstance(one, YuNeely):
            return bounds.yu_neely(one, c, n, slack=epsilon)
        if isinstance(one, DriftPlusPenalty):
            return bounds.drift_plus_penalty(one, c, n, slack=epsilon)
        return bounds.sinha_vaze(one, c, n)

    found = bounds.doubling_restarts(of_one_epoch, learner, rounds)
    return named(found, HARD if isinstance(inner, SinhaVaze) else EACH)


def _two_point_bound(learner: TwoPointBandit, problem: Problem, rounds: Rounds) -> Bounds:
    if not all(assumption.holds for assumption in learner.assumptions):
        return {}
    return named(bounds.two_point_bandit(learner, problem.constants, rounds), SIGNED)


def _lewa_bound(learner: LEWA, problem: Problem, rounds: Rounds) -> Bounds:
    return named(bounds.lewa(learner, problem.constants, rounds), SIGNED)


def _networked_bound(learner: NetworkedSaddlePoint, problem: Problem, rounds: Rounds) -> Bounds:
    return named(bounds.networked_saddle_point(learner, problem.constants, rounds), EACH)


ENTRIES = (
    LearnerEntry(
        "drift_plus_penalty",
        drift_plus_penalty,
        "Drift plus penalty",
        _drift_bound,
        variants=({}, {"preset": "yu-neely-wei"}),
    ),
    LearnerEntry("sinha_vaze", sinha_vaze, "Sinha–Vaze", _sinha_vaze_bound, variants=BOTH_STEPS),
    LearnerEntry(
        "yu_lee_lee",
        yu_lee_lee,
        "Yu–Lee–Lee",
        _yu_lee_lee_bound,
        variants=({}, {"hard": True}, {"steps": "strongly convex"}),
    ),
    LearnerEntry(
        "doubling_restarts",
        doubling_restarts,
        "Doubling restarts",
        _doubling_bound,
        variants=({"of": "yu_neely"}, {"of": "drift_plus_penalty"}, {"of": "sinha_vaze"}),
    ),
    LearnerEntry("two_point_bandit", two_point_bandit, "Two-point bandit", _two_point_bound),
    LearnerEntry("lewa", lewa, "LEWA", _lewa_bound),
    LearnerEntry("networked_saddle_point", networked_saddle_point, "Networked saddle point", _networked_bound),
)
