"""A-OGD: adaptive online gradient descent with long-term constraints (Jenatton, Huang, Archambeau 2016).

With the Lagrangian L_t(x, λ) = f_t(x) + ⟨λ, g(x)⟩ − θ_t c ‖λ‖², and both steps taken from (x_t, λ_t):

    x_{t+1} = Π_B( x_t − η_t ( ∇f_t(x_t) + Σ_j λ_{t,j} ∇g_j(x_t) ) )        x_1 = centre of B
    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − 2c θ_t λ_t ) ]₊                        λ_1 = 0

The slots are the schedule (θ_t, η_t, μ_t), the penalty c (½ in the paper) and the dual: one multiplier for
g = max_j g_j, as in the paper, or one for each g_j.

Steps: Table 1 of the paper (`ConvexSchedule`, `StronglyConvexSchedule`), or any schedule.
Needs: no horizon, no projection onto {g ≤ 0}.
Guarantees: Lemma 5 for schedules that pass C1–C3, against any x* with g_t(x*) ≤ 0 in every round. For the steps of
Table 1 also Theorem 1, corrected (`theory.paper`). `bound` returns the smaller of the two.
Proof: `docs/proofs/theory.md`; with late feedback, `docs/proofs/delay.md`.
Not promised: feasibility in a single round, a small Σ [g(x_t)]₊, the regret that the paper prints for β > ½ (false).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, namespace, scale_rows
from longterm._base.selection import clamp_min
from longterm._base.validate import Hyper
from longterm.learners.interface.facts import Variants
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.horizons import ScheduledLearner
from longterm.learners.interface.needs import StepKind, require_strong_convexity
from longterm.learners.interface.states import DualState
from longterm.learners.saddle_point.multiplier_rules import DualLearner, Duals, OneForTheMaximum
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.problems.sets import Set
from longterm.theory import paper
from longterm.theory.bounds import LONG_TERM, REGRET, SIGNED, BoundValues, NoTheoremError, Rounds
from longterm.theory.schedules import ConvexSchedule, Schedule, StronglyConvexSchedule


@dataclass(frozen=True, eq=False)
class AOGD(DualLearner[DualState], ScheduledLearner[DualState]):
    """Keep a long-term limit with gradient steps and one multiplier: the method of the paper.

    Every round takes one gradient step on the Lagrangian in the decision, and one in the multiplier.

    Parameters
    ----------
    enclosing_set : Set
        The ball, box or other set that every decision stays in (B in the formulas).
    schedule : Schedule
        The step sizes η_t and μ_t of decision and multiplier, and the weight θ_t of the multiplier's penalty.
    penalty : float
        The c of the multiplier's penalty cλ², above 0. The paper's value is ½.
    duals : Duals
        One multiplier for the maximum of the constraints, as in the paper, or one for each constraint.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> problem = lt.problems.two_dimensional()
    >>> learner = lt.AOGD.for_problem(problem, steps="strongly convex", beta=0.5)
    >>> state = learner.init()
    >>> for target in ([1.0, 0.0], [0.0, 1.0]):
    ...     state = learner.tell(state, lt.observe(problem, learner.ask(state), [np.array(target)]))
    >>> learner.ask(state), round(float(state.multiplier), 6)
    (array([0.5, 0.5]), 0.014731)
    """

    enclosing_set: Set
    schedule: Schedule
    penalty: float = 0.5
    duals: Duals = field(default_factory=OneForTheMaximum)

    name = "aogd"
    title = "A-OGD"
    promises = {REGRET: "O(T^max(β, 1−β))", SIGNED: "O(T^(1−β/2))"}
    variants: ClassVar[Variants] = ({}, {"steps": "strongly convex"}, {"penalty": 0.3})
    drifting: ClassVar[Variants] = ({},)

    @classmethod
    def for_problem(
        cls, problem: Problem, *, steps: StepKind = "convex", beta: Hyper = 2 / 3, penalty: float = 0.5
    ) -> AOGD:
        """Make A-OGD with the steps of Table 1 of the paper and the problem's constants.

        Parameters
        ----------
        steps : {"convex", "strongly convex"}
            The column of Table 1.
        beta : float or array
            β in (0, 1). Larger values favour the constraint, smaller ones (down to ½) the regret.
        penalty : float
            The c of the penalty cλ². The theorem holds for c from max(¼, (1 − β)/2) to the paper's ½.
        """
        c = problem.constants
        if steps == "convex":
            schedule: Schedule = ConvexSchedule(c.diameter, c.gradient_bound, beta)
        else:
            schedule = StronglyConvexSchedule(c.gradient_bound, require_strong_convexity(problem, steps), beta)
        return cls(problem.enclosing_set, schedule, penalty)

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive_scalar, "penalty")

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return Lemma 5 and, for the steps of Table 1, the smaller of Lemma 5 and Theorem 1, corrected.

        With m multipliers it is Lemma 5 with `constants_of_duals`. It bounds √(Σ_j [Σ_t g_j(x_t)]₊²).
        """
        c = self.constants_of_duals(problem.constants)
        bound = paper.lemma_5(self.schedule, c, rounds, self.penalty)
        closed = self._closed_form(c, rounds)
        if closed is not None:
            bound = paper.PaperBound(*(np.minimum(one, other) for one, other in zip(bound, closed, strict=True)))
        return {REGRET: bound.regret, self.violation_measure: bound.violation}

    def _closed_form(self, c: Constants, rounds: Rounds) -> paper.PaperBound | None:
        """Return Theorem 1, corrected, for the steps of Table 1. None for other steps."""
        schedule = self.schedule
        if self.penalty != 0.5 or np.any(np.asarray(schedule.gradient_bound) != c.gradient_bound):
            return None
        if isinstance(schedule, ConvexSchedule) and np.all(schedule.diameter == c.diameter):
            return paper.theorem_1(c, rounds, schedule.beta)
        # The theorem's σ is that of the steps, which the losses have too.
        if isinstance(schedule, StronglyConvexSchedule) and np.all(schedule.strong_convexity == c.strong_convexity):
            return paper.theorem_1_strongly_convex(c, rounds, schedule.beta)
        return None

    def constants_of_duals(self, c: Constants) -> Constants:
        """Return the constants with which Lemma 5 holds for m multipliers: G √((m + 1)/2) for G, √m D for D."""
        m = self.duals.count
        if m == 1:
            return c
        if self.penalty != 0.5:
            raise NoTheoremError("with several multipliers, the theorem covers the paper's penalty λ²/2 only")
        G = float(c.gradient_bound * np.sqrt((m + 1) / 2))
        return replace(
            c,
            loss_gradient_bound=G,
            constraint_gradient_bound=G,
            constraint_bound=float(c.constraint_bound * np.sqrt(m)),
        )

    @property
    def violation_measure(self) -> str:
        """The measure of violation that is bounded."""
        return SIGNED if self.duals.count == 1 else LONG_TERM

    def theorem_as_printed(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return Theorem 1 as the paper prints it. It is false for β > ½ and large T."""
        if self.penalty != 0.5 or not isinstance(self.schedule, ConvexSchedule) or self.duals.count > 1:
            raise NoTheoremError("the paper prints this theorem for convex steps, one multiplier and λ²/2 only")
        bound = paper.theorem_1_as_printed(problem.constants, rounds, self.schedule.beta)
        return {REGRET: bound.regret, SIGNED: bound.violation}

    def first_state(self, t: Array, x: Array) -> DualState:
        return DualState(t, x, namespace(x).zeros((*x.shape[:-1], *self.duals.shape), dtype=x.dtype))

    def update(self, state: DualState, feedback: Feedback) -> DualState:
        theta, eta, mu = self.schedule.at(state.round, state.x)
        expand = self.duals.expand
        descent = feedback.loss_gradient + self.duals.pullback(feedback, state.multiplier)
        ascent = self.duals.values(feedback) - expand(theta) * (2 * self.penalty * state.multiplier)
        return DualState(
            round=state.round + 1,
            x=self.enclosing_set.project(state.x - scale_rows(eta, descent)),
            multiplier=clamp_min(state.multiplier + expand(mu) * ascent, 0.0),
        )
