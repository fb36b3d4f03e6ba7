"""Convex OGD without violation (Mahdavi, Jin, Yang 2012, Theorem 8, corrected): the aggregate form on g + γ.

With γ = b T^{−1/4} ≤ b the square in the λ-step is split in three, (g + γ − ηδλ)² ≤ 3 (D² + b² + η²δ²λ²), and

    a = r √(2G² + 3 (D² + b²)),   η = r²/(a √T),   δ = 4G²,   b = 2 √( F (δ r²/a + a/r²) )

give a regret on g + γ of at most a √T; and, where F T ≥ a √T,

    Σ (g(x_t) + γ) ≤ √( 2 · 2 F T · √T (δ r²/a + a/r²) ) = b T^{3/4} = γ T,     so Σ g(x_t) ≤ 0.

What is left of λ_t² goes away where δ ≥ 2G² + 3δ²η², which for δ = 4G² is 24 G² η² ≤ 1. (The article prints
a = 2R/√(…), with which η = R²/(a√T) does not give a √T.)

a and b define each other. Eliminating b leaves a³ − 12 F a² − r² (2G² + 3D²) a − 48 F G² r⁴ = 0, whose coefficients
change sign once: it has exactly one positive root, and so has the pair.
Needs: the horizon T, and a Slater point with slack ε > γ.
Guarantees: Lemma 5 on g + γ in every round, `theorem_8` at the horizon itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, namespace
from longterm.errors import InputError
from longterm.learners.duals import OneForTheMaximum
from longterm.learners.mahdavi_ogd import MahdaviOGD
from longterm.learners.needs import Need
from longterm.learners.no_violation import Tightened, slater_of, tightened_lemma_5
from longterm.problems import Problem
from longterm.theory.bounds import REGRET, SIGNED
from longterm.theory.facts import Assumption, Constants
from longterm.theory.schedules import ConstantSchedule
from longterm.theory.slater import SlaterPoint


class FixedPoint(NamedTuple):
    """A solution of Theorem 8's pair of equations."""

    a: float
    b: float


def fixed_point(constants: Constants) -> FixedPoint:
    """The only a and b that satisfy both equations.

    Examples
    --------
    >>> from longterm.problems import two_dimensional
    >>> from longterm.learners.mahdavi_no_violation import fixed_point
    >>> a, b = fixed_point(two_dimensional().constants)
    >>> round(a, 6), round((8 + 3 * (1.25**2 + b**2)) ** 0.5, 6)
    (25.114029, 25.114029)
    >>> round(b, 6), round(2 * (2 * (16 / a + a)) ** 0.5, 6)
    (14.353013, 14.353013)
    """
    r, G, D, F = constants.radius, constants.gradient_bound, constants.constraint_bound, constants.loss_range
    roots = np.roots([1.0, -12 * F, -(r**2) * (2 * G**2 + 3 * D**2), -48 * F * G**2 * r**4])
    a = float(np.max(roots[np.abs(roots.imag) <= 1e-9 * np.abs(roots)].real))
    return FixedPoint(a, float(2 * np.sqrt(F * (4 * G**2 * r**2 / a + a / r**2))))


@dataclass(frozen=True, eq=False, kw_only=True)
class NoViolationMahdaviOGD(Tightened):
    """Convex OGD, one multiplier, on g + γ.

    Parameters
    ----------
    learner : MahdaviOGD
        What is told g + γ.
    slater : SlaterPoint
        ε, and where known x̂.
    gamma : float
        γ.
    checked : tuple of Assumption
        What was checked when γ was chosen.

    Examples
    --------
    >>> from longterm.learners import NoViolationMahdaviOGD
    >>> from longterm.problems import two_dimensional
    >>> learner = NoViolationMahdaviOGD.for_problem(two_dimensional(), horizon=100_000)
    >>> round(learner.gamma, 3), [assumption.holds for assumption in learner.assumptions]
    (0.807, [True, True, True, True])
    """

    learner: MahdaviOGD
    gamma: float

    name: ClassVar[str] = "no_violation_ogd"
    title: ClassVar[str] = "No-violation Convex OGD"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(T^3/4)", SIGNED: "≤ 0 at T"}
    needs: ClassVar[frozenset[Need]] = Tightened.needs | {Need.HORIZON}

    @classmethod
    def for_problem(cls, problem: Problem, *, horizon: int, slater: SlaterPoint | None = None) -> NoViolationMahdaviOGD:
        """Convex OGD of Mahdavi, Jin and Yang on g + γ (their Theorem 8).

        Where γ would be above ε it is ε, and `assumptions` says so.

        Parameters
        ----------
        problem : Problem
            What is to be played.
        horizon : int
            T, the number of rounds.
        slater : SlaterPoint, optional
            Left out, one is looked for.
        """
        T, constants, point = validate.dimension("horizon", horizon), problem.constants, slater_of(problem, slater)
        a, b = fixed_point(constants)
        G, eta, gamma = constants.gradient_bound, constants.radius**2 / (a * np.sqrt(T)), b * T**-0.25
        longer = "Give a longer horizon"
        schedule = ConstantSchedule(theta=4 * G**2 * eta, eta=eta, mu=eta, gradient_bound=G)
        return cls(
            learner=MahdaviOGD(problem.enclosing_set, schedule, OneForTheMaximum()),
            slater=point,
            gamma=float(min(gamma, point.epsilon)),
            checked=(
                Assumption("a √T ≤ F T", float(a * np.sqrt(T)), constants.loss_range * T, longer),
                Assumption("24 G² η² ≤ 1", float(24 * G**2 * eta**2), 1.0, longer),
                Assumption("γ = b T^{−1/4} ≤ ε", float(gamma), point.epsilon, longer),
            ),
        )

    def margin(self, t: Array, x: Array) -> Array:
        return self.gamma + 0 * namespace(x).astype(t, x.dtype)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """Lemma 5 on g + γ, in every round of a run: `tightened_lemma_5`."""
        return tightened_lemma_5(self, self.learner.schedule, self.gamma, problem, rounds)

    def theorem_8(self, problem: Problem, horizon: int) -> Mapping[str, FloatArray]:
        """Theorem 8, corrected: a √T + (γ/ε) F T, and Σ g(x_t) ≤ b T^{3/4} − γT = 0, where its assumptions hold.

        T must be the horizon that the steps and the margin were made for.
        """
        self.require_assumptions()
        T, (a, b) = float(validate.dimension("horizon", horizon)), fixed_point(problem.constants)
        if not np.allclose(b * T**-0.25, self.gamma, rtol=1e-9):
            raise InputError("horizon", f"{horizon!r} is not the learner's horizon", "Give the one it was made for")
        regret = a * np.sqrt(T) + self.gamma / self.slater.epsilon * problem.constants.loss_range * T
        return {REGRET: np.asarray(regret), SIGNED: np.asarray(0.0)}
