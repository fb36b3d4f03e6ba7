"""What a theorem gives."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.theory.paper import Bound as Bound


def horizons(rounds: ArrayLike, batch_shape: tuple[int, ...] = ()) -> FloatArray:
    """T as floats, with as many axes of length 1 behind it as the learners of a grid have."""
    T = validate.horizons("rounds", rounds).astype(np.float64)
    return T.reshape(T.shape + (1,) * len(batch_shape))
