"""OGD with long-term constraints (Mahdavi, Jin, Yang, JMLR 13, 2012, Algorithm 1): A-OGD with constant steps.

    x_{t+1} = Π_B( x_t − η ( ∇f_t(x_t) + Σ_j λ_{t,j} ∇g_j(x_t) ) )         x_1 = centre of B
    λ_{t+1} = [ λ_t + η ( g(x_t) − ηδ λ_t ) ]₊                             λ_1 = 0 in R^m

In `AOGD` this is a `ConstantSchedule` with θ = ηδ and μ = η. Two forms: a multiplier for each constraint, or one for
g = max_j g_j with m = 1 in every constant.

Steps, from Theorem 4, with r = max ‖x_1 − x‖ over B (the article's R) and m multipliers:

    a = r √((m + 1) G² + 2 m D²),   η = r²/(a √T),   δ ≥ (m + 1) G² + 2 δ² η².

The article asks for δ ≥ (m + 1) G² + 2 m δ² η², with an m that is not needed. A real δ exists if and only if
8 (m + 1) G² η² ≤ 1; the article prints 2√2 η (m + 1) ≤ 1, without G.
Needs: the horizon T; value and one subgradient of f_t and of each g_j (or of their maximum) at x_t.
Guarantees: Theorem 4 of the article, corrected, also for g_t that change. A multiplier each bounds every Σ_t g_j(x_t),
one bounds Σ_t max_j g_j(x_t), which is more. Proof: `docs/proofs/derivations.md`. Not promised: feasibility in a single
round, a small Σ [g(x_t)]₊.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from longterm._base import validate
from longterm._base.arrays import ROUNDING
from longterm.errors import InputError
from longterm.learners.interface.needs import Need
from longterm.learners.saddle_point.aogd import AOGD
from longterm.learners.saddle_point.multiplier_rules import Duals, OneForTheMaximum, OnePerConstraint
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.problems.constraints import DoublyStochastic, ElasticNetBudget
from longterm.theory.assumptions import Assumption
from longterm.theory.bounds import LONG_TERM, REGRET, SIGNED
from longterm.theory.schedules import ConstantSchedule

DeltaRule = Callable[[float, float], float]
"""A function from (m + 1) G² and η to δ."""


def smallest_root(need: float, eta: float) -> float:
    """Return the smallest δ with δ = (m + 1) G² + 2 δ² η², where `need` is (m + 1) G².

    >>> from longterm.learners.saddle_point.mahdavi_ogd import smallest_root
    >>> smallest_root(3.0, 1 / 6)  # δ = 3 + δ²/18: 18 δ = 54 + δ²
    3.8038475772933684
    """
    discriminant = 1 - 8 * need * eta**2
    if discriminant < -ROUNDING:
        what = f"δ = (m + 1) G² + 2 δ² η² has no real root: 8 (m + 1) G² η² = {8 * need * eta**2:.6g} is above 1"
        raise InputError("eta", what, "Use a smaller η, which means a longer horizon")
    # The textbook root (1 − √…)/(4η²) subtracts two nearly equal numbers when η is small. This is the same number.
    return float(2 * need / (1 + np.sqrt(max(discriminant, 0.0))))


def twice(need: float, eta: float) -> float:
    """Return δ = 2 (m + 1) G², the article's simple choice. It suffices exactly where a real root exists."""
    return 2 * need


def tuned_steps(constants: Constants, horizon: int, count: int, delta: DeltaRule) -> ConstantSchedule:
    """Return θ = ηδ, η and μ = η for `count` multipliers and `horizon` rounds."""
    T, r, G = validate.dimension("horizon", horizon), constants.radius, constants.gradient_bound
    eta = r**2 / (regret_factor(constants, count) * np.sqrt(T))
    try:
        chosen = delta((count + 1) * G**2, eta)
    except InputError as error:
        remedy = f"Give at least {smallest_horizon(constants, count)}"
        raise InputError("horizon", f"{T} rounds are too few: {error.what}", remedy) from None
    return ConstantSchedule(theta=eta * chosen, eta=eta, mu=eta, gradient_bound=G)


def regret_factor(constants: Constants, count: int) -> float:
    """Return the article's a = r √((m + 1) G² + 2 m D²). The regret is at most a √T."""
    square = (count + 1) * constants.gradient_bound**2 + 2 * count * constants.constraint_bound**2
    return float(constants.radius * np.sqrt(square))


def smallest_horizon(constants: Constants, count: int) -> int:
    """Return the smallest T for which δ exists: 8 (m + 1) G² r⁴/(a² T) ≤ 1."""
    need = (count + 1) * constants.gradient_bound**2
    return max(1, int(np.ceil(8 * need * constants.radius**4 / regret_factor(constants, count) ** 2 * (1 - ROUNDING))))


Multipliers = Literal["one", "each", "paper"]
DELTAS: Mapping[str, DeltaRule] = {"smallest root": smallest_root, "twice": twice}


class MahdaviOGD(AOGD):
    """Keep a long-term limit with constant steps, for a known number of rounds.

    A-OGD with the steps θ = ηδ, η and μ = η, and one or m multipliers.

    Examples
    --------
    >>> from longterm.learners.saddle_point.mahdavi_ogd import MahdaviOGD
    >>> from longterm.problems import doubly_stochastic
    >>> learner = MahdaviOGD.for_problem(doubly_stochastic(3), horizon=100, multipliers="each")
    >>> learner.init().multiplier.shape
    (21,)
    """

    schedule: ConstantSchedule

    name = "mahdavi_ogd"
    title = "OGD (Mahdavi et al. 2012)"
    promises = {REGRET: "O(T^1/2)", SIGNED: "O(T^3/4)", LONG_TERM: "O(T^3/4)"}
    variants = ({}, {"multipliers": "each"})
    drifting = ()
    needs = frozenset({Need.HORIZON})

    @classmethod
    def for_problem(  # type: ignore[override]  # constant steps have other options than those of Table 1
        cls,
        problem: Problem,
        *,
        horizon: int,
        multipliers: Multipliers = "one",
        delta: Literal["smallest root", "twice"] = "smallest root",
        constraint_bound: float | Literal["exact", "paper"] = "exact",
    ) -> MahdaviOGD:
        """Make the OGD of Mahdavi et al. (2012): one multiplier for the maximum or one each, for a known horizon.

        Parameters
        ----------
        multipliers : {"one", "each", "paper"}
            One for max_j g_j, with m = 1 in Theorem 4, or one for each of the m constraints. "paper" is the one that
            the figures of Jenatton et al. (2016) are consistent with: one multiplier, but steps made for all m
            constraints with δ = 2 (m + 1) G². Its steps are several times too small.
        delta : {"smallest root", "twice"}
            δ: the smallest that Theorem 4 allows, or 2 (m + 1) G².
        constraint_bound : {"exact", "paper"} or float
            The D that the steps are made for: the problem's, the one that the A-OGD paper states (√p on its matrices,
            where p + 1 is true), or a number.
        """
        validate.choice("multipliers", multipliers, get_args(Multipliers))
        validate.choice("delta", delta, DELTAS)
        m = problem.constraint.count
        duals: Duals = OnePerConstraint(m) if multipliers == "each" else OneForTheMaximum()
        count, rule = 1 if multipliers == "one" else m, twice if multipliers == "paper" else DELTAS[delta]
        D = problem.constants.constraint_bound
        if constraint_bound == "paper":
            D = papers_constraint_bound(problem)
        elif constraint_bound != "exact":
            D = validate.positive_scalar("constraint_bound", constraint_bound)
        steps = tuned_steps(replace(problem.constants, constraint_bound=D), horizon, count, rule)
        return cls(problem.enclosing_set, steps, duals=duals)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        if self.schedule.gradient_bound is None:
            return ()
        theta, eta, mu = self.schedule.at(np.asarray(1), np.zeros(1))
        asked = eta * (self.duals.count + 1) * np.asarray(self.schedule.gradient_bound) ** 2 + 2 * mu * theta**2
        statement = "(m + 1)G²η + 2μθ² ≤ θ (with μ = η and θ = ηδ: (m + 1)G² + 2δ²η² ≤ δ)"
        return (Assumption.worst(statement, asked, theta, "Give a longer horizon, or a larger δ"),)

    def constants_of_duals(self, c: Constants) -> Constants:
        """Return those of A-OGD with σ = 0: Theorem 4 is for convex losses."""
        return replace(super().constants_of_duals(c), strong_convexity=0.0)


def papers_constraint_bound(problem: Problem) -> float:
    """Return the D that the A-OGD paper states for its two experiments: one too small, one larger than needed.

    √p on p × p doubly-stochastic matrices (true: p + 1), √d R + R²/2 under a budget (true: max(ρ, (√d − 1) R)).
    """
    constraint, R = problem.constraint, problem.constants.radius
    if isinstance(constraint, DoublyStochastic):
        return float(problem.dimension**0.25)
    if isinstance(constraint, ElasticNetBudget):
        return float(constraint.l1 * np.sqrt(problem.dimension) * R + constraint.l2 * R**2 / 2)
    what = f"the paper states no D for {problem.name!r}"
    raise InputError("constraint_bound", what, "Give 'exact', or a number")
