"""Engines: how learners are run."""

from longterm.engines.comparison import Comparison
from longterm.engines.run import compare, run
from longterm.engines.trace import Trace

__all__ = ["Comparison", "Trace", "compare", "run"]
