"""Several confidence levels at once, with thresholds that never cross."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from longterm._arrays import Array, namespace
from longterm._display import ReprMixin
from longterm.calibration.certificates import Bound
from longterm.calibration.rule import Asked, Calibration, CalibrationState
from longterm.errors import InputError


@dataclass(frozen=True, repr=False)
class Levels(ReprMixin):
    """Thresholds of several nested levels: the running maximum of the thresholds of one rule per level.

    Sorting the thresholds instead would correct a level for the misses of another one, and lose the calibration.

    Parameters
    ----------
    miss_rates : tuple of float
        Decreasing: (0.2, 0.05) for 80 % and 95 %. They are the last axis of every state and threshold.
    """

    miss_rates: tuple[float, ...]

    def __post_init__(self) -> None:
        if list(self.miss_rates) != sorted(set(self.miss_rates), reverse=True):
            raise InputError("miss_rates", f"{self.miss_rates!r} does not decrease", "Give 0.2 before 0.05")

    @cached_property
    def rule(self) -> Calibration:
        """The rules, one per level, over the last leading axis."""
        return Calibration(np.array(self.miss_rates))

    def init(self, shape: tuple[int, ...] = (), *, xp: Any = np) -> CalibrationState:
        """Return the state of `shape` × levels rules."""
        return self.rule.init((*shape, len(self.miss_rates)), xp=xp)

    def ask(self, state: CalibrationState, *, open_rounds: Array = 0) -> Asked:
        """Return thresholds (..., levels) that increase along the last axis."""
        asked = self.rule.ask(state, open_rounds=open_rounds)
        xp = namespace(asked.threshold)
        columns = [asked.threshold[..., 0]]
        for j in range(1, len(self.miss_rates)):
            columns.append(xp.maximum(columns[-1], asked.threshold[..., j]))
        return asked._replace(threshold=xp.stack(columns, axis=-1))

    def tell(self, state: CalibrationState, asked: Asked, score: Array) -> CalibrationState:
        """Return the state after scores (...), which all levels see."""
        xp = namespace(state.told)
        wide = xp.asarray(score, dtype=state.told.dtype)[..., None] + xp.zeros_like(state.told)
        return self.rule.tell(state, asked, wide)

    def bound(self, state: CalibrationState) -> Bound:
        """Return limits of the sum of residuals per level, shape (..., levels, 1), by Theorem 6."""
        alone = self.rule.bound(state)
        xp, lower, upper = namespace(alone.lower), [alone.lower[..., 0, :]], alone.upper
        for j in range(1, len(self.miss_rates)):
            lower.append(alone.lower[..., j, :] - (upper[..., j - 1, :] - lower[-1]))
        return Bound(xp.stack(lower, axis=-2), upper, alone.theorem)
