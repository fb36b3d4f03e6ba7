"""Learners: one published algorithm per file."""

from longterm.learners.aogd import AOGD, AOGDState
from longterm.learners.base import Learner, OnBrokenBound, State
from longterm.learners.needs import Need
from longterm.learners.projected_ogd import ProjectedOGD, ProjectedOGDState

__all__ = ["AOGD", "AOGDState", "Learner", "Need", "OnBrokenBound", "ProjectedOGD", "ProjectedOGDState", "State"]
