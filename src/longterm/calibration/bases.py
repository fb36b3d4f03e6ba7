"""Bases: predictions of the score's quantile, to which a correction is added.

A base predicts a quantile b and a scale σ > 0 from the scores seen so far. Coverage does not depend on it: Theorem 1
holds for any numbers chosen before the score. A sharper base gives narrower intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from longterm._base import validate
from longterm._base.arrays import Array, namespace
from longterm._base.display import ReprMixin
from longterm._base.selection import clamp_min, where


def count_active(groups: Array) -> Array:
    """Return the number of groups of a round, given 0 or 1 for each. The product is faster than the sum."""
    return namespace(groups).vecdot(groups, groups)


def pinball(error: Array, miss_rate: Array) -> Array:
    """Return the pinball loss of score − prediction at the quantile 1 − α."""
    return clamp_min((1.0 - miss_rate) * error, -miss_rate * error)


class Asked(NamedTuple):
    """A threshold (a score above it is a miss), and what `Calibration.tell` needs later.

    The shift is the correction in units of the scale. The base b, the scale σ and the experts (..., K) are the
    predictions of the round. `late` is 1 + D of the corrections, `told` the number of known scores and `open_rounds`
    that of other open rounds, at the ask.
    """

    threshold: Array
    shift: Array
    base: Array
    scale: Array
    experts: Array
    groups: Array
    late: Array
    told: Array
    open_rounds: Array


class TrackerState(NamedTuple):
    """State of a `QuantileTracker`: the threshold, Σ residual², rounds, and the last step."""

    threshold: Array
    squares: Array
    rounds: Array
    step: Array


@dataclass(frozen=True, repr=False)
class QuantileTracker(ReprMixin):
    """A tracked quantile: b ← b + η_t (1{miss} − α), online gradient descent on the pinball loss. The scale is 1.

    Parameters
    ----------
    step : float
        η, in units of the score. With 0 the base stays at 0, for rules that are a correction alone.
    steps : {"constant", "decaying", "scale-free"}
        η; η t^{−0.6} (Angelopoulos, Barber, Bates 2024); or η/√(Σ residual²) (SF-OGD).
    """

    step: float = 0.1
    steps: Literal["constant", "decaying", "scale-free"] = "constant"

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.non_negative_scalar, "step")
        validate.choice("steps", self.steps, ("constant", "decaying", "scale-free"))

    def init(self, shape: tuple[int, ...], groups: int, xp: Any, dtype: Any) -> TrackerState:
        zero = xp.zeros(shape, dtype=dtype)
        return TrackerState(zero, zero, zero, zero + self.step)

    def predict(self, state: TrackerState, groups: Array) -> tuple[Array, Array, Array]:
        """Return the base, the scale and the predictions of the experts."""
        b = state.threshold
        return b, namespace(b).ones_like(b), b[..., None]

    def update(
        self, state: TrackerState, asked: Asked, score: Array, residual: Array, miss_rate: Array, current: Array
    ) -> TrackerState:
        """Return the state after a round with this residual 1{miss} − α; `current`: the state is that of the ask."""
        rounds, squares = state.rounds + 1.0, state.squares + residual**2
        step = state.step
        if self.steps == "decaying":
            step = self.step * rounds**-0.6
        elif self.steps == "scale-free":
            step = self.step / where(squares > 0.0, squares, 1.0 + squares) ** 0.5
        return TrackerState(state.threshold + step * residual, squares, rounds, step)
