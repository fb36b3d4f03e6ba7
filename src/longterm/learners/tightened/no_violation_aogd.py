"""A-OGD without violation (Jenatton, Huang, Archambeau 2016, Corollary 1, made explicit): A-OGD on g + γ.

γ is chosen so that all the violation that Lemma 5 allows on g + γ is at most γT; then Σ g(x_t) ≤ 0.
`longterm.theory.margin_sizes` has the formulas. There are three ways to choose γ:

    margin="exact sums"    the γ with γT = √(2 W (𝓡_γ + F T)), about three times smaller than
    margin="theorem"       γ = c_1 T^{−β/2}, from T ≥ c_0 on
    a number               your γ: the theory is conservative, and on most streams far less suffices

`DoublingRestarts` does without the horizon, in epochs of L_k = N 2^k rounds with γ_k = min(ε, c L_k^{−β/2}). With
N ≥ c_0, Σ g(x_t) ≤ 0 whenever an epoch ends. `DecayingMarginAOGD` does without restarts too.
Needs: a Slater point with slack ε > γ.
Guarantees: Lemma 5 on g + γ (`tightened`). Proof: `docs/proofs/theory.md`, "Margins".
Not promised: Σ g(x_t) ≤ 0 before the horizon or with a smaller γ, feasibility in a single round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, like, namespace
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.learners.interface.horizons import MadeForHorizon
from longterm.learners.interface.needs import Need, StepKind
from longterm.learners.interface.slater_for import slater_point_for
from longterm.learners.interface.states import DualState
from longterm.learners.saddle_point.aogd import AOGD
from longterm.learners.tightened.margins import ConstantMargin
from longterm.learners.tightened.tightened import Tightened, full_scale, paper_rule
from longterm.problems import Problem
from longterm.problems.slater import SlaterPoint
from longterm.theory.assumptions import Assumption
from longterm.theory.bounds import REGRET, SIGNED
from longterm.theory.margin_sizes import allowed_violation, beta_of, coefficient, exact_margin, needed_horizon

MarginRule = Literal["exact sums", "theorem"]


@dataclass(frozen=True, eq=False, kw_only=True)
class NoViolationAOGD(Tightened, MadeForHorizon[DualState]):
    """End with no total violation after a known number of rounds, at a higher loss.

    A-OGD on g + γ. Where the γ asked for is above ε it is ε, so that {g + γ ≤ 0} is not empty, and `assumptions`
    reports it.

    Parameters
    ----------
    learner : AOGD
        The A-OGD that receives g + γ.
    margin : ConstantMargin
        The margin that is added to the constraint (γ).
    slater : SlaterPoint
        The slack ε of a strictly feasible point, and where known the point.
    horizon : float or array
        The number of rounds for which γ was made (T).
    coefficient : float or array, optional
        The c of γ = min(ε, c T^{−β/2}), where γ was made by it: then it can be made for another T.
    needed_horizon : float or array, optional
        c_0 of the theorem: from this horizon on c_1 T^{−β/2} ≤ ε. None where the schedule is not of Table 1.
    checked : tuple of Assumption
        What was checked when γ was chosen.

    Examples
    --------
    >>> import longterm as lt
    >>> problem = lt.problems.two_dimensional()
    >>> learner = lt.learners.NoViolationAOGD.for_problem(problem, horizon=50_000)
    >>> round(learner.margin.gamma, 3), bool(learner.bound(problem, 50_000)["signed_violation"] <= 1e-9)
    (0.325, True)
    """

    margin: ConstantMargin
    horizon: Hyper = 1.0
    coefficient: Hyper | None = None
    needed_horizon: Hyper | None = None

    name = "no_violation_aogd"
    title = "No-violation A-OGD"
    promises = {REGRET: "O(T^max(β, 1−β/2))", SIGNED: "≤ 0 at T ≥ c_0"}
    needs = Tightened.needs | {Need.HORIZON}

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        horizon: int,
        margin: MarginRule | Hyper = "exact sums",
        steps: StepKind = "convex",
        beta: Hyper = 2 / 3,
        scale: Hyper = 1.0,
        slater: SlaterPoint | None = None,
        learner: AOGD | None = None,
    ) -> NoViolationAOGD:
        """Make A-OGD on g + γ: no violation in the long run, for a known horizon and a set with an interior.

        Parameters
        ----------
        margin : {"exact sums", "theorem"} or float
            How γ is found: from exact sums, for any schedule that passes C1–C3 and T² > A; as c_1 T^{−β/2}; or a number
            below ε, for which `assumptions` reports whether it makes up for all that Lemma 5 allows.
        steps : {"convex", "strongly convex"}
            The column of Table 1.
        beta : float or array
            β in (0, 1).
        scale : float or array
            The share of γ that is taken. Below 1 there is no theorem.
        slater : SlaterPoint, optional
            Unless given, the problem's, or one that is searched for.
        learner : AOGD, optional
            An A-OGD in place of `steps` and `beta`.
        """
        rule = paper_rule(problem, steps, beta, learner)
        point, T = slater_point_for(problem, slater), validate.dimension("horizon", horizon)
        constants, schedule = problem.constants, rule.schedule
        try:
            least: Hyper | None = needed_horizon(schedule, constants, point.epsilon)
        except InputError:  # not of Table 1
            if isinstance(margin, str) and margin == "theorem":
                raise
            least = None
        common: dict[str, Any] = {"learner": rule, "slater": point, "horizon": float(T), "needed_horizon": least}
        if not isinstance(margin, str):
            gamma = _below_slack(margin, point)
            allowed = allowed_violation(schedule, constants, T, gamma)
            enough = Assumption.worst("what Lemma 5 allows ≤ γT", allowed, gamma * T, "Give a larger γ")
            return cls(**common, margin=ConstantMargin(gamma), checked=(enough,))
        factor, full = validate.positive("scale", scale), full_scale(scale)
        if margin == "exact sums":
            exact = exact_margin(schedule, constants, T)
            small = Assumption.worst("γ by exact sums ≤ ε", exact, point.epsilon, "Give a longer horizon")
            gamma = np.minimum(factor * exact, point.epsilon)
            return cls(**common, margin=ConstantMargin(gamma), checked=(small, full))
        if margin != "theorem":
            raise InputError("margin", f"{margin!r} is not known", "Choose 'exact sums', 'theorem', or give a number")
        c = factor * coefficient(schedule, constants)
        gamma = np.minimum(c * T ** (-beta_of(schedule) / 2), point.epsilon)
        return cls(**common, margin=ConstantMargin(gamma), coefficient=c, checked=(full,))

    @classmethod
    def for_epochs(cls, problem: Problem, **options: Any) -> NoViolationAOGD:
        return cls.for_problem(problem, horizon=1, **{"margin": "theorem", **options})

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.validate_fields(self, validate.positive, "horizon")

    @property
    def shortest_horizon(self) -> int | None:
        """⌈c_0⌉, the shortest horizon that the theorem covers."""
        return None if self.needed_horizon is None else int(np.ceil(np.max(self.needed_horizon)))

    def for_horizon(self, rounds: Array) -> NoViolationAOGD:
        if self.coefficient is None:
            what = "its γ was made for one horizon and cannot be made for another"
            raise InputError("learner", what, "Use NoViolationAOGD.for_problem(…, margin='theorem')")
        power = like(-beta_of(self.learner.schedule) / 2, rounds)
        gamma = namespace(rounds).minimum(like(self.coefficient, rounds) * rounds**power, self.slater.epsilon)
        return self.with_steps(horizon=rounds, margin=self.margin.with_hyper_arrays({"gamma": gamma}))

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        assumptions = self.learner.assumptions
        if self.coefficient is not None and self.needed_horizon is not None:
            remedy = f"Give a horizon, or a first epoch, of at least {self.shortest_horizon}"
            assumptions = (*assumptions, Assumption.worst("c_0 ≤ T", self.needed_horizon, self.horizon, remedy))
        return assumptions + self.checked


def _below_slack(gamma: Hyper, point: SlaterPoint) -> Hyper:
    """Return γ if it is below ε, else raise."""
    checked = validate.positive("margin", gamma)
    if np.any(np.asarray(checked) >= point.epsilon):
        what = f"{gamma!r} is not below ε = {point.epsilon:.6g}: no point is known with g ≤ −γ"
        raise InputError("margin", what, "Give a smaller γ, or a Slater point with more slack")
    return checked
