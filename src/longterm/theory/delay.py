"""A-OGD with delayed feedback: Lemma 5 when the gradient of round s is taken at x_s and arrives late.

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

import numpy as np
from numpy.typing import ArrayLike

from longterm._arrays import FloatArray
from longterm.errors import InputError
from longterm.theory.conditions import step_sums, tabulate
from longterm.theory.facts import Constants
from longterm.theory.paper import Bound, lemma_5
from longterm.theory.schedules import Schedule


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
    >>> from longterm.theory.delay import gradient_bound_under_delay
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
    >>> from longterm.theory.delay import gradient_bound_under_delay, lemma_5_delayed
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
    weight = 2 * (sums.theta + sums.delta_mu)
    return Bound(regret, np.sqrt(weight * np.maximum(regret + constants.loss_range * T, 0.0)))


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
