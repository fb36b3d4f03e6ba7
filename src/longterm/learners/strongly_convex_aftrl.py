"""A-FTRL for σ-strongly convex losses: each loss is remembered by its quadratic model, and nothing else regularises.

    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t λ_t ) ]₊                                              λ_1 = 0
    x_{t+1} = argmin_{x ∈ B} Σ_{s≤t} [ ⟨∇f_s(x_s), x⟩ + (σ/2)‖x − x_s‖² ] + ⟨Λ_{t+1}, g(x)⟩

All models together have the gradient Σ_{s≤t} (∇f_s(x_s) − σx_s) at 0 and the curvature σt. θ_t and μ_t as in `AFTRL`.
Needs: a fixed constraint, its prox on B, and σ > 0. No horizon; G_f is not used.
Guarantees: `bounds.strongly_convex_aftrl`: O(log T + T^β) regret, O(T^{1−β/2}) for every Σ_t g_j(x_t) (signed).
Not promised: what `AFTRL` does not promise; this one does not forget either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longterm._arrays import Array, column, like
from longterm._validate import Hyper
from longterm.learners._given_prox import default_theta, prox_of, require_strong_convexity, strong_convexity_of
from longterm.learners._leader import Leader
from longterm.problems import Problem
from longterm.theory.schedules import StronglyConvexDecoupledSchedule


@dataclass(frozen=True, eq=False)
class StronglyConvexAFTRL(Leader):
    """A-FTRL for strongly convex losses.

    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import StronglyConvexAFTRL
    >>> from longterm.problems import two_dimensional
    >>> from longterm.streams import Replay
    >>> problem = two_dimensional()  # g = x₁ − ¼
    >>> trace = run(problem, AFTRL.for_problem(problem, steps="strongly convex"), Replay([np.tile([0.8, 0.6], (2000, 1))]))
    >>> trace.state.x.round(2)
    array([0.25, 0.6 ])
    """

    schedule: StronglyConvexDecoupledSchedule

    @classmethod
    def tuned(cls, problem: Problem, beta: Hyper = 2 / 3, theta_0: Hyper | None = None) -> StronglyConvexAFTRL:
        """The steps above, with the problem's own σ, D and F."""
        prox = prox_of(cls.__name__, cls.needs, problem)
        sigma, theta_0 = strong_convexity_of(problem, "AFTRL"), default_theta(problem, prox, theta_0)
        return cls(prox, StronglyConvexDecoupledSchedule(sigma, theta_0, beta))

    def check(self, problem: Problem) -> None:
        super().check(problem)
        require_strong_convexity(self.schedule, problem, "AFTRL")

    def _model_gradient(self, x: Array, gradient: Array) -> Array:
        return gradient - column(like(np.asarray(self.schedule.strong_convexity), x)) * x

    def _regularised(self, t: Array, gradient_sum: Array) -> tuple[Array, Array]:
        return gradient_sum, 1 / self.schedule.at(t, gradient_sum).eta
