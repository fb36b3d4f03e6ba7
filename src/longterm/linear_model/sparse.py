"""A-FTRL on sparse rows, the one door to its kernels: what a call costs does not depend on d.

    state = SparseState.start(dimension)
    played = play(parameters, state, (data, indices, indptr), labels)          # changes `state` in place
    x, intercept = decision(parameters, state)

Parameters, trace, margins and decisions are those of `linear_model.play`; only the cost of a round differs, which is
O(nnz log d) here. Nothing passes over all d coordinates but `decision`, copies, pickles and changing to dense rows.

Rows whose indices are not in order or come twice are sorted and added up in a copy. Indices out of range, NaN and
infinity are refused before anything is changed. What can be found only on the way, a gradient longer than the
parameters allow, stops the game before that row: the error names it and its round, and the state is that after the row
before.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import float32, float64, int32, int64, uint64
from numba.core import types
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.errors import InputError
from longterm.linear_model import _aftrl_sparse, _sparse_rows
from longterm.linear_model import _layout as at
from longterm.linear_model._compile import compiled, readonly
from longterm.linear_model._dying import LOW_2, SIZE, room
from longterm.linear_model._layout import State
from longterm.linear_model.play import ANY_ORDER, NONE, Played, _check

_NUMBA = {"float32": float32, "float64": float64, "int32": int32, "int64": int64}
_STATE = (int64[::1], float64[::1], uint64[::1], float64[::1])


class SparseState(NamedTuple):
    """One learner, with the heap of `_dying`. Its arrays are made once; memory is touched only where rows touch it."""

    round: NDArray[np.int64]
    """[t, active coordinates, live entries of the heap, entries of the heap]."""
    memory: FloatArray
    """z_0, word_0, z_1, word_1, …: z_{t−1}, and for each coordinate its live entry, an integer."""
    heap: NDArray[np.uint64]
    numbers: FloatArray
    """As in `_layout`, then the low parts of the two sums."""

    @classmethod
    def start(cls, dimension: int) -> SparseState:
        """Before round 1: x_1 = 0, λ_1 = 0, nothing seen."""
        numbers = np.zeros(LOW_2 + 1)
        numbers[at.SCALE] = 1.0
        heap = np.zeros(room(dimension), dtype=np.uint64)
        return cls(np.array([1, 0, 0, 0]), np.zeros(2 * dimension), heap, numbers)

    @classmethod
    def of(cls, parameters: FloatArray, state: State) -> SparseState:
        """The same learner as a dense A-FTRL `state`: from then on it plays sparse rows. O(d log d)."""
        d, threshold = len(state.vector), state.numbers[at.MULTIPLIER_SUM] * parameters[at.L1]
        new = cls.start(d)
        new.vector[...] = state.vector
        new.numbers[: at.NUMBERS] = state.numbers
        words, active = new.memory.view(np.uint64), np.flatnonzero(np.abs(state.vector) > threshold)
        words[2 * active + 1] = new.heap[: len(active)] = active.astype(np.uint64) + np.uint64(1)  # keys of 0
        new.round[:] = state.round[0], len(active), len(active), len(active)
        _enter()(parameters, *new)
        return new

    def dense(self) -> State:
        """The same learner for dense rows, apart. O(d)."""
        return State(self.round[:1].copy(), self.vector.copy(), self.numbers[: at.NUMBERS].copy())

    @property
    def vector(self) -> FloatArray:
        """z_{t−1}, a view."""
        return self.memory[::2]

    def copy(self) -> SparseState:
        """The same learner, apart."""
        return _restored(self.round.copy(), self.memory.copy(), self._entries(), self.numbers.copy())

    def __copy__(self) -> SparseState:
        # Half a copy, with its own heap and shared coordinates, would be wrong from its first round on.
        return self.copy()

    def __reduce__(self) -> Any:
        return _restored, (self.round, self.memory, self._entries(), self.numbers)

    def _entries(self) -> NDArray[np.uint64]:
        return self.heap[: self.round[SIZE]].copy()


def _restored(round: Any, memory: FloatArray, entries: NDArray[np.uint64], numbers: FloatArray) -> SparseState:
    heap = np.zeros(room(len(memory) // 2), dtype=np.uint64)
    heap[: len(entries)] = entries
    return SparseState(round, memory, heap, numbers)


@cache
def kernel(values: str, indices: str) -> Any:
    """The rule for rows of these dtypes, called as the kernels of `linear_model.play` are."""
    numbers, whole = readonly(float64), readonly(int64)
    rest = (numbers, numbers, numbers, *_STATE, whole, float64[:, ::1], float64[::1])
    return compiled(_aftrl_sparse.play, (_rows(values, indices), whole, *rest))


@cache
def step(values: str, indices: str) -> Any:
    """One row of these dtypes: step(indices, values, label, weight, parameters, *state) is its margin before learning.

    NaN: the row is refused, and nothing was changed; `mend` mends it or says why. Label and weight are not checked.
    """
    numbers = readonly(float64)
    row = (readonly(_NUMBA[indices]), readonly(_NUMBA[values]), float64, float64)
    return compiled(_aftrl_sparse.step, (*row, numbers, *_STATE))


@cache
def _enter() -> Any:
    return compiled(_aftrl_sparse.enter, (readonly(float64), *_STATE))


@cache
def _first_wrong(values: str, indices: str) -> Any:
    return compiled(_sparse_rows.first_wrong, (_rows(values, indices), int64))


def _rows(values: str, indices: str) -> Any:
    integers = readonly(_NUMBA[indices])
    return types.Tuple((readonly(_NUMBA[values]), integers, integers))  # type: ignore[no-untyped-call]


def play(
    parameters: FloatArray,
    state: SparseState,
    rows: Any,
    labels: FloatArray,
    *,
    order: NDArray[np.int64] = ANY_ORDER,
    weights: FloatArray = NONE,
    record: NDArray[np.int64] = ANY_ORDER,
    margins: bool = False,
) -> Played:
    """Play every row once, or rows[order]; `state` is changed in place.

    The first row moves x to −z/√2 = (½, 1)/√2 on its two coordinates, and the second sees the first of them:

    >>> import numpy as np
    >>> from longterm.linear_model import sparse
    >>> from longterm.linear_model._layout import Parameters
    >>> p = Parameters(budget=1.5, l1=1.0, l2=1.0, radius=1.0, step=1.0, theta_0=1.0).as_array()
    >>> rows = np.array([1.0, 2.0, 1.0]), np.array([0, 900, 0]), np.array([0, 2, 3])
    >>> state = sparse.SparseState.start(1000)
    >>> sparse.play(p, state, rows, np.array([1.0, -1.0]), margins=True).margins.round(4)
    array([0.    , 0.3536])
    >>> columns, values = sparse.nonzeros(p, state)
    >>> columns, values.round(4)
    (array([  0, 900]), array([-0.0505,  0.5774]))
    """
    first, count = int(state.round[0]), len(rows[2]) - 1
    _check(count, parameters, labels, weights, order)
    rows, kinds = _checked(rows, len(state.memory) // 2, first)
    rounds = len(order) or count
    wanted = record[(record >= first) & (record < first + rounds)]
    trace, room = np.empty((len(wanted), len(at.COLUMNS))), np.empty(rounds if margins else 0)
    done = kernel(*kinds)(rows, order, labels, weights, parameters, *state, wanted, trace, room)
    if done < rounds:
        raise _too_long(parameters, int(order[done]) if len(order) else done, first + done)
    return Played(wanted, trace, room)


def mend(parameters: FloatArray, state: SparseState, indices: Any, values: Any) -> tuple[Any, Any]:
    """A row that `step` refused, with its indices in order, each once; an InputError if that is not what is wrong."""
    t, rows = int(state.round[0]), (values, indices, np.array([0, len(indices)], dtype=indices.dtype))
    mended, _ = _checked(rows, len(state.memory) // 2, t)
    if mended is rows:
        raise _too_long(parameters, 0, t)
    return mended[1], mended[0]


def decision(parameters: FloatArray, state: SparseState) -> tuple[FloatArray, float]:
    """x_t and b_t, which the state is about to play; O(d)."""
    z, threshold = state.vector, state.numbers[at.MULTIPLIER_SUM] * parameters[at.L1]
    x = z - np.clip(z, -threshold, threshold)
    x *= -state.numbers[at.SCALE]
    return x, float(state.numbers[at.INTERCEPT])


def nonzeros(parameters: FloatArray, state: SparseState) -> tuple[NDArray[np.int64], FloatArray]:
    """Where x_t is not 0, in order, and its values there: O(n log n) for n of them, whatever d is."""
    places = (len(state.memory) // 2).bit_length()
    k = np.unique(state.heap[: state.round[SIZE]] & np.uint64(2**places - 1)).astype(np.int64) - 1
    z, threshold = state.memory[2 * k], state.numbers[at.MULTIPLIER_SUM] * parameters[at.L1]
    x = -state.numbers[at.SCALE] * (z - np.clip(z, -threshold, threshold))
    return k[x != 0], x[x != 0]


def _checked(rows: Any, dimension: int, t: int) -> tuple[Any, tuple[str, str]]:
    """The rows themselves, or a copy in order, and their dtypes."""
    data, indices, indptr = rows
    kinds = data.dtype.name, indices.dtype.name
    if kinds[0] not in ("float32", "float64") or kinds[1] not in ("int32", "int64") or indptr.dtype != indices.dtype:
        what = f"data are {kinds[0]}, indices {kinds[1]}, indptr {indptr.dtype}"
        raise InputError("rows", what, "Give float32 or float64, with int32 or int64 for both others")
    check = _first_wrong(*kinds)
    if check(rows, dimension) < len(indptr) - 1:
        rows = _sparse_rows.canonical(rows, dimension, t)
    return rows, kinds


def _too_long(parameters: FloatArray, row: int, t: int) -> InputError:
    what = f"row {row} has a loss whose gradient is longer than {float(parameters[at.GRADIENT_BOUND]):g}"
    return InputError("rows", what, "Scale the rows, or find the constants online", round=t)
