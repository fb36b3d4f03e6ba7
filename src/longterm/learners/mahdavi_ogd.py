"""Convex OGD with long-term constraints (Mahdavi, Jin, Yang, JMLR 13, 2012, Algorithm 1).

With the Lagrangian L_t(x, λ) = f_t(x) + Σ_j { λ_j g_j(x) − (ηδ/2) λ_j² }, constant steps, and both of them taken
from (x_t, λ_t):

    x_{t+1} = Π_B( x_t − η ( ∇f_t(x_t) + Σ_j λ_t^j ∇g_j(x_t) ) )         x_1 = centre of B
    λ_{t+1} = [ λ_t + η ( g(x_t) − ηδ λ_t ) ]₊                           λ_1 = 0 in R^m

Two forms: `MahdaviOGD.vector` has a multiplier for each constraint, `MahdaviOGD.aggregate` one for g = max_j g_j,
with m = 1 in every constant. The second is A-OGD with constant steps.
Steps: `longterm.learners.mahdavi_steps`, from Theorem 4.
Needs: the horizon T; value and one subgradient of f_t and of each g_j (or of their maximum) at x_t.
Guarantees: `bounds.mahdavi_theorem_4`, and `bounds.vector_lemma` for any number of rounds. The vector form bounds every
Σ_t g_j(x_t), the aggregate Σ_t max_j g_j(x_t), which is more. The proof uses the comparator only through
λ_t · g_t(x*) ≤ 0, so constraints may change from round to round, against a point that is feasible in every round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, column, namespace
from longterm._validate import Hyper
from longterm.learners.aogd import AOGDState
from longterm.learners.base import Learner, OnBrokenBound
from longterm.learners.duals import Duals, OneForTheMaximum, OnePerConstraint
from longterm.learners.feedback import Feedback
from longterm.learners.mahdavi_steps import DeltaRule, smallest_root, tuned_steps, twice
from longterm.learners.needs import Need
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.assumptions import Assumption
from longterm.theory.schedules import ConstantSchedule


@dataclass(frozen=True, eq=False)
class MahdaviOGD(Learner[AOGDState]):
    """Convex OGD on an enclosing set, with constant steps θ = ηδ, η, μ = η and one or m multipliers.

    >>> from longterm import run
    >>> from longterm.learners import MahdaviOGD
    >>> from longterm.problems import doubly_stochastic
    >>> from longterm.streams import RandomPermutations
    >>> problem = doubly_stochastic(3)
    >>> vector = MahdaviOGD.for_problem(problem, horizon=100, multipliers="each")
    >>> aggregate = MahdaviOGD.for_problem(problem, horizon=100)
    >>> [run(problem, learner, RandomPermutations(3), 100).state.multiplier.shape for learner in (vector, aggregate)]
    [(21,), ()]
    """

    enclosing_set: Set
    schedule: ConstantSchedule
    duals: Duals

    needs: ClassVar[frozenset[Need]] = frozenset({Need.HORIZON})

    @classmethod
    def vector(cls, problem: Problem, horizon: int, delta: DeltaRule = smallest_root) -> MahdaviOGD:
        """Theorem 4 with a multiplier for each of the m constraints; `delta` is `smallest_root` or `twice`."""
        m = problem.constraint.count
        return cls(problem.enclosing_set, tuned_steps(problem.constants, horizon, m, delta), OnePerConstraint(m))

    @classmethod
    def aggregate(cls, problem: Problem, horizon: int, delta: DeltaRule = smallest_root) -> MahdaviOGD:
        """Theorem 4 with one multiplier for max_j g_j, so m = 1; `delta` is `smallest_root` or `twice`."""
        return cls(problem.enclosing_set, tuned_steps(problem.constants, horizon, 1, delta), OneForTheMaximum())

    @classmethod
    def one_multiplier_counted_as_many(cls, problem: Problem, horizon: int, *, constraint_bound: float) -> MahdaviOGD:
        """What Jenatton et al. (2016) must have drawn as "Convex OGD": neither of the two forms.

        One multiplier for max_j g_j, but steps made for all m constraints (96 on their 8 × 8 matrices), with
        δ = 2 (m + 1) G² and the D they state (√p, given here as `constraint_bound`; the true one is p + 1). Its steps
        are several times too small. For their figure only; compare with `aggregate` or `vector`.
        """
        D = validate.positive_scalar("constraint_bound", constraint_bound)
        constants = replace(problem.constants, constraint_bound=D)
        steps = tuned_steps(constants, horizon, problem.constraint.count, twice)
        return cls(problem.enclosing_set, steps, OneForTheMaximum())

    @property
    def gradient_bound(self) -> Hyper | None:
        return self.schedule.gradient_bound

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        if self.gradient_bound is None:
            return ()
        theta, eta, mu = (np.asarray(step) for step in (self.schedule.theta, self.schedule.eta, self.schedule.mu))
        asked = eta * (self.duals.count + 1) * np.asarray(self.gradient_bound) ** 2 + 2 * mu * theta**2
        statement = "(m + 1)G²η + 2μθ² ≤ θ (with μ = η and θ = ηδ: (m + 1)G² + 2δ²η² ≤ δ)"
        return (Assumption.worst(statement, asked, theta, "Give a longer horizon, or a larger δ"),)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> AOGDState:
        x = self.at_the_centre(batch_shape, xp, dtype)
        return AOGDState(xp.asarray(1, dtype=xp.int64), x, xp.zeros((*x.shape[:-1], *self.duals.shape), dtype=x.dtype))

    def ask(self, state: AOGDState) -> Array:
        return state.x

    @property
    def reads_pullback(self) -> bool:
        return isinstance(self.duals, OnePerConstraint)

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        self.duals.require(feedback, x, t)

    def update(self, state: AOGDState, feedback: Feedback) -> AOGDState:
        theta, eta, mu = self.schedule.at(state.round, state.x)
        spread = self.duals.spread
        descent = feedback.loss_gradient + self.duals.pullback(feedback, state.multiplier)
        ascent = self.duals.values(feedback) - spread(theta) * state.multiplier
        return AOGDState(
            round=state.round + 1,
            x=self.enclosing_set.project(state.x - column(eta) * descent),
            multiplier=namespace(state.x).maximum(state.multiplier + spread(mu) * ascent, 0.0),
        )

    def report(self, state: AOGDState) -> dict[str, Array]:
        theta, eta, mu = self.schedule.at(state.round, state.x)
        return {"multiplier": state.multiplier, "theta": theta, "eta": eta, "mu": mu}
