"""The networked saddle point: regret, and how far agents end up apart.

For any common point u and any losses (`docs/derivations.md`; σ and L = ℓ√E as in the learner's file),

    Σ_t Σ_i f_{i,t}(x_{i,t}) − f_{i,t}(u) + ℓ Σ_e ‖Σ_t (x_{i,t} − x_{j,t})‖ ≤ P
    P = r²/(2η) + ηT (G_f + σL)²/2 + L²/(2μ) + μT σ²r²/2
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm._arrays import FloatArray
from longterm.bounds.base import Bound, horizons
from longterm.errors import InputError
from longterm.learners.networked_saddle_point import NetworkedSaddlePoint, holding_multiplier
from longterm.theory.facts import Constants


def networked_saddle_point(learner: NetworkedSaddlePoint, constants: Constants, rounds: ArrayLike) -> Bound:
    """Regret ≤ P − L²/(2μ), and max_j Σ_t g_j(x_t) ≤ (P + FT)/ℓ, for arbitrary losses.

    The violation is the long-term one, a coordinate of Σ_t (x_i − x_j) over one edge. On average this does not
    vanish: against an adversary no more is proved. `mean_disagreement` is for losses drawn from one law, and vanishes.
    """
    P, dual, T = _terms(learner, constants, rounds)
    return Bound(P - dual, (P + constants.loss_range * T) / learner.multiplier_set.radius)


def mean_disagreement(learner: NetworkedSaddlePoint, constants: Constants, rounds: ArrayLike) -> FloatArray:
    """E Σ_e ‖x̄_i − x̄_j‖ ≤ P/((ℓ − w) T) for the means x̄ of T rounds whose losses are drawn independently from one law.

    >>> from longterm.problems import consensus
    >>> from longterm.bounds import mean_disagreement
    >>> from longterm.learners import NetworkedSaddlePoint
    >>> from longterm.sets import Box
    >>> problem = consensus(3, [(0, 1), (1, 2)], Box.cube(1, -1.0, 1.0))
    >>> learner = NetworkedSaddlePoint.for_problem(problem, horizon=20_000)
    >>> round(float(mean_disagreement(learner, problem.constants, 20_000)), 3)
    0.132
    """
    P, _, T = _terms(learner, constants, rounds)
    spare = learner.multiplier_set.radius - holding_multiplier(learner.consensus, constants.loss_gradient_bound)
    if spare <= 0:
        raise InputError("learner", "its multipliers are too small to hold agents together", "Use a larger Λ: ℓ > w")
    return P / (spare * T)


def _terms(learner: NetworkedSaddlePoint, c: Constants, rounds: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    """P, its part L²/(2μ), and T."""
    T, eta, mu = horizons(rounds, learner.batch_shape), np.asarray(learner.eta), np.asarray(learner.mu)
    largest, _ = learner.consensus.singular_values
    L = learner.multiplier_set.radius * np.sqrt(len(learner.consensus.edges))
    dual = np.asarray(L**2 / (2 * mu))
    primal = c.radius**2 / (2 * eta) + eta * T * (c.loss_gradient_bound + largest * L) ** 2 / 2
    return primal + dual + mu * T * (largest * c.radius) ** 2 / 2, dual, T
