"""Penalised FTRL: no multiplier to learn, a penalty that grows by itself, and O(1) violation counted without credit.

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
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, column, float_dtype, like, namespace
from longterm._validate import Hyper
from longterm.constraints.prox import PenaltyProx
from longterm.learners._given_prox import penalty_prox_of, require_same_constraint
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.bounds import HARD, REGRET, horizons_of
from longterm.theory.conditions import power_sum


class PenalisedFTRLState(NamedTuple):
    """(t, x_t, ν_t, z_{t−1}, W_t): ν_t ≤ W_t is the weight on g that x_t was chosen with."""

    round: Array
    x: Array
    multiplier: Array
    gradient_sum: Array
    weight_sum: Array


@dataclass(frozen=True, eq=False)
class PenalisedFTRL(Learner[PenalisedFTRLState]):
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
    enclosing_set: Set = field(init=False, repr=False)

    needs: ClassVar[frozenset[Need]] = frozenset({Need.FIXED_CONSTRAINT, Need.PENALTY_PROX})
    name: ClassVar[str] = "penalised_ftrl"
    title: ClassVar[str] = "Penalised FTRL"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(√T)", HARD: "O(1)"}

    def __post_init__(self) -> None:
        validate.remember(
            self,
            step=validate.positive("step", self.step),
            w_0=validate.positive("w_0", self.w_0),
            growth=validate.positive("growth", self.growth),
            enclosing_set=self.prox.over,
        )

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

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        require_same_constraint(self.prox, problem)

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
        slope = gradient_sum - column(curvature) * like(self.enclosing_set.centre, gradient_sum)
        weight = xp.minimum(self.prox.least_weight(slope, curvature), weight_sum)
        x = self.prox.argmin(slope, column(weight), curvature)
        return PenalisedFTRLState(following, x, weight, gradient_sum, weight_sum)

    def report(self, state: PenalisedFTRLState) -> dict[str, Array]:
        t = namespace(state.x).astype(state.round, state.x.dtype)
        return {"multiplier": state.multiplier, "weight": state.weight_sum, "eta": like(self.step, t) / t**0.5}
