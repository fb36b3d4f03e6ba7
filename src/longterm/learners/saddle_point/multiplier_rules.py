"""Multipliers of the Lagrangian: one for the largest constraint, or one for each of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from longterm._base import validate
from longterm._base.arrays import Array, as_column, dot, namespace, scale_rows
from longterm.errors import InputError, NonFiniteError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.feedback_check import OnBrokenBound
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.states import S


class Duals(ABC):
    """The constraints that the multipliers λ belong to; λ has the shape (..., *shape)."""

    count: int
    """m, the number of multipliers: the m of the theorems."""
    shape: tuple[int, ...]
    """The axes of λ after those of the batch."""

    @abstractmethod
    def values(self, feedback: Feedback) -> Array:
        """Return g(x_t), shaped as λ is."""

    @abstractmethod
    def pullback(self, feedback: Feedback, multiplier: Array) -> Array:
        """Return Σ_j λ_j ∇g_j(x_t), shape (..., d)."""

    @abstractmethod
    def pushforward(self, feedback: Feedback, direction: Array) -> Array:
        """Return ⟨∇g_j(x_t), direction⟩, shaped as λ is."""

    def require(self, feedback: Feedback, x: Array, t: int | None) -> None:
        """Raise if the feedback lacks what `values` and `pullback` read."""
        return

    @abstractmethod
    def expand(self, step: Array) -> Array:
        """Return a per-learner step (...,) in a shape that scales λ."""


@dataclass(frozen=True)
class OnePerConstraint(Duals):
    """A multiplier λ_j for each constraint g_j.

    Parameters
    ----------
    count : int
        m.
    """

    count: int

    def __post_init__(self) -> None:
        validate.set_frozen(self, count=validate.dimension("count", self.count), shape=(self.count,))

    def values(self, feedback: Feedback) -> Array:
        return feedback.constraint_values

    def pullback(self, feedback: Feedback, multiplier: Array) -> Array:
        return cast("Callable[[Array], Array]", feedback.pullback)(multiplier)

    def pushforward(self, feedback: Feedback, direction: Array) -> Array:
        return cast("Callable[[Array], Array]", feedback.pushforward)(direction)

    def require(self, feedback: Feedback, x: Array, t: int | None) -> None:
        if feedback.pullback is None:
            raise InputError(
                "pullback", "is missing", "Give the function λ ↦ Σ_j λ_j ∇g_j(x_t), as `observe` does", round=t
            )
        values, expected = feedback.constraint_values, (*x.shape[:-1], self.count)
        actual = getattr(values, "shape", None), getattr(values, "dtype", None)
        if actual != (expected, x.dtype):
            what = f"is {type(values).__name__} of shape {actual[0]} and dtype {actual[1]}"
            remedy = f"Give g_j(x_t) in shape {expected} and dtype {x.dtype}"
            raise InputError("constraint_values", what, remedy, round=t)
        if not bool(namespace(x).all(namespace(x).isfinite(values))):
            what, remedy = "holds NaN or an infinity", "Check the data of this round"
            raise NonFiniteError("constraint_values", what, remedy, round=t)

    def expand(self, step: Array) -> Array:
        return as_column(step)


@dataclass(frozen=True)
class OneForTheMaximum(Duals):
    """One multiplier for g = max_j g_j: m = 1, however many constraints there are."""

    count = 1
    shape = ()

    def values(self, feedback: Feedback) -> Array:
        return feedback.constraint

    def pullback(self, feedback: Feedback, multiplier: Array) -> Array:
        return scale_rows(multiplier, feedback.constraint_gradient)

    def pushforward(self, feedback: Feedback, direction: Array) -> Array:
        return dot(feedback.constraint_gradient, direction)

    def expand(self, step: Array) -> Array:
        return step


class DualLearner(Learner[S]):
    """A learner with a multiplier, a queue or a penalty for the constraints of its `duals`."""

    duals: Duals

    @property
    def reads_pullback(self) -> bool:
        return isinstance(self.duals, OnePerConstraint)

    @property
    def has_requirements(self) -> bool:
        return self.reads_pullback

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        self.duals.require(feedback, x, t)


def per_constraint(count: int) -> Duals:
    """Return a multiplier for each of `count` constraints; one constraint needs no pullback."""
    return OneForTheMaximum() if count == 1 else OnePerConstraint(count)
