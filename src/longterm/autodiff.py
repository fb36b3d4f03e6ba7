"""Losses and constraints from a JAX function alone: the gradient by automatic differentiation.

Analytic subgradients are the default of this library, because it states what happens at a kink: sign(0) = 0, the
lowest index wins a tie, the gradient of ‖x‖₂ at 0 is 0. Automatic differentiation chooses for itself there:
1 or ½ at 0, the average at a tie, NaN for a norm at 0. Learners start at the centre of their set, where everything
kinks, so the choice matters from round 1. These makers look at such points, refuse a gradient that is none, and
warn of the first kink they find.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from longterm._arrays import Array, FloatArray
from longterm.constraints import CustomConstraint
from longterm.errors import InputError
from longterm.losses import CustomLoss
from longterm.sets import Set

try:
    import jax
except ImportError as error:
    raise ImportError("longterm.autodiff needs JAX: install longterm[jax]") from error

STEP = 1e-4
"""The finite differences that tell a kink are this long, and a tenth of it."""


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
    """A loss from a function of x and a round's parameters, written with `jax.numpy`; facts as for `CustomLoss`.

    Parameters
    ----------
    function : callable
        x, parameters ↦ f(x), for x of shape (..., d).
    over : Set
        The set on which the facts hold, and where kinks are looked for.
    gradient_bound : float
        A bound on ‖∇f‖₂.
    value_range : float
        A bound on |f(x) − f(y)|.
    strong_convexity : float
        σ; 0 where nothing is known.
    parameters : mapping of str to tuple of int, optional
        The parameters of a round: their names and shapes.

    Returns
    -------
    CustomLoss
        The loss, with the gradient that JAX derives.

    Raises
    ------
    InputError
        If JAX's gradient at a probed point is no subgradient, or the function is not written for (..., d).

    Warns
    -----
    KinkWarning
        If the function has a kink at a probed point.

    Examples
    --------
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
    _look_at_kinks(value, gradient, over, named.values())
    return CustomLoss(over.dimension, value, gradient, gradient_bound, value_range, strong_convexity, named)


def constraint_from_jax(
    function: Callable[..., Array],
    over: Set,
    *,
    gradient_bound: float,
    value_bound: float,
    parameters: Mapping[str, tuple[int, ...]] | None = None,
) -> CustomConstraint:
    """A constraint g ≤ 0 from a function of x and a round's parameters, written with `jax.numpy`.

    Parameters
    ----------
    function : callable
        x, parameters ↦ g(x), for x of shape (..., d).
    over : Set
        The set on which the facts hold, and where kinks are looked for.
    gradient_bound : float
        A bound on ‖∇g‖₂.
    value_bound : float
        A bound on |g|.
    parameters : mapping of str to tuple of int, optional
        The parameters of a round: their names and shapes.

    Returns
    -------
    CustomConstraint
        The constraint, with the gradient that JAX derives.

    Raises
    ------
    InputError
        As for `loss_from_jax`.

    Warns
    -----
    KinkWarning
        As for `loss_from_jax`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> from longterm.autodiff import constraint_from_jax
    >>> from longterm.sets import Ball
    >>> g = constraint_from_jax(
    ...     lambda x: jnp.sum(x**2, axis=-1) - 0.5, over=Ball(2), gradient_bound=2.0, value_bound=0.5
    ... )
    >>> g.values(np.array([1.0, 0.0]))
    array([0.5])
    """
    named = dict(parameters or {})
    value, gradient = _value(function), _gradient(function)
    _look_at_kinks(value, gradient, over, named.values())
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
    """Where functions kink and learners are, inside the set: 0, the centre, a point with equal coordinates (a tie)."""
    zero = np.zeros(over.dimension)
    if bool(over.contains(zero)):
        yield "x = 0", zero
    if np.any(over.centre):
        yield "the centre of the set", over.centre
    yield "a tie", over.project(np.full(over.dimension, 0.5))


def _look_at_kinks(
    value: Callable[..., Array], gradient: Callable[..., Array], over: Set, shapes: Iterable[tuple[int, ...]]
) -> None:
    rng = np.random.default_rng(0)
    wanted = list(shapes)
    rounds = [[np.zeros(shape) for shape in wanted]] + [[rng.standard_normal(s) for s in wanted] for _ in range(3)]
    for name, x in _probes(over):
        for parameters in rounds if wanted else rounds[:1]:
            if _look_at(name, x, _with(value, parameters), gradient(x, *parameters)):
                return


def _with(value: Callable[..., Array], parameters: Sequence[Array]) -> Callable[[FloatArray], FloatArray]:
    return lambda x: np.asarray(value(x, *parameters))


def _look_at(name: str, x: FloatArray, value: Callable[[FloatArray], FloatArray], slope: FloatArray) -> bool:
    """Whether the function has a kink at x; it is warned of, and what is no subgradient is refused."""
    pair = value(np.stack([x, x]))
    if value(x).shape != () or pair.shape != (2,) or not np.array_equal(pair, np.stack([value(x)] * 2), equal_nan=True):
        what = f"returned {value(x)} for one x and {pair} for the same x twice"
        raise InputError("function", what, "Write it for x of shape (..., d), so that it returns shape (...,)")
    if not np.all(np.isfinite(slope)):
        remedy = "Give an analytic gradient with CustomLoss or CustomConstraint, or guard the kink with jax.numpy.where"
        raise InputError("function", f"its gradient by JAX at {name} is {slope}", remedy)
    (left, right), (near_left, near_right) = _slopes(value, x, STEP), _slopes(value, x, STEP / 10)
    # The slopes of a convex function enclose its subgradients. What is finer than this is rounding.
    rounding = 1e3 * np.finfo(np.float64).eps * (abs(float(value(x))) + 1e-300) / STEP + 1e-9 * np.abs(slope)
    outside = (slope < left - rounding) | (slope > right + rounding)
    if np.any(outside):
        k = int(np.argmax(outside))
        what = f"JAX's slope {slope[k]:g} at {name}, coordinate {k}, is outside [{left[k]:g}, {right[k]:g}]"
        raise InputError("function", what + ": no subgradient", "Give an analytic gradient")
    # Of a smooth function the gap between the two slopes shrinks with the step; at a kink it stays.
    kinks = np.flatnonzero((near_right - near_left > 0.5 * (right - left)) & (near_right - near_left > 30 * rounding))
    if kinks.size == 0:
        return False
    k = int(kinks[0])
    warnings.warn(
        f"at {name} the function has a kink in {kinks.size} coordinates: JAX takes slope {slope[k]:g} in "
        f"coordinate {k}, between {left[k]:g} and {right[k]:g}. An analytic subgradient under this library's "
        "rules (sign(0) = 0, lowest index at a tie) may differ, and runs with it, from the first round on",
        KinkWarning,
        stacklevel=4,
    )
    return True


def _slopes(value: Callable[[FloatArray], FloatArray], x: FloatArray, step: float) -> tuple[FloatArray, FloatArray]:
    """Slopes to the left and to the right of x in every coordinate; ∓∞ where the function is not defined there."""
    moves, here = step * np.eye(len(x)), value(x)
    right = np.array([(value(x + move) - here) / step for move in moves])
    left = np.array([(here - value(x - move)) / step for move in moves])
    return np.where(np.isfinite(left), left, -np.inf), np.where(np.isfinite(right), right, np.inf)
