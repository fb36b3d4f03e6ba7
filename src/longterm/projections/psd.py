"""Symmetric matrices with λ_min(X) ≥ floor: alone, and in a ball about a multiple of the identity.

Both sets are made of eigenvalues only, so the nearest symmetric matrix has the eigenvectors of the one it replaces,
and its eigenvalues are the nearest point of {z ≥ floor} (clip them) or of {z ≥ floor, ‖z − c 1‖ ≤ R}.

For the second let u = w − c, f = floor − c ≤ 0. The answer is c + max(f, s u) with the largest s ≤ 1 of length at
most R. With u_1 ≤ u_2 ≤ … and T_k = Σ_{i>k} u_i², its squared length is min_k (k f² + s² T_k) over those k with u_k
< 0, because there s² u_i² and f² compete and the smaller counts; so s² = max_k (R² − k f²)/T_k, or 1 where that is
larger.
"""

from __future__ import annotations

from longterm._arrays import Array, namespace


def as_symmetric(x: Array, size: int) -> Array:
    """Flattened matrices (..., size²) as their symmetric parts (..., size, size)."""
    matrix = namespace(x).reshape(x, (*x.shape[:-1], size, size))
    return 0.5 * (matrix + namespace(x).matrix_transpose(matrix))


def project_onto_psd(x: Array, size: int, floor: float = 0.0) -> Array:
    """Π of size × size matrices, flattened along the last axis, onto the symmetric ones with λ_min ≥ floor.

    Parameters
    ----------
    x : array of shape (..., size²)
        The matrices.
    size : int
        The number of rows.
    floor : float
        The least eigenvalue that is allowed.

    Returns
    -------
    array
        The nearest points, in the shape of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.projections import project_onto_psd
    >>> project_onto_psd(np.array([0.0, 2.0, 2.0, 0.0]), 2)
    array([1., 1., 1., 1.])
    """
    xp = namespace(x)
    matrix = as_symmetric(x, size)
    eigenvalues, vectors = xp.linalg.eigh(matrix)
    return _rebuilt(x, matrix, xp.maximum(eigenvalues, floor), eigenvalues, vectors)


def project_onto_psd_in_ball(x: Array, size: int, radius: float, centre: float = 0.0, floor: float = 0.0) -> Array:
    """Π onto the symmetric matrices with λ_min ≥ floor and ‖X − centre·I‖_F ≤ radius; centre ≥ floor.

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
    >>> from longterm.projections import project_onto_psd_in_ball
    >>> project_onto_psd_in_ball(np.array([0.0, 2.0, 2.0, 0.0]), 2, radius=1.0)
    array([0.5, 0.5, 0.5, 0.5])
    """
    xp = namespace(x)
    matrix = as_symmetric(x, size)
    eigenvalues, vectors = xp.linalg.eigh(matrix)
    offset, lowest = eigenvalues - centre, floor - centre
    # s is the same in every unit, and roots are divided: no square over- or underflows.
    unit = xp.maximum(xp.max(xp.abs(offset), axis=-1, keepdims=True), radius)
    share = radius / unit
    squares = (offset / unit) ** 2
    free = xp.flip(xp.cumulative_sum(xp.flip(squares, axis=-1), axis=-1), axis=-1)  # T_0 … T_{n−1}
    clipped = xp.arange(0, size, dtype=x.dtype)
    room = xp.maximum(1.0 - clipped * min(-lowest / radius, 1.0) ** 2, 0.0)  # from 1 on nothing is left for k ≥ 1
    ample = share**2 * room >= free  # then s = 1 will do, and nothing is divided by 0
    # k counts only where the k-th eigenvalue is below the centre; k = 0 always does.
    before = xp.concat([xp.full_like(offset[..., :1], -1.0), offset[..., :-1]], axis=-1)
    candidates = xp.where(ample, 1.0, share * xp.sqrt(room) / xp.sqrt(xp.where(ample, 1.0, free)))
    scale = xp.max(xp.where(before < 0, candidates, 0.0), axis=-1, keepdims=True)
    return _rebuilt(x, matrix, centre + xp.maximum(scale * offset, lowest), eigenvalues, vectors)


def _rebuilt(x: Array, matrix: Array, wanted: Array, eigenvalues: Array, vectors: Array) -> Array:
    """The matrix with the wanted eigenvalues; one that has them already comes back as it was."""
    xp = namespace(x)
    rebuilt = (vectors * wanted[..., None, :]) @ xp.matrix_transpose(vectors)
    unchanged = xp.all(wanted == eigenvalues, axis=-1)[..., None]
    return xp.where(unchanged, xp.reshape(matrix, x.shape), as_flat_symmetric(rebuilt, x))


def as_flat_symmetric(matrix: Array, x: Array) -> Array:
    """Matrices that rounding made a little unsymmetric, symmetric to the last bit, in the shape of x."""
    xp = namespace(x)
    return xp.reshape(0.5 * (matrix + xp.matrix_transpose(matrix)), x.shape)
