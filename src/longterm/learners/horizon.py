"""Learners whose steps are made for a number of rounds, and can be made for another."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, Self, TypeVar

from longterm._arrays import Array
from longterm._validate import Hyper
from longterm.learners.base import Learner, State

S = TypeVar("S", bound=State)


class MadeForHorizon(Learner[S]):
    """A learner that knows T. `DoublingRestarts` makes one of those into a learner that need not."""

    horizon: Hyper
    """T, the number of rounds that the steps were made for."""

    @abstractmethod
    def for_horizon(self, rounds: Array) -> Self:
        """The same learner with the steps for another T: an array of the state's library, one for each learner."""

    def with_steps(self, **steps: Any) -> Self:
        """A copy with other numbers, taken as they are: inside a compiled loop they are not numbers yet."""
        made = copy.copy(self)
        for name, value in steps.items():
            object.__setattr__(made, name, value)
        return made
