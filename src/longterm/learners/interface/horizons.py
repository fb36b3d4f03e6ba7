"""Learners whose steps come from a schedule, or were made for a horizon."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, Self, cast

import numpy as np

from longterm._base.arrays import Array, FloatArray
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.states import S
from longterm.problems import Problem
from longterm.theory.schedules import Schedule


class ScheduledLearner(Learner[S]):
    """A learner with steps θ_t, η_t and μ_t from a schedule, and a multiplier in its state."""

    schedule: Schedule

    @property
    def loss_gradient_bound(self) -> Hyper | None:
        G = self.schedule.gradient_bound
        return super().loss_gradient_bound if G is None else G

    @property
    def constraint_gradient_bound(self) -> Hyper | None:
        G = self.schedule.gradient_bound
        return super().constraint_gradient_bound if G is None else G

    @property
    def strong_convexity(self) -> Hyper:
        return self.schedule.strong_convexity

    def report(self, state: S) -> dict[str, Array]:
        return {"multiplier": cast(Any, state).multiplier, **self.schedule.at(state.round, state.x)._asdict()}


class MadeForHorizon(Learner[S]):
    """A learner whose steps depend on the horizon T. `DoublingRestarts` plays one without knowing T."""

    @classmethod
    def for_epochs(cls, problem: Problem, **options: Any) -> Learner[Any]:
        """Make one whose horizon does not matter yet. `options` are those of `for_problem`."""
        return cls.for_problem(problem, horizon=1, **options)

    @property
    def shortest_horizon(self) -> int | None:
        """The T from which on its theorem is useful, if there is one."""
        return None

    @abstractmethod
    def for_horizon(self, rounds: Array) -> Self:
        """Return the learner with the steps for another T: an array of the state's library, one per learner."""

    def with_steps(self, **steps: Any) -> Self:
        """Return a copy with other field values, unchecked: inside a compiled loop they are tracers."""
        made = copy.copy(self)
        for name, value in steps.items():
            object.__setattr__(made, name, value)
        return made


def require_within_horizon(rounds: FloatArray, horizon: Hyper, remedy: str = "Give at most as many") -> None:
    """Raise if a bound is asked for after more rounds than the steps were made for."""
    if np.any(rounds > np.asarray(horizon)):
        what = f"{np.max(rounds):g} is above the horizon {np.min(horizon):g} that the learner was made for"
        raise InputError("rounds", what, remedy)
