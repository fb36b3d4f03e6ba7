"""The smallest eigenvalue of symmetric matrices with a unit eigenvector, by three methods.

All map (..., n, n) to (...,) and (..., n). If the smallest eigenvalue is repeated, the eigenvector is not unique.
`full_decomposition` then selects one by a rule that is robust to rounding. The other two are deterministic.

- `full_decomposition`: all eigenvectors, in any array library. The default.
- `lapack_one`: one eigenvector by SciPy's LAPACK, on the CPU. The fastest from about n = 20 on.
- `lanczos_one`: one eigenvector by SciPy's Lanczos (ARPACK), on the CPU. For large n and a separated eigenvalue.

`benchmarks/psd.py` compares their speed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, as_column, like, namespace, norm, resolution, through_numpy

ExtremeEigenvector = Callable[[Array], tuple[Array, Array]]


@cache
def start_vector(size: int) -> FloatArray:
    """Return a fixed unit vector without symmetries, which selects eigenvectors and starts Lanczos."""
    vector = np.cos(np.arange(1.0, size + 1))
    return validate.frozen(vector / np.linalg.norm(vector))


def full_decomposition(matrix: Array) -> tuple[Array, Array]:
    """Return the smallest eigenvalue and an eigenvector by a full decomposition.

    Among the eigenvectors within 1e-9 ‖X‖ of the smallest it takes the combination nearest to `start_vector`.

    >>> import numpy as np
    >>> from longterm.constraints.extreme_eigenvector import full_decomposition
    >>> value, vector = full_decomposition(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> float(value), np.abs(vector).round(6)
    (-1.0, array([0.707107, 0.707107]))
    """
    xp = namespace(matrix)
    values, vectors = xp.linalg.eigh(matrix)
    smallest = values[..., :1]
    spread = xp.maximum(xp.abs(smallest), xp.abs(values[..., -1:]))
    lowest = values <= smallest + resolution(matrix) * spread
    start = like(start_vector(matrix.shape[-1]), matrix)
    weights = xp.where(lowest, start @ vectors, 0.0)
    length = as_column(norm(weights))
    # A start vector orthogonal to all of them selects nothing; then take the first.
    first = xp.astype(xp.arange(matrix.shape[-1]) == 0, matrix.dtype)
    weights = xp.where(length > 0, weights / xp.where(length > 0, length, 1.0), first)
    return smallest[..., 0], (vectors @ as_column(weights))[..., 0]


def lapack_one(matrix: Array) -> tuple[Array, Array]:
    """Return the smallest eigenvalue and the eigenvector that LAPACK's xSYEVR finds."""
    return _one_by_one(_lapack, matrix)


def lanczos_one(matrix: Array) -> tuple[Array, Array]:
    """Return the smallest eigenvalue and the eigenvector that Lanczos finds from `start_vector`.

    It falls back to LAPACK where Lanczos does not converge, for example with many eigenvalues near the smallest.
    """
    return _one_by_one(_lanczos, matrix)


def _one_by_one(solve: Callable[[Any], tuple[Any, Any]], matrix: Array) -> tuple[Array, Array]:
    n = matrix.shape[-1]

    def solve_each(matrices: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        pairs = [solve(single) for single in matrices.reshape(-1, n, n)]
        values = np.array([value[0] for value, _ in pairs]).reshape(matrix.shape[:-2])
        return values, np.array([vector[:, 0] for _, vector in pairs]).reshape(matrix.shape[:-1])

    values, vectors = through_numpy(solve_each, matrix, [matrix.shape[:-2], matrix.shape[:-1]])
    return values, vectors


def _lapack(matrix: Any) -> tuple[Any, Any]:
    from scipy.linalg import eigh

    return eigh(matrix, subset_by_index=[0, 0], driver="evr", check_finite=False)


def _lanczos(matrix: Any) -> tuple[Any, Any]:
    from scipy.sparse.linalg import ArpackError, eigsh

    if len(matrix) < 3:  # ARPACK needs a larger matrix
        return _lapack(matrix)
    try:
        start = start_vector(len(matrix)).astype(matrix.dtype)
        # Newer SciPy draws random numbers where a Krylov space ends early, so it gets a seed.
        seeded: dict[str, Any] = {"rng": 0} if "rng" in signature(eigsh).parameters else {}
        pair: tuple[Any, Any] = eigsh(matrix, k=1, which="SA", v0=start, **seeded)
        return pair
    except ArpackError:  # no convergence, or the zero matrix
        return _lapack(matrix)
