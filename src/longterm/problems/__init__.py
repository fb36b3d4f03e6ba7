"""Problems: an enclosing set, a loss family and a constraint, with streams of rounds to play on.

Parts of a problem keep their context: `sets.Ball`, `losses.Linear`, `constraints.Stack`, `streams.Replay`. Names are
imported on first use, so that a set does not import every loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from longterm._base.lazy import lazy_names

if TYPE_CHECKING:
    from longterm.problems import constraints, losses, sets, streams
    from longterm.problems.benchmarks import EveryRound, InExpectation, OnAverage
    from longterm.problems.constants import Constants
    from longterm.problems.counterexamples import Counterexample, challenge
    from longterm.problems.named.linear_program import online_linear_program
    from longterm.problems.named.logistic import budgeted_logistic, fair_logistic
    from longterm.problems.named.network import routing
    from longterm.problems.named.power import power_allocation
    from longterm.problems.named.servers import job_scheduling
    from longterm.problems.named.targets import (
        consensus,
        covariance,
        doubly_stochastic,
        noisy_doubly_stochastic,
        two_dimensional,
    )
    from longterm.problems.problem import Problem
    from longterm.problems.slater import SlaterPoint, find_slater_point

__all__ = [
    "Constants",
    "Counterexample",
    "EveryRound",
    "InExpectation",
    "OnAverage",
    "Problem",
    "SlaterPoint",
    "budgeted_logistic",
    "challenge",
    "consensus",
    "constraints",
    "covariance",
    "doubly_stochastic",
    "fair_logistic",
    "find_slater_point",
    "job_scheduling",
    "losses",
    "noisy_doubly_stochastic",
    "online_linear_program",
    "power_allocation",
    "routing",
    "sets",
    "streams",
    "two_dimensional",
]

_MODULES = {
    "Constants": "constants",
    "Counterexample": "counterexamples",
    "EveryRound": "benchmarks",
    "InExpectation": "benchmarks",
    "OnAverage": "benchmarks",
    "Problem": "problem",
    "SlaterPoint": "slater",
    "budgeted_logistic": "named.logistic",
    "challenge": "counterexamples",
    "consensus": "named.targets",
    "covariance": "named.targets",
    "doubly_stochastic": "named.targets",
    "fair_logistic": "named.logistic",
    "find_slater_point": "slater",
    "job_scheduling": "named.servers",
    "noisy_doubly_stochastic": "named.targets",
    "online_linear_program": "named.linear_program",
    "power_allocation": "named.power",
    "routing": "named.network",
    "two_dimensional": "named.targets",
}

__getattr__ = lazy_names(__name__, _MODULES, ("constraints", "losses", "sets", "streams"))


def __dir__() -> list[str]:
    return sorted(__all__)
