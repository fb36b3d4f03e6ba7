"""Engines: the loop that plays rounds. They differ in speed only."""

from longterm.engines.run import compare, run

__all__ = ["compare", "run"]
