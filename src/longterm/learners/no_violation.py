"""A-OGD without violation (Jenatton, Huang, Archambeau 2016, Corollary 1, made explicit): A-OGD on g + γ.

The margin γ is chosen so that all the violation that Lemma 5 allows A-OGD on g + γ is at most γT; then Σ g(x_t) ≤ 0.
`longterm.theory.margins` has the formulas. Three ways to a γ for a known horizon:

    NoViolationAOGD.by_theorem       γ = c_1 T^{−β/2}, from T ≥ c_0 on
    NoViolationAOGD.by_exact_sums    the γ with γT = √(2 W (𝓡_γ + F T)), about three times smaller
    NoViolationAOGD.given            a γ of your own: the theory is cautious, and on most streams far less will do

and two without one: `DecayingMarginAOGD` plays γ_t = min(ε, c t^{−β/2}), `DoublingAOGD` starts again in epochs of
doubling length.
Needs: value and one subgradient of f_t and g_t at x_t, and a Slater point: x̂ in B with g(x̂) ≤ −ε, ε > γ (of every
g_t, where constraints change: the proof uses nothing else of them).
Guarantees: `longterm.bounds.corollary_1` and its relatives. The comparator (1 − γ/ε) x* + (γ/ε) x̂, which has g ≤ −γ
by convexity, costs at most (γ/ε) F T more than x* itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, like, namespace
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.learners.aogd import AOGD
from longterm.learners.needs import Need
from longterm.learners.tightened import Tightened, slater_of
from longterm.problems import Problem
from longterm.theory.assumptions import Assumption
from longterm.theory.margins import allowed_violation, beta_of, coefficient, exact_margin, needed_horizon
from longterm.theory.slater import SlaterPoint


@dataclass(frozen=True, eq=False, kw_only=True)
class NoViolationAOGD(Tightened):
    """A-OGD on g + γ for a known horizon.

    Where the γ asked for is above ε it is ε, so that {g + γ ≤ 0} is not empty, and `assumptions` says so.

    >>> from longterm import AOGD
    >>> from longterm.learners import NoViolationAOGD
    >>> from longterm.problems import two_dimensional
    >>> problem = two_dimensional()
    >>> learner = NoViolationAOGD.for_problem(problem, horizon=50_000, margin="theorem")
    >>> round(learner.gamma, 3), round(learner.needed_horizon), learner.assumptions[0].holds
    (1.165, 40427, True)
    >>> round(NoViolationAOGD.for_problem(problem, horizon=50_000).gamma, 3)
    0.325
    """

    learner: AOGD
    gamma: Hyper
    needed_horizon: Hyper | None = None
    """c_0 of the theorem: from this horizon on c_1 T^{−β/2} ≤ ε. None where the schedule is not of Table 1."""

    needs: ClassVar[frozenset[Need]] = Tightened.needs | {Need.HORIZON}

    @classmethod
    def by_theorem(
        cls, learner: AOGD, problem: Problem, horizon: int, *, scale: Hyper = 1.0, slater: SlaterPoint | None = None
    ) -> NoViolationAOGD:
        """γ = scale · c_1 T^{−β/2}; a scale below 1 is a hope, not a theorem."""
        T, constants, point = validate.dimension("horizon", horizon), problem.constants, slater_of(problem, slater)
        least = needed_horizon(learner.schedule, constants, point.epsilon)
        gamma = coefficient(learner.schedule, constants) * T ** (-beta_of(learner.schedule) / 2)
        return cls(
            learner=learner,
            slater=point,
            gamma=_capped(scale, gamma, point),
            needed_horizon=least,
            checked=(
                Assumption.worst("c_0 ≤ T", least, T, f"Give a horizon of at least {np.ceil(np.max(least)):.0f}"),
                _full_scale(scale),
            ),
        )

    @classmethod
    def by_exact_sums(
        cls, learner: AOGD, problem: Problem, horizon: int, *, scale: Hyper = 1.0, slater: SlaterPoint | None = None
    ) -> NoViolationAOGD:
        """γ = scale times the root of the quadratic; it takes any schedule that passes C1–C3, and T² > A."""
        point = slater_of(problem, slater)
        gamma = exact_margin(learner.schedule, problem.constants, horizon)
        return cls(
            learner=learner,
            slater=point,
            gamma=_capped(scale, gamma, point),
            needed_horizon=_theorems_horizon(learner, problem, point),
            checked=(
                Assumption.worst("γ by exact sums ≤ ε", gamma, point.epsilon, "Give a longer horizon"),
                _full_scale(scale),
            ),
        )

    @classmethod
    def given(
        cls, learner: AOGD, problem: Problem, horizon: int, gamma: Hyper, *, slater: SlaterPoint | None = None
    ) -> NoViolationAOGD:
        """A γ of the user's, below ε; `assumptions` says whether it makes up for all that Lemma 5 allows."""
        point, own = slater_of(problem, slater), validate.positive("gamma", gamma)
        if np.any(np.asarray(own) >= point.epsilon):
            raise InputError(
                "gamma",
                f"{gamma!r} is not below ε = {point.epsilon:.6g}: no point is known with g ≤ −γ",
                "Give a smaller γ, or a Slater point with more slack",
            )
        T, constants = validate.dimension("horizon", horizon), problem.constants
        allowed = allowed_violation(learner.schedule, constants, T, own)
        return cls(
            learner=learner,
            slater=point,
            gamma=own,
            needed_horizon=_theorems_horizon(learner, problem, point),
            checked=(Assumption.worst("what Lemma 5 allows ≤ γT", allowed, own * T, "Give a larger γ"),),
        )

    def margin(self, t: Array, x: Array) -> Array:
        return like(self.gamma, x) + 0 * namespace(x).astype(t, x.dtype)


@dataclass(frozen=True, eq=False, kw_only=True)
class DecayingMarginAOGD(Tightened):
    """A-OGD on g + γ_t with γ_t = min(ε, c t^{−β/2}): no horizon, no restarts.

    c = c_1 is enough in the end, because Σ γ_t grows as c T^{1−β/2}/(1 − β/2); `longterm.bounds.decaying_margin` says
    from when on.

    >>> from longterm import AOGD
    >>> from longterm.learners import DecayingMarginAOGD
    >>> from longterm.problems import two_dimensional
    >>> problem = two_dimensional()
    >>> learner = DecayingMarginAOGD.for_problem(problem, scale=0.1)
    >>> round(learner.coefficient, 3), round(learner.needed_horizon)
    (4.29, 40)
    """

    learner: AOGD
    coefficient: Hyper
    """c."""

    @classmethod
    def of(
        cls, learner: AOGD, problem: Problem, *, scale: Hyper = 1.0, slater: SlaterPoint | None = None
    ) -> DecayingMarginAOGD:
        """C = scale · c_1."""
        c = validate.positive("scale", scale) * coefficient(learner.schedule, problem.constants)
        return cls(learner=learner, slater=slater_of(problem, slater), coefficient=c, checked=(_full_scale(scale),))

    @property
    def needed_horizon(self) -> Hyper:
        """(c/ε)^{2/β}: until then γ_t is as large as ε allows."""
        return validate.number("c_0", (self.coefficient / self.slater.epsilon) ** (2 / beta_of(self.learner.schedule)))

    def margin(self, t: Array, x: Array) -> Array:
        xp, power = namespace(x), like(-beta_of(self.learner.schedule) / 2, x)
        decayed = like(self.coefficient, x) * xp.astype(t, x.dtype) ** power
        return xp.minimum(decayed, self.slater.epsilon)


def _theorems_horizon(learner: AOGD, problem: Problem, point: SlaterPoint) -> Hyper | None:
    try:
        return needed_horizon(learner.schedule, problem.constants, point.epsilon)
    except InputError:  # not of Table 1
        return None


def _capped(scale: Hyper, gamma: Hyper, point: SlaterPoint) -> Hyper:
    return validate.positive("gamma", np.minimum(validate.positive("scale", scale) * gamma, point.epsilon))


def _full_scale(scale: Hyper) -> Assumption:
    return Assumption.worst("1 ≤ scale", 1.0, scale, "A smaller margin is a choice of yours; judge it by its runs")
