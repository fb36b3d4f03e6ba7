"""The rows of a fleet in NumPy arrays: checked, gathered, updated and written back in blocks.

A block is small enough to stay in the processor's cache from the check to the write. The old values of all blocks are
kept until the last one is written, so that a refused call is rolled back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._base.states import are_finite, state_from_leaves, state_leaves
from longterm.errors import NonFiniteError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.feedback_check import FeedbackCheck, require_match
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.limits import Limits
from longterm.play.fleet.row_records import Fields, Records, Rows

BLOCK_BYTES = 2**20
"""Bytes of the decisions of a block."""


class NumpyRows:
    """The rows of a fleet in NumPy arrays, updated in place.

    Parameters
    ----------
    learner : Learner
        With hyper-parameters for each row.
    state : NamedTuple of array
        The learners' states, one row each.
    totals : mapping of str to array
        The sums of each row.
    """

    def __init__(self, learner: Learner[Any], state: Any, totals: dict[str, NDArray[np.float64]]) -> None:
        self._learner = learner
        self._decision = np.array(learner.ask(state)[:1])
        self._limits = Limits.declared(learner, self._decision[0])
        self._hyper = {path: f"hyper.{path}" for path in learner.hyper_arrays()}
        self._row_limits = {name: f"limit.{name}" for name, limit in self._limits._asdict().items() if np.ndim(limit)}
        self._fields = {name: f"state.{name}" for name in state_leaves(state)}
        self._records = Records(
            {self._fields[name]: field for name, field in state_leaves(state).items()}
            | {self._hyper[path]: array for path, array in learner.hyper_arrays().items()}
            | {field: getattr(self._limits, name) for name, field in self._row_limits.items()}
            | totals
        )
        self._template = state
        self._sums = tuple(totals)
        self._read = (*self._fields.values(), *self._hyper.values())
        self._used = (*self._read, *self._row_limits.values(), *self._sums)
        self._written = (*self._fields.values(), *self._sums)

    @property
    def state(self) -> Any:
        """Views of the learners' states."""
        return self.state_of(self._records)

    @property
    def totals(self) -> dict[str, NDArray[np.float64]]:
        """Copies of the sums of each row."""
        return {name: self._records[name].copy() for name in self._sums}

    def read_block(self, rows: slice) -> dict[str, NDArray[Any]]:
        """Return copies of the fields that rounds change, of some rows."""
        return self._records.gather(rows, self._written)

    def write_block(self, rows: slice, fields: Fields) -> None:
        """Write the fields that rounds change, of some rows."""
        self._records.put(rows, fields)

    def decisions_of(self, rows: slice, state: Any) -> NDArray[Any]:
        """Return the decisions of some rows in other states."""
        return np.asarray(self._learner_of(self._records.gather(rows, self._hyper.values())).ask(state))

    def decisions(self, numbers: NDArray[np.int64] | None) -> NDArray[Any]:
        """Return a copy of the decisions of these rows; None selects all."""
        fields = self._records if numbers is None else self._records.gather(numbers, self._read)
        return np.array(self._learner_of(fields).ask(self.state_of(fields)))

    def tell(
        self, numbers: NDArray[np.int64] | None, feedback: Feedback, make_check: Callable[[], FeedbackCheck]
    ) -> None:
        """Check and apply feedback: all rows or none. `make_check` is called only to explain a refusal."""
        count = len(self._records) if numbers is None else len(numbers)
        x = np.broadcast_to(self._decision, (count, *self._decision.shape[1:]))
        if not self._learner.has_requirements:
            require_match(feedback, x, None)
            if self._update(numbers, feedback, x, check=True):
                return
        self._update(numbers, make_check().accept(feedback, None), x, check=False)

    def _update(self, numbers: NDArray[np.int64] | None, feedback: Feedback, x: NDArray[Any], *, check: bool) -> bool:
        """Update these rows. Return False, with nothing changed, if `check` finds unacceptable feedback."""
        undo: list[tuple[Rows, Fields]] = []
        finished = False
        try:
            for start, stop in self._blocks(x):
                rows = slice(start, stop) if numbers is None else numbers[start:stop]
                told = feedback if stop - start == len(x) else _slice_feedback(feedback, start, stop)
                fields = self._records.gather(rows, self._used)
                if check and not self._is_acceptable(fields, told):
                    return False
                after = self._after(fields, told)
                undo.append((rows, {name: fields[name] for name in self._written}))
                self._records.put(rows, after)
            finished = True
        finally:
            if not finished:
                for rows, before in undo:
                    self._records.put(rows, before)
        return True

    def _is_acceptable(self, fields: Fields, told: Feedback) -> bool:
        """Return whether all feedback is finite and within the limits."""
        limits = self._limits._replace(**{name: fields[field] for name, field in self._row_limits.items()})
        return bool(limits.acceptable(told).all())

    def _after(self, fields: Fields, told: Feedback) -> dict[str, NDArray[Any]]:
        """Return the fields that a round changes."""
        state = self._learner_of(fields).update(self.state_of(fields), told)
        after = {}
        for name, field in state_leaves(state).items():
            if not are_finite(field):
                what = "would hold a number that is not finite after this update"
                raise NonFiniteError(name, what, "Check the feedback of this round. The state is unchanged")
            after[self._fields[name]] = field
        worst = np.asarray(told.constraint, dtype=np.float64)
        for name, value in zip(self._sums, (worst, np.maximum(worst, 0)), strict=True):
            after[name] = fields[name] + value
        return after

    def state_of(self, fields: Fields | Records) -> Any:
        """Rebuild the state tuple from these arrays."""
        return state_from_leaves(self._template, [fields[field] for field in self._fields.values()])

    def _learner_of(self, fields: Fields | Records) -> Learner[Any]:
        if not self._hyper:
            return self._learner
        return self._learner.with_hyper_arrays({path: fields[field] for path, field in self._hyper.items()})

    def _blocks(self, x: NDArray[Any]) -> Iterator[tuple[int, int]]:
        """Yield the bounds of the blocks. A learner that calls a function of the feedback gets one block."""
        count = len(x)
        blocks = 1 if self._learner.reads_pullback else max(round(x.nbytes / BLOCK_BYTES), 1)
        for block in range(blocks):
            yield block * count // blocks, (block + 1) * count // blocks


def _slice_feedback(feedback: Feedback, start: int, stop: int) -> Feedback:
    """Return the feedback of some rows. Functions stay as they are."""
    some: list[Any] = [value[start:stop] if isinstance(value, np.ndarray) else value for value in feedback]
    return Feedback(*some)
