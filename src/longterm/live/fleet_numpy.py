"""The rows of a fleet in NumPy arrays: checked, gathered, updated and put in place a part at a time.

All that is known of a learner lies side by side, in one record: a row is then gathered from one place in memory, not
from one for every field. A part is small enough for its arrays, and the records that it came from, to stay in the
processor's cache from the check to the end. What parts held before is kept until the last one is in place: a call that
is refused is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import LINE, zeros_in_lines
from longterm.errors import NonFiniteError
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback, FeedbackCheck, Limits, require_match

PART_BYTES = 2**20
"""Of one array of decisions."""
KEPT_BYTES = 2**24
"""Half of what stays with the process between two calls."""
Who = slice | NDArray[np.int64]
"""The rows of a part."""
Numbers = NDArray[np.int64] | None
"""Which rows; None for all. They are known to be rows, and no two the same."""
Records = NDArray[np.void]
"""A record for each row: fields of the state, hyper-parameters and limits that differ, sums."""


class NumpyRows:
    """The rows of a fleet in NumPy arrays, updated in place.

    Parameters
    ----------
    learner : Learner
        With hyper-parameters for each row.
    state : NamedTuple of array
        The rows.
    totals : mapping of str to array
        The sums kept for each row.
    """

    def __init__(self, learner: Learner[Any], state: Any, totals: dict[str, NDArray[np.float64]]) -> None:
        _keep_what_is_freed()
        self._learner = learner
        self._decision = np.array(learner.ask(state)[:1])
        self._limits = Limits.declared(learner, self._decision[0])
        self._hyper = {path: f"hyper.{path}" for path in learner.hyper_arrays()}
        self._own_limits = {name: f"limit.{name}" for name, limit in self._limits._asdict().items() if np.ndim(limit)}
        self._records = _side_by_side(
            {f"state.{name}": field for name, field in state._asdict().items()}
            | {self._hyper[path]: array for path, array in learner.hyper_arrays().items()}
            | {field: getattr(self._limits, name) for name, field in self._own_limits.items()}
            | totals
        )
        self._kind: Any = type(state)
        self._sums = tuple(totals)

    @property
    def state(self) -> Any:
        """The learners' states: views of the records."""
        return self._state_of(self._records)

    @property
    def totals(self) -> dict[str, NDArray[np.float64]]:
        """The sums kept for each row."""
        return {name: self._records[name].copy() for name in self._sums}

    def decisions(self, numbers: Numbers) -> NDArray[Any]:
        """X of these rows, copied."""
        rows = self._records if numbers is None else _gathered(self._records, numbers)
        return np.array(self._learner_of(rows).ask(self._state_of(rows)))

    def tell(self, numbers: Numbers, feedback: Feedback, make_check: Callable[[], FeedbackCheck]) -> None:
        """Check and apply, all or none. The check in words is made where it is needed only."""
        count = len(self._records) if numbers is None else len(numbers)
        x = np.empty((count, *self._decision.shape[1:]), self._decision.dtype)  # looked at for its shape
        if type(self._learner).require is Learner.require:
            require_match(feedback, x, None)
            if self._play(numbers, feedback, x, check=True):
                return
        x = np.broadcast_to(self._decision, x.shape)
        self._play(numbers, make_check().accept(feedback, None), x, check=False)

    def _play(self, numbers: Numbers, feedback: Feedback, x: NDArray[Any], *, check: bool) -> bool:
        """Play the round; False, and nothing has changed, if `check` finds feedback that is not beyond doubt."""
        before: list[tuple[Who, Records]] = []
        sound = False
        try:
            for start, stop in self._parts(x):
                who = slice(start, stop) if numbers is None else numbers[start:stop]
                told = feedback if stop - start == len(x) else _part_of(feedback, start, stop)
                rows = _gathered(self._records, who)
                if check and not self._limits_of(rows).acceptable(told).all():
                    return False
                after = self._after(rows, told)
                before.append((who, rows))
                _put(self._records, who, after)
            sound = True
        finally:
            if not sound:
                for who, rows in before:
                    _put(self._records, who, rows)
        return True

    def _after(self, rows: Records, told: Feedback) -> Records:
        """These records after the round."""
        state = self._learner_of(rows).update(self._kind(*map(_close, self._state_of(rows))), told)
        after = _gathered(rows, slice(None))
        for name, field in state._asdict().items():
            if field.dtype.kind == "f" and not np.isfinite(field).all():
                what = "would hold a number that is not finite after this update"
                raise NonFiniteError(name, what, "Check the feedback of this round; the state is as it was")
            after[f"state.{name}"] = field
        worst = np.asarray(told.constraint, dtype=np.float64)
        for name, value in zip(self._sums, (worst, np.maximum(worst, 0)), strict=True):
            after[name] += value
        return after

    def _state_of(self, rows: Records) -> Any:
        return self._kind(*[rows[f"state.{name}"] for name in self._kind._fields])

    def _learner_of(self, rows: Records) -> Learner[Any]:
        if not self._hyper:
            return self._learner
        return self._learner.with_hyper_arrays({path: _close(rows[field]) for path, field in self._hyper.items()})

    def _limits_of(self, rows: Records) -> Limits:
        return self._limits._replace(**{name: rows[field] for name, field in self._own_limits.items()})

    def _parts(self, x: NDArray[Any]) -> Iterator[tuple[int, int]]:
        """Where parts start and stop; one, where a function of the feedback, which knows all rows, is called."""
        count = len(x)
        parts = 1 if self._learner.reads_pullback else max(round(x.nbytes / PART_BYTES), 1)
        for part in range(parts):
            yield part * count // parts, (part + 1) * count // parts


def _side_by_side(arrays: dict[str, NDArray[Any]]) -> Records:
    """Records of arrays that have a row for each learner, each in cache lines of its own."""
    fields: list[Any] = [(name, array.dtype, array.shape[1:]) for name, array in arrays.items()]
    kind = np.dtype(fields, align=True)
    rest = -kind.itemsize % LINE
    if rest:
        kind = np.dtype([*fields, ("rest", np.uint8, (rest,))], align=True)
    count = len(next(iter(arrays.values())))
    records = zeros_in_lines(count * kind.itemsize).view(kind)
    for name, array in arrays.items():
        records[name] = array
    return records


def _as_bytes(records: Records) -> NDArray[np.void]:
    """The same, as so many bytes: they are copied whole, in a fraction of the time of one field after another."""
    return records.view(np.dtype((np.void, records.dtype.itemsize)))


def _gathered(records: Records, who: Who) -> Records:
    """These records, copied. What is known to be in range is not looked at again, which halves the time."""
    if isinstance(who, slice):
        return _as_bytes(records)[who].copy().view(records.dtype)
    return _as_bytes(records).take(who, mode="clip").view(records.dtype)


def _put(records: Records, who: Who, rows: Records) -> None:
    """records[who] = rows."""
    if isinstance(who, slice):
        _as_bytes(records)[who] = _as_bytes(rows)
    else:
        _as_bytes(records).put(who, _as_bytes(rows), mode="clip")


def _close(field: NDArray[Any]) -> NDArray[Any]:
    """A field of one number a row, side by side: it is looked at several times. Others are as good where they are."""
    return np.ascontiguousarray(field) if field.ndim == 1 else field


def _part_of(feedback: Feedback, start: int, stop: int) -> Feedback:
    """The feedback of some of the rows; functions, which only learners that play in one part call, as they are."""
    some: list[Any] = [value[start:stop] if isinstance(value, np.ndarray) else value for value in feedback]
    return Feedback(*some)


@cache
def _keep_what_is_freed() -> None:
    """Let the system's memory be had once, not in every part: it comes in pages that are cleared one by one.

    The GNU C library keeps at the end of its heap, for the next call, twice as much as the largest block that was ever
    given back to the system in one piece (at first 128 kB). Other libraries do not mind.
    """
    np.empty(KEPT_BYTES, dtype=np.uint8)
