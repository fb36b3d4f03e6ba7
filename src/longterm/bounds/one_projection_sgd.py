"""SGD with one projection: what its rounds cost, and how good the answer is.

For steps with η (G_g² + θ²) ≤ θ/2, any losses and any x* in X (`docs/derivations.md`, with W = θ(T − 1) + 1/η),

    Σ f_t(x_t) − f_t(x*) + [Σ g(x_t)]₊² / (2W) ≤ P = r²/(2η) + ηT (G_f² + D²)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.bounds.base import Bound, horizons
from longterm.errors import ScheduleError
from longterm.learners.one_projection_sgd import OneProjectionSGD
from longterm.theory.facts import Constants


def one_projection_sgd(learner: OneProjectionSGD, constants: Constants, rounds: ArrayLike) -> Bound:
    """Regret ≤ P and Σ g(x_t) ≤ √(2W (P + FT)) of the decisions played, for arbitrary losses."""
    P, W, T = _terms(learner, constants, rounds)
    return Bound(P, np.sqrt(2 * W * (P + constants.loss_range * T)))


def projected_answer(learner: OneProjectionSGD, constants: Constants, rounds: ArrayLike, slope: float) -> FloatArray:
    """E f(answer) − min_X f ≤ P/T + κ²W/(2T) with κ = G_f/ρ, for losses drawn independently with mean f.

    `slope` is the ρ of dist(x, X) ≤ [g(x)]₊/ρ on B.

    >>> import numpy as np
    >>> from longterm.problems import two_dimensional
    >>> from longterm.bounds import projected_answer
    >>> from longterm.learners import OneProjectionSGD
    >>> problem = two_dimensional()
    >>> learner = OneProjectionSGD.for_problem(problem, horizon=10_000, projection=lambda x: np.minimum(x, [0.25, np.inf]), slope=1.0)
    >>> round(float(projected_answer(learner, problem.constants, 10_000, slope=1.0)), 4)
    0.0978
    """
    P, W, T = _terms(learner, constants, rounds)
    kappa = constants.loss_gradient_bound / validate.positive_scalar("slope", slope)
    return (P + kappa**2 * W / 2) / T


def _terms(learner: OneProjectionSGD, c: Constants, rounds: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    """P, W and T."""
    theta, eta = np.asarray(learner.schedule.theta), np.asarray(learner.schedule.eta)
    excess = eta * (c.constraint_gradient_bound**2 + theta**2) - theta / 2
    if np.any(excess > 1e-12 * theta) or np.any(learner.schedule.mu != eta):
        raise ScheduleError(
            "learner",
            "its steps break η (G_g² + θ²) ≤ θ/2 or μ = η",
            "Use OneProjectionSGD.tuned, a smaller η, or a θ near 2ηG_g²",
        )
    T = horizons(rounds, learner.batch_shape)
    P = c.radius**2 / (2 * eta) + eta * T * (c.loss_gradient_bound**2 + c.constraint_bound**2)
    return P, theta * (T - 1) + 1 / eta, T
