"""A-OGD with AdaGrad-norm steps and constants found online (after the discussion section of the A-OGD paper).

The paper's dual, and gradient steps as long as the gradients so far allow: with d_t = ∇f_t(x_t) + λ_t ∇g(x_t),
g = max_j g_j, S_t = Σ_{s≤t} ‖d_s‖² and M_t = max_{s≤t} ‖∇f_s(x_s)‖,

    x_{t+1} = Π_B( x_t − η_t d_t ),                        η_t = Δ/√(2 S_t),          x_1 = centre of B
    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t λ_t ) ]₊          θ_t = D²/(10 R M_t t^β),   λ_1 = 0,   μ_t = 1/(θ_t (t + 1))

Neither G_f nor the constraint's gradient bound is needed to run it: condition C2, which ties θ_t to both in A-OGD, is
paid for by a term of the bound instead. Until the first gradient other than 0, in round τ, the learner stays at x_1
with λ = 0. If all losses are scaled by s, so is λ, and the decisions stay the same,
while gradients are 0 or between 1e-140 and 1e140 long: their squares must be floats.
Needs: value and one subgradient of f_t and of g_t at x_t; no horizon.
Guarantees, from what happened (`bound(problem, rounds, state=trace.state)`): regret at most √2 Δ √S_T +
5 R M_T (1 + (T^β − 1)/β), and for the signed violation (τ − 1)[g(x_1)]₊ for the rounds of waiting and a bound from the
θ_t that occurred for the rest. Beforehand, its first part is 2Δ√V_T + 6Δ²G_g²/θ_T, V_T = Σ ‖∇f_t(x_t)‖²
(`docs/aftrl.md`). It can be worse than A-OGD: steps shrink with every long λ_t∇g.
Not promised: feasibility in a single round, a small Σ [g(x_t)]₊.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, column, dot, namespace, norm
from longterm._validate import Hyper
from longterm.learners._online_constants import (
    add_theta,
    ascend_maximum,
    default_dual_scale,
    dual_steps,
    first_round,
    no_theorem_beforehand,
    numbers,
    positive_or_one,
    regret_and_violation,
    start_of,
)
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.bounds import REGRET, SIGNED


class AdaGradAOGDState(NamedTuple):
    """(t, x_t, λ_t, S_{t−1}, M_{t−1}, S_θ + δ_μ, τ)."""

    round: Array
    x: Array
    multiplier: Array
    square_sum: Array
    """S: squared lengths of the directions d so far, added up."""
    largest_gradient: Array
    """M: the longest gradient of a loss so far."""
    theta_sum: Array
    """1/μ_τ + Σ_{s>τ} θ_s, the weight of λ²/2 in the theorem: only the bound reads it."""
    first_gradient: Array = 0
    """τ, 0 until there is one: the bound counts the rounds before it. States stored by earlier versions lack it."""


@dataclass(frozen=True, eq=False)
class AdaGradAOGD(Learner[AdaGradAOGDState]):
    """A-OGD that finds its steps by itself: θ_t = dual_scale/(M_t t^β).

    Parameters
    ----------
    enclosing_set : Set
        B, which it projects onto.
    dual_scale : float or array
        c, above 0.
    beta : float or array
        β in (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import AdaGradAOGD
    >>> from longterm.problems import two_dimensional
    >>> from longterm.streams import Replay
    >>> problem = two_dimensional()  # g = x₁ − ¼
    >>> trace = run(problem, AdaGradAOGD.for_problem(problem), Replay([np.tile([0.8, 0.6], (2000, 1))]))
    >>> trace.state.x.round(1), float((trace.signed_violation[-1] / 2000).round(3))
    (array([0.2, 0.6]), -0.01)
    """

    enclosing_set: Set
    dual_scale: Hyper
    beta: Hyper = 2 / 3

    name: ClassVar[str] = "adagrad_aogd"
    title: ClassVar[str] = "AdaGrad A-OGD"
    drifting: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(T^max(β, 1/2)), from what happened",
        SIGNED: "(τ − 1)[g(x_1)]₊ + O(T^(1−β/2)), from what happened",
    }

    def __post_init__(self) -> None:
        validate.remember(
            self,
            dual_scale=validate.positive("dual_scale", self.dual_scale),
            beta=validate.open_unit_interval("beta", self.beta),
        )

    @classmethod
    def for_problem(cls, problem: Problem, *, beta: Hyper = 2 / 3, dual_scale: Hyper | None = None) -> AdaGradAOGD:
        """A-OGD with AdaGrad's step, one for all coordinates, and no bound on the gradients known.

        Parameters
        ----------
        problem : Problem
            Gives B, R and D; nothing is read off its losses.
        beta : float or array
            β in (0, 1): larger favours the constraint, smaller (down to ½) the regret.
        dual_scale : float or array, optional
            c of θ_t = c/(M_t t^β), above 0; D²/(10R) unless given.
        """
        scale = default_dual_scale(problem) if dual_scale is None else dual_scale
        return cls(problem.enclosing_set, scale, beta)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        raise no_theorem_beforehand(type(self).__name__)

    def theorem_after(self, problem: Problem, state: AdaGradAOGDState) -> Mapping[str, FloatArray]:
        """After T rounds, against any x* with g_t(x*) ≤ 0 in every round, S_T = Σ ‖∇f_t + λ_t∇g_t‖²:

            Σ f_t(x_t) − f_t(x*)   ≤ √2 Δ √S_T + (D² M_T/(2c)) Σ t^{β−1}
            Σ_t max_j g_j(x_t)     ≤ (τ − 1) [g(x_1)]₊ + √( 2 (1/μ_τ + Σ_{t>τ} θ_t) (that + F T) )

        The τ − 1 rounds before the first gradient other than 0 are played at x_1; for g_t that change, min(D, G_g R)
        stands for [g(x_1)]₊.
        """
        c = problem.constants
        primal = np.sqrt(2 * numbers(state.square_sum)) * c.diameter
        regret, violation = regret_and_violation(
            primal, c.constraint_bound, start_of(problem), self.dual_scale, self.beta, problem, state
        )
        return {REGRET: regret, SIGNED: violation}

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> AdaGradAOGDState:
        x = self.at_the_centre(batch_shape, xp, dtype)
        zero, never = (xp.zeros(x.shape[:-1], dtype=dtype) for dtype in (x.dtype, xp.int64))
        return AdaGradAOGDState(xp.asarray(1, dtype=xp.int64), x, zero, zero, zero, zero, never)

    def ask(self, state: AdaGradAOGDState) -> Array:
        return state.x

    def update(self, state: AdaGradAOGDState, feedback: Feedback) -> AdaGradAOGDState:
        descent = feedback.loss_gradient + column(state.multiplier) * feedback.constraint_gradient
        square_sum = state.square_sum + dot(descent, descent)
        largest = namespace(state.x).maximum(state.largest_gradient, norm(feedback.loss_gradient))
        steps = dual_steps(state.round, largest, self.dual_scale, self.beta)
        return AdaGradAOGDState(
            round=state.round + 1,
            x=self.enclosing_set.project(state.x - column(self._eta(square_sum)) * descent),
            multiplier=ascend_maximum(state.multiplier, feedback.constraint, steps),
            square_sum=square_sum,
            largest_gradient=largest,
            theta_sum=add_theta(state.theta_sum, steps),
            first_gradient=first_round(state.first_gradient, state.round, largest),
        )

    def _eta(self, square_sum: Array) -> Array:
        return self.enclosing_set.diameter / positive_or_one(namespace(square_sum).sqrt(2 * square_sum))

    def report(self, state: AdaGradAOGDState) -> dict[str, Array]:
        return {
            "multiplier": state.multiplier,
            "square_sum": state.square_sum,
            "largest_gradient": state.largest_gradient,
        }
