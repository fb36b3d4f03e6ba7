"""Rows recorded on a device and copied to the host while the device continues."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import Array, FloatArray
from longterm.play.engines.recorder import RecordedRounds
from longterm.play.engines.sums import Sums

COPY_THREADS = 4
"""Most of a copy's time goes into first touching the host's memory. On an H200 with 1,000 seeds and the default record,
copies in threads make a round 1.6 times faster than copies by the main thread."""
ROWS_PER_COPY = 4
"""Copies have a multiple of this many rows, since each number of rows is compiled once."""


def row_size(sums: Sums, report: dict[str, Any]) -> int:
    """Return how many numbers one recorded round has."""
    return sum(int(np.prod(np.shape(value))) for value in (*sums, *report.values()))


class DeviceRecords:
    """A table on the host with one row of numbers for each recorded round: its sums, then the learner's report."""

    def __init__(self, size: int, expected: int) -> None:
        self._table: FloatArray = np.empty((expected, size))
        self._rounds: list[int] = []
        self._threads = None if jax.default_backend() == "cpu" else ThreadPoolExecutor(COPY_THREADS)
        self._copies: list[Future[None]] = []

    def append(self, rounds: list[int], rows: Array) -> None:
        """Append the first rows of an array on the device, one for each of these rounds."""
        first, count = len(self._rounds), len(rounds)
        if first + count > len(self._table):
            self._wait()
            self._table = np.concatenate([self._table, np.empty((first + count, self._table.shape[1]))])
        self._rounds += rounds
        rows = rows[: min(-(-count // ROWS_PER_COPY) * ROWS_PER_COPY, len(rows))]
        if self._threads is None:
            self._copy(rows, first, count)
        else:
            self._copies.append(self._threads.submit(self._copy, rows, first, count))

    def _copy(self, rows: Array, first: int, count: int) -> None:
        self._table[first : first + count] = np.asarray(rows)[:count]

    def _wait(self) -> None:
        for copy in self._copies:
            copy.result()
        self._copies.clear()

    def recorded_rounds(self, sums: Sums, report: dict[str, NDArray[Any]]) -> RecordedRounds:
        """Return all rows as arrays with the shapes and dtypes of `sums` and `report`."""
        self._wait()
        table = self._table[: len(self._rounds)]
        values, structure = jax.tree.flatten((sums, report))
        ends = np.cumsum([0, *(value.size for value in values)])
        columns = [
            table[:, begin:end].reshape(len(table), *value.shape).astype(value.dtype, copy=False)
            for (begin, end), value in zip(pairwise(ends), values, strict=True)
        ]
        return RecordedRounds(list(self._rounds), *jax.tree.unflatten(structure, columns))
