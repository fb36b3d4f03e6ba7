"""Lemma 5 and Theorem 1 of Jenatton, Huang and Archambeau (2016) for A-OGD, as printed and corrected.

Lemma 5, corrected (`docs/proofs/theory.md`), for a schedule with C1–C3 and any x* with g_t(x*) ≤ 0 in every round:

    Σ f_t(x_t) − f_t(x*) ≤ 𝓡 = r² [δ_η]₊/2 + G² S_η + D² S_μ + (Δ²/2) U_η
    Σ g(x_t)             ≤ √( 2 W (𝓡 + F T) ),     W = S_θ + δ_μ.

With a penalty θ_t c λ² in place of θ_t λ²/2, W = 2c (S_θ − θ_1) + 1/μ_1 (`docs/proofs/after_the_paper.md`).

The paper prints R² U_η where the last term is 2R² U_η on its ball. It uses ‖x_t − x‖² ≤ 2R², but the bound is 4R².
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.problems.constants import Constants
from longterm.theory.bounds import horizons_of
from longterm.theory.conditions import check_conditions
from longterm.theory.schedules import Schedule
from longterm.theory.step_sums import descent_cost, step_sums


class PaperBound(NamedTuple):
    """The bounds on the regret and on the signed violation Σ g(x_t) at each horizon.

    Parameters
    ----------
    regret, violation : array
        The two upper bounds.
    """

    regret: FloatArray
    violation: FloatArray


def lemma_5(schedule: Schedule, constants: Constants, rounds: ArrayLike, penalty: float = 0.5) -> PaperBound:
    """Return the bounds of Lemma 5 with exact sums. Raise ScheduleError if the schedule violates C1–C3.

    Parameters
    ----------
    schedule : Schedule
        θ, η and μ.
    constants : Constants
        The constants of the problem.
    rounds : array_like of int
        The horizons T.
    penalty : float
        The c of the penalty θ_t c λ². The paper has ½.

    Examples
    --------
    >>> import longterm as lt
    >>> from longterm.theory.schedules import StronglyConvexSchedule
    >>> constants = lt.problems.two_dimensional().constants
    >>> bound = lt.theory.lemma_5(StronglyConvexSchedule(constants.gradient_bound, 1.0, beta=0.5), constants, 3)
    >>> round(float(bound.regret), 4), round(float(bound.violation), 4)
    (7.4248, 46.0051)
    """
    horizons = validate.horizons("rounds", rounds)
    G, sigma = constants.gradient_bound, constants.strong_convexity
    T = int(horizons.max())
    check_conditions(schedule, T, gradient_bound=G, strong_convexity=sigma, penalty=penalty).require()
    sums, first = step_sums(schedule, rounds, sigma), schedule.at(np.asarray(1), np.zeros(1))
    regret = descent_cost(sums, constants, G) + constants.constraint_bound**2 * sums.mu
    weight = 2 * penalty * (sums.theta - first.theta) + 1 / first.mu
    return PaperBound(regret, violation_bound(weight, regret, constants, horizons_of(horizons, schedule.batch_shape)))


def theorem_1(constants: Constants, rounds: ArrayLike, beta: Hyper = 2 / 3) -> PaperBound:
    """Return the bounds of Theorem 1, corrected, for A-OGD with `ConvexSchedule` on any enclosing set.

    The regret is at most r²G/Δ + ΔG(T^β − 1) + ΔG T^{1−β}/(2(1 − β)) + D² T^β/(3βΔG).

    Parameters
    ----------
    constants : Constants
        The constants of the problem.
    rounds : array_like of int
        The horizons T.
    beta : float or array
        β.

    Examples
    --------
    >>> import longterm as lt
    >>> from longterm.problems.named.adversarial import late_reversal
    >>> constants = late_reversal().constants
    >>> round(float(lt.theory.theorem_1(constants, 1000).regret), 2)
    228.5
    """
    T, b = _horizons(rounds, beta)
    RG = constants.diameter * constants.gradient_bound / 2
    regret = (
        constants.radius**2 * constants.gradient_bound / constants.diameter
        + 2 * RG * (T**b - 1)
        + RG * T ** (1 - b) / (1 - b)
        + constants.constraint_bound**2 * T**b / (6 * b * RG)
    )
    return PaperBound(regret, violation_bound(6 * RG * (T ** (1 - b) / (1 - b) + 1), regret, constants, T))


def theorem_1_as_printed(constants: Constants, rounds: ArrayLike, beta: Hyper = 2 / 3) -> PaperBound:
    """Return the bounds of Theorem 1 as printed. Its regret bound is false for β > ½ and large T. Use `theorem_1`.

    With R = Δ/2 the bounds are [RG + D²/(6βRG)] T^β + 2RG T^{1−β}/(1 − β), and √(24RG (that + F T) T^{1−β}/(1 − β)).
    `named.adversarial.late_reversal` is a counterexample.

    Parameters
    ----------
    constants : Constants
        The constants of the problem.
    rounds : array_like of int
        The horizons T.
    beta : float or array
        β.
    """
    T, b = _horizons(rounds, beta)
    RG = constants.diameter * constants.gradient_bound / 2
    regret = (RG + constants.constraint_bound**2 / (6 * b * RG)) * T**b + 2 * RG * T ** (1 - b) / (1 - b)
    return PaperBound(regret, violation_bound(12 * RG * T ** (1 - b) / (1 - b), regret, constants, T))


def theorem_1_strongly_convex(constants: Constants, rounds: ArrayLike, beta: Hyper = 2 / 3) -> PaperBound:
    """Return the bounds of the strongly convex Theorem 1, for A-OGD with `StronglyConvexSchedule`.

    They are (G²/σ)(1 + ln T) + D² σ T^β/(6βG²), and √(2 (6G²/σ)(T^{1−β}/(1 − β) + 1)(that + F T)).

    Parameters
    ----------
    constants : Constants
        The constants of the problem.
    rounds : array_like of int
        The horizons T.
    beta : float or array
        β.
    """
    G, sigma = constants.gradient_bound, constants.strong_convexity
    if sigma <= 0:
        raise InputError("constants", "strong_convexity is 0", "Use theorem_1 for losses that are only convex")
    T, b = _horizons(rounds, beta)
    regret = G**2 / sigma * (1 + np.log(T)) + constants.constraint_bound**2 * sigma * T**b / (6 * b * G**2)
    return PaperBound(regret, violation_bound(6 * G**2 / sigma * (T ** (1 - b) / (1 - b) + 1), regret, constants, T))


def _horizons(rounds: ArrayLike, beta: Hyper) -> tuple[FloatArray, FloatArray]:
    """Return T followed by one axis for each axis of β, and β, validated."""
    b = np.asarray(validate.trade_off("beta", beta))
    return horizons_of(validate.horizons("rounds", rounds), b.shape), b


def violation_bound(weight: FloatArray, regret: FloatArray, constants: Constants, T: FloatArray) -> FloatArray:
    """Return √(2 (S_θ + δ_μ)(𝓡 + F T)), which follows from Σ f_t(x_t) − f_t(x*) ≥ −F T."""
    return np.sqrt(2 * weight * np.maximum(regret + constants.loss_range * T, 0.0))
