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
from longterm.learners._scale_mixture import LONGEST_BLOCK, PACE, PATIENCE, SCALES
from longterm.linear_model._feature_scale import CENTRED, NAMES
from longterm.linear_model._settings import Settings
from longterm.linear_model.kernels.heap import ARITY, room
from longterm.linear_model.kernels.layout import AOGD, MIXED_NUMBERS, PENALISED_FTRL
from longterm.linear_model.kernels.mixture import (
    FACTOR,
    IDLE,
    INVERSE,
    LOSS,
    OWED,
    PRIOR,
    RADIUS,
    RESIDUAL,
    ROWS,
    SHARE,
    SQUARES,
)
from longterm.linear_model.kernels.rule import CODES, CompiledRule, begun_mixture, rule_class, scales_at
from longterm.linear_model.kernels.scale_round import LEAST_SQUARES
from longterm.linear_model.kernels.vectors import LANES

MOVING = ((0, SCALES), (RESIDUAL, IDLE - 1))
"""The lanes of the weights' scales, and of the residual's: without the experts at 0."""
LAST_ROUND = 2**53
"""Rounds are counted exactly up to here, as floats too."""
REPORTED = frozenset(["loss_sum", "signed_violation", "hard_violation", "squared_violation", "bound_sum"])
"""Sums that no round reads: they may have overflowed."""
SIGNED = frozenset(
    ["loss_sum", "signed_violation", "intercept", "intercept_slope", "norm_1_low", "norm_2_low", "pivot"]
) | {"residual_pivot", "residual", "owed", "residual_owed", "tilt", "residual_tilt"}
"""Numbers that may be below 0; so may the sums of a sparse memory, by a rounding."""
CLOSE, LITTLE = 1e-6, 1e-150
"""By how much, relatively, numbers may differ that are the same but for rounding; and where squares underflow."""
NOTHING = -25.0
"""The logarithm of a share that is none: it moves no decision, and kernels do not keep it exact."""
FARTHEST = 1e200
"""Losses of scales that are larger could overflow in a few rounds; gradients are at most 1e90."""
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
    _require(set(specification) == KEYS, f"it has {sorted(map(str, specification))}, not {sorted(KEYS)}")
    for name in ("widens", "sparse"):
        _require(type(specification[name]) is bool, f"{name} is neither true nor false")
    _require(type(specification["seed"]) is int, "the seed is not a whole number")
    given, level = specification["settings"], specification["level"]
    _require(isinstance(given, dict), "the settings are none")
    _require(level is None or (type(level) in (int, float) and abs(level) < math.inf), "the level is not a number")
    made = rule_class(str(given.get("rule")), specification["sparse"])
    vector = _array(arrays, f"game.{made.vector_name}", np.float64)
    dimension = len(vector) // made.numbers_per_coordinate
    said = given.get("dimension")
    fits = type(said) is int and said == dimension and len(vector) == dimension * made.numbers_per_coordinate
    _require(fits, f"the dimension is {said!r:.40}, and there are numbers for {dimension}")
    with np.errstate(all="ignore"):
        settings = Settings(**given)
        widens = settings.given is None and not settings.classifies
        _require(widens or not specification["widens"], "the intercept's interval cannot widen")
        _require(specification["widens"] or level is None, "there is a level, but no interval about it")
        state = {name.removeprefix("game."): array for name, array in arrays.items() if name.startswith("game.")}
        scalars = _checked_scalars(settings, made, state)
        _check_state(settings, made, scalars, state)
        if settings.scales == "one":
            _require(settings.offset == "none" and settings.residual_radius == 0, "one scale has no residual")
        else:
            _check_mixture(settings, scalars, _mixture(state))
            _check_offset(settings, specification["widens"], scalars)
        _check_average(settings, float(level or 0.0), int(scalars["round"]) - 1, arrays, "scale.factors" in arrays)
    mixed = () if settings.scales == "one" else ("mixed", "mixture")
    known = {f"game.{name}" for name in (*made.array_names, "round", "numbers", *mixed)}
    known |= {"average.stretches", "average.total"}
    if settings.scales != "one":
        known |= {f"scale.{name}" for name in NAMES} if "scale.factors" in arrays else set()
        known |= {f"scale.{name}" for name in CENTRED} if "scale.means" in arrays and not made.is_sparse else set()
    _require(set(arrays) == known, "it has arrays that no learner has")
    return settings


def older_layout(specification: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Whether this is a file of the first layout, which has no `intercept_squares`."""
    given, numbers = specification.get("settings"), arrays.get("game.numbers")
    if not isinstance(given, dict) or not isinstance(numbers, np.ndarray):
        return False
    made = rule_class(str(given.get("rule")), specification.get("sparse") is True)
    return numbers.shape == (len(made.numbers) - 1,)


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
        _require(value == value, f"{name} is not a number")
        _require(abs(value) < math.inf or name in REPORTED, f"{name} is infinite")
        signed = name in SIGNED or (made.is_sparse and name in ("norm_1", "norm_2"))
        signed = signed or (name == "negative_weight" and settings.offset == "mean")
        _require(value >= 0 or signed, f"{name} is below 0")
    counts: dict[str, int] = dict(zip(made.counts, whole.tolist(), strict=True))
    _require(1 <= counts["round"] <= LAST_ROUND, f"the round is {counts['round']}")
    return scalars | counts


def _check_state(
    settings: Settings, made: type[CompiledRule], scalars: Mapping[str, float], state: Mapping[str, NDArray[Any]]
) -> None:
    parameters, code = settings.parameters(), CODES[settings.rule]
    vector: FloatArray = state[made.vector_name][:: made.numbers_per_coordinate]
    _require(bool(np.isfinite(vector).all()), f"the {made.vector_name} has numbers that are not finite")
    threshold = parameters.l1 * scalars["multiplier" if code == PENALISED_FTRL else "multiplier_sum"]
    left = np.abs(vector) if code == AOGD else np.maximum(np.abs(vector) - threshold, 0.0)
    sums = float(left.sum()), float((left * left).sum())
    _require(math.isfinite(sums[0]) and math.isfinite(sums[1]), f"the {made.vector_name} is too long")
    if made.is_sparse:
        _check_heap(len(vector), threshold, scalars, state)
        norms = [scalars[name] + scalars[f"{name}_low"] for name in ("norm_1", "norm_2")]
    else:
        norms = [scalars["norm_1"], scalars["norm_2"]]
        close = all(abs(norm - total) <= CLOSE * total + 1e-290 for norm, total in zip(norms, sums, strict=True))
        _require(close, f"the norms are not those of the {made.vector_name}")
    length = scalars["scale"] * math.sqrt(max(norms[1], 0.0))
    _require(length <= parameters.radius * (1 + CLOSE), "the decision is outside of its ball")
    size = scalars["scale"] * abs(norms[0])
    _require(size <= 2 * parameters.radius * math.sqrt(len(vector)), "the decision is too long for its ball")
    if settings.scales == "one" or settings.intercept_bound > 0:
        _require(abs(scalars["intercept"]) <= settings.intercept_bound * (1 + CLOSE), "the intercept is out of bounds")


def _mixture(state: Mapping[str, NDArray[Any]]) -> FloatArray:
    found = state.get("mixture")
    _require(isinstance(found, np.ndarray), "mixture is missing")
    assert found is not None
    fits = found.dtype == np.float64 and found.shape == (ROWS, LANES)
    _require(fits, f"mixture is {found.dtype} of shape {found.shape}")
    return found


def _check_mixture(settings: Settings, scalars: Mapping[str, float], mixture: FloatArray) -> None:
    """What `kernels.mixture` says of the lanes: all of it follows from the scalars and from what the scales have paid."""
    _require(bool(np.isfinite(mixture).all()), "the mixture has numbers that are not finite")
    begun = begun_mixture(settings.parameters(), scalars["first_length"])
    for row, name in ((RADIUS, "radii"), (INVERSE, "inverse radii"), (PRIOR, "priors")):
        _require(_close(mixture[row], begun[row]), f"the {name} of the scales are not those of the settings")
    squares = scalars["gradient_squares"], scalars["intercept_squares"]
    longest = scalars["longest_gradient"], math.sqrt(squares[1])
    exponents, slack, inside = np.empty(LANES), np.empty(LANES), np.arange(LANES) < RESIDUAL
    for lanes, of, most, length in zip((inside, ~inside), ("", "residual_"), squares, longest, strict=True):
        pivot, clip, clipped = (scalars[of + name] for name in ("pivot", "clip", "clipped_squares"))
        sound = clip <= length * (1 + CLOSE) + LITTLE and clipped <= most * (1 + CLOSE) + LITTLE
        _require(sound, f"{of}clip or {of}clipped_squares is above the gradients'")
        rate = math.sqrt(4 * clip**2 + PACE**2 * clipped)
        _check_block(of, scalars, rate)
        sizes = np.append(np.abs(mixture[LOSS, lanes]), abs(pivot))
        _require(bool((sizes <= FARTHEST).all()), "a scale has paid too much")
        per_unit = mixture[INVERSE, lanes] / rate if rate > 0 else np.zeros(int(lanes.sum()))
        exponents[lanes] = mixture[PRIOR, lanes] + (pivot - mixture[LOSS, lanes]) * per_unit
        slack[lanes] = 1e-12 * sizes.max() * per_unit  # of what was rounded away
    share = mixture[SHARE]
    _require(bool(((share >= 0) & (share <= 1 + CLOSE)).all()), "a scale's share is not in [0, 1]")
    for lanes, begins in ((inside, scalars["first_length"] > 0), (~inside, settings.residual_radius > 0)):
        if begins:
            exponent, given = np.maximum(exponents[lanes], NOTHING), np.maximum(np.log(share[lanes]), NOTHING)
            follow = np.abs(given - exponent) <= CLOSE * (1 + np.abs(exponent)) + slack[lanes]
            _require(bool(follow.all()), "the scales' shares are not what they have paid for")
            _require(abs(float(share[lanes].sum()) - 1) <= CLOSE, "the scales' shares do not add up to 1")
    _check_leaders(settings, scalars, mixture)
    zeros = [IDLE - 1, IDLE] if settings.scales == "priced" else [SCALES, IDLE - 1, IDLE]
    _require(not mixture[LOSS, zeros].any(), "a scale of 0 has paid for losses")


def _check_block(of: str, scalars: Mapping[str, float], rate: float) -> None:
    """What was owed and not yet paid when the file was written, by the weights' scales or the residual's."""
    owed, squares, patience, lean = (scalars[of + name] for name in ("owed", "owed_squares", "patience", "tilt"))
    _require(scalars["waits"] in (0.0, 1.0), "scales neither wait nor pay in every round")
    most = scalars["waits"] * max(min(PATIENCE * rate, 0.5 * rate - scalars[of + "clip"]), 0.0) * (1 + CLOSE)
    _require(patience <= most and abs(owed) <= patience * (1 + CLOSE) + LITTLE, f"scales owe more than {of}patience")
    rounds = (scalars["round"] - 1) % LONGEST_BLOCK
    sound = squares <= rounds * (scalars[of + "clip"] * (1 + CLOSE)) ** 2 and owed**2 <= rounds * squares * (1 + CLOSE)
    _require(sound, f"{of}owed_squares is not that of a block")
    _require(-1 - CLOSE <= lean * rate and lean <= 0 and (lean == 0 or rate > 0), f"{of}tilt is out of bounds")


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
    _require(leaders, "the scales' leaders are not those of the state")
    relative, squares = np.zeros(LANES), np.zeros(LANES)
    relative[:SCALES], squares[:SCALES] = mixture[OWED, :SCALES] / radii, mixture[SQUARES, :SCALES] / radii**2
    most = (scalars["patience"], scalars["owed_squares"]) if unlike else (0.0, 0.0)
    sound = bool((np.abs(relative) <= most[0] * (1 + CLOSE) + LITTLE).all()) and not mixture[OWED, SCALES:].any()
    sound = sound and bool(((squares >= 0) & (squares <= most[1] * (1 + CLOSE) + LITTLE)).all())
    sound = sound and not mixture[SQUARES, SCALES:].any()
    sound = sound and (not unlike or abs(relative[SCALES - 1] - owed) <= CLOSE * scalars["patience"] + LITTLE)
    _require(sound, "the scales do not owe what the state says")
    if scalars["round"] > 1:
        mixed = min(float(share @ factors) * (1 + scalars["tilt"] * owed), float(factors[0]))
        _require(abs(scalars["scale"] - mixed) <= CLOSE * mixed + LITTLE, "the scale is not that of the mixture")


def _check_offset(settings: Settings, widens: bool, scalars: Mapping[str, float]) -> None:
    """The intercept of a mixture: an offset from the labels' weights, and a residual."""
    offset, radius = settings.offset, settings.residual_radius
    none = settings.intercept_bound == 0 or (offset == "none" and radius == 0)
    _require(none, "an intercept with a bound has no residual")
    _require(settings.intercept_bound > 0 or widens == (offset == "mean"), "an offset of the mean has an interval")
    _require(abs(scalars["residual"]) <= radius * (1 + CLOSE), "the residual is out of bounds")
    most = radius if offset == "mean" else 0.0
    _require(0 <= scalars["reach"] <= most, "margins reach farther than the targets did")
    first, second, heaviest = (scalars[name] for name in ("positive_weight", "negative_weight", "heaviest"))
    if offset == "none":
        _require(first == 0 and second == 0, "there is no offset, but weights for it")
        known = 0.0
    elif offset == "mean":
        _require(first >= heaviest * (1 - CLOSE), "a weight is above the sum of all")
        _require(abs(second) <= first * radius * (1 + CLOSE), "the mean of the targets is out of bounds")
        known = second / first if first > 0 else 0.0
    else:
        _require(settings.classifies, "log-odds are for two classes")
        _require(first + second >= heaviest * (1 - CLOSE), "a weight is above the sum of all")
        half = 0.5 * heaviest
        known = math.log((first + half) / (second + half)) if heaviest > 0 else 0.0
    if settings.intercept_bound == 0:
        total = known + scalars["residual"]
        away = abs(scalars["intercept"] - total)
        _require(away <= CLOSE * (abs(known) + radius) + LITTLE, "the intercept is not offset and residual")


def _most_intercept(settings: Settings, rounds: int) -> float:
    """How large an intercept can have been, about its level."""
    if settings.offset == "mean":
        return 2 * settings.residual_radius
    return settings.reach + (math.log1p(2 * rounds) if settings.offset == "log-odds" else 0.0)


def _close(one: FloatArray, other: FloatArray) -> bool:
    """The same but for rounding, number by number."""
    return bool((np.abs(one - other) <= CLOSE * np.abs(other) + LITTLE).all())


def _check_heap(
    dimension: int, threshold: float, scalars: Mapping[str, float], state: Mapping[str, NDArray[Any]]
) -> None:
    """What `kernels.heap` says of the heap and of the word beside each coordinate."""
    heap = _array(state, "heap", np.uint64)
    _require(len(heap) == scalars["entries"], f"the heap has {len(heap)} entries, not {scalars['entries']}")
    _require(len(heap) <= room(dimension), f"the heap has {len(heap)} entries for {dimension} coordinates")
    ones = np.uint64((1 << dimension.bit_length()) - 1)
    owners = heap & ones
    _require(bool(((owners >= 1) & (owners <= dimension)).all()), "an entry of the heap belongs to no coordinate")
    parents = (np.arange(1, len(heap)) - 1) // ARITY
    _require(bool((heap[parents] <= heap[1:]).all()), "the heap is not in order")
    words, lengths = state["memory"].view(np.uint64)[1::2], np.abs(state["memory"][::2])
    (live,) = np.nonzero(words)
    _require(bool((words[live] & ones == (live + 1).astype(np.uint64)).all()), "a coordinate has another one's entry")
    _require(bool(np.isin(words[live], heap).all()), "a coordinate's entry is not in the heap")
    _require(len(live) == scalars["live"], f"{len(live)} entries are live, not {scalars['live']}")
    (active,) = np.nonzero(lengths > threshold)
    _require(len(active) == scalars["active"], f"{len(active)} coordinates are active, not {scalars['active']}")
    longest = lengths[active].view(np.uint64) << np.uint64(1) | ones
    # 0, no entry, less 1 is the largest word of all
    bounds = bool((words[active] - np.uint64(1) <= longest).all())
    _require(bounds, "an active coordinate has no entry, or one above its length")


def _check_average(
    settings: Settings, level: float, rounds: int, arrays: Mapping[str, NDArray[Any]], scaled: bool
) -> None:
    stretches = int(_array(arrays, "average.stretches", np.int64, 1)[0])
    length = stretch_length(settings.dimension)
    _require(0 <= stretches <= rounds // length + 1, f"{stretches} stretches were drawn from {rounds} rounds")
    total = _array(arrays, "average.total", np.float64, settings.dimension + 1 if stretches else 0)
    _require(bool(np.isfinite(total).all()), "the average is not finite")
    if stretches:
        largest = float(np.abs(total[:-1]).max()), abs(float(total[-1]))
        bounds = settings.constraint.enclosing_ball().radius, _most_intercept(settings, rounds) + abs(level)
        bounds = (LARGEST_WEIGHT, LARGEST_WEIGHT) if scaled else bounds  # the ball is that of scaled weights
        inside = all(given <= stretches * bound * (1 + CLOSE) for given, bound in zip(largest, bounds, strict=True))
        _require(inside, "the average is outside of the decisions' set")


LARGEST_WEIGHT = 1e150
"""No weight of a scaled feature is as large."""
SHORTEST_STRETCH = 1024


def stretch_length(dimension: int) -> int:
    """L, how many rounds one drawn round of the average stands for."""
    return max(SHORTEST_STRETCH, dimension)


def _array(arrays: Mapping[str, NDArray[Any]], name: str, dtype: Any, length: int | None = None) -> NDArray[Any]:
    """The array of this name, one-dimensional, of this dtype and length."""
    found = arrays.get(name)
    _require(isinstance(found, np.ndarray), f"{name} is missing")
    assert found is not None
    _require(found.dtype == dtype and found.ndim == 1, f"{name} is {found.dtype} of shape {found.shape}")
    if length is not None:
        how = "shorter" if len(found) < length else "longer"
        _require(len(found) == length, f"{name} is {how} than {length} numbers")
    return found


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
