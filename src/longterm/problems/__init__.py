"""Problems: an enclosing set, a loss family and a constraint, ready to use."""

from longterm.problems.budgeted_logistic import budgeted_logistic
from longterm.problems.consensus import consensus
from longterm.problems.covariance import covariance
from longterm.problems.doubly_stochastic import doubly_stochastic
from longterm.problems.late_reversal import late_reversal
from longterm.problems.problem import Problem
from longterm.problems.two_dimensional import two_dimensional

__all__ = [
    "Problem",
    "budgeted_logistic",
    "consensus",
    "covariance",
    "doubly_stochastic",
    "late_reversal",
    "two_dimensional",
]
