"""Inner learners: rules without constraints that move x against the gradients d_t of a surrogate loss.

An adaptive inner learner has, for any d_t and against any u in B, with its `constant` C and its `offset` o,

    Σ ⟨d_t, x_t − u⟩ ≤ C √(o + Σ ‖d_t‖²).

With o = 0 its points do not change if all d_t are multiplied by the same number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, as_column, dot, like, namespace
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.sets import Box, Set
from longterm.theory.per_learner import PerLearner


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


class AdaptiveInner(Inner):
    """An inner learner that needs no bound on its gradients."""

    constant: float
    """C of its regret bound C √(o + Σ ‖d_t‖²)."""
    offset: float = 0.0
    """The o of its regret bound."""


@dataclass(frozen=True, eq=False)
class AdaGradNorm(AdaptiveInner):
    """AdaGrad with one step for all coordinates, η_t = (Δ/√2)/√(o + Σ_{s≤t} ‖d_s‖²), on any B: C = √2 Δ.

    Parameters
    ----------
    enclosing_set : Set
        B.
    offset : float
        The o of the steps.
    """

    enclosing_set: Set
    offset: float = 0.0
    constant: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        offset = validate.non_negative_scalar("offset", self.offset)
        validate.set_frozen(self, constant=2**0.5 * self.enclosing_set.diameter, offset=offset)

    def step(self, x: Array, memory: Array, gradient: Array, t: Array, weight: Array = 0.0) -> tuple[Array, Array]:
        squares = memory + dot(gradient, gradient)
        eta = self.enclosing_set.diameter / 2**0.5 / _root_or_one(self.offset + squares)
        return self.enclosing_set.project(x - as_column(eta) * gradient), squares


@dataclass(frozen=True, eq=False)
class AdaGradDiagonal(AdaptiveInner):
    """AdaGrad for each coordinate of a box by itself, with the widths w_i of the box: C = √2 ‖w‖ = √2 Δ.

    Parameters
    ----------
    enclosing_set : Set
        B, a box.
    """

    enclosing_set: Set
    constant: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        box = self.enclosing_set
        if not isinstance(box, Box):
            what = f"is a {type(box).__name__}, which does not fall apart into coordinates"
            raise InputError("enclosing_set", what, "Give a Box, or use AdaGradNorm")
        validate.set_frozen(self, constant=2**0.5 * box.diameter)

    @property
    def widths(self) -> FloatArray:
        """The widths w_i of the box."""
        assert isinstance(self.enclosing_set, Box)
        return self.enclosing_set.upper - self.enclosing_set.lower

    def memory(self, x: Array) -> Array:
        return namespace(x).zeros_like(x)

    def step(self, x: Array, memory: Array, gradient: Array, t: Array, weight: Array = 0.0) -> tuple[Array, Array]:
        squares = memory + gradient * gradient
        eta = like(self.widths, x) / 2**0.5 / _root_or_one(squares)
        return self.enclosing_set.project(x - eta * gradient), squares


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


def _root_or_one(squares: Array) -> Array:
    """Return √squares, and 1 where the sum is 0: the gradient it divides is 0 there."""
    xp = namespace(squares)
    return xp.sqrt(xp.where(squares > 0, squares, 1.0))
