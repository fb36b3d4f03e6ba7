"""Entries of the catalogue that another package would have."""

from typing import Literal

from longterm import AOGD
from longterm.catalogue.entries import LearnerEntry


def build_mine(problem, rounds, speed: float, kind: Literal["a", "b"] = "a", **more):
    """Mine, of another package."""
    return AOGD.for_problem(problem, beta=speed)


MINE = LearnerEntry("mine", build_mine, "Mine")
NOT_A_BUILDER = 3
