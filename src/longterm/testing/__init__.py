"""Tools to test learners: checks that every learner passes, and a search for worst-case sequences.

They are for learners of users, too. Tests of this package belong in the folder `tests`.
"""

from longterm.testing.checks import CHECKS, check_learner
from longterm.testing.worst_case import find_worst_cases

__all__ = ["CHECKS", "check_learner", "find_worst_cases"]
