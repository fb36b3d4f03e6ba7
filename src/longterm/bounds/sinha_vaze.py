"""Sinha and Vaze (2024): regret and *hard* violation, g_t of an adversary (`docs/after_the_paper.md`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm._arrays import FloatArray
from longterm.bounds.base import Bound, horizons
from longterm.errors import InputError
from longterm.learners.inner import StronglyConvexOGD
from longterm.learners.prices import ExponentialPrice, QuadraticPrice
from longterm.learners.sinha_vaze import SinhaVaze
from longterm.theory.facts import Constants


def sinha_vaze(learner: SinhaVaze, constants: Constants, rounds: ArrayLike) -> Bound:
    """`SinhaVaze.convex` in any round t ≤ T. With s_f = √2 C G_f, s_g = √2 C G_g and ω = 1/(2√T),

        Σ f_s(x_s) − f_s(x*) ≤ s_f √t (1 + ω)
        Σ [g_s(x_s)]₊        ≤ (s_g/ω) ln( (1 + √t + F t/s_f)/(1 − ω√t) )

    C is the inner learner's: √2 Δ for AdaGrad, which makes s_f = 2G_fΔ and s_g = 2G_gΔ.

    >>> from longterm.learners import SinhaVaze
    >>> from longterm.problems import two_dimensional
    >>> from longterm.bounds import sinha_vaze
    >>> problem = two_dimensional()
    >>> [round(float(part), 1) for part in sinha_vaze(SinhaVaze.for_problem(problem, horizon=10_000), problem.constants, 10_000)]
    [804.0, 6845.4]
    """
    price = learner.price
    if not isinstance(price, ExponentialPrice):
        raise InputError("learner", "has no exponential price", "Use sinha_vaze_strongly_convex for the quadratic one")
    t, T = _within(learner, rounds)
    omega = 1 / (2 * np.sqrt(T))
    regret = price.loss_scale * np.sqrt(t) * (1 + omega)
    most = (1 + np.sqrt(t) + constants.loss_range * t / price.loss_scale) / (1 - omega * np.sqrt(t))
    return Bound(*np.broadcast_arrays(regret, price.constraint_scale / omega * np.log(most)))


def sinha_vaze_strongly_convex(learner: SinhaVaze, constants: Constants, rounds: ArrayLike) -> Bound:
    """`SinhaVaze.strongly_convex`, in any round t ≤ T, with V = 8G_g² (1 + ln T)/σ:

    Σ f_s(x_s) − f_s(x*) ≤ P = (G_f²/σ)(1 + ln t),      Σ [g_s(x_s)]₊ ≤ √( 2V (P + F t) )
    """
    if not isinstance(learner.price, QuadraticPrice) or not isinstance(learner.inner, StronglyConvexOGD):
        raise InputError("learner", "has no quadratic price", "Use sinha_vaze for the exponential one")
    t, T = _within(learner, rounds)
    sigma = learner.price.strong_convexity
    V = 8 * learner.price.constraint_gradient_bound**2 * (1 + np.log(T)) / sigma
    regret = constants.loss_gradient_bound**2 / sigma * (1 + np.log(t))
    return Bound(*np.broadcast_arrays(regret, np.sqrt(2 * V * (regret + constants.loss_range * t))))


def _within(learner: SinhaVaze, rounds: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """T and T, and t ≤ T."""
    t, T = horizons(rounds, learner.batch_shape), np.asarray(learner.horizon, dtype=np.float64)
    if np.any(t > T):
        what = f"{np.max(t):g} is beyond the horizon {np.min(T):g} that the learner was made for"
        raise InputError("rounds", what, "Give at most as many, or use DoublingRestarts")
    return t, T
