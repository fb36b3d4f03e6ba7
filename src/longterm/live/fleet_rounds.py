"""A round of a fleet's rows on JAX: pure functions, compiled as they stand or as kernels of a GPU, tile by tile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import numpy as jnp
from jax.experimental import pallas
from jax.experimental.pallas import triton

from longterm._arrays import Array
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.feedback_check import Limits

TILE = 16
"""Rows that a block of a GPU plays, where all are told."""
FEW_NUMBERS = 256
"""Numbers of a field that a block of a GPU has at once, where a few rows are told: eight for each lane of a warp."""


class PerRow(NamedTuple):
    """Limits: those that are one number for all rows are compiled in, the others are arrays of the fleet."""

    fixed: tuple[float | None, ...]
    varying: tuple[Array, ...]

    @classmethod
    def of(cls, limits: Limits) -> PerRow:
        with jax.enable_x64(True):
            varying = tuple(jnp.asarray(limit) for limit in limits if np.ndim(limit))
        return cls(tuple(None if np.ndim(limit) else float(limit) for limit in limits), varying)


def _limits(fixed: tuple[float | None, ...], varying: tuple[Array, ...]) -> Limits:
    """The limits of the rows whose own ones are given."""
    own = iter(varying)
    return Limits(*(next(own) if limit is None else limit for limit in fixed))


def _sound(after: Any, feedback: Feedback, limits: Limits) -> Array:
    """Per row: what `Limits.acceptable` says, and that no number of the state became infinite; as sums, which fuse."""
    good = jnp.sum(feedback.loss_gradient**2, axis=-1) <= limits.loss_gradient_square
    good &= jnp.sum(feedback.constraint_gradient**2, axis=-1) <= limits.constraint_gradient_square
    good &= jnp.abs(feedback.constraint) <= limits.constraint
    numbers = [field for field in after if jnp.issubdtype(field.dtype, jnp.floating)]
    for field in (*numbers, *(() if feedback.loss is None else (feedback.loss,))):
        row = field if field.ndim == 1 else jnp.sum(field, axis=tuple(range(1, field.ndim)))
        good &= jnp.abs(row) < jnp.inf
    return good


def _told_rows(
    learner: Learner[Any], fixed: Any, state: Any, totals: dict[str, Array], hyper: Any, varying: Any, told: Any
) -> tuple[Any, dict[str, Array], Array]:
    """Rows after a round, and which of them were sound."""
    feedback = Feedback(**told)
    after = learner.with_hyper_arrays(hyper).update(state, feedback)
    return after, _added(totals, feedback), _sound(after, feedback, _limits(fixed, varying))


def _added(totals: dict[str, Array], feedback: Feedback) -> dict[str, Array]:
    """The sums of the rows after a round."""
    worst = feedback.constraint.astype(jnp.float64)
    added = {"signed_violation": worst, "hard_violation": jnp.maximum(worst, 0)}
    return {n: total + added[n] for n, total in totals.items()}


def _answered(answers: Array, sound: Array) -> Array:
    """The row of answers with one more at its end."""
    return jnp.concatenate([answers[1:], sound[None].astype(jnp.int8)])


def tell_all(
    learner: Learner[Any], fixed: Any, state: Any, totals: dict[str, Array], answers: Array, *given: Any
) -> tuple[Any, dict[str, Array], Array]:
    """All rows, into new arrays."""
    after, totals, sound = _told_rows(learner, fixed, state, totals, *given)
    return after, totals, _answered(answers, jnp.all(sound))


def tell_few(
    learner: Learner[Any],
    fixed: Any,
    state: Any,
    totals: dict[str, Array],
    stamps: Array,
    answers: Array,
    hyper: dict[str, Array],
    varying: Any,
    numbers: Array,
    told: Any,
) -> tuple[Any, dict[str, Array], Array, Array]:
    """The rows with these numbers, in place; `stamps` is room to write in, one number for each learner."""
    size = len(state.round)
    rows, sums, own, limits = jax.tree.map(
        lambda field: field.at[numbers].get(mode="clip"), (state, totals, hyper, varying)
    )
    after, sums, sound_rows = _told_rows(learner, fixed, rows, sums, own, limits, told)
    stamps = stamps.at[numbers].set(jnp.arange(len(numbers), dtype=jnp.int32), mode="drop")
    sound = jnp.all(sound_rows) & _named_once(numbers, size, stamps)
    aside = jnp.where(sound, numbers, size)  # rows of a call that is refused go nowhere
    state, totals = jax.tree.map(partial(_scattered, aside), (state, totals), (after, sums))
    return state, totals, stamps, _answered(answers, sound)


def in_turn(
    rule: Callable[..., Any],
    learner: Learner[Any],
    fixed: Any,
    state: Any,
    totals: dict[str, Array],
    stamps: Array,
    answers: Array,
    hyper: dict[str, Array],
    varying: Any,
    calls: tuple[tuple[Array, Any], ...],
) -> Any:
    """Several calls about a few rows, by `tell_few` or `tell_few_in_tiles`, one after another."""
    for numbers, told in calls:
        given = state, totals, stamps, answers, hyper, varying, numbers, told
        state, totals, stamps, answers = rule(learner, fixed, *given)
    return state, totals, stamps, answers


def _named_once(numbers: Array, size: int, stamps: Array) -> Array:
    """Whether each number is a learner's, and no two are: of two rows with one number, one finds the other's place."""
    places = jnp.arange(len(numbers), dtype=jnp.int32)
    return jnp.all((numbers >= 0) & (numbers < size) & (stamps.at[numbers].get(mode="clip") == places))


def _scattered(numbers: Array, field: Array, rows: Array) -> Array:
    """Rows in their places; those that have none are dropped. No place is named twice, so none has to be locked."""
    return field.at[numbers].set(rows, mode="drop", unique_indices=True)


def advance(
    learner: Learner[Any], state: Any, totals: dict[str, Array], hyper: dict[str, Array], numbers: Array, feedback: Any
) -> tuple[Any, dict[str, Array]]:
    """The rows with these numbers, of feedback that was checked."""
    rows, sums, own = jax.tree.map(lambda field: field.at[numbers].get(mode="clip"), (state, totals, hyper))
    after = learner.with_hyper_arrays(own).update(rows, Feedback(**feedback))
    made = after, _added(sums, Feedback(**feedback))
    placed: tuple[Any, dict[str, Array]] = jax.tree.map(partial(_scattered, numbers), (state, totals), made)
    return placed


class Tiles(NamedTuple):
    """How a kernel's blocks see an array of many rows."""

    size: int

    def each(self, array: Any) -> Any:
        """So many rows to a block, one tile after another."""
        return pallas.BlockSpec((self.size, *array.shape[1:]), lambda tile: (tile,) + (0,) * (len(array.shape) - 1))

    def whole(self, array: Any) -> Any:
        """All of it to every block."""
        return pallas.BlockSpec(array.shape, lambda tile: (0,) * len(array.shape))

    def call(self, kernel: Callable[..., None], rows: int, interpret: bool, **options: Any) -> Any:
        """A kernel over all the tiles."""
        return pallas.pallas_call(kernel, grid=(rows // self.size,), interpret=interpret, **options)


def can_be_tiled(given: Any) -> bool:
    """Whether this is a GPU, and rows have a power of two of numbers, which is what its compiler of tiles wants."""
    shapes = [array.shape for array in jax.tree.leaves(given) if array.ndim > 1]
    powers = all(length & (length - 1) == 0 for shape in shapes for length in shape[1:])
    return jax.default_backend() == "gpu" and powers


def tell_all_in_tiles(
    learner: Learner[Any],
    fixed: Any,
    state: Any,
    totals: dict[str, Array],
    answers: Array,
    *others: Any,
    interpret: bool = False,
) -> Any:
    """`tell_all` in one pass over the memory: each block of the GPU plays a few rows, all of the round, by itself.

    Left alone, the compiler reads the feedback once for the checks and once more for the update. Whatever the learner's
    `update` is made of must be known to Pallas, and rows must have a power of two of numbers: else an exception.
    """
    given = state, totals, *others
    rows, tiles = len(state.round), Tiles(TILE)
    if rows % TILE:
        raise ValueError(f"{rows} rows are no tiles of {TILE}")
    inputs, structure = jax.tree.flatten(given)
    told = partial(_told_rows_in_numbers, learner, fixed)
    outputs, returned = jax.tree.flatten(jax.eval_shape(told, *given))

    def seen(array: Any) -> Any:
        return tiles.each(array) if array.shape[:1] == (rows,) else tiles.whole(array)

    def play(*references: Any) -> None:
        read, written = references[: len(inputs)], references[len(inputs) :]
        values = told(*jax.tree.unflatten(structure, [reference[...] for reference in read]))
        for reference, value in zip(written, jax.tree.leaves(values), strict=True):
            reference[...] = value

    made = tiles.call(
        play,
        rows,
        interpret,
        in_specs=[seen(array) for array in inputs],
        out_specs=[seen(array) for array in outputs],
        out_shape=outputs,
    )(*inputs)
    after, totals, sound = jax.tree.unflatten(returned, made)
    return after, totals, _answered(answers, jnp.all(sound > 0))


def tell_few_in_tiles(
    learner: Learner[Any],
    fixed: Any,
    state: Any,
    totals: dict[str, Array],
    stamps: Array,
    answers: Array,
    hyper: dict[str, Array],
    varying: Any,
    numbers: Array,
    told: Any,
    *,
    interpret: bool = False,
) -> Any:
    """`tell_few` in two passes: rows are fetched, played and put aside; then put into their places, if all were sound.

    Left alone, the compiler makes a kernel for every field that is fetched or put back.
    """
    size, count = len(state.round), len(numbers)
    if not count:
        return state, totals, stamps, _answered(answers, jnp.asarray(True))
    widest = max(array.size // len(array) for array in state)
    tiles = Tiles(_power_of_two_in(count, max(FEW_NUMBERS // widest, 1)))
    warps = {} if interpret else {"compiler_params": triton.CompilerParams(num_warps=1 + 3 * (widest > FEW_NUMBERS))}
    kept, structure = jax.tree.flatten((state, totals, hyper, varying))
    news, news_structure = jax.tree.flatten(told)
    rows = [_shape(a, count) if _is_per_row(a, size) else _shape(a) for a in kept]
    play_rows = partial(_told_rows_in_numbers, learner, fixed)
    made = jax.eval_shape(play_rows, *jax.tree.unflatten(structure, rows), told)
    outputs, returned = jax.tree.flatten(made)

    def play(numbers: Any, *references: Any) -> None:
        places = jnp.clip(numbers[...], 0, size - 1)
        fetched = [r[_at(places, r)] if _is_per_row(r, size) else r[...] for r in references[: len(kept)]]
        news = [reference[...] for reference in references[len(kept) : -len(outputs) - 2]]
        values = play_rows(*jax.tree.unflatten(structure, fetched), jax.tree.unflatten(news_structure, news))
        *written, stamped = references[-len(outputs) - 1 :]
        for reference, value in zip(written, jax.tree.leaves(values), strict=True):
            reference[...] = value
        first = pallas.program_id(0).astype(jnp.int32) * tiles.size
        stamped[places] = first + jax.lax.iota(jnp.int32, tiles.size)

    *played, stamps = tiles.call(
        play,
        count,
        interpret,
        in_specs=[tiles.each(numbers), *map(tiles.whole, kept), *map(tiles.each, news), tiles.whole(stamps)],
        out_specs=[*map(tiles.each, outputs), tiles.whole(stamps)],
        out_shape=[*outputs, _shape(stamps)],
        input_output_aliases={1 + len(kept) + len(news): len(outputs)},
        **warps,
    )(numbers, *kept, *news, stamps)
    after, sums, sound_rows = jax.tree.unflatten(returned, played)
    sound = jnp.all(sound_rows > 0) & _named_once(numbers, size, stamps)

    fields, structure = jax.tree.flatten((state, totals))
    new_rows = jax.tree.leaves((after, sums))

    def put_back(sound: Any, numbers: Any, *references: Any) -> None:
        places = numbers[...]
        values = [reference[...] for reference in references[: len(fields)]]

        @pallas.when(sound[0] > 0)
        def _() -> None:
            for reference, value in zip(references[-len(fields) :], values, strict=True):
                reference[_at(places, reference)] = value

    flag = sound.astype(jnp.int32)[None]
    placed = tiles.call(
        put_back,
        count,
        interpret,
        in_specs=[tiles.whole(flag), tiles.each(numbers), *map(tiles.each, new_rows), *map(tiles.whole, fields)],
        out_specs=[tiles.whole(field) for field in fields],
        out_shape=[_shape(field) for field in fields],
        input_output_aliases={2 + len(fields) + place: place for place in range(len(fields))},
        **warps,
    )(flag, numbers, *new_rows, *fields)
    return *jax.tree.unflatten(structure, placed), stamps, _answered(answers, sound)


def _told_rows_in_numbers(*given: Any) -> Any:
    """`_told_rows` with what was sound as numbers: a kernel writes no booleans."""
    after, totals, sound = _told_rows(*given)
    return after, totals, sound.astype(jnp.int32)


def _shape(array: Any, *rows: int) -> Any:
    """Shape and dtype of an array, or of one like it with another number of rows."""
    return jax.ShapeDtypeStruct((*rows, *array.shape[len(rows) :]), array.dtype)  # type: ignore[no-untyped-call]


def _is_per_row(array: Any, size: int) -> bool:
    """Whether an array has a row for each learner."""
    return bool(array.shape[:1] == (size,))


def _at(places: Array, field: Any) -> Any:
    """The rows of a field at these places, as an index."""
    return (places, *(slice(None),) * (len(field.shape) - 1))


def _power_of_two_in(count: int, most: int) -> int:
    """The largest power of two that divides a count and is not above another number."""
    return int(min(count & -count, 1 << (most.bit_length() - 1)))
