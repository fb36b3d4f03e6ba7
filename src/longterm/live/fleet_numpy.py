"""The rows of a fleet in NumPy arrays: checked, gathered and updated a part at a time, then put in place at once.

A part is small enough for its arrays to stay in the processor's cache from the check to the update; rows of a call that
is refused were put nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm.errors import NonFiniteError
from longterm.learners.base import Learner
from longterm.learners.checks import FeedbackCheck, Limits, require_match
from longterm.learners.feedback import Feedback

PART_BYTES = 2**19
"""Of one array of decisions."""
Parts = dict[tuple[int, int], Any]
"""The state of some rows, by the first of them and the one after the last."""
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
        parts = None
        if type(self._learner).require is Learner.require:
            require_match(feedback, x, None)
            parts = self._after(numbers, feedback, x, check=True)
        if parts is None:
            feedback = make_check().accept(feedback, None)
            parts = self._after(numbers, feedback, x, check=False)
        assert parts is not None
        worst = np.asarray(feedback.constraint, dtype=np.float64)
        totals = self._totals.copy() if numbers is None else self._totals.take(numbers, axis=0)
        totals[:, 0] += worst
        totals[:, 1] += np.maximum(worst, 0)
        if numbers is None:
            self.state = type(self.state)(*(_joined(field) for field in zip(*parts.values(), strict=True)))
            self._totals = totals
            return
        for part, rows in parts.items():
            for field, new in zip(self.state, rows, strict=True):
                _scatter(field, numbers[part[0] : part[1]], new)
        _scatter(self._totals, numbers, totals)

    def _after(self, numbers: Numbers, feedback: Feedback, x: NDArray[Any], *, check: bool) -> Parts | None:
        """The rows after this round, by part; None if `check` finds feedback that is not beyond doubt."""
        after = {}
        for start, stop in self._parts(x):
            who = slice(start, stop) if numbers is None else numbers[start:stop]
            told = _part_of(feedback, start, stop, len(x))
            if check:
                limits = self._limits_of(who)
                if not limits.acceptable(told).all():
                    return None
            rows = type(self.state)(*(_rows(field, who) for field in self.state))
            learner = self._learner.with_hyper_arrays({path: _rows(a, who) for path, a in self._hyper.items()})
            after[start, stop] = learner.update(rows, told)
            for name, field in zip(rows._fields, after[start, stop], strict=True):
                if field.dtype.kind == "f" and not np.isfinite(field).all():
                    what = "would hold a number that is not finite after this update"
                    raise NonFiniteError(name, what, "Check the feedback of this round; the state is as it was")
        return after

    def _limits_of(self, who: slice | NDArray[np.int64]) -> Limits:
        if not self._limits_differ:
            return self._limits
        return Limits(*(_rows(limit, who) if np.ndim(limit) else limit for limit in self._limits))

    def _parts(self, x: NDArray[Any]) -> Iterator[tuple[int, int]]:
        """Where parts start and stop; one, where a function of the feedback, which knows all rows, is called."""
        count = len(x)
        parts = 1 if self._learner.reads_pullback else max(round(x.nbytes / PART_BYTES), 1)
        for part in range(parts):
            yield part * count // parts, (part + 1) * count // parts


def _rows(array: NDArray[Any], who: slice | NDArray[np.int64]) -> NDArray[Any]:
    """These rows; `take` copies rows in a third of the time that an index takes."""
    return array[who] if isinstance(who, slice) else array.take(who, axis=0)


def _scatter(field: NDArray[Any], numbers: NDArray[np.int64], rows: NDArray[Any]) -> None:
    """field[numbers] = rows; whole rows, as bytes, where they are contiguous: a third less time."""
    if field.ndim > 1 and len(rows) and field[0].nbytes and field.flags.c_contiguous:
        kind = np.dtype((np.void, field[0].nbytes))
        flat = len(field), -1
        field.reshape(flat).view(kind)[:, 0][numbers] = rows.reshape(len(rows), -1).view(kind)[:, 0]
    else:
        field[numbers] = rows


def _part_of(feedback: Feedback, start: int, stop: int, count: int) -> Feedback:
    """The feedback of some of the rows; functions, which only learners that play in one part call, as they are."""
    if stop - start == count:
        return feedback
    some: dict[str, Any] = {
        name: value[start:stop] if isinstance(value, np.ndarray) else value
        for name, value in feedback._asdict().items()
    }
    return Feedback(**some)


def _joined(fields: tuple[NDArray[Any], ...]) -> NDArray[Any]:
    """One field, of all parts."""
    return fields[0] if len(fields) == 1 else np.concatenate(fields)
