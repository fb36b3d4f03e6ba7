"""Losses and constraints from a JAX function alone: the gradient by automatic differentiation.

Analytic subgradients are the default of this library, because it states what happens at a kink: sign(0) = 0, the
lowest index wins a tie, the gradient of ‖x‖₂ at 0 is 0. Automatic differentiation chooses for itself there:
1 or ½ at 0, the average at a tie, NaN for a norm at 0. Learners start at the centre of their set, where everything
kinks, so the choice matters from round 1. These makers look at such points, refuse a gradient that is none, and
warn of the first kink they find.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import Array, FloatArray
from longterm.constraints import CustomConstraint
from longterm.errors import InputError
from longterm.losses import CustomLoss
from longterm.sets import Set

try:
    import jax
except ImportError as error:
    raise ImportError("longterm.autodiff needs JAX: install longterm[jax]") from error

STEP = 1e-6
"""The finite difference that tells a kink: left and right slopes of a smooth function differ by about this much."""


class KinkWarning(UserWarning):
    """At a kink, automatic differentiation chose a slope that an analytic subgradient would not."""


def loss_from_jax(
    function: Callable[..., Array],
    over: Set,
    *,
    gradient_bound: float,
    value_range: float,
    strong_convexity: float = 0.0,
    parameters: Mapping[str, tuple[int, ...]] | None = None,
) -> CustomLoss:
    """A loss from x, parameters ↦ f(x), written with `jax.numpy` for x of shape (..., d); facts as for `CustomLoss`.

    >>> import jax.numpy as jnp
    >>> from longterm.autodiff import loss_from_jax
    >>> from longterm.sets import Ball
    >>> f = loss_from_jax(
    ...     lambda x, target: jnp.sum((x - target) ** 2, axis=-1),
    ...     over=Ball(2), gradient_bound=4.0, value_range=4.0, strong_convexity=2.0, parameters={"target": (2,)},
    ... )
    >>> import numpy as np
    >>> f.gradient(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    array([ 2., -2.])
    """
    named = dict(parameters or {})
    value, gradient = _value(function), _gradient(function)
    _look_at_kinks(value, gradient, over, [np.zeros(shape) for shape in named.values()])
    return CustomLoss(over.dimension, value, gradient, gradient_bound, value_range, strong_convexity, named)


def constraint_from_jax(
    function: Callable[..., Array],
    over: Set,
    *,
    gradient_bound: float,
    value_bound: float,
    parameters: Mapping[str, tuple[int, ...]] | None = None,
) -> CustomConstraint:
    """A constraint g ≤ 0 from x, parameters ↦ g(x), written with `jax.numpy` for x of shape (..., d)."""
    named = dict(parameters or {})
    value, gradient = _value(function), _gradient(function)
    _look_at_kinks(value, gradient, over, [np.zeros(shape) for shape in named.values()])
    return CustomConstraint(over.dimension, value, gradient, gradient_bound, value_bound, named)


def _value(function: Callable[..., Array]) -> Callable[..., Array]:
    def value(x: Array, *parameters: Array) -> Array:
        return _in_the_library_of(x, function, x, *parameters)

    return value


def _gradient(function: Callable[..., Array]) -> Callable[..., Array]:
    # Rows do not see each other, so the gradient of the sum holds the gradient of every row.
    of_the_sum = jax.grad(lambda x, *parameters: function(x, *parameters).sum())

    def gradient(x: Array, *parameters: Array) -> Array:
        return _in_the_library_of(x, of_the_sum, x, *parameters)

    return gradient


def _in_the_library_of(x: Array, function: Callable[..., Array], *arguments: Array) -> Array:
    """JAX in, JAX out; NumPy in, NumPy out, in x's precision."""
    if isinstance(x, jax.Array):
        return function(*arguments)
    with jax.enable_x64(True):
        return np.asarray(function(*(jax.numpy.asarray(a) for a in arguments)), dtype=x.dtype)


def _probes(over: Set) -> Iterator[tuple[str, FloatArray]]:
    """Where functions kink and learners are: 0, the centre, points with equal coordinates (ties)."""
    d = over.dimension
    yield "x = 0", np.zeros(d)
    yield "the centre of the set", over.centre
    yield "a tie, x = ½ (1, …, 1)", np.full(d, 0.5)


def _look_at_kinks(
    value: Callable[..., Array], gradient: Callable[..., Array], over: Set, parameters: list[NDArray[Any]]
) -> None:
    steps = STEP * np.eye(over.dimension)
    for name, x in _probes(over):
        found, here = np.asarray(gradient(x, *parameters)), np.asarray(value(x, *parameters))
        if here.shape != ():
            what = f"returned shape {here.shape} for x of shape {x.shape}"
            raise InputError("function", what, "Write it for x of shape (..., d), so that it returns shape (...,)")
        if not np.all(np.isfinite(found)):
            raise InputError(
                "function",
                f"its gradient by JAX at {name} is {found}",
                "Give an analytic gradient with CustomLoss or CustomConstraint, or guard the kink with jax.numpy.where",
            )
        right = np.array([(np.asarray(value(x + e, *parameters)) - here) / STEP for e in steps])
        left = np.array([(here - np.asarray(value(x - e, *parameters))) / STEP for e in steps])
        room = 1e-4 * (1 + np.abs(found))
        outside = (found < left - room) | (found > right + room)
        if np.any(outside):
            k = int(np.argmax(outside))
            what = f"JAX's slope {found[k]:g} at {name}, coordinate {k}, is outside [{left[k]:g}, {right[k]:g}]"
            raise InputError("function", what + ": no subgradient", "Give an analytic gradient")
        kinks = np.flatnonzero(right - left > 1e-3 * (1 + np.abs(found)))
        if kinks.size:
            k = int(kinks[0])
            warnings.warn(
                f"at {name} the function has a kink in {kinks.size} coordinates: JAX takes slope {found[k]:g} in "
                f"coordinate {k}, between {left[k]:g} and {right[k]:g}. An analytic subgradient under this library's "
                "rules (sign(0) = 0, lowest index at a tie) may differ, and runs with it, from the first round on",
                KinkWarning,
                stacklevel=3,
            )
            return
