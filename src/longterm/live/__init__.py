"""Learners inside a service: ask and tell in any order, snapshots, a journal; fleets of equal learners."""

from longterm.live.fleet import Fleet
from longterm.live.learner import LiveLearner
from longterm.live.state import LiveState
from longterm.live.tokens import Token

__all__ = ["Fleet", "LiveLearner", "LiveState", "Token"]
