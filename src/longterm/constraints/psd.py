"""λ_min(X) ≥ floor: positive semi-definite matrices and those safely inside.

g(X) = floor − λ_min(X) is convex, and −v vᵀ is a subgradient at X for any unit eigenvector v of λ_min(X), because
λ_min(Y) ≤ vᵀ Y v = λ_min(X) + ⟨v vᵀ, Y − X⟩. One extreme eigenvector is all it needs; projecting needs them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, column, dot, namespace
from longterm.constraints.base import Constraint, Linearised
from longterm.constraints.extreme_eigenvector import ExtremeEigenvector, full_decomposition
from longterm.projections import Projection, project_onto_correlation, project_onto_psd_in_ball
from longterm.projections.base import ROUNDING
from longterm.projections.psd import as_symmetric
from longterm.sets import Ball, Box, Set


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
        validate.remember(self, size=n, dimension=n * n, count=1, floor=floor)

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
        return column(self.floor - smallest), -outer

    def linearised(self, x: Array, *parameters: Array) -> Linearised:
        value, gradient = self._at(x)
        return Linearised(value, lambda weights: weights * gradient, lambda direction: column(dot(direction, gradient)))

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
