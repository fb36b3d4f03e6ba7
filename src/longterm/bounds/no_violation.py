"""Bounds of the learners that play g + γ: what they may lose, and what is left of the violation (in time, at most 0).

Known horizon: Lemma 5 with D + γ for D, against u = (1 − γ/ε) x* + (γ/ε) x̂. By convexity g(u) ≤ −γ, and
Σ f_t(u) − f_t(x*) ≤ (γ/ε) F T.

Decaying margin: the comparator moves, u_t = (1 − γ_t/ε) x* + (γ_t/ε) x̂. With a_t = ‖x_t − u_t‖² the x-steps add up
as before, plus

    Σ (‖x_{t+1} − u_{t+1}‖² − ‖x_{t+1} − u_t‖²)/(2η_t) ≤ Σ (Δ/η_t) ‖u_{t+1} − u_t‖ ≤ (Δ²/ε) Σ (γ_t − γ_{t+1})/η_t,

because both u's and x_{t+1} are in B; and u_t costs (F/ε) Σ γ_t more than x*. D² S_μ becomes Σ μ_t (D + γ_t)².
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm._arrays import FloatArray
from longterm.bounds.base import Bound
from longterm.errors import InputError
from longterm.learners.doubling import DoublingAOGD
from longterm.learners.mahdavi_no_violation import NoViolationMahdaviOGD, fixed_point
from longterm.learners.no_violation import DecayingMarginAOGD, NoViolationAOGD
from longterm.theory.facts import Constants
from longterm.theory.paper import lemma_5
from longterm.theory.schedules import Schedule
from longterm.theory.step_sums import step_sums, tabulate


def corollary_1(learner: NoViolationAOGD, constants: Constants, rounds: ArrayLike) -> Bound:
    """Corollary 1, explicit, with exact sums, in every round of a run; `violation` ≤ 0 at the horizon if γ suffices.

    >>> from longterm import AOGD
    >>> from longterm.learners import NoViolationAOGD
    >>> from longterm.problems import two_dimensional
    >>> from longterm.bounds import corollary_1
    >>> problem = two_dimensional()
    >>> learner = NoViolationAOGD.for_problem(problem, horizon=20_000)
    >>> bool(corollary_1(learner, problem.constants, 20_000).violation <= 1e-9)
    True
    """
    return _tightened(learner.learner.schedule, constants, rounds, _one(learner.gamma), learner.slater.epsilon)


def mahdavi_theorem_8(learner: NoViolationMahdaviOGD, constants: Constants, rounds: ArrayLike) -> Bound:
    """Theorem 8 of Mahdavi, Jin and Yang (2012), corrected: a √T + (γ/ε) F T, and Σ g(x_t) ≤ b T^{3/4} − γT = 0.

    `rounds` must be the horizon that the steps and the margin were made for, and the learner's assumptions must hold.
    """
    for assumption in learner.assumptions:
        if not assumption.holds:
            raise InputError("learner", str(assumption), "Theorem 8 does not cover it")
    T, (a, b) = np.asarray(rounds, dtype=np.float64), fixed_point(constants)
    if not np.allclose(b * T**-0.25, learner.gamma, rtol=1e-9):
        raise InputError("rounds", f"{rounds!r} is not the learner's horizon", "Ask at the horizon it was tuned for")
    regret = a * np.sqrt(T) + learner.gamma / learner.slater.epsilon * constants.loss_range * T
    return Bound(regret, np.zeros_like(T))


def doubling_epochs(learner: DoublingAOGD, constants: Constants, rounds: ArrayLike) -> Bound:
    """The sum over epochs of Corollary 1; the last one counts as far as it was played."""
    horizons = np.atleast_1d(np.asarray(rounds))
    regret, violation = np.zeros(horizons.shape), np.zeros(horizons.shape)
    for start, length in learner.epochs(int(horizons.max())):
        played = np.clip(horizons - start + 1, 0, length)
        inside, place = np.unique(played[played > 0], return_inverse=True)
        gamma = _one(learner.margin_of(np.asarray(length), np.zeros(1)))
        part = _tightened(learner.learner.schedule, constants, inside, gamma, learner.slater.epsilon)
        regret[played > 0] += part.regret[place]
        violation[played > 0] += part.violation[place]
    return Bound(regret.reshape(np.shape(rounds)), violation.reshape(np.shape(rounds)))


def decaying_margin(learner: DecayingMarginAOGD, constants: Constants, rounds: ArrayLike) -> Bound:
    """The moving comparator's bound. `violation` falls below 0 as T grows: there the guarantee begins."""
    schedule, epsilon, D = learner.learner.schedule, learner.slater.epsilon, constants.constraint_bound
    horizons = np.asarray(rounds)
    extra, gammas = [], []
    for steps in tabulate(schedule, int(horizons.max())):
        new = slice(0 if steps.rounds[0] == 1 else 1, None)
        gamma = learner.margin(steps.rounds[new], np.zeros(1))
        moved = gamma - learner.margin(steps.rounds[new] + 1, np.zeros(1))
        wider = steps.mu[new] * ((D + gamma) ** 2 - D**2)
        extra.append(wider + constants.diameter**2 / epsilon * moved / steps.eta[new])
        gammas.append(gamma)
    before = horizons - 1
    margins = np.cumsum(np.concatenate(gammas))[before]
    regret = lemma_5(schedule, constants, rounds).regret + np.cumsum(np.concatenate(extra))[before]
    root = _violation(schedule, constants, horizons, regret)
    return Bound(regret + constants.loss_range / epsilon * margins, root - margins)


def _tightened(schedule: Schedule, constants: Constants, rounds: ArrayLike, gamma: float, epsilon: float) -> Bound:
    """Lemma 5 on g + γ, with the comparator moved by γ/ε."""
    T, D = np.asarray(rounds), constants.constraint_bound
    sums = step_sums(schedule, rounds, constants.strong_convexity)
    regret = lemma_5(schedule, constants, rounds).regret + ((D + gamma) ** 2 - D**2) * sums.mu
    root = _violation(schedule, constants, T, regret)
    return Bound(regret + gamma / epsilon * constants.loss_range * T, root - gamma * T)


def _violation(schedule: Schedule, constants: Constants, T: FloatArray, regret: FloatArray) -> FloatArray:
    sums = step_sums(schedule, T, constants.strong_convexity)
    return np.sqrt(2 * (sums.theta + sums.delta_mu) * (regret + constants.loss_range * T))


def _one(gamma: ArrayLike) -> float:
    if np.ndim(gamma):
        raise InputError("learner", "is a grid of margins", "Ask for the bound of one learner at a time")
    return float(np.asarray(gamma))
