"""Whether what a file says could be a learner: looked at before anything is made of it.

Kernels check nothing: an index from a heap is where they write. A checksum only says that a file is as somebody
wrote it. So every dtype, length, count, index, order and sign that a kernel relies on is looked at here, and no size is
believed that the file does not have the bytes for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.linear_model._feature_scale import CENTRED, NAMES
from longterm.linear_model._settings import Settings
from longterm.linear_model._stored_scales import CLOSE, LITTLE, check_mixture, require
from longterm.linear_model.kernels.heap import ARITY, room
from longterm.linear_model.kernels.layout import AOGD, MIXED_NUMBERS, PENALISED_FTRL
from longterm.linear_model.kernels.round import FARTHER
from longterm.linear_model.kernels.rule import CODES, CompiledRule, rule_class

LAST_ROUND = 2**53
"""Rounds are counted exactly up to here, as floats too."""
REPORTED = frozenset(["loss_sum", "signed_violation", "hard_violation", "squared_violation", "bound_sum"])
"""Sums that no round reads: they may have overflowed."""
SIGNED = frozenset(
    ["loss_sum", "signed_violation", "intercept", "intercept_slope", "norm_1_low", "norm_2_low", "pivot"]
) | {"residual_pivot", "residual", "owed", "residual_owed", "tilt", "residual_tilt"}
"""Numbers that may be below 0; so may the sums of a sparse memory, by a rounding."""
KEYS = frozenset(["settings", "widens", "sparse", "level", "seed"])


def checked_settings(specification: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Settings:
    """The settings of a stored learner; ValueError or TypeError, in words, if it is none.

    Parameters
    ----------
    specification : mapping
        What a snapshot has as JSON.
    arrays : mapping of str to ndarray
        What it has as arrays.

    Returns
    -------
    Settings
        All of it has been looked at: memory may be taken, and rounds played.
    """
    require(set(specification) == KEYS, f"it has {sorted(map(str, specification))}, not {sorted(KEYS)}")
    for name in ("widens", "sparse"):
        require(type(specification[name]) is bool, f"{name} is neither true nor false")
    require(type(specification["seed"]) is int, "the seed is not a whole number")
    given, level = specification["settings"], specification["level"]
    require(isinstance(given, dict), "the settings are none")
    require(level is None or (type(level) in (int, float) and abs(level) < math.inf), "the level is not a number")
    made = rule_class(str(given.get("rule")), specification["sparse"])
    vector = _array(arrays, f"game.{made.vector_name}", np.float64)
    dimension = len(vector) // made.numbers_per_coordinate
    said = given.get("dimension")
    fits = type(said) is int and said == dimension and len(vector) == dimension * made.numbers_per_coordinate
    require(fits, f"the dimension is {said!r:.40}, and there are numbers for {dimension}")
    with np.errstate(all="ignore"):
        settings = Settings(**given)
        widens = settings.given is None and not settings.classifies
        require(widens or not specification["widens"], "the intercept's interval cannot widen")
        require(specification["widens"] or level is None, "there is a level, but no interval about it")
        state = {name.removeprefix("game."): array for name, array in arrays.items() if name.startswith("game.")}
        scalars = _checked_scalars(settings, made, state)
        _check_state(settings, made, scalars, state)
        if settings.scales == "one":
            require(settings.offset == "none" and settings.residual_radius == 0, "one scale has no residual")
        else:
            check_mixture(settings, scalars, state)
            _check_offset(settings, specification["widens"], scalars)
        _check_average(settings, float(level or 0.0), int(scalars["round"]) - 1, arrays, "scale.factors" in arrays)
    mixed = () if settings.scales == "one" else ("mixed", "mixture")
    known = {f"game.{name}" for name in (*made.array_names, "round", "numbers", *mixed)}
    known |= {"average.stretches", "average.total"}
    if settings.scales != "one":
        known |= {f"scale.{name}" for name in NAMES} if "scale.factors" in arrays else set()
        known |= {f"scale.{name}" for name in CENTRED} if "scale.means" in arrays and not made.is_sparse else set()
    require(set(arrays) == known, "it has arrays that no learner has")
    return settings


def _checked_scalars(
    settings: Settings, made: type[CompiledRule], state: Mapping[str, NDArray[Any]]
) -> dict[str, float]:
    whole = _array(state, "round", np.int64, len(made.counts))
    numbers = _array(state, "numbers", np.float64, len(made.numbers))
    scalars: dict[str, float] = dict(zip(made.numbers, numbers.tolist(), strict=True))
    if settings.scales != "one":
        mixed = _array(state, "mixed", np.float64, len(MIXED_NUMBERS))
        scalars |= dict(zip(MIXED_NUMBERS, mixed.tolist(), strict=True))
    for name, value in scalars.items():
        require(value == value, f"{name} is not a number")
        require(abs(value) < math.inf or name in REPORTED, f"{name} is infinite")
        signed = name in SIGNED or (made.is_sparse and name in ("norm_1", "norm_2"))
        signed = signed or (name == "negative_weight" and settings.offset == "mean")
        require(value >= 0 or signed, f"{name} is below 0")
    counts: dict[str, int] = dict(zip(made.counts, whole.tolist(), strict=True))
    require(1 <= counts["round"] <= LAST_ROUND, f"the round is {counts['round']}")
    return scalars | counts


def _check_state(
    settings: Settings, made: type[CompiledRule], scalars: Mapping[str, float], state: Mapping[str, NDArray[Any]]
) -> None:
    parameters, code = settings.parameters(), CODES[settings.rule]
    vector: FloatArray = state[made.vector_name][:: made.numbers_per_coordinate]
    require(bool(np.isfinite(vector).all()), f"the {made.vector_name} has numbers that are not finite")
    threshold = parameters.l1 * scalars["multiplier" if code == PENALISED_FTRL else "multiplier_sum"]
    left = np.abs(vector) if code == AOGD else np.maximum(np.abs(vector) - threshold, 0.0)
    sums = float(left.sum()), float((left * left).sum())
    require(math.isfinite(sums[0]) and math.isfinite(sums[1]), f"the {made.vector_name} is too long")
    if made.is_sparse:
        _check_heap(len(vector), threshold, scalars, state)
        norms = [scalars[name] + scalars[f"{name}_low"] for name in ("norm_1", "norm_2")]
    else:
        norms = [scalars["norm_1"], scalars["norm_2"]]
        close = all(abs(norm - total) <= CLOSE * total + 1e-290 for norm, total in zip(norms, sums, strict=True))
        require(close, f"the norms are not those of the {made.vector_name}")
    length = scalars["scale"] * math.sqrt(max(norms[1], 0.0))
    require(length <= parameters.radius * (1 + CLOSE), "the decision is outside of its ball")
    size = scalars["scale"] * abs(norms[0])
    require(size <= 2 * parameters.radius * math.sqrt(len(vector)), "the decision is too long for its ball")
    if settings.scales == "one" or settings.intercept_bound > 0:
        require(abs(scalars["intercept"]) <= settings.intercept_bound * (1 + CLOSE), "the intercept is out of bounds")


def _check_offset(settings: Settings, widens: bool, scalars: Mapping[str, float]) -> None:
    """The intercept of a mixture: an offset from the labels' weights, and a residual."""
    offset, radius = settings.offset, settings.residual_radius
    none = settings.intercept_bound == 0 or (offset == "none" and radius == 0)
    require(none, "an intercept with a bound has no residual")
    require(settings.intercept_bound > 0 or widens == (offset == "mean"), "an offset of the mean has an interval")
    require(abs(scalars["residual"]) <= radius * (1 + CLOSE), "the residual is out of bounds")
    most = FARTHER * radius * (1 + CLOSE) if offset == "mean" else 0.0
    require(0 <= scalars["reach"] <= most, "margins reach farther than the targets did")
    first, second, heaviest = (scalars[name] for name in ("positive_weight", "negative_weight", "heaviest"))
    if offset == "none":
        require(first == 0 and second == 0, "there is no offset, but weights for it")
        known = 0.0
    elif offset == "mean":
        require(first >= heaviest * (1 - CLOSE), "a weight is above the sum of all")
        require(abs(second) <= first * radius * (1 + CLOSE), "the mean of the targets is out of bounds")
        known = second / first if first > 0 else 0.0
    else:
        require(settings.classifies, "log-odds are for two classes")
        require(first + second >= heaviest * (1 - CLOSE), "a weight is above the sum of all")
        half = 0.5 * heaviest
        known = math.log((first + half) / (second + half)) if heaviest > 0 else 0.0
    if settings.intercept_bound == 0:
        total = known + scalars["residual"]
        away = abs(scalars["intercept"] - total)
        require(away <= CLOSE * (abs(known) + radius) + LITTLE, "the intercept is not offset and residual")


def _most_intercept(settings: Settings, rounds: int) -> float:
    """How large an intercept can have been, about its level."""
    if settings.offset == "mean":
        return 2 * settings.residual_radius
    return settings.reach + (math.log1p(2 * rounds) if settings.offset == "log-odds" else 0.0)


def _check_heap(
    dimension: int, threshold: float, scalars: Mapping[str, float], state: Mapping[str, NDArray[Any]]
) -> None:
    """What `kernels.heap` says of the heap and of the word beside each coordinate."""
    heap = _array(state, "heap", np.uint64)
    require(len(heap) == scalars["entries"], f"the heap has {len(heap)} entries, not {scalars['entries']}")
    require(len(heap) <= room(dimension), f"the heap has {len(heap)} entries for {dimension} coordinates")
    ones = np.uint64((1 << dimension.bit_length()) - 1)
    owners = heap & ones
    require(bool(((owners >= 1) & (owners <= dimension)).all()), "an entry of the heap belongs to no coordinate")
    parents = (np.arange(1, len(heap)) - 1) // ARITY
    require(bool((heap[parents] <= heap[1:]).all()), "the heap is not in order")
    words, lengths = state["memory"].view(np.uint64)[1::2], np.abs(state["memory"][::2])
    (live,) = np.nonzero(words)
    require(bool((words[live] & ones == (live + 1).astype(np.uint64)).all()), "a coordinate has another one's entry")
    require(bool(np.isin(words[live], heap).all()), "a coordinate's entry is not in the heap")
    require(len(live) == scalars["live"], f"{len(live)} entries are live, not {scalars['live']}")
    (active,) = np.nonzero(lengths > threshold)
    require(len(active) == scalars["active"], f"{len(active)} coordinates are active, not {scalars['active']}")
    longest = lengths[active].view(np.uint64) << np.uint64(1) | ones
    # 0, no entry, less 1 is the largest word of all
    bounds = bool((words[active] - np.uint64(1) <= longest).all())
    require(bounds, "an active coordinate has no entry, or one above its length")


def _check_average(
    settings: Settings, level: float, rounds: int, arrays: Mapping[str, NDArray[Any]], scaled: bool
) -> None:
    stretches = int(_array(arrays, "average.stretches", np.int64, 1)[0])
    length = stretch_length(settings.dimension)
    require(0 <= stretches <= rounds // length + 1, f"{stretches} stretches were drawn from {rounds} rounds")
    total = _array(arrays, "average.total", np.float64, settings.dimension + 1 if stretches else 0)
    require(bool(np.isfinite(total).all()), "the average is not finite")
    if stretches:
        largest = float(np.abs(total[:-1]).max()), abs(float(total[-1]))
        bounds = settings.constraint.enclosing_ball().radius, _most_intercept(settings, rounds) + abs(level)
        bounds = (LARGEST_WEIGHT, LARGEST_WEIGHT) if scaled else bounds  # the ball is that of scaled weights
        inside = all(given <= stretches * bound * (1 + CLOSE) for given, bound in zip(largest, bounds, strict=True))
        require(inside, "the average is outside of the decisions' set")


LARGEST_WEIGHT = 1e150
"""No weight of a scaled feature is as large."""
SHORTEST_STRETCH = 1024


def stretch_length(dimension: int) -> int:
    """L, how many rounds one drawn round of the average stands for."""
    return max(SHORTEST_STRETCH, dimension)


def _array(arrays: Mapping[str, NDArray[Any]], name: str, dtype: Any, length: int | None = None) -> NDArray[Any]:
    """The array of this name, one-dimensional, of this dtype and length."""
    found = arrays.get(name)
    require(isinstance(found, np.ndarray), f"{name} is missing")
    assert found is not None
    require(found.dtype == dtype and found.ndim == 1, f"{name} is {found.dtype} of shape {found.shape}")
    if length is not None:
        how = "shorter" if len(found) < length else "longer"
        require(len(found) == length, f"{name} is {how} than {length} numbers")
    return found
