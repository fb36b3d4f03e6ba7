"""The reference engine: one round after another in plain array operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from longterm._base.arrays import namespace
from longterm._base.states import first_not_finite
from longterm.errors import BrokenBoundError, NonFiniteError
from longterm.learners.interface.feedback import Feedback, observe
from longterm.learners.interface.feedback_check import OnBrokenBound, require_match
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.limits import Limits
from longterm.play.engines.recorder import Recorder
from longterm.play.engines.sums import Sums
from longterm.play.engines.trace import Trace
from longterm.problems import Problem
from longterm.problems.streams.base import Block

OUTSIDE = 1e-6
"""The distance from the enclosing set, in diameters, above which a decision is reported to be outside of it."""


class ReferenceRunner:
    """One learner, or a batch of them, and its progress through a stream."""

    def __init__(
        self,
        problem: Problem,
        learner: Learner[Any],
        *,
        batch_shape: tuple[int, ...],
        recorder: Recorder,
        on_broken_bound: OnBrokenBound,
        resume: Trace | None,
        xp: Any = np,
        dtype: Any = None,
    ) -> None:
        self._problem = problem
        self._learner = learner
        self._recorder = recorder
        self._on_broken_bound = on_broken_bound
        if resume is None:
            self._state = learner.init(batch_shape, xp=xp, dtype=dtype)
            self._sums = Sums.zero(batch_shape, problem.constraint.count, xp)
        else:
            self._state, self._sums = resume.state, resume.sums
        self.rounds_done = 0 if resume is None else resume.last_round
        x = learner.ask(self._state)
        self._convert = namespace(x).asarray
        self._dtype = x.dtype
        self._limits = Limits.declared(learner, x, problem)
        self._previous_state = self._state
        self._warnings: dict[str, str] = {} if resume is None else dict(resume.warnings)

    def run_block(self, block: Block, first: int) -> None:
        """Run the rounds of a block that starts at round `first`, except those already done."""
        skip = self.rounds_done + 1 - first
        loss = [self._convert(array[skip:], dtype=self._dtype) for array in block.loss]
        constraint = [self._convert(array[skip:], dtype=self._dtype) for array in block.constraint]
        learner, problem, limits = self._learner, self._problem, self._limits
        all_of = namespace(self._sums.loss).all
        with np.errstate(all="ignore"):  # non-finite values are refused below, with their round
            for i in range(block.rounds - skip):
                x = learner.ask(self._state)
                feedback = observe(
                    problem, x, [array[i, ...] for array in loss], [array[i, ...] for array in constraint]
                )
                if i == 0:
                    require_match(feedback, x, self.rounds_done + 1)
                if not all_of(limits.acceptable(feedback)):
                    self._refuse(x, feedback)
                self._sums = self._sums.add(feedback)
                if self.rounds_done + 1 == self._recorder.next:
                    self._recorder.record(self.rounds_done + 1, self._sums, learner.report(self._state))
                self._previous_state, self._state = self._state, learner.update(self._state, feedback)
                self.rounds_done += 1
            self._require_finite_state()

    def _require_finite_state(self) -> None:
        """Raise if the update of the last round, or of an earlier one of the block, has overflowed."""
        name = first_not_finite(self._state)
        if name is not None:
            remedy = "Check the values of f_t and g_t in this round and before, or use smaller units"
            what = "holds a number that is not finite after this round"
            raise NonFiniteError(f"state.{name}", what, remedy, round=self.rounds_done)

    def _refuse(self, x: Any, feedback: Feedback) -> None:
        """Raise before the round is counted, or note a broken bound where the run may continue."""
        self._require_finite_state()
        for fault in self._limits.faults(feedback, self.rounds_done + 1):
            if not isinstance(fault, BrokenBoundError):
                raise fault
            if self._on_broken_bound == "raise":
                if not namespace(x).all(self._problem.enclosing_set.contains(x, OUTSIDE)):
                    what = f"lies outside of the enclosing set, and {fault.argument} {fault.what}"
                    remedy = "Project it in the learner's update: enclosing_set.project(x)"
                    raise BrokenBoundError("x", what, remedy, round=fault.round) from fault
                raise fault
            self._warnings.setdefault(fault.argument, str(fault))

    def trace(self) -> Trace:
        """Return the trace up to the last round done."""
        report = self._learner.report(self._previous_state)
        return self._recorder.trace(self._sums, report, self._state, self._warnings)
