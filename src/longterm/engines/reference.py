"""The reference engine: one learner's rounds, one after another, in plain array operations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import Array, namespace
from longterm._validate import Hyper
from longterm.engines.trace import Recorder, Sums, Trace
from longterm.errors import BrokenBoundError
from longterm.learners.base import Learner, OnBrokenBound
from longterm.learners.checks import Limits, acceptable, faults, require_match
from longterm.learners.feedback import Feedback, observe
from longterm.problems import Problem
from longterm.streams import Block


class Player:
    """One learner (or a batch of them) on its way through a stream."""

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
        self.played = 0 if resume is None else resume.last_round
        x = learner.ask(self._state)
        self._convert = namespace(x).asarray
        self._dtype = x.dtype
        self._limits = declared_limits(problem, learner, x)
        self._latest = self._state
        self._warned: dict[str, str] = {} if resume is None else dict(resume.warnings)

    def play(self, block: Block, first: int) -> None:
        """Play the rounds of a block that starts at round `first`, those that are still ahead."""
        skip = self.played + 1 - first
        loss = [self._convert(array[skip:], dtype=self._dtype) for array in block.loss]
        constraint = [self._convert(array[skip:], dtype=self._dtype) for array in block.constraint]
        learner, problem, limits = self._learner, self._problem, self._limits
        all_of = namespace(self._sums.loss).all
        with np.errstate(all="ignore"):  # what is not finite is refused below, in words
            for i in range(block.rounds - skip):
                x = learner.ask(self._state)
                told = observe(problem, x, [array[i, ...] for array in loss], [array[i, ...] for array in constraint])
                if i == 0:
                    require_match(told, x, self.played + 1)
                if not all_of(acceptable(told, limits)):
                    self._refuse(told)
                self._sums = self._sums.add(told)
                if self.played + 1 == self._recorder.next:
                    self._recorder.keep(self.played + 1, self._sums, learner.report(self._state))
                self._latest, self._state = self._state, learner.update(self._state, told)
                self.played += 1

    def _refuse(self, told: Feedback) -> None:
        """Stop before round t is played, or note that a bound was broken and go on."""
        for fault in faults(told, self._limits, self.played + 1):
            if not isinstance(fault, BrokenBoundError) or self._on_broken_bound == "raise":
                raise fault
            self._warned.setdefault(fault.argument, str(fault))

    def trace(self) -> Trace:
        """What happened so far."""
        report = self._learner.report(self._latest)
        return self._recorder.trace(self._sums, report, self._state, self._warned)


def declared_limits(problem: Problem, learner: Learner[Any], x: Array) -> Limits:
    """What the theory of this run relies on: the problem's facts, and the bounds the learner was made for."""

    def both(bound: float, made_for: Hyper | None) -> NDArray[Any] | float:
        return bound if made_for is None else np.minimum(bound, made_for)

    constants = problem.constants
    return Limits.around(
        x,
        loss_gradient=both(constants.loss_gradient_bound, learner.loss_gradient_bound),
        constraint_gradient=both(constants.constraint_gradient_bound, learner.constraint_gradient_bound),
        constraint=constants.constraint_bound,
    )
