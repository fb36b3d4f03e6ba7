"""Constraints given by functions of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from longterm._base import validate
from longterm._base.arrays import Array, as_column, namespace
from longterm.problems.constraints.base import Constraint
from longterm.problems.sets import Set


class CustomConstraint(Constraint):
    """Use a convex constraint of your own, given by two functions.

    Combine several with `Stack`. You declare the bounds. `longterm.challenge` searches for a point that violates them.

    Parameters
    ----------
    dimension : int
        The number of coordinates of a decision (d).
    function, derivative : callable
        The function g and a (sub)gradient. They map x, shape (..., d), and the parameters of the round to (...,) and
        (..., d).
    gradient_bound, value_bound : float
        The largest norm of a gradient and the largest |g| on the enclosing set (G_g and D).
    parameters : mapping of str to tuple of int, optional
        The name and trailing shape of each parameter of a round, in order. Empty for a fixed g.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.constraints import CustomConstraint
    >>> g = CustomConstraint(2, lambda x: x[..., 0] ** 2 - 1, lambda x: 2 * x * np.array([1.0, 0.0]), 4.0, 3.0)
    >>> g.values(np.array([2.0, 0.0])), g.pullback(np.array([2.0, 0.0]), np.array([1.0]))
    (array([3.]), array([4., 0.]))
    """

    count = 1

    def __init__(
        self,
        dimension: int,
        function: Callable[..., Array],
        derivative: Callable[..., Array],
        gradient_bound: float,
        value_bound: float,
        parameters: Mapping[str, tuple[int, ...]] | None = None,
    ) -> None:
        self.dimension = validate.dimension("dimension", dimension)
        self.function = function
        self.derivative = derivative
        self._gradient_bound = validate.positive_scalar("gradient_bound", gradient_bound)
        self._value_bound = validate.positive_scalar("value_bound", value_bound)
        self.parameters = validate.parameter_shapes("parameters", parameters)

    def values(self, x: Array, *parameters: Array) -> Array:
        return as_column(namespace(x).asarray(self.function(x, *parameters)))

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        return weights * self.derivative(x, *parameters)

    def gradient_bound(self, over: Set) -> float:
        return self._gradient_bound

    def value_bound(self, over: Set) -> float:
        return self._value_bound
