"""Linear losses."""

from __future__ import annotations

from dataclasses import dataclass

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, dot
from longterm.problems.losses.base import Loss
from longterm.problems.sets import Set


@dataclass(frozen=True, eq=False)
class Linear(Loss):
    """⟨cost, x⟩ with ‖cost‖₂ ≤ cost_norm. Parameter of a round: its cost.

    Parameters
    ----------
    dimension : int
        d.
    cost_norm : float
        A bound on ‖cost‖₂.
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
