"""Counts of all workers, and figures over the last hours, in the service's database.

Each worker adds its counts (calls, actions, refusals, latencies) to the stored totals once a second, in one
transaction. A worker that is killed loses the counts of its last second. Money, prices and open rounds are not counted
here: they are read from the objects themselves, so they are exact.

Part 0 of the object is the totals. Part ⌊time / step⌋ is what happened in that interval of `step` seconds.
"""

from __future__ import annotations

import json
import math
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Any

from longterm.errors import DatabaseError
from longterm.storage import schema as sql
from longterm.storage.contents import INTERNAL
from longterm.storage.database import Database
from longterm.storage.engine import Durability
from longterm.storage.rows_replica import NoCopy, RowsReplica
from longterm.storage.stored_object import Stored

KIND = f"{INTERNAL}history"
OBJECT = "longterm server"
"""Its name in the database."""
STEP = 10
"""Seconds of an interval."""
KEEP = 6 * 3600
"""Seconds that are kept."""
WEEK, WEEK_STEP, WEEK_OBJECT = 7 * 24 * 3600, 600, "longterm server week"
"""The same for the longer history with longer intervals, and its name."""
EVENTS = 50
"""Refusals that are kept."""
LIMITS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Upper limits of the latency histogram, in seconds; a last bucket has no limit."""
Counts = Counter[tuple[str, ...]]
"""Numbers by what is counted and its labels, such as ("refused", name)."""


Interval = tuple[int, Counts, dict[str, Any]]
"""The time at which an interval begins, its counts and its last figures."""


class History(Stored[NoCopy]):
    """The stored counts and figures of a service, shared by its workers.

    Parameters
    ----------
    url : str
        The service's database.
    step : int
        Seconds of an interval; the same in all workers.
    durability : {"commit", "relaxed"}
        That of the service's objects, so that they share connections.
    name : str
        Its name in the database.
    keep : int
        Seconds that are kept.
    """

    _replica: RowsReplica

    def __init__(
        self,
        url: str,
        step: int = STEP,
        durability: Durability = "relaxed",
        *,
        name: str = OBJECT,
        keep: int = KEEP,
    ) -> None:
        self.step, self.keep = step, keep
        self._replica = RowsReplica(KIND, {"step": step})
        self._replica.attach(url, name, durability)

    def add(self, counts: Counts, figures: dict[str, Any] | None = None, events: Sequence[dict[str, Any]] = ()) -> None:
        """Add counts to the totals and to the present interval. Figures replace those of the interval.

        Of the events, the last ones of all workers are kept.
        """
        self._replica.run(self._add, counts, figures, events)

    def _add(
        self, database: Database, counts: Counts, figures: dict[str, Any] | None, events: Sequence[dict[str, Any]]
    ) -> None:
        now = database.now() // 1_000_000 // self.step
        before, kept = self._part(database, 0)
        totals, last = before + counts, {"events": [*kept.get("events", ()), *events][-EVENTS:]}
        before, latest = self._part(database, now)
        interval = before + Counter({key: n for key, n in counts.items() if key[0] != "seconds"})
        name = self._replica.name
        written = [
            (sql.TOUCH_OBJECT, (time.time(), name)),
            (sql.PUT_PART, (name, 0, _encode(totals, last))),
            (sql.PUT_PART, (name, now, _encode(interval, latest if figures is None else figures))),
            (sql.DELETE_OLD_PARTS, (name, 0, now - self.keep // self.step)),
        ]
        database.write_locked(written)

    def totals(self) -> Counts:
        """Return the counts of all workers since the database was created."""
        found: Counts = self._replica.run(lambda database: self._part(database, 0)[0])
        return found

    def events(self) -> list[dict[str, Any]]:
        """Return the last events of all workers, the oldest first."""
        found: dict[str, Any] = self._replica.run(lambda database: self._part(database, 0)[1])
        return list(found.get("events", ()))

    def since(self, seconds: float) -> list[Interval]:
        """Return the intervals of the last seconds: the time of each, its counts and its figures."""

        def read(database: Database) -> list[Interval]:
            last = database.now() // 1_000_000 // self.step
            first = max(int(last - seconds / self.step), 1)
            rows = database.read(sql.READ_PARTS_SINCE, self._replica.name, first)
            return [(number * self.step, *self._decode(database, content)) for number, content in rows]

        found: list[Interval] = self._replica.run(read)
        return found

    def _part(self, database: Database, number: int) -> tuple[Counts, dict[str, Any]]:
        contents = database.parts(self._replica.name, number - 1, number)
        return self._decode(database, contents[0]) if contents else (Counter(), {})

    def _decode(self, database: Database, content: bytes) -> tuple[Counts, dict[str, Any]]:
        try:
            counts, figures = json.loads(content)
            found = Counter({tuple(map(str, labels)): number for labels, number in counts})
            sound = all(isinstance(n, (int, float)) and 0 <= n < math.inf for n in found.values())
        except (ValueError, TypeError, RecursionError):
            sound = False
        if not sound or not isinstance(figures, dict):
            raise DatabaseError(database.path, "corrupted", "the server's history is inconsistent", "Restore a backup")
        return found, figures


def thinned(intervals: list[Interval], most: int) -> list[Interval]:
    """Return at most so many intervals: neighbours are merged, counts are added, the last figures are kept."""
    size = -(-len(intervals) // most) or 1
    groups = [intervals[start : start + size] for start in range(0, len(intervals), size)]
    return [(one[-1][0], sum((counts for _, counts, _ in one), Counter()), one[-1][2]) for one in groups]


def _encode(counts: Counts, figures: dict[str, Any]) -> bytes:
    return json.dumps([[[list(labels), number] for labels, number in counts.items()], figures]).encode()


class HistoryRecorder:
    """The counts of one worker, until they are added to the history.

    Parameters
    ----------
    history : History
        Where they are added.
    week : History, optional
        Where they are added as well, with every figure.
    """

    def __init__(self, history: History, week: History | None = None) -> None:
        self.history, self.week = history, week
        self._counts: Counts = Counter()
        self._of_week: Counts = Counter()
        self._events: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._written = -math.inf

    @property
    def has_counts(self) -> bool:
        """Whether there is something to add."""
        return bool(self._counts)

    @property
    def is_due(self) -> bool:
        """Whether an interval has passed since figures were written."""
        return time.monotonic() - self._written >= self.history.step

    def count(self, *labels: str, number: float = 1) -> None:
        """Count something."""
        with self._lock:
            self._counts[labels] += number  # type: ignore[assignment]

    def time(self, call: str, name: str, seconds: float) -> None:
        """Add a latency to its histogram."""
        place = str(bisect_left(LIMITS, seconds))
        with self._lock:
            self._counts["seconds", call, name, place] += 1
            self._counts["seconds", call, name, "sum"] += seconds  # type: ignore[assignment]

    def note(self, **event: Any) -> None:
        """Keep an event for the page."""
        with self._lock:
            self._events.append(event)

    def flush(self, figures: dict[str, Any] | None = None) -> None:
        """Add the counts to the history, and perhaps figures. If that fails the counts are kept for the next time."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
            events, self._events = self._events, []
        try:
            self.history.add(counts, figures, events)
        except BaseException:
            with self._lock:
                self._counts.update(counts)
                self._events[:0] = events
            raise
        self._of_week.update({key: n for key, n in counts.items() if key[0] != "seconds"})
        if figures is None:
            return
        self._written = time.monotonic()
        if self.week is not None:
            self.week.add(self._of_week, figures)
            self._of_week = Counter()
