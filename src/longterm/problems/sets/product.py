"""Products of sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, namespace
from longterm.errors import InputError
from longterm.problems.sets.ball import Ball
from longterm.problems.sets.base import Set
from longterm.problems.sets.box import Box
from longterm.problems.sets.simplex import RowStochastic, Simplex


@dataclass(frozen=True, eq=False)
class Product(Set):
    """Keep parts of a decision in sets of their own.

    The set is {(x_1, …, x_k) : x_i in the i-th factor}, with concatenated coordinates.

    Parameters
    ----------
    factors : sequence of Set
        The sets, in the order of their coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.sets import Ball, Box, Product
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
        """Return the factors and their coordinates. Adjacent boxes are merged, and so are equal unit simplices."""
        parts: list[tuple[Set, int, int]] = []
        end = 0
        for factor in self.factors:
            begin, end = end, end + factor.dimension
            last = parts[-1][0] if parts else None
            if isinstance(factor, Box) and isinstance(last, Box):
                begin = parts.pop()[1]
                factor = Box(np.concatenate([last.lower, factor.lower]), np.concatenate([last.upper, factor.upper]))
            elif isinstance(factor, Simplex) and factor.total == 1 and _has_rows_of(last, factor.dimension):
                begin = parts.pop()[1]
                factor = RowStochastic((end - begin) // factor.dimension, factor.dimension)
            parts.append((factor, begin, end))
        return tuple(parts)

    @cached_property
    def _has_interior(self) -> bool:
        """True if all factors are known to have interior points, so that every direction is parallel to the set."""
        return all(isinstance(part, Box | Ball) for part, _, _ in self._parts)

    def project(self, x: Array) -> Array:
        return _concatenate(x, [part.project(x[..., begin:end]) for part, begin, end in self._parts])

    def tangent(self, direction: Array) -> Array:
        if self._has_interior:
            return direction
        return _concatenate(direction, [part.tangent(direction[..., begin:end]) for part, begin, end in self._parts])

    def extreme_point(self, direction: Array) -> Array:
        points = [part.extreme_point(direction[..., begin:end]) for part, begin, end in self._parts]
        return _concatenate(direction, points)

    def half_spaces(self) -> tuple[FloatArray, FloatArray] | None:
        from scipy.linalg import block_diag

        pairs = [pair for pair in (factor.half_spaces() for factor in self.factors) if pair is not None]
        if len(pairs) < len(self.factors):
            return None
        return block_diag(*(matrix for matrix, _ in pairs)), np.concatenate([offset for _, offset in pairs])

    def largest_norm(self, order: int) -> float:
        return float(np.linalg.norm([factor.largest_norm(order) for factor in self.factors], order))


def _has_rows_of(part: Set | None, length: int) -> bool:
    """Return True for one or more unit simplices of this dimension."""
    if isinstance(part, RowStochastic):
        return part.columns == length
    return isinstance(part, Simplex) and part.total == 1 and part.dimension == length


def _concatenate(x: Array, parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else namespace(x).concat(parts, axis=-1)
