"""The rounds of a run that are recorded, and the trace made of them. Both engines use it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import Array, to_numpy
from longterm.errors import InputError
from longterm.play.engines.sums import Sums
from longterm.play.engines.trace import SUM_OF_COLUMN, SeedsPlayed, Trace
from longterm.problems import Problem
from longterm.problems.streams import Stream

DECADES = 18
"""Powers of ten that log-spaced rounds cover: more rounds than any run has."""


def log_spaced_rounds(per_decade: int = 20) -> list[int]:
    """Return 1, 2, 3, … thinned out to `per_decade` rounds for each power of ten."""
    return sorted({round(10 ** (step / per_decade)) for step in range(DECADES * per_decade + 1)})


class RecordedRounds(NamedTuple):
    """The recorded rounds of a run, in arrays with the rounds on the first axis."""

    rounds: list[int]
    sums: Sums
    report: dict[str, NDArray[Any]]

    @classmethod
    def stacked(
        cls, rows: Sequence[tuple[int, Sums, dict[str, Array]]], like: tuple[Sums, dict[str, Array]]
    ) -> RecordedRounds:
        """Stack rows of (round, sums, report); `like` gives the shapes where there are no rows."""

        def stack(values: list[Array], one: Array) -> NDArray[Any]:
            return np.stack([to_numpy(value) for value in values]) if values else np.empty((0, *one.shape))

        sums = Sums(*(stack([row[1][i] for row in rows], one) for i, one in enumerate(like[0])))
        report = {name: stack([row[2][name] for row in rows], to_numpy(one)) for name, one in like[1].items()}
        return cls([t for t, _, _ in rows], sums, report)

    def followed_by(self, later: RecordedRounds) -> RecordedRounds:
        """Return these rounds followed by later ones."""
        sums = Sums(*(np.concatenate(both) for both in zip(self.sums, later.sums, strict=True)))
        report = {name: np.concatenate([ours, later.report[name]]) for name, ours in self.report.items()}
        return RecordedRounds(self.rounds + later.rounds, sums, report)


class Recorder:
    """The rounds that a run still has to record, and the trace of the recorded ones.

    The reference engine records through `record`. The compiled engine asks for the rounds of a block with `until`,
    records them on its device, and calls `advance_to`. `record` None means log-spaced rounds.
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
        self._wanted = log_spaced_rounds() if record is None else _validate_rounds(record)
        self._rounds = rounds
        self._rows: list[tuple[int, Sums, dict[str, Array]]] = []
        self._seeds, self._problem, self._stream = seeds, problem, stream
        self._earlier = earlier
        done = 0 if earlier is None else earlier.last_round
        # Every part of a run records its last round. The whole run has that round only where it was asked for.
        self._drop_last_of_earlier = done > 0 and done not in self._wanted
        self._next = 0
        self.advance_to(done)

    @property
    def next(self) -> int | None:
        """The next round to record, or None."""
        return self._wanted[self._next] if self._next < len(self._wanted) else None

    @property
    def expected(self) -> int:
        """The number of rounds still to record, or 0 where the run's length is unknown."""
        return 0 if self._rounds is None else len(self.until(self._rounds))

    def until(self, last: int) -> list[int]:
        """Return the rounds still to record up to round `last`, the last round of the run included."""
        found = self._wanted[self._next : bisect_right(self._wanted, last)]
        return found if last != self._rounds or found[-1:] == [last] else [*found, last]

    def advance_to(self, t: int) -> None:
        """Continue with the rounds after t."""
        self._next = bisect_right(self._wanted, t)

    def record(self, t: int, sums: Sums, report: dict[str, Array]) -> None:
        """Record round t."""
        self._rows.append((t, sums, report))
        self._next += 1

    def trace(
        self,
        sums: Sums,
        report: dict[str, Array],
        state: Any,
        warnings: Mapping[str, str],
        recorded: RecordedRounds | None = None,
    ) -> Trace:
        """Return the trace of all recorded rounds, which always ends with the latest round.

        `recorded` holds the rounds of an engine that recorded them itself.
        """
        latest = int(np.max(np.asarray(state.round))) - 1
        if self._earlier is not None and self._earlier.last_round == latest:
            return self._earlier
        recorded = recorded or RecordedRounds.stacked(self._rows, (sums, report))
        if (recorded.rounds[-1] if recorded.rounds else 0) < latest:
            recorded = recorded.followed_by(RecordedRounds.stacked([(latest, sums, report)], (sums, report)))
        batch_shape = tuple(sums.loss.shape)
        trace = Trace(
            rounds=np.array(recorded.rounds, dtype=np.int64),
            **{column: getattr(recorded.sums, total) for column, total in SUM_OF_COLUMN.items()},
            reports={name: _broadcast_report(values, batch_shape) for name, values in recorded.report.items()},
            state=state,
            sums=sums,
            seeds=self._seeds,
            warnings=dict(warnings),
            problem=self._problem,
            stream=self._stream,
        )
        if self._earlier is None:
            return trace
        return _join(self._earlier, len(self._earlier.rounds) - self._drop_last_of_earlier, trace)


def _join(earlier: Trace, count: int, later: Trace) -> Trace:
    """Return the later trace preceded by the first `count` rounds of the earlier one."""
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(earlier, name)[:count], getattr(later, name)])
        for name in ("rounds", *SUM_OF_COLUMN)
    }
    reports = {name: np.concatenate([earlier.reports[name][:count], later.reports[name]]) for name in later.reports}
    return replace(later, **columns, reports=reports)


def _broadcast_report(values: NDArray[Any], batch_shape: tuple[int, ...]) -> NDArray[Any]:
    """Broadcast a report that is common to all learners over the batch axes."""
    missing = len(batch_shape) + 1 - values.ndim
    if missing < 0 or values.shape[1:] == batch_shape:
        return values
    expanded = values.reshape(len(values), *(1,) * missing, *values.shape[1:])
    return np.array(np.broadcast_to(expanded, (len(values), *batch_shape)))


def _validate_rounds(record: Sequence[int]) -> list[int]:
    """Return the rounds sorted, each once; raise if they are not positive integers."""
    rounds = np.asarray(record)
    if rounds.ndim != 1 or rounds.size == 0 or rounds.dtype.kind not in "iu" or rounds.min() < 1:
        raise InputError("record", f"{record!r} is not a list of rounds", "Give rounds counted from 1, or None")
    return [int(t) for t in np.unique(rounds)]
