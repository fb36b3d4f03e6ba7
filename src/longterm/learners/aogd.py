"""A-OGD: adaptive online gradient descent with long-term constraints (Jenatton, Huang, Archambeau 2016).

With the Lagrangian L_t(x, λ) = f_t(x) + λ g(x) − θ_t φ(λ), where g = max_j g_j, and both steps taken from (x_t, λ_t):

    x_{t+1} = Π_B( x_t − η_t ( ∇f_t(x_t) + λ_t ∇g(x_t) ) )          x_1 = centre of B
    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t φ'(λ_t) ) ]₊               λ_1 = 0

The paper has φ(λ) = λ²/2; its discussion asks which φ is best. It hardly matters: the condition that replaces C2
squeezes every admissible φ between two quadratics (`theory.penalties`).

Steps: Table 1 of the paper (`ConvexSchedule`, `StronglyConvexSchedule`), or any schedule.
Needs: value and one subgradient of f_t and of g_t at x_t; no horizon, no projection onto {g ≤ 0}.
Guarantees: Theorem 1, corrected (`theory.paper`), for any losses and any g_t (fixed or not) against a comparator with
g_t(x*) ≤ 0 in every round; Lemma 5 for any schedule that passes C1–C3; with another φ, Lemma 5 with φ in the place of
the square (`docs/after_the_paper.md`). The bound is on the signed sum Σ_t max_j g_j(x_t), which is at least the
paper's max_j Σ_t g_j(x_t); single rounds may be infeasible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import Array, FloatArray, at_least, scaled
from longterm._validate import Hyper
from longterm.learners.base import Learner, require_strong_convexity
from longterm.learners.feedback import Feedback
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory import paper
from longterm.theory.bounds import REGRET, SIGNED, NoTheoremError
from longterm.theory.penalties import QUADRATIC, Penalty, penalised_lemma_5
from longterm.theory.schedules import ConvexSchedule, Schedule, StronglyConvexSchedule

Steps = Literal["convex", "strongly convex"]
"""The column of Table 1, and what answers to it elsewhere: for any convex losses, or for strongly convex ones."""


class AOGDState(NamedTuple):
    """(t, x_t, λ_t)."""

    round: Array
    x: Array
    multiplier: Array


@dataclass(frozen=True, eq=False)
class AOGD(Learner[AOGDState]):
    """A-OGD on an enclosing set with a schedule.

    Parameters
    ----------
    enclosing_set : Set
        B, which it projects onto.
    schedule : Schedule
        θ_t, η_t and μ_t.
    penalty : Penalty
        φ; the paper's λ²/2 unless said otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import AOGD, observe
    >>> from longterm.problems import two_dimensional
    >>> problem = two_dimensional()
    >>> learner = AOGD.for_problem(problem, steps="strongly convex", beta=0.5)
    >>> state = learner.init()
    >>> for target in ([1.0, 0.0], [0.0, 1.0]):
    ...     x = learner.ask(state)
    ...     state = learner.tell(state, observe(problem, x, [np.array(target)]))
    >>> learner.ask(state), round(float(state.multiplier), 6)
    (array([0.5, 0.5]), 0.014731)
    """

    enclosing_set: Set
    schedule: Schedule
    penalty: Penalty = QUADRATIC

    name: ClassVar[str] = "aogd"
    title: ClassVar[str] = "A-OGD"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(T^max(β, 1−β))", SIGNED: "O(T^(1−β/2))"}
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"steps": "strongly convex"}, {"penalty": 0.3})
    drifting: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)

    @classmethod
    def for_problem(
        cls, problem: Problem, *, steps: Steps = "convex", beta: Hyper = 2 / 3, penalty: float | Penalty = 0.5
    ) -> AOGD:
        """Table 1 of the paper, with the problem's own constants.

        Parameters
        ----------
        problem : Problem
            Gives B, Δ, G and σ.
        steps : {"convex", "strongly convex"}
            The column of Table 1.
        beta : float or array
            β in (0, 1): larger favours the constraint, smaller (down to ½) the regret.
        penalty : float or Penalty
            The c of φ(λ) = cλ², for which the theorem holds from ¼, or (1 − β)/2 where that is more, to the paper's ½;
            or a φ of your own.
        """
        c = problem.constants
        if steps == "convex":
            schedule: Schedule = ConvexSchedule(c.diameter, c.gradient_bound, beta)
        else:
            schedule = StronglyConvexSchedule(c.gradient_bound, require_strong_convexity(problem, steps), beta)
        return cls(
            problem.enclosing_set, schedule, penalty if isinstance(penalty, Penalty) else Penalty.square(penalty)
        )

    @property
    def gradient_bound(self) -> Hyper | None:
        return self.schedule.gradient_bound

    @property
    def strong_convexity(self) -> Hyper:
        return self.schedule.strong_convexity

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        c, schedule = problem.constants, self.schedule
        if not self.penalty.is_the_papers:
            bound = penalised_lemma_5(self.penalty, schedule, c, rounds)
        elif isinstance(schedule, ConvexSchedule) and _made_for(schedule, c.diameter, c.gradient_bound):
            bound = paper.theorem_1(c, rounds, schedule.beta)
        elif isinstance(schedule, StronglyConvexSchedule) and np.all(schedule.gradient_bound == c.gradient_bound):
            bound = paper.theorem_1_strongly_convex(c, rounds, schedule.beta)
        else:
            bound = paper.lemma_5(schedule, c, rounds)
        return {REGRET: bound.regret, SIGNED: bound.violation}

    def theorem_as_printed(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """Theorem 1 as the paper has it, which is false for β > ½ and large T: to be drawn, not to be relied on."""
        if not self.penalty.is_the_papers or not isinstance(self.schedule, ConvexSchedule):
            raise NoTheoremError("the paper prints no other theorem than that for its convex steps")
        bound = paper.theorem_1_as_printed(problem.constants, rounds, self.schedule.beta)
        return {REGRET: bound.regret, SIGNED: bound.violation}

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> AOGDState:
        x = self.at_the_centre(batch_shape, xp, dtype)
        return AOGDState(xp.asarray(1, dtype=xp.int64), x, xp.zeros(x.shape[:-1], dtype=x.dtype))

    def ask(self, state: AOGDState) -> Array:
        return state.x

    def update(self, state: AOGDState, feedback: Feedback) -> AOGDState:
        theta, eta, mu = self.schedule.at(state.round, state.x)
        descent = feedback.loss_gradient + scaled(state.multiplier, feedback.constraint_gradient)
        ascent = feedback.constraint - theta * self.penalty.derivative(state.multiplier)
        return AOGDState(
            round=state.round + 1,
            x=self.enclosing_set.project(state.x - scaled(eta, descent)),
            multiplier=at_least(state.multiplier + mu * ascent, 0.0),
        )

    def report(self, state: AOGDState) -> dict[str, Array]:
        theta, eta, mu = self.schedule.at(state.round, state.x)
        return {"multiplier": state.multiplier, "theta": theta, "eta": eta, "mu": mu}


def _made_for(schedule: ConvexSchedule, diameter: float, gradient_bound: float) -> bool:
    return bool(np.all(schedule.diameter == diameter) and np.all(schedule.gradient_bound == gradient_bound))
