"""Engines: the loop over rounds in NumPy and in JAX, and the trace it records."""

from longterm.engines.comparison import Comparison
from longterm.engines.loop import compare, run
from longterm.engines.trace import Trace

__all__ = ["Comparison", "Trace", "compare", "run"]
