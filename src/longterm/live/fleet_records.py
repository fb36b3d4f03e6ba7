"""All that is known of each of many learners, side by side in one record.

A row is then gathered from one place in memory, not from one for every field. A record begins with a cache line and
fills whole ones. Rows that were gathered are an array for each field again: that is what arithmetic wants.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import CACHE_LINE, cache_aligned_zeros

MANY = 4096
"""Records from which on what NumPy takes long for is compiled, where Numba is there."""
FEW = 256
"""Rows for which NumPy's calls are as good."""
Who = slice | NDArray[np.int64]
"""Which rows. Numbers are known to be rows, and no two the same."""
Fields = Mapping[str, NDArray[Any]]
"""By the name of a field, its values, a row for each learner."""


class Records:
    """A record for each of many learners.

    Parameters
    ----------
    fields : mapping of str to array
        What a record holds, a row for each learner.
    """

    def __init__(self, fields: Fields) -> None:
        kinds: list[Any] = [(name, array.dtype, array.shape[1:]) for name, array in fields.items()]
        kind = np.dtype(kinds, align=True)
        rest = -kind.itemsize % CACHE_LINE
        if rest:
            kind = np.dtype([*kinds, ("rest", np.uint8, (rest,))], align=True)
        count = len(next(iter(fields.values())))
        self._all: NDArray[np.void] = cache_aligned_zeros(count * kind.itemsize).view(kind)
        for name, array in fields.items():
            self._all[name] = array
        self._layouts: dict[tuple[str, ...], tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        compiled_passes(count)  # here, not in the first call

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Become a copy: with memory that can be written to, which that of another process may not be."""
        self.__dict__ |= state | {"_all": np.require(state["_all"], requirements="W")}

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """A field of all records, as a view."""
        return self._all[name]

    def kernels_for(self, count: int) -> Any:
        """`fleet_compiled`, where so many rows are passed over by it; else None."""
        return compiled_passes(len(self)) if count > FEW else None

    def gathered(self, who: Who, names: Iterable[str]) -> dict[str, NDArray[Any]]:
        """Fields of these records, copied: an array for each."""
        if isinstance(who, slice):
            return {name: self._all[name][who].copy() for name in names}
        kernels = self.kernels_for(len(who))
        if kernels is not None:
            fields = {name: self._empty(name, len(who)) for name in names}
            self._moved(kernels.mover(), who, fields, into_records=False)
            return fields
        rows = self._taken(who)
        return {name: np.ascontiguousarray(rows[name]) for name in names}

    def put(self, who: Who, fields: Fields) -> None:
        """Give some of their fields to these records."""
        if isinstance(who, slice):
            for name, values in fields.items():
                self._all[name][who] = values
            return
        kernels = self.kernels_for(len(who))
        if kernels is not None:
            fitted = {name: self._fitted(name, values, len(who)) for name, values in fields.items()}
            self._moved(kernels.mover(), who, fitted, into_records=True)
            return
        rows = self._taken(who)
        for name, values in fields.items():
            rows[name] = values
        self._bytes.put(who, rows.view(self._bytes.dtype), mode="clip")

    @property  # not kept: a copy of these records has its own
    def _bytes(self) -> NDArray[np.void]:
        """Records as so many bytes: they are copied whole, in a fraction of the time of one field after another."""
        return self._all.view(np.dtype((np.void, self._all.dtype.itemsize)))

    def _taken(self, numbers: NDArray[np.int64]) -> NDArray[np.void]:
        """Records, copied. What is known to be in range is not looked at again, which halves the time."""
        return self._bytes.take(numbers, mode="clip").view(self._all.dtype)

    def _empty(self, name: str, count: int) -> NDArray[Any]:
        kind = self._all.dtype[name]
        return np.empty((count, *kind.shape), kind.base)

    def _fitted(self, name: str, values: NDArray[Any], count: int) -> NDArray[Any]:
        """Values as they lie in memory in `_empty`."""
        values, kind = np.asarray(values), self._all.dtype[name]
        if values.dtype == kind.base and values.shape == (count, *kind.shape) and values.flags.c_contiguous:
            return values
        made = self._empty(name, count)
        made[...] = values
        return made

    def _moved(self, move: Any, numbers: NDArray[np.int64], fields: Fields, *, into_records: bool) -> None:
        """Copy fields, compiled. Their arrays lie as `_empty` makes them."""
        if into_records and not self._all.flags.writeable:
            raise ValueError("these records are read-only")
        move(
            self._all.ctypes.data,
            self._all.dtype.itemsize,
            len(self._all),
            np.ascontiguousarray(numbers, dtype=np.int64),
            *self._layout(tuple(fields)),
            np.array([array.ctypes.data for array in fields.values()]),
            into_records,
        )

    def _layout(self, names: tuple[str, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where in a record these fields begin, and their bytes."""
        found = self._layouts.get(names)
        if found is None:
            fields: Any = self._all.dtype.fields
            places = np.array([(fields[name][1], fields[name][0].itemsize) for name in names], dtype=np.int64)
            found = self._layouts[names] = places[:, 0].copy(), places[:, 1].copy()
        return found


def compiled_passes(count: int) -> ModuleType | None:
    """`fleet_compiled`, for so many records; None for few. It is not kept by a fleet: a copy finds it where it is."""
    return _compiled_passes() if count >= MANY else None


@cache
def _compiled_passes() -> ModuleType | None:
    """None without a Numba that can be loaded, goes with this NumPy and may compile."""
    if find_spec("numba") is None:
        return None
    try:
        passes = import_module("longterm.live.fleet_compiled")
    except (ImportError, OSError):
        return None
    return passes if passes.mover() is not None else None
