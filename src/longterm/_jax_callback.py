"""Calling NumPy from inside a compiled JAX loop, without losing digits on the way.

JAX runs a callback in a thread of its own, in which float64 is off unless it is on globally, and would turn the
numbers into float32 there. So they travel as what they are made of, pairs of 32-bit words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp
from numpy.typing import NDArray

Array = Any
"""Of JAX: its types say nothing of shapes."""


def call_numpy(
    function: Callable[[NDArray[Any]], tuple[NDArray[Any], ...]], x: Array, shapes: Sequence[tuple[int, ...]]
) -> tuple[Array, ...]:
    """function(x), computed by NumPy on the CPU; its results have these shapes and x's dtype."""
    dtype, shape = np.dtype(x.dtype), tuple(x.shape)
    words = () if dtype.itemsize == 4 else (dtype.itemsize // 4,)

    def call(bits: Any) -> tuple[NDArray[np.uint32], ...]:
        numbers = np.ascontiguousarray(np.asarray(bits)).view(dtype).reshape(shape)
        found = (np.ascontiguousarray(result, dtype=dtype) for result in function(numbers))
        return tuple(np.atleast_1d(f).view(np.uint32).reshape((*s, *words)) for f, s in zip(found, shapes, strict=True))

    wanted = tuple(jax.ShapeDtypeStruct((*s, *words), jnp.uint32) for s in shapes)  # type: ignore[no-untyped-call]
    results = jax.pure_callback(call, wanted, lax.bitcast_convert_type(x, jnp.uint32))
    return tuple(lax.bitcast_convert_type(bits, x.dtype) for bits in results)
