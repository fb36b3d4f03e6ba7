"""Array helpers written against the Array API standard.

Arrays have shape (..., d); the leading axes are independent learners. `namespace` returns the library of an array.
Some helpers call NumPy directly, because the standard's functions are 2 to 20 times slower on short arrays.
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

ROUNDING = 1e-12
"""The relative rounding error that comparisons in float64 allow for."""
SHORT = 256
"""Rows up to this length are reduced by fused or direct calls."""
SHORT_ROW = 16
"""Rows up to this length are reduced faster by Python than by NumPy."""
CACHE_LINE = 64
"""The number of bytes in a cache line."""
_NAMESPACE_OF_TYPE: dict[type, ModuleType] = {}


def namespace(x: Array) -> Any:
    """Return the Array API namespace of x, cached by type."""
    kind = type(x)
    found = _NAMESPACE_OF_TYPE.get(kind)
    if found is None:
        found = _NAMESPACE_OF_TYPE[kind] = array_api_compat.array_namespace(x)
    return found


def like(value: Any, x: Array) -> Any:
    """Return `value` in x's library, dtype and device. Python scalars are returned unchanged.

    Without the conversion a float64 β would turn a float32 learner into a float64 one.
    """
    if type(value) is float:  # also where x is one: an entropic price is a Python number
        return value
    if type(value) is type(x) and value.dtype == x.dtype:
        return value
    if isinstance(value, (int, float)) and not isinstance(value, np.generic):
        return value
    return namespace(x).asarray(value, dtype=x.dtype, device=array_api_compat.device(x))


def dot(a: Array, b: Array) -> Array:
    """Return ⟨a, b⟩ along the last axis, leading axes broadcast."""
    if type(a) is np.ndarray:
        return np.vecdot(a, b)
    if a.ndim > 1 and a.shape[-1] <= SHORT and array_api_compat.is_jax_array(a):
        return namespace(a).sum(a * b, axis=-1)  # XLA fuses a sum with its neighbours, but not a dot product
    return namespace(a).vecdot(a, b)


def times_table(rows: Array, table: Array) -> Array:
    """Return rows (..., n) times a table (n, k)."""
    return rows.dot(table) if type(rows) is np.ndarray and rows.ndim <= 2 else rows @ table


def dots(rows: Array, x: Array) -> Array:
    """Return ⟨row, x⟩ for rows (K, ..., d), or for one row, and x (..., d)."""
    return rows.dot(x) if type(rows) is np.ndarray and x.ndim == 1 else dot(rows, x)


def square(x: Array) -> Array:
    """Return ‖x‖₂² along the last axis."""
    if type(x) is not np.ndarray:
        return dot(x, x)
    if x.ndim == 2 and x.shape[1] <= SHORT:
        return np.einsum("ij,ij->i", x, x)
    return x.dot(x) if x.ndim == 1 else np.vecdot(x, x)


def norm(x: Array) -> Array:
    """Return ‖x‖₂ along the last axis."""
    return (np if type(x) is np.ndarray else namespace(x)).sqrt(square(x))


def as_float(t: Array, x: Array) -> Array:
    """Return an integer array of rounds in the dtype of x."""
    if isinstance(t, np.generic) and type(x) is np.ndarray:
        return x.dtype.type(t)
    return namespace(x).astype(t, x.dtype)


def safe_norm(x: Array) -> Array:
    """Return ‖x‖₂ along the last axis without overflow or underflow, in twice the time of `norm`."""
    xp = namespace(x)
    largest = xp.max(xp.abs(x), axis=-1, keepdims=True)
    scale = xp.where((largest > 0) & xp.isfinite(largest), largest, 1.0)
    return scale[..., 0] * norm(x / scale)


def as_column(values: Array) -> Array:
    """Return per-learner scalars (...,) as (..., 1)."""
    return values[..., None]


def scale_rows(values: Array, x: Array) -> Array:
    """Return per-learner scalars (...,) times x (..., d)."""
    return values * x if isinstance(values, np.generic) else values[..., None] * x


def expand_last(values: Array) -> Array:
    """Return per-learner scalars (...,) as (..., 1). A NumPy scalar is returned unchanged."""
    return values if isinstance(values, np.generic) else values[..., None]


def where_rows(condition: Array, one: Array, other: Array) -> Array:
    """Return for each learner `one` or `other`, both (..., d), by a condition (...,)."""
    if isinstance(condition, np.generic):
        return one if condition else other
    return namespace(one).where(condition[..., None], one, other)


def rows_at(table: Array, index: Array) -> Array:
    """Return table[index] for an index of any shape. The standard's `take` accepts one dimension only."""
    xp = namespace(table)
    flat = xp.take(table, xp.reshape(index, (-1,)), axis=0)
    return xp.reshape(flat, (*index.shape, *table.shape[1:]))


def cache_aligned_zeros(size: int) -> NDArray[np.uint8]:
    """Return `size` zero bytes that start at a cache line."""
    buffer = np.zeros(size + CACHE_LINE, dtype=np.uint8)
    first = -buffer.ctypes.data % CACHE_LINE
    return buffer[first : first + size]


def first_true(mask: Array) -> Array:
    """Return the lowest index at which a boolean array is True along the last axis."""
    if isinstance(mask, np.ndarray):
        return mask.argmax(axis=-1)
    xp = namespace(mask)
    return xp.argmax(xp.astype(mask, xp.int8), axis=-1)


def min_keepdims(values: Array) -> Array:
    """Return the minimum along the last axis, shape (..., 1)."""
    if isinstance(values, np.ndarray):
        return np.minimum.reduce(values, axis=-1, keepdims=True)
    return namespace(values).min(values, axis=-1, keepdims=True)


def max_keepdims(values: Array) -> Array:
    """Return the maximum along the last axis, shape (..., 1)."""
    if isinstance(values, np.ndarray):
        return np.maximum.reduce(values, axis=-1, keepdims=True)
    return namespace(values).max(values, axis=-1, keepdims=True)


def sums_of_largest(values: Array) -> Array:
    """Return the sums of the 1, 2, … largest values along the last axis."""
    if isinstance(values, np.ndarray):
        return np.add.accumulate(np.sort(values, axis=-1)[..., ::-1], axis=-1)
    xp = namespace(values)
    return xp.cumulative_sum(xp.sort(values, axis=-1, descending=True), axis=-1)


def signs(x: Array) -> Array:
    """Return the signs −1, 0 or 1."""
    return np.sign(x) if isinstance(x, np.ndarray) else namespace(x).sign(x)


def min_last(values: Array) -> Array:
    """Return the minimum along the last axis, shape (...,)."""
    if _is_short_row(values):
        return values.dtype.type(min(values.tolist()))
    return namespace(values).min(values, axis=-1)


def max_abs(values: Array) -> Array:
    """Return the largest absolute value along the last axis, shape (...,)."""
    if _is_short_row(values):
        return values.dtype.type(max(map(abs, values.tolist())))
    return namespace(values).max(namespace(values).abs(values), axis=-1)


def sum_last(values: Array) -> Array:
    """Return the sum along the last axis, shape (...,)."""
    if _is_short_row(values):
        return values.dtype.type(sum(values.tolist()))
    return namespace(values).sum(values, axis=-1)


def _is_short_row(values: Array) -> bool:
    """Return True for a single short NumPy row."""
    return type(values) is np.ndarray and values.ndim == 1 and 0 < values.size <= SHORT_ROW


def least_divisor(x: Array) -> float:
    """Return the square root of the smallest normal number of x's dtype."""
    found = _LEAST_OF_NUMPY.get(x.dtype.type) if isinstance(x, (np.ndarray, np.generic)) else None
    return _least_divisor(x.dtype, namespace(x)) if found is None else found


def float_dtype(xp: Any, dtype: Any) -> Any:
    """Return the dtype of a state: float64 by default, or the given floating dtype."""
    chosen = xp.float64 if dtype is None else dtype
    if xp.empty(0, dtype=chosen).dtype not in (xp.float32, xp.float64):
        raise InputError("dtype", f"{dtype!r} cannot hold a decision", "Use float32 or float64")
    return chosen


def to_numpy(x: Array) -> NDArray[Any]:
    """Return an array of any library as a NumPy array."""
    return np.asarray(x)


def through_numpy(
    function: Callable[[NDArray[Any]], tuple[NDArray[Any], ...]], x: Array, shapes: Sequence[tuple[int, ...]]
) -> tuple[Array, ...]:
    """Call a NumPy function on x and return its results, of the given shapes, in x's library and dtype.

    For iterative searches that JAX cannot compile. Under JAX the function runs on the CPU in a callback.
    """
    if not array_api_compat.is_jax_array(x):
        return tuple(like(found, x) for found in function(to_numpy(x)))
    return _through_numpy_from_jax(function, x, shapes)


def _through_numpy_from_jax(
    function: Callable[[NDArray[Any]], tuple[NDArray[Any], ...]], x: Array, shapes: Sequence[tuple[int, ...]]
) -> tuple[Array, ...]:
    """Call a NumPy function from compiled JAX code without loss of precision.

    JAX runs callbacks in another thread, where float64 is off unless it is enabled globally. The numbers are therefore
    passed as pairs of 32-bit words.
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


def _least_divisor(dtype: Any, xp: Any) -> float:
    key = xp.__name__, dtype  # dtypes of different libraries cannot be compared
    found = _LEAST_DIVISOR.get(key)
    if found is None:
        found = _LEAST_DIVISOR[key] = float(xp.finfo(dtype).smallest_normal) ** 0.5
    return found


def resolution(x: Array) -> float:
    """Return the relative error below which two numbers of x's dtype count as equal: 1e-9, or 16 ulp in float32."""
    return max(1e-9, 16 * float(namespace(x).finfo(x.dtype).eps))


def all_below_if_concrete(values: Array, level: Any) -> bool:
    """Return True if all values are known to be at most `level`. Traced values are unknown.

    Callers use it to skip work that would change nothing.
    """
    if isinstance(values, np.floating):
        return bool(values <= level)
    if not isinstance(values, (np.ndarray, np.generic)):
        return False
    if _is_short_row(values) and isinstance(level, float):
        return bool(max(values.tolist()) <= level)
    return bool(np.all(values <= level))


def any_true(mask: Array) -> Array:
    """Return whether any entry is true. A NumPy scalar is returned unchanged."""
    return mask if isinstance(mask, np.generic) else namespace(mask).any(mask)


def repeat_while(needed: Callable[[Any], Array], step: Callable[[Any], Any], state: Any, most: int, x: Array) -> Any:
    """Apply `step` to a state while `needed(state)` is true, at most `most` times.

    Under JAX it is one compiled loop: the state is a tuple of arrays whose shapes and dtypes must not change. `x` tells
    the library.
    """
    if type(x) is not np.ndarray and array_api_compat.is_jax_array(x):
        import jax

        def more(counted: tuple[Any, Any]) -> Any:
            return (counted[0] < most) & needed(counted[1])

        return jax.lax.while_loop(more, lambda counted: (counted[0] + 1, step(counted[1])), (0, state))[1]
    for _ in range(most):
        if not needed(state):
            break
        state = step(state)
    return state
