"""Losses and constraints from a JAX function, with gradients by automatic differentiation.

The library's own functions have analytic subgradients with stated rules at kinks: sign(0) = 0, the lowest index wins a
tie, the gradient of ‖x‖₂ at 0 is 0. Automatic differentiation returns other values there: 1 or ½ at 0, the average at a
tie, NaN for a norm at 0. Learners start at the centre of their set, where many functions have a kink, so the difference
matters from round 1. The functions of this module probe such points, refuse a vector that is not a subgradient, and
warn of the first kink.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from longterm._base.arrays import Array, FloatArray
from longterm._base.extras import missing_extra
from longterm.errors import InputError, KinkWarning
from longterm.problems.constraints import CustomConstraint
from longterm.problems.losses import CustomLoss
from longterm.problems.sets import Set

try:
    import jax
except ImportError as error:
    raise missing_extra("longterm.problems.autodiff needs JAX", "jax") from error

STEP = 1e-4
"""Kinks are detected by finite differences of this length and a tenth of it."""
PROBED_ROUNDS = 8
"""The number of rounds of the examples that are probed."""


@runtime_checkable
class Rounds(Protocol):
    """The part of `streams.Stream` used here."""

    length: int | None

    def draw(self, seed: int, start: int, stop: int) -> Any:
        """Return the rounds start + 1 … stop."""


def loss_from_jax(
    function: Callable[..., Array],
    over: Set,
    *,
    gradient_bound: float,
    value_range: float,
    strong_convexity: float = 0.0,
    parameters: Mapping[str, tuple[int, ...]] | None = None,
    examples: Rounds | Sequence[ArrayLike] | None = None,
) -> CustomLoss:
    """Return a loss from a function of x and a round's parameters, written with `jax.numpy`.

    Parameters
    ----------
    function : callable
        x, parameters ↦ f(x), for x of shape (..., d).
    over : Set
        The set on which the bounds hold and kinks are probed.
    gradient_bound : float
        A bound on ‖∇f‖₂.
    value_range : float
        A bound on |f(x) − f(y)|.
    strong_convexity : float
        σ, or 0 if unknown.
    parameters : mapping of str to tuple of int, optional
        The names and shapes of the parameters of a round.
    examples : Stream or sequence of array_like, optional
        Example parameters for the probes: a stream, whose first rounds are used, or one array for each parameter, with
        a round in each row. By default random ones are tried, and those for which the function is not convex skipped.

    Raises
    ------
    InputError
        If JAX's gradient at a probed point is not a subgradient, or the function does not accept shape (..., d).

    Warns
    -----
    KinkWarning
        If the function has a kink at a probed point.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from longterm.problems.autodiff import loss_from_jax
    >>> from longterm.problems.sets import Ball
    >>> f = loss_from_jax(
    ...     lambda x, target: jnp.sum((x - target) ** 2, axis=-1),
    ...     over=Ball(2), gradient_bound=4.0, value_range=4.0, strong_convexity=2.0, parameters={"target": (2,)},
    ... )
    >>> import numpy as np
    >>> f.gradient(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    array([ 2., -2.])
    """
    named = dict(parameters or {})
    compiled = _Compiled(function)
    _probe_kinks(compiled, over, named, examples, "loss")
    return _LossFromJax(over.dimension, compiled, gradient_bound, value_range, strong_convexity, named)


def constraint_from_jax(
    function: Callable[..., Array],
    over: Set,
    *,
    gradient_bound: float,
    value_bound: float,
    parameters: Mapping[str, tuple[int, ...]] | None = None,
    examples: Rounds | Sequence[ArrayLike] | None = None,
) -> CustomConstraint:
    """Return a constraint g ≤ 0 from a function of x and a round's parameters, written with `jax.numpy`.

    Parameters
    ----------
    function : callable
        x, parameters ↦ g(x), for x of shape (..., d).
    over : Set
        The set on which the bounds hold and kinks are probed.
    gradient_bound, value_bound : float
        Bounds on ‖∇g‖₂ and |g|.
    parameters : mapping of str to tuple of int, optional
        The names and shapes of the parameters of a round.
    examples : Stream or sequence of array_like, optional
        As for `loss_from_jax`.

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
    >>> from longterm.problems.autodiff import constraint_from_jax
    >>> from longterm.problems.sets import Ball
    >>> g = constraint_from_jax(
    ...     lambda x: jnp.sum(x**2, axis=-1) - 0.5, over=Ball(2), gradient_bound=2.0, value_bound=0.5
    ... )
    >>> g.values(np.array([1.0, 0.0]))
    array([0.5])
    """
    named = dict(parameters or {})
    compiled = _Compiled(function)
    _probe_kinks(compiled, over, named, examples, "constraint")
    return CustomConstraint(over.dimension, compiled.value, compiled.gradient, gradient_bound, value_bound, named)


class _LossFromJax(CustomLoss):
    """A loss whose value and gradient are computed in one call."""

    def __init__(self, dimension: int, compiled: _Compiled, *bounds: Any) -> None:
        super().__init__(dimension, compiled.value, compiled.gradient, *bounds)
        self.value_and_gradient = compiled.value_and_gradient  # type: ignore[method-assign]


class _Compiled:
    """A function and its gradient, compiled for each shape. The results have the library and dtype of x."""

    def __init__(self, function: Callable[..., Array]) -> None:
        def both(x: Array, *parameters: Array) -> tuple[Array, Array]:
            # Rows are independent, so the pullback of ones is the gradient of every row.
            value, pullback = jax.vjp(lambda point: function(point, *parameters), x)
            return value, pullback(jax.numpy.ones_like(value))[0]

        self._value, self._both = function, both
        self._compiled_value, self._compiled_both = jax.jit(function), jax.jit(both)

    def value(self, x: Array, *parameters: Array) -> Array:
        if isinstance(x, jax.Array):
            return self._value(x, *parameters)
        with jax.enable_x64(True):
            return np.asarray(self._compiled_value(x, *parameters), dtype=x.dtype)

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        if isinstance(x, jax.Array):
            return self._both(x, *parameters)
        with jax.enable_x64(True):
            value, gradient = self._compiled_both(x, *parameters)
            return np.asarray(value, dtype=x.dtype), np.asarray(gradient, dtype=x.dtype)

    def gradient(self, x: Array, *parameters: Array) -> Array:
        return self.value_and_gradient(x, *parameters)[1]


def _probes(over: Set) -> Iterator[tuple[str, FloatArray]]:
    """Yield names and points of the set where kinks are common: 0, the centre, a point with equal coordinates."""
    zero = np.zeros(over.dimension)
    if bool(over.contains(zero)):
        yield "x = 0", zero
    if np.any(over.centre):
        yield "the centre of the set", over.centre
    yield "a tie", over.project(np.full(over.dimension, 0.5))


def _probe_kinks(
    compiled: _Compiled,
    over: Set,
    parameters: Mapping[str, tuple[int, ...]],
    examples: Rounds | Sequence[ArrayLike] | None,
    role: Literal["loss", "constraint"],
) -> None:
    """Probe the function at points where kinks are common. Warn of the first kink."""
    given = examples is not None
    rounds = _given_rounds(examples, parameters, role) if examples is not None else _random_rounds(parameters)
    for name, x in _probes(over):
        for one in rounds:
            value, slope = _with(compiled.value, one), compiled.gradient(x, *one)
            if _probe(name, x, value, slope, must_be_convex=given or not one):
                return


def _random_rounds(parameters: Mapping[str, tuple[int, ...]]) -> list[list[FloatArray]]:
    """Return zeros, three normal draws, and their absolute values, because many parameters are weights."""
    if not parameters:
        return [[]]
    rng = np.random.default_rng(0)
    drawn = [[rng.standard_normal(shape) for shape in parameters.values()] for _ in range(3)]
    return [[np.zeros(shape) for shape in parameters.values()], *drawn, *([abs(a) for a in one] for one in drawn)]


def _given_rounds(
    examples: Rounds | Sequence[ArrayLike], parameters: Mapping[str, tuple[int, ...]], role: str
) -> list[list[FloatArray]]:
    """Return the first rounds of a stream, or of arrays with a round in each row."""
    if isinstance(examples, Rounds):
        stop = PROBED_ROUNDS if examples.length is None else min(PROBED_ROUNDS, examples.length)
        arrays: list[FloatArray] = list(getattr(examples.draw(0, 0, stop), role))
    else:
        arrays = [np.asarray(array, dtype=np.float64)[:PROBED_ROUNDS] for array in examples]
    wanted = list(parameters.values())
    if [array.shape[1:] for array in arrays] != wanted or len({len(array) for array in arrays}) > 1:
        what = f"have shapes {[array.shape for array in arrays]}, the parameters of a round {wanted}"
        raise InputError("examples", what, "Give one array for each parameter, with one row per round")
    return [list(one) for one in zip(*arrays, strict=True)] or [[]]


def _with(value: Callable[..., Array], parameters: Sequence[Array]) -> Callable[[FloatArray], FloatArray]:
    return lambda x: np.asarray(value(x, *parameters))


def _probe(
    name: str, x: FloatArray, value: Callable[[FloatArray], FloatArray], slope: FloatArray, *, must_be_convex: bool
) -> bool:
    """Warn and return True if the function has a kink at x. Raise InputError if `slope` is not a subgradient.

    Without `must_be_convex`, for random parameters, a function that is not convex is skipped.
    """
    single, pair = value(x), value(np.stack([x, x]))
    # Code compiled for another shape may round differently.
    same = single.shape == () and pair.shape == (2,) and np.allclose(pair, single, rtol=1e-9, atol=0, equal_nan=True)
    if not same:
        what = f"returned {single} for one x and {pair} for the same x twice"
        raise InputError("function", what, "Write it for x of shape (..., d), so that it returns shape (...,)")
    if not must_be_convex and not np.isfinite(single):
        return False
    if not np.all(np.isfinite(slope)):
        remedy = "Give an analytic gradient with CustomLoss or CustomConstraint, or guard the kink with jax.numpy.where"
        raise InputError("function", f"its gradient by JAX at {name} is {slope}", remedy)
    (left, right), (near_left, near_right) = _slopes(value, x, STEP), _slopes(value, x, STEP / 10)
    # One-sided slopes of a convex function enclose its subgradients, up to rounding.
    rounding = 1e3 * np.finfo(np.float64).eps * (abs(float(value(x))) + 1e-300) / STEP + 1e-9 * np.abs(slope)
    low, high = np.minimum(left, right), np.maximum(left, right)
    outside = (slope < low - rounding) | (slope > high + rounding)
    if np.any(outside):
        k = int(np.argmax(outside))
        what = f"JAX's slope {slope[k]:g} at {name}, coordinate {k}, is outside [{low[k]:g}, {high[k]:g}]"
        raise InputError("function", what + ": not a subgradient", "Give an analytic gradient")
    concave = left > right + rounding
    if np.any(concave):
        if not must_be_convex:
            return False
        k = int(np.argmax(concave))
        what = f"is not convex at {name}: in coordinate {k} its slope falls from {left[k]:g} to {right[k]:g}"
        raise InputError("function", what, "Give a convex function, and examples of parameters that it is convex for")
    # The gap between the two slopes shrinks with the step for a smooth function, and stays at a kink.
    kinks = np.flatnonzero((near_right - near_left > 0.5 * (right - left)) & (near_right - near_left > 30 * rounding))
    if kinks.size == 0:
        return False
    k = int(kinks[0])
    warnings.warn(
        f"at {name} the function has a kink in {kinks.size} coordinates: JAX takes slope {slope[k]:g} in "
        f"coordinate {k}, between {left[k]:g} and {right[k]:g}. An analytic subgradient by this library's "
        "rules (sign(0) = 0, lowest index at a tie) may differ, and so may runs from the first round on",
        KinkWarning,
        stacklevel=4,
    )
    return True


def _slopes(value: Callable[[FloatArray], FloatArray], x: FloatArray, step: float) -> tuple[FloatArray, FloatArray]:
    """Return the slopes to the left and right of x in every coordinate, ∓∞ where the function is not finite."""
    moves, here = step * np.eye(len(x)), value(x)
    right = np.array([(value(x + move) - here) / step for move in moves])
    left = np.array([(here - value(x - move)) / step for move in moves])
    return np.where(np.isfinite(left), left, -np.inf), np.where(np.isfinite(right), right, np.inf)
