"""The base class of losses of a linear model on one row: f(x) = φ(⟨features, x⟩, label)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longterm._base import validate
from longterm.problems.losses.base import Loss
from longterm.problems.sets import Set


@dataclass(frozen=True, eq=False)
class RowLoss(Loss):
    """A loss on rows. Parameters of a round: features, label.

    Parameters
    ----------
    dimension : int
        d.
    feature_norm : float
        A bound on ‖features‖₂.
    """

    dimension: int
    feature_norm: float

    def __post_init__(self) -> None:
        dimension = validate.dimension("dimension", self.dimension)
        validate.validate_fields(self, validate.positive_scalar, "feature_norm")
        validate.set_frozen(self, dimension=dimension, parameters={"features": (dimension,), "label": ()})

    def score_bounds(self, over: Set) -> tuple[float, float]:
        """Return bounds on |⟨features, centre⟩| and on |⟨features, x − centre⟩| over the set."""
        return self.feature_norm * float(np.linalg.norm(over.centre)), self.feature_norm * over.radius
