"""Diagonal AdaGrad A-OGD: regret and signed violation (`docs/after_the_paper.md`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm._arrays import FloatArray
from longterm.bounds._decoupled import power_sum
from longterm.bounds.base import Bound, horizons
from longterm.learners.diagonal_adagrad_aogd import DiagonalAdaGradAOGD
from longterm.theory.facts import Constants


def diagonal_adagrad_aogd(learner: DiagonalAdaGradAOGD, constants: Constants, rounds: ArrayLike) -> Bound:
    """`DiagonalAdaGradAOGD`, for any losses, against x* with g_t(x*) ≤ 0 in every round.

        Σ f_t(x_t) − f_t(x*) ≤ D² S_μ + 2ΔG_f √T + Δ²G_g²/m_T,       m_T = min_{2≤t≤T} θ_t (t − 1)/(2(t + 1))
        Σ g_t(x_t)           ≤ √( 2 (S_θ + θ_0) (that + F T) )

    m_T is attained at 2 or at T, and S_μ ≤ (1/θ_0) Σ t^{β−1}. The notes' 6Δ²G²T^β/θ_0 has (t − 1)/(t + 1) ≥ 1/3 for all
    t; the last term here falls to a third of that. Δ is the Euclidean diameter: Σ_k Δ_k √S_k ≤ Δ √(Σ_k S_k).

    >>> from longterm import Problem
    >>> from longterm.learners import DiagonalAdaGradAOGD
    >>> from longterm.bounds import diagonal_adagrad_aogd
    >>> from longterm.constraints import Affine
    >>> from longterm.losses import Linear
    >>> from longterm.sets import Box
    >>> problem = Problem(Box.cube(2, -1.0, 1.0), Linear(2), Affine([[-0.5, -0.5]], [0.25]))
    >>> bound = diagonal_adagrad_aogd(DiagonalAdaGradAOGD.for_problem(problem), problem.constants, 1000)
    >>> [round(float(part), 1) for part in bound]
    [300.9, 1241.0]
    """
    T, c = horizons(rounds, learner.batch_shape), constants
    theta_0, beta = np.asarray(learner.theta_0), np.asarray(learner.beta)

    def left(t: FloatArray) -> FloatArray:
        """θ_t (t − 1)/(2(t + 1)): what the dual leaves of λ_t² to pay for the steps with."""
        return np.asarray(theta_0 / t**beta * (t - 1) / (2 * (t + 1)))

    least = np.minimum(left(np.asarray(2.0)), left(np.maximum(T, 2.0)))
    pull = np.where(T > 1, (c.diameter * c.constraint_gradient_bound) ** 2 / least, 0.0)
    regret = (
        c.constraint_bound**2 / theta_0 * power_sum(T, 1 - beta)
        + 2 * c.diameter * c.loss_gradient_bound * np.sqrt(T)
        + pull
    )
    weight = theta_0 * (power_sum(T, beta) + 1)
    return Bound(regret, np.sqrt(2 * weight * (regret + c.loss_range * T)))
