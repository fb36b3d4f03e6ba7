"""The compiled engine: the same rounds as the reference engine, inside a JAX loop.

Rounds run in stretches, from one round that the trace keeps to the next, on a block of parameters that
lies on the device. Nothing can be raised inside a compiled loop: the loop stops before the first round
that is not acceptable and hands back its number and the state before it; the words are found outside, by the same code
that finds them for the reference engine. float64 is switched on for the engine's own calls only; JAX's
global flag is not touched, and NumPy arrays are handed back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import Array
from longterm.engines.trace import Recorder, Sums, Trace
from longterm.errors import BrokenBoundError, InputError
from longterm.learners.base import Learner
from longterm.learners.checks import BOUNDED, Limits, OnBrokenBound, require_match
from longterm.learners.feedback import observe
from longterm.problems import Problem
from longterm.streams import Block
from longterm.streams.base import ChunkedStream

try:
    import jax
    from jax import lax
    from jax import numpy as jnp
except ImportError as error:
    raise ImportError("engine='jax' needs JAX: pip install 'longterm[jax]'") from error

from longterm.engines.device_streams import DrawnBlock


class Carry(NamedTuple):
    """What the loop hands from round to round."""

    position: Array
    """Where in the block the next round to play stands."""
    state: Any
    sums: Sums
    report: dict[str, Array]
    """What the learner reported of the last round of the stretch."""
    sound: Array
    """Whether that round was acceptable; where it was not, all else is as before it."""
    first_broken: Array
    """For each of `checks.BOUNDED`, where in the block its declared bound was first broken, if the run goes on."""


Parameters = tuple[tuple[Array, ...], tuple[Array, ...]] | Array
"""A block on the device: the parameters of f and of g, or the random numbers that they are made of."""


class Look(NamedTuple):
    """All that the host reads of a carry, in one array: each that comes from a device takes as long as some rounds."""

    numbers: Array
    """The position, whether it was sound, the first broken bounds; the sums and the report, one after another."""

    @classmethod
    def at(cls, carry: Carry) -> Look:
        counts = jnp.stack([carry.position, carry.sound.astype(jnp.int64)])
        arrays = (counts, carry.first_broken, *jax.tree.leaves((carry.sums, carry.report)))
        return cls(jnp.concatenate([jnp.ravel(array).astype(jnp.float64) for array in arrays]))

    def counts(self) -> list[int]:
        """The position, whether it was sound, the first broken bounds."""
        return [int(count) for count in np.asarray(self.numbers)[:COUNTS]]

    def sums_and_report(self, carry: Carry) -> tuple[Sums, dict[str, NDArray[Any]]]:
        """What the carry has of these, on the host."""
        arrays, structure = jax.tree.flatten((carry.sums, carry.report))
        ends = np.cumsum([array.size for array in arrays])
        parts = np.split(np.asarray(self.numbers)[COUNTS:], ends[:-1])
        made = [
            part.reshape(array.shape).astype(array.dtype, copy=False) for part, array in zip(parts, arrays, strict=True)
        ]
        here: tuple[Sums, dict[str, NDArray[Any]]] = jax.tree.unflatten(structure, made)
        return here


Advance = Callable[[Carry, Parameters, int], tuple[Carry, Look]]
COUNTS = 2 + len(BOUNDED)
NEVER = 2**53
"""Later than any round, and a number that float64 has."""

STRETCHES = (16, 4)
"""Rounds that a GPU plays without asking whether to go on: it would have to ask the host, which takes longer."""
MOST_AHEAD = 32
"""Stretches that are on their way before the host looks at the first of them."""


@lru_cache(maxsize=64)
def _compiled(
    problem: Problem, learner: Learner[Any], stop_at_broken_bound: bool, stream: ChunkedStream | None
) -> Advance:
    """The loop for a problem and a learner: plays from where the carry stands up to a position of the block."""

    def play_one(carry: Carry, block: Parameters) -> Carry:
        x = learner.ask(carry.state)
        here = carry.position
        feedback = observe(problem, x, *_parameters(stream, block, here, x.dtype))
        require_match(feedback, x, None)
        limits = Limits.declared(learner, x, problem)
        sound = jnp.all((limits if stop_at_broken_bound else Limits.around(x)).acceptable(feedback))
        first_broken = carry.first_broken
        if not stop_at_broken_bound:
            kept = jnp.stack([jnp.all(inside) for inside in limits.within(feedback)])
            first_broken = jnp.where(kept, first_broken, jnp.minimum(first_broken, here))

        return Carry(
            position=here + sound,
            state=_choose(sound, learner.update(carry.state, feedback), carry.state),
            sums=_choose(sound, carry.sums.add(feedback), carry.sums),
            report=carry.report,
            sound=sound,
            first_broken=first_broken,
        )

    def play_wanted(carry: Carry, block: Parameters, stop: Any) -> Carry:
        """A round, with what the learner reports of it, if it is one of those to play."""
        played = play_one(carry._replace(report=learner.report(carry.state)), block)
        chosen: Carry = _choose(carry.sound & (carry.position < stop), played, carry)
        return chosen

    def play_stretches(carry: Carry, block: Parameters, stop: Any, rounds: int) -> Carry:
        """So many rounds at a time, until fewer are left."""
        played: Carry = lax.while_loop(
            lambda c: (c.position + rounds < stop) & c.sound,
            lambda c: lax.fori_loop(0, rounds, lambda _, now: play_one(now, block), c, unroll=max(rounds // 4, 1)),
            carry,
        )
        return played

    def advance(carry: Carry, block: Parameters, stop: Any) -> tuple[Carry, Look]:
        # A round that is not acceptable leaves everything as it was, so the rounds after it in a stretch do nothing.
        stretches = (1,) if jax.default_backend() == "cpu" else STRETCHES
        for stretch in stretches:
            carry = play_stretches(carry, block, stop, stretch)
        carry = lax.fori_loop(0, stretches[-1], lambda _, now: play_wanted(now, block, stop), carry)
        return carry, Look.at(carry)

    return jax.jit(advance)


def _parameters(
    stream: ChunkedStream | None, block: Parameters, position: Any, dtype: Any
) -> tuple[list[Array], list[Array]]:
    """The parameters of the round at this place of a block."""
    loss, constraint = block if stream is None else stream.expand(_at(block, position))[:2]
    if stream is None:
        return [_at(array, position) for array in loss], [_at(array, position) for array in constraint]
    return [array.astype(dtype) for array in loss], [array.astype(dtype) for array in constraint]


def _choose(condition: Array, new: Any, old: Any) -> Any:
    return jax.tree.map(lambda after, before: jnp.where(condition, after, before), new, old)


def _at(array: Array, position: Array) -> Array:
    return lax.dynamic_index_in_dim(array, position, keepdims=False)


class CompiledPlayer:
    """One learner (or a batch of them) on its way through a stream, compiled."""

    def __init__(
        self,
        problem: Problem,
        learner: Learner[Any],
        *,
        batch_shape: tuple[int, ...],
        recorder: Recorder,
        on_broken_bound: OnBrokenBound,
        resume: Trace | None,
        dtype: Any = None,
    ) -> None:
        self._problem = problem
        self._learner = learner
        self._recorder = recorder
        self._stops = on_broken_bound == "raise"
        self._stream: ChunkedStream | None = None
        self._warned: dict[str, str] = {} if resume is None else dict(resume.warnings)
        self._block_rounds = 0
        self.played = 0 if resume is None else resume.last_round
        # Begun in NumPy: on the device each operation of these few would be compiled by itself.
        if resume is None:
            state, sums = learner.init(batch_shape, dtype=dtype), Sums.zero(batch_shape, problem.constraint.count)
        else:
            state, sums = resume.state, resume.sums
        report = learner.report(state)
        self._dtype = learner.ask(state).dtype
        with jax.enable_x64(True):
            state, sums = jax.tree.map(jnp.asarray, (state, sums))
            dtypes = jax.eval_shape(learner.report, state)
            report = {name: jnp.asarray(value, dtype=dtypes[name].dtype) for name, value in report.items()}
            self._never = jnp.asarray(np.full(len(BOUNDED), NEVER))
            self._carry = Carry(jnp.asarray(0), state, sums, report, jnp.asarray(True), self._never)

    def play(self, block: Block | DrawnBlock, first: int) -> None:
        """Play the rounds of a block that starts at round `first`, those that are still ahead.

        The host runs ahead of the device and looks at what became of a stretch when the next ones are on their way.
        After a round that is not acceptable nothing changes any more, so nothing that runs ahead does harm.
        """
        last = first + block.rounds - 1
        if self.played >= last:
            return
        with jax.enable_x64(True):
            there = self._on_device(block)
            here = jnp.asarray(np.asarray(self.played + 1 - first))
            carry = self._carry._replace(position=here, first_broken=self._never)
            open_looks: deque[tuple[Carry, Carry, Look]] = deque()
            for wanted in dict.fromkeys((*self._recorder.until(last), last)):
                start = carry
                carry, look = self._stretch(start, there, wanted - first + 1)
                look.numbers.copy_to_host_async()
                open_looks.append((start, carry, look))
                if len(open_looks) > MOST_AHEAD:
                    self._settle(*open_looks.popleft(), there, first)
            while open_looks:
                self._settle(*open_looks.popleft(), there, first)

    def _settle(self, start: Carry, made: Carry, look: Look, block: Parameters, first: int) -> None:
        """Take what became of a stretch, or raise."""
        position, sound, *broken = look.counts()
        self._note_broken_bounds(start, block, first, position, broken)
        self.played = first - 1 + position
        if not sound:
            self._carry, _ = self._advance(start, block, position)
            raise self._refusal(block)
        self._carry = made
        if self.played == self._recorder.next:
            self._recorder.keep(self.played, *look.sums_and_report(made))

    def _on_device(self, block: Block | DrawnBlock) -> Parameters:
        """A block's parameters; the last block filled up to the length of the others: another shape compiles anew."""
        stream = block.stream if isinstance(block, DrawnBlock) else None
        self._stream = stream
        self._advance = _compiled(self._problem, self._learner, self._stops, stream)
        if isinstance(block, DrawnBlock):
            return block.drawn
        self._block_rounds = max(self._block_rounds, block.rounds)
        missing = self._block_rounds - block.rounds

        def filled(arrays: tuple[NDArray[Any], ...]) -> tuple[Array, ...]:
            full = [np.concatenate([a, np.repeat(a[-1:], missing, axis=0)]) if missing else a for a in arrays]
            return tuple(jnp.asarray(array, dtype=self._dtype) for array in full)

        return filled(block.loss), filled(block.constraint)

    def _stretch(self, carry: Carry, block: Parameters, stop: int) -> tuple[Carry, Look]:
        try:
            return self._advance(carry, block, stop)
        except (jax.errors.JAXTypeError, jax.errors.JAXIndexError, TypeError, AttributeError, IndexError) as error:
            raise InputError(
                "engine",
                f"{self._problem.name!r} played by {type(self._learner).__name__} cannot be compiled: "
                + str(error).split("\n", 1)[0].rstrip("."),
                "Write your functions with the array library of their arguments and without branches on values, "
                "or use engine='numpy'",
            ) from error

    def _faults(self, carry: Carry, block: Parameters, t: int) -> list[InputError]:
        """The words for the round that the carry stands before, from the code that the reference engine uses."""
        x, here = self._learner.ask(carry.state), int(carry.position)
        feedback = observe(self._problem, x, *_parameters(self._stream, block, here, x.dtype))
        return list(Limits.declared(self._learner, x, self._problem).faults(feedback, t))

    def _refusal(self, block: Parameters) -> InputError:
        faults = self._faults(self._carry, block, self.played + 1)
        if faults:
            return faults[0]
        # Compiled and step-by-step arithmetic may differ in the last digit, right at a bound.
        what = "a declared bound was exceeded by rounding"
        return BrokenBoundError("feedback", what, "Declare bounds with a little room", round=self.played + 1)

    def _note_broken_bounds(self, start: Carry, block: Parameters, first: int, reached: int, broken: list[int]) -> None:
        """Where the run goes on past a broken bound: the first round of each, by playing up to it once more."""
        for argument, position in zip(BOUNDED, broken, strict=True):
            played = position < reached  # a round that stopped the run was not played
            if played and argument not in self._warned:
                there, _ = self._advance(start, block, position)
                faults = self._faults(there, block, first + position)
                words = {fault.argument: str(fault) for fault in faults}
                self._warned[argument] = words.get(argument, f"{argument} in round {first + position}: at its bound")

    def trace(self) -> Trace:
        """What happened so far, in NumPy arrays."""
        state, sums, report = jax.tree.map(np.asarray, (self._carry.state, self._carry.sums, self._carry.report))
        return self._recorder.trace(sums, report, state, self._warned)
