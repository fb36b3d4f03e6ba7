"""A-FTRL with constants found online: nothing about the losses is known beforehand, not even how long a gradient is.

The rule is that of `AFTRL`, with z_t = Σ_{s≤t} ∇f_s(x_s), Λ_t = Σ_{s≤t} λ_s, x_1 the centre of B,

    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t λ_t ) ]₊                                              λ_1 = 0
    x_{t+1} = argmin_{x ∈ B} ⟨z_t, x⟩ + ⟨Λ_{t+1}, g(x)⟩ + (a_{t+1}/2)‖x − x_1‖²

and its steps are made of the gradients so far: with V_t = Σ_{s≤t} ‖∇f_s(x_s)‖² and M_t = max_{s≤t} ‖∇f_s(x_s)‖,

    a_{t+1} = √V_t / R,       θ_t = D²/(10 R M_t t^β),       μ_t = 1/(θ_t (t + 1)).

Until the first gradient other than 0, in round τ, the learner stays at x_1 with λ = 0. R and D belong to the set and to
the constraint (D bounds the length of (g_1, …, g_m)); a budget gives both. If all losses are scaled by s, so is λ, and
the decisions stay the same.
Needs: a fixed constraint, and its prox on B (`Constraint.prox`). No horizon, no G_f, no F.
Guarantees: `bounds.adaptive_aftrl`, from what happened: regret at most (5/2) R √V_T + 5 R M_T (1 + (T^β − 1)/β), and a
signed violation from the θ_t that occurred. Tiny first gradients make early θ_t, and with them that bound, large; they
do not make the decisions any worse. Proof: `docs/aftrl.md`.
Not promised: what `AFTRL` does not promise either; and it never forgets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, dot, namespace
from longterm._validate import Hyper
from longterm.constraints.prox import Prox
from longterm.learners._given_prox import as_reported, ascend, prox_of, require_same_constraint, values_of
from longterm.learners._online_constants import about, add_theta, default_dual_scale, dual_steps, positive_or_one
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need
from longterm.problems import Problem
from longterm.sets import Set


class AdaptiveAFTRLState(NamedTuple):
    """(t, x_t, λ_t, z_{t−1}, Λ_t, V_{t−1}, M_{t−1}, S_θ + δ_μ): multipliers have shape (..., m)."""

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


@dataclass(frozen=True, eq=False)
class AdaptiveAFTRL(Learner[AdaptiveAFTRLState]):
    """A-FTRL that finds the losses' scale by itself: θ_t = dual_scale/(M_t t^β).

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
    enclosing_set: Set = field(init=False, repr=False)
    needs: ClassVar[frozenset[Need]] = frozenset({Need.FIXED_CONSTRAINT, Need.PROX})

    def __post_init__(self) -> None:
        validate.remember(
            self,
            dual_scale=validate.positive("dual_scale", self.dual_scale),
            beta=validate.open_unit_interval("beta", self.beta),
            enclosing_set=self.prox.over,
        )

    @classmethod
    def tuned(cls, problem: Problem, beta: Hyper = 2 / 3, dual_scale: Hyper | None = None) -> AdaptiveAFTRL:
        """The steps above, with the problem's own R and D; nothing is read off its losses."""
        prox = prox_of(cls.__name__, cls.needs, problem)
        return cls(prox, default_dual_scale(problem, prox) if dual_scale is None else dual_scale, beta)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        require_same_constraint(self.prox, problem)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> AdaptiveAFTRLState:
        x = self.at_the_centre(batch_shape, xp, dtype)
        zero = xp.zeros(x.shape[:-1], dtype=x.dtype)
        multiplier = xp.zeros((*x.shape[:-1], self.prox.constraint.count), dtype=x.dtype)
        first = xp.asarray(1, dtype=xp.int64)
        return AdaptiveAFTRLState(first, x, multiplier, xp.zeros_like(x), multiplier, zero, zero, zero)

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
        theta_sum = add_theta(state.theta_sum, steps)
        return AdaptiveAFTRLState(
            state.round + 1, x, multiplier, gradient_sum, multiplier_sum, square_sum, largest, theta_sum
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
