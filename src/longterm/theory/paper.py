"""Lemma 5 and Theorem 1 of Jenatton, Huang and Archambeau (2016) for A-OGD, as printed and corrected.

Lemma 5, corrected (see `docs/proofs/theory.md`): for a schedule with C1–C3 and any comparator x* with g_t(x*) ≤ 0 in
every round,

    Σ f_t(x_t) − f_t(x*) ≤ 𝓡 = r² δ_η/2 + G² S_η + D² S_μ + (Δ²/2) U_η
    Σ g(x_t)             ≤ √( 2 (S_θ + δ_μ) (𝓡 + F T) )

with r = max ‖x_1 − x‖ over B and its diameter Δ. On the paper's ball r = R and Δ = 2R, and the last term is 2R² U_η.
The paper prints R² U_η, from ‖x_t − x‖² ≤ 2R², which is false: the bound is 4R².
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.theory.conditions import check_conditions
from longterm.theory.facts import Constants
from longterm.theory.schedules import ConvexSchedule, Schedule, StronglyConvexSchedule
from longterm.theory.step_sums import step_sums


class PaperBound(NamedTuple):
    """The two bounds of a theorem of the paper at each horizon.

    Parameters
    ----------
    regret : array
        The upper bound on Σ f_t(x_t) − f_t(x*).
    violation : array
        The upper bound on the signed Σ g(x_t).
    """

    regret: FloatArray
    violation: FloatArray


def lemma_5(schedule: Schedule, constants: Constants, rounds: ArrayLike, *, as_printed: bool = False) -> PaperBound:
    """Return the bounds of Lemma 5 with exact sums. Raise ScheduleError if the schedule violates C1–C3.

    Parameters
    ----------
    schedule : Schedule
        θ, η and μ.
    constants : Constants
        The constants of the problem.
    rounds : array_like of int
        The horizons T.
    as_printed : bool
        Use the paper's R² U_η, which is too small, instead of (Δ²/2) U_η.

    Examples
    --------
    >>> from longterm.problems import two_dimensional
    >>> from longterm.theory.paper import lemma_5
    >>> from longterm.theory.schedules import StronglyConvexSchedule
    >>> constants = two_dimensional().constants
    >>> bound = lemma_5(StronglyConvexSchedule(constants.gradient_bound, 1.0, beta=0.5), constants, 3)
    >>> round(float(bound.regret), 4), round(float(bound.violation), 4)
    (7.4248, 46.0051)
    """
    horizons = validate.horizons("rounds", rounds)
    G, sigma = constants.gradient_bound, constants.strong_convexity
    check_conditions(schedule, int(horizons.max()), gradient_bound=G, strong_convexity=sigma).require()
    sums = step_sums(schedule, rounds, sigma)
    spread = (constants.diameter / 2) ** 2 if as_printed else constants.diameter**2 / 2
    regret = (
        # The first term is dropped if 1/η_1 < σ, where it would be negative.
        constants.radius**2 * np.maximum(sums.delta_eta, 0.0) / 2
        + spread * sums.growth
        + G**2 * sums.eta
        + constants.constraint_bound**2 * sums.mu
    )
    T = horizons.astype(np.float64).reshape(horizons.shape + (1,) * len(schedule.batch_shape))
    return PaperBound(regret, violation_bound(sums.theta + sums.delta_mu, regret, constants, T))


def theorem_1(constants: Constants, rounds: ArrayLike, beta: Hyper = 2 / 3, *, exact_sums: bool = False) -> PaperBound:
    """Return the bounds of Theorem 1, corrected, for A-OGD with `ConvexSchedule` on any enclosing set.

    The regret is at most r²G/Δ + ΔG(T^β − 1) + ΔG T^{1−β}/(2(1 − β)) + D² T^β/(3βΔG). On a ball this is
    [2RG + D²/(6βRG)] T^β + RG T^{1−β}/(1 − β) − 3RG/2.

    Parameters
    ----------
    constants : Constants
        The constants of the problem.
    rounds : array_like of int
        The horizons T.
    beta : float or array
        β.
    exact_sums : bool
        Use exact sums instead of closed forms.

    Examples
    --------
    >>> from longterm.problems import late_reversal
    >>> from longterm.theory.paper import theorem_1, theorem_1_as_printed
    >>> constants = late_reversal().constants
    >>> round(float(theorem_1(constants, 1000).regret), 2)
    228.5
    >>> round(float(theorem_1_as_printed(constants, 1000).regret), 2)
    160.0
    """
    schedule = ConvexSchedule(constants.diameter, constants.gradient_bound, beta)
    if exact_sums:
        return lemma_5(schedule, replace(constants, strong_convexity=0.0), rounds)
    T, b = _horizons(rounds, beta)
    RG = constants.diameter * constants.gradient_bound / 2
    regret = (
        constants.radius**2 * constants.gradient_bound / constants.diameter
        + 2 * RG * (T**b - 1)
        + RG * T ** (1 - b) / (1 - b)
        + constants.constraint_bound**2 * T**b / (6 * b * RG)
    )
    return PaperBound(regret, violation_bound(6 * RG * (T ** (1 - b) / (1 - b) + 1), regret, constants, T))


def theorem_1_as_printed(
    constants: Constants, rounds: ArrayLike, beta: Hyper = 2 / 3, *, exact_sums: bool = False
) -> PaperBound:
    """Return the bounds of Theorem 1 as printed. Its regret bound is false for β > ½ and large T. Use `theorem_1`.

    With R = Δ/2 the bounds are [RG + D²/(6βRG)] T^β + 2RG T^{1−β}/(1 − β), and √(24RG (that + F T) T^{1−β}/(1 − β)).
    `longterm.problems.late_reversal` is a counterexample.

    Parameters
    ----------
    constants : Constants
        The constants of the problem.
    rounds : array_like of int
        The horizons T.
    beta : float or array
        β.
    exact_sums : bool
        Return Lemma 5 as printed instead.
    """
    schedule = ConvexSchedule(constants.diameter, constants.gradient_bound, beta)
    if exact_sums:
        return lemma_5(schedule, replace(constants, strong_convexity=0.0), rounds, as_printed=True)
    T, b = _horizons(rounds, beta)
    RG = constants.diameter * constants.gradient_bound / 2
    D = constants.constraint_bound
    regret = (RG + D**2 / (6 * b * RG)) * T**b + 2 * RG * T ** (1 - b) / (1 - b)
    return PaperBound(regret, violation_bound(12 * RG * T ** (1 - b) / (1 - b), regret, constants, T))


def theorem_1_strongly_convex(
    constants: Constants, rounds: ArrayLike, beta: Hyper = 2 / 3, *, exact_sums: bool = False
) -> PaperBound:
    """Return the bounds of the strongly convex Theorem 1, for A-OGD with `StronglyConvexSchedule`.

    They are (G²/σ)(1 + ln T) + D² σ T^β/(6βG²), and √(2 (6G²/σ)(T^{1−β}/(1 − β) + 1)(that + F T)). Only the regret is
    smaller than in the convex case, because on a ball 6G²/σ ≥ 6RG.

    Parameters
    ----------
    constants : Constants
        The constants of the problem.
    rounds : array_like of int
        The horizons T.
    beta : float or array
        β.
    exact_sums : bool
        Use exact sums instead of closed forms.
    """
    G, sigma = constants.gradient_bound, constants.strong_convexity
    if sigma <= 0:
        raise InputError("constants", "strong_convexity is 0", "Use theorem_1 for losses that are only convex")
    schedule = StronglyConvexSchedule(G, sigma, beta)
    if exact_sums:
        return lemma_5(schedule, constants, rounds)
    T, b = _horizons(rounds, beta)
    regret = G**2 / sigma * (1 + np.log(T)) + constants.constraint_bound**2 * sigma * T**b / (6 * b * G**2)
    return PaperBound(regret, violation_bound(6 * G**2 / sigma * (T ** (1 - b) / (1 - b) + 1), regret, constants, T))


def _horizons(rounds: ArrayLike, beta: Hyper) -> tuple[FloatArray, FloatArray]:
    """Return T followed by one axis for each axis of β, and β."""
    T, b = validate.horizons("rounds", rounds).astype(np.float64), np.asarray(beta)
    return T.reshape(T.shape + (1,) * b.ndim), b


def violation_bound(weight: FloatArray, regret: FloatArray, constants: Constants, T: FloatArray) -> FloatArray:
    """Return √(2 (S_θ + δ_μ)(𝓡 + F T)), which follows from Σ f_t(x_t) − f_t(x*) ≥ −F T."""
    return np.sqrt(2 * weight * np.maximum(regret + constants.loss_range * T, 0.0))
