"""Online estimation of a correlation or covariance matrix from pairs that were not measured together."""

from __future__ import annotations

import numpy as np

from longterm import _validate as validate
from longterm.constraints import PositiveSemidefinite
from longterm.constraints.extreme_eigenvector import ExtremeEigenvector, full_decomposition
from longterm.errors import InputError
from longterm.losses import SquaredDistance
from longterm.problems.problem import Problem
from longterm.sets import Ball, Box


def covariance(
    size: int,
    floor: float = 0.1,
    *,
    unit_diagonal: bool = True,
    eigenvector: ExtremeEigenvector = full_decomposition,
) -> Problem:
    """f_t(X) = ½ ‖X − Y_t‖² over symmetric n × n matrices X with λ_min(X) ≥ floor, flattened.

    The targets Y_t are put together from pairs measured at different times (`longterm.streams.PairwiseSigns`), so
    neither they nor their mean are positive semi-definite; the floor keeps the estimate safe to invert. Both forms
    start from the identity, which is their Slater point with g = floor − 1, and have R = √(n(n−1)), Δ = 2R, G = 2R,
    σ = 1:

    - `unit_diagonal` (correlation): B is the box X_ii = 1, |X_ij| ≤ 1. Π_B is free; Π_X, the nearest correlation
      matrix, costs several eigendecompositions.
    - otherwise (covariance): B is the ball about the identity that holds that box. Π_X is one eigendecomposition.

    Targets must be symmetric and in the box. Then every learner that starts at the centre stays symmetric.

    >>> from longterm.problems import covariance
    >>> c = covariance(4, unit_diagonal=False).constants
    >>> round(c.radius**2, 9), c.constraint_gradient_bound, round(c.constraint_bound, 6)
    (12.0, 1.0, 2.632051)
    """
    n = validate.dimension("size", size)
    if n < 2:
        raise InputError("size", "one variable has no correlations", "Give a size of at least 2")
    if not validate.non_negative_scalar("floor", floor) < 1:
        raise InputError(
            "floor", f"{floor!r} leaves no interior", "Give a floor below 1, the eigenvalue of the identity"
        )
    identity = np.eye(n).ravel()
    B = (
        Box(2 * identity - 1, np.ones(n * n))
        if unit_diagonal
        else Ball(n * n, radius=float(np.sqrt(n * (n - 1))), centre=identity)
    )
    kind = "correlation" if unit_diagonal else "covariance"
    return Problem(B, SquaredDistance(n * n), PositiveSemidefinite(n, floor, eigenvector), name=f"{kind} n={n}")
