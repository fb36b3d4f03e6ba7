"""Constraints g ≤ 0: vectors of convex functions that know their own facts."""

from longterm.constraints.base import Affine, Constraint, VaryingAffine
from longterm.constraints.budgets import ElasticNetBudget, L1Budget, L2Budget
from longterm.constraints.combine import Maximum, Stack
from longterm.constraints.consensus import Consensus
from longterm.constraints.derived import CustomConstraint, Scaled, Smooth
from longterm.constraints.matrices import DoublyStochastic, PositiveSemidefinite
from longterm.constraints.on_first import OnFirst

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
