"""The best decision in hindsight, with a certified gap.

Solvers of the offline problem belong here, from closed forms to cutting planes. `best` chooses among them. What an
online learner does belongs in `learners`.
"""

from longterm.hindsight.base import Hindsight
from longterm.hindsight.comparator import best
from longterm.hindsight.offline_logistic import choose_budget

__all__ = [
    "Hindsight",
    "best",
    "choose_budget",
]
