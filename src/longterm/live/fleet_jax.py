"""The rows of a fleet on JAX: gathered, updated and scattered back in one compiled call."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import Array
from longterm.learners.base import Learner
from longterm.learners.checks import FeedbackCheck, Limits
from longterm.learners.feedback import Feedback

try:
    import jax
    from jax import numpy as jnp
    from jax.experimental import pallas
except ImportError as error:
    raise ImportError("a fleet with engine='jax' needs JAX: pip install 'longterm[jax]'") from error


TILE = 16
"""Rows that a block of a GPU plays."""


class JaxRows:
    """The rows of a fleet in JAX arrays. Batches are filled up to a power of two, so that few sizes are compiled."""

    def __init__(self, learner: Learner[Any], state: Any, totals: dict[str, NDArray[np.float64]]) -> None:
        self._learner = learner
        with jax.enable_x64(True):
            self._state = jax.tree.map(jnp.asarray, state)
            self._totals = jax.tree.map(jnp.asarray, totals)
            self._hyper = {path: jnp.asarray(array) for path, array in learner.hyper_arrays().items()}
            self._stamps = jnp.zeros(len(state.round), dtype=jnp.int32)
        self._compiled = jax.jit(partial(_advance, learner), donate_argnums=(0, 1))
        # All of them: into new buffers, so that the old ones are there if a row is refused. A few: in place.
        self._all: Any = None
        self._few = jax.jit(partial(_tell_few, learner), donate_argnums=(0, 1, 2))
        self._limits: Any = None
        self._before: deque[tuple[Any, dict[str, Array]]] = deque()
        """States before calls about all rows whose answers are not known yet, oldest first."""

    @property
    def state(self) -> Any:
        """All rows, as NumPy arrays."""
        return jax.tree.map(np.asarray, self._state)

    @property
    def totals(self) -> dict[str, NDArray[np.float64]]:
        """The sums kept for each row, as NumPy arrays."""
        return {name: np.asarray(total) for name, total in self._totals.items()}

    def decisions(self, numbers: NDArray[np.int64] | None) -> NDArray[Any]:
        """X of these rows."""
        with jax.enable_x64(True):
            x = self._learner.ask(self._state)
            return np.array(x if numbers is None else x[jnp.asarray(numbers)])

    def decisions_on_device(self, numbers: Any) -> Any:
        """X of these rows, copied, where it is."""
        with jax.enable_x64(True):
            x = self._learner.ask(self._state)
            return jnp.copy(x) if numbers is None else x[jnp.asarray(numbers)]

    def tell_on_device(self, feedback: Feedback, numbers: Any, template: NDArray[Any]) -> Any:
        """Check and apply without leaving the device; whether all rows, and their numbers, were sound.

        All that ever comes back to the host is this one answer. Where all rows are told they are taken to be sound: a
        call that is found not to be is undone by `undo`. A few are updated in place, or not at all.
        """
        with jax.enable_x64(True):
            if self._limits is None:
                limits = Limits.declared(self._learner, template)
                self._limits = Limits(*(jnp.asarray(limit, dtype=template.dtype) for limit in limits))
            told = {
                n: v if isinstance(v, jax.Array) else jax_array(v)
                for n, v in zip(Feedback._fields, feedback, strict=True)
                if not (v is None or callable(v))
            }
            if numbers is None:
                given = self._state, self._totals, self._hyper, self._limits, told
                if self._all is None:
                    self._all = self._compiled_for_all(given)
                state, totals, answer = self._all(*given)
                self._before.append((self._state, self._totals))
                self._state, self._totals = state, totals
                return answer
            # What is updated in place cannot be undone: no call before this one may still be open.
            self._state, self._totals, self._stamps, answer = self._few(
                self._state, self._totals, self._stamps, self._hyper, self._limits, jax_array(numbers), told
            )
            return answer

    def _compiled_for_all(self, given: Any) -> Any:
        """What tells all rows: in tiles where there is a GPU that can, else as the compiler thinks best."""
        plain = jax.jit(partial(_tell_all, self._learner))
        shapes = [array.shape for array in jax.tree.leaves(given) if array.ndim > 1]
        powers = all(length & (length - 1) == 0 for shape in shapes for length in shape[1:])
        if jax.default_backend() != "gpu" or not powers or len(self._state.round) % TILE:
            return plain
        tiled = jax.jit(partial(tell_all_in_tiles, self._learner))
        try:
            tiled.lower(*given).compile()
        except Exception:  # whatever Pallas says of an operation that it does not know
            return plain
        return tiled

    def confirm(self) -> None:
        """The oldest call about all rows was sound: what was before it is not needed any more."""
        self._before.popleft()

    def undo(self) -> None:
        """The oldest call about all rows that is not confirmed was not sound: back to before it."""
        self._state, self._totals = self._before.popleft()
        self._before.clear()

    def tell(
        self, numbers: NDArray[np.int64] | None, feedback: Feedback, make_check: Callable[[], FeedbackCheck]
    ) -> None:
        """Check on the host, then apply."""
        feedback = make_check().accept(feedback, None)
        size = len(self._state.round)
        chosen = np.arange(size) if numbers is None else numbers
        missing = (1 << max(len(chosen) - 1, 0).bit_length()) - len(chosen)
        arrays = {n: v for n, v in feedback._asdict().items() if v is not None and not callable(v)}
        with jax.enable_x64(True):
            # A filled-up row has the number `size`, which names no learner: what is scattered there is dropped.
            padded = np.concatenate([chosen, np.full(missing, size)])
            filled = {n: np.concatenate([v, np.zeros((missing, *v.shape[1:]), v.dtype)]) for n, v in arrays.items()}
            self._state, self._totals = self._compiled(self._state, self._totals, self._hyper, padded, filled)


def is_on_device(feedback: Feedback) -> bool:
    """Whether what was told is in arrays of JAX, or of another library that can hand them over (DLPack)."""
    gradient = feedback.loss_gradient
    return isinstance(gradient, jax.Array) or (hasattr(gradient, "__dlpack__") and not isinstance(gradient, np.ndarray))


def jax_array(value: Any) -> Any:
    """The same numbers as an array of JAX, not copied where that can be helped."""
    if isinstance(value, jax.Array):
        return value
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
        return jnp.asarray(value)
    return jnp.from_dlpack(value)


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
    learner: Learner[Any], state: Any, totals: dict[str, Array], hyper: dict[str, Array], limits: Limits, told: Any
) -> tuple[Any, dict[str, Array], Array]:
    """Rows after a round, and which of them were sound."""
    feedback = Feedback(**told)
    after = learner.with_hyper_arrays(hyper).update(state, feedback)
    worst = feedback.constraint.astype(jnp.float64)
    added = {"signed_violation": worst, "hard_violation": jnp.maximum(worst, 0)}
    return after, {n: total + added[n] for n, total in totals.items()}, _sound(after, feedback, limits)


def _tell_all(learner: Learner[Any], *given: Any) -> tuple[Any, dict[str, Array], Array]:
    after, totals, sound = _told_rows(learner, *given)
    return after, totals, jnp.all(sound)


def tell_all_in_tiles(learner: Learner[Any], *given: Any, interpret: bool = False) -> Any:
    """`_tell_all` in one pass over the memory: each block of the GPU plays a few rows, all of the round, by itself.

    Left alone, the compiler reads the feedback once for the checks and once more for the update. Whatever the learner's
    `update` is made of must be known to Pallas, and rows must have a power of two of numbers: else an exception.
    """
    state = given[0]
    rows = len(state.round)
    inputs, structure = jax.tree.flatten(given)

    def told_rows(*given: Any) -> Any:
        after, totals, sound = _told_rows(learner, *given)
        return after, totals, sound.astype(jnp.int32)

    outputs, returned = jax.tree.flatten(jax.eval_shape(told_rows, *given))

    def whole_rows(array: Any) -> Any:
        if array.shape[:1] != (rows,):
            return pallas.BlockSpec(array.shape, lambda tile: (0,) * len(array.shape))
        return pallas.BlockSpec((TILE, *array.shape[1:]), lambda tile: (tile,) + (0,) * (len(array.shape) - 1))

    def play(*references: Any) -> None:
        read, written = references[: len(inputs)], references[len(inputs) :]
        values = told_rows(*jax.tree.unflatten(structure, [reference[...] for reference in read]))
        for reference, value in zip(written, jax.tree.leaves(values), strict=True):
            reference[...] = value

    made = pallas.pallas_call(
        play,
        grid=(rows // TILE,),
        in_specs=[whole_rows(array) for array in inputs],
        out_specs=[whole_rows(array) for array in outputs],
        out_shape=outputs,
        interpret=interpret,
    )(*inputs)
    after, totals, sound = jax.tree.unflatten(returned, made)
    return after, totals, jnp.all(sound > 0)


def _tell_few(
    learner: Learner[Any],
    state: Any,
    totals: dict[str, Array],
    stamps: Array,
    hyper: dict[str, Array],
    limits: Limits,
    numbers: Array,
    told: Any,
) -> tuple[Any, dict[str, Array], Array, Array]:
    """The rows with these numbers, in place; `stamps` is room to write in, one number for each learner."""
    size, feedback = len(state.round), Feedback(**told)
    rows = jax.tree.map(lambda field: field.at[numbers].get(mode="clip"), state)
    of_rows = learner.with_hyper_arrays({path: array.at[numbers].get(mode="clip") for path, array in hyper.items()})
    row_limits = Limits(*(limit.at[numbers].get(mode="clip") if limit.ndim else limit for limit in limits))
    after = of_rows.update(rows, feedback)
    places = jnp.arange(len(numbers), dtype=jnp.int32)  # of two rows with one number, one finds the other's place
    stamps = stamps.at[numbers].set(places, mode="drop")
    named = jnp.all((numbers >= 0) & (numbers < size) & (stamps.at[numbers].get(mode="clip") == places))
    sound = jnp.all(_sound(after, feedback, row_limits)) & named
    aside = jnp.where(sound, numbers, size)  # rows of a call that is refused go nowhere
    put = partial(_scattered, aside)
    worst = feedback.constraint.astype(jnp.float64)
    added = {"signed_violation": worst, "hard_violation": jnp.maximum(worst, 0)}
    sums = {n: total.at[numbers].get(mode="clip") + added[n] for n, total in totals.items()}
    return jax.tree.map(put, state, after), {n: put(total, sums[n]) for n, total in totals.items()}, stamps, sound


def _scattered(numbers: Array, field: Array, rows: Array) -> Array:
    """Rows in their places; those that have none are dropped. No place is named twice, so none has to be locked."""
    return field.at[numbers].set(rows, mode="drop", unique_indices=True)


def _advance(
    learner: Learner[Any], state: Any, totals: dict[str, Array], hyper: dict[str, Array], numbers: Array, feedback: Any
) -> tuple[Any, dict[str, Array]]:
    rows = jax.tree.map(lambda field: field.at[numbers].get(mode="clip"), state)
    chosen = learner.with_hyper_arrays({path: array.at[numbers].get(mode="clip") for path, array in hyper.items()})
    after = chosen.update(rows, Feedback(**feedback))
    state = jax.tree.map(lambda field, new: field.at[numbers].set(new, mode="drop"), state, after)
    worst = feedback["constraint"].astype(jnp.float64)
    added = {"signed_violation": worst, "hard_violation": jnp.maximum(worst, 0)}
    return state, {name: total.at[numbers].add(added[name], mode="drop") for name, total in totals.items()}
