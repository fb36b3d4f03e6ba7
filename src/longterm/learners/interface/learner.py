"""The interface of a learner: a frozen set of hyper-parameters with pure functions on an explicit state.

`init` makes the state, `ask` reads the decision x_t from it, and `tell` returns the state of the next round. `tell`
checks the feedback and then calls `update`, the rule itself. Engines, which check in bulk, call `update`. A state is
never changed in place, so a call that raises changes nothing. A learner of your own needs `enclosing_set` and `update`;
`longterm.learners.interface.facts` has what else can be said about it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, cast

import numpy as np

from longterm._base.arrays import Array, FloatArray, float_dtype
from longterm._base.messages import kind_of
from longterm.errors import InputError
from longterm.learners.interface.facts import LearnerFacts
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.feedback_check import FeedbackCheck, OnBrokenBound, checked_update
from longterm.learners.interface.states import PointState, S
from longterm.problems import Problem
from longterm.problems.sets import Set


class Learner(LearnerFacts[S], ABC):
    """Decide round after round: the base class of every algorithm, and of those that you write.

    Hyper-parameters may be arrays over the leading axes, so that a grid of values is one learner.
    """

    enclosing_set: Set

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> S:
        """Return the state before round 1 of `batch_shape` independent learners, in the array library `xp`."""
        return self.first_state(xp.asarray(1, dtype=xp.int64), self.initial_x(batch_shape, xp, dtype))

    def first_state(self, t: Array, x: Array) -> S:
        """Return the state of round t = 1 with x_1 = x. By default it is (t, x) alone."""
        return cast(S, PointState(t, x))

    def ask(self, state: S) -> Array:
        """Return the decision x_t, shape (..., d)."""
        return state.x

    @abstractmethod
    def update(self, state: S, feedback: Feedback) -> S:
        """Return the state after round t. Pure array arithmetic without checks."""

    def report(self, state: S) -> dict[str, Array]:
        """Return the numbers of round t for a trace, besides x: multipliers and step sizes."""
        return {}

    def tell(self, state: S, feedback: Feedback, *, on_broken_bound: OnBrokenBound = "raise") -> S:
        """Check the feedback of round t and return the state after it. `state` itself never changes.

        Feedback after which the state would hold NaN or infinity is refused.
        """
        x, t = self.ask(state), int(np.max(np.asarray(state.round)))
        check = FeedbackCheck(self, x, on_broken_bound=on_broken_bound)
        with np.errstate(all="ignore"):
            feedback = check.accept(feedback, t)
            after: S = checked_update(self, state, feedback, t)
        return after

    @classmethod
    def for_problem(cls, problem: Problem, *args: Any, **options: Any) -> Learner[Any]:
        """Make the learner for a problem, with the constants that its theorem uses.

        `problem` gives B and the constants. `horizon`, where a learner needs it, is T, the number of rounds. Every
        learner documents its other options here.
        """
        what = f"{cls.__name__} cannot be made from a problem"
        raise InputError("learner", what, "Call its constructor with hyper-parameters")

    def initial_x(self, batch_shape: tuple[int, ...], xp: Any, dtype: Any) -> Array:
        """Return the centre of the enclosing set, once for every learner."""
        return self.broadcast(self.enclosing_set.centre, batch_shape, xp, dtype)

    def broadcast(self, point: FloatArray, batch_shape: tuple[int, ...], xp: Any, dtype: Any) -> Array:
        """Return the point once for every learner, shape (..., d)."""
        x = xp.asarray(point, dtype=float_dtype(xp, dtype))
        shape = np.broadcast_shapes(batch_shape, self.batch_shape)
        return xp.broadcast_to(x, (*shape, self.enclosing_set.dimension))


def require_learner(value: Any, argument: str = "learner", swapped: str = "") -> None:
    """Raise if the value is not a learner, a class for example, and say what to write instead."""
    if isinstance(value, type) and issubclass(value, Learner):
        what = f"is the class {value.__name__}, not a learner"
        raise InputError(argument, what, f"Make one: {value.__name__}.for_problem(problem)")
    if not isinstance(value, Learner):
        what = f"is {kind_of(value)}, not a learner{swapped}"
        raise InputError(argument, what, "Make one from longterm.learners, AOGD.for_problem(problem) for example")
