"""Losses f_t: families of convex functions with their bounds over a set."""

from longterm.problems.losses.base import Loss
from longterm.problems.losses.custom import CustomLoss
from longterm.problems.losses.linear import Linear
from longterm.problems.losses.margin_losses import Hinge, Logistic, SquaredHinge
from longterm.problems.losses.residuals import Absolute, Huber, LeastSquares, Quantile
from longterm.problems.losses.squared_distance import SquaredDistance

__all__ = [
    "Absolute",
    "CustomLoss",
    "Hinge",
    "Huber",
    "LeastSquares",
    "Linear",
    "Logistic",
    "Loss",
    "Quantile",
    "SquaredDistance",
    "SquaredHinge",
]
