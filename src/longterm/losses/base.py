"""What a loss f must be able to do.

A loss is a *family*: f_t is the family with the parameters of round t (a target, a row and its
label, a cost vector). Parameters come from the stream as arrays, so that blocks of rounds stay
blocks of arrays. A loss knows its own facts over a set, so that nobody types G, F and σ by hand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from longterm import _validate as validate
from longterm._arrays import Array
from longterm._display import Shown
from longterm.sets import Set


class Loss(Shown, ABC):
    """A family of convex functions x ↦ f(x; parameters), batched over leading axes."""

    dimension: int
    strong_convexity: float = 0.0
    """σ: every f_t is σ-strongly convex (0: convex, no more)."""

    parameters: Mapping[str, tuple[int, ...]]
    """The name and the trailing shape of each parameter of one round, in order."""

    @abstractmethod
    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        """f(x), shape (...,), and a (sub)gradient at x, shape (..., d)."""

    @abstractmethod
    def gradient_bound(self, over: Set) -> float:
        """G_f: no (sub)gradient of any f_t on the set is longer."""

    @abstractmethod
    def value_range(self, over: Set) -> float:
        """F: max f_t − min f_t on the set, for every t."""

    def check_parameters(self, arrays: Sequence[Array], first: int) -> None:
        """Raise an InputError if parameters of rounds first, first + 1, … (leading axis) mean nothing to this loss."""

    def value(self, x: Array, *parameters: Array) -> Array:
        """f(x), shape (...,)."""
        return self.value_and_gradient(x, *parameters)[0]

    def gradient(self, x: Array, *parameters: Array) -> Array:
        """A (sub)gradient at x, shape (..., d)."""
        return self.value_and_gradient(x, *parameters)[1]


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
