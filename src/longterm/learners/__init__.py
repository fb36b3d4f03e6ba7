"""Learners: one published algorithm per file."""

from longterm.learners.aogd import AOGD, AOGDState
from longterm.learners.base import Learner, OnBrokenBound, State

__all__ = ["AOGD", "AOGDState", "Learner", "OnBrokenBound", "State"]
