"""How long a gradient can be, and how far a loss can vary: for rows and an enclosing set of known size."""

from __future__ import annotations

from longterm.linear_model._losses import HINGE, HUBER, LOGISTIC, QUANTILE, SQUARED_HINGE


def loss_facts(
    code: int, parameter: float, feature_norm: float, label_bound: float, radius: float
) -> tuple[float, float]:
    """G_f and F for rows with ‖u‖ ≤ feature_norm and models with ‖x‖ ≤ radius; |y| ≤ label_bound in regression.

    A margin lies within ±s, s = feature_norm · radius. Losses of two classes fall in y·m, so they vary by f(−s) − f(s);
    those of regression have their largest slope and value where the residual is largest, s + label_bound.

    >>> from longterm.linear_model._losses import HUBER, LOGISTIC
    >>> loss_facts(LOGISTIC, 0.0, feature_norm=5.0, label_bound=0.0, radius=1.0)
    (5.0, 5.0)
    >>> loss_facts(HUBER, 2.0, feature_norm=1.0, label_bound=3.0, radius=1.0)
    (2.0, 6.0)
    """
    s = feature_norm * radius
    residual = s + label_bound
    if code == LOGISTIC:
        return feature_norm, s
    if code == HINGE:
        return feature_norm, 1 + s - max(1 - s, 0.0)
    if code == SQUARED_HINGE:
        return 2 * (1 + s) * feature_norm, (1 + s) ** 2 - max(1 - s, 0.0) ** 2
    if code == QUANTILE:
        steepest = max(parameter, 1 - parameter)
        return steepest * feature_norm, steepest * residual
    if code == HUBER and residual > parameter:
        return parameter * feature_norm, parameter * (residual - parameter / 2)
    return residual * feature_norm, residual**2 / 2
