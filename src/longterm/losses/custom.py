"""A user's own loss: two functions, and the facts the user vouches for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from longterm import _validate as validate
from longterm._arrays import Array
from longterm.losses.base import Loss
from longterm.sets import Set


@dataclass(frozen=True, eq=False)
class CustomLoss(Loss):
    """f of the user's own.

    The facts are declared, not derived: `longterm.challenge` looks for a point that proves them wrong.

    Parameters
    ----------
    dimension : int
        d.
    function, derivative : callable
        f and a (sub)gradient: of x, shape (..., d), and the parameters of the round, to shapes (...,) and (..., d).
    declared_gradient_bound, declared_range, strong_convexity : float
        G_f, F and σ on the enclosing set.
    parameters : mapping of str to tuple of int
        Name and trailing shape of each parameter of a round, in order.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import challenge
    >>> from longterm.losses import CustomLoss
    >>> from longterm.sets import Box
    >>> f = CustomLoss(
    ...     dimension=1,
    ...     function=lambda x: 1.6 * x[..., 0] ** 2,
    ...     derivative=lambda x: 3.2 * x,
    ...     declared_gradient_bound=1.0,
    ...     declared_range=1.6,
    ... )
    >>> print(challenge(f, Box([-1.0], [1.0]))[0])
    your gradient_bound = 1 is wrong: here is an x with gradient 3.2: x = [1.]
    """

    dimension: int
    function: Callable[..., Array]
    derivative: Callable[..., Array]
    declared_gradient_bound: float
    declared_range: float
    strong_convexity: float = 0.0
    parameters: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        validate.remember(
            self,
            dimension=validate.dimension("dimension", self.dimension),
            declared_gradient_bound=validate.positive_scalar("declared_gradient_bound", self.declared_gradient_bound),
            declared_range=validate.non_negative_scalar("declared_range", self.declared_range),
            strong_convexity=validate.non_negative_scalar("strong_convexity", self.strong_convexity),
            parameters=dict(self.parameters),
        )

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        return self.function(x, *parameters), self.derivative(x, *parameters)

    def gradient_bound(self, over: Set) -> float:
        return self.declared_gradient_bound

    def value_range(self, over: Set) -> float:
        return self.declared_range
