"""A-OGD: adaptive online gradient descent with long-term constraints (Jenatton, Huang, Archambeau 2016).

With the Lagrangian L_t(x, λ) = f_t(x) + λ g(x) − θ_t λ²/2, where g = max_j g_j, and both steps taken
from (x_t, λ_t):

    x_{t+1} = Π_B( x_t − η_t ( ∇f_t(x_t) + λ_t ∇g(x_t) ) )          x_1 = centre of B
    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t λ_t ) ]₊                   λ_1 = 0

Steps: Table 1 of the paper (`ConvexSchedule`, `StronglyConvexSchedule`), or any schedule.
Needs: value and one subgradient of f_t and of g_t at x_t; no horizon, no projection onto {g ≤ 0}.
Guarantees: `longterm.bounds`, for any losses and any g_t (fixed or not) against a comparator with
g_t(x*) ≤ 0 in every round. The bound is on the signed sum Σ_t max_j g_j(x_t), which is at least the paper's
max_j Σ_t g_j(x_t); single rounds may be infeasible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from longterm._arrays import Array, column, namespace
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.schedules import ConvexSchedule, Schedule, StronglyConvexSchedule


class AOGDState(NamedTuple):
    """(t, x_t, λ_t)."""

    round: Array
    x: Array
    multiplier: Array


@dataclass(frozen=True, eq=False)
class AOGD(Learner[AOGDState]):
    """A-OGD on an enclosing set with a schedule.

    >>> import numpy as np
    >>> from longterm import AOGD, observe
    >>> from longterm.problems import two_dimensional
    >>> problem = two_dimensional()
    >>> learner = AOGD.strongly_convex(problem, beta=0.5)
    >>> state = learner.init()
    >>> for target in ([1.0, 0.0], [0.0, 1.0]):
    ...     x = learner.ask(state)
    ...     state = learner.tell(state, observe(problem, x, [np.array(target)]))
    >>> learner.ask(state), round(float(state.multiplier), 6)
    (array([0.5, 0.5]), 0.014731)
    """

    enclosing_set: Set
    schedule: Schedule

    @classmethod
    def convex(cls, problem: Problem, beta: Hyper = 2 / 3) -> AOGD:
        """Table 1, convex column, with the problem's own Δ and G."""
        constants = problem.constants
        return cls(problem.enclosing_set, ConvexSchedule(constants.diameter, constants.gradient_bound, beta))

    @classmethod
    def strongly_convex(cls, problem: Problem, beta: Hyper = 2 / 3) -> AOGD:
        """Table 1, strongly convex column, with the problem's own G and σ."""
        constants = problem.constants
        if constants.strong_convexity <= 0:
            raise InputError(
                "problem",
                f"the losses of {problem.name!r} are not strongly convex (σ = {constants.strong_convexity:g})",
                "Use AOGD.convex, or declare a strong_convexity that holds",
            )
        schedule = StronglyConvexSchedule(constants.gradient_bound, constants.strong_convexity, beta)
        return cls(problem.enclosing_set, schedule)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        sigma = problem.constants.strong_convexity
        if isinstance(self.schedule, StronglyConvexSchedule) and np.any(self.schedule.strong_convexity > sigma):
            what = f"its steps are made for σ = {self.schedule.strong_convexity}, the losses have {sigma:g}"
            raise InputError("learner", what, "Use AOGD.convex, or declare a strong_convexity that holds")

    @property
    def gradient_bound(self) -> Hyper | None:
        return self.schedule.gradient_bound

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> AOGDState:
        x = self.at_the_centre(batch_shape, xp, dtype)
        return AOGDState(xp.asarray(1, dtype=xp.int64), x, xp.zeros(x.shape[:-1], dtype=x.dtype))

    def ask(self, state: AOGDState) -> Array:
        return state.x

    def update(self, state: AOGDState, feedback: Feedback) -> AOGDState:
        theta, eta, mu = self.schedule.at(state.round, state.x)
        descent = feedback.loss_gradient + column(state.multiplier) * feedback.constraint_gradient
        ascent = feedback.constraint - theta * state.multiplier
        return AOGDState(
            round=state.round + 1,
            x=self.enclosing_set.project(state.x - column(eta) * descent),
            multiplier=namespace(state.x).maximum(state.multiplier + mu * ascent, 0.0),
        )

    def report(self, state: AOGDState) -> dict[str, Array]:
        theta, eta, mu = self.schedule.at(state.round, state.x)
        return {"multiplier": state.multiplier, "theta": theta, "eta": eta, "mu": mu}
