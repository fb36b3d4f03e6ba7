"""Problems: an enclosing set, a loss family and a constraint, ready to use."""

from longterm.problems.adversarial import (
    Benchmark,
    EveryRound,
    InExpectation,
    OnAverage,
    late_reversal,
    random_half_spaces,
    switching_constraints,
)
from longterm.problems.learning import (
    budgeted_logistic,
    consensus,
    covariance,
    doubly_stochastic,
    fair_logistic,
    noisy_doubly_stochastic,
    two_dimensional,
)
from longterm.problems.problem import Problem
from longterm.problems.resources import (
    Network,
    job_scheduling,
    mean_of_arrivals,
    online_linear_program,
    power_allocation,
    routing,
    speeds_of_servers,
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
