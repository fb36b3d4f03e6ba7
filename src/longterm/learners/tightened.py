"""Learners that play g + γ_t instead of g, so that the violation they are allowed is used up by the margin γ_t."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array
from longterm._validate import Hyper
from longterm.learners.aogd import AOGDState
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need
from longterm.problems import Problem
from longterm.theory.facts import Assumption
from longterm.theory.slater import SlaterPoint, find_slater_point, require_slack


@dataclass(frozen=True, eq=False, kw_only=True)
class Tightened(Learner[AOGDState]):
    """`learner`, one with a single multiplier for g = max_j g_j, is told g + γ_t; nothing else about it changes."""

    learner: Learner[AOGDState]
    slater: SlaterPoint
    checked: tuple[Assumption, ...] = ()
    """What was checked when the margin was chosen."""

    needs: ClassVar[frozenset[Need]] = frozenset({Need.SLATER_POINT})

    def __post_init__(self) -> None:
        validate.remember(self, enclosing_set=self.learner.enclosing_set)

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        self.learner.require_playable(problem)
        require_slack(self.slater, problem.constraint, problem.enclosing_set)

    @abstractmethod
    def margin(self, t: Array, x: Array) -> Array:
        """γ_t, in the library and dtype of x."""

    @property
    def gradient_bound(self) -> Hyper | None:
        return self.learner.gradient_bound

    @property
    def strong_convexity(self) -> Hyper:
        return self.learner.strong_convexity

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        return self.learner.assumptions + self.checked

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> AOGDState:
        return self.learner.init(np.broadcast_shapes(batch_shape, self.batch_shape), xp=xp, dtype=dtype)

    def ask(self, state: AOGDState) -> Array:
        return self.learner.ask(state)

    def update(self, state: AOGDState, feedback: Feedback) -> AOGDState:
        tightened = feedback._replace(constraint=feedback.constraint + self.margin(state.round, state.x))
        return self.learner.update(state, tightened)

    def report(self, state: AOGDState) -> dict[str, Array]:
        return {**self.learner.report(state), "margin": self.margin(state.round, state.x)}


def slater_of(problem: Problem, given: SlaterPoint | None) -> SlaterPoint:
    """The user's Slater point, or the problem's; refused, in words, where there is none."""
    if given is None:
        return problem.slater_point or find_slater_point(problem.constraint, problem.enclosing_set)
    validate.at_most("slater", given.epsilon, problem.constants.constraint_bound, "|g| is never above D")
    require_slack(given, problem.constraint, problem.enclosing_set)
    return given
