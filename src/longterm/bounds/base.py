"""What a theorem gives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.theory.paper import Bound  # noqa: F401


class OldBound(NamedTuple):
    """What a theorem promises at each horizon."""

    regret: FloatArray
    """Upper bound on Σ f_t(x_t) − f_t(x*)."""
    violation: FloatArray
    """Upper bound on the violation that the theorem speaks of, for A-OGD the signed Σ g(x_t)."""


def horizons(rounds: ArrayLike, batch_shape: tuple[int, ...] = ()) -> FloatArray:
    """T as floats, with as many axes of length 1 behind it as the learners of a grid have."""
    T = validate.horizons("rounds", rounds).astype(np.float64)
    return T.reshape(T.shape + (1,) * len(batch_shape))
