"""A-OGD without violation (Jenatton, Huang, Archambeau 2016, Corollary 1, made explicit): A-OGD on g + γ_t.

`NoViolationAOGD` knows the horizon. Its γ is chosen so that all the violation that Lemma 5 allows on g + γ is at most
γT; then Σ g(x_t) ≤ 0. `longterm.theory.margins` has the formulas. There are three ways to choose γ:

    margin="exact sums"    the γ with γT = √(2 W (𝓡_γ + F T)), about three times smaller than
    margin="theorem"       γ = c_1 T^{−β/2}, from T ≥ c_0 on
    a number               your γ: the theory is conservative, and on most streams far less suffices

Without a horizon, `DecayingMarginAOGD` plays γ_t = min(ε, c t^{−β/2}). c = c_1 is enough in the end, because Σ γ_t
grows as c T^{1−β/2}/(1 − β/2); `bound` shows from which T on. `DoublingRestarts` starts `NoViolationAOGD` again in
epochs of L_k = N 2^k rounds, with γ_k = min(ε, c L_k^{−β/2}). Over every epoch with L_k ≥ c_0, Σ g(x_t) ≤ 0.
So with N ≥ c_0 the whole sum is ≤ 0 whenever an epoch ends. With N = 1, no theorem makes up for the first epochs.
Needs: value and one subgradient of f_t and g_t at x_t, and a Slater point with slack ε > γ.
Guarantees: Lemma 5 on g + γ_t (`tightened`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, like, namespace
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.learners.aogd import AOGD, AOGDState
from longterm.learners.base import MadeForHorizon
from longterm.learners.needs import Need, StepKind
from longterm.learners.tightened import (
    ConstantMargin,
    DecayingMargin,
    Tightened,
    full_scale,
    require_papers_penalty,
    slater_point_for,
)
from longterm.problems import Problem
from longterm.theory.bounds import REGRET, SIGNED
from longterm.theory.facts import Assumption
from longterm.theory.margins import allowed_violation, beta_of, coefficient, exact_margin, needed_horizon
from longterm.theory.slater import SlaterPoint

MarginRule = Literal["exact sums", "theorem"]


@dataclass(frozen=True, eq=False, kw_only=True)
class NoViolationAOGD(Tightened, MadeForHorizon[AOGDState]):
    """A-OGD on g + γ for a known horizon.

    Where the γ asked for is above ε it is ε, so that {g + γ ≤ 0} is not empty, and `assumptions` reports it.

    Parameters
    ----------
    learner : AOGD
        The learner that receives g + γ.
    margin : ConstantMargin
        γ.
    slater : SlaterPoint
        ε, and where known x̂.
    horizon : float or array
        T, which γ was made for.
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
    >>> learner = lt.learners.NoViolationAOGD.for_problem(problem, horizon=50_000, margin="theorem")
    >>> round(learner.margin.gamma, 3), round(learner.needed_horizon), learner.assumptions[0].holds
    (1.165, 40427, True)
    >>> learner = lt.learners.NoViolationAOGD.for_problem(problem, horizon=50_000)
    >>> round(learner.margin.gamma, 3), bool(learner.bound(problem, 50_000)["signed_violation"] <= 1e-9)
    (0.325, True)
    """

    margin: ConstantMargin
    horizon: Hyper = 1.0
    coefficient: Hyper | None = None
    needed_horizon: Hyper | None = None

    name: ClassVar[str] = "no_violation_aogd"
    title: ClassVar[str] = "No-violation A-OGD"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(T^max(β, 1−β/2))", SIGNED: "≤ 0 at T ≥ c_0"}
    needs: ClassVar[frozenset[Need]] = Tightened.needs | {Need.HORIZON}

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
        rule = AOGD.for_problem(problem, steps=steps, beta=beta) if learner is None else require_papers_penalty(learner)
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


class DecayingMarginAOGD(Tightened):
    """A-OGD on g + γ_t with a margin that falls: no horizon, no restarts.

    Examples
    --------
    >>> import longterm as lt
    >>> problem = lt.problems.two_dimensional()
    >>> learner = lt.learners.DecayingMarginAOGD.for_problem(problem, scale=0.1)
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
        rule = AOGD.for_problem(problem, steps=steps, beta=beta) if learner is None else require_papers_penalty(learner)
        point = slater_point_for(problem, slater)
        c = validate.positive("scale", scale) * coefficient(rule.schedule, problem.constants)
        margin = DecayingMargin(c, beta_of(rule.schedule) / 2, point.epsilon)
        return cls(learner=rule, margin=margin, slater=point, checked=(full_scale(scale),))

    @property
    def needed_horizon(self) -> Hyper:
        """(c/ε)^{2/β}: until then γ_t is as large as ε allows."""
        return validate.number("c_0", (self.margin.coefficient / self.slater.epsilon) ** (1 / self.margin.power))


def _below_slack(gamma: Hyper, point: SlaterPoint) -> Hyper:
    """Return γ if it is below ε, else raise."""
    checked = validate.positive("margin", gamma)
    if np.any(np.asarray(checked) >= point.epsilon):
        raise InputError(
            "margin",
            f"{gamma!r} is not below ε = {point.epsilon:.6g}: no point is known with g ≤ −γ",
            "Give a smaller γ, or a Slater point with more slack",
        )
    return checked
