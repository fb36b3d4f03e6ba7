"""Constraints g ≤ 0: vectors of convex functions with their bounds over a set."""

from longterm.constraints.affine import Affine, VaryingAffine
from longterm.constraints.base import Constraint
from longterm.constraints.budgets import ElasticNetBudget, L1Budget, L2Budget
from longterm.constraints.combine import Maximum, Stack
from longterm.constraints.consensus import Consensus
from longterm.constraints.custom import CustomConstraint
from longterm.constraints.doubly_stochastic import DoublyStochastic
from longterm.constraints.on_first import OnFirst
from longterm.constraints.positive_semidefinite import PositiveSemidefinite
from longterm.constraints.scaled import Scaled
from longterm.constraints.smooth import Smooth

__all__ = [
    "Affine",
    "Consensus",
    "Constraint",
    "CustomConstraint",
    "DoublyStochastic",
    "ElasticNetBudget",
    "L1Budget",
    "L2Budget",
    "Maximum",
    "OnFirst",
    "PositiveSemidefinite",
    "Scaled",
    "Smooth",
    "Stack",
    "VaryingAffine",
]
