"""The rows of a fleet in NumPy arrays: checked, gathered, updated and put in place a part at a time.

A part is small enough for its arrays, and the rows that it came from, to stay in the processor's cache from the check
to the end. What parts held before is kept until the last one is in place: a call that is refused is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
"""Which rows; None for all."""


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
        self._hyper = learner.hyper_arrays()
        self._limits = Limits.declared(learner, learner.ask(state)[0])
        self._limits_differ = any(np.ndim(limit) for limit in self._limits)
        self.state = state
        self._names = tuple(totals)
        self._totals = np.stack([totals[name] for name in self._names], axis=-1)

    @property
    def totals(self) -> dict[str, NDArray[np.float64]]:
        """The sums kept for each row."""
        return {name: self._totals[:, place].copy() for place, name in enumerate(self._names)}

    def decisions(self, numbers: Numbers) -> NDArray[Any]:
        """X of these rows, copied."""
        x = np.asarray(self._learner.ask(self.state))
        return x.copy() if numbers is None else x.take(numbers, axis=0)

    def tell(self, numbers: Numbers, feedback: Feedback, make_check: Callable[[], FeedbackCheck]) -> None:
        """Check and apply, all or none. The check in words is made where it is needed only."""
        every = self._learner.ask(self.state)
        x = np.broadcast_to(every[:1], (len(every) if numbers is None else len(numbers), *every.shape[1:]))
        if type(self._learner).require is Learner.require:
            require_match(feedback, x, None)
            if self._play(numbers, feedback, x, check=True):
                return
        self._play(numbers, make_check().accept(feedback, None), x, check=False)

    def _play(self, numbers: Numbers, feedback: Feedback, x: NDArray[Any], *, check: bool) -> bool:
        """Play the round; False, and nothing has changed, if `check` finds feedback that is not beyond doubt."""
        before: list[tuple[Who, Any]] = []
        sound = False
        try:
            for start, stop in self._parts(x):
                who = slice(start, stop) if numbers is None else numbers[start:stop]
                told = feedback if stop - start == len(x) else _part_of(feedback, start, stop)
                if check and not self._limits_of(who).acceptable(told).all():
                    return False
                rows = type(self.state)(*[_rows(field, who) for field in self.state])
                after = self._learner_of(who).update(rows, told)
                for name, field in zip(after._fields, after, strict=True):
                    if field.dtype.kind == "f" and not np.isfinite(field).all():
                        what = "would hold a number that is not finite after this update"
                        raise NonFiniteError(name, what, "Check the feedback of this round; the state is as it was")
                before.append((who, rows))
                self._put(who, after)
            worst = np.asarray(feedback.constraint, dtype=np.float64)
            every = slice(None) if numbers is None else numbers
            totals = _rows(self._totals, every)
            totals[:, 0] += worst
            totals[:, 1] += np.maximum(worst, 0)
            sound = True
        finally:
            if not sound:
                for who, rows in before:
                    self._put(who, rows)
        _scatter(self._totals, every, totals)
        return True

    def _put(self, who: Who, rows: Any) -> None:
        for field, new in zip(self.state, rows, strict=True):
            _scatter(field, who, new)

    def _learner_of(self, who: Who) -> Learner[Any]:
        if not self._hyper:
            return self._learner
        return self._learner.with_hyper_arrays({path: _rows(array, who) for path, array in self._hyper.items()})

    def _limits_of(self, who: Who) -> Limits:
        if not self._limits_differ:
            return self._limits
        return Limits(*(_rows(limit, who) if np.ndim(limit) else limit for limit in self._limits))

    def _parts(self, x: NDArray[Any]) -> Iterator[tuple[int, int]]:
        """Where parts start and stop; one, where a function of the feedback, which knows all rows, is called."""
        count = len(x)
        parts = 1 if self._learner.reads_pullback else max(round(x.nbytes / PART_BYTES), 1)
        for part in range(parts):
            yield part * count // parts, (part + 1) * count // parts


def _rows(array: NDArray[Any], who: Who) -> NDArray[Any]:
    """These rows, copied; `take` does so in a third of the time that an index takes."""
    return array[who].copy() if isinstance(who, slice) else array.take(who, axis=0)


def _scatter(field: NDArray[Any], who: Who, rows: NDArray[Any]) -> None:
    """field[who] = rows; whole rows, as bytes, where they are contiguous: two thirds of the time."""
    if field.ndim > 1 and len(rows) and field[0].nbytes and field.flags.c_contiguous and not isinstance(who, slice):
        kind = np.dtype((np.void, field[0].nbytes))
        flat = len(field), -1
        field.reshape(flat).view(kind)[:, 0].put(who, rows.reshape(len(rows), -1).view(kind)[:, 0])
    else:
        field[who] = rows


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
