"""A-OGD: Lemma 5 and Theorem 1 of Jenatton, Huang and Archambeau 2016, as printed, corrected, and with late feedback.

Lemma 5 of the paper, with its slip mended (see `docs/theory.md`): for a schedule with C1–C3 and any
comparator x* with g_t(x*) ≤ 0 in every round,

    Σ f_t(x_t) − f_t(x*) ≤ 𝓡 = r² δ_η/2 + G² S_η + D² S_μ + (Δ²/2) U_η
    Σ g(x_t)             ≤ √( 2 (S_θ + δ_μ) (𝓡 + F T) )

with r = max ‖x_1 − x‖ over B and Δ its diameter. For the paper's ball r = R and Δ = 2R, and the last term
is 2R² U_η; the paper prints R² U_η, from ‖x_t − x‖² ≤ 2R², which is false (it is ≤ 4R²).

**With delayed feedback**: Lemma 5 when the gradient of round s is taken at x_s and arrives late.

Delay at most τ: when the feedback of a round arrives, at most τ later rounds have been asked for. The k-th
feedback to arrive makes the k-th update, with the steps of k. For a schedule with C1–C3 and any comparator
x* with g_s(x*) ≤ 0 in every round, summed over the T rounds whose feedback arrived,

    Σ f_s(x_s) − f_s(x*) ≤ 𝓡_τ = 𝓡 + (2 + 3c/2) τ G² S_η + Σ_{t≥2} Λ_t² [e_t]₊
    Σ g_s(x_s)           ≤ √( 2 (S_θ + δ_μ) (𝓡_τ + F T) )

with 𝓡 of Lemma 5, c = σΔ/G (0 for convex losses, never above 2) and

    e_t = G² ( (1 + (1 + c/2) τ) η_t + Σ_{i = t−2τ}^{t−1} η_i ) + μ_t θ_t² − θ_t/2      (C2 under delay: e_t ≤ 0)
    Λ_t = D max(μ_1, max_{i<t} 1/θ_i)                                                   (λ_t never exceeds it)

`docs/live.md` has the proof. With τ = 0 this is Lemma 5 itself. Steps made for G instead of
G_τ = G √(1 + 3τ) break C2 under delay, and the last sum, of order τ T^{1+β}, says so; with steps made for G_τ the
whole costs what Lemma 5 gives for G_τ, of order √τ more (`gradient_bound_under_delay`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.theory.conditions import check_conditions, step_sums, tabulate
from longterm.theory.facts import Constants
from longterm.theory.schedules import ConvexSchedule, Schedule, StronglyConvexSchedule


class Bound(NamedTuple):
    """The two lines of a theorem of the paper at each horizon.

    Parameters
    ----------
    regret : array
        Upper bound on Σ f_t(x_t) − f_t(x*).
    violation : array
        Upper bound on the signed Σ g(x_t).
    """

    regret: FloatArray
    violation: FloatArray


def lemma_5(schedule: Schedule, constants: Constants, rounds: ArrayLike, *, as_printed: bool = False) -> Bound:
    """Lemma 5 with exact sums, for any schedule that passes C1–C3; a ScheduleError says where one does not.

    The σ it uses is the constants': 0 for convex losses.

    Parameters
    ----------
    schedule : Schedule
        θ, η and μ.
    constants : Constants
        Of the problem.
    rounds : array_like of int
        The horizons T.
    as_printed : bool
        Whether to put the paper's R² U_η, which is too small, in the place of (Δ²/2) U_η.

    Returns
    -------
    Bound
        Regret and signed violation at each horizon.

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
        # Where 1/η_1 < σ the first term would be negative at best, so it is left out.
        constants.radius**2 * np.maximum(sums.delta_eta, 0.0) / 2
        + spread * sums.growth
        + G**2 * sums.eta
        + constants.constraint_bound**2 * sums.mu
    )
    T = horizons.astype(np.float64).reshape(horizons.shape + (1,) * len(schedule.batch_shape))
    return Bound(regret, _violation(sums.theta + sums.delta_mu, regret, constants, T))


def theorem_1(constants: Constants, rounds: ArrayLike, beta: Hyper = 2 / 3, *, exact_sums: bool = False) -> Bound:
    """Theorem 1, corrected, for A-OGD with `ConvexSchedule` on any enclosing set.

    Closed form: r²G/Δ + ΔG(T^β − 1) + ΔG T^{1−β}/(2(1 − β)) + D² T^β/(3βΔG) for the regret, which on a ball is [2RG +
    D²/(6βRG)] T^β + RG T^{1−β}/(1 − β) − 3RG/2.

    Parameters
    ----------
    constants : Constants
        Of the problem.
    rounds : array_like of int
        The horizons T.
    beta : float or array
        β.
    exact_sums : bool
        Whether to add the sums up instead of bounding them.

    Returns
    -------
    Bound
        Regret and signed violation at each horizon.

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
    schedule = _convex(constants, beta)
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
    return Bound(regret, _violation(6 * RG * (T ** (1 - b) / (1 - b) + 1), regret, constants, T))


def theorem_1_as_printed(
    constants: Constants, rounds: ArrayLike, beta: Hyper = 2 / 3, *, exact_sums: bool = False
) -> Bound:
    """Theorem 1 as the paper prints it. Its regret line is false for β > ½ and large T; use `theorem_1`.

    [RG + D²/(6βRG)] T^β + 2RG T^{1−β}/(1 − β), and √(24RG (that + F T) T^{1−β}/(1 − β)), with R = Δ/2. `late_reversal`
    is the problem that breaks it.

    Parameters
    ----------
    constants : Constants
        Of the problem.
    rounds : array_like of int
        The horizons T.
    beta : float or array
        β.
    exact_sums : bool
        Whether to give Lemma 5 as printed instead.

    Returns
    -------
    Bound
        Regret and signed violation at each horizon.
    """
    schedule = _convex(constants, beta)
    if exact_sums:
        return lemma_5(schedule, replace(constants, strong_convexity=0.0), rounds, as_printed=True)
    T, b = _horizons(rounds, beta)
    RG = constants.diameter * constants.gradient_bound / 2
    D = constants.constraint_bound
    regret = (RG + D**2 / (6 * b * RG)) * T**b + 2 * RG * T ** (1 - b) / (1 - b)
    return Bound(regret, _violation(12 * RG * T ** (1 - b) / (1 - b), regret, constants, T))


def theorem_1_strongly_convex(
    constants: Constants, rounds: ArrayLike, beta: Hyper = 2 / 3, *, exact_sums: bool = False
) -> Bound:
    """The strongly convex counterpart, for A-OGD with `StronglyConvexSchedule`. The slip does not touch it.

    (G²/σ)(1 + ln T) + D² σ T^β/(6βG²), and √(2 (6G²/σ)(T^{1−β}/(1 − β) + 1)(that + F T)). Only the regret is tighter
    than in the convex case: 6G²/σ stands where 6RG did, and on a ball is never smaller, because there G ≥ σR.

    Parameters
    ----------
    constants : Constants
        Of the problem.
    rounds : array_like of int
        The horizons T.
    beta : float or array
        β.
    exact_sums : bool
        Whether to add the sums up instead of bounding them.

    Returns
    -------
    Bound
        Regret and signed violation at each horizon.
    """
    G, sigma = constants.gradient_bound, constants.strong_convexity
    if sigma <= 0:
        raise InputError("constants", "strong_convexity is 0", "Use theorem_1 for losses that are only convex")
    schedule = StronglyConvexSchedule(G, sigma, beta)
    if exact_sums:
        return lemma_5(schedule, constants, rounds)
    T, b = _horizons(rounds, beta)
    regret = G**2 / sigma * (1 + np.log(T)) + constants.constraint_bound**2 * sigma * T**b / (6 * b * G**2)
    return Bound(regret, _violation(6 * G**2 / sigma * (T ** (1 - b) / (1 - b) + 1), regret, constants, T))


def _convex(constants: Constants, beta: Hyper) -> ConvexSchedule:
    return ConvexSchedule(constants.diameter, constants.gradient_bound, beta)


def _horizons(rounds: ArrayLike, beta: Hyper) -> tuple[FloatArray, FloatArray]:
    """T with the axes of β behind it, and β."""
    T, b = validate.horizons("rounds", rounds).astype(np.float64), np.asarray(beta)
    return T.reshape(T.shape + (1,) * b.ndim), b


def _violation(weight: FloatArray, regret: FloatArray, constants: Constants, T: FloatArray) -> FloatArray:
    """√(2 (S_θ + δ_μ)(𝓡 + F T)): from Σ Δf_t ≥ −F T."""
    return np.sqrt(2 * weight * np.maximum(regret + constants.loss_range * T, 0.0))


def gradient_bound_under_delay(gradient_bound: float, delay: int) -> float:
    """G_τ = G √(1 + 3τ): make the steps for this G where feedback comes up to τ rounds late.

    Parameters
    ----------
    gradient_bound : float
        G.
    delay : int
        τ.

    Returns
    -------
    float
        G_τ.

    Examples
    --------
    >>> from longterm.theory.paper import gradient_bound_under_delay
    >>> gradient_bound_under_delay(2.0, 0), gradient_bound_under_delay(2.0, 5)
    (2.0, 8.0)
    """
    return gradient_bound * math.sqrt(1 + 3 * _checked(delay))


def lemma_5_delayed(schedule: Schedule, constants: Constants, rounds: ArrayLike, delay: int) -> Bound:
    """Lemma 5 for feedback that comes up to `delay` rounds late, in any order.

    A round without feedback is in neither sum; it adds at most F to the regret and D to the violation.

    Parameters
    ----------
    schedule : Schedule
        Made for `gradient_bound_under_delay`.
    constants : Constants
        Of the problem.
    rounds : array_like of int
        The horizons T: rounds with feedback.
    delay : int
        τ.

    Returns
    -------
    Bound
        Regret and signed violation at each horizon.

    Examples
    --------
    >>> from longterm.problems import two_dimensional
    >>> from longterm.theory.paper import gradient_bound_under_delay, lemma_5_delayed
    >>> from longterm.theory.schedules import StronglyConvexSchedule
    >>> constants = two_dimensional().constants
    >>> G = gradient_bound_under_delay(constants.gradient_bound, 2)
    >>> for delay in (0, 2):
    ...     print(round(float(lemma_5_delayed(StronglyConvexSchedule(G, 1.0, 0.5), constants, 100, delay).regret), 1))
    20.9
    166.2
    """
    late = _checked(delay)
    horizons = np.asarray(rounds)
    undelayed = lemma_5(schedule, constants, rounds)
    sums = step_sums(schedule, rounds, constants.strong_convexity)
    G = constants.gradient_bound
    c = constants.strong_convexity * constants.diameter / G
    unpaid = np.cumsum(_unpaid(schedule, constants, int(horizons.max()), late, c), axis=0)
    regret = undelayed.regret + (2 + 1.5 * c) * late * G**2 * sums.eta + unpaid[horizons - 1]
    T = horizons.reshape(horizons.shape + (1,) * len(schedule.batch_shape))
    return Bound(regret, _violation(sums.theta + sums.delta_mu, regret, constants, T))


def _unpaid(schedule: Schedule, constants: Constants, horizon: int, late: int, c: float) -> FloatArray:
    """Λ_t² [e_t]₊ for t = 1 … horizon: what C2 under delay leaves of λ_t²."""
    chunks = list(tabulate(schedule, horizon))
    first, rest = chunks[0], chunks[1:]  # the first round of each further chunk is the last of the one before
    theta, eta, mu = (
        np.concatenate([getattr(first, name), *(getattr(chunk, name)[1:] for chunk in rest)])
        for name in ("theta", "eta", "mu")
    )
    before = np.concatenate([np.zeros_like(eta[:1]), np.cumsum(eta, axis=0)])  # Σ_{i<t} η_i in place t − 1
    t = np.arange(horizon)
    window = before[t] - before[np.maximum(t - 2 * late, 0)]
    excess = constants.gradient_bound**2 * ((1 + (1 + c / 2) * late) * eta + window) + mu * theta**2 - theta / 2
    reach = np.maximum.accumulate(1 / theta, axis=0)
    multiplier = constants.constraint_bound * np.maximum(reach, mu[:1])
    largest = np.concatenate([np.zeros_like(multiplier[:1]), multiplier[:-1]])  # λ_1 = 0
    # C2 holds with equality at t = 2 in Table 1; what rounding leaves of that is not an excess.
    return np.asarray(largest**2 * np.maximum(excess - 1e-12 * theta, 0.0))


def _checked(delay: int) -> int:
    if isinstance(delay, bool) or not isinstance(delay, (int, np.integer)) or delay < 0:
        raise InputError("delay", f"{delay!r} is not a number of rounds", "Give a whole number of at least 0")
    return int(delay)
