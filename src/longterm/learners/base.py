"""What a learner is: a frozen bundle of hyper-parameters with three pure functions.

`init` makes the state, `ask` reads the decision x_t from it, `tell` returns the state of the next
round. State is never changed in place, so a call that raises leaves nothing behind. `tell` checks what
it is told and then calls `update`, the rule itself; an engine, which checks in bulk, calls `update`.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from longterm._arrays import Array, float_dtype
from longterm._per_learner import PerLearner
from longterm._validate import Hyper
from longterm.errors import AssumptionWarning, InputError
from longterm.learners.checks import FeedbackCheck
from longterm.learners.checks import OnBrokenBound as OnBrokenBound
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need, require_needs
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.assumptions import Assumption


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

    def at_the_centre(self, batch_shape: tuple[int, ...], xp: Any, dtype: Any) -> Array:
        """x_1: the centre of the enclosing set, once for every learner."""
        centre = xp.asarray(self.enclosing_set.centre, dtype=float_dtype(xp, dtype))
        shape = np.broadcast_shapes(batch_shape, self.batch_shape)
        return xp.broadcast_to(centre, (*shape, self.enclosing_set.dimension))

    @property
    def gradient_bound(self) -> Hyper | None:
        """The G that the hyper-parameters were made for, if they were made for one."""
        return None

    @property
    def reads_pullback(self) -> bool:
        """Whether `update` calls a function of the feedback, its pullback or constraint_at, besides reading arrays."""
        return False

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What its theorem assumes of the hyper-parameters, checked; the loop warns of those that fail."""
        return ()

    @property
    def loss_gradient_bound(self) -> Hyper | None:
        """The bound on ∇f_t that the hyper-parameters were made for: G, unless a learner tells the two apart."""
        return self.gradient_bound

    @property
    def constraint_gradient_bound(self) -> Hyper | None:
        """The bound on ∇g_t that the hyper-parameters were made for: G, unless a learner tells the two apart."""
        return self.gradient_bound

    def check(self, problem: Problem) -> None:
        """Raise, before round 1 and in words, if this learner cannot play that problem; warn if it can, unproven."""
        ours, theirs = self.enclosing_set, problem.enclosing_set
        remedy = "Build the learner from the problem, for example AOGD.convex(problem)"
        if ours.dimension != theirs.dimension:
            what = f"plays in dimension {ours.dimension}, the problem has {theirs.dimension}"
            raise InputError("learner", what, remedy)
        require_needs(type(self).__name__, self.needs, problem)
        if ours.diameter > theirs.diameter * (1 + 1e-9) or not bool(theirs.contains(ours.centre)):
            what = "plays on a set that is not inside the problem's, where G, D and F may not hold"
            raise InputError("learner", what, remedy)
        failing = [str(assumption) for assumption in self.assumptions if not assumption.holds]
        if failing:
            warnings.warn(f"{type(self).__name__}: {' '.join(failing)}", AssumptionWarning, stacklevel=4)

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        """Raise if what this learner reads beyond the common part of a feedback is missing or unusable."""

    def tell(self, state: S, feedback: Feedback, *, on_broken_bound: OnBrokenBound = "raise") -> S:
        """The state after round t, once what it is told has been checked. `state` itself never changes."""
        x, t = self.ask(state), int(np.max(np.asarray(state.round)))
        return self.update(state, FeedbackCheck(self, x, on_broken_bound=on_broken_bound).accept(feedback, t))
