"""Symmetric matrices, flattened, with λ_min(X) ≥ floor.

g(X) = floor − λ_min(X) is convex. −v vᵀ is a subgradient at X for every unit eigenvector v of λ_min(X), because
λ_min(Y) ≤ vᵀ Y v = λ_min(X) + ⟨v vᵀ, Y − X⟩. It needs one extreme eigenvector, whereas a projection needs all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from longterm._base import validate
from longterm._base.arrays import ROUNDING, Array, FloatArray, as_column, dot, namespace
from longterm.problems.constraints.base import Constraint, Linearised
from longterm.problems.constraints.extreme_eigenvector import ExtremeEigenvector, full_decomposition
from longterm.problems.projections.base import Projection
from longterm.problems.projections.correlation import project_onto_correlation
from longterm.problems.projections.psd import as_symmetric, project_onto_psd_in_ball
from longterm.problems.sets import Ball, Box, Set


@dataclass(frozen=True, eq=False)
class PositiveSemidefinite(Constraint):
    """Keep a symmetric matrix positive semidefinite, or its eigenvalues above a floor.

    The constraint is g(X) = floor − λ_min(X) for flattened size × size matrices.

    An unsymmetric x is replaced by its symmetric part. The subgradient −v vᵀ is exactly symmetric, so a learner that
    starts from a symmetric matrix and receives symmetric gradients stays symmetric.

    Parameters
    ----------
    size : int
        The number of rows of the matrix.
    floor : float
        The lower bound on the eigenvalues.
    eigenvector : ExtremeEigenvector
        The method that computes the eigenvector of the smallest eigenvalue (`constraints.extreme_eigenvector`).

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.constraints import PositiveSemidefinite
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

    @cached_property  # not a field: stored learners are compared by their fields
    def _latest(self) -> list[tuple[Array, tuple[Array, Array]]]:
        """Return the cache: the last point with its value and subgradient, or an empty list."""
        return []

    def _at(self, x: Array) -> tuple[Array, Array]:
        """Return value and subgradient. The last single x is cached, because learners with cuts ask for it twice."""
        if type(x) is not np.ndarray or x.ndim > 1:
            return self._compute(x)
        for point, known in self._latest:
            if point.dtype == x.dtype and bool((point == x).all()):
                return known
        found = self._compute(x)
        self._latest[:] = [(x.copy(), found)]
        return found

    def _compute(self, x: Array) -> tuple[Array, Array]:
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
        # λ_min(X) ≥ λ_min(C) − ‖X − C‖ for the centre C, and λ_min(X) ≤ trace(X)/n, the mean of the eigenvalues.
        # Both are attained on a ball about a multiple of the identity.
        lowest = np.linalg.eigvalsh(as_symmetric(over.centre, self.size))[0] - over.radius
        highest = over.support(np.eye(self.size).ravel()) / self.size
        return float(max(self.floor - lowest, highest - self.floor))

    def least_values(self, over: Set) -> FloatArray:
        # λ_min(X) ≤ trace(X)/n, the mean of the eigenvalues.
        return np.array([self.floor - float(over.support(np.eye(self.size).ravel())) / self.size])

    def projection(self, over: Set) -> Projection | None:
        """Return the projection onto symmetric X for two sets, otherwise None.

        The sets are a ball about c·I with c ≥ floor, and a box that fixes a diagonal above the floor.
        """
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
            # The bounds off the diagonal must be implied: |X_ij| ≤ √((X_ii − floor)(X_jj − floor)) for feasible X.
            reach = np.sqrt(np.outer(diagonal - self.floor, diagonal - self.floor)) * (1 - ROUNDING)
            off_diagonal = ~np.eye(n, dtype=np.bool_)
            if np.any(lower[off_diagonal] > -reach[off_diagonal]) or np.any(upper[off_diagonal] < reach[off_diagonal]):
                return None
            return partial(project_onto_correlation, diagonal=diagonal, floor=self.floor)
        return None
