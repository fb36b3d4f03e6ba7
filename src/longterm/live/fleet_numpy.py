"""The rows of a fleet in NumPy arrays: checked, gathered, updated and put in place a part at a time.

A part is small enough for its arrays, and the records that it came from, to stay in the processor's cache from the
check to the end. What parts held before is kept until the last one is in place: a call that is refused is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm.errors import NonFiniteError
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.feedback_check import FeedbackCheck, Limits, require_match
from longterm.live.fleet_records import Fields, Records, Who, compiled_passes
from longterm.storage.snapshot import filled_state, state_arrays

PART_BYTES = 2**20
"""Of one array of decisions."""
KEPT_BYTES = 2**24
"""Half of what stays with the process between two calls."""
Numbers = NDArray[np.int64] | None
"""Which rows; None for all. They are known to be rows, and no two the same."""


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
        self._template = state
        self._fields = tuple(state_arrays(state))
        self._records = Records(
            state_arrays(state)
            | {self._hyper[path]: array for path, array in learner.hyper_arrays().items()}
            | {field: getattr(self._limits, name) for name, field in self._own_limits.items()}
            | totals
        )
        self._sums = tuple(totals)
        self._read = (*self._fields, *self._hyper.values())
        self._used = (*self._read, *self._own_limits.values(), *self._sums)
        self._written = (*self._fields, *self._sums)
        passes = compiled_passes(len(self._records))
        if passes is not None:
            passes.checker(self._decision.dtype)  # compiled here, not in the first call

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
        rows = self._records if numbers is None else self._records.gathered(numbers, self._read)
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
        before: list[tuple[Who, Fields]] = []
        sound = False
        try:
            for start, stop in self._parts(x):
                who = slice(start, stop) if numbers is None else numbers[start:stop]
                told = feedback if stop - start == len(x) else _part_of(feedback, start, stop)
                rows = self._records.gathered(who, self._used)
                if check and not self._is_acceptable(rows, told):
                    return False
                after = self._after(rows, told)
                before.append((who, {name: rows[name] for name in self._written}))
                self._records.put(who, after)
            sound = True
        finally:
            if not sound:
                for who, was in before:
                    self._records.put(who, was)
        return True

    def _is_acceptable(self, rows: Fields, told: Feedback) -> bool:
        """Whether all of the feedback is finite and within the limits."""
        limits = self._limits._replace(**{name: rows[field] for name, field in self._own_limits.items()})
        dtype, kernels = self._decision.dtype, self._records.kernels_for(len(told.constraint))
        are_within = None if kernels is None else kernels.checker(dtype)
        if are_within is None or told.hint is not None:
            return bool(limits.acceptable(told).all())
        numbers = [np.ascontiguousarray(value) for value in told[:3]]
        sound = are_within(*numbers, *(np.atleast_1d(np.asarray(limit, dtype)) for limit in limits))
        return sound and (told.loss is None or _are_finite(told.loss))

    def _after(self, rows: Fields, told: Feedback) -> dict[str, NDArray[Any]]:
        """What changes of these rows in the round."""
        state = self._learner_of(rows).update(self._state_of(rows), told)
        after = state_arrays(state)
        for name, field in after.items():
            if field.dtype.kind == "f" and not _are_finite(field):
                what = "would hold a number that is not finite after this update"
                raise NonFiniteError(name.removeprefix("state."), what, "Check the feedback of this round; the state is as it was")
        worst = np.asarray(told.constraint, dtype=np.float64)
        for name, value in zip(self._sums, (worst, np.maximum(worst, 0)), strict=True):
            after[name] = rows[name] + value
        return after

    def _state_of(self, rows: Fields | Records) -> Any:
        return filled_state(self._template, [rows[field] for field in self._fields])

    def _learner_of(self, rows: Fields | Records) -> Learner[Any]:
        if not self._hyper:
            return self._learner
        return self._learner.with_hyper_arrays({path: rows[field] for path, field in self._hyper.items()})

    def _parts(self, x: NDArray[Any]) -> Iterator[tuple[int, int]]:
        """Where parts start and stop; one, where a function of the feedback, which knows all rows, is called."""
        count = len(x)
        parts = 1 if self._learner.reads_pullback else max(round(x.nbytes / PART_BYTES), 1)
        for part in range(parts):
            yield part * count // parts, (part + 1) * count // parts


def _are_finite(numbers: NDArray[Any]) -> bool:
    """Whether all numbers are: if their sum is, so are they, and it takes half the time."""
    return bool(np.isfinite(np.add.reduce(numbers, axis=None))) or bool(np.isfinite(numbers).all())


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
