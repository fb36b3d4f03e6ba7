"""Validation of stored learners, before anything is made of them.

Kernels check nothing: an index from a heap is where they write. A checksum only says that a file is as somebody wrote
it. So every dtype, length, count, index, order and sign that a kernel relies on is checked here, and no size is
believed that the file does not have the bytes for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray
from longterm.linear_model._average import stretch_length
from longterm.linear_model._feature_scale import CENTRED_NAMES, FACTOR_BOUND, NAMES
from longterm.linear_model._settings import Settings
from longterm.linear_model.kernels.heap import ARITY, bits_for, capacity
from longterm.linear_model.kernels.kernel_state import KernelState
from longterm.linear_model.kernels.layout import (
    FIELDS,
    MIXTURE,
    MIXTURE_FIELDS,
    RESIDUAL,
    RESIDUAL_SCALES,
    WEIGHT_SCALES,
    WEIGHTS,
    Parameters,
)
from longterm.linear_model.kernels.mixture import inverse_rate, place, set_shares
from longterm.linear_model.kernels.round import REACH, RESIDUAL_TOLERANCE
from longterm.theory.scales import BLOCK_TOLERANCE, LONGEST_BLOCK

CLOSE, TINY = 1e-6, 1e-150
"""The relative difference up to which numbers count as the same, and the size below which squares underflow."""
LAST_ROUND = 2**53
"""Rounds are counted exactly up to here, as floats too."""
LARGEST_LOSS = 1e200
"""Larger losses of scales could overflow in a few rounds; gradients are at most 1e90."""
LARGEST_WEIGHT = 1e150
"""No weight and no intercept is as large."""
NO_SHARE = -25.0
"""The logarithm of a share that moves no decision."""
KEYS = frozenset(["settings", "sparse", "level", "seed"])


def require(holds: bool, otherwise: str) -> None:
    """Raise ValueError with this message unless `holds`."""
    if not holds:
        raise ValueError(otherwise)


def checked_settings(specification: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Settings:
    """Return the settings of a stored learner, after all checks. Raise ValueError or TypeError if it is not valid."""
    require(set(specification) == KEYS, f"it has {sorted(map(str, specification))}, not {sorted(KEYS)}")
    require(type(specification["sparse"]) is bool, "sparse is neither true nor false")
    require(type(specification["seed"]) is int, "the seed is not a whole number")
    given, level = specification["settings"], specification["level"]
    require(isinstance(given, dict), "there are no settings")
    require(level is None or (type(level) in (int, float) and abs(level) < math.inf), "the level is not a number")
    vector, said = _array(arrays, "state.vector", np.float64, None), given.get("dimension")
    fits = type(said) is int and said == len(vector)
    require(fits, f"the dimension is {said!r:.40}, and there are numbers for {len(vector)}")
    with np.errstate(all="ignore"):
        settings = Settings(**given)
        sparse = specification["sparse"] and settings.rule == "a-ftrl"
        require(settings.offset == "mean" or level is None, "there is a level, but no interval about it")
        scalars = _checked_scalars(settings, arrays)
        parameters = _parameters(settings, arrays)
        _check_state(settings, parameters, sparse, scalars, arrays)
        mixtures = _array(arrays, "state.mixtures", np.float64, (2, MIXTURE.itemsize // 8))
        _check_mixtures(settings, parameters, scalars, mixtures)
        _check_offset(settings, scalars)
        _check_average(settings, int(scalars["round"]) - 1, arrays)
    known = {f"state.{name}" for name in ("scalars", "mixtures", "vector", *(("entries", "heap") if sparse else ()))}
    known |= {"average.stretches", "average.total"}
    known |= {f"scale.{name}" for name in NAMES} if "scale.factors" in arrays else set()
    known |= {f"scale.{name}" for name in CENTRED_NAMES} if "scale.means" in arrays and not sparse else set()
    require(set(arrays) == known, "it has arrays that no learner has")
    return settings


def _parameters(settings: Settings, arrays: Mapping[str, NDArray[Any]]) -> Parameters:
    """Return the constants of the kernel, with the units of scaled features."""
    if "scale.units" not in arrays:
        return settings.parameters()
    units = _array(arrays, "scale.units", np.float64, (2,)).tolist()
    require(0 < units[0] <= units[1] < math.inf, "the units of the features' scale are not positive")
    return settings.parameters(units)


def _checked_scalars(settings: Settings, arrays: Mapping[str, NDArray[Any]]) -> dict[str, float]:
    """Return the scalars by their names."""
    numbers = _array(arrays, "state.scalars", np.float64, (len(FIELDS),)).tolist()
    scalars: dict[str, float] = {}
    for field, value in zip(FIELDS, numbers, strict=True):
        name = field.name
        require(value == value, f"{name} is not a number")
        require(abs(value) < math.inf or field.reported, f"{name} is infinite")
        require(value >= 0 or field.signed, f"{name} is negative")
        require(field.dtype is not np.int64 or (value <= LAST_ROUND and value == int(value)), f"{name} is no count")
        scalars[name] = value
    require(scalars["round"] >= 1, f"the round is {scalars['round']}")
    require(not 0 < scalars["longest_gradient"] < 1e-162, "longest_gradient is below the root of the smallest square")
    require(scalars["negative_weight"] >= 0 or settings.offset == "mean", "negative_weight is negative")
    return scalars


def _check_state(
    settings: Settings,
    parameters: Parameters,
    sparse: bool,
    scalars: Mapping[str, float],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Check the vector, its norms, and the decision that follows from them."""
    vector = arrays["state.vector"]
    require(bool(np.isfinite(vector).all()), "the vector has numbers that are not finite")
    weight = scalars["multiplier" if settings.rule == "penalised-ftrl" else "multiplier_sum"]
    threshold = parameters.l1 * weight
    left = np.maximum(np.abs(vector) - threshold, 0.0)
    sums = float(left.sum()), float((left * left).sum())
    require(math.isfinite(sums[0]) and math.isfinite(sums[1]), "the vector is too long")
    norms = [scalars[name] + scalars[f"{name}_low"] for name in ("norm_1", "norm_2")]
    if sparse:
        _check_heap(threshold, scalars, arrays)
    else:
        require(scalars["active"] == scalars["live"] == scalars["entries"] == 0, "there is no heap to count")
        require(scalars["norm_1_low"] == scalars["norm_2_low"] == 0, "sums of a dense layout have no low parts")
        close = all(abs(norm - total) <= CLOSE * total + 1e-290 for norm, total in zip(norms, sums, strict=True))
        require(close, "the norms are not those of the vector")
    length = scalars["scale"] * math.sqrt(max(norms[1], 0.0))
    require(length <= parameters.radius * (1 + CLOSE), "the decision is outside of its ball")
    size = scalars["scale"] * abs(norms[0])
    require(size <= 2 * parameters.radius * math.sqrt(len(vector)), "the decision is too long for its ball")
    if settings.intercept_bound > 0:
        require(abs(scalars["intercept"]) <= settings.intercept_bound * (1 + CLOSE), "the intercept is out of bounds")


def _check_heap(threshold: float, scalars: Mapping[str, float], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Check the heap, and the entry beside each coordinate (`kernels.heap`)."""
    lengths = np.abs(arrays["state.vector"])
    dimension = len(lengths)
    heap = _array(arrays, "state.heap", np.uint64, None)
    words = _array(arrays, "state.entries", np.uint64, (dimension,))
    require(len(heap) == scalars["entries"], f"the heap has {len(heap)} entries, not {scalars['entries']:g}")
    require(len(heap) <= capacity(dimension), f"the heap has {len(heap)} entries for {dimension} coordinates")
    ones = (np.uint64(1) << bits_for(dimension)) - np.uint64(1)
    owners = heap & ones
    require(bool(((owners >= 1) & (owners <= dimension)).all()), "an entry of the heap belongs to no coordinate")
    parents = (np.arange(1, len(heap)) - 1) // ARITY
    require(bool((heap[parents] <= heap[1:]).all()), "the heap is not in order")
    (live,) = np.nonzero(words)
    require(bool((words[live] & ones == (live + 1).astype(np.uint64)).all()), "a coordinate has another one's entry")
    require(bool(np.isin(words[live], heap).all()), "a coordinate's entry is not in the heap")
    require(len(live) == scalars["live"], f"{len(live)} entries are live, not {scalars['live']:g}")
    (active,) = np.nonzero(lengths > threshold)
    require(len(active) == scalars["active"], f"{len(active)} coordinates are active, not {scalars['active']:g}")
    if threshold == 0:
        require(len(heap) == 0 and len(live) == 0, "there is a heap, but the budget has never bound")
        return
    longest = lengths[active].view(np.uint64) << np.uint64(1) | ones
    bounds = bool((words[active] - np.uint64(1) <= longest).all())  # no entry, 0, becomes the largest word
    require(bounds, "an active coordinate has no entry, or one above its length")


def _check_mixtures(
    settings: Settings, parameters: Parameters, scalars: Mapping[str, float], stored: NDArray[np.float64]
) -> None:
    """Check both mixtures: shares and factors must be those that the kernels compute."""
    state = KernelState(settings.rule, 1, False)
    state.scalars["reached"] = scalars["reached"]
    state.use(parameters)
    fresh = [state.mixture(number) for number in (WEIGHTS, RESIDUAL)]
    mixtures = np.ascontiguousarray(stored).view(MIXTURE).reshape(-1).view(np.recarray)
    longest = scalars["longest_gradient"], math.sqrt(scalars["intercept_squares"])
    if scalars["first_length"] > 0:  # the priors are those of the radii of the first row
        prior = mixtures[WEIGHTS].prior[: int(WEIGHT_SCALES) + 1]
        require(bool(abs(np.exp(prior).sum() - 1) <= CLOSE), "the priors of the scales do not add up to 1")
        fresh[WEIGHTS].prior[: len(prior)], fresh[WEIGHTS].share[: len(prior)] = prior, np.exp(prior)
    pull = scalars[state.weight_in_force] * parameters.l2
    placed = (
        (scalars["gradient_squares"], pull, scalars["norm_2"] + scalars["norm_2_low"]),
        (scalars["intercept_squares"], 0.0, scalars["intercept_slope"] ** 2),
    )
    counts, tolerance = (int(WEIGHT_SCALES), int(RESIDUAL_SCALES)), (BLOCK_TOLERANCE, RESIDUAL_TOLERANCE)
    factors = []
    for number in (WEIGHTS, RESIDUAL):
        found, count = mixtures[number], counts[number]
        _check_mixture(found, fresh[number], count, longest[number], placed[number][0], tolerance[number])
        again = mixtures[number].copy()
        factors.append(place.py_func(again, count, *placed[number]))
        begun = placed[number][0] > 0 and found.radius[0] > 0
        require(not begun or _close(found.factor, again.factor), "the scales' factors are not those of the state")
        require(begun or not found.factor.any(), "scales have factors before the first gradient")
    if scalars["round"] > 1:
        factor = factors[WEIGHTS]
        bounded = settings.loss == "squared" and scalars["scale"] == FACTOR_BOUND <= factor
        close = abs(scalars["scale"] - factor) <= CLOSE * factor + TINY
        require(bounded or close, "the scale is not that of the mixture")


def _check_mixture(found: Any, fresh: Any, count: int, longest: float, squares: float, tolerance: float) -> None:
    """Check one mixture: its constants, what it has counted, and its shares."""
    for field in MIXTURE_FIELDS:
        numbers = np.atleast_1d(found[field.name])
        require(bool(np.isfinite(numbers).all()), f"{field.name} of the mixture is not finite")
        require(field.signed or bool((numbers >= 0).all()), f"{field.name} of the mixture is negative")
    for name in ("radius", "inverse", "prior"):
        require(_close(found[name], fresh[name]), f"the {name} of the scales is not that of the settings")
    moved = any(found[name][count:].any() for name in ("factor", "pending", "squares"))
    require(not moved, "the expert at 0 of the mixture has moved")
    require(not found.loss[count + 1 :].any() and not found.share[count + 1 :].any(), "the mixture has too many scales")
    require(float(np.abs(found.loss).max()) <= LARGEST_LOSS >= abs(found.pivot), "a scale has lost too much")
    sound = found.cap <= longest * (1 + CLOSE) + TINY and found.clipped_squares <= squares * (1 + CLOSE) + TINY
    require(sound, "cap or clipped_squares of the mixture is above the gradients'")
    alpha, inverse = inverse_rate.py_func(found), fresh.inverse
    require(found.tolerance <= tolerance * alpha * (1 + CLOSE), "the tolerance of the mixture is too large")
    require(found.tilt <= 0 and found.tilt * alpha >= -1 - CLOSE, "the tilt of the mixture is out of bounds")
    pending = np.abs(found.pending * inverse)
    require(bool((pending <= found.tolerance * (1 + CLOSE) + TINY).all()), "pending losses of the scales are too large")
    most = min(found.squares[count - 1] * inverse[count - 1] ** 2, found.cap**2 * LONGEST_BLOCK) * (1 + CLOSE) + TINY
    require(bool((found.squares * inverse**2 <= most).all()), "the scales have more squares than a block")
    if fresh.radius[0] == 0 or not fresh.share.any():
        require(not found.share.any(), "the scales have shares before the first row")
        return
    again = fresh.copy()
    for name in ("cap", "clipped_squares", "pivot", "loss", "share"):
        again[name] = found[name] if alpha > 0 or name != "share" else fresh[name]
    set_shares.py_func(again, count, tolerance)
    sizes = max(float(np.abs(found.loss).max()), abs(float(found.pivot)))
    slack = 1e-12 * sizes * inverse[: count + 1] / alpha if alpha > 0 else 0.0
    wanted, given = (np.maximum(np.log(one[: count + 1]), NO_SHARE) for one in (again.share, found.share))
    require(
        bool((np.abs(given - wanted) <= CLOSE * (1 + np.abs(wanted)) + slack).all()), "the scales' shares are wrong"
    )
    require(abs(float(found.share.sum()) - 1) <= CLOSE, "the scales' shares do not add up to 1")


def _check_offset(settings: Settings, scalars: Mapping[str, float]) -> None:
    """Check the intercept of a mixture: an offset from the labels' weights, and a residual."""
    offset, radius = settings.offset, settings.residual_radius if settings.has_residual else 0.0
    none = settings.intercept_bound == 0 or (offset == "none" and radius == 0)
    require(none, "an intercept with a bound has no residual")
    require(abs(scalars["residual"]) <= radius * (1 + CLOSE), "the residual is out of bounds")
    most = REACH * radius * (1 + CLOSE) if offset == "mean" else 0.0
    require(0 <= scalars["reach"] <= most, "margins reach farther than the targets did")
    first, second, heaviest = (scalars[name] for name in ("positive_weight", "negative_weight", "heaviest"))
    if offset == "none":
        require(first == 0 and second == 0, "there is no offset, but weights for it")
        known = 0.0
    elif offset == "mean":
        require(not settings.classifies, "a mean is that of targets")
        require(first >= heaviest * (1 - CLOSE), "a weight is above the sum of all")
        require(abs(second) <= first * radius * (1 + CLOSE), "the mean of the targets is out of bounds")
        known = second / first if first > 0 else 0.0
    else:
        require(settings.classifies, "log-odds are for two classes")
        require(first + second >= heaviest * (1 - CLOSE), "a weight is above the sum of all")
        half = 0.5 * heaviest
        known = math.log((first + half) / (second + half)) if heaviest > 0 else 0.0
    if settings.intercept_bound == 0:
        away = abs(scalars["intercept"] - known - scalars["residual"])
        require(away <= CLOSE * (abs(known) + radius) + TINY, "the intercept is not offset plus residual")


def _check_average(settings: Settings, rounds: int, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Check the decisions drawn for the average."""
    stretches = int(_array(arrays, "average.stretches", np.int64, (1,))[0])
    most = rounds // stretch_length(settings.dimension) + 1
    require(0 <= stretches <= most, f"{stretches} stretches were drawn from {rounds} rounds")
    total = _array(arrays, "average.total", np.float64, (settings.dimension + 1 if stretches else 0,))
    require(bool((np.abs(total) < stretches * LARGEST_WEIGHT).all()) or stretches == 0, "the average is too large")


def _array(arrays: Mapping[str, NDArray[Any]], name: str, dtype: Any, shape: tuple[int, ...] | None) -> NDArray[Any]:
    """Return the array of this name. Raise ValueError unless it has this dtype and shape; None: any of one axis."""
    found = arrays.get(name)
    require(isinstance(found, np.ndarray), f"{name} is missing")
    assert found is not None
    fits = found.shape == shape if shape is not None else found.ndim == 1
    require(found.dtype == dtype and fits, f"{name} is {found.dtype} of shape {found.shape}, not {shape}")
    return found


def _close(one: FloatArray, other: FloatArray) -> bool:
    """Return True if the numbers are the same up to rounding."""
    return bool((np.abs(one - other) <= CLOSE * np.abs(other) + TINY).all())
