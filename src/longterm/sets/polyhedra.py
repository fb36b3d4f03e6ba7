"""Boxes, simplices and matrices whose rows lie on one, and products of sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, like, max_keepdims, namespace, sums_of_largest
from longterm.errors import InputError
from longterm.sets.base import Set


@dataclass(frozen=True, eq=False)
class Box(Set):
    """{x : lower ≤ x ≤ upper}, coordinate by coordinate.

    Parameters
    ----------
    lower, upper : array_like of shape (d,)
        The bounds of each coordinate.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.sets import Box
    >>> Box([-1.0, 0.0], [1.0, 2.0]).project(np.array([5.0, -3.0]))
    array([1., 0.])
    """

    lower: FloatArray
    upper: FloatArray

    def __post_init__(self) -> None:
        lower = validate.vector("lower", self.lower)
        upper = validate.vector("upper", self.upper, len(lower))
        if np.any(lower > upper):
            k = int(np.argmax(lower > upper))
            raise InputError("lower", f"exceeds upper in coordinate {k} ({lower[k]} > {upper[k]})", "Swap the two")
        diameter = float(np.linalg.norm(upper - lower))
        validate.set_frozen(
            self,
            lower=lower,
            upper=upper,
            dimension=len(lower),
            centre=validate.frozen((lower + upper) / 2),
            radius=diameter / 2,
            diameter=diameter,
        )

    @classmethod
    def cube(cls, dimension: int, lower: float, upper: float) -> Box:
        """The same interval for every coordinate."""
        d = validate.dimension("dimension", dimension)
        return cls(np.full(d, float(lower)), np.full(d, float(upper)))

    def project(self, x: Array) -> Array:
        xp = namespace(x)
        return xp.minimum(xp.maximum(x, like(self.lower, x)), like(self.upper, x))

    def extreme_point(self, direction: Array) -> Array:
        lower, upper = like(self.lower, direction), like(self.upper, direction)
        return namespace(direction).where(direction > 0, upper, lower)

    def half_spaces(self) -> tuple[FloatArray, FloatArray]:
        each = np.eye(self.dimension)
        return np.concatenate([each, -each]), np.concatenate([self.upper, -self.lower])

    def largest_norm(self, order: int) -> float:
        return float(np.linalg.norm(np.maximum(np.abs(self.lower), np.abs(self.upper)), order))


@dataclass(frozen=True, eq=False)
class Product(Set):
    """{(x_1, …, x_k) : x_i in the i-th factor}, coordinates joined end to end.

    Parameters
    ----------
    factors : sequence of Set
        In the order of their coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.sets import Ball, Box, Product
    >>> B = Product([Ball(2, 1.0), Box([0.0], [1.0])])
    >>> B.project(np.array([3.0, 4.0, -1.0]))
    array([0.6, 0.8, 0. ])
    """

    factors: Sequence[Set]

    def __post_init__(self) -> None:
        factors = tuple(self.factors)
        if not factors or not all(isinstance(factor, Set) for factor in factors):
            raise InputError("factors", f"{self.factors!r} is not a sequence of sets", "Give at least one set")
        validate.set_frozen(
            self,
            factors=factors,
            dimension=sum(factor.dimension for factor in factors),
            centre=validate.frozen(np.concatenate([factor.centre for factor in factors])),
            radius=float(np.linalg.norm([factor.radius for factor in factors])),
            diameter=float(np.linalg.norm([factor.diameter for factor in factors])),
        )

    @cached_property
    def _parts(self) -> tuple[tuple[Set, int, int], ...]:
        """The factors, each with where its coordinates begin and end; boxes side by side are one box."""
        parts: list[tuple[Set, int, int]] = []
        end = 0
        for factor in self.factors:
            begin, end = end, end + factor.dimension
            last = parts[-1][0] if parts else None
            if isinstance(factor, Box) and isinstance(last, Box):
                begin = parts.pop()[1]
                factor = Box(np.concatenate([last.lower, factor.lower]), np.concatenate([last.upper, factor.upper]))
            parts.append((factor, begin, end))
        return tuple(parts)

    def project(self, x: Array) -> Array:
        return self._joined(x, [part.project(x[..., begin:end]) for part, begin, end in self._parts])

    def extreme_point(self, direction: Array) -> Array:
        return self._joined(
            direction, [part.extreme_point(direction[..., begin:end]) for part, begin, end in self._parts]
        )

    def _joined(self, x: Array, parts: list[Array]) -> Array:
        return parts[0] if len(parts) == 1 else namespace(x).concat(parts, axis=-1)

    def half_spaces(self) -> tuple[FloatArray, FloatArray] | None:
        from scipy.linalg import block_diag  # loaded when asked for

        pairs = [pair for pair in (factor.half_spaces() for factor in self.factors) if pair is not None]
        if len(pairs) < len(self.factors):
            return None
        return block_diag(*(matrix for matrix, _ in pairs)), np.concatenate([offset for _, offset in pairs])

    def largest_norm(self, order: int) -> float:
        return float(np.linalg.norm([factor.largest_norm(order) for factor in self.factors], order))


def project_onto_simplex(x: Array, total: float) -> Array:
    """Π of x, along the last axis, onto {x ≥ 0, Σ x = total}.

    The projection is [x − τ]₊. With x sorted downwards and S_k the sum of its k largest entries,
    k ↦ (S_k − total)/k rises until k is the number of positive entries of the projection and falls
    after it, so τ is its maximum: no search for k, no branch that depends on the data.
    """
    xp = namespace(x)
    x = x - max_keepdims(x)  # moves nothing, and keeps large numbers from drowning `total`
    counts = like(_counts(x.shape[-1]), x)
    threshold = max_keepdims((sums_of_largest(x) - total) / counts)
    return xp.maximum(x - threshold, 0.0)


@lru_cache
def _counts(size: int) -> FloatArray:
    return validate.frozen(np.arange(1.0, size + 1))


def vertex_of_simplex(direction: Array, total: float) -> Array:
    """A vertex of the simplex that is farthest along `direction`, lowest index first."""
    xp = namespace(direction)
    best = xp.argmax(direction, axis=-1, keepdims=True)
    hit = xp.arange(direction.shape[-1], dtype=best.dtype) == best
    return total * xp.astype(hit, direction.dtype)


def _stochastic(dimension: int, sums: FloatArray, total: float) -> tuple[FloatArray, FloatArray]:
    """Nothing below 0 and these sums equal to `total`, as A x ≤ b."""
    matrix = np.concatenate([-np.eye(dimension), sums, -sums])
    return matrix, np.concatenate([np.zeros(dimension), np.full(len(sums), total), np.full(len(sums), -total)])


@dataclass(frozen=True, eq=False)
class Simplex(Set):
    """{x ≥ 0 : Σ_i x_i = total}.

    Parameters
    ----------
    dimension : int
        d.
    total : float
        What the coordinates sum to.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.sets import Simplex
    >>> Simplex(3).project(np.array([1.0, 0.5, -2.0]))
    array([0.75, 0.25, 0.  ])
    """

    dimension: int
    total: float = 1.0

    def __post_init__(self) -> None:
        dimension = validate.dimension("dimension", self.dimension)
        total = validate.positive_scalar("total", self.total)
        validate.set_frozen(
            self,
            dimension=dimension,
            total=total,
            centre=validate.frozen(np.full(dimension, total / dimension)),
            radius=float(total * np.sqrt(1 - 1 / dimension)),
            diameter=float(total * np.sqrt(2)) if dimension > 1 else 0.0,
        )

    def project(self, x: Array) -> Array:
        return project_onto_simplex(x, self.total)

    def extreme_point(self, direction: Array) -> Array:
        return vertex_of_simplex(direction, self.total)

    def half_spaces(self) -> tuple[FloatArray, FloatArray]:
        return _stochastic(self.dimension, np.ones((1, self.dimension)), self.total)

    def largest_norm(self, order: int) -> float:
        return self.total


@dataclass(frozen=True, eq=False)
class RowStochastic(Set):
    """Matrices X ≥ 0 (rows × columns, flattened) whose every row sums to one.

    Its barycentre is √(rows (1 − 1/columns)) away from each vertex, which is more than half the
    diameter √(2 rows): theorems need both.

    Parameters
    ----------
    rows, columns : int
        The size of X.

    Examples
    --------
    >>> from longterm.sets import RowStochastic
    >>> B = RowStochastic(8, 8)
    >>> round(B.radius**2, 12), round(B.diameter**2, 12)
    (7.0, 16.0)
    """

    rows: int
    columns: int

    def __post_init__(self) -> None:
        rows, columns = validate.dimension("rows", self.rows), validate.dimension("columns", self.columns)
        validate.set_frozen(
            self,
            dimension=rows * columns,
            centre=validate.frozen(np.full(rows * columns, 1 / columns)),
            radius=float(np.sqrt(rows * (1 - 1 / columns))),
            diameter=float(np.sqrt(2 * rows)) if columns > 1 else 0.0,
        )

    def _as_matrix(self, x: Array) -> Array:
        return namespace(x).reshape(x, (*x.shape[:-1], self.rows, self.columns))

    def _flat(self, matrix: Array) -> Array:
        return namespace(matrix).reshape(matrix, (*matrix.shape[:-2], self.dimension))

    def project(self, x: Array) -> Array:
        return self._flat(project_onto_simplex(self._as_matrix(x), 1.0))

    def extreme_point(self, direction: Array) -> Array:
        return self._flat(vertex_of_simplex(self._as_matrix(direction), 1.0))

    def half_spaces(self) -> tuple[FloatArray, FloatArray]:
        return _stochastic(self.dimension, np.repeat(np.eye(self.rows), self.columns, axis=1), 1.0)

    def largest_norm(self, order: int) -> float:
        return float(self.rows if order == 1 else np.sqrt(self.rows))
