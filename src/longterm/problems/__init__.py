"""Problems: an enclosing set, a loss family and a constraint."""

from longterm.problems.adversarial import late_reversal, random_half_spaces, switching_constraints
from longterm.problems.benchmarks import Benchmark, EveryRound, InExpectation, OnAverage
from longterm.problems.linear_program import online_linear_program
from longterm.problems.logistic import budgeted_logistic, fair_logistic
from longterm.problems.network import Network, routing
from longterm.problems.power import power_allocation
from longterm.problems.problem import Problem
from longterm.problems.servers import job_scheduling, mean_of_arrivals, speeds_of_servers
from longterm.problems.targets import (
    consensus,
    covariance,
    doubly_stochastic,
    noisy_doubly_stochastic,
    two_dimensional,
)

__all__ = [
    "Benchmark",
    "EveryRound",
    "InExpectation",
    "Network",
    "OnAverage",
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
