"""Learners with constants found online: regret and violation from what happened (`docs/aftrl.md`).

These bounds take the state after T rounds, which holds the sums they are made of: V_T = Σ ‖∇f_t(x_t)‖², M_T =
max ‖∇f_t(x_t)‖ and Σ θ_t. Of the constants they use R, Δ, D and, for the violation, F: a gradient bound is not among
them. The violation is that of the rounds from the first on that had a gradient other than 0; the rounds before it are
played at the centre of the set, and each adds the constraint's value there, which under a budget about 0 is below 0.
"""

from __future__ import annotations

import numpy as np

from longterm._arrays import Array, FloatArray, to_numpy
from longterm.bounds._decoupled import power_sum
from longterm.bounds.base import Bound
from longterm.constraints.prox import Prox
from longterm.learners.adagrad_aogd import AdaGradAOGD, AdaGradAOGDState
from longterm.learners.adaptive_aftrl import AdaptiveAFTRL, AdaptiveAFTRLState
from longterm.learners.adaptive_penalised_ftrl import AdaptivePenalisedFTRLState
from longterm.theory.facts import Constants


def adaptive_aftrl(learner: AdaptiveAFTRL, constants: Constants, state: AdaptiveAFTRLState) -> Bound:
    """`AdaptiveAFTRL` after T rounds, for any x* with g(x*) ≤ 0 and any losses, θ_t = c/(M_t t^β):

        Σ f_t(x_t) − f_t(x*)  ≤ (5/2) R √V_T + (D² M_T/(2c)) Σ t^{β−1}
        max_j Σ_t g_j(x_t)    ≤ √( 2 (1/μ_τ + Σ_{t>τ} θ_t) (that + F T) )

    With c = D²/(10R) the second term is 5 R M_T Σ t^{β−1}.

    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import AdaptiveAFTRL
    >>> from longterm.problems import two_dimensional
    >>> from longterm.bounds import adaptive_aftrl
    >>> from longterm.streams import Replay
    >>> problem = two_dimensional()
    >>> learner = AdaptiveAFTRL.for_problem(problem)
    >>> trace = run(problem, learner, Replay([np.tile([0.8, 0.6], (1000, 1))]))
    >>> [round(float(part), 1) for part in adaptive_aftrl(learner, problem.constants, trace.state)]
    [1295.1, 136.6]
    """
    primal = 2.5 * constants.radius * np.sqrt(_numbers(state.square_sum))
    D = _length_bound(learner.prox, constants)
    return _with_dual(primal, D, learner, constants, state)


def adagrad_aogd(learner: AdaGradAOGD, constants: Constants, state: AdaGradAOGDState) -> Bound:
    """`AdaGradAOGD` after T rounds, against any x* with g_t(x*) ≤ 0 in every round, S_T = Σ ‖∇f_t + λ_t∇g_t‖²:

    Σ f_t(x_t) − f_t(x*)   ≤ √2 Δ √S_T + (D² M_T/(2c)) Σ t^{β−1}
    Σ_t max_j g_j(x_t)     ≤ √( 2 (1/μ_τ + Σ_{t>τ} θ_t) (that + F T) )
    """
    primal = np.sqrt(2 * _numbers(state.square_sum)) * constants.diameter
    return _with_dual(primal, constants.constraint_bound, learner, constants, state)


def adaptive_penalised_ftrl(constants: Constants, state: AdaptivePenalisedFTRLState) -> Bound:
    """`AdaptivePenalisedFTRL` after T rounds, for any x* with g(x*) ≤ 0 and any losses; **hard** violation:

    Σ f_t(x_t) − f_t(x*)  ≤ (5/2) R √V_T
    Σ [g(x_t)]₊           ≤ ((5/2) R M_T + F) (τ/w_τ + Σ_{τ<t} 1/w_t),      w_τ the first weight above 0
    """
    regret = 2.5 * constants.radius * np.sqrt(_numbers(state.square_sum))
    share = 2.5 * constants.radius * _numbers(state.largest_gradient) + constants.loss_range
    return Bound(regret, share * _numbers(state.inverse_sum))


def _with_dual(
    primal: FloatArray,
    D: float,
    learner: AdaptiveAFTRL | AdaGradAOGD,
    constants: Constants,
    state: AdaptiveAFTRLState | AdaGradAOGDState,
) -> Bound:
    T, beta = _numbers(state.round) - 1, np.asarray(learner.beta)
    inverse_theta = _numbers(state.largest_gradient) / np.asarray(learner.dual_scale)
    regret = primal + D**2 / 2 * inverse_theta * np.where(T > 0, power_sum(np.maximum(T, 1.0), 1 - beta), 0.0)
    return Bound(regret, np.sqrt(2 * _numbers(state.theta_sum) * (regret + constants.loss_range * T)))


def _length_bound(prox: Prox, constants: Constants) -> float:
    return float(min(prox.values_norm_bound(), np.sqrt(prox.constraint.count) * constants.constraint_bound))


def _numbers(value: Array) -> FloatArray:
    return np.asarray(to_numpy(value), dtype=np.float64)
