"""Mirror prox without violation (Mahdavi, Jin, Yang 2012, Corollary 13, corrected): mirror prox on A x − b + γ ≤ 0.

With rows of length 1, η = δ = T^{−1/3} and γ = b T^{−1/3}, b = 2 √(2F), the bound of Theorem 12 on each
Σ_t (g_j(x_t) + γ) is at most γT, so every Σ_t g_j(x_t) ≤ 0 (`docs/proofs/theory.md`, "Margins"). The article prints
b = 2 √F, without a factor 2. The margin is on the polyhedron, not on the feedback as in `tightened`: mirror prox uses
the constraints before the round.
Needs: what mirror prox needs, and a Slater point with slack ε > γ in rows of length 1.
Proof: `docs/proofs/theory.md`, "Margins". Not promised: Σ max_j g_j(x_t) ≤ 0, feasibility in a single round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longterm._base import validate
from longterm.learners.interface.needs import Need
from longterm.learners.saddle_point.mirror_prox import MirrorProx, mirror_prox_steps, unit_rows
from longterm.problems import Problem
from longterm.problems.constraints import Affine
from longterm.problems.slater import SlaterPoint, find_slater_point
from longterm.theory.assumptions import Assumption
from longterm.theory.bounds import LONG_TERM, REGRET, BoundValues, Rounds, horizons_of


@dataclass(frozen=True, eq=False)
class NoViolationMirrorProx(MirrorProx):
    """End with no total violation of any linear limit, after a known number of rounds.

    `MirrorProx` on A x − b + γ ≤ 0.

    Parameters
    ----------
    enclosing_set : Set
        The ball, box or other set that every decision stays in (B in the formulas).
    polyhedron : Affine
        The tightened limits A x ≤ b − γ, with rows of length 1.
    schedule : ConstantSchedule
        The constant step sizes η and μ of decision and multiplier, and the weight θ of the multiplier's penalty.
    gamma : float
        The margin that is added to the constraint (γ).
    slater : SlaterPoint
        The slack ε of a strictly feasible point for rows of length 1, and where known the point.
    checked : tuple of Assumption
        What was checked when γ was chosen.

    Examples
    --------
    >>> import longterm as lt
    >>> problem = lt.problems.two_dimensional()
    >>> learner = lt.learners.NoViolationMirrorProx.for_problem(problem, horizon=10_000)
    >>> round(learner.gamma, 3), float(learner.bound(problem, 10_000)["long_term_violation"])
    (0.186, 0.0)
    """

    gamma: float
    slater: SlaterPoint
    checked: tuple[Assumption, ...]

    name = "no_violation_mirror_prox"
    title = "No-violation mirror prox"
    promises = {REGRET: "O(T^2/3)", LONG_TERM: "≤ 0 at T"}
    needs = MirrorProx.needs | {Need.SLATER_POINT}

    @classmethod
    def for_problem(cls, problem: Problem, *, horizon: int, slater: SlaterPoint | None = None) -> NoViolationMirrorProx:
        """Make mirror prox on g + γ (Corollary 13 of Mahdavi, Jin and Yang).

        Where γ would be above ε it is ε, so that the tightened polyhedron is not empty, and `assumptions` reports it.

        Parameters
        ----------
        slater : SlaterPoint, optional
            With its ε in rows of length 1. Unless given, one is searched for.
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
        tightened = Affine(polyhedron.matrix, polyhedron.limit - gamma)
        return cls(problem.enclosing_set, tightened, mirror_prox_steps(eta, eta), gamma, point, checked)

    @property
    def margin(self) -> float:
        return self.gamma

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        return super().assumptions + self.checked

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return Corollary 13, corrected: Theorem 12 on g + γ, against a comparator moved by γ/ε to the Slater point.

        Regret: 𝓡 + (γ/ε) F T. The other bound is 0 where the margin makes up for all that Theorem 12 allows.
        """
        c, T = problem.constants, horizons_of(rounds, self.batch_shape)
        regret, root = self.bounds_in_unit_rows(c, rounds)
        moved = self.gamma / self.slater.epsilon * c.loss_range * T
        left = np.maximum(root - self.gamma * T, 0.0)
        return {REGRET: regret + moved, LONG_TERM: left * c.constraint_gradient_bound}
