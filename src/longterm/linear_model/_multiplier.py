"""The multiplier of the budget: by how much the best loss falls for each unit of budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from longterm._base.arrays import FloatArray
from longterm.linear_model.kernels.losses import values_and_slopes
from longterm.linear_model.streaming import BudgetLinearLearner


def budget_multiplier(
    learner: BudgetLinearLearner, X: Any, labels: FloatArray, weights: FloatArray, model: tuple[FloatArray, float]
) -> float:
    """Return λ with ∇L(x) + λ∇ρ(x) ≈ 0 in the non-zero weights of a model, by least squares.

    L is the mean loss over these rows and ρ(x) = l1‖x‖₁ + ½ l2‖x‖² the constraint. At the best model within the budget
    this is the KKT multiplier, which is −dL/d(budget). It is 0 for a budget that never bound.

    The rows are not scaled, nor are the weights of the model. Empty `weights` are all 1.
    """
    settings, scale, (x, intercept) = learner.settings, learner.scale, model
    if not learner.binds or not x.any():
        return 0.0
    margins = np.ascontiguousarray(X @ x + intercept, dtype=np.float64)
    _, slopes = values_and_slopes(settings.code, settings.loss_parameter or 0.0, margins, labels)
    slopes = slopes * weights if len(weights) else slopes
    gradient = np.asarray(X.T @ slopes, dtype=np.float64) / len(labels)
    if scale is not None:
        gradient = scale.factors * (gradient - scale.means * slopes.mean())
        x = x / scale.factors
    unit = 1.0 if scale is None else float(scale.units[0])
    constraint_gradient = settings.l1 / unit * np.sign(x) + settings.l2 / unit**2 * x
    return max(-float(gradient @ constraint_gradient) / float(constraint_gradient @ constraint_gradient), 0.0)
