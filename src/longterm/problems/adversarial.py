"""An adversary's problems, and which fixed decisions a learner may be compared with where constraints change.

    EveryRound       g_s(x) ≤ 0 in each of the rounds 1 … t. What the theorems for an adversary's g_t allow: A-OGD's
                     among them, whose proof uses g_s(x*) ≤ 0 and nothing else.
    OnAverage        Σ_{s≤t} g_s(x) ≤ 0. A larger set: the best of it is out of reach in general, where an adversary
                     chooses (Mannor, Tsitsiklis and Yu 2009 show that no learner has small regret and violation then).
    InExpectation    E g(x) ≤ 0 for rounds drawn independently, the mean being known: what the theorems for stochastic
                     constraints allow (Yu, Neely and Wei 2017).

For fixed constraints the first two are the same: {g ≤ 0}. Where g_t is affine (`Constraint.affine_rounds`) each of
these sets is a polyhedron; elsewhere it is {h ≤ 0} for one fixed convex h, the largest g_s or their mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, namespace
from longterm.constraints import Affine, Constraint, ElasticNetBudget, VaryingAffine
from longterm.losses import Linear
from longterm.problems.problem import Problem
from longterm.sets import Box, Set


def late_reversal(radius: float = 1.0, gradient_bound: float = 1.0, epsilon: float = 1e-3) -> Problem:
    """B = [−R, R], linear losses, and g(x) = ε (|x| − R), which is never positive on B: λ stays 0.

    With the stream `LateReversal` the learner is pushed to one end, left there until its steps have
    become small, and then needs 2 T^β rounds to walk to the other. `docs/theory.md` tells the story.

    Parameters
    ----------
    radius : float
        R.
    gradient_bound : float
        G.
    epsilon : float
        ε.

    Returns
    -------
    Problem
        With exact constants.
    """
    radius = validate.positive_scalar("radius", radius)
    epsilon = validate.positive_scalar("epsilon", epsilon)
    constraint = ElasticNetBudget(1, budget=epsilon * radius, l1=epsilon, l2=0.0)
    return Problem(Box.cube(1, -radius, radius), Linear(1, gradient_bound), constraint, name="late reversal")


def random_half_spaces(dimension: int = 3, count: int = 6, *, instance: int = 0) -> Affine:
    """Half-spaces ⟨a_k, x⟩ ≤ b_k with unit a_k that have a direction in common, b_k uniform in [0.1, 0.5].

    Parameters
    ----------
    dimension : int
        d.
    count : int
        How many.
    instance : int
        The seed.

    Returns
    -------
    Affine
        The half-spaces.

    Examples
    --------
    >>> from longterm.problems import random_half_spaces
    >>> random_half_spaces(2, 3).limit.round(2)
    array([0.32, 0.47, 0.43])
    """
    rng = np.random.default_rng(validate.seed("instance", instance))
    d, k = validate.dimension("dimension", dimension), validate.dimension("count", count)
    rows = rng.standard_normal((k, d)) + rng.standard_normal(d)
    return Affine(rows / np.linalg.norm(rows, axis=1, keepdims=True), rng.uniform(0.1, 0.5, k))


def switching_constraints(pool: Affine, cost_norm: float = 1.0) -> Problem:
    """f_t(x) = ⟨c_t, x⟩ on [−1, 1]^d; in round t one constraint ⟨a, x⟩ ≤ b of the `pool` holds, and no other.

    With `longterm.streams.SwitchingConstraints` the adversary keeps a constraint for as long as all rounds before it,
    pulls across it, and then takes another. A multiplier learnt for one is wrong for the next, and steps have become
    small. The theory for such g_t compares with a point that is feasible in every round (`EveryRound`: the
    intersection of the constraints seen so far); one that is feasible on average (`OnAverage`) does better, and is out
    of reach in general (Mannor, Tsitsiklis and Yu 2009). The problem is ours.

    R = √d, Δ = 2R, F = Δ‖c‖, and G and D are those of the pool: D = max_k (‖a_k‖₁ + b_k) where b ≥ 0.

    Parameters
    ----------
    pool : Affine
        The half-spaces.
    cost_norm : float
        ‖c_t‖.

    Returns
    -------
    Problem
        With exact constants.

    Examples
    --------
    >>> from longterm.constraints import Affine
    >>> from longterm.problems import switching_constraints
    >>> c = switching_constraints(Affine([[0.6, 0.8], [0.0, 1.0]], [0.2, 0.3])).constants
    >>> round(c.constraint_bound, 12), c.constraint_gradient_bound, round(c.loss_range, 4)
    (1.6, 1.0, 2.8284)
    """
    d, B = pool.dimension, Box.cube(pool.dimension, -1.0, 1.0)
    constraint = VaryingAffine(d, 1, pool.gradient_bound(B), float(np.abs(pool.limit).max()))
    exact = {"constraint_bound": pool.value_bound(B)}
    return Problem(B, Linear(d, cost_norm), constraint, name=f"{pool.count} constraints that switch", declared=exact)


class Benchmark(ABC):
    """The set of decisions to compare with: {h ≤ 0} for a fixed h that the rounds played decide."""

    words: str
    """What a decision of the set is, for messages."""

    @abstractmethod
    def after(self, constraint: Constraint, rounds: int, *parameters: Array) -> Constraint:
        """The set after these rounds.

        Parameters
        ----------
        constraint : Constraint
            The problem's, g_t.
        rounds : int
            How many rounds there were.
        *parameters : Array
            Those of g_1 … g_t, rounds on the leading axis.

        Returns
        -------
        Constraint
            A fixed one, `Affine` where g_t is affine in every round.
        """


class _OfRoundsPlayed(Benchmark):
    """A set that g_1 … g_t themselves decide."""

    worst: bool
    """Whether the largest g_s counts, or their mean."""

    def after(self, constraint: Constraint, rounds: int, *parameters: Array) -> Constraint:
        if not constraint.parameters:
            affine = constraint.as_affine()
            return constraint if affine is None else affine
        pair = constraint.affine_rounds(rounds, *parameters)
        if pair is not None:
            return self.of_affine(*pair)
        return _OverRounds(constraint, parameters, worst=self.worst)

    @abstractmethod
    def of_affine(self, matrix: FloatArray, offset: FloatArray) -> Affine:
        """The set for A_s x ≤ b_s, shapes (rounds, m, d) and (rounds, m)."""


@dataclass(frozen=True)
class EveryRound(_OfRoundsPlayed):
    """g_s(x) ≤ 0 for every s: of affine rows that differ in b alone, the smallest b decides.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.hindsight import EveryRound, OnAverage
    >>> rounds = np.array([[[1.0, 0.0]], [[0.0, 1.0]], [[1.0, 0.0]]]), np.array([[3.0], [2.0], [1.0]])
    >>> every = EveryRound().of_affine(*rounds)
    >>> every.matrix, every.limit
    (array([[0., 1.],
            [1., 0.]]), array([2., 1.]))
    >>> average = OnAverage().of_affine(*rounds)
    >>> average.matrix.round(3), average.limit
    (array([[0.667, 0.333]]), array([2.]))
    """

    words = "feasible in every round"
    worst = True

    def of_affine(self, matrix: FloatArray, offset: FloatArray) -> Affine:
        different, which = np.unique(matrix.reshape(-1, matrix.shape[-1]), axis=0, return_inverse=True)
        least = np.full(len(different), np.inf)
        np.minimum.at(least, which.ravel(), offset.ravel())
        return Affine(different, least)


@dataclass(frozen=True)
class OnAverage(_OfRoundsPlayed):
    """Σ_s g_{s,j}(x) ≤ 0 for every j, divided by the number of rounds."""

    words = "feasible on average"
    worst = False

    def of_affine(self, matrix: FloatArray, offset: FloatArray) -> Affine:
        return Affine(matrix.mean(axis=0), offset.mean(axis=0))


@dataclass(frozen=True, eq=False)
class InExpectation(Benchmark):
    """E g_j(x) ≤ 0 for every j, E g being known.

    Parameters
    ----------
    mean : Constraint
        E g.
    """

    mean: Constraint

    words = "feasible in expectation"

    def after(self, constraint: Constraint, rounds: int, *parameters: Array) -> Constraint:
        affine = self.mean.as_affine()
        return self.mean if affine is None else affine


class _OverRounds(Constraint):
    """h_j = max_s g_{s,j} or the mean of them: fixed once the rounds have been played."""

    def __init__(self, constraint: Constraint, parameters: tuple[Array, ...], *, worst: bool) -> None:
        self.dimension, self.count = constraint.dimension, constraint.count
        self._constraint, self._parameters, self._worst = constraint, parameters, worst
        self._rounds = len(parameters[0])

    def values(self, x: Array, *parameters: Array) -> Array:
        every = self._every(x)
        xp = namespace(x)
        return xp.max(every, axis=-2) if self._worst else xp.mean(every, axis=-2)

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        xp = namespace(x)
        share = xp.ones((self._rounds, self.count), dtype=x.dtype) / self._rounds
        if self._worst:
            first = xp.argmax(self._every(x), axis=-2, keepdims=True)
            share = xp.astype(xp.arange(self._rounds)[:, None] == first, x.dtype)
        points = xp.broadcast_to(x[..., None, :], (*x.shape[:-1], self._rounds, self.dimension))
        return xp.sum(self._constraint.pullback(points, share * weights[..., None, :], *self._parameters), axis=-2)

    def _every(self, x: Array) -> Array:
        points = namespace(x).broadcast_to(x[..., None, :], (*x.shape[:-1], self._rounds, self.dimension))
        return self._constraint.values(points, *self._parameters)

    def gradient_bound(self, over: Set) -> float:
        return self._constraint.gradient_bound(over)

    def value_bound(self, over: Set) -> float:
        return self._constraint.value_bound(over)
