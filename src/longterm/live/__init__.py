"""Learners inside a service: ask and tell in any order, snapshots, a journal."""

from longterm.live.learner import LiveLearner
from longterm.live.view import LiveState
from longterm.live.window import Token

__all__ = ["LiveLearner", "LiveState", "Token"]
