"""A kernel with the state it plays on: what the streaming object holds, whichever layout the state has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.linear_model import _one_row, sparse
from longterm.linear_model import play as dense
from longterm.linear_model._dying import ACTIVE, SIZE
from longterm.linear_model._layout import State
from longterm.linear_model._settings import Settings

NONE = np.empty(0)
KERNELS: dict[str, dense.Rule] = {
    "a-ftrl": "aftrl",
    "a-ogd": "aogd",
    "mahdavi": "aogd",
    "penalised-ftrl": "penalised_ftrl",
}


class Game(ABC):
    """One learner's memory, and the kernels that play on it. Nothing is checked but what kernels check themselves."""

    is_sparse: bool
    """Whether the memory is laid out for sparse rows, and blocks must be CSR."""
    _step: Any
    _places: NDArray[np.int64]
    state: Any
    """A named tuple of arrays; `numbers` has the scalars at the positions of `_layout`."""

    def __init__(self) -> None:
        self._kernels: dict[Any, Any] = {}
        self._p = NONE

    @property
    def numbers(self) -> FloatArray:
        """The scalars of the state."""
        return self.state.numbers  # type: ignore[no-any-return]

    @property
    def rounds(self) -> int:
        """Rounds played."""
        return int(self.state.round[0]) - 1

    def play(
        self,
        rows: Any,
        order: NDArray[np.int64],
        labels: FloatArray,
        weights: FloatArray,
        p: FloatArray,
        record: NDArray[np.int64],
        trace: FloatArray,
        margins: FloatArray,
    ) -> int:
        """Play rows; how many were played before one that must be refused."""
        kind = (rows[0].dtype, rows[1].dtype) if type(rows) is tuple else (rows.dtype,)
        run = self._kernels.get(kind)
        if run is None:  # the name of a dtype takes longer to find than a row to learn
            run = self._kernels[kind] = self._kernel(*(dtype.name for dtype in kind))
        return int(run(rows, order, labels, weights, p, *self.state, record, trace, margins))

    def _bind(self, p: FloatArray) -> None:
        """Load the kernel for one row, and note where `p` and the state's arrays, made once, are in memory."""
        self._step, self._p, self._places = self._row_kernel(), p, _one_row.places(p, *self.state)

    @abstractmethod
    def _row_kernel(self) -> Any:
        """The compiled rule for one row."""

    @abstractmethod
    def _kernel(self, values: str, indices: str | None = None) -> Any:
        """The compiled rule for rows of these dtypes."""

    @abstractmethod
    def step(self, indices: NDArray[Any], values: NDArray[Any], y: float, weight: float, p: FloatArray) -> float:
        """One sparse row of float64 values at int64 indices; its margin, NaN if it must be refused."""

    @abstractmethod
    def step_dense(self, row: FloatArray, y: float, weight: float, p: FloatArray) -> float:
        """One row of float64; its margin, NaN if it must be refused."""

    @abstractmethod
    def x(self, p: FloatArray) -> FloatArray:
        """The decision in force."""

    @abstractmethod
    def nonzeros(self, p: FloatArray) -> int:
        """How many of its coordinates are not 0."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state, copied."""

    @abstractmethod
    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over such a state."""


class DenseGame(Game):
    """Rounds cost O(d). Blocks may be dense or CSR."""

    is_sparse = False

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._rule = KERNELS[settings.rule]
        self.state: State = State.start(settings.dimension)
        self._row = np.zeros(settings.dimension)

    def _kernel(self, values: str, indices: str | None = None) -> Any:
        return dense.kernel(self._rule, values, indices)

    def _row_kernel(self) -> Any:
        return _one_row.step(self._rule)

    def step(self, indices: NDArray[Any], values: NDArray[Any], y: float, weight: float, p: FloatArray) -> float:
        if not is_row(indices, values, len(self._row)):
            return np.nan
        self._row[:] = 0.0
        self._row[indices] = values
        return self.step_dense(self._row, y, weight, p)

    def step_dense(self, row: FloatArray, y: float, weight: float, p: FloatArray) -> float:
        if p is not self._p:
            self._bind(p)
        return self._step(self._places, row, y, weight)  # type: ignore[no-any-return]

    def x(self, p: FloatArray) -> FloatArray:
        return dense.decision(self._rule, p, self.state)[0] + 0.0  # −0.0 becomes 0.0

    def nonzeros(self, p: FloatArray) -> int:
        return int(np.count_nonzero(self.x(p)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self.state.copy()._asdict()

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.state.become(State(**arrays))


class SparseGame(Game):
    """A-FTRL on CSR rows: rounds cost what they touch."""

    is_sparse = True

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.state: sparse.SparseState = sparse.SparseState.start(settings.dimension)

    def _kernel(self, values: str, indices: str | None = None) -> Any:
        return sparse.kernel(values, str(indices))

    def _row_kernel(self) -> Any:
        return _one_row.sparse_step()

    def step(self, indices: NDArray[Any], values: NDArray[Any], y: float, weight: float, p: FloatArray) -> float:
        if p is not self._p:
            self._bind(p)
        return self._step(self._places, indices, values, y, weight)  # type: ignore[no-any-return]

    def step_dense(self, row: FloatArray, y: float, weight: float, p: FloatArray) -> float:
        indices = np.flatnonzero(row)
        return self.step(indices, row[indices], y, weight, p)

    def x(self, p: FloatArray) -> FloatArray:
        return sparse.decision(p, self.state)[0] + 0.0

    def nonzeros(self, p: FloatArray) -> int:
        return int(self.state.round[ACTIVE])

    def arrays(self) -> dict[str, NDArray[Any]]:
        made = self.state.copy()._asdict()
        return made | {"heap": made["heap"][: self.state.round[SIZE]].copy()}  # the rest of it is not in use

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        heap, stored = self.state.heap, arrays["heap"]
        heap[: len(stored)] = stored
        for name in ("round", "memory", "numbers"):
            getattr(self.state, name)[...] = arrays[name]


def game_for(settings: Settings, sparse: bool) -> Game:
    """A new game. Only A-FTRL has a layout for sparse rows; the other rules take them in O(d)."""
    return SparseGame(settings) if sparse and settings.rule == "a-ftrl" else DenseGame(settings)


def is_row(indices: NDArray[Any], values: NDArray[Any], dimension: int) -> bool:
    """Whether these are columns of a row, in order, each once, with a value for each."""
    if values.ndim != 1 or values.shape != indices.shape:
        return False
    if len(indices) == 0:
        return True
    return bool(indices[0] >= 0 and indices[-1] < dimension and (indices[1:] > indices[:-1]).all())
