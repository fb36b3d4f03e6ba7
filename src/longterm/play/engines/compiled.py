"""The compiled engine: the rounds of the reference engine in a JAX loop.

A call of the loop runs the rounds of a block up to several stops, which are the rounds to record. A compiled loop
cannot raise. It runs to its end and returns the position of the first round with invalid feedback. The rounds before it
are then run again, and the code of the reference engine finds the error message. float64 is enabled for the engine's
own calls only; JAX's global flag is not changed. The trace holds NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import Array
from longterm._base.extras import missing_extra
from longterm.errors import BrokenBoundError, InputError
from longterm.learners.interface.feedback import observe
from longterm.learners.interface.feedback_check import OnBrokenBound, require_match
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.limits import BOUNDED, Limits
from longterm.play.engines.recorder import Recorder
from longterm.play.engines.sums import Sums
from longterm.play.engines.trace import Trace
from longterm.problems import Problem
from longterm.problems.streams.base import Block, ChunkedStream

try:
    import jax
    from jax import lax
    from jax import numpy as jnp
except ImportError as error:
    raise missing_extra("engine='jax' needs JAX", "jax") from error

from longterm.play.engines.device_records import DeviceRecords, row_size
from longterm.play.engines.device_streams import DrawnBlock

NEVER = 2**53
"""A position after every round."""
MAX_RECORDED, RECORDED_BYTES = 16, 2**25
"""Limits on the rounds that one call records."""
ROUNDS_PER_STEP = 16
"""Rounds between two tests of the loop condition on a GPU, where each test waits for the host. A round on an H200 takes
17 µs instead of 28 µs."""


class Carry(NamedTuple):
    """The values that the loop passes from round to round."""

    state: Any
    sums: Sums
    report: dict[str, Array]
    """The learner's report in the latest recorded round."""
    first_invalid: Array
    """For each learner, the position of the first round whose feedback was not acceptable."""
    first_broken: Array
    """For each of `feedback.BOUNDED`, the position of the first round above its bound, where the run continues."""


Parameters = tuple[tuple[Array, ...], tuple[Array, ...]] | Array
"""A block on the device: the parameters of f and g, or the random numbers that they are computed from."""
Advance = Callable[[Any, Sums, Parameters, int, NDArray[np.int64], int], tuple[Carry, Array, Array]]
"""(state, sums, block, position, stops, number of stops) → (carry, recorded rows, first positions)."""


@lru_cache(maxsize=64)
def _compile(
    problem: Problem, learner: Learner[Any], stop_at_broken_bound: bool, stream: ChunkedStream | None, on_cpu: bool
) -> Advance:
    """Return the compiled loop for a problem and a learner."""

    def run_round(position: Any, carry: Carry, block: Parameters) -> Carry:
        x = learner.ask(carry.state)
        feedback = observe(problem, x, *_round_parameters(stream, block, position, x.dtype))
        require_match(feedback, x, None)
        limits = Limits.declared(learner, x, problem)
        acceptable = (limits if stop_at_broken_bound else Limits.from_bounds(x)).acceptable(feedback)
        first_broken = carry.first_broken
        if not stop_at_broken_bound:
            within = jnp.stack([jnp.all(inside) for inside in limits.within(feedback)])
            first_broken = jnp.where(within, first_broken, jnp.minimum(first_broken, position))
        return Carry(
            state=learner.update(carry.state, feedback),
            sums=carry.sums.add(feedback),
            report=carry.report,
            first_invalid=jnp.where(acceptable, carry.first_invalid, jnp.minimum(carry.first_invalid, position)),
            first_broken=first_broken,
        )

    def run_rounds(begin: Any, end: Any, carry: Carry, block: Parameters) -> Carry:
        def body(position: Any, now: Carry) -> Carry:
            return run_round(position, now, block)

        if not on_cpu:
            steps, start = (end - begin) // ROUNDS_PER_STEP, begin

            def step(number: Any, now: Carry) -> Carry:
                first = start + number * ROUNDS_PER_STEP
                unrolled: Carry = lax.fori_loop(0, ROUNDS_PER_STEP, lambda i, c: body(first + i, c), now, unroll=4)
                return unrolled

            carry = lax.fori_loop(0, steps, step, carry)
            begin = begin + steps * ROUNDS_PER_STEP
        last: Carry = lax.fori_loop(begin, end, body, carry)
        return last

    def advance(
        state: Any, sums: Sums, block: Parameters, position: Any, stops: Array, count: Any
    ) -> tuple[Carry, Array, Array]:
        def run_to_stop(number: Any, now: tuple[Any, Carry, Array]) -> tuple[Any, Carry, Array]:
            position, carry, rows = now
            last = stops[number] - 1
            carry = run_rounds(position, last, carry, block)
            carry = run_round(last, carry._replace(report=learner.report(carry.state)), block)
            row = _flatten(carry.sums, carry.report)
            return last + 1, carry, lax.dynamic_update_index_in_dim(rows, row, number, 0)

        report = learner.report(state)
        carry = Carry(
            state,
            sums,
            {name: jnp.asarray(value) for name, value in report.items()},
            jnp.full(sums.loss.shape, NEVER),
            jnp.full(len(BOUNDED), NEVER),
        )
        rows = jnp.zeros((len(stops), row_size(sums, report)))
        _, carry, rows = lax.fori_loop(0, count, run_to_stop, (position, carry, rows))
        return carry, rows, jnp.append(carry.first_broken, jnp.min(carry.first_invalid))

    return jax.jit(advance)


def _round_parameters(
    stream: ChunkedStream | None, block: Parameters, position: Any, dtype: Any
) -> tuple[list[Array], list[Array]]:
    """Return the parameters of f and g in the round at this position of a block."""
    if stream is None:
        loss, constraint = block
        return [_row(array, position) for array in loss], [_row(array, position) for array in constraint]
    loss, constraint = stream.expand(_row(block, position))[:2]
    return [array.astype(dtype) for array in loss], [array.astype(dtype) for array in constraint]


def _row(array: Array, position: Array) -> Array:
    return lax.dynamic_index_in_dim(array, position, keepdims=False)


def _flatten(sums: Sums, report: dict[str, Array]) -> Array:
    """Return sums and report as one row of float64."""
    return jnp.concatenate([jnp.ravel(value).astype(jnp.float64) for value in jax.tree.leaves((sums, report))])


class CompiledRunner:
    """One learner, or a batch of them, and its progress through a stream, compiled by JAX."""

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
        self._stops_at_broken_bound = on_broken_bound == "raise"
        self._stream: ChunkedStream | None = None
        self._warnings: dict[str, str] = {} if resume is None else dict(resume.warnings)
        self._block_rounds = 0
        self.rounds_done = 0 if resume is None else resume.last_round
        # The first state is made in NumPy: on the device each of its few operations would be compiled by itself.
        if resume is None:
            state, sums = learner.init(batch_shape, dtype=dtype), Sums.zero(batch_shape, problem.constraint.count)
        else:
            state, sums = resume.state, resume.sums
        self._dtype = learner.ask(state).dtype
        self._report: dict[str, Any] = learner.report(state)
        size = max(row_size(sums, self._report), 1)
        self._max_recorded = min(max(RECORDED_BYTES // (8 * size), 1), MAX_RECORDED)
        self._records = DeviceRecords(size, recorder.expected)
        with jax.enable_x64(True):
            self._state, self._sums = jax.device_put((state, sums))

    def run_block(self, block: Block | DrawnBlock, first: int) -> None:
        """Run the rounds of a block that starts at round `first`, except those already done."""
        last = first + block.rounds - 1
        if self.rounds_done >= last:
            return
        with jax.enable_x64(True):
            parameters = self._put_on_device(block)
            wanted = self._recorder.until(last)
            while self.rounds_done < last:
                now, wanted = wanted[: self._max_recorded], wanted[self._max_recorded :]
                self._run_to(now if wanted or now[-1:] == [last] else [*now, last], now, parameters, first)

    def _run_to(self, stops: list[int], recorded: list[int], block: Parameters, first: int) -> None:
        """Run up to the last of these rounds, or raise; the last one need not be recorded."""
        start = self.rounds_done + 1 - first
        carry, rows, (*broken, invalid) = self._advance(block, start, [stop - first + 1 for stop in stops])
        reached = min(invalid, stops[-1] - first + 1)
        recorded = [t for t in recorded if t < first + reached]
        if recorded:
            self._records.append(recorded, rows)
        self._note_broken_bounds(block, start, first, reached, broken)
        if invalid != NEVER:
            carry = self._replay(block, start, reached)
        self._state, self._sums, self._report = carry.state, carry.sums, carry.report
        self.rounds_done = first - 1 + reached
        self._recorder.advance_to(self.rounds_done)
        if invalid != NEVER:
            raise self._error_at(block, carry, reached)

    def _put_on_device(self, block: Block | DrawnBlock) -> Parameters:
        """Return a block's parameters on the device, padded to one length since another shape compiles again."""
        self._stream = block.stream if isinstance(block, DrawnBlock) else None
        if isinstance(block, DrawnBlock):
            return block.drawn
        self._block_rounds = max(self._block_rounds, block.rounds)
        missing = self._block_rounds - block.rounds

        def pad(arrays: tuple[NDArray[Any], ...]) -> tuple[Array, ...]:
            full = [np.concatenate([a, np.repeat(a[-1:], missing, axis=0)]) if missing else a for a in arrays]
            return tuple(jnp.asarray(array, dtype=self._dtype) for array in full)

        return pad(block.loss), pad(block.constraint)

    def _advance(self, block: Parameters, start: int, stops: list[int]) -> tuple[Carry, Array, list[int]]:
        """Call the compiled loop from the current state; raise if the problem or the learner cannot be compiled."""
        padded = np.resize(stops, self._max_recorded + 1)
        on_cpu = jax.default_backend() == "cpu"
        try:
            loop = _compile(self._problem, self._learner, self._stops_at_broken_bound, self._stream, on_cpu)
            carry, rows, positions = loop(self._state, self._sums, block, start, padded, len(stops))
            return carry, rows, np.asarray(positions).tolist()
        except (jax.errors.JAXTypeError, jax.errors.JAXIndexError, TypeError, AttributeError, IndexError) as error:
            raise InputError(
                "engine",
                f"{self._problem.name!r} run by {type(self._learner).__name__} cannot be compiled: "
                + str(error).split("\n", 1)[0].rstrip("."),
                "Write your functions with the array library of their arguments and without branches on values, "
                "or use engine='numpy'",
            ) from error

    def _replay(self, block: Parameters, start: int, position: int) -> Carry:
        """Return the carry before the round at `position`."""
        if position > start:
            return self._advance(block, start, [position])[0]
        return Carry(self._state, self._sums, self._report, NEVER, NEVER)

    def _faults(self, block: Parameters, carry: Carry, position: int, t: int) -> list[InputError]:
        """Return the errors of round t, found by the code of the reference engine."""
        x = self._learner.ask(carry.state)
        feedback = observe(self._problem, x, *_round_parameters(self._stream, block, position, x.dtype))
        return list(Limits.declared(self._learner, x, self._problem).faults(feedback, t))

    def _error_at(self, block: Parameters, carry: Carry, position: int) -> InputError:
        """Return the error that stops the run."""
        faults = self._faults(block, carry, position, self.rounds_done + 1)
        if faults:
            return faults[0]
        # Compiled and step-by-step arithmetic may differ in the last digit, right at a bound.
        what = "a declared bound was exceeded by rounding"
        return BrokenBoundError("feedback", what, "Declare slightly larger bounds", round=self.rounds_done + 1)

    def _note_broken_bounds(self, block: Parameters, start: int, first: int, reached: int, broken: list[int]) -> None:
        """Store the message of the first round above each bound, where the run continues."""
        for argument, position in zip(BOUNDED, broken, strict=True):
            if position < reached and argument not in self._warnings:
                faults = self._faults(block, self._replay(block, start, position), position, first + position)
                messages = {fault.argument: str(fault) for fault in faults}
                default = f"{argument} in round {first + position}: at its bound"
                self._warnings[argument] = messages.get(argument, default)

    def trace(self) -> Trace:
        """Return the trace up to the last round done, in NumPy arrays."""
        state, sums, report = jax.device_get((self._state, self._sums, self._report))
        report = {name: np.asarray(value) for name, value in report.items()}
        sums = Sums(*(np.asarray(value) for value in sums))
        recorded = self._records.recorded_rounds(sums, report)
        return self._recorder.trace(sums, report, state, self._warnings, recorded)
