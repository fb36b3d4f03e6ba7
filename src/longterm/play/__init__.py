"""Play learners: `run` and `compare` over rounds, live in a service, and fleets of them.

engines        the loop over rounds in NumPy and in JAX, and its trace
live_learner   one learner in a service, with its state in a database
fleet          many learners in one object
keyed_learner  a learner for each key of a stream, for stream engines

Runs of many learners with files and reports belong in `lab`.
"""

from longterm.play.engines.comparison import Comparison
from longterm.play.engines.loop import compare, run
from longterm.play.engines.trace import Trace
from longterm.play.fleet.fleet import Fleet
from longterm.play.keyed_learner import KeyedLearner
from longterm.play.live_learner.live_learner import LiveLearner

__all__ = [
    "Comparison",
    "Fleet",
    "KeyedLearner",
    "LiveLearner",
    "Trace",
    "compare",
    "run",
]
