"""f(x) = ⟨cost, x⟩: what an adversary plays, and what any loss is at most, to first order."""

from __future__ import annotations

from dataclasses import dataclass

from longterm import _validate as validate
from longterm._arrays import Array, dot
from longterm.losses.base import Loss
from longterm.sets import Set


@dataclass(frozen=True, eq=False)
class Linear(Loss):
    """⟨cost, x⟩ with ‖cost‖₂ ≤ cost_norm. Parameter of a round: its cost.

    Parameters
    ----------
    dimension : int
        d.
    cost_norm : float
        Bounds ‖cost‖₂.
    """

    dimension: int
    cost_norm: float = 1.0

    def __post_init__(self) -> None:
        dimension = validate.dimension("dimension", self.dimension)
        validate.remember(
            self,
            dimension=dimension,
            parameters={"cost": (dimension,)},
            cost_norm=validate.positive_scalar("cost_norm", self.cost_norm),
        )

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        (cost,) = parameters
        return dot(cost, x), cost + 0 * x

    def gradient_bound(self, over: Set) -> float:
        return self.cost_norm

    def value_range(self, over: Set) -> float:
        return self.cost_norm * over.diameter
