"""Rounds that a compiled loop recorded: the latest on the device, the others on the host or on their way there."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp
from numpy.typing import NDArray

from longterm._arrays import Array
from longterm.engines.recorder import Kept
from longterm.engines.trace import Sums

MOST_KEPT, KEPT_BYTES, FEW = 16, 2**25, 4
"""Recorded rounds that stay on the device: each array that comes from there takes as long as twenty rounds. So it has
several of them, a multiple of a FEW: each other number is compiled anew."""
THREADS = 4
"""To copy by: most of a copy's time goes into memory of the host's that nobody has touched before."""


_first = jax.jit(lambda rows, count: rows[:count], static_argnums=1)
_empty = jax.jit(jnp.zeros, static_argnums=0)


class DeviceRecords:
    """A row of numbers for each recorded round: its sums, then what the learner reported.

    A device that is not the host plays on while rows are copied, by threads of their own.
    """

    def __init__(self, sums: Sums, report: dict[str, Any], expected: int) -> None:
        """Rows for sums and reports of these shapes; so many are `expected` in all."""
        size = sum(np.size(value) for value in (*sums, *report.values()))
        self.most = min(max(KEPT_BYTES // max(8 * size, 1), 1), MOST_KEPT)
        self.rows = _empty((self.most + 1, size))
        """On the device; a compiled loop writes them."""
        self.rounds: list[int] = []
        """What they are about, as far as they are used."""
        self._there: NDArray[np.float64] = np.empty((expected, size))
        self._rounds_there: list[int] = []
        self._copier = None if jax.default_backend() == "cpu" else ThreadPoolExecutor(THREADS)
        self._on_their_way: list[Future[None]] = []

    def hand_over(self, least: int = 1) -> None:
        """Let the rows go to the host, if there are so many."""
        if len(self.rounds) < least:
            return
        first, count = len(self._rounds_there), len(self.rounds)
        if first + count > len(self._there):
            self._wait()
            self._there = np.concatenate([self._there, np.empty((first + count, self._there.shape[1]))])
        rows = _first(self.rows, min(-(-count // FEW) * FEW, self.most))
        self._rounds_there += self.rounds
        self.rounds = []
        if self._copier is None:
            self._copy(rows, first, count)
        else:
            self._on_their_way.append(self._copier.submit(self._copy, rows, first, count))

    def _copy(self, rows: Array, first: int, count: int) -> None:
        self._there[first : first + count] = np.asarray(rows)[:count]

    def _wait(self) -> None:
        for copied in self._on_their_way:
            copied.result()
        self._on_their_way.clear()

    def kept(self, sums: Sums, report: dict[str, Any]) -> Kept:
        """All of them, on the host, as arrays with the shapes and dtypes of these."""
        self.hand_over()
        self._wait()
        if self._copier is not None:
            self._copier.shutdown()
        rows = self._there[: len(self._rounds_there)]
        values, structure = jax.tree.flatten((sums, report))
        ends = np.cumsum([0, *(np.size(value) for value in values)])
        columns = [
            rows[:, begin:end].reshape(len(rows), *np.shape(value)).astype(value.dtype, copy=False)
            for (begin, end), value in zip(pairwise(ends), values, strict=True)
        ]
        return Kept(self._rounds_there, *jax.tree.unflatten(structure, columns))


def in_a_row(sums: Sums, report: dict[str, Array]) -> Array:
    """What is recorded of a round, one number after another; to be compiled."""
    return jnp.concatenate([jnp.ravel(value).astype(jnp.float64) for value in jax.tree.leaves((sums, report))])
