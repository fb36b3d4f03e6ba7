"""Validation of a stored mixture of scales, for `_stored`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.learners.multi_scale_hedge import BLOCK_TOLERANCE, LONGEST_BLOCK, PACE, SCALES
from longterm.linear_model._feature_scale import MOST_FACTOR
from longterm.linear_model._settings import Settings
from longterm.linear_model.kernels.layout import PENALISED_FTRL
from longterm.linear_model.kernels.mixture import (
    FACTOR,
    IDLE,
    INVERSE,
    LEAST_SQUARES,
    LOSS,
    OWED,
    PRIOR,
    RADIUS,
    RESIDUAL,
    RESIDUAL_PATIENCE,
    ROWS,
    SHARE,
    SQUARES,
)
from longterm.linear_model.kernels.rule import CODES, begun_mixture, scales_at
from longterm.linear_model.kernels.vectors import LANES

CLOSE, LITTLE = 1e-6, 1e-150
"""By how much, relatively, numbers may differ that are the same but for rounding; and where squares underflow."""
NOTHING = -25.0
"""The logarithm of a share that is none: it moves no decision, and kernels do not keep it exact."""
FARTHEST = 1e200
"""Losses of scales that are larger could overflow in a few rounds; gradients are at most 1e90."""
MOVING = ((0, SCALES), (RESIDUAL, IDLE - 1))
"""The lanes of the weights' scales, and of the residual's: without the experts at 0."""


def _mixture(state: Mapping[str, NDArray[Any]]) -> FloatArray:
    found = state.get("mixture")
    require(isinstance(found, np.ndarray), "mixture is missing")
    assert found is not None
    fits = found.dtype == np.float64 and found.shape == (ROWS, LANES)
    require(fits, f"mixture is {found.dtype} of shape {found.shape}")
    return found


def check_mixture(settings: Settings, scalars: Mapping[str, float], state: Mapping[str, NDArray[Any]]) -> None:
    """ValueError unless the lanes are as `kernels.mixture` says: all follows from the scalars and what scales paid."""
    mixture = _mixture(state)
    require(bool(np.isfinite(mixture).all()), "the mixture has numbers that are not finite")
    begun = begun_mixture(settings.parameters(), scalars["first_length"])
    for row, name in ((RADIUS, "radii"), (INVERSE, "inverse radii"), (PRIOR, "priors")):
        require(_close(mixture[row], begun[row]), f"the {name} of the scales are not those of the settings")
    squares = scalars["gradient_squares"], scalars["intercept_squares"]
    longest = scalars["longest_gradient"], math.sqrt(squares[1])
    exponents, slack, inside = np.empty(LANES), np.empty(LANES), np.arange(LANES) < RESIDUAL
    for lanes, of, most, length in zip((inside, ~inside), ("", "residual_"), squares, longest, strict=True):
        pivot, clip, clipped = (scalars[of + name] for name in ("pivot", "clip", "clipped_squares"))
        sound = clip <= length * (1 + CLOSE) + LITTLE and clipped <= most * (1 + CLOSE) + LITTLE
        require(sound, f"{of}clip or {of}clipped_squares is above the gradients'")
        rate = math.sqrt(4 * clip**2 + PACE**2 * clipped)
        _check_block(of, scalars, rate)
        sizes = np.append(np.abs(mixture[LOSS, lanes]), abs(pivot))
        require(bool((sizes <= FARTHEST).all()), "a scale has paid too much")
        per_unit = mixture[INVERSE, lanes] / rate if rate > 0 else np.zeros(int(lanes.sum()))
        exponents[lanes] = mixture[PRIOR, lanes] + (pivot - mixture[LOSS, lanes]) * per_unit
        slack[lanes] = 1e-12 * sizes.max() * per_unit  # of what was rounded away
    share = mixture[SHARE]
    require(bool(((share >= 0) & (share <= 1 + CLOSE)).all()), "a scale's share is not in [0, 1]")
    for lanes, begins in ((inside, scalars["first_length"] > 0), (~inside, settings.residual_radius > 0)):
        if begins:
            exponent, given = np.maximum(exponents[lanes], NOTHING), np.maximum(np.log(share[lanes]), NOTHING)
            follow = np.abs(given - exponent) <= CLOSE * (1 + np.abs(exponent)) + slack[lanes]
            require(bool(follow.all()), "the scales' shares are not what they have paid for")
            require(abs(float(share[lanes].sum()) - 1) <= CLOSE, "the scales' shares do not add up to 1")
    _check_leaders(settings, scalars, mixture)
    zeros = [IDLE - 1, IDLE] if settings.scales == "priced" else [SCALES, IDLE - 1, IDLE]
    require(not mixture[LOSS, zeros].any(), "a scale of 0 has paid for losses")


def _check_block(of: str, scalars: Mapping[str, float], rate: float) -> None:
    """What was owed and not yet paid when the file was written, by the weights' scales or the residual's."""
    owed, squares, patience, lean = (scalars[of + name] for name in ("owed", "owed_squares", "patience", "tilt"))
    require(scalars["waits"] in (0.0, 1.0), "scales neither wait nor pay in every round")
    share = RESIDUAL_PATIENCE if of else BLOCK_TOLERANCE
    most = scalars["waits"] * max(min(share * rate, 0.5 * rate - scalars[of + "clip"]), 0.0) * (1 + CLOSE)
    require(patience <= most and abs(owed) <= patience * (1 + CLOSE) + LITTLE, f"scales owe more than {of}patience")
    rounds = (scalars["round"] - 1) % LONGEST_BLOCK
    each = min(2 * patience, scalars[of + "clip"]) * (1 + CLOSE)  # what is owed never left ±patience
    sound = squares <= rounds * each**2 and owed**2 <= rounds * squares * (1 + CLOSE) + LITTLE
    require(sound, f"{of}owed_squares is not that of a block")
    require(lean * rate >= -1 - CLOSE and lean <= 0 and (lean == 0 or rate > 0), f"{of}tilt is out of bounds")


def _check_leaders(settings: Settings, scalars: Mapping[str, float], mixture: FloatArray) -> None:
    """s_k of the weights' scales and of the residual's, as `place_scales` and `place_residual` have them; and s."""
    factors, pull = np.zeros(SCALES), 0.0
    radii, share, owed = mixture[RADIUS, :SCALES], mixture[SHARE, :SCALES], scalars["owed"]
    if scalars["gradient_squares"] > 0:
        weight = scalars["multiplier" if CODES[settings.rule] == PENALISED_FTRL else "multiplier_sum"]
        pull = weight * settings.parameters().l2
        norm_2 = scalars["norm_2"] + scalars.get("norm_2_low", 0.0)
        factors = scales_at(mixture, scalars["gradient_squares"], pull, norm_2)
    lanes, unlike = np.zeros(LANES), pull > 0
    lanes[:SCALES] = factors if unlike else 0.0
    means = [float(mixture[SHARE, first:last] @ mixture[RADIUS, first:last]) for first, last in MOVING]
    size = max(scalars["intercept_squares"], scalars["intercept_slope"] ** 2)
    each = 1 / math.sqrt(size) if settings.residual_radius > 0 and size > LEAST_SQUARES else 0.0
    wanted = np.array([factors[-1] / radii[-1], each, *means])
    names = ("factor", "residual_factor", "mean_radius", "residual_mean_radius")
    found = np.array([scalars[name] for name in names])
    if unlike and scalars["mean_radius"] == 0:
        wanted[2] = 0.0
    leaders = _close(mixture[FACTOR], lanes) and _close(found, wanted)
    require(leaders, "the scales' leaders are not those of the state")
    relative, squares = np.zeros(LANES), np.zeros(LANES)
    relative[:SCALES], squares[:SCALES] = mixture[OWED, :SCALES] / radii, mixture[SQUARES, :SCALES] / radii**2
    most = (scalars["patience"], scalars["owed_squares"]) if unlike else (0.0, 0.0)
    sound = bool((np.abs(relative) <= most[0] * (1 + CLOSE) + LITTLE).all()) and not mixture[OWED, SCALES:].any()
    sound = sound and bool(((squares >= 0) & (squares <= most[1] * (1 + CLOSE) + LITTLE)).all())
    sound = sound and not mixture[SQUARES, SCALES:].any()
    sound = sound and (not unlike or abs(relative[SCALES - 1] - owed) <= CLOSE * scalars["patience"] + LITTLE)
    require(sound, "the scales do not owe what the state says")
    if scalars["round"] > 1:
        mixed = min(float(share @ factors) * (1 + scalars["tilt"] * owed), float(factors[0]))
        cut = settings.loss == "squared" and scalars["scale"] == MOST_FACTOR <= mixed
        close = abs(scalars["scale"] - mixed) <= CLOSE * mixed + LITTLE
        require(cut or close, "the scale is not that of the mixture")


def _close(one: FloatArray, other: FloatArray) -> bool:
    """The same but for rounding, number by number."""
    return bool((np.abs(one - other) <= CLOSE * np.abs(other) + LITTLE).all())


def require(holds: bool, otherwise: str) -> None:
    """ValueError, in these words, unless it holds."""
    if not holds:
        raise ValueError(otherwise)
