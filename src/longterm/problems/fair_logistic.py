"""Logistic regression under a budget, whose score must not go with a sensitive attribute."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm.constraints import Affine, Stack
from longterm.errors import InputError
from longterm.problems.budgeted_logistic import budgeted_logistic
from longterm.problems.problem import Problem


def fair_logistic(features: ArrayLike, sensitive: ArrayLike, budget: float, limit: float) -> Problem:
    """Log-loss of rows u_t with labels ±1, subject to ‖x‖₁ + ½ ‖x‖² ≤ budget and |cov(z, ⟨u, x⟩)| ≤ limit.

    z is the sensitive attribute of each row (for Adult and a9a: 1 for Female, column 72 of a9a counted from 1, which
    with its twin, column 73, is best left out of the features). The covariance of attribute and score is linear
    in x, so its two signs are two affine constraints (Zafar, Valera, Gomez Rodriguez and Gummadi, *Fairness
    constraints: mechanisms for fair classification*, AISTATS 2017):

        ⟨v, x⟩ − limit ≤ 0,   −⟨v, x⟩ − limit ≤ 0,      v = (1/n) Σ_i (z_i − z̄) u_i over all n rows.

    R and F are those of `longterm.budgeted_logistic`; G = max(√d + R, max ‖u_t‖, ‖v‖), and D is the largest of the
    constraints' own: ρ, (√d − 1) R and R‖v‖ + limit. 0 is a Slater point. `longterm.hindsight.best_fair_logistic`
    finds the best x in hindsight.

    >>> import numpy as np
    >>> from longterm.problems import fair_logistic
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
