"""Inner learners: rules without constraints that move x against the gradients d_t of a surrogate loss.

`AdaGradNorm` has Σ ⟨d_t, x_t − u⟩ ≤ √2 Δ √(o + Σ ‖d_t‖²) for any d_t and against any u in B. With o = 0 its points do
not change if all d_t are multiplied by the same number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from longterm._base import validate
from longterm._base.arrays import Array, as_column, dot, like, namespace
from longterm._base.per_learner import PerLearner
from longterm._base.validate import Hyper
from longterm.problems.sets import Set


class Inner(PerLearner, ABC):
    """A rule that moves x against a gradient. Its memory is one array."""

    enclosing_set: Set
    strong_convexity: Hyper = 0.0
    """The σ that its steps were made for. 0 where they are made for any convex losses."""

    def start(self, x: Array) -> Array:
        """Return x_1, given the centre of B."""
        return x

    def memory(self, x: Array) -> Array:
        """Return the memory before round 1, for decisions of this shape. By default it is one sum for each learner."""
        return namespace(x).zeros_like(x[..., 0])

    @abstractmethod
    def step(self, x: Array, memory: Array, gradient: Array, t: Array, weight: Array = 0.0) -> tuple[Array, Array]:
        """Return x_{t+1} and the memory after round t, for d_t and the weight w_t of the constraint in it."""


@dataclass(frozen=True, eq=False)
class AdaGradNorm(Inner):
    """AdaGrad with one step for all coordinates, η_t = (Δ/√2)/√(o + Σ_{s≤t} ‖d_s‖²), on any B.

    Parameters
    ----------
    enclosing_set : Set
        B.
    offset : float
        The o of the steps.
    """

    enclosing_set: Set
    offset: float = 0.0

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.non_negative_scalar, "offset")

    def step(self, x: Array, memory: Array, gradient: Array, t: Array, weight: Array = 0.0) -> tuple[Array, Array]:
        xp, squares = namespace(x), memory + dot(gradient, gradient)
        total = self.offset + squares
        eta = self.enclosing_set.diameter / 2**0.5 / xp.sqrt(xp.where(total > 0, total, 1.0))  # 0 only where d_t is 0
        return self.enclosing_set.project(x - as_column(eta) * gradient), squares


@dataclass(frozen=True, eq=False)
class StronglyConvexOGD(Inner):
    """Gradient descent for σ-strongly convex losses, with steps 1/(σt + b√W_t), W_t = Σ_{s≤t} w_s².

    With b = 0 the regret is at most Σ ‖d_t‖²/(2σt).

    Parameters
    ----------
    enclosing_set : Set
        B.
    strong_convexity : float or array
        σ.
    damping : float or array
        b, for constraints whose weights w_t grow.
    """

    enclosing_set: Set
    strong_convexity: Hyper = field()
    damping: Hyper = 0.0

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "strong_convexity")
        validate.validate_fields(self, validate.non_negative, "damping")

    def step(self, x: Array, memory: Array, gradient: Array, t: Array, weight: Array = 0.0) -> tuple[Array, Array]:
        xp, squares = namespace(x), memory + weight**2
        sigma, damping = like(self.strong_convexity, x), like(self.damping, x)
        eta = 1 / (sigma * xp.astype(t, x.dtype) + damping * xp.sqrt(squares))
        return self.enclosing_set.project(x - as_column(eta) * gradient), squares
