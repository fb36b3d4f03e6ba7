"""The rounds that an experiment records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def recorded_rounds(rounds: int, record: int) -> NDArray[np.int64]:
    """Return the rounds to record: 1 and T, half of the others evenly spaced, half evenly on a logarithmic scale.

    Examples
    --------
    >>> from longterm.lab.experiments.recorded_rounds import recorded_rounds
    >>> recorded_rounds(1000, 8)
    array([   1,   10,  100,  250,  500,  750, 1000])
    """
    half = max(record // 2, 1)
    wanted = np.concatenate([np.geomspace(1, rounds, half), np.linspace(0, rounds, half + 1)[1:]])
    return np.unique(np.maximum(np.rint(wanted), 1).astype(np.int64))


def logged_rounds(rounds: int) -> NDArray[np.int64]:
    """Return the rounds over which the paper's Figure 4 sums g: 8, 16, 32, …, and T.

    Examples
    --------
    >>> from longterm.lab.experiments.recorded_rounds import logged_rounds
    >>> logged_rounds(100)
    array([  8,  16,  32,  64, 100])
    """
    powers = 2 ** np.arange(3, max(int(rounds).bit_length(), 3), dtype=np.int64)
    return np.unique(np.append(powers[powers < rounds], rounds))
