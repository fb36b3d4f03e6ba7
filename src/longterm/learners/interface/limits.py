"""The largest sizes that the fields of a feedback may have, from declared bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import Array, like, namespace, resolution, square, to_numpy
from longterm._base.validate import Hyper
from longterm.errors import BrokenBoundError, NonFiniteError
from longterm.learners.interface.feedback import Feedback
from longterm.problems.problem import Problem

if TYPE_CHECKING:
    from longterm.learners.interface.learner import Learner

BOUNDED = ("loss_gradient", "constraint_gradient", "constraint")
"""The fields with a declared bound, in the order of the results of `Limits.within`."""


class Limits(NamedTuple):
    """The largest sizes that feedback may have, rounding included."""

    loss_gradient_square: Array
    constraint_gradient_square: Array
    constraint: Array

    @classmethod
    def from_bounds(
        cls,
        x: Array,
        loss_gradient: Hyper | None = None,
        constraint_gradient: Hyper | None = None,
        constraint: Hyper | None = None,
    ) -> Limits:
        """Return the limits of declared bounds. None means no bound, and only infinities exceed it."""
        slack = 1 + resolution(x)
        largest = float(namespace(x).finfo(x.dtype).max)

        def limit(bound: Hyper | None, power: int) -> Array:
            if bound is None:
                return largest
            with np.errstate(over="ignore"):
                values = np.minimum((np.asarray(bound) * slack) ** power, largest)
            return like(values if values.ndim else float(values), x)  # numbers are compared faster than arrays

        return cls(limit(loss_gradient, 2), limit(constraint_gradient, 2), limit(constraint, 1))

    @classmethod
    def declared(cls, learner: Learner[Any], x: Array, problem: Problem | None = None) -> Limits:
        """Return the smaller of the learner's bounds and the problem's constants."""
        loss_gradient, constraint_gradient = learner.loss_gradient_bound, learner.constraint_gradient_bound
        if problem is None:
            return cls.from_bounds(x, loss_gradient, constraint_gradient)

        def smaller(bound: float, made_for: Hyper | None) -> Hyper:
            return bound if made_for is None else np.minimum(bound, made_for)

        c = problem.constants
        loss_gradient = smaller(c.loss_gradient_bound, loss_gradient)
        constraint_gradient = smaller(c.constraint_gradient_bound, constraint_gradient)
        return cls.from_bounds(x, loss_gradient, constraint_gradient, c.constraint_bound)

    def within(self, feedback: Feedback) -> tuple[Array, Array, Array]:
        """Return, per learner and for each field of BOUNDED, whether it is within its limit. NaN is not."""
        return (
            square(feedback.loss_gradient) <= self.loss_gradient_square,
            square(feedback.constraint_gradient) <= self.constraint_gradient_square,
            namespace(feedback.loss_gradient).abs(feedback.constraint) <= self.constraint,
        )

    def acceptable(self, feedback: Feedback) -> Array:
        """Return, per learner, whether everything is finite and within the limits; shape (...,)."""
        loss_gradient, constraint_gradient, constraint = self.within(feedback)
        good = loss_gradient & constraint_gradient & constraint
        xp = namespace(feedback.loss_gradient)
        if feedback.hint is not None:
            good = good & xp.all(xp.isfinite(feedback.hint), axis=-1)
        return good if feedback.loss is None else good & xp.isfinite(feedback.loss)

    def faults(self, feedback: Feedback, t: int | None) -> list[NonFiniteError] | list[BrokenBoundError]:
        """Return the first number that is not finite as an error, or else one error per broken bound."""
        numbers = {
            name: to_numpy(value)
            for name, value in feedback._asdict().items()
            if not (value is None or callable(value))
        }
        for name, value in numbers.items():
            bad = ~np.isfinite(value)
            if np.any(bad):
                what = f"holds {value[bad].flat[0]}{_place(bad)}"
                remedy = (
                    "Check the data of this round. The state is unchanged, so leave the round out or call tell again"
                )
                return [NonFiniteError(name, what, remedy, round=t)]
        with np.errstate(over="ignore"):
            lengths = [np.linalg.norm(numbers[name], axis=-1) for name in ("loss_gradient", "constraint_gradient")]
        sizes = {
            "loss_gradient": (lengths[0], np.sqrt(self.loss_gradient_square)),
            "constraint_gradient": (lengths[1], np.sqrt(self.constraint_gradient_square)),
            "constraint": (np.abs(numbers["constraint"]), np.asarray(self.constraint)),
        }
        broken = []
        for name, (size, limit) in sizes.items():
            above = ~(size <= limit)
            if np.any(above):
                amount, bound = size[above].flat[0], np.broadcast_to(limit, size.shape)[above].flat[0]
                what = f"has size {amount:.6g}, above the declared bound {bound:.6g}{_place(above)}"
                remedy = f"Declare a {name} bound that holds, or continue without a theorem with on_broken_bound='warn'"
                broken.append(BrokenBoundError(name, what, remedy, round=t))
        return broken


def _place(bad: NDArray[np.bool_]) -> str:
    """Return the index of the first bad value in a batch, in words."""
    return f" at index {tuple(int(i) for i in np.argwhere(bad)[0])}" if bad.ndim else ""
