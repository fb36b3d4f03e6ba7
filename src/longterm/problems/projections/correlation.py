"""Projection onto positive semi-definite matrices with a given diagonal, for example correlation matrices. NumPy only.

The nearest matrix to W is X = (W + Diag(y))₊, with negative eigenvalues set to 0. y minimises the smooth convex
θ(y) = ½ ‖(W + Diag(y))₊‖² − ⟨b, y⟩ with gradient diag(X) − b, where b is the diagonal. Newton's method with conjugate
gradients finds y: Qi and Sun, *A quadratically convergent Newton method for computing the nearest correlation matrix*
(2006). Every step needs a full eigendecomposition.

With eigenvectors Q, eigenvalues w and Ω_kl = (max(w_k, 0) − max(w_l, 0))/(w_k − w_l), the derivative of the gradient
along h is diag( Q (Ω ∘ (Qᵀ Diag(h) Q)) Qᵀ ). A floor of the eigenvalues is a shift: X − floor·I has diagonal b − floor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longterm._base.arrays import Array, FloatArray
from longterm._base.registered import registered
from longterm.errors import LongtermError
from longterm.problems.projections.base import project_with_numpy
from longterm.problems.projections.psd import as_symmetric

MAX_STEPS = 100
SUFFICIENT_DECREASE = 1e-4
"""The share of the predicted decrease of θ that a step must achieve."""


@registered("correlation")
def project_onto_correlation(x: Array, diagonal: FloatArray, floor: float = 0.0) -> Array:
    """Project n × n matrices, flattened, onto symmetric ones with λ_min ≥ floor and a given diagonal above the floor.

    Parameters
    ----------
    x : array of shape (..., n²)
        The matrices.
    diagonal : array of shape (n,)
        The diagonal, above the floor.
    floor : float
        The lower bound on the eigenvalues.

    Returns
    -------
    array
        The nearest points, in the shape of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.projections.correlation import project_onto_correlation
    >>> project_onto_correlation(np.array([3.0, 2.0, 2.0, 0.0]), diagonal=np.ones(2)).round(12)
    array([1., 1., 1., 1.])
    """
    n = len(diagonal)
    target = np.asarray(diagonal, dtype=np.float64) - floor

    def project(rows: FloatArray) -> FloatArray:
        shifted = as_symmetric(rows, n) - floor * np.eye(n)
        return np.stack([_nearest(W, target) + floor * np.eye(n) for W in shifted]).reshape(rows.shape)

    return project_with_numpy(project, x) if x.size else x


class _Point(NamedTuple):
    """An iterate: y, X(y), θ(y), its gradient, and the eigendecomposition of W + Diag(y)."""

    y: FloatArray
    X: FloatArray
    theta: float
    gradient: FloatArray
    values: FloatArray
    vectors: FloatArray


def _nearest(W: FloatArray, b: FloatArray) -> FloatArray:
    at = _evaluate(W, b, b - np.diagonal(W))
    tolerance = 1e-14 * len(b) * (np.abs(b).max() + np.abs(W).max())
    for _ in range(MAX_STEPS):
        size = float(np.linalg.norm(at.gradient))
        if not size > tolerance:
            return _with_diagonal(at.X, b)
        step = _newton_step(at, size)
        predicted, length = at.gradient @ step, 1.0
        while True:
            new = _evaluate(W, b, at.y + length * step)
            decreases = new.theta <= at.theta + SUFFICIENT_DECREASE * length * predicted
            if decreases or np.linalg.norm(new.gradient) <= 0.5 * size or length < 1e-10:
                break
            length /= 2
        if np.linalg.norm(new.gradient) >= size and size <= 100 * tolerance:
            return _with_diagonal(at.X, b)  # the limit of rounding
        at = new
    raise LongtermError(f"the nearest correlation matrix was not found in {MAX_STEPS} Newton steps (n = {len(b)})")


def _evaluate(W: FloatArray, b: FloatArray, y: FloatArray) -> _Point:
    values, vectors = np.linalg.eigh(W + np.diag(y))
    kept = np.maximum(values, 0.0)
    X = (vectors * kept) @ vectors.T
    return _Point(y, X, float(0.5 * kept @ kept - b @ y), np.diagonal(X) - b, values, vectors)


def _newton_step(at: _Point, size: float) -> FloatArray:
    """Return −(θ'' + ε I)⁻¹ θ' by preconditioned conjugate gradients."""
    kept, Q = np.maximum(at.values, 0.0), at.vectors
    gaps = at.values[:, None] - at.values
    both = (at.values[:, None] > 0) & (at.values > 0)
    equal = np.where(both, 1.0, 0.0)
    weights = np.where(gaps == 0, equal, (kept[:, None] - kept) / np.where(gaps == 0, 1.0, gaps))
    extra = min(1e-3, 0.1 * size) / (1 + np.abs(at.values).max())
    squares = Q * Q
    preconditioner = np.maximum(np.vecdot(squares @ weights, squares), extra) + extra

    def curvature(h: FloatArray) -> FloatArray:
        inner = weights * ((Q.T * h) @ Q)
        return np.asarray(np.vecdot(Q @ inner, Q) + extra * h)

    residual = -at.gradient
    step = np.zeros_like(residual)
    direction = scaled = residual / preconditioner
    amount = residual @ scaled
    for _ in range(2 * len(residual)):
        image = curvature(direction)
        length = amount / (direction @ image)
        step, residual = step + length * direction, residual - length * image
        if np.linalg.norm(residual) <= min(0.01, size) * size:
            break
        scaled = residual / preconditioner
        amount, before = residual @ scaled, amount
        direction = scaled + (amount / before) * direction
    return step


def _with_diagonal(X: FloatArray, b: FloatArray) -> FloatArray:
    """Scale X to the exact diagonal b, which keeps it positive semi-definite and exactly symmetric."""
    scale = np.sqrt(b / np.diagonal(X))
    scaled: FloatArray = 0.5 * (X + X.T) * np.outer(scale, scale)
    scaled[np.diag_indices(len(b))] = b
    return scaled
