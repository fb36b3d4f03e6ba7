"""The best fixed decision in hindsight, with a certificate of how exact it is."""

from longterm.hindsight.base import Hindsight
from longterm.hindsight.benchmarks import Benchmark, EveryRound, InExpectation, OnAverage, affine_rounds
from longterm.hindsight.budgeted_logistic import best_budgeted_logistic
from longterm.hindsight.certificates import certified_gap, elastic_net_gap, support_of_elastic_net
from longterm.hindsight.changing import best_fixed
from longterm.hindsight.fair_logistic import best_fair_logistic
from longterm.hindsight.offline_logistic import ChosenBudget, Offline, choose_budget, least_log_loss
from longterm.hindsight.power import best_power
from longterm.hindsight.saga import best_by_saga
from longterm.hindsight.squared_distance import nearest_to_mean
from longterm.hindsight.stated import best_by_cvxpy, state_constraint, state_loss, state_set

__all__ = [
    "Benchmark",
    "ChosenBudget",
    "EveryRound",
    "Hindsight",
    "InExpectation",
    "Offline",
    "OnAverage",
    "affine_rounds",
    "best_budgeted_logistic",
    "best_by_cvxpy",
    "best_by_saga",
    "best_fair_logistic",
    "best_fixed",
    "best_power",
    "certified_gap",
    "choose_budget",
    "elastic_net_gap",
    "least_log_loss",
    "nearest_to_mean",
    "state_constraint",
    "state_loss",
    "state_set",
    "support_of_elastic_net",
]
