"""What the bounds of learners with a prox share: sums of powers, and the part of the dual.

For steps θ_t = θ_0/t^β, μ_t = 1/(θ_t (t + 1)), a primal side Σ Δf_t + Σ ⟨λ_t, g(x_t)⟩ ≤ P and D the bound of the vector
(g_1, …, g_m)'s length (`docs/aftrl.md`),

    Σ Δf_t                 ≤ P + Q,   Q = (D²/2) Σ 1/(θ_t t)
    Σ_j [ Σ_t g_j(x_t) ]₊² ≤ 2 (S_θ + θ_0) (P + Q + F T)
"""

from __future__ import annotations

import numpy as np

from longterm._arrays import FloatArray
from longterm.bounds.base import Bound
from longterm.constraints.prox import Prox
from longterm.theory.facts import Constants
from longterm.theory.schedules import DecoupledSchedule, StronglyConvexDecoupledSchedule


def power_sum(T: FloatArray, s: FloatArray) -> FloatArray:
    """Σ_{t≤T} t^{−s} at most, for s > 0 other than 1: the first term, and the integral from 1 to T."""
    return np.asarray(1 + (T ** (1 - s) - 1) / (1 - s))


def with_dual(
    primal: FloatArray,
    prox: Prox,
    schedule: DecoupledSchedule | StronglyConvexDecoupledSchedule,
    constants: Constants,
    T: FloatArray,
) -> Bound:
    """From P to both bounds. The violation is max_j Σ_t g_j(x_t)."""
    theta_0, beta = np.asarray(schedule.theta_0), np.asarray(schedule.beta)
    D = min(prox.values_norm_bound(), np.sqrt(prox.constraint.count) * constants.constraint_bound)
    regret = primal + D**2 / (2 * theta_0) * power_sum(T, 1 - beta)
    weight = theta_0 * (power_sum(T, beta) + 1)
    return Bound(regret, np.sqrt(2 * weight * (regret + constants.loss_range * T)))
