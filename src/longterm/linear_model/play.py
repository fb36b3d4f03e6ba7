"""Play rows with a compiled rule: the one door to the kernels.

    parameters = Parameters(budget=…, l1=…, l2=…, radius=…, step=…, theta_0=…)
    state = State.start(dimension)
    played = play("aftrl", parameters.as_array(), state, rows, labels)          # changes `state` in place
    x, intercept = decision("aftrl", parameters.as_array(), state)

`rows` are a C-ordered float32 or float64 matrix, or CSR as the tuple (data, indices, indptr), indices without
duplicates. `order` plays rows[order], in any order and as often as it says; an empty one plays every
row once, as they come. Weights are the rows'. With `record`,
increasing rounds t, `played.trace` has a line (`COLUMNS`) for each of them that fell into this call, and
`played.rounds` says which; with `margins=True`, `played.margins` has ⟨u, x_t⟩ + b_t of every round, from before the
round was learned.

A row that holds NaN or infinity, or whose gradient is longer than parameters allow, is refused: InputError names it
(its place among the rows), and the state is what it was before the call. One row costs a few microseconds here; the
kernels themselves (`kernel`) can be called without these checks.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numba import float32, float64, int32, int64
from numba.core import types
from numpy.typing import ArrayLike, NDArray

from longterm._arrays import FloatArray
from longterm.errors import BrokenBoundError, InputError, NonFiniteError
from longterm.linear_model import _aftrl, _aogd, _penalised_ftrl
from longterm.linear_model import _layout as at
from longterm.linear_model._compile import compiled, readonly
from longterm.linear_model._layout import COLUMNS, State
from longterm.linear_model._losses import OF_TWO_CLASSES

Rule = Literal["aogd", "aftrl", "penalised_ftrl"]
"""Mahdavi's constant steps are "aogd" with mu > 0."""

NONE = np.empty(0)
ANY_ORDER = np.empty(0, dtype=np.int64)
_PLAYS = {"aogd": _aogd.play, "aftrl": _aftrl.play, "penalised_ftrl": _penalised_ftrl.play}
_NUMBA = {"float32": float32, "float64": float64, "int32": int32, "int64": int64}


class Played(NamedTuple):
    """What a call to `play` has to show besides the changed state."""

    rounds: NDArray[np.int64]
    trace: FloatArray
    margins: FloatArray


@cache
def kernel(rule: Rule, values: str, indices: str | None = None) -> Any:
    """The compiled rule for rows of this dtype, CSR if the dtype of indices is given.

    Called as kernel(rows, order, labels, weights, parameters, *state, record, trace, margins); empty arrays stand for
    no order, no weights, nothing to record and no margins wanted. It returns how many rows it played: fewer than it was
    given where the next one must be refused, and then the state is that before this row.
    """
    rows: Any = readonly(_NUMBA[values], 2)
    if indices is not None:
        integers = readonly(_NUMBA[indices])
        rows = types.Tuple((readonly(_NUMBA[values]), integers, integers))  # type: ignore[no-untyped-call]
    numbers, whole = readonly(float64), readonly(int64)
    state = (int64[::1], float64[::1], float64[::1])
    return compiled(
        _PLAYS[rule], (rows, whole, numbers, numbers, numbers, *state, whole, float64[:, ::1], float64[::1])
    )


def play(
    rule: Rule,
    parameters: FloatArray,
    state: State,
    rows: Any,
    labels: ArrayLike,
    *,
    order: ArrayLike = ANY_ORDER,
    weights: ArrayLike = NONE,
    record: ArrayLike = ANY_ORDER,
    margins: bool = False,
) -> Played:
    """Play every row once, or rows[order]; `state` is changed in place, or not at all.

    >>> import numpy as np
    >>> from longterm.linear_model._layout import Parameters, State
    >>> from longterm.linear_model.play import decision, play
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((500, 20))
    >>> labels = np.sign(rows[:, 0] - 0.5 * rows[:, 1])
    >>> p = Parameters(budget=1.0, l1=1.0, l2=1.0, radius=np.sqrt(3) - 1, theta_0=0.5).as_array()  # no step: online
    >>> state = State.start(20)
    >>> played = play("aftrl", p, state, rows, labels, order=rng.integers(500, size=2000), record=[1, 2000])
    >>> played.trace[:, 4], decision("aftrl", p, state)[0][:3].round(2)
    (array([0., 2.]), array([ 0.63, -0.16,  0.  ]))
    """
    count, run = _kernel_for(rule, rows, len(state.vector))
    labels, weights = (np.ascontiguousarray(given, dtype=np.float64) for given in (labels, weights))
    order, record = (np.ascontiguousarray(given, dtype=np.int64) for given in (order, record))
    _check(count, parameters, labels, weights, order)
    if np.any(record[1:] <= record[:-1]):
        raise InputError("record", "is not increasing", "Give every round once, in order")
    rounds = len(order) or count
    first = int(state.round[0])
    wanted = record[(record >= first) & (record < first + rounds)]
    trace, room = np.empty((len(wanted), len(COLUMNS))), np.empty(rounds if margins else 0)
    before = state.copy() if rounds > 1 else None
    done = run(rows, order, labels, weights, parameters, *state, wanted, trace, room)
    if done < rounds:
        if before is not None:
            state.become(before)
        raise _refusal(parameters, rows, int(order[done]) if len(order) else done, first + done)
    return Played(wanted, trace, room)


def decision(rule: Rule, parameters: FloatArray, state: State) -> tuple[FloatArray, float]:
    """x_t and b_t, which the state is about to play."""
    numbers = state.numbers
    scale, intercept = float(numbers[at.SCALE]), float(numbers[at.INTERCEPT])
    if rule == "aogd":
        return scale * state.vector, intercept
    weight = numbers[at.MULTIPLIER if rule == "penalised_ftrl" else at.MULTIPLIER_SUM]
    threshold = weight * parameters[at.L1]
    return scale * (np.clip(state.vector, -threshold, threshold) - state.vector), intercept


def _kernel_for(rule: Rule, rows: Any, dimension: int) -> tuple[int, Any]:
    """How many rows there are, and the kernel for them."""
    if isinstance(rows, tuple):
        data, indices, indptr = rows
        if indptr.dtype != indices.dtype:
            what = f"indices are {indices.dtype}, indptr is {indptr.dtype}"
            raise InputError("rows", what, "Give both as int32, or both as int64")
        # A kernel does not look where it reads and writes.
        sound = len(indptr) > 0 and indptr[0] >= 0 and indptr[-1] <= min(len(data), len(indices))
        if not sound or np.any(indptr[1:] < indptr[:-1]):
            raise InputError("rows", "indptr does not count up within the data", "Give CSR as SciPy makes it")
        if len(indices) and (indices.min() < 0 or indices.max() >= dimension):
            what = f"have columns {indices.min()} to {indices.max()}, the learner has {dimension} features"
            raise InputError("rows", what, "Give rows of the length that the learner was made for")
        return len(indptr) - 1, kernel(rule, data.dtype.name, indices.dtype.name)
    if rows.ndim != 2 or rows.dtype.name not in ("float32", "float64") or not rows.flags.c_contiguous:
        what = f"have shape {rows.shape} and dtype {rows.dtype}"
        raise InputError("rows", what, "Give a C-ordered matrix of float32 or float64")
    if rows.shape[1] != dimension:
        what = f"have {rows.shape[1]} features, the learner has {dimension}"
        raise InputError("rows", what, "Give rows of the length that the learner was made for")
    return len(rows), kernel(rule, rows.dtype.name)


def _check(count: int, parameters: FloatArray, labels: FloatArray, weights: FloatArray, order: Any) -> None:
    if len(labels) != count or len(weights) not in (0, count):
        what = f"{len(labels)} labels and {len(weights)} weights for {count} rows"
        raise InputError("labels", what, "Give one of each, or no weights, for every row")
    two = int(parameters[at.LOSS]) in OF_TWO_CLASSES
    wrong = np.abs(labels) != 1 if two else ~np.isfinite(labels)
    if wrong.any():
        what = f"{labels[wrong][0]:g} is the label of row {int(wrong.argmax())}"
        raise InputError("labels", what, "Use −1 and +1" if two else "Use finite numbers")
    wrong = ~((weights >= 0) & (weights < np.inf))
    if wrong.any():
        what = f"{weights[wrong][0]:g} is the weight of row {int(wrong.argmax())}"
        raise InputError("weights", what, "Weights are finite, and at least 0")
    if len(order) and (order.min() < 0 or order.max() >= count):
        raise InputError("order", f"goes from {order.min()} to {order.max()}", f"There are rows 0 to {count - 1}")


def _refusal(parameters: FloatArray, rows: Any, row: int, t: int) -> InputError:
    values = rows[row] if not isinstance(rows, tuple) else rows[0][rows[2][row] : rows[2][row + 1]]
    if not np.all(np.isfinite(values)):
        return NonFiniteError("rows", f"row {row} holds NaN or infinity", "Clean the rows first", round=t)
    limit = float(parameters[at.GRADIENT_BOUND])
    what = f"row {row} has a loss whose gradient is longer than {limit:g}"
    return BrokenBoundError("rows", what, "Scale the rows, or find the constants online", round=t)
