"""The few array helpers that every room uses, written against the Array API standard.

Nothing here depends on one array library: `namespace` finds the library of the arrays at
hand, and the rest is arithmetic on (..., d) arrays whose leading axes are independent learners.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import array_api_compat
import numpy as np
from numpy.typing import NDArray

from longterm.errors import InputError

# The standard's arrays share no base class, so an array of "any library" can only be `Any`.
Array = Any
FloatArray = NDArray[np.float64]

SHORT = 256
"""Rows of so many numbers are added up on the way, where they are compiled."""
SHORT_ROW = 16
"""So many numbers are compared faster one by one."""
LINE = 64
"""Bytes that come from memory at once."""
_NAMESPACE_OF_TYPE: dict[type, ModuleType] = {}


def namespace(x: Array) -> Any:
    """The Array API namespace of x, remembered per type: a round asks for it many times."""
    kind = type(x)
    found = _NAMESPACE_OF_TYPE.get(kind)
    if found is None:
        found = _NAMESPACE_OF_TYPE[kind] = array_api_compat.array_namespace(x)
    return found


def like(value: Any, x: Array) -> Any:
    """`value` ready to meet x in arithmetic: x's library, dtype and device.

    Python scalars need nothing. Anything else would drag x to its own dtype (a float64 β breaks
    a float32 learner), so it is converted, which is free when it already fits.
    """
    if type(value) is float or (isinstance(value, (int, float)) and not isinstance(value, np.generic)):
        return value
    if type(value) is type(x) and value.dtype == x.dtype:
        return value
    return namespace(x).asarray(value, dtype=x.dtype, device=array_api_compat.device(x))


def dot(a: Array, b: Array) -> Array:
    """⟨a, b⟩ along the last axis, leading axes broadcast."""
    if type(a) is not np.ndarray and a.ndim > 1 and a.shape[-1] <= SHORT and array_api_compat.is_jax_array(a):
        return namespace(a).sum(a * b, axis=-1)  # fused with what is around it; a call of its own would not be
    return namespace(a).vecdot(a, b)


def times_table(rows: Array, table: Array) -> Array:
    """Rows (..., n) times a table (n, k): for a few NumPy's `dot` takes three quarters of the operator's time."""
    return rows.dot(table) if type(rows) is np.ndarray and rows.ndim <= 2 else rows @ table


def dots(rows: Array, x: Array) -> Array:
    """⟨row, x⟩ of rows (K, ..., d), or of one row, with x (..., d): one product where x is one vector of NumPy."""
    return rows.dot(x) if type(rows) is np.ndarray and x.ndim == 1 else dot(rows, x)


def square(x: Array) -> Array:
    """‖x‖₂² along the last axis: NumPy's own calls take half the time of the standard's, for many short rows less."""
    if type(x) is not np.ndarray:
        return dot(x, x)
    if x.ndim == 2 and x.shape[1] <= SHORT:
        return np.einsum("ij,ij->i", x, x)
    return x.dot(x) if x.ndim == 1 else np.vecdot(x, x)


def norm(x: Array) -> Array:
    """‖x‖₂ along the last axis."""
    return (np if type(x) is np.ndarray else namespace(x)).sqrt(square(x))


def clamp_min(values: Array, least: Any) -> Array:
    """max(values, least), NaN where a value is: NumPy takes four times as long to compare two single numbers."""
    if isinstance(values, np.generic):
        number: Any = values
        return type(values)(least) if number < least else values
    return namespace(values).maximum(values, least)


def as_float(t: Array, x: Array) -> Array:
    """An integer array of rounds in the dtype of x."""
    if isinstance(t, np.generic) and type(x) is np.ndarray:
        return x.dtype.type(t)
    return namespace(x).astype(t, x.dtype)


def safe_norm(x: Array) -> Array:
    """‖x‖₂ along the last axis at any scale: no square overflows or underflows. Twice the time of `norm`."""
    xp = namespace(x)
    largest = xp.max(xp.abs(x), axis=-1, keepdims=True)
    scale = xp.where((largest > 0) & xp.isfinite(largest), largest, 1.0)
    return scale[..., 0] * norm(x / scale)


def as_column(values: Array) -> Array:
    """Per-learner scalars (...,) as (..., 1), ready to scale (..., d)."""
    return values[..., None]


def scale_rows(values: Array, x: Array) -> Array:
    """Per-learner scalars (...,) times x (..., d). A single number of NumPy multiplies as it is, in half the time."""
    return values * x if isinstance(values, np.generic) else values[..., None] * x


def expand_last(values: Array) -> Array:
    """Per-learner scalars (...,) ready to meet (..., d); a single number of NumPy is ready as it is."""
    return values if isinstance(values, np.generic) else values[..., None]


def where_rows(condition: Array, one: Array, other: Array) -> Array:
    """For each learner `one` or `other`, both (..., d), by a condition (...,)."""
    if isinstance(condition, np.generic):
        return one if condition else other
    return namespace(one).where(condition[..., None], one, other)


def rows_at(table: Array, index: Array) -> Array:
    """table[index] for an index of any shape: the standard's `take` wants it one-dimensional."""
    xp = namespace(table)
    flat = xp.take(table, xp.reshape(index, (-1,)), axis=0)
    return xp.reshape(flat, (*index.shape, *table.shape[1:]))


def cache_aligned_zeros(size: int) -> NDArray[np.uint8]:
    """So many bytes of 0 from the beginning of a cache line on, so that what fits into one does not lie across two."""
    room = np.zeros(size + LINE, dtype=np.uint8)
    first = -room.ctypes.data % LINE
    return room[first : first + size]


def first_true(mask: Array) -> Array:
    """The lowest index at which a boolean array is true, along the last axis.

    The standard has argmax for numbers only; NumPy's for booleans is twenty times faster than for numbers.
    """
    if isinstance(mask, np.ndarray):
        return mask.argmax(axis=-1)
    xp = namespace(mask)
    return xp.argmax(xp.astype(mask, xp.int8), axis=-1)


def min_keepdims(values: Array) -> Array:
    """Min along the last axis, which is kept, shape (..., 1)."""
    if isinstance(values, np.ndarray):
        return np.minimum.reduce(values, axis=-1, keepdims=True)  # three times faster than np.min on a short axis
    return namespace(values).min(values, axis=-1, keepdims=True)


def max_keepdims(values: Array) -> Array:
    """Max along the last axis, which is kept, shape (..., 1)."""
    if isinstance(values, np.ndarray):
        return np.maximum.reduce(values, axis=-1, keepdims=True)
    return namespace(values).max(values, axis=-1, keepdims=True)


def sums_of_largest(values: Array) -> Array:
    """The sums of the 1, 2, … largest along the last axis: NumPy's own calls take a third of the standard's time."""
    if isinstance(values, np.ndarray):
        return np.add.accumulate(np.sort(values, axis=-1)[..., ::-1], axis=-1)
    xp = namespace(values)
    return xp.cumulative_sum(xp.sort(values, axis=-1, descending=True), axis=-1)


def signs(x: Array) -> Array:
    """−1, 0 or 1: NumPy's own has no need of the standard's second look at NaN."""
    return np.sign(x) if isinstance(x, np.ndarray) else namespace(x).sign(x)


def min_last(values: Array) -> Array:
    """Min along the last axis, shape (...,)."""
    if _is_short_row(values):
        return values.dtype.type(min(values.tolist()))
    return namespace(values).min(values, axis=-1)


def max_abs(values: Array) -> Array:
    """Max |v| along the last axis, shape (...,)."""
    if _is_short_row(values):
        return values.dtype.type(max(map(abs, values.tolist())))
    return namespace(values).max(namespace(values).abs(values), axis=-1)


def sum_last(values: Array) -> Array:
    """Σ along the last axis, shape (...,)."""
    if _is_short_row(values):
        return values.dtype.type(sum(values.tolist()))
    return namespace(values).sum(values, axis=-1)


def _is_short_row(values: Array) -> bool:
    """Whether it is one learner's row of a few numbers: looked at one by one, in half the time of a reduction."""
    return type(values) is np.ndarray and values.ndim == 1 and 0 < values.size <= SHORT_ROW


def clamp_to_divisor(positive: Array) -> Array:
    """At least the root of the smallest number there is: to divide by, where 0 stands for "nothing yet"."""
    return clamp_min(positive, least_divisor(positive))


def least_divisor(x: Array) -> float:
    """The root of the smallest number of x's dtype that there is."""
    found = _LEAST_OF_NUMPY.get(x.dtype.type) if isinstance(x, (np.ndarray, np.generic)) else None
    return _least_divisor(x.dtype, namespace(x)) if found is None else found


def float_dtype(xp: Any, dtype: Any) -> Any:
    """The dtype of a state: float64 unless another floating one is asked for."""
    chosen = xp.float64 if dtype is None else dtype
    if xp.empty(0, dtype=chosen).dtype not in (xp.float32, xp.float64):
        raise InputError("dtype", f"{dtype!r} cannot hold a decision", "Use float32 or float64")
    return chosen


def to_numpy(x: Array) -> NDArray[Any]:
    """An array of any library as a NumPy array."""
    return np.asarray(x)


def through_numpy(
    function: Callable[[NDArray[Any]], tuple[NDArray[Any], ...]], x: Array, shapes: Sequence[tuple[int, ...]]
) -> tuple[Array, ...]:
    """Call a function that only knows NumPy arrays on x; results of these shapes, in x's library and dtype.

    Searches with an unknown number of steps cannot be compiled. They are oracles on the CPU: the numbers go there and
    come back, from inside a compiled loop too.
    """
    if not array_api_compat.is_jax_array(x):
        return tuple(like(found, x) for found in function(to_numpy(x)))
    return _through_numpy_from_jax(function, x, shapes)


def _through_numpy_from_jax(
    function: Callable[[NDArray[Any]], tuple[NDArray[Any], ...]], x: Array, shapes: Sequence[tuple[int, ...]]
) -> tuple[Array, ...]:
    """The same from inside a compiled JAX loop, without losing digits on the way.

    JAX runs a callback in a thread of its own, in which float64 is off unless it is on globally, and would turn the
    numbers into float32 there. So they travel as what they are made of, pairs of 32-bit words.
    """
    import jax

    dtype, shape = np.dtype(x.dtype), tuple(x.shape)
    words = () if dtype.itemsize == 4 else (dtype.itemsize // 4,)

    def call(bits: Any) -> tuple[NDArray[np.uint32], ...]:
        numbers = np.ascontiguousarray(np.asarray(bits)).view(dtype).reshape(shape)
        made = (np.ascontiguousarray(result, dtype=dtype) for result in function(numbers))
        return tuple(np.atleast_1d(m).view(np.uint32).reshape((*s, *words)) for m, s in zip(made, shapes, strict=True))

    wanted = tuple(jax.ShapeDtypeStruct((*s, *words), np.uint32) for s in shapes)  # type: ignore[no-untyped-call]
    results = jax.pure_callback(call, wanted, jax.lax.bitcast_convert_type(x, np.uint32))
    return tuple(jax.lax.bitcast_convert_type(bits, x.dtype) for bits in results)


_LEAST_DIVISOR: dict[Any, float] = {}
_LEAST_OF_NUMPY: dict[Any, float] = {
    kind: float(np.finfo(kind).smallest_normal) ** 0.5 for kind in (np.float64, np.float32)
}
"""Found without a look at the library, which takes longer than what it is needed for."""


def _least_divisor(dtype: Any, xp: Any) -> float:
    key = xp.__name__, dtype  # dtypes of different libraries must not be compared
    found = _LEAST_DIVISOR.get(key)
    if found is None:
        found = _LEAST_DIVISOR[key] = float(xp.finfo(dtype).smallest_normal) ** 0.5
    return found


def resolution(x: Array) -> float:
    """The relative error below which two numbers of x's dtype count as equal: 1e-9; 16 ulp in float32."""
    return max(1e-9, 16 * float(namespace(x).finfo(x.dtype).eps))


def all_below_if_concrete(values: Array, level: Any) -> bool:
    """Whether no value is above its level, where they can be looked at; inside a compiled loop nothing is sure.

    For work that changes nothing where values are as low: leaving it out is then a matter of speed alone.
    """
    if not isinstance(values, (np.ndarray, np.generic)):
        return False
    if _is_short_row(values) and isinstance(level, float):
        return bool(max(values.tolist()) <= level)
    return bool(np.all(values <= level))
