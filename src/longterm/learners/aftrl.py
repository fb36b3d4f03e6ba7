"""A-FTRL: the paper's dual with a follow-the-regularised-leader primal, for convex and for strongly convex losses.

With z_t = Σ_{s≤t} ∇f_s(x_s), Λ_t = Σ_{s≤t} λ_s and x_1 the centre of B, every round goes

    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t λ_t ) ]₊                                              λ_1 = 0
    x_{t+1} = argmin_{x ∈ B} ⟨z_t, x⟩ + ⟨Λ_{t+1}, g(x)⟩ + ‖x − x_1‖²/(2η_{t+1})

and for σ-strongly convex losses each loss is remembered by its quadratic model, and nothing else regularises:

    x_{t+1} = argmin_{x ∈ B} Σ_{s≤t} [ ⟨∇f_s(x_s), x⟩ + (σ/2)‖x − x_s‖² ] + ⟨Λ_{t+1}, g(x)⟩

(all models together have the gradient Σ_{s≤t} (∇f_s(x_s) − σx_s) at 0 and the curvature σt). The argmin holds g itself,
so iterates under an ℓ1 budget are truly sparse. Affine constraints have a multiplier each (λ, Λ and g are vectors); a
budget has one.

Steps: η_t = R/(G_f √t), where x_t is played with η_t (R = max ‖x_1 − x‖ over B, G_f for the losses alone; ∇g never
enters; neither does G_f in the strongly convex form), θ_t = θ_0/t^β with any θ_0 > 0, μ_t = 1/(θ_t (t + 1)). A larger
θ_0 lowers the bound on the regret and raises that on the violation; the sum of regret and (F/D)·violation has its
smallest bound at 0.72 D²/F (β = 2/3). On data smaller ones do better: the default is D²/(10F). Scaling g by s needs θ_0
scaled by s², as D²/F is.
Needs: a fixed constraint, and its prox on B (`Constraint.prox`). No horizon.
Guarantees: O(√T + T^β) regret (strongly convex: O(log T + T^β)), O(T^{1−β/2}) for every Σ_t g_j(x_t) (signed). Proof
and history: `docs/aftrl.md`.
Not promised: feasibility in a single round, a small Σ [g(x_t)]₊, and anything about streams that drift: A-FTRL
never forgets (z and Λ only accumulate). `Restarted` is for those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, column, like
from longterm._validate import Hyper
from longterm.learners._given_prox import (
    DecoupledLearner,
    ascend,
    default_theta,
    prox_of,
    strongly_convex_steps,
    values_of,
    with_dual,
)
from longterm.learners.aogd import Steps
from longterm.learners.feedback import Feedback
from longterm.problems import Problem
from longterm.theory.bounds import horizons_of
from longterm.theory.conditions import power_sum
from longterm.theory.schedules import DecoupledSchedule, StronglyConvexDecoupledSchedule


class AFTRLState(NamedTuple):
    """(t, x_t, λ_t, z_{t−1}, Λ_t): multipliers have shape (..., m), one for each constraint."""

    round: Array
    x: Array
    multiplier: Array
    gradient_sum: Array
    """What the losses of all rounds before t add to the slope at 0."""
    multiplier_sum: Array
    """Λ_t = Σ_{s≤t} λ_s."""


@dataclass(frozen=True, eq=False)
class AFTRL(DecoupledLearner[AFTRLState]):
    """A-FTRL with the prox of a constraint on a set; the kind of schedule decides between the two forms.

    Parameters
    ----------
    prox : Prox
        The closed form of the argmin, from `Constraint.prox(over)`.
    schedule : DecoupledSchedule or StronglyConvexDecoupledSchedule
        θ_t, η_t and μ_t: for convex losses, or for strongly convex ones.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import AFTRL
    >>> from longterm.problems import budgeted_logistic, two_dimensional
    >>> from longterm.streams import Replay, ResampledRows
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((500, 20))
    >>> labels = np.sign(rows[:, 0] - 0.5 * rows[:, 1] + 0.1 * rng.standard_normal(500))
    >>> problem = budgeted_logistic(rows, budget=1.0)
    >>> trace = run(problem, AFTRL.for_problem(problem), ResampledRows(rows, labels), rounds=2000)
    >>> trace.state.x.round(2)[:4], int(np.count_nonzero(trace.state.x))
    (array([ 0.58, -0.23,  0.  ,  0.  ]), 2)
    >>> problem = two_dimensional()  # g = x₁ − ¼
    >>> learner = AFTRL.for_problem(problem, steps="strongly convex")
    >>> run(problem, learner, Replay([np.tile([0.8, 0.6], (2000, 1))])).state.x.round(2)
    array([0.25, 0.6 ])
    """

    name: ClassVar[str] = "aftrl"
    title: ClassVar[str] = "A-FTRL"

    @classmethod
    def for_problem(
        cls, problem: Problem, *, steps: Steps = "convex", beta: Hyper = 2 / 3, theta_0: Hyper | None = None
    ) -> AFTRL:
        """A-FTRL: the paper's dual with a follow-the-regularised-leader primal.

        Parameters
        ----------
        problem : Problem
            Gives B, the prox of g, R, G_f, D and F, or σ.
        steps : {"convex", "strongly convex"}
            The form: for any convex losses, or for strongly convex ones.
        beta : float or array
            β in (0, 1): larger favours the constraint, smaller the regret.
        theta_0 : float or array, optional
            Above 0; D²/(10F) unless given. Larger favours the regret.
        """
        prox, c = prox_of(cls.__name__, cls.needs, problem), problem.constants
        if steps == "convex":
            step = c.radius / validate.positive_scalar("loss_gradient_bound", c.loss_gradient_bound)
            return cls(prox, DecoupledSchedule(step, default_theta(problem, prox, theta_0), beta))
        return cls(prox, strongly_convex_steps(problem, prox, steps, theta_0, beta))

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """For any x* with g(x*) ≤ 0 and any losses; D bounds the length of (g_1, …, g_m):

            Σ f_t(x_t) − f_t(x*)  ≤ P + (D²/2) Σ 1/(θ_t t),   P = R²/(2η_T) + (G_f²/2) Σ η_t
            max_j Σ_t g_j(x_t)    ≤ √( 2 (S_θ + θ_0) (that + F T) )

        With η_t = R/(G_f √t), P ≤ (3/2) R G_f √T. For strongly convex losses P = (G_f²/(2σ)) (1 + ln T).

        Examples
        --------
        >>> from longterm.learners import AFTRL
        >>> from longterm.problems import two_dimensional
        >>> problem = two_dimensional()
        >>> bound = AFTRL.for_problem(problem).bound(problem, 1000)
        >>> round(float(bound["regret"]), 1), round(float(bound["long_term_violation"]), 1)
        (1588.9, 127.5)
        """
        T, c, schedule = horizons_of(rounds, self.batch_shape), problem.constants, self.schedule
        if isinstance(schedule, StronglyConvexDecoupledSchedule):
            P = c.loss_gradient_bound**2 / (2 * np.asarray(schedule.strong_convexity)) * (1 + np.log(T))
        else:
            s = np.asarray(schedule.step)
            P = c.radius**2 * np.sqrt(T) / (2 * s) + c.loss_gradient_bound**2 * s / 2 * power_sum(T, 0.5)
        return with_dual(P, self.prox, schedule, problem, T)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> AFTRLState:
        x = self.at_the_centre(batch_shape, xp, dtype)
        multiplier = xp.zeros((*x.shape[:-1], self.prox.constraint.count), dtype=x.dtype)
        return AFTRLState(xp.asarray(1, dtype=xp.int64), x, multiplier, xp.zeros_like(x), multiplier)

    def ask(self, state: AFTRLState) -> Array:
        return state.x

    def update(self, state: AFTRLState, feedback: Feedback) -> AFTRLState:
        values = values_of(feedback, self.prox.constraint.count)
        multiplier = ascend(state.multiplier, values, self.schedule.at(state.round, state.x))
        multiplier_sum = state.multiplier_sum + multiplier
        gradient, t = feedback.loss_gradient, state.round
        if isinstance(self.schedule, StronglyConvexDecoupledSchedule):
            sigma = column(like(np.asarray(self.schedule.strong_convexity), state.x))
            slope = gradient_sum = state.gradient_sum + (gradient - sigma * state.x)
            curvature = 1 / self.schedule.at(t, state.x).eta
        else:
            gradient_sum = state.gradient_sum + gradient
            curvature = 1 / self.schedule.at(t + 1, state.x).eta
            slope = gradient_sum - column(curvature) * like(self.enclosing_set.centre, gradient_sum)
        x = self.prox.argmin(slope, multiplier_sum, curvature)
        return AFTRLState(t + 1, x, multiplier, gradient_sum, multiplier_sum)
