"""The smallest eigenvalue of symmetric matrices with one unit eigenvector, three ways.

All take (..., n, n) and give (...,) and (..., n). Where the smallest eigenvalue is repeated there is a choice of
eigenvector. `full_decomposition` makes it by a rule that rounding cannot disturb; the other two look at one matrix
after another and give for each the same bytes every time, in a batch or alone.

- `full_decomposition`: all eigenvectors, in any array library. The default.
- `lapack_one`: SciPy's LAPACK, asked for one eigenvector only. CPU. The fastest from about n = 20 on.
- `lanczos_one`: SciPy's Lanczos (ARPACK). CPU. For large n with a smallest eigenvalue well apart from the next.

`benchmarks/psd.py` measures where each pays.
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
    """A fixed unit vector without symmetries: it chooses among eigenvectors, and Lanczos starts from it."""
    vector = np.cos(np.arange(1.0, size + 1))
    return validate.frozen(vector / np.linalg.norm(vector))


def full_decomposition(matrix: Array) -> tuple[Array, Array]:
    """All eigenvectors; of those within 1e-9 ‖X‖ of the smallest, the combination nearest to `start_vector`.

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
    # A start at right angles to all of them chooses nothing: then the first will do.
    first = xp.astype(xp.arange(matrix.shape[-1]) == 0, matrix.dtype)
    weights = xp.where(length > 0, weights / xp.where(length > 0, length, 1.0), first)
    return smallest[..., 0], (vectors @ as_column(weights))[..., 0]


def lapack_one(matrix: Array) -> tuple[Array, Array]:
    """One eigenvector by LAPACK's xSYEVR; of a repeated smallest eigenvalue, the one that LAPACK returns."""
    return _one_by_one(_lapack, matrix)


def lanczos_one(matrix: Array) -> tuple[Array, Array]:
    """One eigenvector by Lanczos from `start_vector`; of a repeated smallest eigenvalue, the one that it meets.

    It converges slowly, or not at all, where many eigenvalues crowd at the lower end; then LAPACK is asked.
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
    from scipy.linalg import eigh  # loaded when asked for

    return eigh(matrix, subset_by_index=[0, 0], driver="evr", check_finite=False)


def _lanczos(matrix: Any) -> tuple[Any, Any]:
    from scipy.sparse.linalg import ArpackError, eigsh  # loaded when asked for

    if len(matrix) < 3:  # ARPACK wants k < n, and room beside it
        return _lapack(matrix)
    try:
        start = start_vector(len(matrix)).astype(matrix.dtype)
        # Newer versions of SciPy draw from the operating system where a Krylov space ends early, unless told not to.
        seeded: dict[str, Any] = {"rng": 0} if "rng" in signature(eigsh).parameters else {}
        pair: tuple[Any, Any] = eigsh(matrix, k=1, which="SA", v0=start, **seeded)
        return pair
    except ArpackError:  # no convergence, or nothing to converge from (the zero matrix)
        return _lapack(matrix)
