"""Quadratic-penalty OGD (Yuan, Lamperski 2018, with the multiplier in closed form): OGD on f_t + [g_t]₊²/(2θ_t).

    x_{t+1} = Π_B( x_t − η_t ( ∇f_t(x_t) + Σ_j ([g_j(x_t)]₊/θ_t) ∇g_j(x_t) ) ),   θ_t = c L η_t        x_1 = centre of B

The state has no multiplier. One penalty charges the maximum of the constraints, with L = G_g². ``penalties="each"``
charges each constraint separately. Then L must satisfy ‖Σ_j w_j ∇g_j‖² ≤ L‖w‖²: σ_max(A)² for affine constraints, else
m G_g². With L = G_g² the vector form is **false**. `check` warns of an L that is too small, and `bound` is empty then.

Steps: η_t = Δ/(2 G_f t^β) for convex losses, 1/(σt) for strongly convex ones. Any c > 1 has a bound, and c = 2 the
smallest.
Needs: a subgradient of every g_j with ``penalties="each"``. No horizon.
Guarantees: `theorem`, for every T at once, against every x* with g_t(x*) ≤ 0 in all rounds. Proofs, and the article's
own constant: `docs/proofs/after_the_paper.md`. Not promised: feasibility in a single round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, namespace, resolution
from longterm._base.validate import Hyper
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.needs import StepKind, require_strong_convexity
from longterm.learners.interface.states import PointState
from longterm.learners.saddle_point.multiplier_rules import DualLearner, Duals, OneForTheMaximum, OnePerConstraint
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.problems.sets import Set
from longterm.theory.bounds import HARD, REGRET, SQUARED, BoundValues, NoTheoremError, Rounds, horizons_of
from longterm.theory.schedules import PenaltySchedule
from longterm.theory.step_sums import descent_cost, step_sums, tabulate


@dataclass(frozen=True, eq=False)
class QuadraticPenaltyOGD(DualLearner[PointState]):
    """Keep a long-term limit by gradient steps on the loss plus a quadratic penalty.

    The penalty is [g]₊²/(2θ_t), of the maximum of the constraints or of each of them.

    Parameters
    ----------
    enclosing_set : Set
        The ball, box or other set that every decision stays in (B in the formulas).
    schedule : PenaltySchedule
        The step sizes η_t, and the θ_t that divide the penalty.
    duals : Duals
        The penalised constraints: their maximum, or each of them.
    made_for : Constants, optional
        The problem's constants that the steps were made for.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> problem = lt.problems.two_dimensional()  # σ = 1, G_g = 1, g = x₁ − ¼
    >>> learner = lt.learners.QuadraticPenaltyOGD.for_problem(problem, steps="strongly convex")
    >>> state = learner.init()
    >>> for _ in range(2):
    ...     state = learner.tell(state, lt.observe(problem, learner.ask(state), [np.array([1.0, 0.0])]))
    >>> learner.ask(state)  # (1, 0) − ½ · ¾/θ_2 with θ_2 = 2 · ½
    array([0.625, 0.   ])
    """

    enclosing_set: Set
    schedule: PenaltySchedule
    duals: Duals
    made_for: Constants | None = None

    name = "quadratic_penalty_ogd"
    title = "Quadratic penalty"
    promises = {
        REGRET: "O(T^max(β, 1−β)), O(log T)",
        HARD: "O(T^(1−β/2)), O(√(T log T))",
        SQUARED: "O(T^(1−β)), O(log T)",
    }
    variants = ({}, {"steps": "strongly convex"}, {"penalties": "each"})
    drifting = ({},)

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        steps: StepKind = "convex",
        beta: Hyper = 2 / 3,
        factor: Hyper = 2.0,
        penalties: Literal["one", "each"] = "one",
    ) -> QuadraticPenaltyOGD:
        """Descend on the loss plus a quadratic penalty of the violation, of the maximum or of each constraint.

        Parameters
        ----------
        steps : {"convex", "strongly convex"}
            η_t = Δ/(2 G_f t^β), or 1/(σt).
        beta : float or array
            β in (0, 1), of the convex steps: larger favours the constraint, smaller (down to ½) the regret.
        factor : float or array
            c > 1. The bound is smallest at 2.
        penalties : {"one", "each"}
            One penalty for the maximum of the constraints, or one for each constraint.
        """
        validate.choice("penalties", penalties, ("one", "each"))
        c, decay = problem.constants, validate.trade_off("beta", beta)
        penalised = OnePerConstraint(problem.constraint.count) if penalties == "each" else OneForTheMaximum()
        curvature = _curvature(problem, penalised)
        if steps == "convex":
            schedule = PenaltySchedule(c.diameter / (2 * c.loss_gradient_bound), decay, curvature, factor)
        else:
            sigma = require_strong_convexity(problem, steps)
            schedule = PenaltySchedule(1 / sigma, 1.0, curvature, factor, sigma)
        return cls(problem.enclosing_set, schedule, penalised, c)

    def broken_assumptions(self, problem: Problem) -> list[str]:
        missing = self._missing_curvature(problem)
        text = f"QuadraticPenaltyOGD: {missing}: no theorem covers the run"
        return super().broken_assumptions(problem) + ([text] if missing else [])

    def _missing_curvature(self, problem: Problem) -> str:
        """Return why L is too small, or an empty string."""
        given, needed = self.schedule.curvature, _curvature(problem, self.duals)
        if np.all(np.asarray(given) >= needed * (1 - 1e-9)):
            return ""
        return f"L = {given} is below {needed:g}, with which ‖Σ_j w_j ∇g_j‖² ≤ L‖w‖² is known to hold"

    @property
    def strong_convexity(self) -> Hyper:
        return self.schedule.strong_convexity

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bounds for θ_t = c L η_t with c > 1. v_t is the vector [g_t(x_t)]₊ of the charged constraints.

            Σ f_t(x_t) − f_t(x*) + (1 − 1/c) Σ ‖v_t‖²/θ_t ≤ P_T = r² [δ_η]₊/2 + (Δ²/2) U_η + G_f² S_η
            Σ ‖v_t‖  ≤ √( S_θ (P_T + F T) c/(c − 1) )
            Σ ‖v_t‖² ≤ (c/(c − 1)) Σ θ_t (F + P_t − P_{t−1}),      P_0 = 0

        ‖v_t‖ is at least [max_j g_j(x_t)]₊. The σ in use is the problem's.
        """
        missing = self._missing_curvature(problem)
        if missing:
            raise NoTheoremError(missing, "Use a larger curvature, or QuadraticPenaltyOGD.for_problem")
        c, schedule, factor = problem.constants, self.schedule, np.asarray(self.schedule.factor)
        sums = step_sums(schedule, rounds, c.strong_convexity)
        regret = descent_cost(sums, c, c.loss_gradient_bound)
        T, share = horizons_of(rounds, schedule.batch_shape), factor / (factor - 1)
        hard = np.sqrt(sums.theta * (regret + c.loss_range * T) * share)
        return {REGRET: regret, HARD: hard, SQUARED: self._charged(c, int(rounds.max()))[rounds - 1] * share}

    def _charged(self, c: Constants, horizon: int) -> FloatArray:
        """Return Σ_{s≤t} θ_s (F + P_s − P_{s−1}) for t = 1 … horizon."""
        _, theta, eta, _ = tabulate(self.schedule, 1, horizon)
        growth = np.maximum(np.diff(1 / eta, axis=0) - c.strong_convexity, 0.0) * c.diameter**2 / 2
        first = c.radius**2 * np.maximum(1 / eta[:1] - c.strong_convexity, 0.0) / 2
        rise = np.concatenate([first, growth]) + c.loss_gradient_bound**2 * eta
        return np.cumsum(theta * (c.loss_range + rise), axis=0)

    def update(self, state: PointState, feedback: Feedback) -> PointState:
        theta, eta, _ = self.schedule.at(state.round, state.x)
        broken = self._positive_part(self.duals.values(feedback), state.x)
        penalty = self.duals.pullback(feedback, broken / self.duals.expand(theta))
        moved = state.x - as_column(eta) * (feedback.loss_gradient + penalty)
        return PointState(state.round + 1, self.enclosing_set.project(moved))

    def report(self, state: PointState) -> dict[str, Array]:
        theta, eta, _ = self.schedule.at(state.round, state.x)
        return {"theta": theta, "eta": eta}

    def _positive_part(self, values: Array, x: Array) -> Array:
        """Return [g]₊, and 0 within rounding: the gradient of a maximum is that of some g_j within rounding of it."""
        allowed = 0.0 if self.made_for is None else resolution(x) * self.made_for.constraint_bound
        return namespace(x).where(values > allowed, values, 0.0)


def _curvature(problem: Problem, penalised: Duals) -> float:
    """Return L: G_g² for the maximum, the joint bound for all constraints."""
    if isinstance(penalised, OneForTheMaximum):
        return problem.constants.constraint_gradient_bound**2
    return problem.joint_gradient_bound**2
