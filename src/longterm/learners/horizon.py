"""Learners whose steps are made for a number of rounds, and can be made for another."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, Self, TypeVar

from longterm._arrays import Array
from longterm._validate import Hyper
from longterm.learners.base import Learner, State
from longterm.problems import Problem

S = TypeVar("S", bound=State)


class MadeForHorizon(Learner[S]):
    """A learner that knows T. `DoublingRestarts` makes one of those into a learner that need not."""

    horizon: Hyper
    """T, the number of rounds that the steps were made for."""

    @classmethod
    def for_epochs(cls, problem: Problem, **options: Any) -> Learner[Any]:
        """Make one that is only there to be remade by `for_horizon`; `options` are those of `for_problem`."""
        return cls.for_problem(problem, horizon=1, **options)

    @property
    def shortest_horizon(self) -> int | None:
        """The T from which on its theorem is of use, where there is such a number."""
        return None

    @abstractmethod
    def for_horizon(self, rounds: Array) -> Self:
        """The same learner with the steps for another T: an array of the state's library, one for each learner."""

    def with_steps(self, **steps: Any) -> Self:
        """A copy with other numbers, taken as they are: inside a compiled loop they are not numbers yet."""
        made = copy.copy(self)
        for name, value in steps.items():
            object.__setattr__(made, name, value)
        return made
