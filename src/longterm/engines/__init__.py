"""Engines: how learners are run."""

from longterm.engines.run import compare, run
from longterm.engines.trace import Trace

__all__ = ["Trace", "compare", "run"]
