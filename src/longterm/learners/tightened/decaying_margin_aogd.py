"""A-OGD on g + γ_t with a margin γ_t = min(ε, c t^{−β/2}) that falls: Σ g(x_t) ≤ 0 in the end, without a horizon.

c = c_1 of `longterm.theory.margin_sizes` is enough in the end, because Σ γ_t grows as c T^{1−β/2}/(1 − β/2).
`bound` shows from which T on. Needs a Slater point with slack ε. Guarantees: Lemma 5 on g + γ_t (`tightened`).
Proof: `docs/proofs/theory.md`. Not promised: Σ g(x_t) ≤ 0 early, feasibility in a single round.
"""

from __future__ import annotations

from longterm._base import validate
from longterm._base.validate import Hyper
from longterm.learners.interface.needs import StepKind
from longterm.learners.interface.slater_for import slater_point_for
from longterm.learners.saddle_point.aogd import AOGD
from longterm.learners.tightened.margins import DecayingMargin
from longterm.learners.tightened.tightened import Tightened, full_scale, paper_rule
from longterm.problems import Problem
from longterm.problems.slater import SlaterPoint
from longterm.theory.bounds import REGRET, SIGNED
from longterm.theory.margin_sizes import beta_of, coefficient


class DecayingMarginAOGD(Tightened):
    """End with no total violation without knowing the number of rounds, at a higher loss.

    A-OGD on g + γ_t with a margin γ_t that falls, without restarts.

    Examples
    --------
    >>> import longterm as lt
    >>> learner = lt.learners.DecayingMarginAOGD.for_problem(lt.problems.two_dimensional(), scale=0.1)
    >>> round(learner.margin.coefficient, 3), round(learner.needed_horizon)
    (4.29, 40)
    """

    margin: DecayingMargin

    name = "decaying_margin_aogd"
    title = "Decaying-margin A-OGD"
    promises = {REGRET: "O(T^max(β, 1−β/2))", SIGNED: "≤ 0 from some T on"}
    variants = ()
    """No arena ranks it: at 4,096 rounds both margins are ε, and it plays the points of `NoViolationAOGD`."""

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
        steps : {"convex", "strongly convex"}
            The column of Table 1.
        beta : float or array
            β in (0, 1).
        scale : float or array
            c = scale · c_1. Below 1 there is no theorem.
        slater : SlaterPoint, optional
            Unless given, the problem's, or one that is searched for.
        learner : AOGD, optional
            An A-OGD in place of `steps` and `beta`.
        """
        rule, point = paper_rule(problem, steps, beta, learner), slater_point_for(problem, slater)
        c = validate.positive("scale", scale) * coefficient(rule.schedule, problem.constants)
        margin = DecayingMargin(c, beta_of(rule.schedule) / 2, point.epsilon)
        return cls(learner=rule, margin=margin, slater=point, checked=(full_scale(scale),))

    @property
    def needed_horizon(self) -> Hyper:
        """(c/ε)^{2/β}: until then γ_t is as large as ε allows."""
        return validate.number("c_0", (self.margin.coefficient / self.slater.epsilon) ** (1 / self.margin.power))
