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
    settings, sizes, (x, intercept) = learner.settings, learner.sizes, model
    if not learner.binds or not x.any():
        return 0.0
    margins = np.ascontiguousarray(X @ x + intercept, dtype=np.float64)
    _, slopes = values_and_slopes(settings.code, settings.loss_parameter or 0.0, margins, labels)
    slopes = slopes * weights if len(weights) else slopes
    means = 0.0 if learner.scale is None else learner.scale.means
    gradient = (np.asarray(X.T @ slopes, dtype=np.float64) / len(labels) - means * slopes.mean()) / sizes
    constraint_gradient = settings.l1 * np.sign(x) + settings.l2 * sizes * x
    return max(-float(gradient @ constraint_gradient) / float(constraint_gradient @ constraint_gradient), 0.0)
