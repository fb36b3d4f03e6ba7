"""Lemma 5 with delayed feedback: the gradient of round s is taken at x_s and arrives up to τ rounds late.

The k-th feedback to arrive makes the k-th update, with the steps of k. For a schedule with C1–C3 and any comparator x*
with g_s(x*) ≤ 0 in every round, summed over the T rounds whose feedback arrived,

    Σ f_s(x_s) − f_s(x*) ≤ 𝓡_τ = 𝓡 + (2 + 3c/2) τ G² S_η + Σ_{t≥2} Λ_t² [e_t]₊,       c = σΔ/G
    Σ g_s(x_s)           ≤ √( 2 (S_θ + δ_μ) (𝓡_τ + F T) )
    e_t = G² ( (1 + (1 + c/2) τ) η_t + Σ_{i = t−2τ}^{t−1} η_i ) + μ_t θ_t² − θ_t/2      (C2 under delay: e_t ≤ 0)
    Λ_t = D max(μ_1, max_{i<t} 1/θ_i)                                                   (an upper bound on λ_t)

Steps made for G_τ = G √(1 + 3τ) have e_t ≤ 0, and the bounds are those of Lemma 5 for G_τ (`docs/proofs/delay.md`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.problems.constants import Constants
from longterm.theory.bounds import horizons_of
from longterm.theory.paper import PaperBound, lemma_5, violation_bound
from longterm.theory.schedules import Schedule
from longterm.theory.step_sums import step_sums, tabulate


def gradient_bound_under_delay(gradient_bound: float, delay: int) -> float:
    """Return G_τ = G √(1 + 3τ), the gradient bound for the steps of a learner with feedback up to τ rounds late.

    Parameters
    ----------
    gradient_bound : float
        G.
    delay : int
        τ.

    Examples
    --------
    >>> from longterm.theory.delay import gradient_bound_under_delay
    >>> gradient_bound_under_delay(2.0, 0), gradient_bound_under_delay(2.0, 5)
    (2.0, 8.0)
    """
    return gradient_bound * math.sqrt(1 + 3 * _validate_delay(delay))


def lemma_5_delayed(schedule: Schedule, constants: Constants, rounds: ArrayLike, delay: int) -> PaperBound:
    """Return the bounds of Lemma 5 for feedback up to `delay` rounds late, in any order.

    They hold for A-OGD with the paper's penalty λ²/2. Rounds without feedback are in neither sum. Each adds at most F
    to the regret and D to the violation.

    Parameters
    ----------
    schedule : Schedule
        θ, η and μ, made for `gradient_bound_under_delay`.
    constants : Constants
        The constants of the problem.
    rounds : array_like of int
        The horizons T, counted in rounds with feedback.
    delay : int
        τ.

    Examples
    --------
    >>> import longterm as lt
    >>> from longterm.theory.schedules import StronglyConvexSchedule
    >>> constants = lt.problems.two_dimensional().constants
    >>> schedule = StronglyConvexSchedule(lt.theory.gradient_bound_under_delay(constants.gradient_bound, 2), 1.0, 0.5)
    >>> [round(float(lt.theory.lemma_5_delayed(schedule, constants, 100, delay).regret), 1) for delay in (0, 2)]
    [20.9, 166.2]
    """
    tau, horizons, G = _validate_delay(delay), np.asarray(rounds), constants.gradient_bound
    undelayed = lemma_5(schedule, constants, rounds)
    sums = step_sums(schedule, rounds, constants.strong_convexity)
    c = constants.strong_convexity * constants.diameter / G
    excess = np.cumsum(_excess_terms(schedule, constants, int(horizons.max()), tau, c), axis=0)
    regret = undelayed.regret + (2 + 1.5 * c) * tau * G**2 * sums.eta + excess[horizons - 1]
    T = horizons_of(horizons, schedule.batch_shape)
    return PaperBound(regret, violation_bound(sums.theta + sums.delta_mu, regret, constants, T))


def _excess_terms(schedule: Schedule, constants: Constants, horizon: int, tau: int, c: float) -> FloatArray:
    """Return Λ_t² [e_t]₊ for t = 1 … horizon."""
    _, theta, eta, mu = tabulate(schedule, 1, horizon)
    before = np.concatenate([np.zeros_like(eta[:1]), np.cumsum(eta, axis=0)])  # Σ_{i<t} η_i at index t − 1
    t = np.arange(horizon)
    window = before[t] - before[np.maximum(t - 2 * tau, 0)]
    excess = constants.gradient_bound**2 * ((1 + (1 + c / 2) * tau) * eta + window) + mu * theta**2 - theta / 2
    reach = np.maximum.accumulate(1 / theta, axis=0)
    multiplier = constants.constraint_bound * np.maximum(reach, mu[:1])
    largest = np.concatenate([np.zeros_like(multiplier[:1]), multiplier[:-1]])  # λ_1 = 0
    # C2 holds with equality at t = 2 in Table 1, up to rounding.
    return np.asarray(largest**2 * np.maximum(excess - 1e-12 * theta, 0.0))


def _validate_delay(delay: int) -> int:
    if isinstance(delay, bool) or not isinstance(delay, (int, np.integer)) or delay < 0:
        raise InputError("delay", f"{delay!r} is not a number of rounds", "Give a whole number of at least 0")
    return int(delay)
