"""The rows of a fleet on JAX: gathered, updated and scattered back in one compiled call."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

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
MOST_OPEN = 16
"""Calls whose answers were not read yet: an answer takes longer on its way to the host than a call on the device."""
MEMORY_SHARE = 8
"""What open calls keep alive is at most about one part in so many of the device's memory."""


class OpenCall(NamedTuple):
    """A call that the device was given and whose answer was not read yet."""

    serial: int
    feedback: Feedback
    numbers: Any
    before: tuple[Any, dict[str, Array]] | None
    """State and totals before a call about all rows, which is undone by going back to them."""


class JaxRows:
    """The rows of a fleet in JAX arrays. Batches are filled up to a power of two, so that few sizes are compiled.

    Feedback that is on the device is checked and applied there (`send`). Whether it was sound is written to a short
    row of answers, one for each of the last calls, which is read for several calls at once (`settle`).
    """

    def __init__(self, learner: Learner[Any], state: Any, totals: dict[str, NDArray[np.float64]]) -> None:
        self._learner = learner
        with jax.enable_x64(True):
            self._state = jax.tree.map(jnp.asarray, state)
            self._totals = jax.tree.map(jnp.asarray, totals)
            self._hyper = {path: jnp.asarray(array) for path, array in learner.hyper_arrays().items()}
            self._stamps = jnp.zeros(len(state.round), dtype=jnp.int32)
            self._answers = jnp.ones(2 * MOST_OPEN, dtype=jnp.int8)
        self._limits = _PerRow.of(Limits.declared(learner, learner.ask(state)[0]))
        self._compiled = jax.jit(partial(_advance, learner), donate_argnums=(0, 1))
        # All of them: into new buffers, so that the old ones are there if a row is refused. A few: in place.
        self._all: Any = None
        self._few = jax.jit(partial(_tell_few, learner, self._limits.fixed), donate_argnums=(0, 1, 2))
        # An open call keeps what was told of all rows alive, two gradients at most, and the state before it.
        kept = 3 * sum(array.nbytes for array in self._state)
        self._most_open = min(max(_device_memory() // MEMORY_SHARE // kept, 2), MOST_OPEN)
        self._serial = 0
        self._open: deque[OpenCall] = deque()
        self._on_their_way: deque[tuple[int, Array]] = deque()
        """Answers that are being copied to the host, each with the number of the last call that they tell about."""
        self.refused: list[tuple[Feedback, Any]] = []
        """Calls that were refused, until someone is told."""

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

    def send(self, feedback: Feedback, numbers: Any) -> None:
        """Let the device check and apply it; whether all rows, and their numbers, were sound is read by `settle`.

        Where all rows are told they are taken to be sound, and the call is undone if they were not. A few are updated
        in place, or not at all.
        """
        if numbers is not None and any(call.before is not None for call in self._open):
            self.settle()  # what is updated in place cannot be undone
        with jax.enable_x64(True):
            told = {
                n: v if isinstance(v, jax.Array) else jax_array(v)
                for n, v in zip(Feedback._fields, feedback, strict=True)
                if not (v is None or callable(v))
            }
            before = None
            if numbers is None:
                given = self._state, self._totals, self._answers, self._hyper, self._limits.varying, told
                if self._all is None:
                    self._all = self._compiled_for_all(given)
                before = self._state, self._totals
                self._state, self._totals, self._answers = self._all(*given)
            else:
                self._state, self._totals, self._stamps, self._answers = self._few(
                    self._state,
                    self._totals,
                    self._stamps,
                    self._answers,
                    self._hyper,
                    self._limits.varying,
                    jax_array(numbers),
                    told,
                )
        self._serial += 1
        self._open.append(OpenCall(self._serial, feedback, numbers, before))
        if self._serial % (self._most_open // 2) == 0:
            self._answers.copy_to_host_async()
            self._on_their_way.append((self._serial, self._answers))

    def make_room(self) -> None:
        """Read the oldest answers, if there are too many open calls."""
        self.settle(self._most_open - 1)

    def settle(self, left: int = 0) -> None:
        """Read answers, the oldest first, until so many calls are open; undo what was refused."""
        while len(self._open) > left:
            while self._on_their_way and self._on_their_way[0][0] < self._open[0].serial:
                self._on_their_way.popleft()
            early = left and self._on_their_way
            last, answers = self._on_their_way.popleft() if early else (self._serial, self._answers)
            here = np.asarray(answers)
            while self._open and self._open[0].serial <= last:
                call = self._open.popleft()
                if here[call.serial - last - 1]:
                    continue
                self.refused.append((call.feedback, call.numbers))
                if call.before is not None:
                    # It was taken to be sound, and what came after was built on it: that is done again, without it.
                    self._state, self._totals = call.before
                    later = list(self._open)
                    self._open.clear()
                    for again in later:
                        self.send(again.feedback, None)
                    break

    def _compiled_for_all(self, given: Any) -> Any:
        """What tells all rows: in tiles where there is a GPU that can, else as the compiler thinks best."""
        plain = jax.jit(partial(_tell_all, self._learner, self._limits.fixed))
        shapes = [array.shape for array in jax.tree.leaves(given) if array.ndim > 1]
        powers = all(length & (length - 1) == 0 for shape in shapes for length in shape[1:])
        if jax.default_backend() != "gpu" or not powers or len(self._state.round) % TILE:
            return plain
        tiled = jax.jit(partial(tell_all_in_tiles, self._learner, self._limits.fixed))
        try:
            tiled.lower(*given).compile()
        except Exception:  # whatever Pallas says of an operation that it does not know
            return plain
        return tiled

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


class _PerRow(NamedTuple):
    """Limits: those that are one number for all rows are compiled in, the others are arrays of the fleet."""

    fixed: tuple[float | None, ...]
    varying: tuple[Array, ...]

    @classmethod
    def of(cls, limits: Limits) -> _PerRow:
        with jax.enable_x64(True):
            varying = tuple(jnp.asarray(limit) for limit in limits if np.ndim(limit))
        return cls(tuple(None if np.ndim(limit) else float(limit) for limit in limits), varying)


def _limits(fixed: tuple[float | None, ...], varying: tuple[Array, ...]) -> Limits:
    """The limits of the rows whose own ones are given."""
    own = iter(varying)
    return Limits(*(next(own) if limit is None else limit for limit in fixed))


@cache
def _device_memory() -> int:
    """Bytes, or a guess where the device does not say."""
    statistics = jax.devices()[0].memory_stats() or {}
    return int(statistics.get("bytes_limit", 2**32))


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


def _tell_all(
    learner: Learner[Any], fixed: Any, state: Any, totals: dict[str, Array], answers: Array, *given: Any
) -> tuple[Any, dict[str, Array], Array]:
    after, totals, sound = _told_rows(learner, fixed, state, totals, *given)
    return after, totals, _answered(answers, jnp.all(sound))


def tell_all_in_tiles(
    learner: Learner[Any],
    fixed: Any,
    state: Any,
    totals: dict[str, Array],
    answers: Array,
    *others: Any,
    interpret: bool = False,
) -> Any:
    """`_tell_all` in one pass over the memory: each block of the GPU plays a few rows, all of the round, by itself.

    Left alone, the compiler reads the feedback once for the checks and once more for the update. Whatever the learner's
    `update` is made of must be known to Pallas, and rows must have a power of two of numbers: else an exception.
    """
    given = state, totals, *others
    rows = len(state.round)
    inputs, structure = jax.tree.flatten(given)

    def told_rows(*given: Any) -> Any:
        after, totals, sound = _told_rows(learner, fixed, *given)
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
    return after, totals, _answered(answers, jnp.all(sound > 0))


def _tell_few(
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
    places = jnp.arange(len(numbers), dtype=jnp.int32)  # of two rows with one number, one finds the other's place
    stamps = stamps.at[numbers].set(places, mode="drop")
    named = jnp.all((numbers >= 0) & (numbers < size) & (stamps.at[numbers].get(mode="clip") == places))
    sound = jnp.all(sound_rows) & named
    aside = jnp.where(sound, numbers, size)  # rows of a call that is refused go nowhere
    state, totals = jax.tree.map(partial(_scattered, aside), (state, totals), (after, sums))
    return state, totals, stamps, _answered(answers, sound)


def _scattered(numbers: Array, field: Array, rows: Array) -> Array:
    """Rows in their places; those that have none are dropped. No place is named twice, so none has to be locked."""
    return field.at[numbers].set(rows, mode="drop", unique_indices=True)


def _advance(
    learner: Learner[Any], state: Any, totals: dict[str, Array], hyper: dict[str, Array], numbers: Array, feedback: Any
) -> tuple[Any, dict[str, Array]]:
    rows, sums, own = jax.tree.map(lambda field: field.at[numbers].get(mode="clip"), (state, totals, hyper))
    after = learner.with_hyper_arrays(own).update(rows, Feedback(**feedback))
    made = after, _added(sums, Feedback(**feedback))
    placed: tuple[Any, dict[str, Array]] = jax.tree.map(partial(_scattered, numbers), (state, totals), made)
    return placed
