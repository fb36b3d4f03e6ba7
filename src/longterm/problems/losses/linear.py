"""Linear losses."""

from __future__ import annotations

from dataclasses import dataclass

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, dot
from longterm.problems.losses.base import Loss
from longterm.problems.sets import Set


@dataclass(frozen=True, eq=False)
class Linear(Loss):
    """Pay a price for every coordinate of the decision.

    The loss is ⟨cost, x⟩. The cost is the parameter of a round.

    Parameters
    ----------
    dimension : int
        The number of coordinates of a decision (d).
    cost_norm : float
        The largest Euclidean norm of a cost.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.losses import Linear
    >>> value, gradient = Linear(2, cost_norm=5.0).value_and_gradient(np.array([1.0, 0.5]), np.array([3.0, 4.0]))
    >>> float(value), gradient
    (5.0, array([3., 4.]))
    """

    dimension: int
    cost_norm: float = 1.0

    def __post_init__(self) -> None:
        dimension = validate.dimension("dimension", self.dimension)
        validate.validate_fields(self, validate.positive_scalar, "cost_norm")
        validate.set_frozen(self, dimension=dimension, parameters={"cost": (dimension,)})

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        (cost,) = parameters
        return dot(cost, x), cost + 0 * x

    def parameters_towards(self, direction: FloatArray, level: FloatArray, over: Set) -> tuple[FloatArray, ...]:
        return (self.cost_norm * direction,)

    def gradient_bound(self, over: Set) -> float:
        return self.cost_norm

    def value_range(self, over: Set) -> float:
        return self.cost_norm * over.diameter
