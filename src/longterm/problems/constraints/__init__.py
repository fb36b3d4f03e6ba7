"""Constraints g ≤ 0: vectors of convex functions with their bounds over a set."""

from longterm.problems.constraints.affine import Affine, VaryingAffine
from longterm.problems.constraints.base import Constraint
from longterm.problems.constraints.combine import Maximum, Stack
from longterm.problems.constraints.consensus import Consensus
from longterm.problems.constraints.custom import CustomConstraint
from longterm.problems.constraints.doubly_stochastic import DoublyStochastic
from longterm.problems.constraints.norm_budgets import ElasticNetBudget, L1Budget, L2Budget
from longterm.problems.constraints.on_first import OnFirstCoordinates
from longterm.problems.constraints.positive_semidefinite import PositiveSemidefinite
from longterm.problems.constraints.scaled import Scaled
from longterm.problems.constraints.smooth import Smooth

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
    "OnFirstCoordinates",
    "PositiveSemidefinite",
    "Scaled",
    "Smooth",
    "Stack",
    "VaryingAffine",
]
