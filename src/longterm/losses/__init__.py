"""Losses f_t: families of convex functions that know their own facts."""

from longterm.losses.base import CustomLoss, Linear, Loss, PricedUtility, SquaredDistance
from longterm.losses.rows import Absolute, Hinge, Huber, LeastSquares, Logistic, Quantile, Softmax, SquaredHinge

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
