"""The reference engine: one learner's rounds, one after another, in plain array operations.

A `Recorder`, of this engine and of the compiled one, keeps chosen rounds of a run, and makes its trace of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import Array, namespace, to_numpy
from longterm.engines.trace import SUM_OF_COLUMN, SeedsPlayed, Sums, Trace
from longterm.errors import BrokenBoundError, InputError
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback, observe
from longterm.learners.feedback_check import Limits, OnBrokenBound, require_match
from longterm.problems import Problem
from longterm.streams import Block, Stream


def log_spaced(per_decade: int = 20) -> Iterator[int]:
    """1, 2, 3, … thinning out to `per_decade` rounds for each power of ten, without end."""
    latest, step = 0, 0
    while True:
        candidate = round(10 ** (step / per_decade))
        step += 1
        if candidate > latest:
            latest = candidate
            yield candidate


class Kept(NamedTuple):
    """What was kept, in arrays with the rounds first."""

    rounds: list[int]
    sums: Sums
    report: dict[str, NDArray[Any]]

    @classmethod
    def stacked(cls, rows: Sequence[tuple[int, Sums, dict[str, Array]]], like: tuple[Sums, dict[str, Array]]) -> Kept:
        """These rounds; `like` has the shapes, should there be none."""

        def stack(values: list[Array], one: Array) -> NDArray[Any]:
            return np.stack([to_numpy(value) for value in values]) if values else np.empty((0, *one.shape))

        sums = Sums(*(stack([row[1][i] for row in rows], one) for i, one in enumerate(like[0])))
        report = {name: stack([row[2][name] for row in rows], to_numpy(one)) for name, one in like[1].items()}
        return cls([t for t, _, _ in rows], sums, report)

    def followed_by(self, later: Kept) -> Kept:
        """These rounds, then those."""
        sums = Sums(*(np.concatenate(both) for both in zip(self.sums, later.sums, strict=True)))
        report = {name: np.concatenate([ours, later.report[name]]) for name, ours in self.report.items()}
        return Kept(self.rounds + later.rounds, sums, report)


class Recorder:
    """Knows which rounds of a run to keep, and makes the trace.

    An engine asks for the `next` one and hands it over (`keep`), or keeps rounds itself and says which are `passed`.
    """

    def __init__(
        self,
        record: Sequence[int] | None,
        earlier: Trace | None,
        seeds: SeedsPlayed = 0,
        *,
        rounds: int | None = None,
        problem: Problem | None = None,
        stream: Stream | None = None,
    ) -> None:
        self._rounds = rounds
        self._wanted = log_spaced() if record is None else iter(_checked_rounds(record))
        self._rows: list[tuple[int, Sums, dict[str, Array]]] = []
        self._seeds, self._problem, self._stream = seeds, problem, stream
        self._earlier = earlier
        done = 0 if earlier is None else earlier.last_round
        first = next((wanted for wanted in self._wanted if wanted >= done), None)
        # The last round of a part is kept whether it was asked for or not; the whole run would not have it.
        self._drop_last_of_earlier = done > 0 and first != done
        self._ahead = deque([] if first is None else [first])
        """The next rounds to keep, as far as they were looked up."""
        self.passed(done)

    @property
    def next(self) -> int | None:
        """The next round to keep, None where no more are wanted."""
        return self._ahead[0] if self._ahead else None

    @property
    def expected(self) -> int:
        """How many rounds will have been kept in the end, at least if that is known."""
        return 0 if self._rounds is None else len(self.until(self._rounds))

    def until(self, last: int) -> list[int]:
        """The rounds to keep that are ahead and not after `last`; the last one of the run is kept, too."""
        while self._ahead and self._ahead[-1] <= last and (wanted := next(self._wanted, None)) is not None:
            self._ahead.append(wanted)
        ahead = [wanted for wanted in self._ahead if wanted <= last]
        return ahead if last != self._rounds or ahead[-1:] == [last] else [*ahead, last]

    def passed(self, t: int) -> None:
        """Round t is behind."""
        while self._ahead and self._ahead[0] <= t:
            self._ahead.popleft()
            if not self._ahead and (wanted := next(self._wanted, None)) is not None:
                self._ahead.append(wanted)

    def keep(self, t: int, sums: Sums, report: dict[str, Array]) -> None:
        """Keep round t."""
        self._rows.append((t, sums, report))
        self.passed(t)

    def trace(
        self,
        sums: Sums,
        report: dict[str, Array],
        state: Any,
        warnings: Mapping[str, str],
        kept: Kept | None = None,
    ) -> Trace:
        """Everything kept so far, here or by the engine, and the latest round whether it was wanted or not."""
        latest = int(np.max(np.asarray(state.round))) - 1
        if self._earlier is not None and self._earlier.last_round == latest:
            return self._earlier
        kept = kept or Kept.stacked(self._rows, (sums, report))
        if (kept.rounds[-1] if kept.rounds else 0) < latest:
            kept = kept.followed_by(Kept.stacked([(latest, sums, report)], (sums, report)))
        batch_shape = tuple(sums.loss.shape)
        trace = Trace(
            rounds=np.array(kept.rounds, dtype=np.int64),
            **{column: getattr(kept.sums, total) for column, total in SUM_OF_COLUMN.items()},
            reports={name: _in_batch(values, batch_shape) for name, values in kept.report.items()},
            state=state,
            sums=sums,
            seeds=self._seeds,
            warnings=dict(warnings),
            problem=self._problem,
            stream=self._stream,
        )
        if self._earlier is None:
            return trace
        return _joined(self._earlier, len(self._earlier.rounds) - self._drop_last_of_earlier, trace)


def _joined(earlier: Trace, kept: int, later: Trace) -> Trace:
    """The first `kept` rows of the earlier part, then the later part."""
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(earlier, name)[:kept], getattr(later, name)])
        for name in ("rounds", *SUM_OF_COLUMN)
    }
    reports = {name: np.concatenate([earlier.reports[name][:kept], later.reports[name]]) for name in later.reports}
    return replace(later, **columns, reports=reports)


def _in_batch(values: NDArray[Any], batch_shape: tuple[int, ...]) -> NDArray[Any]:
    """A report, rounds first, is per learner; one that is the same for all is spread over the batch."""
    missing = len(batch_shape) + 1 - values.ndim
    if missing < 0 or values.shape[1:] == batch_shape:
        return values
    spread = values.reshape(len(values), *(1,) * missing, *values.shape[1:])
    return np.array(np.broadcast_to(spread, (len(values), *batch_shape)))


def _checked_rounds(record: Sequence[int]) -> list[int]:
    rounds = np.asarray(record)
    if rounds.ndim != 1 or rounds.size == 0 or rounds.dtype.kind not in "iu" or rounds.min() < 1:
        raise InputError("record", f"{record!r} is not a list of rounds", "Give rounds counted from 1, or None")
    return [int(t) for t in np.unique(rounds)]


class Player:
    """One learner (or a batch of them) on its way through a stream."""

    def __init__(
        self,
        problem: Problem,
        learner: Learner[Any],
        *,
        batch_shape: tuple[int, ...],
        recorder: Recorder,
        on_broken_bound: OnBrokenBound,
        resume: Trace | None,
        xp: Any = np,
        dtype: Any = None,
    ) -> None:
        self._problem = problem
        self._learner = learner
        self._recorder = recorder
        self._on_broken_bound = on_broken_bound
        if resume is None:
            self._state = learner.init(batch_shape, xp=xp, dtype=dtype)
            self._sums = Sums.zero(batch_shape, problem.constraint.count, xp)
        else:
            self._state, self._sums = resume.state, resume.sums
        self.played = 0 if resume is None else resume.last_round
        x = learner.ask(self._state)
        self._convert = namespace(x).asarray
        self._dtype = x.dtype
        self._limits = Limits.declared(learner, x, problem)
        self._latest = self._state
        self._warned: dict[str, str] = {} if resume is None else dict(resume.warnings)

    def play(self, block: Block, first: int) -> None:
        """Play the rounds of a block that starts at round `first`, those that are still ahead."""
        skip = self.played + 1 - first
        loss = [self._convert(array[skip:], dtype=self._dtype) for array in block.loss]
        constraint = [self._convert(array[skip:], dtype=self._dtype) for array in block.constraint]
        learner, problem, limits = self._learner, self._problem, self._limits
        all_of = namespace(self._sums.loss).all
        with np.errstate(all="ignore"):  # what is not finite is refused below, in words
            for i in range(block.rounds - skip):
                x = learner.ask(self._state)
                feedback = observe(
                    problem, x, [array[i, ...] for array in loss], [array[i, ...] for array in constraint]
                )
                if i == 0:
                    require_match(feedback, x, self.played + 1)
                if not all_of(limits.acceptable(feedback)):
                    self._refuse(feedback)
                self._sums = self._sums.add(feedback)
                if self.played + 1 == self._recorder.next:
                    self._recorder.keep(self.played + 1, self._sums, learner.report(self._state))
                self._latest, self._state = self._state, learner.update(self._state, feedback)
                self.played += 1

    def _refuse(self, feedback: Feedback) -> None:
        """Stop before round t is played, or note that a bound was broken and go on."""
        for fault in self._limits.faults(feedback, self.played + 1):
            if not isinstance(fault, BrokenBoundError) or self._on_broken_bound == "raise":
                raise fault
            self._warned.setdefault(fault.argument, str(fault))

    def trace(self) -> Trace:
        """What happened so far."""
        report = self._learner.report(self._latest)
        return self._recorder.trace(self._sums, report, self._state, self._warned)
