"""Convex OGD: Theorem 4 of Mahdavi, Jin and Yang (2012), corrected, for one or m multipliers.

The proof is that of Lemma 5 (`docs/theory.md`) with vectors. Two lines change. In the x-step, by Cauchy's
inequality with m + 1 terms,

    ‖∇f_t + Σ_j λ_j ∇g_j‖² ≤ (m + 1) G² (1 + ‖λ‖²)          instead of 2 G² (1 + λ²),

and in the λ-step ‖g(x_t) − θλ‖² ≤ 2 (m D² + θ² ‖λ‖²). So G² becomes (m + 1) G²/2, D² becomes m D², and C2 reads
η (m + 1) G²/2 + μθ² ≤ θ/2: the article's condition on δ, without the m it has too many. What is left at the end is

    Σ Δf_t + Σ_j λ_j Σ_t g_j(x_t) − (‖λ‖²/2) (S_θ + δ_μ) ≤ 𝓡          for every λ ≥ 0 in R^m,

so Σ_j [Σ_t g_j(x_t)]₊² ≤ 2 (S_θ + δ_μ)(𝓡 + F T): the multipliers share ‖λ‖², and the article's m a/R² may be a/R².
x* enters through λ_t · g_t(x*) ≤ 0 only, so the constraints may change from round to round.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from longterm.bounds.base import Bound
from longterm.errors import InputError
from longterm.learners.mahdavi_steps import scale, smallest_horizon, smallest_root
from longterm.theory.facts import Constants
from longterm.theory.paper import lemma_5
from longterm.theory.schedules import Schedule


def vector_lemma(schedule: Schedule, constants: Constants, rounds: ArrayLike, count: int) -> Bound:
    """Lemma 5 for `count` multipliers and any schedule.

    `violation` bounds √(Σ_j [Σ_t g_j(x_t)]₊²), so each Σ_t g_j(x_t) too. With count = 1 this is Lemma 5 itself, on
    g = max_j g_j. It holds in every round of a run, whatever horizon its steps were made for. A ScheduleError says
    where C2 fails (its G stands for G √((m + 1)/2)).

    >>> from longterm.learners import MahdaviOGD
    >>> from longterm.problems import two_dimensional
    >>> from longterm.bounds import mahdavi_theorem_4, vector_lemma
    >>> problem = two_dimensional()
    >>> steps = MahdaviOGD.for_problem(problem, horizon=1000, multipliers="each").schedule
    >>> bound = vector_lemma(steps, problem.constants, [500, 1000], count=1)
    >>> bound.regret.round(2), round(float(mahdavi_theorem_4(problem.constants, 1000).regret), 2)
    (array([ 79.11, 105.48]), 105.48)
    """
    G = constants.gradient_bound * np.sqrt((count + 1) / 2)
    D = constants.constraint_bound * np.sqrt(count)
    vectors = replace(
        constants,
        loss_gradient_bound=float(G),
        constraint_gradient_bound=float(G),
        constraint_bound=float(D),
        strong_convexity=0.0,  # Theorem 4 is for convex losses
    )
    return lemma_5(schedule, vectors, rounds)


def mahdavi_theorem_4(constants: Constants, rounds: ArrayLike, count: int = 1) -> Bound:
    """Theorem 4, corrected, at horizons for which the steps were tuned, with δ the smallest root.

    a √T, and √( 2 (F T + a √T) √T (δ r²/a + a/r²) ), a = r √((m + 1) G² + 2 m D²). The article has m a/r²: true too,
    and looser by up to √m.
    """
    T, a, r = np.asarray(rounds, dtype=np.float64), scale(constants, count), constants.radius
    least = smallest_horizon(constants, count)
    if np.any(least > T):
        raise InputError("rounds", f"{np.min(T):g} is too few: δ has no real root", f"Give at least {least}")
    need = (count + 1) * constants.gradient_bound**2
    etas = r**2 / (a * np.sqrt(T))
    delta = np.reshape([smallest_root(need, float(eta)) for eta in etas.flat], T.shape)
    regret = a * np.sqrt(T)
    share = np.sqrt(T) * (delta * r**2 / a + a / r**2)
    return Bound(regret, np.sqrt(2 * (constants.loss_range * T + regret) * share))
