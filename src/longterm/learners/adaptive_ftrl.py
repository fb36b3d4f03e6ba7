"""A-FTRL with constants found online: nothing about the losses is known beforehand, not even how long a gradient is.

The rule is that of `AFTRL`, with z_t = Σ_{s≤t} ∇f_s(x_s), Λ_t = Σ_{s≤t} λ_s, x_1 the centre of B,

    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t λ_t ) ]₊                                              λ_1 = 0
    x_{t+1} = argmin_{x ∈ B} ⟨z_t, x⟩ + ⟨Λ_{t+1}, g(x)⟩ + (a_{t+1}/2)‖x − x_1‖²

and its steps are made of the gradients so far: with V_t = Σ_{s≤t} ‖∇f_s(x_s)‖² and M_t = max_{s≤t} ‖∇f_s(x_s)‖,

    a_{t+1} = √V_t / R,       θ_t = D²/(10 R M_t t^β),       μ_t = 1/(θ_t (t + 1)).

Until the first gradient other than 0, in round τ, the learner stays at x_1 with λ = 0. R and D belong to the set and to
the constraint (D bounds the length of (g_1, …, g_m)); a budget gives both. If all losses are scaled by s, so is λ, and
the decisions stay the same, while gradients are 0 or between 1e-140 and 1e140 long: their squares must be floats.
Needs: a fixed constraint, and its prox on B (`Constraint.prox`). No horizon, no G_f, no F.
Guarantees, from what happened (`bound(problem, rounds, state=trace.state)`): regret at most (5/2) R √V_T +
5 R M_T (1 + (T^β − 1)/β), and for every Σ_t g_j(x_t) (τ − 1)[g_j(x_1)]₊ for the rounds of waiting and a bound from the
θ_t that occurred for the rest. Tiny first gradients make early θ_t, and with them that bound, large; they do not make
the decisions any worse. Proof: `docs/aftrl.md`.
Not promised: what `AFTRL` does not promise either; and it never forgets.

Penalised FTRL with constants found online: O(1) hard violation without a bound on the gradients.

The rule is that of `PenalisedFTRL`, with z_t = Σ_{s≤t} ∇f_s(x_s), W_t = Σ_{s≤t} w_s and c the centre of B,

    x_{t+1} = argmin_{x ∈ B} ⟨z_t, x⟩ + W_{t+1} [g(x)]₊ + (a_{t+1}/2)‖x − c‖²

and its steps are made of the gradients so far: with V_t = Σ_{s≤t} ‖∇f_s(x_s)‖² and M_t = max_{s≤t} ‖∇f_s(x_s)‖,

    a_{t+1} = √V_t / R,       w_{t+1} = (2 R M_t / D) (t + 1)^{1+e},   w_1 = 0.

The weights do not fall and are known before the round they are for. Up to round τ, the first with a gradient other
than 0, the learner stays at c, which must not break the budget (c = 0 never does), and the weights are 0; w_{τ+1} is
the first above 0.
Needs: a fixed constraint of one function with {g ≤ 0} inside B and g(c) ≤ 0, and the prox of its positive part. No
horizon, no G_f, no F.
Guarantees, from what happened (`bound(problem, rounds, state=trace.state)`): regret at most (5/2) R √V_T, **hard**
violation Σ [g(x_t)]₊ at most ((5/2) R M_T + F) times a sum of 1/w_t that stays bounded. Proof: `docs/aftrl.md`.
Not promised: feasibility in a single round; and it never forgets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, as_column, dot, like, namespace
from longterm._validate import Hyper
from longterm.constraints.prox import PenaltyProx, Prox
from longterm.errors import InputError
from longterm.learners.duals import (
    OnlineProxLearner,
    about,
    add_theta,
    as_reported,
    ascend,
    default_dual_scale,
    dual_steps,
    first_round,
    length_bound,
    numbers,
    penalty_prox_of,
    positive_or_one,
    prox_of,
    regret_and_violation,
    require_exact,
    start_of,
    values_of,
)
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need
from longterm.problems import Problem
from longterm.theory.bounds import HARD, LONG_TERM, REGRET


class AdaptiveAFTRLState(NamedTuple):
    """(t, x_t, λ_t, z_{t−1}, Λ_t, V_{t−1}, M_{t−1}, S_θ + δ_μ, τ): multipliers have shape (..., m)."""

    round: Array
    x: Array
    multiplier: Array
    gradient_sum: Array
    multiplier_sum: Array
    square_sum: Array
    """V: squared lengths of all gradients so far, added up."""
    largest_gradient: Array
    """M: the length of the longest."""
    theta_sum: Array
    """1/μ_τ + Σ_{s>τ} θ_s, the weight of λ²/2 in the theorem: only the bound reads it."""
    first_gradient: Array = 0
    """τ, 0 until there is one: the bound counts the rounds before it. States stored by earlier versions lack it."""


@dataclass(frozen=True, eq=False)
class AdaptiveAFTRL(OnlineProxLearner[AdaptiveAFTRLState]):
    """A-FTRL that finds the losses' scale by itself: θ_t = dual_scale/(M_t t^β).

    Parameters
    ----------
    prox : Prox
        The closed form of the argmin, from `Constraint.prox(over)`.
    dual_scale : float or array
        c, above 0.
    beta : float or array
        β in (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import AdaptiveAFTRL
    >>> from longterm.problems import budgeted_logistic
    >>> from longterm.streams import ResampledRows
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((500, 20))
    >>> labels = np.sign(rows[:, 0] - 0.5 * rows[:, 1] + 0.1 * rng.standard_normal(500))
    >>> problem = budgeted_logistic(rows, budget=1.0)
    >>> trace = run(problem, AdaptiveAFTRL.for_problem(problem), ResampledRows(rows, labels), rounds=2000)
    >>> trace.state.x.round(2)[:4], int(np.count_nonzero(trace.state.x))
    (array([ 0.61, -0.18,  0.  ,  0.  ]), 2)
    """

    prox: Prox
    dual_scale: Hyper
    beta: Hyper = 2 / 3

    name: ClassVar[str] = "adaptive_aftrl"
    title: ClassVar[str] = "Adaptive A-FTRL"
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T + T^β), from what happened",
        LONG_TERM: "(τ − 1)[g(x_1)]₊ + O(T^(1−β/2)), from what happened",
    }

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "dual_scale")
        validate.validate_fields(self, validate.trade_off, "beta")
        super().__post_init__()

    @classmethod
    def for_problem(cls, problem: Problem, *, beta: Hyper = 2 / 3, dual_scale: Hyper | None = None) -> AdaptiveAFTRL:
        """A-FTRL with no bound on the gradients known.

        Parameters
        ----------
        problem : Problem
            Gives B, the prox of g, R and D; nothing is read off its losses.
        beta : float or array
            β in (0, 1): larger favours the constraint, smaller the regret.
        dual_scale : float or array, optional
            c of θ_t = c/(M_t t^β), above 0; D²/(10R) unless given.
        """
        prox = prox_of(cls.__name__, cls.needs, problem)
        return cls(prox, default_dual_scale(problem, prox) if dual_scale is None else dual_scale, beta)

    def theorem_after(self, problem: Problem, state: AdaptiveAFTRLState) -> Mapping[str, FloatArray]:
        """After T rounds, for any x* with g(x*) ≤ 0 and any losses, θ_t = c/(M_t t^β):

            Σ f_t(x_t) − f_t(x*)  ≤ (5/2) R √V_T + (D² M_T/(2c)) Σ t^{β−1}
            max_j Σ_t g_j(x_t)    ≤ (τ − 1) max_j [g_j(x_1)]₊ + √( 2 (1/μ_τ + Σ_{t>τ} θ_t) (that + F T) )

        With c = D²/(10R) the second term is 5 R M_T Σ t^{β−1}. The τ − 1 rounds before the first gradient other than 0
        are played at x_1; a gradient bound is not among the constants.

        Examples
        --------
        >>> import numpy as np
        >>> from longterm import run
        >>> from longterm.learners import AdaptiveAFTRL
        >>> from longterm.problems import two_dimensional
        >>> from longterm.streams import Replay
        >>> problem = two_dimensional()
        >>> learner = AdaptiveAFTRL.for_problem(problem)
        >>> trace = run(problem, learner, Replay([np.tile([0.8, 0.6], (1000, 1))]))
        >>> bound = learner.bound(problem, 1000, state=trace.state)
        >>> round(float(bound["regret"]), 1), round(float(bound["long_term_violation"]), 1)
        (1295.1, 136.6)
        """
        require_exact(self.prox)
        primal = 2.5 * problem.constants.radius * np.sqrt(numbers(state.square_sum))
        D, at_start = length_bound(self.prox, problem), start_of(problem)
        regret, violation = regret_and_violation(primal, D, at_start, self.dual_scale, self.beta, problem, state)
        return {REGRET: regret, LONG_TERM: violation}

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> AdaptiveAFTRLState:
        x = self.initial_x(batch_shape, xp, dtype)
        zero = xp.zeros(x.shape[:-1], dtype=x.dtype)
        multiplier = xp.zeros((*x.shape[:-1], self.prox.constraint.count), dtype=x.dtype)
        first, never = xp.asarray(1, dtype=xp.int64), xp.zeros(x.shape[:-1], dtype=xp.int64)
        return AdaptiveAFTRLState(first, x, multiplier, xp.zeros_like(x), multiplier, zero, zero, zero, never)

    def ask(self, state: AdaptiveAFTRLState) -> Array:
        return state.x

    def update(self, state: AdaptiveAFTRLState, feedback: Feedback) -> AdaptiveAFTRLState:
        gradient, xp = feedback.loss_gradient, namespace(state.x)
        square = dot(gradient, gradient)
        square_sum, largest = state.square_sum + square, xp.maximum(state.largest_gradient, xp.sqrt(square))
        steps = dual_steps(state.round, largest, self.dual_scale, self.beta)
        multiplier = ascend(state.multiplier, values_of(feedback, self.prox.constraint.count), steps)
        multiplier_sum, gradient_sum = state.multiplier_sum + multiplier, state.gradient_sum + gradient
        curvature = self._curvature(square_sum)
        x = self.prox.argmin(about(self.enclosing_set.centre, gradient_sum, curvature), multiplier_sum, curvature)
        return AdaptiveAFTRLState(
            round=state.round + 1,
            x=x,
            multiplier=multiplier,
            gradient_sum=gradient_sum,
            multiplier_sum=multiplier_sum,
            square_sum=square_sum,
            largest_gradient=largest,
            theta_sum=add_theta(state.theta_sum, steps),
            first_gradient=first_round(state.first_gradient, state.round, largest),
        )

    def _curvature(self, square_sum: Array) -> Array:
        # While every gradient was 0, so are z and Λ: whatever the curvature, the argmin is the centre.
        return positive_or_one(namespace(square_sum).sqrt(square_sum) / self.enclosing_set.radius)

    def report(self, state: AdaptiveAFTRLState) -> dict[str, Array]:
        return {
            "multiplier": as_reported(state.multiplier),
            "eta": 1 / self._curvature(state.square_sum),
            "square_sum": state.square_sum,
            "largest_gradient": state.largest_gradient,
        }


class AdaptivePenalisedFTRLState(NamedTuple):
    """(t, x_t, ν_t, z_{t−1}, W_t, V_{t−1}, M_{t−1}, Σ 1/w): ν_t ≤ W_t is the weight on g that x_t was chosen with."""

    round: Array
    x: Array
    multiplier: Array
    gradient_sum: Array
    weight_sum: Array
    square_sum: Array
    largest_gradient: Array
    inverse_sum: Array
    """(τ + 1)/w_{τ+1} + Σ_{τ+1<s≤t} 1/w_s, w_{τ+1} the first weight above 0: only the bound reads it."""


@dataclass(frozen=True, eq=False)
class AdaptivePenalisedFTRL(OnlineProxLearner[AdaptivePenalisedFTRLState]):
    """Penalised FTRL that finds the losses' scale by itself: w_{t+1} = weight_scale M_t (t + 1)^{1+growth}.

    Parameters
    ----------
    prox : PenaltyProx
        The closed form of the argmin with [g]₊, from `Constraint.prox(over)`.
    weight_scale : float or array
        Above 0.
    growth : float or array
        e, above 0.

    Examples
    --------
    >>> from longterm import Problem, run
    >>> from longterm.learners import AdaptivePenalisedFTRL
    >>> from longterm.constraints import ElasticNetBudget
    >>> from longterm.losses import Linear
    >>> from longterm.streams import SwitchingCosts
    >>> g = ElasticNetBudget(5, budget=1.0)
    >>> problem = Problem(g.enclosing_ball(), Linear(5), g)
    >>> learner = AdaptivePenalisedFTRL.for_problem(problem)
    >>> trace = run(problem, learner, SwitchingCosts(5), rounds=1000, record=[10, 1000])
    >>> trace.hard_violation.round(3)
    array([0., 0.])
    """

    prox: PenaltyProx
    weight_scale: Hyper
    growth: Hyper = 0.5

    needs: ClassVar[frozenset[Need]] = frozenset({Need.FIXED_CONSTRAINT, Need.PENALTY_PROX})
    name: ClassVar[str] = "adaptive_penalised_ftrl"
    title: ClassVar[str] = "Adaptive penalised FTRL"
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T), from what happened",
        HARD: "O(1), from what happened",
    }

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "weight_scale", "growth")
        super().__post_init__()
        if np.any(self.prox.constraint.values(self.enclosing_set.centre) > 0):
            what = "the centre of its set, where it waits for the first gradient, breaks the constraint"
            raise InputError("prox", what, "Use a set about a feasible point, or PenalisedFTRL")

    @classmethod
    def for_problem(
        cls, problem: Problem, *, weight_scale: Hyper | None = None, growth: Hyper = 0.5
    ) -> AdaptivePenalisedFTRL:
        """Penalised FTRL with no bound on the gradients known.

        Parameters
        ----------
        problem : Problem
            Gives B, the prox of [g]₊, R and D; nothing is read off its losses.
        weight_scale : float or array, optional
            Above 0; 2R/D unless given.
        growth : float or array
            e of the weights, above 0.
        """
        prox, c = penalty_prox_of(cls.__name__, cls.needs, problem), problem.constants
        return cls(prox, 2 * c.radius / c.constraint_bound if weight_scale is None else weight_scale, growth)

    def theorem_after(self, problem: Problem, state: AdaptivePenalisedFTRLState) -> Mapping[str, FloatArray]:
        """After T rounds, for any x* with g(x*) ≤ 0 and any losses, τ the first round with a gradient other than 0:

            Σ f_t(x_t) − f_t(x*)  ≤ (5/2) R √V_T
            Σ [g(x_t)]₊           ≤ ((5/2) R M_T + F) ( (τ + 1)/w_{τ+1} + Σ_{τ+1<t≤T} 1/w_t )

        The state's sum goes up to w_{T+1}, which it knows already: one term more than the theorem needs.
        """
        c = problem.constants
        regret = 2.5 * c.radius * np.sqrt(numbers(state.square_sum))
        share = 2.5 * c.radius * numbers(state.largest_gradient) + c.loss_range
        return {REGRET: regret, HARD: share * numbers(state.inverse_sum)}

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> AdaptivePenalisedFTRLState:
        x = self.initial_x(batch_shape, xp, dtype)
        zero, first = xp.zeros(x.shape[:-1], dtype=x.dtype), xp.asarray(1, dtype=xp.int64)
        return AdaptivePenalisedFTRLState(first, x, zero, xp.zeros_like(x), zero, zero, zero, zero)

    def ask(self, state: AdaptivePenalisedFTRLState) -> Array:
        return state.x

    def update(self, state: AdaptivePenalisedFTRLState, feedback: Feedback) -> AdaptivePenalisedFTRLState:
        gradient, xp, following = feedback.loss_gradient, namespace(state.x), state.round + 1
        square, t = dot(gradient, gradient), xp.astype(following, state.x.dtype)
        square_sum, largest = state.square_sum + square, xp.maximum(state.largest_gradient, xp.sqrt(square))
        sums = state.weight_sum, state.inverse_sum
        weight_sum, inverse_sum = with_weight(*sums, largest, t, self.weight_scale, self.growth)
        gradient_sum = state.gradient_sum + gradient
        curvature = positive_or_one(xp.sqrt(square_sum) / self.enclosing_set.radius)
        slope = about(self.enclosing_set.centre, gradient_sum, curvature)
        weight = xp.minimum(self.prox.least_weight(slope, curvature), weight_sum)
        x = self.prox.argmin(slope, as_column(weight), curvature)
        return AdaptivePenalisedFTRLState(
            following, x, weight, gradient_sum, weight_sum, square_sum, largest, inverse_sum
        )

    def report(self, state: AdaptivePenalisedFTRLState) -> dict[str, Array]:
        return {
            "multiplier": state.multiplier,
            "weight": state.weight_sum,
            "square_sum": state.square_sum,
            "largest_gradient": state.largest_gradient,
        }


def with_weight(
    weight_sum: Array, inverse_sum: Array, largest: Array, t: Array, scale: Hyper, growth: Hyper
) -> tuple[Array, Array]:
    """W and the sum of 1/w with the weight of round t, w_t = scale · M_{t−1} t^{1+growth}."""
    xp = namespace(t)
    new = like(scale, t) * largest * t ** (1 + like(growth, t))
    inverse = xp.where(new > 0, 1 / positive_or_one(new), new)
    return weight_sum + new, inverse_sum + xp.where(inverse_sum > 0, inverse, t * inverse)
