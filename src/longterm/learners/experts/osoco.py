"""OSOCO (Hutchinson, Chen, Alizadeh, AISTATS 2025): unknown linear constraints, seen with noise, and never violated.

A x ≤ b must hold in every round. b is known, with b > 0 and 0 in B, and A is not: after a decision the learner sees
y_t = A x_t + noise, independent and ρ-subgaussian in each entry. Rows of A are at most S long. With L = max_B ‖x‖,
V = L² I + Σ x_s x_sᵀ, Â = (Σ y_s x_sᵀ) V⁻¹ and β = ρ √( ln det(V/L²) + 2 ln(n/δ) ) + L S, the true A lies in
{‖a_i − â_i‖_V ≤ β for all i} with probability 1 − δ. Phases keep Â, V and β fixed. In a phase,

    safe set    {x : Â x + β ‖x‖_{V⁻¹} 1 ≤ b − κ}                               κ ≥ 0, the margin
    expert m    x(m) ← Π( x(m) − η ∇f_t )  onto  Y_m = {x ∈ B : Â x − ξ√d β (V^{−½})_k x 1 ≤ b − κ}    (k, ξ = ±1)
    decision    x_t = γ x(m),  m drawn from p,  γ ≤ 1 the largest that makes it safe

for η = Δ/(G_f √s) in round s of the phase, and AdaHedge's p. The 2d sets Y_m cover every point that may be feasible.
The phase ends when det V has doubled. Then x(m) = 0 and p is uniform again.

Two changes to the article. Its weights move by factors exp(−ζ_t f_t) with ζ_t of order 1/√t, which have linear regret
(`docs/proofs/after_the_paper.md` has four lines on why), so p is AdaHedge's. β has the determinant in it, which is
smaller and holds for d = 1 too.
Needs: 0 in B, b > 0, values of A x_t − b, with or without noise, and S. No horizon.
Guarantees: with probability 1 − δ A x_t ≤ b in every round; `theorem` for linear losses, with probability 1 − 2δ, if
f_t does not depend on what is drawn in round t. Proof: `docs/proofs/after_the_paper.md`.
Not promised: a regret for losses that are not linear, because the gradient is seen at the drawn point only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, namespace, through_numpy
from longterm.errors import InputError
from longterm.learners.cuts.meta import AdaHedge
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.feedback_check import OnBrokenBound
from longterm.learners.interface.learner import Learner
from longterm.learners.saddle_point.multiplier_rules import OnePerConstraint
from longterm.problems import Problem
from longterm.problems.losses import Linear
from longterm.problems.projections.least_distance import NEVER_BINDS, penalised_point
from longterm.problems.sets import Ball, Set
from longterm.theory.bounds import HARD, REGRET, BoundValues, NoTheoremError, Rounds, horizons_of


class OSOCOState(NamedTuple):
    """The state (t, x_t), and everything else in one row of numbers: see `_Phase`."""

    round: Array
    x: Array
    memory: Array


@dataclass
class _Phase:
    """The memory of one learner: what was observed, and the estimates and experts of the phase."""

    gram: FloatArray
    """V, shape (d, d)."""
    sums: FloatArray
    """Σ y_s x_sᵀ, shape (n, d)."""
    estimate: FloatArray
    """Â of the phase, shape (n, d)."""
    root: FloatArray
    """V^{−½} of the phase, shape (d, d)."""
    numbers: FloatArray
    """β and ln det V of the phase, and the rounds since it began."""
    experts: FloatArray
    """x(m), shape (2d, d)."""
    meta: FloatArray
    """The memory of AdaHedge, shape (4d + 2,)."""

    @staticmethod
    def shapes(n: int, d: int) -> list[tuple[int, ...]]:
        """Return the shapes of the fields."""
        return [(d, d), (n, d), (n, d), (d, d), (3,), (2 * d, d), (4 * d + 2,)]

    @classmethod
    def unpack(cls, row: FloatArray, n: int, d: int) -> _Phase:
        """Return the fields of a row."""
        shapes = cls.shapes(n, d)
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        return cls(*(part.reshape(shape).copy() for part, shape in zip(np.split(row, ends), shapes, strict=True)))

    def pack(self) -> FloatArray:
        """Return the row."""
        return np.concatenate([np.ravel(part) for part in vars(self).values()])


@dataclass(frozen=True, eq=False)
class OSOCO(Learner[OSOCOState]):
    """Stay within linear limits that are unknown and only seen with noise.

    Optimistically safe online convex optimisation: decisions satisfy all limits that the values so far allow for.

    Parameters
    ----------
    enclosing_set : Set
        The ball or polyhedron that every decision stays in (B in the formulas). It contains 0.
    limit : sequence of float
        The right-hand sides of A x ≤ b, one positive number for each row of A (b).
    row_norm : float
        The largest norm of a row of A (S).
    gradient_bound : float
        The largest norm of a loss gradient (G_f).
    noise : float
        The size of the noise: every entry is ρ-subgaussian. 0 for exact values.
    delta : float
        The probability that some round violates a limit (δ).
    margin : float
        The distance that decisions keep from the limits (κ), at least 0 and below every b_i.
    seed : int
        The seed of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import constraints, losses, sets, streams
    >>> problem = lt.Problem(sets.Ball(2), losses.Linear(2), constraints.Affine([[1.0, 0.0]], [0.5]))
    >>> learner = lt.learners.OSOCO.for_problem(problem)
    >>> trace = lt.run(problem, learner, streams.Replay([np.tile([-1.0, 0.0], (60, 1))]))
    >>> float(trace.hard_violation[-1]), bool(trace.cumulative_loss[-1] < -15)  # the best has −30
    (0.0, True)
    """

    enclosing_set: Set
    limit: tuple[float, ...]
    row_norm: float
    gradient_bound: float
    noise: float = 0.0
    delta: float = 0.01
    margin: float = 0.0
    seed: int = 0

    name = "osoco"
    title = "OSOCO"
    promises = {REGRET: "Õ(d^(3/2) √T), likely", HARD: "0, likely"}

    def __post_init__(self) -> None:
        limit = validate.vector("limit", np.asarray(self.limit, dtype=np.float64))
        validate.validate_fields(self, validate.positive_scalar, "row_norm", "gradient_bound")
        validate.validate_fields(self, validate.non_negative_scalar, "noise", "margin")
        validate.validate_fields(self, validate.open_unit_interval, "delta")
        B: Set = self.enclosing_set
        if not isinstance(B, Ball) and B.half_spaces() is None:
            raise InputError("enclosing_set", "is neither a ball nor a polyhedron", "Use a Ball, a Box or a Simplex")
        if not bool(B.contains(np.zeros(B.dimension))):
            raise InputError(
                "enclosing_set", "does not contain 0, the first decision", "Shift the decisions so that 0 is safe"
            )
        if limit.min() <= self.margin:
            what = f"has {limit.min():g}, which is not above the margin {self.margin:g}, so 0 may be unsafe"
            raise InputError("limit", what, "Use limits above 0 and a smaller margin")
        validate.set_frozen(self, limit=tuple(limit.tolist()), seed=validate.seed("seed", self.seed))

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        noise: float = 0.0,
        delta: float = 0.01,
        margin: float = 0.0,
        seed: int = 0,
        limit: ArrayLike | None = None,
    ) -> OSOCO:
        """Learn linear constraints from noisy values, and violate them in no round, with high probability.

        Parameters
        ----------
        noise : float
            ρ: every entry of the noise of A x_t − b is ρ-subgaussian (its standard deviation, if it is normal).
        delta : float
            δ, the probability that a round violates.
        margin : float
            κ of A x ≤ b − κ, which the decisions keep.
        seed : int
            The seed of the draws.
        limit : array_like, optional
            b. Default: the limit of a fixed affine constraint, of which the learner reads nothing else.
        """
        c, constraint = problem.constants, problem.constraint
        if limit is None:
            affine = None if constraint.parameters else constraint.as_affine()
            if affine is None:
                what = f"OSOCO needs fixed affine constraints A x ≤ b, and {problem.name!r} has others"
                raise InputError("learner", what, "Give limit= if only the noise changes from round to round")
            limit = affine.limit
        given = validate.vector("limit", limit, constraint.count)
        S, G = c.constraint_gradient_bound, validate.positive_scalar("loss_gradient_bound", c.loss_gradient_bound)
        return cls(problem.enclosing_set, tuple(given.tolist()), S, G, noise, delta, margin, seed)

    @property
    def loss_gradient_bound(self) -> float:
        return self.gradient_bound

    @property
    def _room(self) -> FloatArray:
        """Return b − κ."""
        return np.asarray(self.limit) - self.margin

    @property
    def _reach(self) -> float:
        """L, the largest ‖x‖ on B."""
        return self.enclosing_set.largest_norm(2)

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bounds with probability 1 − 2δ against every x* in B with A x* ≤ b, for linear losses.

        N = 1 + dΛ/ln 2 phases,  Λ = ln(1 + T/d),   β_T = ρ √(dΛ + 2 ln(n/δ)) + L S,   M = 2d,   b_0 = min b
        Σ f_t(x_t) − f_t(x*) ≤ G_f Δ ( (1.5 + √ln M) √(TN) + N ((4/3) ln M + 2) + √(½ T ln(1/δ)) )
        + 2 G_f L (1 + √d) (β_T/(b_0 − κ)) √(dTΛ) + G_f L κT/b_0,   and   A x_t ≤ b  in every round
        """
        if problem.constraint.parameters:
            raise NoTheoremError("the theorem is about A x ≤ b, and this problem measures noisy values")
        if not isinstance(problem.loss, Linear):
            raise NoTheoremError("the theorem is for linear losses, and these losses are not linear")
        T, d, L = horizons_of(rounds, ()), problem.dimension, self._reach
        logarithm, experts = np.log(1 + T / d), math.log(2 * d)
        phases = 1 + d * logarithm / math.log(2)
        chance, least = math.log(1 / self.delta), min(self.limit)
        beta = self.noise * np.sqrt(d * logarithm + 2 * math.log(len(self.limit) / self.delta)) + L * self.row_norm
        descent = (1.5 + math.sqrt(experts)) * np.sqrt(T * phases) + phases * (4 / 3 * experts + 2)
        drawn = problem.constants.diameter * (descent + np.sqrt(T * chance / 2))
        shrunk = 2 * L * (1 + math.sqrt(d)) * beta / (least - self.margin) * np.sqrt(d * T * logarithm)
        regret = self.gradient_bound * (drawn + shrunk + L * self.margin * T / least)
        return {REGRET: regret, HARD: np.zeros_like(regret)}

    @property
    def reads_pullback(self) -> bool:
        return True

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        if problem.constraint.count != len(self.limit):
            what = f"was made for {len(self.limit)} constraints, and {problem.name!r} has {problem.constraint.count}"
            raise InputError("learner", what, "Build the learner from the problem that it is to play")

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        pullback = feedback.pullback or (lambda weights: weights)  # only the values are read
        OnePerConstraint(len(self.limit)).require(feedback._replace(pullback=pullback), x, t)

    def initial_x(self, batch_shape: tuple[int, ...], xp: Any, dtype: Any) -> Array:
        return self.broadcast(np.zeros(self.enclosing_set.dimension), batch_shape, xp, dtype)

    def first_state(self, t: Array, x: Array) -> OSOCOState:
        n, d = len(self.limit), self.enclosing_set.dimension
        phase = _Phase(*(np.zeros(shape) for shape in _Phase.shapes(n, d)))
        phase.gram = self._reach**2 * np.eye(d)
        self._begin(phase)
        xp = namespace(x)
        row = xp.asarray(phase.pack(), dtype=x.dtype)
        return OSOCOState(t, x, xp.broadcast_to(row, (*x.shape[:-1], *row.shape)) + 0 * x[..., :1])

    def update(self, state: OSOCOState, feedback: Feedback) -> OSOCOState:
        xp, x, d = namespace(state.x), state.x, state.x.shape[-1]
        t = as_column(xp.astype(state.round, x.dtype) + 0 * x[..., 0])
        packed = xp.concat([t, x, feedback.loss_gradient, feedback.constraint_values, state.memory], axis=-1)

        def rows(numbers: NDArray[Any]) -> tuple[NDArray[Any], ...]:
            flat = numbers.astype(np.float64).reshape(-1, numbers.shape[-1])
            after = np.stack([self._one(row) for row in flat]).reshape(*numbers.shape[:-1], -1)
            return after[..., :d], after[..., d:]

        moved, memory = through_numpy(rows, packed, [x.shape, state.memory.shape])
        return OSOCOState(state.round + 1, moved, memory)

    def _one(self, row: FloatArray) -> FloatArray:
        """Return the next decision and memory of one learner."""
        n, d = len(self.limit), self.enclosing_set.dimension
        t, x, gradient, values, memory = np.split(row, np.cumsum([1, d, d, n]))
        phase = _Phase.unpack(memory, n, d)
        phase.gram += np.outer(x, x)
        phase.sums += np.outer(values + np.asarray(self.limit), x)
        if np.linalg.slogdet(phase.gram)[1] > phase.numbers[1] + math.log(2):
            self._begin(phase)
        else:
            self._descend(phase, gradient)
        weights = AdaHedge().weights(phase.meta)
        draw = np.random.default_rng([self.seed, int(t[0]) + 1]).random()
        chosen = min(int(np.searchsorted(np.cumsum(weights), draw * weights.sum(), side="right")), 2 * d - 1)
        return np.concatenate([self._safe(phase, phase.experts[chosen]), phase.pack()])

    def _begin(self, phase: _Phase) -> None:
        """Begin a phase: estimate A, and put all experts at 0."""
        values, vectors = np.linalg.eigh(phase.gram)
        phase.root = vectors / np.sqrt(values) @ vectors.T
        phase.estimate = phase.sums @ phase.root @ phase.root
        logarithm = float(np.log(values).sum())
        growth = logarithm - 2 * len(values) * math.log(self._reach)
        chance = 2 * math.log(len(self.limit) / self.delta)
        beta = self.noise * math.sqrt(max(growth, 0.0) + chance) + self._reach * self.row_norm
        phase.numbers = np.array([beta, logarithm, 0.0])
        phase.experts = np.zeros_like(phase.experts)
        phase.meta = AdaHedge().start(np.zeros(len(phase.experts)))

    def _descend(self, phase: _Phase, gradient: FloatArray) -> None:
        """Move every expert against the gradient, onto its own set, and weigh it by its loss."""
        d, rule = len(gradient), AdaHedge()
        losses = phase.experts @ gradient
        phase.meta = rule.update(phase.meta, losses - rule.weights(phase.meta) @ losses)
        phase.numbers[2] += 1
        step = self.enclosing_set.diameter / (self.gradient_bound * math.sqrt(phase.numbers[2]))
        for m in range(2 * d):
            widened = (1 if m < d else -1) * math.sqrt(d) * phase.numbers[0] * phase.root[m % d]
            moved = penalised_point(
                phase.estimate - widened,
                self._room,
                phase.experts[m] - step * gradient,
                NEVER_BINDS,
                self.enclosing_set,
            )
            phase.experts[m] = moved.point

    def _safe(self, phase: _Phase, x: FloatArray) -> FloatArray:
        """Return γx with the largest γ ≤ 1 that is safe."""
        used = phase.estimate @ x + phase.numbers[0] * float(np.linalg.norm(phase.root @ x))
        return x * float(np.min(self._room / np.maximum(used, self._room)))

    def report(self, state: OSOCOState) -> dict[str, Array]:
        n, d = len(self.limit), self.enclosing_set.dimension
        at = 2 * d * d + 2 * n * d
        return {"beta": state.memory[..., at]}
