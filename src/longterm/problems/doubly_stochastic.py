"""Online estimation of doubly-stochastic matrices: the paper's first experiment."""

from __future__ import annotations

from typing import Literal

import numpy as np

from longterm import _validate as validate
from longterm.constraints import Affine, DoublyStochastic
from longterm.errors import InputError
from longterm.losses import SquaredDistance
from longterm.problems.problem import Problem
from longterm.sets import Ball, RowStochastic


def doubly_stochastic(size: int, enclosing: Literal["ball", "rows"] = "ball") -> Problem:
    """f_t(X) = ½ ‖X − Y_t‖² over p × p doubly-stochastic X, flattened.

    `enclosing="ball"` is the paper's: B the ball of radius √p, m = p² + 4p constraints, G = 2√p, F = 2p.
    D = p + 1, attained by one row of −1's; the paper's D = √p is too small (declare it to get its bound:
    ``dataclasses.replace(problem, declared={"constraint_bound": p**0.5})``).
    `enclosing="rows"` takes B = row-stochastic matrices: Δ = √(2p), and only the 2p column constraints remain.
    Targets must lie in B; permutation matrices do.

    >>> from longterm.problems import doubly_stochastic
    >>> constants = doubly_stochastic(4).constants
    >>> constants.radius, constants.gradient_bound, constants.constraint_bound, constants.loss_range
    (2.0, 4.0, 5.0, 8.0)
    """
    p = validate.dimension("size", size)
    if enclosing == "ball":
        return Problem(
            Ball(p * p, radius=float(np.sqrt(p))),
            SquaredDistance(p * p),
            DoublyStochastic(p),
            name=f"doubly-stochastic p={p}",
        )
    if enclosing == "rows":
        columns = np.kron(np.ones(p), np.eye(p))
        offsets = np.concatenate([np.ones(p), -np.ones(p)])
        return Problem(
            RowStochastic(p, p),
            SquaredDistance(p * p),
            Affine(np.concatenate([columns, -columns]), offsets),
            name=f"doubly-stochastic p={p} in row-stochastic",
        )
    raise InputError("enclosing", f"{enclosing!r} is not known", "Choose 'ball' or 'rows'")
