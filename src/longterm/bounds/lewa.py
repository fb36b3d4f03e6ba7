"""LEWA: regret and violation of exponential weights with a multiplier."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm.bounds.base import Bound, horizons
from longterm.errors import ScheduleError
from longterm.learners.lewa import LEWA
from longterm.theory.facts import Constants


def lewa(learner: LEWA, constants: Constants, rounds: ArrayLike) -> Bound:
    """For steps with ηR_g²/4 + μθ² ≤ θ/2 and any x* with g_t(x*) ≤ 0 in every round (`docs/derivations.md`),

        Σ f_t(x_t) − f_t(x*) ≤ P = ln d/η + ηT R_f²/4 + μT D²
        Σ g_t(x_t)           ≤ √( 2 (θ(T − 1) + 1/μ) (P + F T) )

    R_f and R_g are the learner's spreads, D and F the constants'; F T bounds −Σ Δf_t.

    >>> from longterm import Problem
    >>> from longterm.bounds import lewa
    >>> from longterm.constraints import Affine
    >>> from longterm.learners import LEWA
    >>> from longterm.losses import Linear
    >>> from longterm.sets import Simplex
    >>> problem = Problem(Simplex(3), Linear(3, 2**0.5), Affine([[1.0, 0.0, 0.0]], [0.5]))
    >>> learner = LEWA.for_problem(problem, horizon=3000, loss_spread=1.0, constraint_spread=1.0)
    >>> [round(float(part), 1) for part in lewa(learner, problem.constants, 3000)]
    [81.2, 971.3]
    """
    theta, eta, mu = (np.asarray(getattr(learner.schedule, name)) for name in ("theta", "eta", "mu"))
    if np.any(eta * learner.constraint_spread**2 / 4 + mu * theta**2 - theta / 2 > 1e-12 * theta):
        raise ScheduleError(
            "learner", "its steps break ηR_g²/4 + μθ² ≤ θ/2", "Use LEWA.tuned, a smaller η, or a θ near ηR_g²/2"
        )
    T = horizons(rounds, learner.batch_shape)
    D, d = constants.constraint_bound, learner.enclosing_set.dimension
    regret = np.log(d) / eta + eta * T * learner.loss_spread**2 / 4 + mu * T * D**2
    weight = theta * (T - 1) + 1 / mu
    return Bound(regret, np.sqrt(2 * weight * (regret + constants.loss_range * T)))
