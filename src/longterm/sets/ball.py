"""The Euclidean ball, the paper's enclosing set."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, column, like, namespace, norm
from longterm.sets.base import Set


@dataclass(frozen=True, eq=False)
class Ball(Set):
    """{x : ‖x − centre‖₂ ≤ radius}.

    Parameters
    ----------
    dimension : int
        d.
    radius : float
        R.
    centre : array_like of shape (d,), optional
        Left out, the origin.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.sets import Ball
    >>> Ball(2, radius=1.0).project(np.array([[3.0, 4.0], [0.1, 0.2]]))
    array([[0.6, 0.8],
           [0.1, 0.2]])
    """

    dimension: int
    radius: float = 1.0
    centre: FloatArray = field(default_factory=lambda: np.zeros(()))
    _about_origin: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        dimension = validate.dimension("dimension", self.dimension)
        radius = validate.positive_scalar("radius", self.radius)
        given = np.asarray(self.centre)
        centre = np.zeros(dimension) if given.ndim == 0 and given == 0 else given
        validate.remember(
            self,
            dimension=dimension,
            radius=radius,
            diameter=2 * radius,
            centre=validate.vector("centre", centre, dimension),
            _about_origin=not np.any(centre),
        )

    def project(self, x: Array) -> Array:
        if self._about_origin:
            return self._shrink(x)
        centre = like(self.centre, x)
        return centre + self._shrink(x - centre)

    def _shrink(self, offset: Array) -> Array:
        # Inside the ball the factor is radius / radius, exactly 1: the point comes back bit for bit.
        length = namespace(offset).maximum(norm(offset), self.radius)
        return offset * column(self.radius / length)

    def extreme_point(self, direction: Array) -> Array:
        length = column(norm(direction))
        unit = direction / namespace(direction).where(length > 0, length, 1.0)
        return like(self.centre, direction) + self.radius * unit

    def largest_norm(self, order: int) -> float:
        # max ‖x‖₁ = max over signs s of ⟨s, centre⟩ + radius ‖s‖₂, and ‖s‖₂ = √d.
        reach = self.radius * (np.sqrt(self.dimension) if order == 1 else 1.0)
        return float(np.linalg.norm(self.centre, order) + reach)
