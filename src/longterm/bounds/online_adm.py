"""Online ADM: regret, and how far the decisions are from the constraint set.

For any x* in B ∩ C and any losses (`docs/derivations.md`),

    Σ_{t≤T} f_t(x_t) − f_t(x*) + ρ/2 Σ_{t≤T} ‖x_{t+1} − z_t‖² + ‖y_{T+1}‖²/(2ρ) ≤ P_T = (η + ρ) r²/2 + T G_f²/(2η)

Points x_2 … x_T enter the violation, so its bounds use T − 1 rounds of this; x_1 adds at most min(D, G_g r).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm._arrays import FloatArray
from longterm.bounds.base import Bound, horizons
from longterm.errors import InputError
from longterm.learners.online_adm import FeasibleOnlineADM, OnlineADM
from longterm.theory.facts import Constants


def online_adm(learner: OnlineADM, constants: Constants, rounds: ArrayLike) -> Bound:
    """`OnlineADM`: regret ≤ P_T, and for the *hard* violation, with S = (2/ρ)(P_{T−1} + F(T − 1)),

    Σ [g(x_t)]₊ ≤ min(D, G_g r) + G_g √( (T − 1) S ).

    >>> import numpy as np
    >>> from longterm.problems import two_dimensional
    >>> from longterm.bounds import online_adm, online_adm_affine
    >>> from longterm.learners import OnlineADM
    >>> problem = two_dimensional()
    >>> learner = OnlineADM.for_problem(problem, horizon=500, projection=lambda x: np.minimum(x, [0.25, np.inf]))
    >>> [round(float(part), 1) for part in online_adm(learner, problem.constants, 500)]
    [67.1, 155.2]
    >>> round(float(online_adm_affine(learner, problem.constants, 500)), 1)
    7.9
    """
    T = horizons(rounds, learner.batch_shape)
    drift = np.sqrt(T - 1) * _drift(learner, constants, T)
    return Bound(_regret(learner, constants, T), _first(constants) + constants.constraint_gradient_bound * drift)


def online_adm_affine(learner: OnlineADM, constants: Constants, rounds: ArrayLike) -> FloatArray:
    """`OnlineADM` under affine constraints: each has Σ g_j(x_t) ≤ min(D, G_g r) + G_g √S, with S as above."""
    T = horizons(rounds, learner.batch_shape)
    return _first(constants) + constants.constraint_gradient_bound * _drift(learner, constants, T)


def feasible_online_adm(learner: FeasibleOnlineADM, constants: Constants, rounds: ArrayLike) -> Bound:
    """`FeasibleOnlineADM`: regret ≤ (η + ρ) r²/2 + T G_f²/(2ρ), violation 0."""
    T, eta, rho = horizons(rounds, learner.batch_shape), np.asarray(learner.eta), np.asarray(learner.rho)
    regret = (eta + rho) * constants.radius**2 / 2 + T * constants.loss_gradient_bound**2 / (2 * rho)
    return Bound(regret, np.zeros_like(regret))


def _regret(learner: OnlineADM, c: Constants, T: FloatArray) -> FloatArray:
    """P_T."""
    eta, rho = np.asarray(learner.eta), np.asarray(learner.rho)
    if np.any(eta <= 0):
        raise InputError("learner", "plays x_t with η = 0", "The theorem needs a proximal term, η > 0")
    return np.asarray((eta + rho) * c.radius**2 / 2 + T * c.loss_gradient_bound**2 / (2 * eta))


def _first(c: Constants) -> float:
    """[g(x_1)]₊ at most, given that X is not empty."""
    return min(c.constraint_bound, c.constraint_gradient_bound * c.radius)


def _drift(learner: OnlineADM, c: Constants, T: FloatArray) -> FloatArray:
    """√( (2/ρ)(P_{T−1} + F(T − 1)) )."""
    return np.asarray(np.sqrt(2 / np.asarray(learner.rho) * (_regret(learner, c, T - 1) + c.loss_range * (T - 1))))
