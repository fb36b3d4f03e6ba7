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
from longterm.engines.trace import Recorder, Sums, Trace
from longterm.errors import BrokenBoundError, InputError
from longterm.learners.base import Learner
from longterm.learners.checks import BOUNDED, Limits, OnBrokenBound, require_match
from longterm.learners.feedback import observe
from longterm.problems import Problem
from longterm.streams import Block

try:
    import jax
    from jax import lax
    from jax import numpy as jnp
except ImportError as error:
    raise ImportError("engine='jax' needs JAX: install longterm[jax]") from error


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


Advance = Callable[[Carry, tuple[Array, ...], tuple[Array, ...], int], Carry]
NEVER = np.iinfo(np.int64).max


@lru_cache(maxsize=64)
def _compiled(problem: Problem, learner: Learner[Any], stop_at_broken_bound: bool) -> Advance:
    """The loop for a problem and a learner: plays from where the carry stands up to a position of the block."""

    def play_one(carry: Carry, loss: tuple[Array, ...], constraint: tuple[Array, ...]) -> Carry:
        x = learner.ask(carry.state)
        here = carry.position
        feedback = observe(problem, x, [_at(array, here) for array in loss], [_at(array, here) for array in constraint])
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

    def advance(carry: Carry, loss: tuple[Array, ...], constraint: tuple[Array, ...], stop: Any) -> Carry:
        def up_to(carry: Carry, end: Any) -> Carry:
            return lax.while_loop(
                lambda c: (c.position < end) & c.sound, lambda c: play_one(c, loss, constraint), carry
            )

        # All rounds but the last, then the last: what the learner reports is wanted of that one only.
        carry = up_to(carry, stop - 1)
        one_more = (carry.position < stop) & carry.sound
        report = _choose(one_more, learner.report(carry.state), carry.report)
        return up_to(carry._replace(report=report), stop)

    return jax.jit(advance)


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
        self._advance = _compiled(problem, learner, on_broken_bound == "raise")
        self._warned: dict[str, str] = {} if resume is None else dict(resume.warnings)
        self._block_rounds = 0
        self.played = 0 if resume is None else resume.last_round
        with jax.enable_x64(True):
            if resume is None:
                state = learner.init(batch_shape, xp=jnp, dtype=dtype)
                sums = Sums.zero(batch_shape, problem.constraint.count, jnp)
            else:
                state, sums = jax.tree.map(jnp.asarray, (resume.state, resume.sums))
            report = learner.report(state)
            never = jnp.full(len(BOUNDED), NEVER, dtype=jnp.int64)
            self._carry = Carry(jnp.asarray(0, dtype=jnp.int64), state, sums, report, jnp.asarray(True), never)
            self._dtype = learner.ask(state).dtype

    def play(self, block: Block, first: int) -> None:
        """Play the rounds of a block that starts at round `first`, those that are still ahead."""
        with jax.enable_x64(True):
            loss, constraint = self._on_device(block.loss), self._on_device(block.constraint)
            self._carry = self._carry._replace(
                position=jnp.asarray(self.played + 1 - first), first_broken=self._carry.first_broken * 0 + NEVER
            )
            while self.played + 1 < first + block.rounds:
                wanted = self._recorder.next
                stop = block.rounds if wanted is None else min(block.rounds, wanted - first + 1)
                start, self._carry = self._carry, self._stretch(self._carry, loss, constraint, stop)
                self.played = first - 1 + int(self._carry.position)
                self._note_broken_bounds(start, loss, constraint, first)
                if not self._carry.sound:
                    self._carry = self._advance(start, loss, constraint, int(self._carry.position))
                    raise self._refusal(loss, constraint)
                if self.played == wanted:
                    self._recorder.keep(wanted, *jax.tree.map(np.asarray, (self._carry.sums, self._carry.report)))

    def _on_device(self, arrays: tuple[NDArray[Any], ...]) -> tuple[Array, ...]:
        """A block's parameters, the last block filled up to the length of the others: another shape compiles anew."""
        if not arrays:
            return ()
        rounds = len(arrays[0])
        self._block_rounds = max(self._block_rounds, rounds)
        missing = self._block_rounds - rounds
        full = [
            np.concatenate([array, np.repeat(array[-1:], missing, axis=0)]) if missing else array for array in arrays
        ]
        return tuple(jnp.asarray(array, dtype=self._dtype) for array in full)

    def _stretch(self, carry: Carry, loss: tuple[Array, ...], constraint: tuple[Array, ...], stop: int) -> Carry:
        try:
            return self._advance(carry, loss, constraint, stop)
        except (jax.errors.JAXTypeError, jax.errors.JAXIndexError, TypeError, AttributeError, IndexError) as error:
            raise InputError(
                "engine",
                f"{self._problem.name!r} played by {type(self._learner).__name__} cannot be compiled: "
                + str(error).split("\n", 1)[0].rstrip("."),
                "Write your functions with the array library of their arguments and without branches on values, "
                "or use engine='numpy'",
            ) from error

    def _faults(self, carry: Carry, loss: tuple[Array, ...], constraint: tuple[Array, ...], t: int) -> list[InputError]:
        """The words for the round that the carry stands before, from the code that the reference engine uses."""
        x, here = self._learner.ask(carry.state), int(carry.position)
        feedback = observe(self._problem, x, [array[here] for array in loss], [array[here] for array in constraint])
        return list(Limits.declared(self._learner, x, self._problem).faults(feedback, t))

    def _refusal(self, loss: tuple[Array, ...], constraint: tuple[Array, ...]) -> InputError:
        faults = self._faults(self._carry, loss, constraint, self.played + 1)
        if faults:
            return faults[0]
        # Compiled and step-by-step arithmetic may differ in the last digit, right at a bound.
        what = "a declared bound was exceeded by rounding"
        return BrokenBoundError("feedback", what, "Declare bounds with a little room", round=self.played + 1)

    def _note_broken_bounds(
        self, start: Carry, loss: tuple[Array, ...], constraint: tuple[Array, ...], first: int
    ) -> None:
        """Where the run goes on past a broken bound: the first round of each, by playing up to it once more."""
        for argument, position in zip(BOUNDED, np.asarray(self._carry.first_broken).tolist(), strict=True):
            played = position < int(self._carry.position)  # a round that stopped the run was not played
            if played and argument not in self._warned:
                there = self._advance(start, loss, constraint, position)
                faults = self._faults(there, loss, constraint, first + position)
                words = {fault.argument: str(fault) for fault in faults}
                self._warned[argument] = words.get(argument, f"{argument} in round {first + position}: at its bound")

    def trace(self) -> Trace:
        """What happened so far, in NumPy arrays."""
        state, sums, report = jax.tree.map(np.asarray, (self._carry.state, self._carry.sums, self._carry.report))
        return self._recorder.trace(sums, report, state, self._warned)
