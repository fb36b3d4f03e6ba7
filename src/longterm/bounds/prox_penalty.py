"""The prox-penalty family: regret and *hard* violation (`docs/after_the_paper.md`).

For any z with g_t(z) ≤ 0, a_t = ‖x_t − z‖² and δ_t = x_{t+1} − x_t, the step gives

    f_t(x_t) − f_t(z) + w_t [g_t(x_{t+1})]₊ ≤ G_f²/(4α_t) + α_t (a_t − a_{t+1}) − (σ/2) a_t
    f_t(x_t) − f_t(z) + (α_t/2) ‖δ_t‖²      ≤ G_f²/(2α_t) + α_t (a_t − a_{t+1}) − (σ/2) a_t
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm._arrays import FloatArray
from longterm.bounds._decoupled import power_sum
from longterm.bounds.base import Bound, horizons
from longterm.learners._penalty_family import PenaltyFamily
from longterm.learners.coldq import COLDQ
from longterm.theory.facts import Constants


def prox_penalty(learner: PenaltyFamily, constants: Constants, rounds: ArrayLike) -> Bound:
    """`ProxPenalty`, `RECOO` and `COLDQ` with a fixed g, for any x* with g(x*) ≤ 0 and any losses.

        Σ f_t(x_t) − f_t(x*) ≤ P_T = Σ G_f²/(4α_t) + r²[α_1 − σ/2]₊ + Δ² Σ_{t≥2} [α_t − α_{t−1} − σ/2]₊
        Σ [g(x_t)]₊          ≤ min(D, G_g r) + Σ_{t<T} (F + G_f²/(4α_t))/(w t^e) + r² α_1/w       where w_t ≥ w t^e

    (σ counts for α_t in proportion to t only.) For `COLDQ` the second line is min(D, G_g r) + (P_{T−1} + F(T − 1))/γ.

    >>> from longterm.learners import ProxPenalty
    >>> from longterm.problems import two_dimensional
    >>> from longterm.bounds import prox_penalty
    >>> problem = two_dimensional()
    >>> bound = prox_penalty(ProxPenalty.for_problem(problem), problem.constants, [100, 10_000])
    >>> bound.regret.round(1), bound.violation.round(2)
    (array([ 53. , 562.1]), array([2.9 , 2.98]))
    """
    T, c = horizons(rounds, learner.batch_shape), constants
    first = min(c.constraint_bound, c.constraint_gradient_bound * c.radius)
    later = np.where(T > 1, _left_after_steps(learner, c, np.maximum(T - 1, 1.0)), 0.0)
    return Bound(*np.broadcast_arrays(_regret(learner, c, T), first + later))


def prox_penalty_varying(learner: PenaltyFamily, constants: Constants, rounds: ArrayLike) -> Bound:
    """The same with g_t that change, for any x* with g_t(x*) ≤ 0 in every round: regret at most P_T, and

    Σ [g_t(x_t)]₊ ≤ Σ_{t≤T} (F + G_f²/(4α_t))/(w t^e) + r² α_1/w + G_g √( 2 Σ 1/α_t · (P_T + Σ G_f²/(4α_t) + F T) ).
    """
    T, c = horizons(rounds, learner.batch_shape), constants
    regret, inverse = _regret(learner, c, T), _inverse_sum(learner, T)
    energy = regret + c.loss_gradient_bound**2 / 4 * inverse + c.loss_range * T
    moves = c.constraint_gradient_bound * np.sqrt(2 * inverse * energy)
    return Bound(*np.broadcast_arrays(regret, _left_after_steps(learner, c, T) + moves))


def _regret(learner: PenaltyFamily, c: Constants, T: FloatArray) -> FloatArray:
    """P_T."""
    alpha, power = np.asarray(learner.alpha), np.asarray(learner.power)
    credit = np.where(power == 1, c.strong_convexity / 2, 0.0)
    growth = np.where(power == 1, np.maximum(alpha - credit, 0.0) * (T - 1), alpha * (T**power - 1))
    spread = c.radius**2 * np.maximum(alpha - credit, 0.0) + c.diameter**2 * growth
    return np.asarray(c.loss_gradient_bound**2 / 4 * _inverse_sum(learner, T) + spread)


def _left_after_steps(learner: PenaltyFamily, c: Constants, T: FloatArray) -> FloatArray:
    """Σ_{t≤T} [g_t(x_{t+1})]₊ at most."""
    weight, exponent = (np.asarray(part) for part in learner.least_weight())
    if isinstance(learner, COLDQ):
        return np.asarray((_regret(learner, c, T) + c.loss_range * T) / weight)
    alpha, power = np.asarray(learner.alpha), np.asarray(learner.power)
    losses = c.loss_range * _sum(T, exponent) + c.loss_gradient_bound**2 / (4 * alpha) * _sum(T, exponent + power)
    return np.asarray((losses + alpha * c.radius**2) / weight)


def _inverse_sum(learner: PenaltyFamily, T: FloatArray) -> FloatArray:
    """Σ 1/α_t at most."""
    return np.asarray(_sum(T, np.asarray(learner.power)) / np.asarray(learner.alpha))


def _sum(T: FloatArray, s: FloatArray) -> FloatArray:
    """Σ_{t≤T} t^{−s} at most, s = 1 included."""
    one = s == 1
    return np.where(one, 1 + np.log(T), power_sum(T, np.where(one, 0.5, s)))
