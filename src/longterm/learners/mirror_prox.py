"""Mirror prox with long-term constraints (Mahdavi, Jin, Yang, JMLR 13, 2012, Section 4): polyhedra A x ≤ b, ‖a_j‖ = 1.

Each round has two steps from the same anchor (z_t, μ_t). The first looks ahead through the constraints alone, so it
needs no f_t; the second takes the gradients found there:

    x_t     = Π_B( z_t − η Aᵀμ_t )                          λ_t     = [ μ_t + η ( A z_t − b − δη μ_t ) ]₊      play x_t
    z_{t+1} = Π_B( z_t − η ( ∇f_t(x_t) + Aᵀλ_t ) )          μ_{t+1} = [ μ_t + η ( A x_t − b − δη λ_t ) ]₊

z_1 = centre of B, μ_1 = 0. Steps of Theorem 12: η = T^{−1/3}, δ = T^{−2/3}. Rows of any length are brought to length 1,
which changes g_j to g_j/‖a_j‖ for the learner; the trace keeps the problem's own g_j.
Needs: the horizon T; affine constraints that never change, because they are used before the round they are used for.
Assumes: 2η²(σ_max(A)² + δ²η²) ≤ 1, reported by `assumptions`; `longterm.bounds.mirror_prox` has the proof. On 8 × 8
doubly-stochastic matrices σ_max² = 5 and T ≥ 32 will do, where the article asks for T ≥ 164 (m + 1)³ = 1.5·10⁸.
Guarantees: `longterm.bounds.mahdavi_theorem_12`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, column, namespace
from longterm.constraints import Affine
from longterm.errors import InputError
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need, require_needs
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.assumptions import Assumption
from longterm.theory.schedules import ConstantSchedule


class MirrorProxState(NamedTuple):
    """(t, x_t, λ_t) to be played, and the anchor (z_t, μ_t) they came from."""

    round: Array
    x: Array
    multiplier: Array
    anchor: Array
    anchor_multiplier: Array


@dataclass(frozen=True, eq=False)
class MirrorProx(Learner[MirrorProxState]):
    """Mirror prox on an enclosing set and a polyhedron, with constant steps θ = δη, η, μ = η.

    >>> from longterm import run
    >>> from longterm.learners import MirrorProx
    >>> from longterm.problems import doubly_stochastic
    >>> from longterm.streams import RandomPermutations
    >>> problem = doubly_stochastic(3)
    >>> learner = MirrorProx.for_problem(problem, horizon=1000)
    >>> print(*learner.assumptions)
    2η²(σ_max² + δ²η²) ≤ 1 holds (0.1 against 1)
    >>> trace = run(problem, learner, RandomPermutations(3), 1000)
    >>> round(float(trace.long_term_violation[-1]), 3)
    2.112
    """

    enclosing_set: Set
    polyhedron: Affine
    schedule: ConstantSchedule

    needs: ClassVar[frozenset[Need]] = frozenset({Need.HORIZON, Need.FIXED_CONSTRAINT, Need.AFFINE_CONSTRAINT})

    @classmethod
    def tuned(cls, problem: Problem, horizon: int) -> MirrorProx:
        """Theorem 12: η = T^{−1/3}, δ = T^{−2/3}."""
        T = validate.dimension("horizon", horizon)
        return cls(problem.enclosing_set, unit_rows(problem), steps(T ** (-1 / 3), T ** (-2 / 3)))

    def check(self, problem: Problem) -> None:
        super().check(problem)
        ours, theirs = self.polyhedron, unit_rows(problem)
        same_rows = ours.matrix.shape == theirs.matrix.shape and np.allclose(ours.matrix, theirs.matrix)
        if not same_rows or np.any(ours.offset > theirs.offset + 1e-9):
            what = f"was made for another polyhedron than that of {problem.name!r}"
            raise InputError(
                "learner", what, f"Build it from the problem: {type(self).__name__}.tuned(problem, horizon)"
            )

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        theta, eta = np.asarray(self.schedule.theta), np.asarray(self.schedule.eta)
        largest = np.linalg.norm(self.polyhedron.matrix, 2)
        value = 2 * eta**2 * (largest**2 + theta**2)
        return (Assumption.worst("2η²(σ_max² + δ²η²) ≤ 1", value, 1.0, "Take a smaller η: a longer horizon"),)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> MirrorProxState:
        anchor = self.at_the_centre(batch_shape, xp, dtype)
        multiplier = xp.zeros((*anchor.shape[:-1], self.polyhedron.count), dtype=anchor.dtype)
        return self._look_ahead(xp.asarray(1, dtype=xp.int64), anchor, multiplier)

    def ask(self, state: MirrorProxState) -> Array:
        return state.x

    def update(self, state: MirrorProxState, feedback: Feedback) -> MirrorProxState:
        at_x = (state.x, state.multiplier)
        anchor = self._step(state.round, state.anchor, self._descent(*at_x) + feedback.loss_gradient)
        multiplier = self._dual_step(state.round, state.anchor_multiplier, *at_x)
        return self._look_ahead(state.round + 1, anchor, multiplier)

    def report(self, state: MirrorProxState) -> dict[str, Array]:
        theta, eta, mu = self.schedule.at(state.round, state.x)
        return {"multiplier": state.multiplier, "theta": theta, "eta": eta, "mu": mu}

    def _look_ahead(self, t: Array, anchor: Array, multiplier: Array) -> MirrorProxState:
        """(z_t, μ_t) → (x_t, λ_t)."""
        x = self._step(t, anchor, self._descent(anchor, multiplier))
        return MirrorProxState(t, x, self._dual_step(t, multiplier, anchor, multiplier), anchor, multiplier)

    def _descent(self, x: Array, multiplier: Array) -> Array:
        return self.polyhedron.pullback(x, multiplier)

    def _step(self, t: Array, anchor: Array, descent: Array) -> Array:
        eta = self.schedule.at(t, anchor).eta
        return self.enclosing_set.project(anchor - column(eta) * descent)

    def _dual_step(self, t: Array, start: Array, x: Array, multiplier: Array) -> Array:
        theta, _, mu = self.schedule.at(t, x)
        ascent = self.polyhedron.values(x) - column(theta) * multiplier
        return namespace(x).maximum(start + column(mu) * ascent, 0.0)


def steps(eta: float, delta: float) -> ConstantSchedule:
    """θ = δη, η and μ = η."""
    return ConstantSchedule(theta=delta * eta, eta=eta, mu=eta)


def unit_rows(problem: Problem) -> Affine:
    """The problem's constraints as A x ≤ b with ‖a_j‖ = 1."""
    require_needs("MirrorProx", MirrorProx.needs, problem)
    affine = problem.constraint.as_affine()
    assert affine is not None  # require_needs has seen to it
    lengths = np.linalg.norm(affine.matrix, axis=1)
    if np.any(lengths == 0):
        row = int(np.argmin(lengths))
        raise InputError("problem", f"row {row} of A is zero and has no direction", "Leave that constraint out")
    return Affine(affine.matrix / lengths[:, None], affine.offset / lengths)
