"""The base class of losses.

A loss is a family of functions: f_t is the family with the parameters of round t, for example a target, a row and its
label, or a cost vector. Parameters come from the stream as arrays. A loss computes its constants G, F and σ over a set.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from longterm._base.arrays import Array, FloatArray
from longterm._base.display import ReprMixin
from longterm.errors import InputError
from longterm.problems.sets import Set


class Pieces(NamedTuple):
    """Piecewise linear functions max w (⟨row, x⟩ − offset) over low ≤ w ≤ high, one per row; low ≤ 0 ≤ high."""

    rows: FloatArray
    offsets: FloatArray
    low: float
    high: float


class Loss(ReprMixin, ABC):
    """Evaluate the loss of a round, its gradient and its bounds: the base class of all losses.

    A family of convex functions x ↦ f(x; parameters). Its methods are batched over leading axes.
    """

    dimension: int
    strong_convexity: float = 0.0
    """σ: every f_t is σ-strongly convex. 0 means convex."""

    parameters: Mapping[str, tuple[int, ...]]
    """The name and trailing shape of each parameter of a round, in order."""

    @abstractmethod
    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        """Return f(x), shape (...,), and a (sub)gradient at x, shape (..., d)."""

    @abstractmethod
    def gradient_bound(self, over: Set) -> float:
        """Return G_f, an upper bound on the (sub)gradient norms of all f_t on the set."""

    @abstractmethod
    def value_range(self, over: Set) -> float:
        """Return F, an upper bound on max f_t − min f_t on the set for every t."""

    def check_parameters(self, arrays: Sequence[Array], first: int) -> None:
        """Raise InputError if parameters of rounds first, first + 1, … (leading axis) are invalid for this loss."""

    def as_pieces(self, *parameters: FloatArray) -> Pieces | None:
        """Return f_s of all rounds s (leading axis) as `Pieces`, or None if they are not of that form."""
        return None

    def parameters_towards(self, direction: FloatArray, level: FloatArray, over: Set) -> tuple[FloatArray, ...]:
        """Return parameters of a round for an adversary: a direction (..., d) of norm at most 1, a level in [−1, 1].

        The direction is that of a cost, a row or a target, and the level that of a label or a price. Raise
        `InputError` if the values that the parameters may take are not known.
        """
        if self.parameters:
            what = f"a {type(self).__name__} has no known set of possible parameters"
            raise InputError("problem", what, "Give `choices`, the parameters of some possible rounds")
        return ()

    def value(self, x: Array, *parameters: Array) -> Array:
        """Return f(x), shape (...,)."""
        return self.value_and_gradient(x, *parameters)[0]

    def gradient(self, x: Array, *parameters: Array) -> Array:
        """Return a (sub)gradient at x, shape (..., d)."""
        return self.value_and_gradient(x, *parameters)[1]
