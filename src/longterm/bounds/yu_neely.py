"""Yu and Neely (2020): regret, and the signed violation with and without a Slater point (`docs/after_the_paper.md`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm.bounds.base import Bound, horizons
from longterm.errors import InputError
from longterm.learners.yu_neely import YuNeely
from longterm.theory.facts import Constants


def yu_neely(learner: YuNeely, constants: Constants, rounds: ArrayLike, *, slack: float | None = None) -> Bound:
    """With η = 2α − γ²G_m² > 0 and D_m ≥ ‖g(x)‖ on B, for any x* with g(x*) ≤ 0,

        Σ f_t(x_t) − f_t(x*) ≤ α r² + G_f² T/(2η)
        √(Σ_j [Σ_t g_j(x_t)]₊²) ≤ (1/γ) √( 2αr² + γ²D_m² + (T − 1)(G_f²/η + 2F) )

    and if some x̂ in B has every g_j(x̂) ≤ −ε (`slack`), with q = γD_m + G_fΔ/(γε), no more than

        (1/γ) √( q² + 2αΔ² + 2G_fΔ + γ²D_m² ).

    `violation` is the smaller of the two; it bounds each Σ_t g_j(x_t). With γ² and α of the order of √T the last line
    is O(1).

    >>> from longterm import find_slater_point
    >>> from longterm.learners import YuNeely
    >>> from longterm.problems import two_dimensional
    >>> from longterm.bounds import yu_neely
    >>> problem = two_dimensional()
    >>> epsilon = find_slater_point(problem.constraint, problem.enclosing_set).epsilon
    >>> for T in (100, 10_000):
    ...     bound = yu_neely(YuNeely.for_problem(problem, horizon=T), problem.constants, T, slack=epsilon)
    ...     print([round(float(part), 2) for part in bound])
    [30.0, 3.46]
    [300.0, 3.35]
    """
    T = horizons(rounds, learner.batch_shape)
    gamma, alpha = np.asarray(learner.gamma), np.asarray(learner.alpha)
    eta = 2 * alpha - (gamma * learner.lipschitz) ** 2
    if np.any(eta <= 0):
        raise InputError(
            "learner", f"2α − γ²G_m² = {np.min(eta):.6g} is not positive", "Take a smaller γ or a larger α"
        )
    c, D_m = constants, learner.prox.values_norm_bound()
    G_f, r, diameter = c.loss_gradient_bound, c.radius, c.diameter
    regret = alpha * r**2 + G_f**2 * T / (2 * eta)
    square = 2 * alpha * r**2 + (gamma * D_m) ** 2 + (T - 1) * (G_f**2 / eta + 2 * c.loss_range)
    if slack is not None:
        q = gamma * D_m + G_f * diameter / (gamma * validate.positive_scalar("slack", slack))
        with_slack = q**2 + 2 * alpha * diameter**2 + 2 * G_f * diameter + (gamma * D_m) ** 2
        square = np.minimum(square, with_slack)
    return Bound(regret, np.sqrt(square) / gamma)
