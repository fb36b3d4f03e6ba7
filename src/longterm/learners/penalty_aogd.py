"""A-OGD with a penalty φ of the user's on the multiplier (the paper's discussion section asks which φ is best).

With L_t(x, λ) = f_t(x) + λ g(x) − θ_t φ(λ), g = max_j g_j, and both steps from (x_t, λ_t):

    x_{t+1} = Π_B( x_t − η_t ( ∇f_t(x_t) + λ_t ∇g(x_t) ) )          x_1 = centre of B
    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t φ'(λ_t) ) ]₊               λ_1 = 0

Steps: any schedule for which `theory.penalties.check_penalty` says that C1' and C2' hold; Table 1 by default. With
`QUADRATIC`, the default, this is A-OGD itself. The answer to the paper's question is that it hardly matters: C2'
squeezes every admissible φ between two quadratics (`longterm.theory.penalties`).
Needs: as A-OGD.
Guarantees: `bounds.penalty_aogd`, A-OGD's with φ's conjugate in the place of the square (`docs/after_the_paper.md`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longterm._arrays import Array, column, namespace
from longterm._validate import Hyper
from longterm.learners.aogd import AOGDState
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.penalties import QUADRATIC, Penalty
from longterm.theory.schedules import ConvexSchedule, Schedule


@dataclass(frozen=True, eq=False)
class PenaltyAOGD(Learner[AOGDState]):
    """A-OGD on an enclosing set with a schedule and a penalty.

    >>> from longterm.learners import PenaltyAOGD
    >>> from longterm.problems import two_dimensional
    >>> from longterm.theory.penalties import Penalty, check_penalty
    >>> problem = two_dimensional()
    >>> lighter = Penalty(lambda u: 0.4 * u**2, lambda u: 0.8 * u, strong_convexity=0.8)
    >>> learner = PenaltyAOGD.convex(problem, lighter)
    >>> check_penalty(lighter, learner.schedule, problem.constants, 1000).hold
    True
    """

    enclosing_set: Set
    schedule: Schedule
    penalty: Penalty = QUADRATIC

    @classmethod
    def convex(cls, problem: Problem, penalty: Penalty = QUADRATIC, beta: Hyper = 2 / 3) -> PenaltyAOGD:
        """Table 1, convex column, with the problem's own Δ and G."""
        c = problem.constants
        return cls(problem.enclosing_set, ConvexSchedule(c.diameter, c.gradient_bound, beta), penalty)

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
        ascent = feedback.constraint - theta * self.penalty.derivative(state.multiplier)
        return AOGDState(
            round=state.round + 1,
            x=self.enclosing_set.project(state.x - column(eta) * descent),
            multiplier=namespace(state.x).maximum(state.multiplier + mu * ascent, 0.0),
        )

    def report(self, state: AOGDState) -> dict[str, Array]:
        theta, eta, mu = self.schedule.at(state.round, state.x)
        return {"multiplier": state.multiplier, "theta": theta, "eta": eta, "mu": mu}
