"""Constraints on matrices, flattened: doubly-stochastic ones, the paper's, and positive semi-definite ones.

**Doubly stochastic**: X ≥ 0, X 1 = 1, Xᵀ 1 = 1 as the paper writes it, p² + 4p affine inequalities.

**Positive semi-definite**, or safely inside: λ_min(X) ≥ floor. g(X) = floor − λ_min(X) is convex, and −v vᵀ is a
subgradient at X for any unit eigenvector v of λ_min(X), because λ_min(Y) ≤ vᵀ Y v = λ_min(X) + ⟨v vᵀ, Y − X⟩. One
extreme eigenvector is all it needs; projecting needs them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from longterm import _validate as validate
from longterm._arrays import ROUNDING, Array, FloatArray, as_column, dot, like, namespace, rows_at, times_table
from longterm.constraints.base import Affine, Constraint, Linearised
from longterm.constraints.extreme_eigenvector import ExtremeEigenvector, full_decomposition
from longterm.errors import InputError
from longterm.projections import (
    Projection,
    project_onto_correlation,
    project_onto_doubly_stochastic,
    project_onto_psd_in_ball,
)
from longterm.projections.psd import as_symmetric
from longterm.sets import Ball, Box, RowStochastic, Set

LARGEST = 10_000
"""p beyond which a decision alone would have 800 MB."""
LARGEST_WITH_TABLE = 24
"""Up to this p, all gradients stand ready in a table (4 MB), and looking one up is the fastest way to it."""

FASTER_WITH_TABLE = 2**16
"""Products of a few vectors with the whole table: up to this many multiplications."""

SMALL_TABLE = 2**11
"""Numbers that lie in the fastest memory with all the rest of a round."""


@dataclass(frozen=True, eq=False)
class DoublyStochastic(Constraint):
    """The p × p doubly-stochastic matrices, flattened, in this order of constraints:

    −X_ij ≤ 0 (p² of them, row by row), row sums − 1 ≤ 0, 1 − row sums ≤ 0, then the same for the
    columns. The order matters where several are equally violated: the lowest index wins.

    An `Affine` with this matrix would be the same function; written out, it is faster, and nothing of
    size p⁴ has to be kept for large p.

    Parameters
    ----------
    size : int
        p.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.constraints import DoublyStochastic
    >>> g = DoublyStochastic(2)
    >>> g.values(np.array([1.0, 0.5, 0.25, 0.5]))[4:]
    array([ 0.5 , -0.25, -0.5 ,  0.25,  0.25,  0.  , -0.25, -0.  ])
    """

    size: int
    _gradients: FloatArray | None = field(init=False, repr=False)
    _sums: tuple[FloatArray, ...] = field(init=False, repr=False)
    _ones: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        p = validate.dimension("size", self.size)
        if p > LARGEST:
            raise InputError("size", f"{p} means {p * p} numbers a decision", f"Give at most {LARGEST}")
        validate.set_frozen(self, dimension=p * p, count=p * p + 4 * p)
        small = p <= LARGEST_WITH_TABLE
        table = validate.frozen(np.concatenate([-np.eye(p * p), *self._sum_gradients()])) if small else None
        # Of the p² entries a minus is all that is left; where the whole is small, it is one product all the same.
        part = None if table is None else table if table.size <= SMALL_TABLE else table[p * p :]
        validate.set_frozen(self, _gradients=table, _sums=_both_ways(part), _ones=validate.frozen(np.ones(p)))

    @cached_property  # not a field: those are what a stored learner is compared by
    def _equalities(self) -> tuple[FloatArray, ...]:
        """The gradients of the sums, each once, and transposed; for small p."""
        p, sums = self.size, self._gradients[self.dimension :]  # type: ignore[index]
        return _both_ways(np.concatenate([sums[:p], sums[2 * p : 3 * p]]))

    def _sum_gradients(self) -> Iterator[FloatArray]:
        """The gradients of the sums, (1, d) each, one by one: all of them together are 4p³ numbers."""
        p = self.size
        for sign, axis in ((1.0, 0), (-1.0, 0), (1.0, 1), (-1.0, 1)):
            for k in range(p):
                matrix = np.zeros((p, p))
                matrix[(k, slice(None)) if axis == 0 else (slice(None), k)] = sign
                yield matrix.reshape(1, -1)

    def _supports_of_sums(self, over: Set, sign: float) -> FloatArray:
        return np.concatenate([over.support(sign * gradient) for gradient in self._sum_gradients()])

    def values(self, x: Array, *parameters: Array) -> Array:
        return self._entries_and_sums(x, 1.0)

    def pushforward(self, x: Array, direction: Array, *parameters: Array) -> Array:
        if self._few(direction):
            found = times_table(direction, like(self._sums[1], direction))
            return found if found.shape[-1] == self.count else namespace(x).concat([-direction, found], axis=-1)
        return self._entries_and_sums(direction, 0.0)

    def _few(self, vectors: Array) -> bool:
        """Whether a product with all gradients costs less than the few steps that make use of zeros."""
        return self._gradients is not None and vectors.size * self.dimension <= FASTER_WITH_TABLE

    def _entries_and_sums(self, x: Array, total: float) -> Array:
        """−X_ij, then the sums of the rows and of the columns less `total`, each with both signs."""
        xp = namespace(x)
        matrix = xp.reshape(x, (*x.shape[:-1], self.size, self.size))
        ones = like(self._ones, x)
        rows, columns = matrix @ ones, ones @ matrix  # several times faster than sums over short axes
        if total:
            rows, columns = rows - total, columns - total
        return xp.concat([-x, rows, -rows, columns, -columns], axis=-1)

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        if self._few(weights):
            table, d = like(self._sums[0], weights), self.dimension
            if table.shape[0] == self.count:
                return times_table(weights, table)
            return times_table(weights[..., d:], table) - weights[..., :d]
        xp = namespace(x)
        p, d = self.size, self.dimension
        signed = xp.reshape(weights[..., d:], (*weights.shape[:-1], 2, 2, p))
        sums = signed[..., 0, :] - signed[..., 1, :]
        from_sums = xp.reshape(sums[..., 0, :, None] + sums[..., 1, None, :], (*weights.shape[:-1], d))
        return from_sums - weights[..., :d]

    def squared_excess(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        # Of each pair ±(sum − 1) the positive one is broken: v₊ − v₋ = sum − 1, and v₊² + v₋² is its square.
        xp = namespace(x)
        entries = xp.minimum(x, 0.0)
        if self._few(x):
            gradients, transposed = (like(table, x) for table in self._equalities)
            off = times_table(x, transposed) - 1.0
            return dot(entries, entries) + dot(off, off), entries + times_table(off, gradients)
        p, ones = self.size, like(self._ones, x)
        matrix = xp.reshape(x, (*x.shape[:-1], p, p))
        rows, columns = matrix @ ones - 1.0, ones @ matrix - 1.0
        pulled = entries + xp.reshape(rows[..., :, None] + columns[..., None, :], x.shape)
        return dot(entries, entries) + dot(rows, rows) + dot(columns, columns), pulled

    def gradient_of(self, x: Array, index: Array, *parameters: Array) -> Array:
        if self._gradients is None:
            return super().gradient_of(x, index)
        return rows_at(like(self._gradients, x), index)

    @property
    def is_affine(self) -> bool:
        return True

    def as_affine(self) -> Affine:
        matrix = np.concatenate([-np.eye(self.dimension), *self._sum_gradients()])
        return Affine(matrix, -self.values(np.zeros(self.dimension)))

    def least_values(self, over: Set) -> FloatArray:
        """Those of the sums; of the p² entries, which would cost as many calls, nothing is said."""
        sums = -self._supports_of_sums(over, -1.0) - np.repeat([1.0, -1.0, 1.0, -1.0], self.size)
        return np.concatenate([np.full(self.dimension, -np.inf), sums])

    def projection(self, over: Set) -> Projection | None:
        if self._inside(over):
            return partial(project_onto_doubly_stochastic, size=self.size)
        return super().projection(over)

    def _inside(self, over: Set) -> bool:
        """Whether `over` is seen to hold every doubly-stochastic matrix, that is, every permutation matrix."""
        from scipy.optimize import linear_sum_assignment  # loaded when asked for

        if isinstance(over, Ball):
            # ‖P − C‖² = p + ‖C‖² − 2⟨P, C⟩ is largest for the permutation of least cost.
            centre = over.centre.reshape(self.size, self.size)
            least = centre[linear_sum_assignment(centre)].sum()
            farthest = np.sqrt(self.size + np.sum(centre**2) - 2 * least)
            return bool(farthest <= over.radius * (1 + ROUNDING))
        if isinstance(over, Box):
            return bool(np.all(over.lower <= 0) and np.all(over.upper >= 1))
        return isinstance(over, RowStochastic) and over.rows == self.size

    def gradient_bound(self, over: Set) -> float:
        return float(np.sqrt(self.size))

    def value_bound(self, over: Set) -> float:
        # Of the sums, each |g_j| is g_j or its twin of opposite sign; of the entries, both ends are asked for.
        sums = self._supports_of_sums(over, 1.0) - np.repeat([1.0, -1.0, 1.0, -1.0], self.size)
        if isinstance(over, Ball):  # its support of ±e_k is known without p² calls
            return float(max(sums.max(), np.abs(over.centre).max() + over.radius))
        entries = [over.support(sign * entry) for entry in self._entries() for sign in (1.0, -1.0)]
        return float(max(sums.max(), *entries))

    def _entries(self) -> Iterator[FloatArray]:
        for k in range(self.dimension):
            entry = np.zeros(self.dimension)
            entry[k] = 1.0
            yield entry


def _both_ways(table: FloatArray | None) -> tuple[FloatArray, ...]:
    """A table and its transpose, each row by row, or neither."""
    return () if table is None else (validate.frozen(table), validate.frozen(np.ascontiguousarray(table.T)))


@dataclass(frozen=True, eq=False)
class PositiveSemidefinite(Constraint):
    """g(X) = floor − λ_min(X) for symmetric size × size matrices, flattened.

    Of an unsymmetric x the symmetric part counts. The subgradient −v vᵀ is symmetric to the last bit, so a learner that
    starts from a symmetric matrix and sees symmetric targets never leaves them.

    Parameters
    ----------
    size : int
        The number of rows.
    floor : float
        The least eigenvalue that is allowed.
    eigenvector : ExtremeEigenvector
        The way to v (`longterm.constraints.extreme_eigenvector`, which also says what happens where λ_min is repeated).

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.constraints import PositiveSemidefinite
    >>> g = PositiveSemidefinite(2)
    >>> x = np.array([0.0, 1.0, 1.0, 0.0])  # eigenvalues ±1
    >>> g.values(x), g.pullback(x, np.ones(1)).round(12)
    (array([1.]), array([-0.5,  0.5,  0.5, -0.5]))
    """

    size: int
    floor: float = 0.0
    eigenvector: ExtremeEigenvector = full_decomposition

    def __post_init__(self) -> None:
        n = validate.dimension("size", self.size)
        floor = validate.scalar("floor", validate.number("floor", self.floor))
        validate.set_frozen(self, size=n, dimension=n * n, count=1, floor=floor)

    @cached_property  # not a field: those are what a stored learner is compared by
    def _latest(self) -> list[tuple[Array, tuple[Array, Array]]]:
        """One point, and g and its subgradient there."""
        return []

    def _at(self, x: Array) -> tuple[Array, Array]:
        """Value and subgradient. One learner's latest is kept: who looks ahead asks again where it then plays."""
        if type(x) is not np.ndarray or x.ndim > 1:
            return self._found_at(x)
        for point, known in self._latest:
            if point.dtype == x.dtype and bool((point == x).all()):
                return known
        found = self._found_at(x)
        self._latest[:] = [(x.copy(), found)]
        return found

    def _found_at(self, x: Array) -> tuple[Array, Array]:
        smallest, v = self.eigenvector(as_symmetric(x, self.size))
        outer = namespace(x).reshape(v[..., :, None] * v[..., None, :], x.shape)
        return as_column(self.floor - smallest), -outer

    def linearised(self, x: Array, *parameters: Array) -> Linearised:
        value, gradient = self._at(x)
        return Linearised(
            value, lambda weights: weights * gradient, lambda direction: as_column(dot(direction, gradient))
        )

    def values(self, x: Array, *parameters: Array) -> Array:
        return self._at(x)[0]

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        return weights * self._at(x)[1]

    def gradient_bound(self, over: Set) -> float:
        return 1.0

    def value_bound(self, over: Set) -> float:
        # λ_min falls by at most ‖X − C‖ from the centre C, and is at most the mean of the eigenvalues, trace(X)/n.
        # On a ball about a multiple of the identity both are attained.
        lowest = np.linalg.eigvalsh(as_symmetric(over.centre, self.size))[0] - over.radius
        highest = over.support(np.eye(self.size).ravel()) / self.size
        return float(max(self.floor - lowest, highest - self.floor))

    def least_values(self, over: Set) -> FloatArray:
        # λ_min is at most the mean of the eigenvalues, trace(X)/n.
        return np.array([self.floor - float(over.support(np.eye(self.size).ravel())) / self.size])

    def projection(self, over: Set) -> Projection | None:
        """Onto the symmetric X: in a ball about c·I with c ≥ floor, or a box that fixes a diagonal above the floor."""
        n = self.size
        if isinstance(over, Ball):
            centre = float(over.centre[0])
            if centre < self.floor or np.any(over.centre != centre * np.eye(n).ravel()):
                return None
            return partial(project_onto_psd_in_ball, size=n, radius=over.radius, centre=centre, floor=self.floor)
        if isinstance(over, Box):
            lower, upper = over.lower.reshape(n, n), over.upper.reshape(n, n)
            diagonal = np.diagonal(lower)
            if np.any(diagonal != np.diagonal(upper)) or np.any(diagonal <= self.floor):
                return None
            # The bounds beside the diagonal ask for nothing new: |X_ij| ≤ √((X_ii − floor)(X_jj − floor)) for every
            # feasible X.
            reach = np.sqrt(np.outer(diagonal - self.floor, diagonal - self.floor)) * (1 - ROUNDING)
            beside = ~np.eye(n, dtype=np.bool_)
            if np.any(lower[beside] > -reach[beside]) or np.any(upper[beside] < reach[beside]):
                return None
            return partial(project_onto_correlation, diagonal=diagonal, floor=self.floor)
        return None
