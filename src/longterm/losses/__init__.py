"""Losses f_t: families of convex functions with their bounds over a set."""

from longterm.losses.base import Loss
from longterm.losses.custom import CustomLoss
from longterm.losses.linear import Linear
from longterm.losses.margins import Hinge, Logistic, SquaredHinge
from longterm.losses.priced_utility import PricedUtility
from longterm.losses.residuals import Absolute, Huber, LeastSquares, Quantile
from longterm.losses.squared_distance import SquaredDistance

__all__ = [
    "Absolute",
    "CustomLoss",
    "Hinge",
    "Huber",
    "LeastSquares",
    "Linear",
    "Logistic",
    "Loss",
    "PricedUtility",
    "Quantile",
    "SquaredDistance",
    "SquaredHinge",
]
