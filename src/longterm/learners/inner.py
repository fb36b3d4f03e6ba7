"""Learners without constraints, for methods that hand a surrogate loss to one: the slot of Sinha and Vaze (2024).

An inner learner sees gradients d_t and moves x; what it remembers is one array. Adaptive ones promise, against any u in
B,

    Σ ⟨d_t, x_t − u⟩ ≤ C √(Σ ‖d_t‖²)                                    (`constant` is C)

for any d_t, however long, and do not change if all d_t are multiplied by the same number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, column, dot, like, namespace
from longterm.errors import InputError
from longterm.sets import Box, Set


class Inner(ABC):
    """A rule that moves x against a gradient."""

    enclosing_set: Set
    strong_convexity: float = 0.0
    """The σ that its steps were made for; 0 where they are made for any convex losses."""

    @abstractmethod
    def memory(self, x: Array) -> Array:
        """What it remembers before round 1, for decisions of this shape."""

    @abstractmethod
    def step(self, x: Array, memory: Array, gradient: Array, t: Array) -> tuple[Array, Array]:
        """x_{t+1} and the memory after round t."""


class AdaptiveInner(Inner):
    """One that needs to know nothing about its gradients."""

    constant: float
    """C: its regret is at most C √(Σ ‖d_t‖²)."""


@dataclass(frozen=True, eq=False)
class AdaGradNorm(AdaptiveInner):
    """x_{t+1} = Π_B(x_t − η_t d_t), η_t = (Δ/√2)/√(Σ_{s≤t} ‖d_s‖²), on any B: C = √2 Δ.

    Parameters
    ----------
    enclosing_set : Set
        B.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.learners.inner import AdaGradNorm
    >>> from longterm.sets import Ball
    >>> rule, x = AdaGradNorm(Ball(1, radius=2.0)), np.zeros(1)
    >>> x, memory = rule.step(x, rule.memory(x), np.array([3.0]), np.asarray(1))
    >>> x, float(memory)  # −4/√2 is outside the ball
    (array([-2.]), 9.0)
    """

    enclosing_set: Set

    def __post_init__(self) -> None:
        validate.remember(self, constant=2**0.5 * self.enclosing_set.diameter)

    def memory(self, x: Array) -> Array:
        return namespace(x).zeros_like(x[..., 0])

    def step(self, x: Array, memory: Array, gradient: Array, t: Array) -> tuple[Array, Array]:
        squares = memory + dot(gradient, gradient)
        eta = self.enclosing_set.diameter / 2**0.5 / root_or_one(squares)
        return self.enclosing_set.project(x - column(eta) * gradient), squares


@dataclass(frozen=True, eq=False)
class AdaGradDiagonal(AdaptiveInner):
    """The same for each coordinate of a box by itself, with the box's widths w_i: C = √2 ‖w‖ = √2 Δ, never more.

    In coordinate i the regret is at most √2 w_i √(Σ d_{t,i}²); add them up by Cauchy's inequality.

    Parameters
    ----------
    enclosing_set : Set
        B, a box.
    """

    enclosing_set: Set
    widths: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        box = self.enclosing_set
        if not isinstance(box, Box):
            what = f"is a {type(box).__name__}, which does not fall apart into coordinates"
            raise InputError("enclosing_set", what, "Give a Box, or use AdaGradNorm")
        validate.remember(self, constant=2**0.5 * box.diameter, widths=validate.frozen(box.upper - box.lower))

    def memory(self, x: Array) -> Array:
        return namespace(x).zeros_like(x)

    def step(self, x: Array, memory: Array, gradient: Array, t: Array) -> tuple[Array, Array]:
        squares = memory + gradient * gradient
        eta = like(self.widths, x) / 2**0.5 / root_or_one(squares)
        return self.enclosing_set.project(x - eta * gradient), squares


@dataclass(frozen=True, eq=False)
class StronglyConvexOGD(Inner):
    """x_{t+1} = Π_B(x_t − d_t/(σt)) for σ-strongly convex losses: regret at most Σ ‖d_t‖²/(2σt). No memory.

    Parameters
    ----------
    enclosing_set : Set
        B.
    strong_convexity : float
        σ.
    """

    enclosing_set: Set
    strong_convexity: float = field()

    def __post_init__(self) -> None:
        sigma = validate.positive_scalar("strong_convexity", self.strong_convexity)
        validate.remember(self, strong_convexity=sigma)

    def memory(self, x: Array) -> Array:
        return namespace(x).zeros_like(x[..., 0])

    def step(self, x: Array, memory: Array, gradient: Array, t: Array) -> tuple[Array, Array]:
        eta = 1 / (self.strong_convexity * namespace(x).astype(t, x.dtype))
        return self.enclosing_set.project(x - column(eta) * gradient), memory


def root_or_one(squares: Array) -> Array:
    """√squares, and 1 where nothing has been seen yet: the gradient it divides is 0 there."""
    xp = namespace(squares)
    return xp.sqrt(xp.where(squares > 0, squares, 1.0))
