"""Constants of a problem, and assumptions of theorems about hyper-parameters."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm._arrays import ROUNDING


@dataclass(frozen=True)
class Constants:
    """The constants of the theorems.

    Parameters
    ----------
    radius : float
        max ‖x_1 − x‖ over B (the paper's R, for a ball).
    diameter : float
        Δ, the diameter of B (2R for a ball).
    loss_gradient_bound, constraint_gradient_bound : float
        G_f and G_g, bounds on the gradients of the losses and of the constraints on B.
    constraint_bound, loss_range : float
        D and F, bounds on |g_j| and on the range of every f_t on B.
    strong_convexity : float
        σ of the losses.
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
            validate.non_negative_scalar(constant.name, getattr(self, constant.name))

    @property
    def gradient_bound(self) -> float:
        """G, the larger of G_f and G_g."""
        return max(self.loss_gradient_bound, self.constraint_gradient_bound)

    @property
    def first_violation(self) -> float:
        """min(D, G_g r), which bounds [g_t(x_1)]₊ at the centre if some x* of B has g_t(x*) ≤ 0."""
        return min(self.constraint_bound, self.constraint_gradient_bound * self.radius)


@dataclass(frozen=True)
class Assumption:
    """An inequality that a theorem needs, with its numbers.

    Parameters
    ----------
    statement : str
        The inequality.
    value, limit : float
        Its left and right side.
    remedy : str
        What to do if it does not hold.

    Examples
    --------
    >>> from longterm.theory.facts import Assumption
    >>> print(Assumption("2η²(σ_max² + δ²η²) ≤ 1", value=1.2, limit=1.0, remedy="Give a longer horizon"))
    2η²(σ_max² + δ²η²) ≤ 1 does not hold (1.2 against 1): no theorem covers the run. Give a longer horizon.
    """

    statement: str
    value: float
    limit: float
    remedy: str

    @classmethod
    def worst(cls, statement: str, values: ArrayLike, limits: ArrayLike, remedy: str) -> Assumption:
        """Return the assumption with the largest excess in a batch of learners."""
        value, limit = np.broadcast_arrays(np.asarray(values, dtype=np.float64), np.asarray(limits, dtype=np.float64))
        k = int(np.argmax(value - limit))
        return cls(statement, float(value.flat[k]), float(limit.flat[k]), remedy)

    @property
    def holds(self) -> bool:
        """True if value ≤ limit up to rounding."""
        return self.value <= self.limit + ROUNDING * abs(self.limit)

    def __str__(self) -> str:
        sides = f"({self.value:.6g} against {self.limit:.6g})"
        if self.holds:
            return f"{self.statement} holds {sides}"
        return f"{self.statement} does not hold {sides}: no theorem covers the run. {self.remedy}."
