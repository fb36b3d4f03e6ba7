"""What the prox-penalty family shares: the state, the order of a round, α_t. Its members differ in their weights."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, like, namespace
from longterm._validate import Hyper
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need
from longterm.learners.penalty_step import PenaltyStep, require_same_step
from longterm.problems import Problem
from longterm.sets import Set


class PenaltyState(NamedTuple):
    """(t, x_t, Q_t or Q_{t−1}): a queue, where the member has one."""

    round: Array
    x: Array
    queue: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class PenaltyFamily(Learner[PenaltyState]):
    """x_{t+1} = argmin_B ⟨∇f_t(x_t), x⟩ + w_t [g_t(x)]₊ + α_t ‖x − x_t‖² with α_t = alpha t^power."""

    penalty_step: PenaltyStep
    alpha: Hyper
    power: Hyper = 0.5
    enclosing_set: Set = field(init=False, repr=False)
    needs: ClassVar[frozenset[Need]] = frozenset({Need.LATEST_PENALTY_PROX})

    def __post_init__(self) -> None:
        validate.remember(
            self,
            alpha=validate.positive("alpha", self.alpha),
            power=validate.positive("power", self.power),
            enclosing_set=self.penalty_step.over,
        )

    def check(self, problem: Problem) -> None:
        super().check(problem)
        require_same_step(self.penalty_step, problem)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> PenaltyState:
        x = self.at_the_centre(batch_shape, xp, dtype)
        return PenaltyState(xp.asarray(1, dtype=xp.int64), x, xp.zeros(x.shape[:-1], dtype=x.dtype))

    def ask(self, state: PenaltyState) -> Array:
        return state.x

    def update(self, state: PenaltyState, feedback: Feedback) -> PenaltyState:
        t = namespace(state.x).astype(state.round, state.x.dtype)
        queue = self._queue(t, state.queue, feedback)
        curvature = 2 * self._alpha(t) + 0 * feedback.constraint
        stepped = self.penalty_step.step(state.x, feedback, self._weight(t, queue), curvature)
        return PenaltyState(state.round + 1, stepped.x, self._after(t, queue, stepped.constraint))

    def _alpha(self, t: Array) -> Array:
        return like(self.alpha, t) * t ** like(self.power, t)

    @abstractmethod
    def least_weight(self) -> tuple[Hyper, Hyper]:
        """(w, e) with w_t ≥ w t^e in every round: what the theorem uses of the weights."""

    @abstractmethod
    def _weight(self, t: Array, queue: Array) -> Array:
        """w_t."""

    def _queue(self, t: Array, queue: Array, feedback: Feedback) -> Array:
        """Q_t, once g_t(x_t) is known."""
        return queue

    def _after(self, t: Array, queue: Array, constraint: Array) -> Array:
        """The queue that round t leaves behind, once g_t(x_{t+1}) is known."""
        return queue

    def report(self, state: PenaltyState) -> dict[str, Array]:
        t = namespace(state.x).astype(state.round, state.x.dtype)
        return {"queue": state.queue, "alpha": self._alpha(t)}


def scaled_alpha(problem: Problem) -> float:
    """The α for which α_t = α√t balances the two terms of the regret: G_f/(√2 Δ)."""
    c = problem.constants
    return validate.positive_scalar("loss_gradient_bound", c.loss_gradient_bound) / (2**0.5 * c.diameter)
