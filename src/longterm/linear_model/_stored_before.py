"""States of earlier versions, brought up to date before they are looked at (`_stored`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.learners._scale_mixture import SCALES
from longterm.linear_model.kernels.layout import MIXED_NUMBERS, NUMBERS
from longterm.linear_model.kernels.mixture import FACTOR, IDLE, INVERSE, OWED, RADIUS, RESIDUAL, ROWS, SHARE
from longterm.linear_model.kernels.vectors import LANES

IN_BLOCKS = MIXED_NUMBERS.index("waits")
"""Numbers from here on are for blocks of rounds, which began with version 5."""


def up_to_date(specification: Mapping[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """A state of version 2 with its reach, what it would have been after its last round; of 3 with a steepness of 0; of
    4 with scales that do not wait, and owe nothing.
    """
    mixed, means, given = arrays.get("game.mixed"), arrays.get("scale.means"), specification.get("settings")
    if isinstance(mixed, np.ndarray) and mixed.shape == (IN_BLOCKS - 1,) and isinstance(given, dict):
        reach = float(given.get("residual_radius", 0.0)) if given.get("offset") == "mean" else 0.0
        mixed = np.append(mixed, reach)
    if isinstance(mixed, np.ndarray) and mixed.shape == (IN_BLOCKS,) and isinstance(given, dict):
        lanes, numbers = arrays.get("game.mixture"), arrays.get("game.numbers")
        if isinstance(lanes, np.ndarray) and lanes.shape == (ROWS, LANES) and isinstance(numbers, np.ndarray):
            weight = NUMBERS.index("multiplier" if given.get("rule") == "penalised-ftrl" else "multiplier_sum")
            unlike = numbers.ndim == 1 and len(numbers) > weight and numbers[weight] * given.get("l2", 0.0) > 0
            paying = _paying_at_once(lanes, bool(unlike))
            arrays = {**arrays, "game.mixed": np.append(mixed, paying[1]), "game.mixture": paying[0]}
    if isinstance(means, np.ndarray) and "scale.steepness" not in arrays:
        arrays = {**arrays, "scale.steepness": np.zeros(means.size + 1)}
    return arrays


def _paying_at_once(lanes: FloatArray, unlike: bool) -> tuple[FloatArray, FloatArray]:
    """The lanes of version 4, and the numbers that they lack; `unlike` says that Λl2 > 0."""
    lanes, last = lanes.copy(), (SCALES - 1, IDLE - 2)
    numbers = dict.fromkeys(MIXED_NUMBERS[IN_BLOCKS:], 0.0)
    for of, first, end in (("", 0, last[0]), ("residual_", RESIDUAL, last[1])):
        numbers[of + "factor"] = float(lanes[FACTOR, end] * lanes[INVERSE, end])
        numbers[of + "mean_radius"] = float(lanes[SHARE, first : end + 1] @ lanes[RADIUS, first : end + 1])
    lanes[FACTOR, SCALES if unlike else 0 :] = 0.0
    lanes[OWED:] = 0.0  # there was room for a round
    return lanes, np.array(list(numbers.values()))
