"""Combinations of several constraints: stacked into one vector, or replaced by their maximum."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, dots, namespace, resolution
from longterm.errors import InputError
from longterm.problems.constraints.affine import Affine
from longterm.problems.constraints.base import Constraint, Linearised, max_with_index, one_hot
from longterm.problems.projections.base import Projection
from longterm.problems.sets import Set


@dataclass(frozen=True, eq=False)
class Stack(Constraint):
    """Keep several constraints at once, each of them counted on its own.

    The functions of all parts are listed one after another.

    Parameters
    ----------
    parts : sequence of Constraint
        The constraints, of the same dimension, fixed or with parameters of the round.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.constraints import L1Budget, L2Budget, Stack
    >>> Stack([L1Budget(2, budget=1.0), L2Budget(2, budget=1.0)]).values(np.array([3.0, 4.0]))
    array([6., 4.])
    """

    parts: Sequence[Constraint]

    def __post_init__(self) -> None:
        parts = tuple(self.parts)
        if not parts or not all(isinstance(part, Constraint) for part in parts):
            raise InputError("parts", f"{self.parts!r} is not a sequence of constraints", "Give at least one")
        dimensions = {part.dimension for part in parts}
        if len(dimensions) != 1:
            raise InputError("parts", f"dimensions {sorted(dimensions)} differ", "Give constraints on the same x")
        validate.set_frozen(
            self,
            parts=parts,
            dimension=dimensions.pop(),
            count=sum(part.count for part in parts),
            parameters={f"{n}[{k}]": shape for k, part in enumerate(parts) for n, shape in part.parameters.items()},
        )

    def _split(self, parameters: tuple[Array, ...]) -> Iterator[tuple[Constraint, int, tuple[Array, ...]]]:
        """Yield each part, the position of its first function, and its parameters."""
        first, used = 0, 0
        for part in self.parts:
            size = len(part.parameters)
            yield part, first, parameters[used : used + size]
            first, used = first + part.count, used + size

    def values(self, x: Array, *parameters: Array) -> Array:
        values = [part.values(x, *given) for part, _, given in self._split(parameters)]
        return namespace(x).concat(values, axis=-1)

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        pulled = [
            part.pullback(x, weights[..., first : first + part.count], *given)
            for part, first, given in self._split(parameters)
        ]
        return reduce(operator.add, pulled)

    def pushforward(self, x: Array, direction: Array, *parameters: Array) -> Array:
        slopes = [part.pushforward(x, direction, *given) for part, _, given in self._split(parameters)]
        return namespace(x).concat(slopes, axis=-1)

    def linearised(self, x: Array, *parameters: Array) -> Linearised:
        xp = namespace(x)
        parts = [
            (_Single(part, x, given) if part.count == 1 else part.linearised(x, *given), first, first + part.count)
            for part, first, given in self._split(parameters)
        ]
        return Linearised(
            xp.concat([part.values for part, _, _ in parts], axis=-1),
            lambda weights: reduce(operator.add, [part.pullback(weights[..., a:b]) for part, a, b in parts]),
            lambda direction: xp.concat([part.pushforward(direction) for part, _, _ in parts], axis=-1),
        )

    def as_affine(self) -> Affine | None:
        affine = [part.as_affine() for part in self.parts]
        known = [part for part in affine if part is not None]
        if len(known) < len(affine):
            return None
        return Affine(np.concatenate([a.matrix for a in known]), np.concatenate([a.limit for a in known]))

    def affine_rounds(self, rounds: int, *parameters: Array) -> tuple[FloatArray, FloatArray] | None:
        known = [part.affine_rounds(rounds, *given) for part, _, given in self._split(parameters)]
        pairs = [pair for pair in known if pair is not None]
        if len(pairs) < len(known):
            return None
        return np.concatenate([a for a, _ in pairs], axis=1), np.concatenate([b for _, b in pairs], axis=1)

    def least_values(self, over: Set) -> FloatArray:
        return np.concatenate([part.least_values(over) for part in self.parts])

    def gradient_bound(self, over: Set) -> float:
        return max(part.gradient_bound(over) for part in self.parts)

    def value_bound(self, over: Set) -> float:
        return max(part.value_bound(over) for part in self.parts)


class _Single:
    """One function linearised at x. Its gradient is computed on first use and cached."""

    def __init__(self, part: Constraint, x: Array, parameters: tuple[Array, ...]) -> None:
        self.part, self.x, self.parameters = part, x, parameters
        self.values = part.values(x, *parameters)

    @cached_property
    def gradient(self) -> Array:
        return self.part.pullback(self.x, namespace(self.x).ones((1,), dtype=self.x.dtype), *self.parameters)

    def pullback(self, weights: Array) -> Array:
        return weights * self.gradient

    def pushforward(self, direction: Array) -> Array:
        return as_column(dots(direction, self.gradient))


@dataclass(frozen=True, eq=False)
class Maximum(Constraint):
    """Keep several constraints at once, counted as one by the worst of them.

    The maximum of all functions of the parts is one constraint, with m = 1. The lowest index within 1e-9·D of the
    maximum gives the subgradient.

    Parameters
    ----------
    parts : sequence of Constraint
        The constraints, of the same dimension, fixed or with parameters of the round.
    over : Set
        The set of decisions, over which the largest |g_j| is computed.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.constraints import L1Budget, L2Budget, Maximum
    >>> from longterm.problems.sets import Ball
    >>> g = Maximum([L1Budget(2, budget=1.0), L2Budget(2, budget=1.0)], over=Ball(2, radius=5.0))
    >>> g.values(np.array([3.0, 4.0])), g.pullback(np.array([3.0, 4.0]), np.array([1.0]))
    (array([6.]), array([1., 1.]))
    """

    parts: Sequence[Constraint]
    over: Set
    _stack: Stack = field(init=False, repr=False)
    _bound: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        stack = Stack(self.parts)
        if self.over.dimension != stack.dimension:
            what = f"has dimension {self.over.dimension}, but the parts have {stack.dimension}"
            raise InputError("over", what, "Give the enclosing set that x is in")
        validate.set_frozen(
            self,
            parts=stack.parts,
            dimension=stack.dimension,
            count=1,
            parameters=stack.parameters,
            _stack=stack,
            _bound=stack.value_bound(self.over),
        )

    def _largest(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        return max_with_index(self._stack.values(x, *parameters), resolution(x) * self._bound)

    def values(self, x: Array, *parameters: Array) -> Array:
        return as_column(self._largest(x, *parameters)[0])

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        chosen = one_hot(self._largest(x, *parameters)[1], self._stack.count, x)
        return self._stack.pullback(x, weights * chosen, *parameters)

    def least_values(self, over: Set) -> FloatArray:
        return np.array([self._stack.least_values(over).max()])

    def gradient_bound(self, over: Set) -> float:
        return self._stack.gradient_bound(over)

    def value_bound(self, over: Set) -> float:
        return self._stack.value_bound(over)

    def projection(self, over: Set) -> Projection | None:
        return self._stack.projection(over)
