"""A-OGD without violation and without a horizon: A-OGD on g + γ_t with γ_t = min(ε, c t^{−β/2}).

c = c_1 of `theory.margins` is enough in the end, because Σ γ_t grows as c T^{1−β/2}/(1 − β/2). `bound` says from which
T on: there the bound on Σ g(x_t) falls below 0.
Needs: value and one subgradient of f_t and g_t at x_t, and a Slater point with slack ε.
Guarantees: Lemma 5 on g + γ_t, against a comparator that moves (`tightened`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from longterm import _validate as validate
from longterm._validate import Hyper
from longterm.learners.aogd import AOGD
from longterm.learners.needs import StepKind
from longterm.learners.tightened import (
    DecayingMargin,
    Tightened,
    full_scale,
    require_papers_penalty,
    slater_point_for,
)
from longterm.problems import Problem
from longterm.theory.bounds import REGRET, SIGNED
from longterm.theory.margins import beta_of, coefficient
from longterm.theory.slater import SlaterPoint


@dataclass(frozen=True, eq=False, kw_only=True)
class DecayingMarginAOGD(Tightened):
    """A-OGD on g + γ_t with a margin that falls: no horizon, no restarts.

    Parameters
    ----------
    learner : AOGD
        The learner that is told g + γ_t.
    margin : DecayingMargin
        γ_t = min(ε, c t^{−β/2}).
    slater : SlaterPoint
        ε, and where known x̂.
    checked : tuple of Assumption
        What was checked when c was chosen.

    Examples
    --------
    >>> from longterm.learners import DecayingMarginAOGD
    >>> from longterm.problems import two_dimensional
    >>> problem = two_dimensional()
    >>> learner = DecayingMarginAOGD.for_problem(problem, scale=0.1)
    >>> round(learner.margin.coefficient, 3), round(learner.needed_horizon)
    (4.29, 40)
    """

    margin: DecayingMargin

    name: ClassVar[str] = "decaying_margin_aogd"
    title: ClassVar[str] = "Decaying-margin A-OGD"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(T^max(β, 1−β/2))", SIGNED: "≤ 0 from some T on"}

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        steps: StepKind = "convex",
        beta: Hyper = 2 / 3,
        scale: Hyper = 1.0,
        slater: SlaterPoint | None = None,
        learner: AOGD | None = None,
    ) -> DecayingMarginAOGD:
        """Make A-OGD on g + γ_t with a margin that falls: no violation in the long run, without a horizon.

        Parameters
        ----------
        problem : Problem
            The problem to play.
        steps : {"convex", "strongly convex"}
            The column of Table 1.
        beta : float or array
            β in (0, 1).
        scale : float or array
            c = scale · c_1. Below 1 there is no theorem.
        slater : SlaterPoint, optional
            Unless given, the problem's, or one that is searched for.
        learner : AOGD, optional
            An A-OGD of your own in place of `steps` and `beta`.
        """
        rule = AOGD.for_problem(problem, steps=steps, beta=beta) if learner is None else require_papers_penalty(learner)
        point = slater_point_for(problem, slater)
        c = validate.positive("scale", scale) * coefficient(rule.schedule, problem.constants)
        margin = DecayingMargin(c, beta_of(rule.schedule) / 2, point.epsilon)
        return cls(learner=rule, margin=margin, slater=point, checked=(full_scale(scale),))

    @property
    def needed_horizon(self) -> Hyper:
        """(c/ε)^{2/β}: until then γ_t is as large as ε allows."""
        return validate.number("c_0", (self.margin.coefficient / self.slater.epsilon) ** (1 / self.margin.power))
