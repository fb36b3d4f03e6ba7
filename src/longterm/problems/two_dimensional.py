"""Two dimensions, small enough to follow with pencil and paper."""

from __future__ import annotations

import numpy as np

from longterm.constraints import Affine
from longterm.losses import SquaredDistance
from longterm.problems.problem import Problem
from longterm.sets import Ball


def two_dimensional() -> Problem:
    """Stay close to targets in the unit disc, with x_1 ≤ ¼ in the long run.

    f_t(x) = ½ ‖x − target_t‖², g(x) = x_1 − ¼, B the unit disc: R = 1, G = 2, D = 5/4, F = 2, σ = 1.
    The best fixed decision is the mean of the targets with its first coordinate cut off at ¼.

    >>> from longterm.problems import two_dimensional
    >>> two_dimensional().constants.constraint_bound
    1.25
    """
    return Problem(
        Ball(2, radius=1.0),
        SquaredDistance(2),
        Affine(np.array([[1.0, 0.0]]), np.array([0.25])),
        name="two-dimensional",
    )
