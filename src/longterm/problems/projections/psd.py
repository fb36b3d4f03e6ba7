"""Projection onto symmetric matrices with λ_min(X) ≥ floor in a ball about a multiple of the identity.

The set depends on eigenvalues only. The nearest symmetric matrix therefore has the same eigenvectors, and its
eigenvalues are the nearest point of {z ≥ floor, ‖z − c 1‖ ≤ R}. Let u = w − c and f = floor − c ≤ 0. The projection is
c + max(f, s u) with the largest s ≤ 1 whose length is at most R. With u_1 ≤ u_2 ≤ … and T_k = Σ_{i>k} u_i², the squared
length of max(f, s u) is min_k (k f² + s² T_k) over the k with u_k < 0. Hence s² = min(1, max_k (R² − k f²)/T_k).
"""

from __future__ import annotations

from longterm._base.arrays import Array, namespace
from longterm._base.registered import registered


def as_symmetric(x: Array, size: int) -> Array:
    """Return the symmetric parts (..., size, size) of flattened matrices (..., size²)."""
    matrix = namespace(x).reshape(x, (*x.shape[:-1], size, size))
    return 0.5 * (matrix + namespace(x).matrix_transpose(matrix))


@registered("psd_in_ball")
def project_onto_psd_in_ball(x: Array, size: int, radius: float, centre: float = 0.0, floor: float = 0.0) -> Array:
    """Project onto symmetric matrices with λ_min ≥ floor and ‖X − centre·I‖_F ≤ radius, where centre ≥ floor.

    Parameters
    ----------
    x : array of shape (..., size²)
        The matrices.
    size : int
        The number of rows.
    radius, centre, floor : float
        As in the set.

    Returns
    -------
    array
        The nearest points, in the shape of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.projections.psd import project_onto_psd_in_ball
    >>> project_onto_psd_in_ball(np.array([0.0, 2.0, 2.0, 0.0]), 2, radius=1.0)
    array([0.5, 0.5, 0.5, 0.5])
    """
    xp = namespace(x)
    matrix = as_symmetric(x, size)
    eigenvalues, vectors = xp.linalg.eigh(matrix)
    offset, lowest = eigenvalues - centre, floor - centre
    # s does not depend on the unit. With this one no square overflows or underflows.
    unit = xp.maximum(xp.max(xp.abs(offset), axis=-1, keepdims=True), radius)
    share = radius / unit
    squares = (offset / unit) ** 2
    free = xp.flip(xp.cumulative_sum(xp.flip(squares, axis=-1), axis=-1), axis=-1)  # T_0 … T_{n−1}
    clipped = xp.arange(0, size, dtype=x.dtype)
    remaining = xp.maximum(1.0 - clipped * min(-lowest / radius, 1.0) ** 2, 0.0)
    inside = share**2 * remaining >= free  # then s = 1, and the division below is by 1
    # k counts only if the k-th eigenvalue is below the centre. k = 0 always counts.
    before = xp.concat([xp.full_like(offset[..., :1], -1.0), offset[..., :-1]], axis=-1)
    candidates = xp.where(inside, 1.0, share * xp.sqrt(remaining) / xp.sqrt(xp.where(inside, 1.0, free)))
    scale = xp.max(xp.where(before < 0, candidates, 0.0), axis=-1, keepdims=True)
    return _rebuild(x, matrix, centre + xp.maximum(scale * offset, lowest), eigenvalues, vectors)


def _rebuild(x: Array, matrix: Array, wanted: Array, eigenvalues: Array, vectors: Array) -> Array:
    """Return the matrix with the wanted eigenvalues. A matrix that has them already is returned unchanged."""
    xp = namespace(x)
    rebuilt = (vectors * wanted[..., None, :]) @ xp.matrix_transpose(vectors)
    unchanged = xp.all(wanted == eigenvalues, axis=-1)[..., None]
    return xp.where(unchanged, xp.reshape(matrix, x.shape), as_flat_symmetric(rebuilt, x))


def as_flat_symmetric(matrix: Array, x: Array) -> Array:
    """Return exactly symmetric matrices in the shape of x."""
    xp = namespace(x)
    return xp.reshape(0.5 * (matrix + xp.matrix_transpose(matrix)), x.shape)
