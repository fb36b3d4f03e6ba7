"""One record of memory for each of many learners.

A record holds all fields of one learner side by side and fills whole cache lines, so that a row is gathered from one
place instead of one place per field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import CACHE_LINE, cache_aligned_zeros

Rows = slice | NDArray[np.int64]
"""A selection of rows. Numbers are in range and distinct."""
Fields = Mapping[str, NDArray[Any]]
"""Arrays by field name, one row for each learner."""


class Records:
    """The records of many learners.

    Parameters
    ----------
    fields : mapping of str to array
        The contents of the records, one row for each learner.
    """

    def __init__(self, fields: Fields) -> None:
        layout: list[Any] = [(name, array.dtype, array.shape[1:]) for name, array in fields.items()]
        dtype = np.dtype(layout, align=True)
        padding = -dtype.itemsize % CACHE_LINE
        if padding:
            dtype = np.dtype([*layout, ("padding", np.uint8, (padding,))], align=True)
        count = len(next(iter(fields.values())))
        self._records: NDArray[np.void] = cache_aligned_zeros(count * dtype.itemsize).view(dtype)
        for name, array in fields.items():
            self._records[name] = array

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy in writable memory. Memory mapped from another process may be read-only."""
        self.__dict__ |= state | {"_records": np.require(state["_records"], requirements="W")}

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a view of one field of all records."""
        return self._records[name]

    def gather(self, rows: Rows, names: Iterable[str]) -> dict[str, NDArray[Any]]:
        """Return copies of these fields of these records."""
        if isinstance(rows, slice):
            return {name: self._records[name][rows].copy() for name in names}
        records = self._take(rows)
        return {name: np.ascontiguousarray(records[name]) for name in names}

    def put(self, rows: Rows, fields: Fields) -> None:
        """Write these fields of these records."""
        if isinstance(rows, slice):
            for name, values in fields.items():
                self._records[name][rows] = values
            return
        records = self._take(rows)
        for name, values in fields.items():
            records[name] = values
        self._bytes.put(rows, records.view(self._bytes.dtype), mode="clip")

    @property
    def _bytes(self) -> NDArray[np.void]:
        """The records as opaque bytes, which NumPy copies several times faster than structured ones."""
        return self._records.view(np.dtype((np.void, self._records.dtype.itemsize)))

    def _take(self, numbers: NDArray[np.int64]) -> NDArray[np.void]:
        """Return copies of whole records. `mode="clip"` skips a second range check, which takes half the time."""
        return self._bytes.take(numbers, mode="clip").view(self._records.dtype)
