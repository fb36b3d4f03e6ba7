"""What both forms of A-FTRL share: the state, the paper's dual, and the order of a round."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array
from longterm.constraints.prox import Prox
from longterm.learners._given_prox import as_reported, ascend, require_same_constraint, values_of
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.schedules import Schedule


class AFTRLState(NamedTuple):
    """(t, x_t, λ_t, z_{t−1}, Λ_t): multipliers have shape (..., m), one for each constraint."""

    round: Array
    x: Array
    multiplier: Array
    gradient_sum: Array
    """What the losses of all rounds before t add to the slope at 0."""
    multiplier_sum: Array
    """Λ_t = Σ_{s≤t} λ_s."""


@dataclass(frozen=True, eq=False)
class Leader(Learner[AFTRLState]):
    """λ_{t+1} first, then x_{t+1} = argmin_B of everything seen so far with Λ_{t+1} g."""

    prox: Prox
    schedule: Schedule
    enclosing_set: Set = field(init=False, repr=False)
    needs: ClassVar[frozenset[Need]] = frozenset({Need.FIXED_CONSTRAINT, Need.PROX})

    def __post_init__(self) -> None:
        validate.remember(self, enclosing_set=self.prox.over)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        require_same_constraint(self.prox, problem)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> AFTRLState:
        x = self.at_the_centre(batch_shape, xp, dtype)
        multiplier = xp.zeros((*x.shape[:-1], self.prox.constraint.count), dtype=x.dtype)
        return AFTRLState(xp.asarray(1, dtype=xp.int64), x, multiplier, xp.zeros_like(x), multiplier)

    def ask(self, state: AFTRLState) -> Array:
        return state.x

    def update(self, state: AFTRLState, feedback: Feedback) -> AFTRLState:
        values = values_of(feedback, self.prox.constraint.count)
        multiplier = ascend(state.multiplier, values, self.schedule.at(state.round, state.x))
        multiplier_sum = state.multiplier_sum + multiplier
        gradient_sum = state.gradient_sum + self._model_gradient(state.x, feedback.loss_gradient)
        slope, curvature = self._regularised(state.round, gradient_sum)
        x = self.prox.argmin(slope, multiplier_sum, curvature)
        return AFTRLState(state.round + 1, x, multiplier, gradient_sum, multiplier_sum)

    @abstractmethod
    def _model_gradient(self, x: Array, gradient: Array) -> Array:
        """The gradient, at 0, of the model of f_t that is added to what was seen."""

    @abstractmethod
    def _regularised(self, t: Array, gradient_sum: Array) -> tuple[Array, Array]:
        """Slope and curvature of all models and the regulariser after round t."""

    def report(self, state: AFTRLState) -> dict[str, Array]:
        theta, eta, mu = self.schedule.at(state.round, state.x)
        return {"multiplier": as_reported(state.multiplier), "theta": theta, "eta": eta, "mu": mu}
