"""What learners that begin anew share: when a stretch is over, and which rule plays it, is all they differ in."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from longterm._arrays import Array, namespace
from longterm._validate import Hyper
from longterm.learners.base import Learner, OnBrokenBound
from longterm.learners.feedback import Feedback
from longterm.problems import Problem


class Restarts(Learner[Any]):
    """A learner begun anew now and then. Its state is the learner's own, but the round counts on."""

    learner: Learner[Any]

    @abstractmethod
    def rule_of(self, state: Any) -> Learner[Any]:
        """The learner that plays the present stretch."""

    @abstractmethod
    def own_round(self, t: Array) -> Array:
        """Round t, counted from the start of its stretch."""

    @property
    def gradient_bound(self) -> Hyper | None:
        return self.learner.gradient_bound

    def check(self, problem: Problem) -> None:
        self.learner.check(problem)

    @property
    def loss_gradient_bound(self) -> Hyper | None:
        return self.learner.loss_gradient_bound

    @property
    def constraint_gradient_bound(self) -> Hyper | None:
        return self.learner.constraint_gradient_bound

    @property
    def reads_pullback(self) -> bool:
        return self.learner.reads_pullback

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        self.learner.require(feedback, x, t, on_broken_bound)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> Any:
        return self.learner.init(batch_shape, xp=xp, dtype=dtype)

    def ask(self, state: Any) -> Array:
        return self.learner.ask(self._own(state))  # what is played stands in the state, whatever the rule

    def update(self, state: Any, feedback: Feedback) -> Any:
        own = self._own(state)
        x = self.learner.ask(own)
        xp = namespace(x)
        after = self.rule_of(state).update(own, feedback)
        begun = self.learner.init(tuple(x.shape[:-1]), xp=xp, dtype=x.dtype)
        over = self.own_round(state.round + 1) == 1

        def chosen(new: Array, old: Array) -> Array:
            """`new` where a stretch is over: once for all learners, or learner by learner."""
            return xp.where(xp.reshape(over, over.shape + (1,) * (old.ndim - over.ndim)), new, old)

        fields = [chosen(new, old) for new, old in zip(begun, after, strict=True)]
        return type(state)(*fields)._replace(round=state.round + 1)

    def report(self, state: Any) -> dict[str, Array]:
        return self.rule_of(state).report(self._own(state))

    def _own(self, state: Any) -> Any:
        """The state as the learner knows it: its rounds are counted from its last start."""
        return state._replace(round=self.own_round(state.round))
