"""OGD without violation (Mahdavi, Jin, Yang 2012, Theorem 8, corrected): one multiplier, on g + γ.

    a = r √(2G² + 3 (D² + b²)),   η = r²/(a √T),   δ = 4G²,   b = 2 √( F (δ r²/a + a/r²) ),   γ = b T^{−1/4}

a and b define each other: a is the only positive root of a³ − 12 F a² − r² (2G² + 3D²) a − 48 F G² r⁴ = 0. (The article
prints a = 2R/√(…), with which η = R²/(a√T) does not give a √T.)
Needs: the horizon T, and a Slater point with slack ε > γ.
Guarantees: Lemma 5 on g + γ in every round (`tightened`). At the horizon Σ g(x_t) ≤ 0 where the assumptions hold.
Proof: `docs/proofs/theory.md`, "Margins". Not promised: either at another T, feasibility in a single round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longterm._base import validate
from longterm.learners.interface.needs import Need
from longterm.learners.interface.slater_for import slater_point_for
from longterm.learners.saddle_point.mahdavi_ogd import MahdaviOGD
from longterm.learners.tightened.margins import ConstantMargin
from longterm.learners.tightened.tightened import Tightened
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.problems.slater import SlaterPoint
from longterm.theory.assumptions import Assumption
from longterm.theory.bounds import REGRET, SIGNED
from longterm.theory.schedules import ConstantSchedule


class FixedPoint(NamedTuple):
    """The a and b of Theorem 8."""

    a: float
    b: float


def fixed_point(constants: Constants) -> FixedPoint:
    """Return the only a and b that satisfy both equations.

    >>> from longterm.learners.tightened.mahdavi_no_violation import fixed_point
    >>> from longterm.problems import two_dimensional
    >>> a, b = fixed_point(two_dimensional().constants)
    >>> round(a, 6), round((8 + 3 * (1.25**2 + b**2)) ** 0.5, 6)
    (25.114029, 25.114029)
    """
    r, G, D, F = constants.radius, constants.gradient_bound, constants.constraint_bound, constants.loss_range
    roots = np.roots([1.0, -12 * F, -(r**2) * (2 * G**2 + 3 * D**2), -48 * F * G**2 * r**4])
    a = float(np.max(roots[np.abs(roots.imag) <= 1e-9 * np.abs(roots)].real))
    return FixedPoint(a, float(2 * np.sqrt(F * (4 * G**2 * r**2 / a + a / r**2))))


class NoViolationMahdaviOGD(Tightened):
    """End with no total violation after a known number of rounds, with constant steps.

    `MahdaviOGD` with one multiplier on g + γ.

    Examples
    --------
    >>> import longterm as lt
    >>> learner = lt.learners.NoViolationMahdaviOGD.for_problem(lt.problems.two_dimensional(), horizon=100_000)
    >>> round(learner.margin.gamma, 3), [assumption.holds for assumption in learner.assumptions]
    (0.807, [True, True, True, True])
    """

    learner: MahdaviOGD
    margin: ConstantMargin

    name = "no_violation_mahdavi_ogd"
    title = "No-violation OGD (Mahdavi et al. 2012)"
    promises = {REGRET: "O(T^3/4)", SIGNED: "≤ 0 at T"}
    needs = Tightened.needs | {Need.HORIZON}

    @classmethod
    def for_problem(cls, problem: Problem, *, horizon: int, slater: SlaterPoint | None = None) -> NoViolationMahdaviOGD:
        """Make the OGD of Mahdavi et al. (2012) on g + γ (their Theorem 8).

        Where γ would be above ε it is ε, and `assumptions` reports it.

        Parameters
        ----------
        slater : SlaterPoint, optional
            Unless given, the problem's, or one that is searched for.
        """
        T, constants = validate.dimension("horizon", horizon), problem.constants
        point, (a, b) = slater_point_for(problem, slater), fixed_point(constants)
        G, eta, gamma = constants.gradient_bound, constants.radius**2 / (a * np.sqrt(T)), b * T**-0.25
        longer = "Give a longer horizon"
        schedule = ConstantSchedule(theta=4 * G**2 * eta, eta=eta, mu=eta, gradient_bound=G)
        return cls(
            learner=MahdaviOGD(problem.enclosing_set, schedule),
            margin=ConstantMargin(float(min(gamma, point.epsilon))),
            slater=point,
            checked=(
                Assumption("a √T ≤ F T", float(a * np.sqrt(T)), constants.loss_range * T, longer),
                Assumption("24 G² η² ≤ 1", float(24 * G**2 * eta**2), 1.0, longer),
                Assumption("γ = b T^{−1/4} ≤ ε", float(gamma), point.epsilon, longer),
            ),
        )
