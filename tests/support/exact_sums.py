"""Theorem 1 with exact sums in place of its closed forms: Lemma 5 for the schedules of Table 1."""

from dataclasses import replace

from longterm._base.validate import horizons
from longterm.theory.bounds import horizons_of
from longterm.theory.paper import PaperBound, lemma_5, violation_bound
from longterm.theory.schedules import ConvexSchedule, StronglyConvexSchedule
from longterm.theory.step_sums import step_sums


def exact_theorem_1(constants, rounds, beta=2 / 3):
    schedule = ConvexSchedule(constants.diameter, constants.gradient_bound, beta)
    return lemma_5(schedule, replace(constants, strong_convexity=0.0), rounds)


def exact_as_printed(constants, rounds, beta=2 / 3):
    """The paper's R² U_η in the place of (Δ²/2) U_η."""
    schedule = ConvexSchedule(constants.diameter, constants.gradient_bound, beta)
    return lemma_5_as_printed(schedule, replace(constants, strong_convexity=0.0), rounds)


def lemma_5_as_printed(schedule, constants, rounds):
    sums = step_sums(schedule, rounds, constants.strong_convexity)
    regret = lemma_5(schedule, constants, rounds).regret - constants.diameter**2 / 4 * sums.growth
    T = horizons_of(horizons("rounds", rounds), schedule.batch_shape)
    return PaperBound(regret, violation_bound(sums.theta + sums.delta_mu, regret, constants, T))


def exact_strongly_convex(constants, rounds, beta=2 / 3):
    schedule = StronglyConvexSchedule(constants.gradient_bound, constants.strong_convexity, beta)
    return lemma_5(schedule, constants, rounds)
