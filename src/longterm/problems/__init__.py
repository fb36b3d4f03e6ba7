"""Problems: an enclosing set, a loss family and a constraint, ready to use."""

from longterm.problems.budgeted_logistic import budgeted_logistic
from longterm.problems.consensus import consensus
from longterm.problems.covariance import covariance
from longterm.problems.doubly_stochastic import doubly_stochastic
from longterm.problems.fair_logistic import fair_logistic
from longterm.problems.job_scheduling import job_scheduling, mean_of_arrivals, speeds_of_servers
from longterm.problems.late_reversal import late_reversal
from longterm.problems.noisy_doubly_stochastic import noisy_doubly_stochastic
from longterm.problems.online_linear_program import online_linear_program
from longterm.problems.power_allocation import power_allocation
from longterm.problems.problem import Problem
from longterm.problems.routing import Network, routing
from longterm.problems.switching_constraints import random_half_spaces, switching_constraints
from longterm.problems.two_dimensional import two_dimensional

__all__ = [
    "Network",
    "Problem",
    "budgeted_logistic",
    "consensus",
    "covariance",
    "doubly_stochastic",
    "fair_logistic",
    "job_scheduling",
    "late_reversal",
    "mean_of_arrivals",
    "noisy_doubly_stochastic",
    "online_linear_program",
    "power_allocation",
    "random_half_spaces",
    "routing",
    "speeds_of_servers",
    "switching_constraints",
    "two_dimensional",
]
