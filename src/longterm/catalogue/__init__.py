"""Names for learners and problems: what a specification, a command line or an arena can ask for."""

from longterm.catalogue.base import Entry, Game, LearnerEntry, Prepared, ProblemEntry
from longterm.catalogue.lookup import find_learner, find_problem, learners, problems

__all__ = [
    "Entry",
    "Game",
    "LearnerEntry",
    "Prepared",
    "ProblemEntry",
    "find_learner",
    "find_problem",
    "learners",
    "problems",
]
