"""A user's own constraint: two functions, and the facts the user vouches for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from longterm import _validate as validate
from longterm._arrays import Array, column, namespace
from longterm.constraints.base import Constraint
from longterm.sets import Set


@dataclass(frozen=True, eq=False)
class CustomConstraint(Constraint):
    """One convex g of the user's own.

    The facts are declared, not derived: `longterm.challenge` looks for a point that proves them wrong. Put several
    together with `Stack`.

    Parameters
    ----------
    dimension : int
        d.
    function, derivative : callable
        g and a (sub)gradient: of x, shape (..., d), and the parameters of the round, to shapes (...,) and (..., d).
    declared_gradient_bound, declared_bound : float
        G_g and D on the enclosing set.
    parameters : mapping of str to tuple of int
        Name and trailing shape of each parameter of a round, in order; none for a fixed g.
    """

    dimension: int
    function: Callable[..., Array]
    derivative: Callable[..., Array]
    declared_gradient_bound: float
    declared_bound: float
    parameters: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        validate.remember(
            self,
            dimension=validate.dimension("dimension", self.dimension),
            count=1,
            declared_gradient_bound=validate.positive_scalar("declared_gradient_bound", self.declared_gradient_bound),
            declared_bound=validate.positive_scalar("declared_bound", self.declared_bound),
            parameters=dict(self.parameters),
        )

    def values(self, x: Array, *parameters: Array) -> Array:
        return column(namespace(x).asarray(self.function(x, *parameters)))

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        return weights * self.derivative(x, *parameters)

    def gradient_bound(self, over: Set) -> float:
        return self.declared_gradient_bound

    def value_bound(self, over: Set) -> float:
        return self.declared_bound
