"""How a primal–dual learner prices its constraints: a multiplier for each, or one for their maximum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from longterm import _validate as validate
from longterm._arrays import Array, column, dot, namespace
from longterm.errors import InputError, NonFiniteError
from longterm.learners.feedback import Feedback


class Duals(ABC):
    """Which constraints the multipliers belong to. Shapes: λ is (..., *shape)."""

    count: int
    """m, the number of multipliers: the m of the theorems."""
    shape: tuple[int, ...]
    """The axes of λ behind the batch."""

    @abstractmethod
    def values(self, feedback: Feedback) -> Array:
        """g(x_t), shaped as λ is."""

    @abstractmethod
    def pullback(self, feedback: Feedback, multiplier: Array) -> Array:
        """Σ_j λ_j ∇g_j(x_t), shape (..., d)."""

    @abstractmethod
    def pushforward(self, feedback: Feedback, direction: Array) -> Array:
        """⟨∇g_j(x_t), direction⟩, shaped as λ is."""

    def require(self, feedback: Feedback, x: Array, t: int | None) -> None:
        """Raise if what `values` and `pullback` read is not there; the rest every learner checks."""
        return

    @abstractmethod
    def spread(self, step: Array) -> Array:
        """A per-learner step (...,), ready to scale λ."""


@dataclass(frozen=True)
class OnePerConstraint(Duals):
    """λ in R^m, one entry for each g_j.

    Parameters
    ----------
    count : int
        m.
    """

    count: int

    def __post_init__(self) -> None:
        validate.remember(self, count=validate.dimension("count", self.count), shape=(self.count,))

    def values(self, feedback: Feedback) -> Array:
        return feedback.constraint_values

    def pullback(self, feedback: Feedback, multiplier: Array) -> Array:
        return cast("Callable[[Array], Array]", feedback.pullback)(multiplier)

    def pushforward(self, feedback: Feedback, direction: Array) -> Array:
        return cast("Callable[[Array], Array]", feedback.pushforward)(direction)

    def require(self, feedback: Feedback, x: Array, t: int | None) -> None:
        if feedback.pullback is None:
            raise InputError("pullback", "was not given", "Give λ ↦ Σ_j λ_j ∇g_j(x_t), as `observe` does", round=t)
        values, expected = feedback.constraint_values, (*x.shape[:-1], self.count)
        actual = getattr(values, "shape", None), getattr(values, "dtype", None)
        if actual != (expected, x.dtype):
            what = f"is {type(values).__name__} of shape {actual[0]} and dtype {actual[1]}"
            raise InputError(
                "constraint_values", what, f"Give g_j(x_t) in shape {expected} and dtype {x.dtype}", round=t
            )
        if not bool(namespace(x).all(namespace(x).isfinite(values))):
            raise NonFiniteError(
                "constraint_values", "holds NaN or an infinity", "Check the data of this round", round=t
            )

    def spread(self, step: Array) -> Array:
        return column(step)


@dataclass(frozen=True)
class OneForTheMaximum(Duals):
    """One λ for g = max_j g_j: m = 1, however many constraints there are."""

    count = 1
    shape = ()

    def values(self, feedback: Feedback) -> Array:
        return feedback.constraint

    def pullback(self, feedback: Feedback, multiplier: Array) -> Array:
        return column(multiplier) * feedback.constraint_gradient

    def pushforward(self, feedback: Feedback, direction: Array) -> Array:
        return dot(feedback.constraint_gradient, direction)

    def spread(self, step: Array) -> Array:
        return step


def one_each(count: int) -> Duals:
    """A multiplier for each of `count` constraints; for a single one the plain form, which asks for arrays only."""
    return OneForTheMaximum() if count == 1 else OnePerConstraint(count)
