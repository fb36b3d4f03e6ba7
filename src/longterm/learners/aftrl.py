"""A-FTRL: the paper's dual with a follow-the-regularised-leader primal, for convex losses.

With z_t = Σ_{s≤t} ∇f_s(x_s), Λ_t = Σ_{s≤t} λ_s and x_1 the centre of B, every round goes

    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t λ_t ) ]₊                                              λ_1 = 0
    x_{t+1} = argmin_{x ∈ B} ⟨z_t, x⟩ + ⟨Λ_{t+1}, g(x)⟩ + ‖x − x_1‖²/(2η_{t+1})

The argmin holds g itself, so iterates under an ℓ1 budget are truly sparse. Affine constraints have a multiplier each
(λ, Λ and g are vectors); a budget has one.

Steps: η_t = R/(G_f √t), where x_t is played with η_t (R = max ‖x_1 − x‖ over B, G_f for the losses alone; ∇g never
enters), θ_t = θ_0/t^β with any θ_0 > 0, μ_t = 1/(θ_t (t + 1)). A larger θ_0 lowers the bound on the regret and raises
that on the violation; the sum of regret and (F/D)·violation has its smallest bound at 0.72 D²/F (β = 2/3). On data
smaller ones do better: the default is D²/(10F). Scaling g by s needs θ_0 scaled by s², as D²/F is.
Needs: a fixed constraint, and its prox on B (`Constraint.prox`). No horizon.
Guarantees: `bounds.aftrl`: O(√T + T^β) regret, O(T^{1−β/2}) for every Σ_t g_j(x_t) (signed). Proof and history:
`docs/aftrl.md`.
Not promised: feasibility in a single round, a small Σ [g(x_t)]₊, and anything about streams that drift: A-FTRL
never forgets (z and Λ only accumulate). `Restarted` is for those.
"""

from __future__ import annotations

from dataclasses import dataclass

from longterm._arrays import Array, column, like
from longterm._validate import Hyper, positive_scalar
from longterm.learners._given_prox import default_theta, prox_of
from longterm.learners._leader import Leader
from longterm.problems import Problem
from longterm.theory.schedules import DecoupledSchedule


@dataclass(frozen=True, eq=False)
class AFTRL(Leader):
    """A-FTRL for convex losses.

    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import AFTRL
    >>> from longterm.problems import budgeted_logistic
    >>> from longterm.streams import ResampledRows
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((500, 20))
    >>> labels = np.sign(rows[:, 0] - 0.5 * rows[:, 1] + 0.1 * rng.standard_normal(500))
    >>> problem = budgeted_logistic(rows, budget=1.0)
    >>> trace = run(problem, AFTRL.for_problem(problem), ResampledRows(rows, labels), rounds=2000)
    >>> trace.state.x.round(2)[:4], int(np.count_nonzero(trace.state.x))
    (array([ 0.58, -0.23,  0.  ,  0.  ]), 2)
    """

    schedule: DecoupledSchedule

    @classmethod
    def tuned(cls, problem: Problem, beta: Hyper = 2 / 3, theta_0: Hyper | None = None) -> AFTRL:
        """The steps above, with the problem's own R, G_f, D and F."""
        prox, c = prox_of(cls.__name__, cls.needs, problem), problem.constants
        step = c.radius / positive_scalar("loss_gradient_bound", c.loss_gradient_bound)
        return cls(prox, DecoupledSchedule(step, default_theta(problem, prox, theta_0), beta))

    def _model_gradient(self, x: Array, gradient: Array) -> Array:
        return gradient

    def _regularised(self, t: Array, gradient_sum: Array) -> tuple[Array, Array]:
        curvature = 1 / self.schedule.at(t + 1, gradient_sum).eta
        return gradient_sum - column(curvature) * like(self.enclosing_set.centre, gradient_sum), curvature
