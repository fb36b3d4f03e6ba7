"""Comparator sets where constraints change: the fixed decisions that a learner is compared with.

    EveryRound       g_s(x) ≤ 0 in each of the rounds 1 … t. The theorems for adversarial g_t use this set. A-OGD's
                     proof uses g_s(x*) ≤ 0 and nothing else.
    OnAverage        Σ_{s≤t} g_s(x) ≤ 0, a larger set. Against an adversary no learner has both small regret and small
                     violation with respect to it (Mannor, Tsitsiklis and Yu 2009).
    InExpectation    E g(x) ≤ 0 for independent rounds with a known mean. The theorems for stochastic constraints use
                     this set (Yu, Neely and Wei 2017).

For a fixed constraint the first two sets are {g ≤ 0}. If g_t is affine (`Constraint.affine_rounds`), each set is a
polyhedron. Otherwise it is {h ≤ 0} for one convex h, the maximum or the mean of the g_s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from longterm._base.arrays import Array, FloatArray, namespace
from longterm.problems.constraints import Affine, Constraint
from longterm.problems.sets import Set


class Benchmark(ABC):
    """A set of decisions to compare with: {h ≤ 0} for an h that depends on the rounds so far."""

    description: str
    """An adjective phrase for a decision of the set, for messages."""

    @abstractmethod
    def after(self, constraint: Constraint, rounds: int, *parameters: Array) -> Constraint:
        """Return the set after the given rounds.

        Parameters
        ----------
        constraint : Constraint
            The problem's constraint g_t.
        rounds : int
            The number of rounds.
        *parameters : Array
            The parameters of g_1 … g_t, with rounds on the leading axis.
        """


class _FromRounds(Benchmark):
    """A set defined by g_1 … g_t."""

    uses_maximum: bool
    """True if h is the maximum of the g_s, False if it is their mean."""

    def after(self, constraint: Constraint, rounds: int, *parameters: Array) -> Constraint:
        if not constraint.parameters:
            affine = constraint.as_affine()
            return constraint if affine is None else affine
        pair = constraint.affine_rounds(rounds, *parameters)
        if pair is not None:
            return self.of_affine(*pair)
        return _OverRounds(constraint, parameters, uses_maximum=self.uses_maximum)

    @abstractmethod
    def of_affine(self, matrix: FloatArray, limit: FloatArray) -> Affine:
        """Return the set for A_s x ≤ b_s, shapes (rounds, m, d) and (rounds, m)."""


@dataclass(frozen=True)
class EveryRound(_FromRounds):
    """Compare with the best decision that satisfies the constraints of every single round.

    Rows of affine constraints that differ in their limit alone are merged to the smallest limit.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.benchmarks import EveryRound, OnAverage
    >>> rounds = np.array([[[1.0, 0.0]], [[0.0, 1.0]], [[1.0, 0.0]]]), np.array([[3.0], [2.0], [1.0]])
    >>> every = EveryRound().of_affine(*rounds)
    >>> every.matrix, every.limit
    (array([[0., 1.],
            [1., 0.]]), array([2., 1.]))
    >>> average = OnAverage().of_affine(*rounds)
    >>> average.matrix.round(3), average.limit
    (array([[0.667, 0.333]]), array([2.]))
    """

    description = "feasible in every round"
    uses_maximum = True

    def of_affine(self, matrix: FloatArray, limit: FloatArray) -> Affine:
        different, which = np.unique(matrix.reshape(-1, matrix.shape[-1]), axis=0, return_inverse=True)
        least = np.full(len(different), np.inf)
        np.minimum.at(least, which.ravel(), limit.ravel())
        return Affine(different, least)


@dataclass(frozen=True)
class OnAverage(_FromRounds):
    """Compare with the best decision that satisfies the constraints on average over the rounds.

    Each constraint is the sum over the rounds, divided by their number.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems import OnAverage
    >>> rounds = np.array([[[1.0, 0.0]], [[3.0, 0.0]]]), np.array([[2.0], [0.0]])
    >>> average = OnAverage().of_affine(*rounds)
    >>> average.matrix, average.limit  # 2 x_1 ≤ 1
    (array([[2., 0.]]), array([1.]))
    """

    description = "feasible on average"
    uses_maximum = False

    def of_affine(self, matrix: FloatArray, limit: FloatArray) -> Affine:
        return Affine(matrix.mean(axis=0), limit.mean(axis=0))


@dataclass(frozen=True, eq=False)
class InExpectation(Benchmark):
    """Compare with the best decision that satisfies the constraints in expectation.

    Parameters
    ----------
    mean : Constraint
        The expected constraint.

    Examples
    --------
    >>> from longterm.problems import InExpectation
    >>> from longterm.problems.constraints import Affine
    >>> InExpectation(Affine([[1.0, 0.0]], [0.5])).mean.limit
    array([0.5])
    """

    mean: Constraint

    description = "feasible in expectation"

    def after(self, constraint: Constraint, rounds: int, *parameters: Array) -> Constraint:
        affine = self.mean.as_affine()
        return self.mean if affine is None else affine


class _OverRounds(Constraint):
    """The maximum or the mean of g_{s,j} over the rounds s, as a fixed constraint."""

    def __init__(self, constraint: Constraint, parameters: tuple[Array, ...], *, uses_maximum: bool) -> None:
        self.dimension, self.count = constraint.dimension, constraint.count
        self._constraint, self._parameters, self._uses_maximum = constraint, parameters, uses_maximum
        self._rounds = len(parameters[0])

    def values(self, x: Array, *parameters: Array) -> Array:
        xp, values = namespace(x), self._values_of_rounds(x)
        return xp.max(values, axis=-2) if self._uses_maximum else xp.mean(values, axis=-2)

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        xp = namespace(x)
        share = xp.ones((self._rounds, self.count), dtype=x.dtype) / self._rounds
        if self._uses_maximum:
            first = xp.argmax(self._values_of_rounds(x), axis=-2, keepdims=True)
            share = xp.astype(xp.arange(self._rounds)[:, None] == first, x.dtype)
        points = xp.broadcast_to(x[..., None, :], (*x.shape[:-1], self._rounds, self.dimension))
        return xp.sum(self._constraint.pullback(points, share * weights[..., None, :], *self._parameters), axis=-2)

    def _values_of_rounds(self, x: Array) -> Array:
        points = namespace(x).broadcast_to(x[..., None, :], (*x.shape[:-1], self._rounds, self.dimension))
        return self._constraint.values(points, *self._parameters)

    def gradient_bound(self, over: Set) -> float:
        return self._constraint.gradient_bound(over)

    def value_bound(self, over: Set) -> float:
        return self._constraint.value_bound(over)
