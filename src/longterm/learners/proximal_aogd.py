"""Proximal A-OGD: A-OGD that takes the multiplier's part exactly instead of linearised.

    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t λ_t ) ]₊                                              λ_1 = 0
    x_{t+1} = argmin_{x ∈ B} ⟨∇f_t(x_t), x⟩ + ⟨λ_{t+1}, g(x)⟩ + ‖x − x_t‖²/(2η_t)              x_1 = centre of B

The new multiplier is used: it is known before x_{t+1} is played. Affine constraints have a multiplier each.

Steps: condition C2, which ties θ_t to η_t G² in A-OGD, is not needed, nor is ∇g: θ_t = θ_0/t^β with any θ_0 > 0,
μ_t = 1/(θ_t (t + 1)), and η_t for the losses alone: Δ/(√2 G_f √t) for convex ones, 1/(σt) for strongly convex ones.
The default θ_0 is D²/(10F); `AFTRL` says what it trades.
Needs: a fixed constraint, and its prox on B (`Constraint.prox`). No horizon.
Guarantees: `bounds.proximal_aogd`: O(√T + T^β) regret (strongly convex: O(log T + T^β)), O(T^{1−β/2}) for every
Σ_t g_j(x_t) (signed), against losses of an adversary (`docs/aftrl.md`).
Not promised: feasibility in a single round, a small Σ [g(x_t)]₊.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, column
from longterm._validate import Hyper
from longterm.constraints.prox import Prox
from longterm.learners._given_prox import (
    as_reported,
    ascend,
    default_theta,
    prox_of,
    require_same_constraint,
    require_strong_convexity,
    strong_convexity_of,
    values_of,
)
from longterm.learners.aogd import AOGDState
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.schedules import DecoupledSchedule, StronglyConvexDecoupledSchedule


@dataclass(frozen=True, eq=False)
class ProximalAOGD(Learner[AOGDState]):
    """Proximal A-OGD with the prox of a constraint on a set; the state's multiplier has shape (..., m).

    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import ProximalAOGD
    >>> from longterm.problems import two_dimensional
    >>> from longterm.streams import Replay
    >>> problem = two_dimensional()  # g = x₁ − ¼
    >>> trace = run(problem, ProximalAOGD.for_problem(problem, steps="strongly convex"), Replay([np.tile([0.8, 0.6], (2000, 1))]))
    >>> trace.state.x.round(2)
    array([0.25, 0.6 ])
    """

    prox: Prox
    schedule: DecoupledSchedule | StronglyConvexDecoupledSchedule
    enclosing_set: Set = field(init=False, repr=False)
    needs: ClassVar[frozenset[Need]] = frozenset({Need.FIXED_CONSTRAINT, Need.PROX})

    def __post_init__(self) -> None:
        validate.remember(self, enclosing_set=self.prox.over)

    @classmethod
    def convex(cls, problem: Problem, beta: Hyper = 2 / 3, theta_0: Hyper | None = None) -> ProximalAOGD:
        """The steps for convex losses, with the problem's own Δ, G_f, D and F."""
        prox, c = prox_of(cls.__name__, cls.needs, problem), problem.constants
        step = c.diameter / (2**0.5 * validate.positive_scalar("loss_gradient_bound", c.loss_gradient_bound))
        return cls(prox, DecoupledSchedule(step, default_theta(problem, prox, theta_0), beta))

    @classmethod
    def strongly_convex(cls, problem: Problem, beta: Hyper = 2 / 3, theta_0: Hyper | None = None) -> ProximalAOGD:
        """The steps for strongly convex losses, with the problem's own σ, D and F."""
        prox = prox_of(cls.__name__, cls.needs, problem)
        sigma, theta_0 = strong_convexity_of(problem, "ProximalAOGD.convex"), default_theta(problem, prox, theta_0)
        return cls(prox, StronglyConvexDecoupledSchedule(sigma, theta_0, beta))

    def check(self, problem: Problem) -> None:
        super().check(problem)
        require_same_constraint(self.prox, problem)
        require_strong_convexity(self.schedule, problem, "ProximalAOGD.convex")

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> AOGDState:
        x = self.at_the_centre(batch_shape, xp, dtype)
        return AOGDState(
            xp.asarray(1, dtype=xp.int64), x, xp.zeros((*x.shape[:-1], self.prox.constraint.count), dtype=x.dtype)
        )

    def ask(self, state: AOGDState) -> Array:
        return state.x

    def update(self, state: AOGDState, feedback: Feedback) -> AOGDState:
        steps = self.schedule.at(state.round, state.x)
        multiplier = ascend(state.multiplier, values_of(feedback, self.prox.constraint.count), steps)
        curvature = 1 / steps.eta
        slope = feedback.loss_gradient - column(curvature) * state.x
        return AOGDState(state.round + 1, self.prox.argmin(slope, multiplier, curvature), multiplier)

    def report(self, state: AOGDState) -> dict[str, Array]:
        theta, eta, mu = self.schedule.at(state.round, state.x)
        return {"multiplier": as_reported(state.multiplier), "theta": theta, "eta": eta, "mu": mu}
