"""Projection onto polyhedra {A x ≤ b}, alone or intersected with a ball. SciPy only, row by row.

`least_distance` finds the nearest point and its active rows. Equations, written as two inequalities, are eliminated
first: the search runs in coordinates of their solution plane. Otherwise redundant equations, such as the sums of a
doubly-stochastic matrix, contradict each other by rounding.

With a ball of radius R about c, the nearest point is Π(c + s (w − c)), where Π projects onto the polyhedron and s ≤ 1
is the largest value whose result is in the ball. 1/s − 1 is the multiplier of the ball. For fixed active rows the point
is c + p + s q with p ⟂ q, so s follows from R² = ‖p‖² + s² ‖q‖². A few steps with updated active rows are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import ROUNDING, Array, FloatArray
from longterm.errors import InputError
from longterm.problems.projections.base import project_with_numpy
from longterm.problems.projections.least_distance import Nearest, nearest_point
from longterm.problems.sets import Ball

RELATIVE_GAP = 1e-9
"""Equations contradict each other if they differ by more than this share."""


class Plane(NamedTuple):
    """The affine subspace {origin + basis z} with orthonormal columns of the basis."""

    origin: FloatArray
    basis: FloatArray

    def to_plane(self, x: FloatArray) -> FloatArray:
        """Return the coordinates z of the nearest point of the plane."""
        return (x - self.origin) @ self.basis

    def to_space(self, z: FloatArray) -> FloatArray:
        """Return the point with coordinates z."""
        return self.origin + self.basis @ z


@dataclass(frozen=True, eq=False)
class Polyhedron:
    """The projection onto {A x ≤ b}, optionally intersected with a ball.

    Parameters
    ----------
    matrix, limit : array
        A, shape (m, d), and b, shape (m,).
    ball : Ball, optional
        The ball to intersect with.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.projections.polyhedron import Polyhedron
    >>> from longterm.problems.sets import Ball
    >>> corner = Polyhedron(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, 2.0]))
    >>> corner(np.array([[3.0, 4.0], [5.0, -1.0], [0.0, 0.5]]))
    array([[ 1. ,  1. ],
           [ 1. , -1. ],
           [ 0. ,  0.5]])
    >>> Polyhedron(np.array([[1.0, 0.0]]), np.array([0.6]), Ball(2))(np.array([3.0, 1.0]))
    array([0.6, 0.8])
    """

    matrix: FloatArray
    limit: FloatArray
    ball: Ball | None = None
    _plane: Plane = field(init=False, repr=False)
    _rows: FloatArray = field(init=False, repr=False)
    _limits: FloatArray = field(init=False, repr=False)
    _centre: FloatArray = field(init=False, repr=False)
    _radius: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        matrix = validate.matrix("matrix", self.matrix)
        limit = validate.vector("limit", self.limit, len(matrix))
        centre = np.zeros(matrix.shape[1]) if self.ball is None else self.ball.centre
        plane = _plane_of_equations(matrix, limit)
        rows, limits = matrix @ plane.basis, limit - matrix @ plane.origin
        lengths, scale = np.linalg.norm(rows, axis=1), np.linalg.norm(matrix, axis=1)
        kept = lengths > ROUNDING * scale  # the others are constant on the plane
        distance = float(np.linalg.norm(centre - plane.to_space(plane.to_plane(centre))))
        radius = np.inf if self.ball is None else self.ball.radius * (1 + ROUNDING)
        if distance > radius or np.any(limits[~kept] < -RELATIVE_GAP * (1 + np.abs(limit[~kept]))):
            raise _empty(self.ball)
        validate.set_frozen(
            self,
            matrix=matrix,
            limit=limit,
            _plane=plane,
            _rows=validate.frozen(rows[kept] / lengths[kept, None]),
            _limits=validate.frozen(limits[kept] / lengths[kept]),
            _centre=plane.to_plane(centre),
            _radius=np.inf if self.ball is None else float(np.sqrt(max(self.ball.radius**2 - distance**2, 0.0))),
        )
        if np.linalg.norm(self._nearest(self._centre).point - self._centre) > self._radius * (1 + ROUNDING):
            raise _empty(self.ball)

    def __call__(self, x: Array) -> Array:
        """Return the nearest points, shape (..., d)."""
        return project_with_numpy(lambda rows: np.stack([self._one(row) for row in rows]) if len(rows) else rows, x)

    def _one(self, w: FloatArray) -> FloatArray:
        start = self._plane.to_plane(w)
        nearest = self._nearest(start).point
        if np.linalg.norm(nearest - self._centre) > self._radius:
            nearest = self._in_ball(start)
        return self._plane.to_space(nearest)

    def _nearest(self, w: FloatArray) -> Nearest:
        found = nearest_point(self._rows, self._limits, w)
        if found is None:  # a polyhedron of one point, such as a corner of a simplex, may be empty by rounding
            size = max(np.abs(self._limits).max(initial=0.0), np.abs(w).max())
            found = nearest_point(self._rows, self._limits + ROUNDING * size, w)
        if found is None:
            raise _empty(self.ball)
        return found

    def _in_ball(self, w: FloatArray) -> FloatArray:
        direction, low, high, s = w - self._centre, 0.0, 1.0, 0.5
        while True:
            point, multipliers = self._nearest(self._centre + s * direction)
            active = multipliers > 0
            rows = self._rows[active]
            solve = np.linalg.pinv(rows)
            p = solve @ (self._limits[active] - rows @ self._centre)
            q = direction - solve @ (rows @ direction)
            low, high = (s, high) if np.linalg.norm(point - self._centre) <= self._radius else (low, s)
            remaining, length = self._radius**2 - p @ p, np.linalg.norm(q)
            guess = float(np.sqrt(remaining) / length) if remaining > 0 and length > 0 else 0.0
            if guess == s or high - low <= 4e-16 * high:  # the active rows no longer change
                return self._centre + p + s * q
            s = guess if low < guess < high else (low + high) / 2


def _plane_of_equations(matrix: FloatArray, limit: FloatArray) -> Plane:
    """Return the plane on which every pair ⟨a, x⟩ ≤ b, ⟨−a, x⟩ ≤ −b holds, or the whole space if there is no pair."""
    d = matrix.shape[1]
    extended = np.column_stack([matrix, limit])
    key = [row.tobytes() for row in extended + 0.0]  # −0 and 0 are the same number
    opposite = {row.tobytes() for row in 0.0 - extended}
    paired = np.array([name in opposite for name in key])
    if not paired.any():
        return Plane(np.zeros(d), np.eye(d))
    _, values, right = np.linalg.svd(matrix[paired])
    rank = int(np.sum(values > d * np.finfo(np.float64).eps * values.max(initial=0.0)))
    origin = np.linalg.lstsq(matrix[paired], limit[paired], rcond=None)[0]
    if np.abs(matrix[paired] @ origin - limit[paired]).max() > RELATIVE_GAP * (1 + np.abs(limit).max()):
        raise _empty(None)
    return Plane(origin, right[rank:].T)


def _empty(ball: Ball | None) -> InputError:
    place = "" if ball is None else f" in the ball of radius {ball.radius:g}"
    what = f"no x{place} satisfies A x ≤ b"
    return InputError("matrix", what, "Check the signs of A and b, or make the budgets larger")
