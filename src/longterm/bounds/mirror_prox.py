"""Mirror prox: Theorem 12 and Corollary 13 of Mahdavi, Jin and Yang (2012), proved again and corrected.

Write w = (z, μ) for the anchor, y = (x, λ) for the point looked ahead to, Φ(x, λ) = (Aᵀλ, −(A x − b) + θλ) with
θ = δη, and ξ = Φ(y) + (∇f_t(x), 0). Both y = Π(w − η Φ(w)) and w⁺ = Π(w − η ξ) are projections from w, so for every
u = (x*, ν)

    η ⟨ξ, y − u⟩ ≤ ½‖w − u‖² − ½‖w⁺ − u‖² + η ⟨ξ − Φ(w), y − w⁺⟩ − ½‖y − w⁺‖² − ½‖y − w‖².

The inner product and the next term together are at most (η²/2) ‖ξ − Φ(w)‖². With p = x − z and q = λ − μ,

    ‖ξ − Φ(w)‖² = ‖Aᵀq + ∇f_t‖² + ‖A p − θ q‖² ≤ 2 G_f² + 2 σ_max² (‖p‖² + ‖q‖²) + 2 θ² ‖q‖²,

and −½‖y − w‖² = −½(‖p‖² + ‖q‖²) pays for all but η² G_f² as soon as **2η²(σ_max² + θ²) ≤ 1**. (The article forgets to
divide that term by η, as it divides the others, and arrives at T ≥ 164 (m + 1)³. 4η²(σ_max² + θ²) ≤ 1 would do as well,
but the 2 is all the proof needs.) The left side is at least η (Δf_t + ν · g(x_t) − (θ/2)‖ν‖²), as λ_t · g(x*) ≤ 0.
Summed up and divided by η,

    Σ Δf_t + ν · Σ g(x_t) − (‖ν‖²/2)(θ T + 1/η) ≤ 𝓡 = r²/(2η) + η G_f² T          for every ν ≥ 0 in R^m.

ν = 0: the regret (the article has η G² T/2, which its own lemma does not give). The best ν, and Σ Δf_t ≥ −F T:

    Σ_j [Σ_t g_j(x_t)]₊² ≤ 2 (θ T + 1/η)(𝓡 + F T).

Neither D nor m enters, nor the length of the rows but through σ_max.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm._arrays import FloatArray
from longterm.bounds.base import Bound
from longterm.errors import InputError
from longterm.learners.mirror_prox import MirrorProx
from longterm.learners.no_violation_mirror_prox import NoViolationMirrorProx
from longterm.theory.facts import Constants


def mahdavi_theorem_12(learner: MirrorProx, constants: Constants, rounds: ArrayLike) -> Bound:
    """Theorem 12, corrected, for the learner's own steps: it holds in every round of a run.

    With η = T^{−1/3} and δ = T^{−2/3}, at T: r² T^{1/3}/2 + G_f² T^{2/3} for the regret. `violation` bounds every
    Σ_t g_j(x_t) of the problem itself: rows of length 1 have been scaled back by the longest row, G_g.

    >>> from longterm.learners import MirrorProx
    >>> from longterm.problems import doubly_stochastic
    >>> from longterm.bounds import mahdavi_theorem_12
    >>> problem = doubly_stochastic(8)
    >>> round(float(mahdavi_theorem_12(MirrorProx.for_problem(problem, horizon=1000), problem.constants, 1000).regret), 6)
    3240.0
    """
    regret, root = _unit_rows(learner, constants, rounds)
    return Bound(regret, root * constants.constraint_gradient_bound)


def mahdavi_corollary_13(learner: NoViolationMirrorProx, constants: Constants, rounds: ArrayLike) -> Bound:
    """Corollary 13, corrected: Theorem 12 on g + γ, against a comparator moved by γ/ε towards the Slater point.

    Regret: 𝓡 + (γ/ε) F T. `violation` is 0 from where the margin makes up for all that Theorem 12 allows.
    """
    regret, root = _unit_rows(learner, constants, rounds)
    T = np.asarray(rounds, dtype=np.float64)
    moved = learner.gamma / learner.slater.epsilon * constants.loss_range * T
    left = np.maximum(root - learner.gamma * T, 0.0)
    return Bound(regret + moved, left * constants.constraint_gradient_bound)


def _unit_rows(learner: MirrorProx, constants: Constants, rounds: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """𝓡 and √(2 (θ T + 1/η)(𝓡 + F T)), for rows of length 1."""
    condition = learner.assumptions[0]
    if not condition.holds:
        raise InputError("learner", str(condition), "Theorem 12 says nothing about such steps")
    T = np.asarray(rounds, dtype=np.float64)
    if np.any(T < 1):
        raise InputError("rounds", f"{rounds!r} is below 1", "Give horizons of at least one round")
    theta, eta = learner.schedule.theta, learner.schedule.eta
    regret = constants.radius**2 / (2 * eta) + eta * constants.loss_gradient_bound**2 * T
    return regret, np.sqrt(2 * (theta * T + 1 / eta) * (regret + constants.loss_range * T))
