"""The best decision in hindsight, with a certified gap."""

from longterm.hindsight.base import Hindsight
from longterm.hindsight.certificates import certified_gap, elastic_net_gap, support_of_elastic_net
from longterm.hindsight.comparator import best
from longterm.hindsight.cvxpy_statements import state_constraint, state_loss, state_set
from longterm.hindsight.moving import MovingHindsight
from longterm.hindsight.offline_logistic import Offline, choose_budget, least_log_loss
from longterm.problems.benchmarks import Benchmark, EveryRound, InExpectation, OnAverage

__all__ = [
    "Benchmark",
    "EveryRound",
    "Hindsight",
    "InExpectation",
    "MovingHindsight",
    "Offline",
    "OnAverage",
    "best",
    "certified_gap",
    "choose_budget",
    "elastic_net_gap",
    "least_log_loss",
    "state_constraint",
    "state_loss",
    "state_set",
    "support_of_elastic_net",
]
