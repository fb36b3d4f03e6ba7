"""Logistic regression under an elastic-net budget, optionally with a fairness constraint."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm._base import validate
from longterm.errors import InputError
from longterm.problems.constraints import Affine, ElasticNetBudget, Stack
from longterm.problems.losses import Logistic
from longterm.problems.problem import Problem


def budgeted_logistic(features: ArrayLike, budget: float, *, l1: float = 1.0, l2: float = 1.0) -> Problem:
    """Return the log-loss of rows u_t with labels ±1, subject to l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ budget.

    With l1 = l2 = 1 and ρ the budget, R = √(1 + 2ρ) − 1, G = max(√d + R, max ‖u_t‖), D = max(ρ, (√d − 1) R) and
    F = R max ‖u_t‖.

    Parameters
    ----------
    features : array_like
        The rows of the stream. Only the largest norm is used.
    budget, l1, l2 : float
        ρ, the weight of ‖x‖₁ and the weight of ½‖x‖².

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.named.logistic import budgeted_logistic
    >>> c = budgeted_logistic(np.array([[3.0, 4.0, 0.0, 0.0]]), budget=1.5).constants
    >>> c.radius, c.gradient_bound, c.constraint_bound, round(c.loss_range, 12)
    (1.0, 5.0, 1.5, 5.0)
    """
    rows = np.asarray(features)
    if rows.ndim != 2 or 0 in rows.shape or rows.dtype.kind not in "fiub":
        what = f"has shape {rows.shape} and dtype {rows.dtype}"
        raise InputError("features", what, "Give one row of numbers per example, shape (n, d)")
    # In parts, because a float64 copy of all rows may not fit in memory.
    parts = (rows[i : i + 65536].astype(np.float64, copy=False) for i in range(0, len(rows), 65536))
    feature_norm = float(np.sqrt(np.max([np.vecdot(part, part).max() for part in parts])))
    if not np.isfinite(feature_norm):
        raise InputError("features", "holds NaN or infinite values", "Clean the rows first")
    d = rows.shape[1]
    constraint = ElasticNetBudget(d, budget, l1=l1, l2=l2)
    return Problem(
        constraint.enclosing_ball(), Logistic(d, feature_norm), constraint, name=f"budgeted logistic ρ={budget:g}"
    )


def fair_logistic(features: ArrayLike, sensitive: ArrayLike, budget: float, limit: float) -> Problem:
    """Return the log-loss of rows u_t with labels ±1, subject to ‖x‖₁ + ½ ‖x‖² ≤ budget and |cov(z, ⟨u, x⟩)| ≤ limit.

    z is the sensitive attribute of each row. Leave it and columns that determine it out of the features. The covariance
    of attribute and score is linear in x, so it gives two affine constraints (Zafar, Valera, Gomez Rodriguez and
    Gummadi, *Fairness constraints: mechanisms for fair classification*, AISTATS 2017):

        ⟨v, x⟩ − limit ≤ 0,   −⟨v, x⟩ − limit ≤ 0,      v = (1/n) Σ_i (z_i − z̄) u_i over all n rows.

    R and F are those of `budgeted_logistic`. G = max(√d + R, max ‖u_t‖, ‖v‖) and D = max(ρ, (√d − 1) R, R‖v‖ + limit).
    0 is a Slater point.

    Parameters
    ----------
    features : array_like
        The rows of the stream.
    sensitive : array_like
        z, one number for each row.
    budget, limit : float
        ρ and the largest covariance.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.named.logistic import fair_logistic
    >>> rows = np.array([[3.0, 4.0], [3.0, 0.0]])
    >>> problem = fair_logistic(rows, sensitive=[1, 0], budget=1.5, limit=0.25)
    >>> problem.constraint.values(np.array([0.0, 1.0]))  # 1 + ½ − 1½; the covariance is 1
    array([ 0.  ,  0.75, -1.25])
    """
    plain = budgeted_logistic(features, budget)
    rows = np.asarray(features)
    z = validate.vector("sensitive", sensitive, len(rows))
    if np.ptp(z) == 0:
        raise InputError("sensitive", "is the same in every row", "Give an attribute that differs, 0 and 1 for example")
    v = (z - z.mean()) @ rows / len(rows)
    bound = np.full(2, validate.positive_scalar("limit", limit))
    constraint = Stack([plain.constraint, Affine(np.stack([v, -v]), bound)])
    return Problem(plain.enclosing_set, plain.loss, constraint, name=f"fair logistic ρ={budget:g}, c={limit:g}")
