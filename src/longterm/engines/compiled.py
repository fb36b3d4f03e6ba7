"""The compiled engine: the same rounds as the reference engine, inside a JAX loop.

Rounds run in stretches, from one round that the trace keeps to the next, on a block of parameters that
lies on the device. Nothing can be raised inside a compiled loop: the loop stops before the first round
that is not acceptable and hands back its number and the state before it; the words are found outside, by the same code
that finds them for the reference engine. float64 is switched on for the engine's own calls only; JAX's
global flag is not touched, and NumPy arrays are handed back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import Array
from longterm.engines.reference import Recorder
from longterm.engines.trace import Sums, Trace
from longterm.errors import BrokenBoundError, InputError
from longterm.learners.base import Learner
from longterm.learners.feedback import observe
from longterm.learners.feedback_check import BOUNDED, Limits, OnBrokenBound, require_match
from longterm.problems import Problem
from longterm.streams import Block
from longterm.streams.base import ChunkedStream

try:
    import jax
    from jax import lax
    from jax import numpy as jnp
except ImportError as error:
    raise ImportError("engine='jax' needs JAX: pip install 'longterm[jax]'") from error

from longterm.engines.device_rounds import FEW, DeviceRecords, DrawnBlock, in_a_row


class Carry(NamedTuple):
    """What the loop hands from round to round."""

    position: Array
    """Where in the block the next round to play stands."""
    state: Any
    sums: Sums
    report: dict[str, Array]
    """What the learner reported of the last round of the stretch."""
    sound: Array
    """Whether that round was acceptable; where it was not, all else is as before it. In a hasty loop: for each learner,
    whether all rounds were."""
    first_broken: Array
    """For each of `feedback.BOUNDED`, where in the block its declared bound was first broken, if the run goes on."""


Parameters = tuple[tuple[Array, ...], tuple[Array, ...]] | Array
"""A block on the device: the parameters of f and of g, or the random numbers that they are made of."""


Advance = Callable[[Carry, Array, Parameters, NDArray[np.int64], int, int], tuple[Carry, Array, Array]]
"""From a carry to the next stops in a block; what is recorded there goes to rows of an array, from one of them on."""
NEVER = 2**53
"""Later than any round."""

STRETCHES = (16, 4)
"""Rounds that a GPU plays without asking whether to go on: it would have to ask the host, which takes longer. Nor does
it look after each of them whether all learners' feedback was acceptable, for which they would wait for each other."""


@lru_cache(maxsize=64)
def _compiled(
    problem: Problem, learner: Learner[Any], stop_at_broken_bound: bool, stream: ChunkedStream | None, hasty: bool
) -> Advance:
    """The loop for a problem and a learner: plays from where the carry stands to some positions of the block.

    A hasty one plays on past a round that is not acceptable, and says in the end that there was one.
    """

    def play_one(carry: Carry, block: Parameters) -> Carry:
        x = learner.ask(carry.state)
        here = carry.position
        feedback = observe(problem, x, *_parameters(stream, block, here, x.dtype))
        require_match(feedback, x, None)
        limits = Limits.declared(learner, x, problem)
        acceptable = (limits if stop_at_broken_bound else Limits.from_bounds(x)).acceptable(feedback)
        state, sums = learner.update(carry.state, feedback), carry.sums.add(feedback)
        if hasty:
            return carry._replace(position=here + 1, state=state, sums=sums, sound=carry.sound & acceptable)
        sound = jnp.all(acceptable)
        first_broken = carry.first_broken
        if not stop_at_broken_bound:
            kept = jnp.stack([jnp.all(inside) for inside in limits.within(feedback)])
            first_broken = jnp.where(kept, first_broken, jnp.minimum(first_broken, here))
        return Carry(
            position=here + sound,
            state=_choose(sound, state, carry.state),
            sums=_choose(sound, sums, carry.sums),
            report=carry.report,
            sound=sound,
            first_broken=first_broken,
        )

    def goes_on(carry: Carry, stop: Any) -> Any:
        return carry.position < stop if hasty else (carry.position < stop) & carry.sound

    def play_wanted(carry: Carry, block: Parameters, stop: Any) -> Carry:
        """A round, with what the learner reports of it, if it is one of those to play."""
        played = play_one(carry._replace(report=learner.report(carry.state)), block)
        chosen: Carry = _choose(goes_on(carry, stop), played, carry)
        return chosen

    def play_stretches(carry: Carry, block: Parameters, stop: Any, rounds: int) -> Carry:
        """So many rounds at a time, until fewer are left."""
        played: Carry = lax.while_loop(
            lambda c: goes_on(c, stop - rounds),
            lambda c: lax.fori_loop(0, rounds, lambda _, now: play_one(now, block), c, unroll=max(rounds // 4, 1)),
            carry,
        )
        return played

    def play_until(carry: Carry, block: Parameters, stop: Any) -> Carry:
        stretches = STRETCHES if hasty else (1,)
        for stretch in stretches:
            carry = play_stretches(carry, block, stop, stretch)
        last: Carry = lax.fori_loop(0, stretches[-1], lambda _, now: play_wanted(now, block, stop), carry)
        return last

    def advance(
        carry: Carry, kept: Array, block: Parameters, stops: Array, row: Any, count: Any
    ) -> tuple[Carry, Array, Array]:
        def to_next_stop(place: Any, now: tuple[Carry, Array]) -> tuple[Carry, Array]:
            carry = play_until(now[0], block, stops[place])
            return carry, lax.dynamic_update_index_in_dim(now[1], in_a_row(carry.sums, carry.report), row + place, 0)

        sound = jnp.ones(carry.sums.loss.shape if hasty else (), dtype=bool)
        carry = carry._replace(sound=sound, report=learner.report(carry.state))
        carry, kept = lax.fori_loop(0, count, to_next_stop, (carry, kept))
        carry = carry._replace(sound=jnp.all(carry.sound))
        return carry, kept, jnp.concatenate([jnp.stack([carry.position, carry.sound]), carry.first_broken])

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
        self._hasty = self._stops and jax.default_backend() != "cpu"
        self._stream: ChunkedStream | None = None
        self._warned: dict[str, str] = {} if resume is None else dict(resume.warnings)
        self._block_rounds = 0
        self.played = 0 if resume is None else resume.last_round
        # Begun in NumPy: on the device each operation of these few would be compiled by itself.
        if resume is None:
            state, sums = learner.init(batch_shape, dtype=dtype), Sums.zero(batch_shape, problem.constraint.count)
        else:
            state, sums = resume.state, resume.sums
        self._dtype = learner.ask(state).dtype
        self._never = np.full(len(BOUNDED), NEVER)
        with jax.enable_x64(True):
            self._records = DeviceRecords(sums, learner.report(state), recorder.expected)
            state, sums = jax.device_put((state, sums))
        self._carry = Carry(0, state, sums, {}, True, self._never)

    def play(self, block: Block | DrawnBlock, first: int) -> None:
        """Play the rounds of a block that starts at round `first`, those that are still ahead."""
        last = first + block.rounds - 1
        if self.played >= last:
            return
        with jax.enable_x64(True):
            there = self._on_device(block)
            self._records.hand_over(FEW)
            wanted = self._recorder.until(last)
            while self.played < last:
                now = wanted[: self._records.most - len(self._records.rounds)]
                wanted = wanted[len(now) :]
                self._play_until(now if wanted or now[-1:] == [last] else [*now, last], now, there, first)
                if len(self._records.rounds) == self._records.most:
                    self._records.hand_over()

    def _play_until(self, stops: list[int], kept: list[int], block: Parameters, first: int) -> None:
        """Play to these rounds, the last of which may be one that is not kept, or raise."""
        start = self._carry._replace(position=self.played + 1 - first, report={}, first_broken=self._never)
        positions = [stop - first + 1 for stop in stops]
        made, counts = self._advanced(start, block, positions, hasty=self._hasty)
        if self._hasty and not counts[1]:  # which round was it?
            made, counts = self._advanced(start, block, positions)
        position, sound, *broken = counts
        self.played = first - 1 + position
        self._records.rounds += [t for t in kept if t <= self.played]
        self._recorder.passed(self.played)
        self._note_broken_bounds(start, block, first, position, broken)
        if not sound:
            if position > start.position:  # up to there once more, for what the learner reported last
                self._carry, _ = self._advanced(start, block, [position])
            raise self._refusal(self._carry._replace(position=position), block)
        self._carry = made

    def _on_device(self, block: Block | DrawnBlock) -> Parameters:
        """A block's parameters; the last block filled up to the length of the others: another shape compiles anew."""
        stream = block.stream if isinstance(block, DrawnBlock) else None
        self._stream = stream
        if isinstance(block, DrawnBlock):
            return block.drawn
        self._block_rounds = max(self._block_rounds, block.rounds)
        missing = self._block_rounds - block.rounds

        def filled(arrays: tuple[NDArray[Any], ...]) -> tuple[Array, ...]:
            full = [np.concatenate([a, np.repeat(a[-1:], missing, axis=0)]) if missing else a for a in arrays]
            return tuple(jnp.asarray(array, dtype=self._dtype) for array in full)

        return filled(block.loss), filled(block.constraint)

    def _advanced(
        self, carry: Carry, block: Parameters, stops: list[int], *, hasty: bool = False
    ) -> tuple[Carry, list[int]]:
        """The carry at the last of these positions, and how it got there; what is recorded goes after what is kept."""
        padded = np.resize(stops, self._records.most + 1)
        try:
            advance = _compiled(self._problem, self._learner, self._stops, self._stream, hasty)
            row, records = len(self._records.rounds), self._records
            carry, records.rows, counts = advance(carry, records.rows, block, padded, row, len(stops))
            return carry, np.asarray(counts).tolist()
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

    def _refusal(self, carry: Carry, block: Parameters) -> InputError:
        faults = self._faults(carry, block, self.played + 1)
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
                there, _ = self._advanced(start, block, [position])
                faults = self._faults(there, block, first + position)
                words = {fault.argument: str(fault) for fault in faults}
                self._warned[argument] = words.get(argument, f"{argument} in round {first + position}: at its bound")

    def trace(self) -> Trace:
        """What happened so far, in NumPy arrays."""
        carry, learner = self._carry, self._learner
        state = jax.device_get(carry.state)
        report = carry.report or {name: np.asarray(value) for name, value in learner.report(state).items()}
        with jax.enable_x64(True):
            kept = self._records.kept(carry.sums, report)
        if kept.rounds[-1:] == [self.played]:  # then it need not be fetched
            sums, report = jax.tree.map(lambda column: np.array(column[-1]), (kept.sums, kept.report))
        else:
            sums, report = jax.device_get((carry.sums, report))
        return self._recorder.trace(sums, report, state, self._warned, kept)
