"""Which fixed decisions a learner may be compared with where constraints change from round to round.

    EveryRound       g_s(x) ≤ 0 in each of the rounds 1 … t. What the theorems for an adversary's g_t allow: A-OGD's
                     among them, whose proof uses g_s(x*) ≤ 0 and nothing else.
    OnAverage        Σ_{s≤t} g_s(x) ≤ 0. A larger set: the best of it is out of reach in general, where an adversary
                     chooses (Mannor, Tsitsiklis and Yu 2009 show that no learner has small regret and violation then).
    InExpectation    E g(x) ≤ 0 for rounds drawn independently, the mean being known: what the theorems for stochastic
                     constraints allow (Yu, Neely and Wei 2017).

For fixed constraints the first two are the same: {g ≤ 0}. All are stated for affine g_t, for which each of these sets
is a polyhedron. A constraint of your own that is affine in every round says so by `affine_rounds.register`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.constraints import Affine, Constraint, Scaled, Stack, VaryingAffine
from longterm.errors import InputError


class AffineRounds(NamedTuple):
    """A_s x ≤ b_s for rounds s: shapes (rounds, m, d) and (rounds, m)."""

    matrix: FloatArray
    offset: FloatArray


@singledispatch
def affine_rounds(constraint: Constraint, rounds: int, *parameters: NDArray[Any]) -> AffineRounds:
    """The constraints of `rounds` rounds as A_s x ≤ b_s, from their parameters, rounds on the leading axis."""
    affine = None if constraint.parameters else constraint.as_affine()
    if affine is None:
        what = f"a {type(constraint).__name__} is not known to be affine in every round"
        raise InputError("constraint", what, "Use Affine or VaryingAffine, or register it: @affine_rounds.register")
    matrix = np.broadcast_to(affine.matrix, (rounds, *affine.matrix.shape))
    return AffineRounds(matrix, np.broadcast_to(affine.offset, (rounds, *affine.offset.shape)))


@affine_rounds.register
def _(constraint: VaryingAffine, rounds: int, matrix: NDArray[Any], offset: NDArray[Any]) -> AffineRounds:
    return AffineRounds(np.asarray(matrix[:rounds], np.float64), np.asarray(offset[:rounds], np.float64))


@affine_rounds.register
def _(constraint: Scaled, rounds: int, *parameters: NDArray[Any]) -> AffineRounds:
    plain = affine_rounds(constraint.constraint, rounds, *parameters)
    return AffineRounds(constraint.factor * plain.matrix, constraint.factor * plain.offset)


@affine_rounds.register
def _(constraint: Stack, rounds: int, *parameters: NDArray[Any]) -> AffineRounds:
    parts, used = [], 0
    for part in constraint.parts:
        own = parameters[used : used + len(part.parameters)]
        parts.append(affine_rounds(part, rounds, *own))
        used += len(own)
    return AffineRounds(*(np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True)))


class Benchmark(ABC):
    """The set of decisions to compare with, as a polyhedron."""

    words: str
    """What a decision of the set is, for messages."""

    @abstractmethod
    def after(self, rounds: AffineRounds) -> Affine:
        """The set for these rounds."""


@dataclass(frozen=True)
class EveryRound(Benchmark):
    """g_s(x) ≤ 0 for every s: of rows that differ in b alone, the smallest b decides.

    >>> import numpy as np
    >>> from longterm.hindsight import EveryRound, OnAverage
    >>> from longterm.hindsight.benchmarks import AffineRounds
    >>> rounds = AffineRounds(np.array([[[1.0, 0.0]], [[0.0, 1.0]], [[1.0, 0.0]]]), np.array([[3.0], [2.0], [1.0]]))
    >>> every = EveryRound().after(rounds)
    >>> every.matrix, every.offset
    (array([[0., 1.],
            [1., 0.]]), array([2., 1.]))
    >>> average = OnAverage().after(rounds)
    >>> average.matrix.round(3), average.offset
    (array([[0.667, 0.333]]), array([2.]))
    """

    words = "feasible in every round"

    def after(self, rounds: AffineRounds) -> Affine:
        rows = rounds.matrix.reshape(-1, rounds.matrix.shape[-1])
        different, which = np.unique(rows, axis=0, return_inverse=True)
        least = np.full(len(different), np.inf)
        np.minimum.at(least, which.ravel(), rounds.offset.ravel())
        return Affine(different, least)


@dataclass(frozen=True)
class OnAverage(Benchmark):
    """Σ_s g_{s,j}(x) ≤ 0 for every j, divided by the number of rounds."""

    words = "feasible on average"

    def after(self, rounds: AffineRounds) -> Affine:
        return Affine(rounds.matrix.mean(axis=0), rounds.offset.mean(axis=0))


@dataclass(frozen=True, eq=False)
class InExpectation(Benchmark):
    """E g_j(x) ≤ 0 for every j, E g being known and affine."""

    mean: Affine

    words = "feasible in expectation"

    def after(self, rounds: AffineRounds) -> Affine:
        return self.mean
