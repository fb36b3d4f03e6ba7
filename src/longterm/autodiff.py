"""Losses and constraints from a JAX function alone: the gradient by automatic differentiation.

Analytic subgradients are the default of this library, because it states what happens at a kink: sign(0) = 0, the
lowest index wins a tie, the gradient of ‖x‖₂ at 0 is 0. Automatic differentiation chooses for itself there:
1 or ½ at 0, the average at a tie, NaN for a norm at 0. Learners start at the centre of their set, where everything
kinks, so the choice matters from round 1. These makers look at such points, refuse a gradient that is none, and
warn of the first kink they find.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from longterm._arrays import Array, FloatArray
from longterm.constraints import CustomConstraint
from longterm.errors import InputError
from longterm.losses import CustomLoss
from longterm.sets import Set

try:
    import jax
except ImportError as error:
    raise ImportError("longterm.autodiff needs JAX: pip install 'longterm[jax]'") from error

STEP = 1e-4
"""The finite differences that tell a kink are this long, and a tenth of it."""


PROBED_ROUNDS = 8
"""So many rounds of the examples are looked at."""


@runtime_checkable
class Rounds(Protocol):
    """What is asked of a stream here (`longterm.streams.Stream`)."""

    length: int | None

    def draw(self, seed: int, start: int, stop: int) -> Any:
        """The rounds start + 1 … stop."""


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
    examples: Rounds | Sequence[ArrayLike] | None = None,
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
    examples : Stream or sequence of array_like, optional
        Parameters as they will come, for the look at kinks: a stream, whose first rounds are taken, or one array for
        each parameter, a round in each row. Left out, invented ones are tried, and those for which the function is not
        convex are passed over.

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
    made = _Compiled(function)
    _look_at_kinks(made, over, named, examples, "loss")
    facts = (gradient_bound, value_range, strong_convexity, named)
    return _LossFromJax(over.dimension, made.value, made.gradient, *facts, both=made.value_and_gradient)


def constraint_from_jax(
    function: Callable[..., Array],
    over: Set,
    *,
    gradient_bound: float,
    value_bound: float,
    parameters: Mapping[str, tuple[int, ...]] | None = None,
    examples: Rounds | Sequence[ArrayLike] | None = None,
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
    examples : Stream or sequence of array_like, optional
        Parameters as they will come, for the look at kinks: a stream, whose first rounds are taken, or one array for
        each parameter, a round in each row. Left out, invented ones are tried, and those for which the function is not
        convex are passed over.

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
    made = _Compiled(function)
    _look_at_kinks(made, over, named, examples, "constraint")
    return CustomConstraint(over.dimension, made.value, made.gradient, gradient_bound, value_bound, named)


@dataclass(frozen=True, eq=False)
class _LossFromJax(CustomLoss):
    """A loss whose value and gradient are computed together."""

    both: Callable[..., tuple[Array, Array]] = field(repr=False, kw_only=True)

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        return self.both(x, *parameters)


class _Compiled:
    """A function and its gradient, compiled once for each shape. JAX in, JAX out; NumPy in, NumPy out, in x's dtype."""

    def __init__(self, function: Callable[..., Array]) -> None:
        def both(x: Array, *parameters: Array) -> tuple[Array, Array]:
            # Rows do not see each other, so pulling back a one for every row gives the gradient of every row.
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
    """Where functions kink and learners are, inside the set: 0, the centre, a point with equal coordinates (a tie)."""
    zero = np.zeros(over.dimension)
    if bool(over.contains(zero)):
        yield "x = 0", zero
    if np.any(over.centre):
        yield "the centre of the set", over.centre
    yield "a tie", over.project(np.full(over.dimension, 0.5))


def _look_at_kinks(
    made: _Compiled,
    over: Set,
    parameters: Mapping[str, tuple[int, ...]],
    examples: Rounds | Sequence[ArrayLike] | None,
    role: Literal["loss", "constraint"],
) -> None:
    given = examples is not None
    rounds = _given_rounds(examples, parameters, role) if examples is not None else _invented(parameters)
    for name, x in _probes(over):
        for one in rounds:
            if _look_at(name, x, _with(made.value, one), made.gradient(x, *one), must_be_convex=given or not one):
                return


def _invented(parameters: Mapping[str, tuple[int, ...]]) -> list[list[FloatArray]]:
    """Nothing, then numbers of either sign, then the same without their signs: many parameters are weights."""
    if not parameters:
        return [[]]
    rng = np.random.default_rng(0)
    drawn = [[rng.standard_normal(shape) for shape in parameters.values()] for _ in range(3)]
    return [[np.zeros(shape) for shape in parameters.values()], *drawn, *([abs(a) for a in one] for one in drawn)]


def _given_rounds(
    examples: Rounds | Sequence[ArrayLike], parameters: Mapping[str, tuple[int, ...]], role: str
) -> list[list[FloatArray]]:
    """The first rounds of a stream, or of arrays with a round in each row."""
    if isinstance(examples, Rounds):
        stop = PROBED_ROUNDS if examples.length is None else min(PROBED_ROUNDS, examples.length)
        arrays: list[FloatArray] = list(getattr(examples.draw(0, 0, stop), role))
    else:
        arrays = [np.asarray(array, dtype=np.float64)[:PROBED_ROUNDS] for array in examples]
    wanted = list(parameters.values())
    if [array.shape[1:] for array in arrays] != wanted or len({len(array) for array in arrays}) > 1:
        what = f"have shapes {[array.shape for array in arrays]}, the parameters of a round {wanted}"
        raise InputError("examples", what, "Give one array for each parameter, with a round in each row")
    return [list(one) for one in zip(*arrays, strict=True)] or [[]]


def _with(value: Callable[..., Array], parameters: Sequence[Array]) -> Callable[[FloatArray], FloatArray]:
    return lambda x: np.asarray(value(x, *parameters))


def _look_at(
    name: str, x: FloatArray, value: Callable[[FloatArray], FloatArray], slope: FloatArray, *, must_be_convex: bool
) -> bool:
    """Whether the function has a kink at x; it is warned of, and what is no subgradient is refused.

    With parameters that nobody vouches for (`must_be_convex` False), a function that is not convex is passed over.
    """
    single, pair = value(x), value(np.stack([x, x]))
    # Compiled for another shape it may round otherwise.
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
    # The slopes of a convex function enclose its subgradients. What is finer than this is rounding.
    rounding = 1e3 * np.finfo(np.float64).eps * (abs(float(value(x))) + 1e-300) / STEP + 1e-9 * np.abs(slope)
    low, high = np.minimum(left, right), np.maximum(left, right)
    outside = (slope < low - rounding) | (slope > high + rounding)
    if np.any(outside):
        k = int(np.argmax(outside))
        what = f"JAX's slope {slope[k]:g} at {name}, coordinate {k}, is outside [{low[k]:g}, {high[k]:g}]"
        raise InputError("function", what + ": no subgradient", "Give an analytic gradient")
    bent = left > right + rounding
    if np.any(bent):
        if not must_be_convex:
            return False
        k = int(np.argmax(bent))
        what = f"is not convex at {name}: in coordinate {k} its slope falls from {left[k]:g} to {right[k]:g}"
        raise InputError("function", what, "Give a convex function, and examples of parameters that it is convex for")
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
