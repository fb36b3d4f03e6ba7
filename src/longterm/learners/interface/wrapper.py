"""Learners around another learner: the bounds, assumptions and requirements are those of the learner inside."""

from __future__ import annotations

from typing import Any

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array
from longterm._base.validate import Hyper
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.feedback_check import OnBrokenBound
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.states import S
from longterm.problems import Problem
from longterm.theory.assumptions import Assumption


class Wrapper(Learner[S]):
    """A learner that plays by another one, `learner`, on its set and with its state."""

    learner: Learner[Any]

    def __post_init__(self) -> None:
        validate.set_frozen(self, enclosing_set=self.learner.enclosing_set)

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        self.learner.require_playable(problem)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        return self.learner.assumptions

    @property
    def hypotheses(self) -> tuple[str, ...]:
        return self.learner.hypotheses

    @property
    def loss_gradient_bound(self) -> Hyper | None:
        return self.learner.loss_gradient_bound

    @property
    def constraint_gradient_bound(self) -> Hyper | None:
        return self.learner.constraint_gradient_bound

    @property
    def strong_convexity(self) -> Hyper:
        return self.learner.strong_convexity

    @property
    def reads_pullback(self) -> bool:
        return self.learner.reads_pullback

    @property
    def has_requirements(self) -> bool:
        return self.learner.has_requirements

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        self.learner.require(feedback, x, t, on_broken_bound)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> Any:
        return self.learner.init(np.broadcast_shapes(batch_shape, self.batch_shape), xp=xp, dtype=dtype)
