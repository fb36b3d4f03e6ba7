"""A learner on a tightened constraint: it receives g + γ_t, so that the margin makes up for the violation allowed.

The learner is A-OGD or another with one multiplier for g = max_j g_j. Where Lemma 5 allows it at most Σ γ_t on g + γ,
Σ g(x_t) ≤ 0. A Slater point x̂ in B with g(x̂) ≤ −ε makes room for margins γ_t ≤ ε: the comparator
u_t = (1 − γ_t/ε) x* + (γ_t/ε) x̂ has g(u_t) ≤ −γ_t by convexity, and costs at most (F/ε) Σ γ_t more than x*.

With W and 𝓡 of Lemma 5 (`theory.margin_sizes`) and D + γ for D, a constant margin has

    Σ f_t(x_t) − f_t(x*) ≤ 𝓡_γ + (γ/ε) F T,         Σ g(x_t) ≤ √(2 W (𝓡_γ + F T)) − γT.

Where constraints change, the Slater point must be one of every g_t.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longterm._base.arrays import ROUNDING, Array
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.needs import Need, StepKind
from longterm.learners.interface.states import DualState
from longterm.learners.interface.wrapper import Wrapper
from longterm.learners.saddle_point.aogd import AOGD
from longterm.learners.tightened.margins import Margin
from longterm.problems import Problem
from longterm.problems.slater import SlaterPoint, require_slack
from longterm.theory.assumptions import Assumption
from longterm.theory.bounds import BoundValues, NoTheoremError, Rounds


@dataclass(frozen=True, eq=False, kw_only=True)
class Tightened(Wrapper[DualState]):
    """A learner with one multiplier that receives g + γ_t in place of g.

    Parameters
    ----------
    learner : AOGD
        The learner that receives g + γ_t.
    margin : Margin
        γ_t.
    slater : SlaterPoint
        ε, and where known x̂.
    checked : tuple of Assumption
        What was checked when the margin was chosen.
    """

    learner: AOGD
    margin: Margin
    slater: SlaterPoint
    checked: tuple[Assumption, ...] = ()

    needs = frozenset({Need.SLATER_POINT})

    def __post_init__(self) -> None:
        if self.learner.duals.count > 1:
            what = f"has {self.learner.duals.count} multipliers, and the margin is on max_j g_j"
            raise InputError("learner", what, "Use a learner with one multiplier")
        super().__post_init__()

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        require_slack(self.slater, problem.constraint, problem.enclosing_set)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        return self.learner.assumptions + self.checked

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bounds of the margin, in every round of a run."""
        if self.learner.penalty != 0.5:
            raise NoTheoremError("the margins are those of the paper's penalty λ²/2")
        c, epsilon = problem.constants, self.slater.epsilon
        if np.any(np.asarray(self.margin.largest) > epsilon * (1 + ROUNDING)):
            what = f"the margin {float(np.max(self.margin.largest)):g} exceeds the slack ε = {epsilon:g}"
            raise NoTheoremError(what, "Take a smaller margin, or a longer horizon")
        return self.margin.bounds(self.learner.schedule, epsilon, c, rounds, self.batch_shape)

    def update(self, state: DualState, feedback: Feedback) -> DualState:
        margin = self.margin.at(state.round, state.x)
        return self.learner.update(state, feedback._replace(constraint=feedback.constraint + margin))

    def report(self, state: DualState) -> dict[str, Array]:
        return {**self.learner.report(state), "margin": self.margin.at(state.round, state.x)}


def paper_rule(problem: Problem, steps: StepKind, beta: Hyper, given: AOGD | None) -> AOGD:
    """Return the given A-OGD, or one with the steps of Table 1. Raise if its penalty is not the paper's."""
    if given is None:
        return AOGD.for_problem(problem, steps=steps, beta=beta)
    if given.penalty != 0.5:
        raise InputError(
            "learner",
            "its penalty is not the paper's λ²/2",
            "Give AOGD with penalty=0.5. No margin is known for another penalty",
        )
    return given


def full_scale(scale: Hyper) -> Assumption:
    """Return the assumption that the whole margin of the theorem is taken."""
    return Assumption.worst("1 ≤ scale", 1.0, scale, "A smaller margin is a choice of yours; judge it by its runs")
