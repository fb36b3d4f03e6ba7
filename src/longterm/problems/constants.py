"""Constants of a problem, and assumptions of theorems about hyper-parameters."""

from __future__ import annotations

from dataclasses import dataclass, fields

from longterm._base import validate
from longterm.errors import InputError

LARGEST = 1e60
"""Constants above it, or below its inverse, are refused: step sizes and bounds are made of their powers.

The range of the losses may be smaller: nothing divides by it.
"""


@dataclass(frozen=True)
class Constants:
    """Describe the size of a problem by the numbers that step sizes and bounds are made of.

    Parameters
    ----------
    radius : float
        The largest distance of a decision from the start x_1 (R in the formulas).
    diameter : float
        The largest distance between two decisions (Δ in the formulas; 2R for a ball).
    loss_gradient_bound, constraint_gradient_bound : float
        The largest norms of a gradient of a loss and of a constraint (G_f and G_g in the formulas).
    constraint_bound, loss_range : float
        The largest |g_j|, and the largest difference between two values of one loss (D and F in the formulas).
    strong_convexity : float
        The strong convexity of the losses (σ in the formulas). 0 for none.
    """

    radius: float
    diameter: float
    loss_gradient_bound: float
    constraint_gradient_bound: float
    constraint_bound: float
    loss_range: float
    strong_convexity: float = 0.0

    def __post_init__(self) -> None:
        for constant in fields(self):
            value = validate.non_negative_scalar(constant.name, getattr(self, constant.name))
            least = 0.0 if constant.name == "loss_range" else 1 / LARGEST
            if value and not least <= value <= LARGEST:
                remedy = "Use another unit for decisions, losses or constraints"
                raise InputError(constant.name, f"{value:g} is not between {least:g} and {LARGEST:g}", remedy)

    @property
    def gradient_bound(self) -> float:
        """G, the larger of G_f and G_g."""
        return max(self.loss_gradient_bound, self.constraint_gradient_bound)

    @property
    def first_violation(self) -> float:
        """min(D, G_g r), which bounds [g_t(x_1)]₊ at the centre if some x* of B has g_t(x*) ≤ 0."""
        return min(self.constraint_bound, self.constraint_gradient_bound * self.radius)
