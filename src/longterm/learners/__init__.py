"""Learners: one published algorithm per file."""

from longterm.learners.aogd import AOGD, AOGDState
from longterm.learners.base import Learner, OnBrokenBound, State
from longterm.learners.needs import Need

__all__ = ["AOGD", "AOGDState", "Learner", "Need", "OnBrokenBound", "State"]
