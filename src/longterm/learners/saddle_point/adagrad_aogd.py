"""A-OGD with AdaGrad-norm steps and constants found online (after the discussion section of the A-OGD paper).

With d_t = ∇f_t(x_t) + λ_t ∇g(x_t), g = max_j g_j, S_t = Σ_{s≤t} ‖d_s‖² and M_t = max_{s≤t} ‖∇f_s(x_s)‖,

    x_{t+1} = Π_B( x_t − η_t d_t ),                        η_t = Δ/√(2 S_t),           x_1 = centre of B
    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t λ_t ) ]₊          θ_t = θ_0/(M_t t^β),        λ_1 = 0,   μ_t = 1/(θ_t (t + 1))

with θ_0 = D²/(10R). The multiplier is that of `AdaptiveAFTRL`. Neither G_f nor G_g is needed to run it: a term of the
bound replaces condition C2. Until round τ, the first with a gradient other than 0, it stays at x_1 with λ = 0. Scaling
all losses changes no decision, while gradients are 0 or between 1e-140 and 1e140 long.
Guarantees (data-dependent: `bound(problem, rounds, state=trace.state)`), against x* with g_t(x*) ≤ 0 always:

    Σ f_t(x_t) − f_t(x*)   ≤ √2 Δ √S_T + (D² M_T/(2θ_0)) Σ t^{β−1}
    Σ_t max_j g_j(x_t)     ≤ (τ − 1) [g(x_1)]₊ + √( 2 (1/μ_τ + Σ_{t>τ} θ_t) (that + F T) )

(`docs/proofs/aftrl.md`). It can be worse than A-OGD: steps shrink with every long λ_t ∇g.
Not promised: feasibility in a single round, a small Σ [g(x_t)]₊.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longterm._base.arrays import Array, as_column, dot, namespace, norm
from longterm._base.validate import Hyper
from longterm.learners.ftrl.multiplier import Multiplier, MultiplierState
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.prox_learner import as_reported, positive_or_one
from longterm.learners.interface.states import as_numbers
from longterm.problems import Problem
from longterm.problems.sets import Set
from longterm.theory.bounds import REGRET, SIGNED, BoundValues


class AdaGradAOGDState(NamedTuple):
    """The state (t, x_t, S_{t−1}, M_{t−1}) and the multiplier."""

    round: Array
    x: Array
    square_sum: Array
    """S, shape (..., 1)."""
    largest_gradient: Array
    dual: MultiplierState

    @property
    def multiplier(self) -> Array:
        """λ_t, shape (..., 1)."""
        return self.dual.multiplier


@dataclass(frozen=True, eq=False)
class AdaGradAOGD(Learner[AdaGradAOGDState]):
    """Keep a long-term limit when the size of the gradients is unknown.

    A-OGD with steps that come from the gradients so far.

    Parameters
    ----------
    enclosing_set : Set
        The ball, box or other set that every decision stays in (B in the formulas).
    dual : Multiplier
        The multiplier rule, with its θ_0 for each unit of the gradients, and its β.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import streams
    >>> problem = lt.problems.two_dimensional()  # g = x₁ − ¼
    >>> learner = lt.learners.AdaGradAOGD.for_problem(problem)
    >>> lt.run(problem, learner, streams.Replay([np.tile([0.8, 0.6], (2000, 1))])).state.x.round(1)
    array([0.2, 0.6])
    """

    enclosing_set: Set
    dual: Multiplier

    name = "adagrad_aogd"
    title = "AdaGrad A-OGD"
    drifting = ({},)
    promises = {REGRET: "O(T^max(β, 1/2)), data-dependent", SIGNED: "(τ − 1)[g(x_1)]₊ + O(T^(1−β/2)), data-dependent"}

    @classmethod
    def for_problem(cls, problem: Problem, *, beta: Hyper = 2 / 3, theta_0: Hyper | None = None) -> AdaGradAOGD:
        """Make A-OGD with AdaGrad's step, one for all coordinates, without a known bound on the gradients.

        Parameters
        ----------
        beta : float or array
            β in (0, 1). Larger values favour the constraint, smaller ones (down to ½) the regret.
        theta_0 : float or array, optional
            θ_0 of θ_t = θ_0/(M_t t^β), above 0; D²/(10R) unless given.
        """
        c = problem.constants
        return cls(problem.enclosing_set, Multiplier.for_unit(c.constraint_bound, c.radius, theta_0, beta))

    def theorem_after(self, problem: Problem, state: AdaGradAOGDState) -> BoundValues:
        c = problem.constants
        primal, T = np.sqrt(2 * as_numbers(state.square_sum[..., 0])) * c.diameter, as_numbers(state.round) - 1
        unit = state.largest_gradient
        regret, violation = self.dual.terms(primal, c.constraint_bound, problem, T, state.dual, unit)
        return {REGRET: regret, SIGNED: violation}

    def first_state(self, t: Array, x: Array) -> AdaGradAOGDState:
        xp = namespace(x)
        zero = xp.zeros(x.shape[:-1], dtype=x.dtype)
        return AdaGradAOGDState(t, x, as_column(zero), zero, self.dual.start(1, x))

    def update(self, state: AdaGradAOGDState, feedback: Feedback) -> AdaGradAOGDState:
        xp = namespace(state.x)
        descent = feedback.loss_gradient + state.multiplier * feedback.constraint_gradient
        square_sum = state.square_sum + as_column(dot(descent, descent))
        largest = xp.maximum(state.largest_gradient, norm(feedback.loss_gradient))
        eta = self.enclosing_set.diameter / positive_or_one(xp.sqrt(2 * square_sum))
        return AdaGradAOGDState(
            round=state.round + 1,
            x=self.enclosing_set.project(state.x - eta * descent),
            square_sum=square_sum,
            largest_gradient=largest,
            dual=self.dual.ascend(state.dual, state.round, as_column(feedback.constraint), largest),
        )

    def report(self, state: AdaGradAOGDState) -> dict[str, Array]:
        return {
            "multiplier": as_reported(state.multiplier),
            "square_sum": as_reported(state.square_sum),
            "largest_gradient": state.largest_gradient,
        }
