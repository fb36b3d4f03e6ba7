"""What a theorem assumes of the hyper-parameters in use: checked before round 1, reported, never silent.

A learner whose rule can be played at all is not stopped for a theorem that does not cover it: the
assumption says so, and the loop warns. A learner that makes no sense is refused where it is built.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

ROUNDING = 1e-12
"""Parameters are often chosen so that an assumption holds with equality; a relative excess this small is rounding."""


@dataclass(frozen=True)
class Assumption:
    """An inequality that a theorem needs, with its numbers.

    Parameters
    ----------
    statement : str
        The inequality.
    value, limit : float
        Its left side and its right side.
    remedy : str
        What to do where it does not hold.

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
        """For a batch of learners: the one that comes off worst."""
        value, limit = np.broadcast_arrays(np.asarray(values, dtype=np.float64), np.asarray(limits, dtype=np.float64))
        k = int(np.argmax(value - limit))
        return cls(statement, float(value.flat[k]), float(limit.flat[k]), remedy)

    @property
    def holds(self) -> bool:
        """Whether value ≤ limit, up to rounding."""
        return self.value <= self.limit + ROUNDING * abs(self.limit)

    def __str__(self) -> str:
        sides = f"({self.value:.6g} against {self.limit:.6g})"
        if self.holds:
            return f"{self.statement} holds {sides}"
        return f"{self.statement} does not hold {sides}: no theorem covers the run. {self.remedy}."
