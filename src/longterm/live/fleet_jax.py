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
from longterm.learners.feedback import Feedback
from longterm.learners.feedback_check import FeedbackCheck, Limits

try:
    import jax
    from jax import numpy as jnp
except ImportError as error:
    raise ImportError("a fleet with engine='jax' needs JAX: pip install 'longterm[jax]'") from error

from longterm.live.fleet_rounds import (
    PerRow,
    advance,
    can_be_tiled,
    in_turn,
    tell_all,
    tell_all_in_tiles,
    tell_few,
    tell_few_in_tiles,
)

MOST_OPEN = 64
"""Calls whose answers were not read yet: an answer takes longer on its way to the host than a call on the device."""
TOGETHER = 4
"""Calls about a few rows that a GPU is given at once: to give it one may take the host longer than it takes."""
MEMORY_SHARE = 8
"""What open calls about all rows keep alive is at most about one part in so many of the device's memory."""


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
        self._limits = PerRow.of(Limits.declared(learner, learner.ask(state)[0]))
        self._compiled = jax.jit(partial(advance, learner), donate_argnums=(0, 1))
        # All of them: into new buffers, so that the old ones are there if a row is refused. A few: in place.
        self._all: Any = None
        self._few: Any = None
        # An open call keeps what was told of all rows alive, two gradients at most, and the state before it.
        kept = 3 * sum(array.nbytes for array in self._state)
        self._most_of_few = MOST_OPEN
        self._most_of_all = min(max(_device_memory() // MEMORY_SHARE // kept, 2), MOST_OPEN)
        self._together = 1 if jax.default_backend() == "cpu" else TOGETHER
        self._waiting: list[tuple[Array, dict[str, Array]]] = []
        """Calls about a few rows that the device was not given yet."""
        self._serial = 0
        self._open: deque[OpenCall] = deque()
        self._on_their_way: deque[tuple[int, Array]] = deque()
        """Answers that are being copied to the host, each with the number of the last call that they tell about."""
        self.refused: list[tuple[Feedback, Any]] = []
        """Calls that were refused, until someone is told."""

    @property
    def state(self) -> Any:
        """All rows, as NumPy arrays."""
        self._give()
        return jax.tree.map(np.asarray, self._state)

    @property
    def totals(self) -> dict[str, NDArray[np.float64]]:
        """The sums kept for each row, as NumPy arrays."""
        self._give()
        return {name: np.asarray(total) for name, total in self._totals.items()}

    def decisions(self, numbers: NDArray[np.int64] | None) -> NDArray[Any]:
        """X of these rows."""
        self._give()
        with jax.enable_x64(True):
            x = self._learner.ask(self._state)
            return np.array(x if numbers is None else x[jnp.asarray(numbers)])

    def decisions_on_device(self, numbers: Any) -> Any:
        """X of these rows, copied, where it is."""
        self._give()
        with jax.enable_x64(True):
            x = self._learner.ask(self._state)
            return jnp.copy(x) if numbers is None else x[jnp.asarray(numbers)]

    @staticmethod
    def is_near(feedback: Feedback) -> bool:
        """Whether what was told is in arrays of JAX, or of another library that can hand them over (DLPack)."""
        gradient = feedback.loss_gradient
        if isinstance(gradient, jax.Array):
            return True
        return hasattr(gradient, "__dlpack__") and not isinstance(gradient, np.ndarray)

    def send(self, feedback: Feedback, numbers: Any) -> None:
        """Let the device check and apply it; whether all rows, and their numbers, were sound is read by `settle`.

        Where all rows are told they are taken to be sound, and the call is undone if they were not. A few are updated
        in place, or not at all.
        """
        if numbers is not None and self._open and self._open[-1].before is not None:
            self.settle()  # what is updated in place cannot be undone
        before = None
        with jax.enable_x64(True):
            arrays = {n: v for n, v in zip(Feedback._fields, feedback, strict=True) if not (v is None or callable(v))}
            told = {name: jax_array(value) for name, value in arrays.items()}
            if numbers is None:
                self._give()
                given: Any = self._state, self._totals, self._answers, self._hyper, self._limits.varying, told
                if self._all is None:
                    self._all = self._compile(tell_all, tell_all_in_tiles, given)
                before = self._state, self._totals
                self._state, self._totals, self._answers = self._all(*given)
            else:
                chosen = jax_array(numbers)
                self._waiting.append((chosen, told))
                # Another library's arrays may be written to before the next call, so they are read in this one.
                borrowed = chosen is not numbers or any(told[name] is not value for name, value in arrays.items())
                if borrowed or len(self._waiting) == self._together:
                    self._give()
        self._serial += 1
        self._open.append(OpenCall(self._serial, feedback, numbers, before))
        if self._serial % (self._most_open() // 2) == 0:
            self._give()
            self._answers.copy_to_host_async()
            self._on_their_way.append((self._serial, self._answers))

    def _give(self) -> None:
        """Give the device the calls that are waiting: together where they are alike and many, else one by one."""
        calls, self._waiting = self._waiting, []
        if not calls:
            return
        alike = len(calls) == self._together and len({len(numbers) for numbers, _ in calls}) == 1
        with jax.enable_x64(True):
            for some in [calls] if alike else [[call] for call in calls]:
                given = self._state, self._totals, self._stamps, self._answers
                others = self._hyper, self._limits.varying, tuple(some)
                if self._few is None:
                    rules = partial(in_turn, tell_few), partial(in_turn, tell_few_in_tiles)
                    self._few = self._compile(*rules, (*given, *others), donate_argnums=(0, 1, 2))
                self._state, self._totals, self._stamps, self._answers = self._few(*given, *others)

    def make_room(self) -> None:
        """Read the oldest answers, if there are too many open calls."""
        self.settle(self._most_open() - 1)

    def _most_open(self) -> int:
        """How many calls may be open, of the kind of the last one."""
        of_all = self._open and self._open[-1].before is not None
        return self._most_of_all if of_all else self._most_of_few

    def settle(self, left: int = 0) -> None:
        """Read answers, the oldest first, until so many calls are open; undo what was refused."""
        if not left:
            self._give()
        while len(self._open) > left:
            while self._on_their_way and self._on_their_way[0][0] < self._open[0].serial:
                self._on_their_way.popleft()
            early = left and self._on_their_way
            if not early:
                self._give()
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

    def _compile(self, plain: Callable[..., Any], tiled: Callable[..., Any], given: Any, **options: Any) -> Any:
        """A function of a round: in tiles where there is a GPU that can, else as the compiler thinks best."""
        made = [jax.jit(partial(rule, self._learner, self._limits.fixed), **options) for rule in (plain, tiled)]
        if not can_be_tiled(given):
            return made[0]
        try:
            made[1].lower(*given).compile()
        except Exception:  # whatever Pallas says of an operation that it does not know
            return made[0]
        return made[1]

    def tell(
        self, numbers: NDArray[np.int64] | None, feedback: Feedback, make_check: Callable[[], FeedbackCheck]
    ) -> None:
        """Check on the host, then apply."""
        self._give()
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


def jax_array(value: Any) -> Any:
    """The same numbers as an array of JAX, not copied where that can be helped."""
    if isinstance(value, jax.Array):
        return value
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
        return jnp.asarray(value)
    return jnp.from_dlpack(value)


@cache
def _device_memory() -> int:
    """Bytes, or a guess where the device does not say."""
    statistics = jax.devices()[0].memory_stats() or {}
    return int(statistics.get("bytes_limit", 2**32))
