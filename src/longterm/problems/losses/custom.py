"""Losses given by functions of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from longterm._base import validate
from longterm._base.arrays import Array
from longterm.problems.losses.base import Loss
from longterm.problems.sets import Set


class CustomLoss(Loss):
    """Use a convex loss of your own, given by two functions.

    You declare its bounds. `longterm.challenge` searches for a point that violates them.

    Parameters
    ----------
    dimension : int
        The number of coordinates of a decision (d).
    function, derivative : callable
        The loss and a (sub)gradient. They map x, shape (..., d), and the parameters of the round to (...,) and
        (..., d).
    gradient_bound, value_range, strong_convexity : float
        The largest norm of a gradient, the largest difference between two values of one loss, and the strong convexity,
        on the enclosing set (G_f, F and σ).
    parameters : mapping of str to tuple of int, optional
        The name and trailing shape of each parameter of a round, in order.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import challenge
    >>> from longterm.problems.losses import CustomLoss
    >>> from longterm.problems.sets import Box
    >>> f = CustomLoss(
    ...     dimension=1,
    ...     function=lambda x: 1.6 * x[..., 0] ** 2,
    ...     derivative=lambda x: 3.2 * x,
    ...     gradient_bound=1.0,
    ...     value_range=1.6,
    ... )
    >>> print(challenge(f, Box([-1.0], [1.0]))[0])
    your gradient_bound = 1 is wrong: here is an x with gradient 3.2: x = [1.]
    """

    def __init__(
        self,
        dimension: int,
        function: Callable[..., Array],
        derivative: Callable[..., Array],
        gradient_bound: float,
        value_range: float,
        strong_convexity: float = 0.0,
        parameters: Mapping[str, tuple[int, ...]] | None = None,
    ) -> None:
        self.dimension = validate.dimension("dimension", dimension)
        self.function = function
        self.derivative = derivative
        self._gradient_bound = validate.positive_scalar("gradient_bound", gradient_bound)
        self._value_range = validate.non_negative_scalar("value_range", value_range)
        self.strong_convexity = validate.non_negative_scalar("strong_convexity", strong_convexity)
        self.parameters = validate.parameter_shapes("parameters", parameters)

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        return self.function(x, *parameters), self.derivative(x, *parameters)

    def gradient_bound(self, over: Set) -> float:
        return self._gradient_bound

    def value_range(self, over: Set) -> float:
        return self._value_range
