"""What a learner is: a frozen bundle of hyper-parameters with three pure functions.

`init` makes the state, `ask` reads the decision x_t from it, `tell` returns the state of the next
round. State is never changed in place, so a call that raises leaves nothing behind. `tell` checks what
it is told and then calls `update`, the rule itself; an engine, which checks in bulk, calls `update`.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

import numpy as np

from longterm._arrays import Array, namespace
from longterm._per_learner import PerLearner
from longterm._validate import Hyper
from longterm.checks import Limits, acceptable, first_fault, require_match
from longterm.errors import BrokenBoundError, BrokenBoundWarning, InputError
from longterm.feedback import Feedback
from longterm.learners.needs import Need, require_needs
from longterm.problems import Problem
from longterm.sets import Set

OnBrokenBound = Literal["raise", "warn"]
"""What to do when a gradient or a constraint exceeds what was declared."""


class State(Protocol):
    """Every state knows its round; the rest is the learner's own."""

    @property
    def round(self) -> Array:
        """t, an integer array: the round about to be played, counted from 1."""


S = TypeVar("S", bound=State)


class Learner(PerLearner, ABC, Generic[S]):
    """One algorithm. Hyper-parameters may be arrays over the leading axes: a grid is one learner."""

    enclosing_set: Set
    needs: ClassVar[frozenset[Need]] = frozenset()
    """What it asks for beyond values and subgradients at the points it plays."""

    @abstractmethod
    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> S:
        """The state before round 1: `batch_shape` independent learners, in the array library `xp`."""

    @abstractmethod
    def ask(self, state: S) -> Array:
        """The decision x_t, shape (..., d)."""

    @abstractmethod
    def update(self, state: S, feedback: Feedback) -> S:
        """The rule: the state after round t. Pure array arithmetic, no checks."""

    @abstractmethod
    def report(self, state: S) -> dict[str, Array]:
        """What the trace should keep of round t besides x: multipliers and steps in force."""

    @property
    def gradient_bound(self) -> Hyper | None:
        """The G that the hyper-parameters were made for, if they were made for one."""
        return None

    @property
    def loss_gradient_bound(self) -> Hyper | None:
        """The bound on ∇f_t that the hyper-parameters were made for: G, unless a learner tells the two apart."""
        return self.gradient_bound

    @property
    def constraint_gradient_bound(self) -> Hyper | None:
        """The bound on ∇g_t that the hyper-parameters were made for: G, unless a learner tells the two apart."""
        return self.gradient_bound

    def check(self, problem: Problem) -> None:
        """Raise, before round 1 and in words, if this learner cannot play that problem."""
        if problem.dimension != self.enclosing_set.dimension:
            raise InputError(
                "learner",
                f"plays in dimension {self.enclosing_set.dimension}, the problem has {problem.dimension}",
                "Build the learner from the problem, for example AOGD.convex(problem)",
            )
        require_needs(type(self).__name__, self.needs, problem)

    def tell(self, state: S, feedback: Feedback, *, on_broken_bound: OnBrokenBound = "raise") -> S:
        """The state after round t, once what it is told has been checked. `state` itself never changes."""
        x, t = self.ask(state), int(np.max(np.asarray(state.round)))
        require_match(feedback, x, t)
        limits = Limits.around(
            x, loss_gradient=self.loss_gradient_bound, constraint_gradient=self.constraint_gradient_bound
        )
        if not bool(namespace(x).all(acceptable(feedback, limits))):
            fault = first_fault(feedback, limits, t)
            if isinstance(fault, BrokenBoundError) and on_broken_bound == "warn":
                warnings.warn(str(fault), BrokenBoundWarning, stacklevel=2)
            elif fault is not None:
                raise fault
        return self.update(state, feedback)
