"""Euclidean projection onto doubly-stochastic matrices, batched. NumPy only.

The nearest matrix to W is X = [W + u 1ᵀ + 1 vᵀ]₊. u and v minimise the smooth convex
θ(u, v) = ½ ‖[W + u 1ᵀ + 1 vᵀ]₊‖² − Σu − Σv, whose gradient F is the row and column sums of X less 1. A semi-smooth
Newton method solves F = 0. With M the 0-1 matrix of X > 0, F' = [diag(M 1), M; Mᵀ, diag(Mᵀ 1)]. A multiple of the
identity is added because F' is singular, and a line search decreases θ. Source: Li, Sun, Toh, *On the efficient
computation of a projector over the Birkhoff polytope* (2020).
"""

from __future__ import annotations

import numpy as np

from longterm._base.arrays import Array, FloatArray
from longterm._base.registered import registered
from longterm.errors import LongtermError
from longterm.problems.projections.base import project_with_numpy

MAX_STEPS = 300
SUFFICIENT_DECREASE = 1e-4
"""The share of the predicted decrease of θ that a step must achieve."""


@registered("doubly_stochastic")
def project_onto_doubly_stochastic(x: Array, size: int) -> Array:
    """Project size × size matrices, flattened along the last axis, onto those with X ≥ 0, X 1 = 1, Xᵀ 1 = 1.

    Parameters
    ----------
    x : array of shape (..., size²)
        The matrices.
    size : int
        The number of rows.

    Returns
    -------
    array
        The nearest points, in the shape of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.projections.birkhoff import project_onto_doubly_stochastic
    >>> project_onto_doubly_stochastic(np.array([3.0, 0.0, 0.0, 1.0]), 2)
    array([1., 0., 0., 1.])
    """
    return project_with_numpy(lambda rows: _project(rows.reshape(-1, size, size)).reshape(rows.shape), x)


def _project(matrices: FloatArray) -> FloatArray:
    p = matrices.shape[-1]
    # Adding u 1ᵀ + 1 vᵀ to W does not change the result. Sums of 1 are a good start.
    rows, columns = matrices.sum(axis=2, keepdims=True), matrices.sum(axis=1, keepdims=True)
    total = rows.sum(axis=1, keepdims=True)
    W = matrices - (rows - 1) / p - (columns - 1) / p + (total - p) / p**2
    scale = 1 + np.abs(W).max(axis=(1, 2), initial=0.0)
    tolerance = 4 * p * np.finfo(np.float64).eps * scale
    shift = np.zeros((len(W), 2 * p))
    X, F = _primal(W, shift)
    for _ in range(MAX_STEPS):
        error = np.abs(F).max(axis=1, initial=0.0)
        (todo,) = np.nonzero(error > tolerance)
        if not len(todo):
            return X
        step = _newton_step(X[todo], F[todo], scale[todo])
        shift[todo], X[todo], F[todo] = _line_search(W[todo], shift[todo], X[todo], F[todo], step)
    raise LongtermError(
        f"the nearest doubly-stochastic matrix was not found in {MAX_STEPS} Newton steps (F = {error.max():.3g})"
    )


def _primal(W: FloatArray, shift: FloatArray) -> tuple[FloatArray, FloatArray]:
    p = W.shape[-1]
    X = np.maximum(W + shift[:, :p, None] + shift[:, None, p:], 0.0)
    return X, np.concatenate([X.sum(axis=2), X.sum(axis=1)], axis=1) - 1


def _newton_step(X: FloatArray, F: FloatArray, scale: FloatArray) -> FloatArray:
    n, p, _ = X.shape
    M = (X > 0).astype(np.float64)
    slope = np.zeros((n, 2 * p, 2 * p))
    slope[:, :p, p:] = M
    slope[:, p:, :p] = M.swapaxes(1, 2)
    diagonal = np.arange(2 * p)
    # Where the support decomposes into blocks, the multiple of the identity bounds the step by the size of W.
    extra = np.minimum(1e-3, 0.1 * np.linalg.norm(F, axis=1, keepdims=True)) / scale[:, None]
    slope[:, diagonal, diagonal] = np.concatenate([M.sum(axis=2), M.sum(axis=1)], axis=1) + extra + 1e-14
    return np.asarray(-np.linalg.solve(slope, F[..., None])[..., 0], dtype=np.float64)


def _line_search(
    W: FloatArray, shift: FloatArray, X: FloatArray, F: FloatArray, step: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Halve the step of each matrix until θ decreases enough, or ‖F‖ halves where rounding hides the decrease."""
    value, predicted, size = _theta(X, shift), np.vecdot(F, step), np.linalg.norm(F, axis=1)
    length = np.ones(len(W))
    for _ in range(60):
        moved = shift + length[:, None] * step
        new_X, new_F = _primal(W, moved)
        decreases = _theta(new_X, moved) <= value + SUFFICIENT_DECREASE * length * predicted
        enough = decreases | (np.linalg.norm(new_F, axis=1) <= 0.5 * size)
        if np.all(enough):
            break
        length = np.where(enough, length, length / 2)
    return moved, new_X, new_F


def _theta(X: FloatArray, shift: FloatArray) -> FloatArray:
    return np.asarray(0.5 * np.sum(X * X, axis=(1, 2)) - shift.sum(axis=1))
