"""Mirror prox with long-term constraints (Mahdavi, Jin, Yang, JMLR 13, 2012, Section 4): polyhedra A x ≤ b, ‖a_j‖ = 1.

Each round has two steps from the same anchor (z_t, μ_t). The first is an extrapolation through the constraints alone,
so it needs no f_t. The second takes the gradients found there:

    x_t     = Π_B( z_t − η Aᵀμ_t )                          λ_t     = [ μ_t + η ( A z_t − b − δη μ_t ) ]₊      play x_t
    z_{t+1} = Π_B( z_t − η ( ∇f_t(x_t) + Aᵀλ_t ) )          μ_{t+1} = [ μ_t + η ( A x_t − b − δη λ_t ) ]₊

z_1 = centre of B, μ_1 = 0. Steps of Theorem 12: η = T^{−1/3}, δ = T^{−2/3}. Rows of any length are scaled to length 1,
which changes g_j to g_j/‖a_j‖ for the learner. The trace records the problem's g_j.
Needs: the horizon T; affine constraints that never change, because they are used before the round.
Assumes: 2η²(σ_max(A)² + δ²η²) ≤ 1, reported by `assumptions`. The article asks for T ≥ 164 (m + 1)³, far more.
Guarantees: Theorem 12 of the article, proved again and corrected (`docs/proofs/derivations.md`).
Not promised: a small Σ max_j g_j(x_t), feasibility in a single round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, namespace
from longterm.errors import InputError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.horizons import ScheduledLearner
from longterm.learners.interface.needs import Need, require_needs
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.problems.constraints import Affine
from longterm.problems.sets import Set
from longterm.theory.assumptions import Assumption
from longterm.theory.bounds import LONG_TERM, REGRET, BoundValues, NoTheoremError, Rounds, horizons_of
from longterm.theory.paper import violation_bound
from longterm.theory.schedules import ConstantSchedule


class MirrorProxState(NamedTuple):
    """The state (t, x_t, λ_t) to be played, and the anchor (z_t, μ_t) of the extrapolation."""

    round: Array
    x: Array
    multiplier: Array
    anchor: Array
    anchor_multiplier: Array


@dataclass(frozen=True, eq=False)
class MirrorProx(ScheduledLearner[MirrorProxState]):
    """Keep each of several linear limits in the long run, for a known number of rounds.

    Mirror prox between the decision and one multiplier for each limit.

    Parameters
    ----------
    enclosing_set : Set
        The ball, box or other set that every decision stays in (B in the formulas).
    polyhedron : Affine
        The limits A x ≤ b, with rows of length 1.
    schedule : ConstantSchedule
        The constant step sizes η and μ of decision and multiplier, and the weight θ of the multiplier's penalty.

    Examples
    --------
    >>> import longterm as lt
    >>> learner = lt.learners.MirrorProx.for_problem(lt.problems.doubly_stochastic(3), horizon=1000)
    >>> print(*learner.assumptions)
    2η²(σ_max² + δ²η²) ≤ 1 holds (0.1 against 1)
    """

    enclosing_set: Set
    polyhedron: Affine
    schedule: ConstantSchedule

    name = "mirror_prox"
    title = "Mirror prox"
    promises = {REGRET: "O(T^2/3)", LONG_TERM: "O(T^2/3)"}
    needs = frozenset({Need.HORIZON, Need.FIXED_CONSTRAINT, Need.AFFINE_CONSTRAINT})

    @classmethod
    def for_problem(cls, problem: Problem, *, horizon: int) -> MirrorProx:
        """Make mirror prox of Mahdavi, Jin and Yang, for affine constraints and a known horizon."""
        T = validate.dimension("horizon", horizon)
        return cls(problem.enclosing_set, unit_rows(problem), mirror_prox_steps(T ** (-1 / 3), T ** (-2 / 3)))

    @property
    def margin(self) -> float:
        """The margin γ by which the polyhedron is smaller than that of the problem, in rows of length 1."""
        return 0.0

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        ours, theirs = self.polyhedron, unit_rows(problem)
        same_rows = ours.matrix.shape == theirs.matrix.shape and np.allclose(ours.matrix, theirs.matrix)
        if not same_rows or np.any(np.abs(theirs.limit - self.margin - ours.limit) > 1e-9):
            what = f"was made for another polyhedron than that of {problem.name!r}"
            remedy = f"Build it from the problem: {type(self).__name__}.for_problem(problem, horizon=…)"
            raise InputError("learner", what, remedy)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        theta, eta, _ = self.schedule.at(np.asarray(1), np.zeros(1))
        value = 2 * eta**2 * (np.linalg.norm(self.polyhedron.matrix, 2) ** 2 + theta**2)
        return (Assumption.worst("2η²(σ_max² + δ²η²) ≤ 1", value, 1.0, "Take a smaller η: a longer horizon"),)

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return Theorem 12, corrected, in every round of a run: r² T^{1/3}/2 + G_f² T^{2/3} for the regret at T.

        The bound on every Σ_t g_j(x_t) is for the g_j of the problem: rows of length 1 are scaled back by G_g.
        """
        regret, root = self.bounds_in_unit_rows(problem.constants, rounds)
        return {REGRET: regret, LONG_TERM: root * problem.constants.constraint_gradient_bound}

    def bounds_in_unit_rows(self, c: Constants, rounds: Rounds) -> tuple[FloatArray, FloatArray]:
        """Return 𝓡 and √(2 (θ T + 1/η)(𝓡 + F T)), for rows of length 1."""
        condition = self.assumptions[0]  # the proof needs this one alone
        if not condition.holds:
            raise NoTheoremError(str(condition), condition.remedy)
        if np.any(np.asarray(self.schedule.mu) != self.schedule.eta):
            raise NoTheoremError("Theorem 12 is proved for μ = η", "Give a schedule with mu equal to eta")
        T, theta, eta = horizons_of(rounds, self.batch_shape), self.schedule.theta, self.schedule.eta
        regret = c.radius**2 / (2 * eta) + eta * c.loss_gradient_bound**2 * T
        return regret, violation_bound(theta * T + 1 / eta, regret, c, T)

    def first_state(self, t: Array, x: Array) -> MirrorProxState:
        return self._extrapolate(t, x, namespace(x).zeros((*x.shape[:-1], self.polyhedron.count), dtype=x.dtype))

    def update(self, state: MirrorProxState, feedback: Feedback) -> MirrorProxState:
        descent = self.polyhedron.pullback(state.x, state.multiplier) + feedback.loss_gradient
        anchor = self._step(state.round, state.anchor, descent)
        multiplier = self._dual_step(state.round, state.anchor_multiplier, state.x, state.multiplier)
        return self._extrapolate(state.round + 1, anchor, multiplier)

    def _extrapolate(self, t: Array, anchor: Array, multiplier: Array) -> MirrorProxState:
        """Return the state of round t with (x_t, λ_t) from the anchor (z_t, μ_t)."""
        x = self._step(t, anchor, self.polyhedron.pullback(anchor, multiplier))
        return MirrorProxState(t, x, self._dual_step(t, multiplier, anchor, multiplier), anchor, multiplier)

    def _step(self, t: Array, anchor: Array, descent: Array) -> Array:
        eta = self.schedule.at(t, anchor).eta
        return self.enclosing_set.project(anchor - as_column(eta) * descent)

    def _dual_step(self, t: Array, start: Array, x: Array, multiplier: Array) -> Array:
        theta, _, mu = self.schedule.at(t, x)
        ascent = self.polyhedron.values(x) - as_column(theta) * multiplier
        return namespace(x).maximum(start + as_column(mu) * ascent, 0.0)


def mirror_prox_steps(eta: float, delta: float) -> ConstantSchedule:
    """Return θ = δη, η and μ = η."""
    return ConstantSchedule(theta=delta * eta, eta=eta, mu=eta)


def unit_rows(problem: Problem) -> Affine:
    """Return the problem's constraints as A x ≤ b with ‖a_j‖ = 1."""
    require_needs("MirrorProx", MirrorProx.needs, problem)
    affine = problem.constraint.as_affine()
    assert affine is not None  # by require_needs
    lengths = np.linalg.norm(affine.matrix, axis=1)
    if np.any(lengths == 0):
        row = int(np.argmin(lengths))
        raise InputError("problem", f"row {row} of A is zero and has no direction", "Leave that constraint out")
    return Affine(affine.matrix / lengths[:, None], affine.limit / lengths)
