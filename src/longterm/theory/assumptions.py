"""Assumptions of theorems about hyper-parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from longterm._base.arrays import ROUNDING


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
    >>> from longterm.theory.assumptions import Assumption
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
