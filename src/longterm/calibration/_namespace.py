"""The Array API namespace of an array; NumPy itself for NumPy arrays, which is faster than its wrapper."""

from __future__ import annotations

from typing import Any

import numpy as np

from longterm import _arrays


def namespace(x: Any) -> Any:
    """Return the namespace of x."""
    return np if isinstance(x, np.ndarray | np.generic) else _arrays.namespace(x)
