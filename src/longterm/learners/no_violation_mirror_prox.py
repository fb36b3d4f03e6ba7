"""Mirror prox without violation (Mahdavi, Jin, Yang 2012, Corollary 13, corrected): mirror prox on A x − b + γ ≤ 0.

With rows of length 1, η = δ = T^{−1/3} and γ = b T^{−1/3}, b = 2 √(2F). Then θT = 1/η = T^{1/3}, and where
F T ≥ r² T^{1/3}/2 + G_f² T^{2/3} the bound of Theorem 12 on each Σ_t (g_j(x_t) + γ) is at most

    √( 2 · 2 T^{1/3} · 2 F T ) = 2 √(2F) T^{2/3} = γ T,     so every Σ_t g_j(x_t) ≤ 0.

(The article prints b = 2 √F; it loses one of these three factors 2.)
Needs: what mirror prox needs, and a Slater point, with slack ε > γ in rows of length 1.
Guarantees: `longterm.bounds.mahdavi_corollary_13`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longterm import _validate as validate
from longterm.constraints import Affine
from longterm.learners.mirror_prox import MirrorProx, steps, unit_rows
from longterm.learners.needs import Need
from longterm.problems import Problem
from longterm.theory.assumptions import Assumption
from longterm.theory.slater import SlaterPoint, find_slater_point


@dataclass(frozen=True, eq=False)
class NoViolationMirrorProx(MirrorProx):
    """Mirror prox whose `polyhedron` has been tightened by `gamma`; `slater` has its ε in rows of length 1.

    >>> from longterm.learners import NoViolationMirrorProx
    >>> from longterm.problems import two_dimensional
    >>> learner = NoViolationMirrorProx.for_problem(two_dimensional(), horizon=10_000)
    >>> round(learner.gamma, 6), all(assumption.holds for assumption in learner.assumptions)
    (0.185664, True)
    """

    gamma: float
    slater: SlaterPoint
    checked: tuple[Assumption, ...]

    needs: ClassVar[frozenset[Need]] = MirrorProx.needs | {Need.SLATER_POINT}

    @classmethod
    def tuned(cls, problem: Problem, horizon: int, slater: SlaterPoint | None = None) -> NoViolationMirrorProx:
        """Corollary 13; without a Slater point (ε in rows of length 1), one is looked for.

        Where γ would be above ε it is ε, so that the tightened polyhedron is not empty, and `assumptions` says so.
        """
        T, constants = validate.dimension("horizon", horizon), problem.constants
        polyhedron = unit_rows(problem)
        point = find_slater_point(polyhedron, problem.enclosing_set) if slater is None else slater
        F, eta = constants.loss_range, T ** (-1 / 3)
        gamma = float(2 * np.sqrt(2 * F) * eta)
        cost = constants.radius**2 / (2 * eta) + constants.loss_gradient_bound**2 * eta * T
        longer = "Give a longer horizon"
        checked = (
            Assumption("r²T^{1/3}/2 + G_f²T^{2/3} ≤ F T", cost, F * T, longer),
            Assumption("γ = 2√(2F) T^{−1/3} ≤ ε", gamma, point.epsilon, longer),
        )
        gamma = min(gamma, point.epsilon)
        tightened = Affine(polyhedron.matrix, polyhedron.offset - gamma)
        return cls(problem.enclosing_set, tightened, steps(eta, eta), gamma, point, checked)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        return super().assumptions + self.checked
