"""Play learners: `run` and `compare` over rounds, live in a service, and fleets of them."""

from longterm.play.engines.comparison import Comparison
from longterm.play.engines.loop import compare, run
from longterm.play.engines.trace import Trace
from longterm.play.fleet.fleet import Fleet
from longterm.play.live_learner.live_learner import LiveLearner

__all__ = [
    "Comparison",
    "Fleet",
    "LiveLearner",
    "Trace",
    "compare",
    "run",
]
