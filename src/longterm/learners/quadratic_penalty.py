"""Quadratic-penalty OGD (Yuan, Lamperski 2018, with its multiplier in closed form): OGD on f_t + [g_t]₊²/(2θ_t).

    x_{t+1} = Π_B( x_t − η_t ( ∇f_t(x_t) + Σ_j ([g_j(x_t)]₊/θ_t) ∇g_j(x_t) ) ),   θ_t = c L η_t        x_1 = centre of B

There is no multiplier to keep. `QuadraticPenaltyOGD.convex` and `.strongly_convex` charge the maximum of the
constraints, with one penalty and L = G_g²; ``every=True`` charges each with one of its own, and then L must bound ‖Σ_j
w_j ∇g_j‖² ≤ L‖w‖²: σ_max(A)² for affine constraints, else m G_g².

Steps: η_t = Δ/(2 G_f t^β) for convex losses, 1/(σt) for strongly convex ones; c = 2 minimises the bound, any c > 1 has
one. (The article's θ = (m + 1)G²η/(2(1 − α)), second-hand and derived anew here, is c = 1/(1 − α) with L = (m + 1)G²/2,
for which its proof lets the losses pay (m + 1)/2 times as much.)
Needs: value and one subgradient of f_t and g_t at x_t (of every g_j with ``every=True``). No horizon.
Guarantees: `bounds.quadratic_penalty`, for every T at once, against every x* with g_t(x*) ≤ 0 in all rounds: O(T^max(β,
1−β)) regret (strongly convex O(log T)), O(T^{1−β/2}) **hard** violation Σ [g_t(x_t)]₊ (strongly convex O(√(T log T))).
`bounds.quadratic_penalty_squared`: Σ [g_t(x_t)]₊² = O(T^{1−β}) (strongly convex O(log T)). Proofs:
`docs/after_the_paper.md`.
Not promised: feasibility in a single round. The vector form with L = G_g² is **false**: eight copies each of x ≤ 0 and
−x ≤ 0 make x_{t+1} = −x_t at c = 4, for ever (`tests/test_quadratic_penalty.py`); `check` warns of an L that is too
small.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, column, namespace, resolution
from longterm._validate import Hyper
from longterm.errors import AssumptionWarning, InputError
from longterm.learners._given_prox import strong_convexity_of
from longterm.learners.base import Learner, OnBrokenBound
from longterm.learners.duals import Duals, OneForTheMaximum, OnePerConstraint
from longterm.learners.feedback import Feedback
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.facts import Constants
from longterm.theory.schedules import PenaltySchedule


class QuadraticPenaltyState(NamedTuple):
    """(t, x_t)."""

    round: Array
    x: Array


@dataclass(frozen=True, eq=False)
class QuadraticPenaltyOGD(Learner[QuadraticPenaltyState]):
    """OGD with a penalty [g]₊²/(2θ_t) on the maximum of the constraints, or on each of them.

    >>> import numpy as np
    >>> from longterm import observe
    >>> from longterm.learners import QuadraticPenaltyOGD
    >>> from longterm.problems import two_dimensional
    >>> problem = two_dimensional()  # σ = 1, G_g = 1, g = x₁ − ¼
    >>> learner = QuadraticPenaltyOGD.for_problem(problem, steps="strongly convex")
    >>> state = learner.init()
    >>> for target in ([1.0, 0.0], [1.0, 0.0]):
    ...     state = learner.tell(state, observe(problem, learner.ask(state), [np.array(target)]))
    >>> learner.ask(state)  # (1, 0) − ½ · ¾/θ_2 with θ_2 = 2 · ½
    array([0.625, 0.   ])
    """

    enclosing_set: Set
    schedule: PenaltySchedule
    penalised: Duals
    made_for: Constants | None = None
    """The problem's constants, if the steps were made for one."""

    @classmethod
    def convex(
        cls, problem: Problem, beta: Hyper = 2 / 3, *, factor: Hyper = 2.0, every: bool = False
    ) -> QuadraticPenaltyOGD:
        """The steps for convex losses, with the problem's own Δ, G_f and G_g."""
        constants, decay = problem.constants, validate.open_unit_interval("beta", beta)
        return cls._made(problem, constants.diameter / (2 * constants.loss_gradient_bound), decay, factor, every)

    @classmethod
    def strongly_convex(cls, problem: Problem, *, factor: Hyper = 2.0, every: bool = False) -> QuadraticPenaltyOGD:
        """The steps for strongly convex losses, with the problem's own σ and G_g."""
        sigma = strong_convexity_of(problem, "QuadraticPenaltyOGD.convex")
        return cls._made(problem, 1 / sigma, 1.0, factor, every)

    @classmethod
    def _made(cls, problem: Problem, step: Hyper, decay: Hyper, factor: Hyper, every: bool) -> QuadraticPenaltyOGD:
        penalised = OnePerConstraint(problem.constraint.count) if every else OneForTheMaximum()
        schedule = PenaltySchedule(step, decay, _curvature(problem, penalised), factor)
        return cls(problem.enclosing_set, schedule, penalised, problem.constants)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        schedule, sigma = self.schedule, problem.constants.strong_convexity
        too_long = np.logical_and(np.equal(schedule.decay, 1), np.multiply(schedule.step, sigma) < 1 - 1e-9)
        if np.any(too_long):
            what = f"its steps are made for σ = {1 / np.asarray(schedule.step)}, the losses have {sigma:g}"
            raise InputError("learner", what, "Use QuadraticPenaltyOGD.convex, or declare a σ that holds")
        needed = _curvature(problem, self.penalised)
        if np.any(np.asarray(schedule.curvature) < needed * (1 - 1e-9)):
            what = f"L = {schedule.curvature} is below {needed:g}, with which ‖Σ_j w_j ∇g_j‖² ≤ L‖w‖² is known to hold"
            warnings.warn(f"QuadraticPenaltyOGD: {what}: no theorem covers the run", AssumptionWarning, stacklevel=4)

    @property
    def loss_gradient_bound(self) -> Hyper | None:
        return None if self.made_for is None else self.made_for.loss_gradient_bound

    @property
    def constraint_gradient_bound(self) -> Hyper | None:
        return None if self.made_for is None else self.made_for.constraint_gradient_bound

    @property
    def reads_pullback(self) -> bool:
        return isinstance(self.penalised, OnePerConstraint)

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        self.penalised.require(feedback, x, t)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> QuadraticPenaltyState:
        return QuadraticPenaltyState(xp.asarray(1, dtype=xp.int64), self.at_the_centre(batch_shape, xp, dtype))

    def ask(self, state: QuadraticPenaltyState) -> Array:
        return state.x

    def update(self, state: QuadraticPenaltyState, feedback: Feedback) -> QuadraticPenaltyState:
        theta, eta, _ = self.schedule.at(state.round, state.x)
        broken = self._positive_part(self.penalised.values(feedback), state.x)
        penalty = self.penalised.pullback(feedback, broken / self.penalised.spread(theta))
        moved = state.x - column(eta) * (feedback.loss_gradient + penalty)
        return QuadraticPenaltyState(state.round + 1, self.enclosing_set.project(moved))

    def report(self, state: QuadraticPenaltyState) -> dict[str, Array]:
        theta, eta, _ = self.schedule.at(state.round, state.x)
        return {"theta": theta, "eta": eta}

    def _positive_part(self, values: Array, x: Array) -> Array:
        """[g]₊. The gradient of a maximum is that of some g_j within rounding of it, so what is below rounding is 0."""
        allowed = 0.0 if self.made_for is None else resolution(x) * self.made_for.constraint_bound
        return namespace(x).where(values > allowed, values, 0.0)


def _curvature(problem: Problem, penalised: Duals) -> float:
    """L: G_g² for the maximum, the joint bound for all constraints."""
    if isinstance(penalised, OneForTheMaximum):
        return problem.constants.constraint_gradient_bound**2
    return problem.joint_gradient_bound**2
