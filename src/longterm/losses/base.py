"""What a loss f must be able to do.

A loss is a *family*: f_t is the family with the parameters of round t (a target, a row and its
label, a cost vector). Parameters come from the stream as arrays, so that blocks of rounds stay
blocks of arrays. A loss knows its own facts over a set, so that nobody types G, F and σ by hand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from longterm._arrays import Array
from longterm._display import Shown
from longterm.sets import Set


class Loss(Shown, ABC):
    """A family of convex functions x ↦ f(x; parameters), batched over leading axes."""

    dimension: int
    strong_convexity: float = 0.0
    """σ: every f_t is σ-strongly convex (0: convex, no more)."""

    parameters: Mapping[str, tuple[int, ...]]
    """The name and the trailing shape of each parameter of one round, in order."""

    @abstractmethod
    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        """f(x), shape (...,), and a (sub)gradient at x, shape (..., d)."""

    @abstractmethod
    def gradient_bound(self, over: Set) -> float:
        """G_f: no (sub)gradient of any f_t on the set is longer."""

    @abstractmethod
    def value_range(self, over: Set) -> float:
        """F: max f_t − min f_t on the set, for every t."""

    def check_parameters(self, arrays: Sequence[Array], first: int) -> None:
        """Raise an InputError if parameters of rounds first, first + 1, … (leading axis) mean nothing to this loss."""

    def value(self, x: Array, *parameters: Array) -> Array:
        """f(x), shape (...,)."""
        return self.value_and_gradient(x, *parameters)[0]

    def gradient(self, x: Array, *parameters: Array) -> Array:
        """A (sub)gradient at x, shape (..., d)."""
        return self.value_and_gradient(x, *parameters)[1]
