"""Penalised FTRL with constants found online: O(1) hard violation without a bound on the gradients.

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
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, column, dot, like, namespace
from longterm._validate import Hyper
from longterm.constraints.prox import PenaltyProx
from longterm.errors import InputError
from longterm.learners._given import penalty_prox_of, require_same_constraint
from longterm.learners._online_constants import about, no_theorem_beforehand, numbers, positive_or_one
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.bounds import HARD, REGRET


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
class AdaptivePenalisedFTRL(Learner[AdaptivePenalisedFTRLState]):
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
    enclosing_set: Set = field(init=False, repr=False)

    needs: ClassVar[frozenset[Need]] = frozenset({Need.FIXED_CONSTRAINT, Need.PENALTY_PROX})
    name: ClassVar[str] = "adaptive_penalised_ftrl"
    title: ClassVar[str] = "Adaptive penalised FTRL"
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T), from what happened",
        HARD: "O(1), from what happened",
    }

    def __post_init__(self) -> None:
        validate.remember(
            self,
            weight_scale=validate.positive("weight_scale", self.weight_scale),
            growth=validate.positive("growth", self.growth),
            enclosing_set=self.prox.over,
        )
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

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        require_same_constraint(self.prox, problem)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        raise no_theorem_beforehand(type(self).__name__)

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
        x = self.at_the_centre(batch_shape, xp, dtype)
        zero, first = xp.zeros(x.shape[:-1], dtype=x.dtype), xp.asarray(1, dtype=xp.int64)
        return AdaptivePenalisedFTRLState(first, x, zero, xp.zeros_like(x), zero, zero, zero, zero)

    def ask(self, state: AdaptivePenalisedFTRLState) -> Array:
        return state.x

    def update(self, state: AdaptivePenalisedFTRLState, feedback: Feedback) -> AdaptivePenalisedFTRLState:
        gradient, xp, following = feedback.loss_gradient, namespace(state.x), state.round + 1
        square, t = dot(gradient, gradient), xp.astype(following, state.x.dtype)
        square_sum, largest = state.square_sum + square, xp.maximum(state.largest_gradient, xp.sqrt(square))
        new = like(self.weight_scale, t) * largest * t ** (1 + like(self.growth, t))
        weight_sum, gradient_sum = state.weight_sum + new, state.gradient_sum + gradient
        curvature = positive_or_one(xp.sqrt(square_sum) / self.enclosing_set.radius)
        slope = about(self.enclosing_set.centre, gradient_sum, curvature)
        weight = xp.minimum(self.prox.least_weight(slope, curvature), weight_sum)
        x = self.prox.argmin(slope, column(weight), curvature)
        inverse = xp.where(new > 0, 1 / positive_or_one(new), new)
        inverse_sum = state.inverse_sum + xp.where(state.inverse_sum > 0, inverse, t * inverse)
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
