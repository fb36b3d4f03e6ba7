"""The loop over rounds: learners × a problem × a stream × seeds → traces."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from longterm._base import validate
from longterm._base.progress import Progress, reporter
from longterm.errors import InputError, StreamEndedError
from longterm.learners.interface.feedback_check import OnBrokenBound, require_known
from longterm.learners.interface.learner import Learner
from longterm.play.engines.comparison import Comparison
from longterm.play.engines.recorder import Recorder
from longterm.play.engines.reference import ReferenceRunner
from longterm.play.engines.selection import Engine, EngineChoice, faster_engine
from longterm.play.engines.trace import SeedsPlayed, Trace
from longterm.play.engines.validation import require_fit, require_kinds, require_mapping, require_resumable
from longterm.problems import Problem
from longterm.problems.streams import Stream
from longterm.problems.streams.base import Block, Seeds, validate_seeds

if TYPE_CHECKING:
    from longterm.play.engines.compiled import CompiledRunner
    from longterm.play.engines.device_streams import DrawnBlock

logger = logging.getLogger("longterm.play.engines")


def run(
    problem: Problem,
    learner: Learner[Any],
    stream: Stream,
    rounds: int | None = None,
    *,
    seeds: Seeds = 0,
    record: Sequence[int] | None = None,
    resume: Trace | None = None,
    on_broken_bound: OnBrokenBound = "raise",
    progress: Progress = "auto",
    engine: EngineChoice = "numpy",
    xp: Any = np,
    dtype: Any = None,
) -> Trace:
    """Run one learner for `rounds` rounds of a stream.

    Parameters
    ----------
    problem : Problem
        The set, the loss and the constraint.
    learner : Learner
        One learner, or a grid of them: hyper-parameters that are arrays.
    stream : Stream
        The parameters of f_1, f_2, … and of g_1, g_2, …
    rounds : int, optional
        T, counted from the start of the stream even when resuming. By default a finite stream is run to its end.
    seeds : int or sequence of int
        One seed for a single run; a sequence, ``range(10)``, for a batch: its i-th row is the single run with the
        i-th seed. A grid of hyper-parameters of shape (3,) and ten seeds give a (3, 10) batch.
    record : sequence of int, optional
        The rounds to record in the trace; by default log-spaced ones. The last round is always recorded.
    resume : Trace, optional
        An earlier run of the same learner, problem, stream and seeds, to be continued. The two together equal one
        uninterrupted run bit for bit.
    on_broken_bound : {"raise", "warn"}
        "raise" stops at the first gradient or constraint above its declared bound; "warn" goes on and notes it in
        ``trace.warnings``. NaN and infinity always stop the run.
    progress : {"auto"} or callable or None
        "auto" shows a bar on a terminal; a function is called with (rounds done, rounds in all).
    engine : {"numpy", "jax", "auto"}
        "numpy" is the reference. "jax" compiles the same learner, problem and stream (extra `jax`) and is more than
        ten times faster for one learner. Both give the same trace, to rounding, in NumPy arrays. "auto" takes "jax"
        if JAX is installed, the run is long and every part comes from this library. The progress bar and the logger
        ``longterm.play.engines`` name the engine. "auto" is not the default, because the engines agree to rounding
        only: the numbers of a run should not depend on its length or on the installed packages.
    xp : namespace
        The array library of the learner's state, for the reference engine only.
    dtype : dtype, optional
        The dtype of the learner's state; float64 by default.

    Returns
    -------
    Trace
        The recorded rounds, and the state to continue from.

    Raises
    ------
    InputError
        Naming the argument, the round and the remedy. Every exception that stops a run, an interrupt included, has
        the attribute ``trace``: the run up to the round before, ready for ``resume``.

    Examples
    --------
    >>> from longterm import AOGD, run
    >>> from longterm.problems import doubly_stochastic
    >>> from longterm.problems.streams import RandomPermutations
    >>> problem = doubly_stochastic(4)
    >>> trace = run(problem, AOGD.for_problem(problem), RandomPermutations(4), rounds=100, seeds=range(3))
    >>> trace.rounds[-1], trace.cumulative_loss.shape
    (np.int64(100), (30, 3))
    """
    require_kinds(problem, {"learner": learner}, stream)
    loop = _Loop(problem, stream, rounds, validate_seeds(seeds), record, on_broken_bound, engine, xp, dtype)
    loop = loop.validated([learner], resuming=resume is not None)
    runner = loop.runner(learner, resume)
    try:
        loop.execute([runner], progress, loop.title(problem.name, engine))
    except BaseException as error:
        error.trace = runner.trace()  # type: ignore[attr-defined]
        raise
    return runner.trace()


def compare(
    problem: Problem,
    learners: Mapping[str, Learner[Any]],
    stream: Stream,
    rounds: int | None = None,
    *,
    seeds: Seeds = 0,
    record: Sequence[int] | None = None,
    resume: Mapping[str, Trace] | None = None,
    on_broken_bound: OnBrokenBound = "raise",
    progress: Progress = "auto",
    engine: EngineChoice = "numpy",
    xp: Any = np,
    dtype: Any = None,
) -> Comparison:
    """Run several learners on the same rounds of a stream.

    Parameters
    ----------
    problem : Problem
        The set, the loss and the constraint.
    learners : mapping of str to Learner
        The learners, by name.
    stream : Stream
        The rounds that all of them see.
    resume : mapping of str to Trace, optional
        Earlier traces, by the same names.
    rounds, seeds, record, on_broken_bound, progress, engine, xp, dtype : optional
        As for `run`.

    Returns
    -------
    Comparison
        A trace for each name, as a mapping, with `plot`, `summary` and `to_frame`.

    Raises
    ------
    InputError
        As for `run`; its ``trace`` is a dictionary of the traces so far.

    Examples
    --------
    >>> from longterm import AOGD, compare
    >>> from longterm.problems import doubly_stochastic
    >>> from longterm.problems.streams import RandomPermutations
    >>> problem = doubly_stochastic(4)
    >>> learners = {"slow": AOGD.for_problem(problem, beta=0.5), "fast": AOGD.for_problem(problem, beta=0.8)}
    >>> traces = compare(problem, learners, RandomPermutations(4), rounds=100)
    >>> {name: int(trace.last_round) for name, trace in traces.items()}
    {'slow': 100, 'fast': 100}
    """
    require_mapping(learners)
    require_kinds(problem, {f"learners[{name!r}]": learner for name, learner in learners.items()}, stream)
    if not learners:
        raise InputError("learners", "is empty", "Give at least one learner, by name")
    loop = _Loop(problem, stream, rounds, validate_seeds(seeds), record, on_broken_bound, engine, xp, dtype)
    loop = loop.validated(learners.values(), resuming=resume is not None)
    for name in learners:
        if resume is not None and name not in resume:
            raise InputError("resume", f"has no trace of {name!r}", "Give the traces of all the learners")
    runners = {
        name: loop.runner(learner, None if resume is None else resume[name]) for name, learner in learners.items()
    }
    try:
        loop.execute(list(runners.values()), progress, loop.title(", ".join(learners), engine))
    except BaseException as error:
        error.trace = {name: runner.trace() for name, runner in runners.items()}  # type: ignore[attr-defined]
        raise
    return Comparison({name: runner.trace() for name, runner in runners.items()}, learners)


@cache
def _log_once(message: str) -> None:
    logger.info(message)


@dataclass(frozen=True)
class _Loop:
    """The settings that all learners of one run share, and the loop over the blocks of the stream."""

    problem: Problem
    stream: Stream
    rounds: int | None
    seeds: SeedsPlayed
    record: Sequence[int] | None
    on_broken_bound: OnBrokenBound
    engine: EngineChoice
    xp: Any
    dtype: Any

    def validated(self, learners: Iterable[Learner[Any]], *, resuming: bool) -> _Loop:
        """Return the loop with its engine chosen; raise if one of its settings is not valid."""
        if self.rounds is not None:
            validate.count("rounds", self.rounds)
        require_known(self.on_broken_bound)
        if self.engine not in ("numpy", "jax", "auto"):
            raise InputError("engine", f"{self.engine!r} is not known", "Choose 'numpy', 'jax' or 'auto'")
        if self.engine == "jax" and self.xp is not np:
            raise InputError("xp", "works with the NumPy engine only", "Leave it out with engine='jax'")
        faster: Engine = "numpy"
        if self.xp is np and not resuming:
            faster = faster_engine(self.total, (self.problem.loss, self.problem.constraint, *learners))
        if self.engine == "auto":
            logger.info("engine %s was chosen", faster)
            return replace(self, engine=faster)
        if self.engine == "numpy" and faster == "jax":
            _log_once("engine='auto' would compile this long run, for the same numbers to rounding")
        return self

    def title(self, name: str, asked_for: EngineChoice) -> str:
        """Return the title of the progress bar, with the engine where it was chosen automatically."""
        return f"{name} ({self.engine})" if asked_for == "auto" else name

    @property
    def total(self) -> int | None:
        """The number of rounds, where it is known."""
        return self.stream.length if self.rounds is None else self.rounds

    @property
    def seed_axes(self) -> tuple[int, ...]:
        return () if isinstance(self.seeds, int) else (len(self.seeds),)

    def runner(self, learner: Learner[Any], resume: Trace | None) -> ReferenceRunner | CompiledRunner:
        """Return the learner's runner, before its first round or after the last one of `resume`."""
        learner.check(self.problem)
        batch_shape = learner.batch_shape + self.seed_axes
        if resume is not None:
            require_resumable(resume, batch_shape, self.seeds, self.rounds)
        options: dict[str, Any] = {
            "batch_shape": batch_shape,
            "recorder": Recorder(
                self.record, resume, self.seeds, rounds=self.total, problem=self.problem, stream=self.stream
            ),
            "on_broken_bound": self.on_broken_bound,
            "resume": resume,
            "dtype": self.dtype,
        }
        learner = learner.with_trailing_axes(len(self.seed_axes))
        if self.engine == "numpy":
            return ReferenceRunner(self.problem, learner, xp=self.xp, **options)
        from longterm.play.engines.compiled import CompiledRunner

        return CompiledRunner(self.problem, learner, **options)

    def execute(self, runners: Sequence[ReferenceRunner | CompiledRunner], progress: Progress, title: str) -> None:
        """Run all rounds, block by block; raise StreamEndedError if the stream is too short."""
        start = done = min(runner.rounds_done for runner in runners)
        with reporter(progress, title) as report:
            for first, block in self._blocks(start):
                if isinstance(block, Block):
                    require_fit(self.problem, block, self.seed_axes, first)
                elif done == start:  # a device draws blocks of one shape: validate one round of one seed
                    seed = self.seeds if isinstance(self.seeds, int) else self.seeds[0]
                    require_fit(self.problem, next(self.stream.blocks(seed, start, start + 1)), (), first)
                for runner in runners:
                    runner.run_block(block, first)  # type: ignore[arg-type]
                done = first - 1 + block.rounds
                report(done, self.total)
            if done == 0 or (self.rounds is not None and done < self.rounds):
                what = "is empty" if done == 0 else f"ended after round {done}, but {self.rounds} were requested"
                raise StreamEndedError("stream", what, "Give a longer stream or fewer rounds", round=done + 1)

    def _blocks(self, start: int) -> Iterator[tuple[int, Block | DrawnBlock]]:
        """Yield the rounds after `start` in blocks, each with the number of its first round."""
        if self.engine == "jax" and self.rounds is not None:
            from longterm.play.engines import device_streams

            if device_streams.can_draw(self.stream, self.seeds):
                last = self.rounds if self.stream.length is None else min(self.rounds, self.stream.length)
                yield from device_streams.drawn_blocks(self.stream, self.seeds, start, last)  # type: ignore[arg-type]
                return
        first = start + 1
        for block in self.stream.blocks(self.seeds, start, self.rounds):
            yield first, block
            first += block.rounds
