"""Learners in a service: ask and tell in any order, state in a database, fleets of learners."""

from longterm.live.fleet import Fleet
from longterm.live.intervals import LiveInterval, LiveIntervals
from longterm.live.learner import LiveLearner
from longterm.live.state import LiveState
from longterm.live.tokens import Token

__all__ = ["Fleet", "LiveInterval", "LiveIntervals", "LiveLearner", "LiveState", "Token"]
