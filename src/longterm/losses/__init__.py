"""Losses f_t: families of convex functions that know their own facts."""

from longterm.losses.base import CustomLoss, Loss
from longterm.losses.of_one_point import Linear, PricedUtility, SquaredDistance
from longterm.losses.rows import Absolute, Hinge, Huber, LeastSquares, Logistic, Quantile, SquaredHinge
from longterm.losses.softmax import Softmax

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
    "Softmax",
    "SquaredDistance",
    "SquaredHinge",
]
