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

Penalised FTRL: no multiplier to learn, a penalty that grows by itself, and O(1) violation counted without credit.

With z_t = Σ_{s≤t} ∇f_s(x_s) and W_t = Σ_{s≤t} w_s, w_t = w_0 t^{1+e}, all known beforehand,

    x_{t+1} = argmin_{x ∈ B} ⟨z_t, x⟩ + W_{t+1} [g(x)]₊ + ‖x − c‖²/(2η_{t+1}),        z_0 = 0, c the centre of B.

The argmin is that of ν g for [g]₊, with the smallest ν in [0, W_{t+1}] that makes g ≤ 0, or W_{t+1}: one scalar root a
round, which the budgets have in closed form. That ν is what the trace has as multiplier.

Steps: η_t = R/(G_f √t); w_0 = (F + RG_f)/D and e = ½ unless given.
Needs: a fixed constraint of one function with {g ≤ 0} inside B, and the prox of its positive part (`PenaltyProx`). No
horizon.
Guarantees: regret at most (3/2) R G_f √T, with no term for the constraint, and **hard** violation
Σ [g(x_t)]₊ ≤ (F + RG_f)(1 + 1/e)/w_0 for every T at once (`docs/aftrl.md`).
Not promised: feasibility in a single round (w_0 → ∞ would give it: FTRL on {g ≤ 0} itself, which costs the same root);
anything about streams that drift: z only accumulates, so it never forgets. `Restarted` is for those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, as_column, float_dtype, like, namespace
from longterm._validate import Hyper
from longterm.constraints.prox import PenaltyProx
from longterm.learners.duals import (
    DecoupledLearner,
    ProxLearner,
    ascend,
    decoupled_steps,
    penalty_prox_of,
    prox_of,
    values_of,
    with_dual,
)
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need, StepKind
from longterm.problems import Problem
from longterm.theory.bounds import HARD, REGRET, horizons_of
from longterm.theory.conditions import power_sum
from longterm.theory.schedules import StronglyConvexDecoupledSchedule


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
        cls, problem: Problem, *, steps: StepKind = "convex", beta: Hyper = 2 / 3, theta_0: Hyper | None = None
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
        prox, R = prox_of(cls.__name__, cls.needs, problem), problem.constants.radius
        return cls(prox, decoupled_steps(problem, prox, steps, theta_0, beta, reach=R, share=1.0))

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
        x = self.initial_x(batch_shape, xp, dtype)
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
            sigma = as_column(like(np.asarray(self.schedule.strong_convexity), state.x))
            slope = gradient_sum = state.gradient_sum + (gradient - sigma * state.x)
            curvature = 1 / self.schedule.at(t, state.x).eta
        else:
            gradient_sum = state.gradient_sum + gradient
            curvature = 1 / self.schedule.at(t + 1, state.x).eta
            slope = gradient_sum - as_column(curvature) * like(self.enclosing_set.centre, gradient_sum)
        x = self.prox.argmin(slope, multiplier_sum, curvature)
        return AFTRLState(t + 1, x, multiplier, gradient_sum, multiplier_sum)


class PenalisedFTRLState(NamedTuple):
    """(t, x_t, ν_t, z_{t−1}, W_t): ν_t ≤ W_t is the weight on g that x_t was chosen with."""

    round: Array
    x: Array
    multiplier: Array
    gradient_sum: Array
    weight_sum: Array


@dataclass(frozen=True, eq=False)
class PenalisedFTRL(ProxLearner[PenalisedFTRLState]):
    """Penalised FTRL: η_t = step/√t, w_t = w_0 t^{1+growth}.

    Parameters
    ----------
    prox : PenaltyProx
        The closed form of the argmin with [g]₊, from `Constraint.prox(over)`.
    step : float or array
        η_1.
    w_0 : float or array
        The first weight.
    growth : float or array
        e, above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import Problem, run
    >>> from longterm.learners import PenalisedFTRL
    >>> from longterm.constraints import ElasticNetBudget
    >>> from longterm.losses import Linear
    >>> from longterm.streams import SwitchingCosts
    >>> g = ElasticNetBudget(5, budget=1.0)
    >>> problem = Problem(g.enclosing_ball(), Linear(5), g)
    >>> trace = run(problem, PenalisedFTRL.for_problem(problem), SwitchingCosts(5), rounds=1000, record=[10, 1000])
    >>> trace.hard_violation.round(3)
    array([0., 0.])
    """

    prox: PenaltyProx
    step: Hyper
    w_0: Hyper
    growth: Hyper = 0.5

    needs: ClassVar[frozenset[Need]] = frozenset({Need.FIXED_CONSTRAINT, Need.PENALTY_PROX})
    name: ClassVar[str] = "penalised_ftrl"
    title: ClassVar[str] = "Penalised FTRL"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(√T)", HARD: "O(1)"}

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "step", "w_0", "growth")
        super().__post_init__()

    @classmethod
    def for_problem(cls, problem: Problem, *, w_0: Hyper | None = None, growth: Hyper = 0.5) -> PenalisedFTRL:
        """Follow the regularised leader under a growing penalty on [g]₊: hardly any violation.

        Parameters
        ----------
        problem : Problem
            Gives B, the prox of [g]₊, R, G_f, D and F.
        w_0 : float or array, optional
            The first weight; (F + RG_f)/D unless given.
        growth : float or array
            e of w_t = w_0 t^{1+e}, above 0.
        """
        prox, c = penalty_prox_of(cls.__name__, cls.needs, problem), problem.constants
        G = validate.positive_scalar("loss_gradient_bound", c.loss_gradient_bound)
        if w_0 is None:
            w_0 = (c.loss_range + c.radius * G) / c.constraint_bound
        return cls(prox, c.radius / G, w_0, growth)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """For any x* with g(x*) ≤ 0 and any losses, with η_t = s/√t and w_t = w_0 t^{1+e}:

            Σ f_t(x_t) − f_t(x*) ≤ P_T = R²/(2η_T) + (G_f²/2) Σ η_t
            Σ [g(x_t)]₊          ≤ (P_1 + F) Σ t^{−1−e}/w_0 ≤ (P_1 + F) (1 + (1 − T^{−e})/e)/w_0

        With s = R/G_f, P_T ≤ (3/2) R G_f √T and P_1 = R G_f.

        Examples
        --------
        >>> from longterm.learners import PenalisedFTRL
        >>> from longterm.problems import budgeted_logistic
        >>> problem = budgeted_logistic([[3.0, 4.0, 0.0, 0.0]], budget=1.5)
        >>> bound = PenalisedFTRL.for_problem(problem).bound(problem, [100, 10_000])
        >>> bound["regret"].round(1), bound["hard_violation"].round(2)
        (array([ 72.5, 747.5]), array([4.2 , 4.47]))
        """
        T, c, s = horizons_of(rounds, self.batch_shape), problem.constants, np.asarray(self.step)
        e, w_0 = np.asarray(self.growth), np.asarray(self.w_0)
        regret = c.radius**2 * np.sqrt(T) / (2 * s) + c.loss_gradient_bound**2 * s / 2 * power_sum(T, 0.5)
        first = c.radius**2 / (2 * s) + c.loss_gradient_bound**2 * s / 2
        regret, violation = np.broadcast_arrays(regret, (first + c.loss_range) / w_0 * power_sum(T, 1 + e))
        return {REGRET: regret, HARD: violation}

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> PenalisedFTRLState:
        shape = np.broadcast_shapes(batch_shape, self.batch_shape)
        zero = xp.zeros((*shape, self.enclosing_set.dimension), dtype=float_dtype(xp, dtype))
        before = PenalisedFTRLState(xp.asarray(0, dtype=xp.int64), zero, zero[..., 0], zero, zero[..., 0])
        return self._after(before, zero)

    def ask(self, state: PenalisedFTRLState) -> Array:
        return state.x

    def update(self, state: PenalisedFTRLState, feedback: Feedback) -> PenalisedFTRLState:
        return self._after(state, state.gradient_sum + feedback.loss_gradient)

    def _after(self, state: PenalisedFTRLState, gradient_sum: Array) -> PenalisedFTRLState:
        xp, following = namespace(gradient_sum), state.round + 1
        t = xp.astype(following, gradient_sum.dtype)
        weight_sum = state.weight_sum + like(self.w_0, t) * t ** (1 + like(self.growth, t))
        curvature = t**0.5 / like(self.step, t)
        slope = gradient_sum - as_column(curvature) * like(self.enclosing_set.centre, gradient_sum)
        weight = xp.minimum(self.prox.least_weight(slope, curvature), weight_sum)
        x = self.prox.argmin(slope, as_column(weight), curvature)
        return PenalisedFTRLState(following, x, weight, gradient_sum, weight_sum)

    def report(self, state: PenalisedFTRLState) -> dict[str, Array]:
        t = namespace(state.x).astype(state.round, state.x.dtype)
        return {"multiplier": state.multiplier, "weight": state.weight_sum, "eta": like(self.step, t) / t**0.5}
