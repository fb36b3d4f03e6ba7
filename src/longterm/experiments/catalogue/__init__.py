"""Names for learners and problems: what a specification, a command line or an arena can ask for."""

from longterm.experiments.catalogue.base import Entry, LearnerEntry, Prepared, ProblemEntry
from longterm.experiments.catalogue.lookup import find_learner, find_problem, learners, names_only, problems
from longterm.problems.games import Game

__all__ = [
    "Entry",
    "Game",
    "LearnerEntry",
    "Prepared",
    "ProblemEntry",
    "find_learner",
    "find_problem",
    "learners",
    "names_only",
    "problems",
]
