"""A kernel with the state it plays on: what the streaming object holds, whichever layout the state has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.linear_model._layout import State
from longterm.linear_model._settings import Settings
from longterm.linear_model.play import Rule, decision, kernel

KERNELS: dict[str, Rule] = {
    "a-ftrl": "aftrl",
    "a-ogd": "aogd",
    "mahdavi": "aogd",
    "penalised-ftrl": "penalised_ftrl",
}


class Game(ABC):
    """One learner's memory, and the kernel that plays on it."""

    is_sparse: bool
    """Whether rows must be CSR."""
    numbers: FloatArray
    """The scalars of the state, at the positions of `_layout`."""

    @abstractmethod
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
        """Play rows; how many were played. Nothing is checked."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """Rounds played."""

    @abstractmethod
    def x(self, p: FloatArray) -> FloatArray:
        """The decision in force."""

    @abstractmethod
    def nonzeros(self, p: FloatArray) -> int:
        """How many of its coordinates are not 0."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state."""

    @abstractmethod
    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over such a state."""


class DenseGame(Game):
    """Rounds cost O(d). Rows may be dense or CSR."""

    is_sparse = False

    def __init__(self, settings: Settings) -> None:
        self._rule = KERNELS[settings.rule]
        self._state = State.start(settings.dimension)
        self.numbers = self._state.numbers
        self._kernels: dict[Any, Any] = {}

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
        kind = (rows[0].dtype, rows[1].dtype) if type(rows) is tuple else (rows.dtype,)
        run = self._kernels.get(kind)
        if run is None:  # the name of a dtype takes longer to find than a row to learn
            run = self._kernels[kind] = kernel(self._rule, *(dtype.name for dtype in kind))
        round, vector, numbers = self._state
        return int(run(rows, order, labels, weights, p, round, vector, numbers, record, trace, margins))

    @property
    def rounds(self) -> int:
        return int(self._state.round[0]) - 1

    def x(self, p: FloatArray) -> FloatArray:
        return decision(self._rule, p, self._state)[0] + 0.0  # −0.0 becomes 0.0

    def nonzeros(self, p: FloatArray) -> int:
        return int(np.count_nonzero(self.x(p)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self._state._asdict()

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._state.become(State(**arrays))


def game_for(settings: Settings, sparse: bool) -> Game:
    """A new game: laid out for sparse rows where that is asked for and the rule has such a layout."""
    return DenseGame(settings)
