"""Budgets on norms of x: elastic net (as in the paper), ℓ1 and ℓ2.

At kinks, the derivative of |x_k| at 0 and the gradient of ‖x‖₂ at 0 are taken as 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, dot, least_divisor, namespace, norm, signs
from longterm.errors import InputError
from longterm.problems.constraints.base import Constraint
from longterm.problems.constraints.prox import ElasticNetProx, L2Prox
from longterm.problems.projections.base import Projection, holds_ball_about_zero
from longterm.problems.projections.elastic_net import project_onto_elastic_net
from longterm.problems.sets import Ball, Box, Set


@dataclass(frozen=True, eq=False)
class ElasticNetBudget(Constraint):
    """Keep a model small and sparse: a budget on a weighted sum of two norms.

    The constraint is g(x) = l1 ‖x‖₁ + ½ l2 ‖x‖₂² − budget.

    Parameters
    ----------
    dimension : int
        The number of coordinates of a decision (d).
    budget, l1, l2 : float
        The budget, and the weights of the two norms, not both 0.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.constraints import ElasticNetBudget
    >>> g = ElasticNetBudget(4, budget=1.5)
    >>> g.values(np.array([1.0, -1.0, 0.0, 0.0]))
    array([1.5])
    >>> B = g.enclosing_ball()
    >>> B.radius, g.gradient_bound(B), g.value_bound(B)
    (1.0, 3.0, 1.5)
    """

    dimension: int
    budget: float
    l1: float = 1.0
    l2: float = 1.0

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.dimension, "dimension")
        validate.validate_fields(self, validate.positive_scalar, "budget")
        validate.validate_fields(self, validate.non_negative_scalar, "l1", "l2")
        validate.set_frozen(self, count=1)
        if self.l1 == self.l2 == 0:
            raise InputError("l1", "is 0, and l2 too, so the budget limits nothing", "Give l1 or l2 a positive weight")

    def values(self, x: Array, *parameters: Array) -> Array:
        absolute = namespace(x).sum(namespace(x).abs(x), axis=-1)
        return as_column(self.l1 * absolute + 0.5 * self.l2 * dot(x, x) - self.budget)

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        return weights * (self.l1 * signs(x) + self.l2 * x)

    def gradient_bound(self, over: Set) -> float:
        # ‖l1 s + l2 x‖² with s = sign(x): l1² d + 2 l1 l2 ‖x‖₁ + l2² ‖x‖₂², attained on a ball about 0.
        square = self.l1**2 * self.dimension + 2 * self.l1 * self.l2 * over.largest_norm(1)
        return float(np.sqrt(square + (self.l2 * over.largest_norm(2)) ** 2))

    def value_bound(self, over: Set) -> float:
        highest = self.l1 * over.largest_norm(1) + 0.5 * self.l2 * over.largest_norm(2) ** 2 - self.budget
        return float(max(self.budget, highest))

    def projection(self, over: Set) -> Projection | None:
        # Projecting onto {g ≤ 0} and then onto B is exact only if B contains {g ≤ 0}.
        if not holds_ball_about_zero(over, self.enclosing_ball().radius):
            return None
        return partial(project_onto_elastic_net, budget=self.budget, l1=self.l1, l2=self.l2)

    def least_values(self, over: Set) -> FloatArray:
        """Return the exact minimum on a box, a dual bound on a ball, and the base class's bound on other sets."""
        if isinstance(over, Box):
            return np.asarray(self.values(over.project(np.zeros(self.dimension))))
        if isinstance(over, Ball):
            return np.array([self._least_on_ball(over) - self.budget])
        return super().least_values(over)

    def _least_on_ball(self, over: Ball) -> float:
        """Return max_ν min_x l1 ‖x‖₁ + ½ l2 ‖x‖² + ½ ν (‖x − c‖² − R²), a lower bound by duality."""
        c, R = over.centre, over.radius
        if np.linalg.norm(c) <= R:
            return 0.0
        best, low, high = 0.0, -40.0, 40.0  # of log ν
        for _ in range(80):
            nu = float(np.exp((low + high) / 2))
            x = np.sign(c) * np.maximum(nu * np.abs(c) - self.l1, 0.0) / (self.l2 + nu)
            excess = float(np.sum((x - c) ** 2)) - R**2
            best = max(best, float(self.l1 * np.abs(x).sum() + 0.5 * self.l2 * x @ x + 0.5 * nu * excess))
            low, high = (low, (low + high) / 2) if excess < 0 else ((low + high) / 2, high)
        return best

    def enclosing_ball(self) -> Ball:
        """Return the smallest ball about 0 that contains {g ≤ 0}.

        Its radius solves l1 R + ½ l2 R² = budget, because ‖x‖₁ ≥ ‖x‖₂. With l1 = l2 = 1 it is √(1 + 2ρ) − 1. The
        formula used here has no cancellation as l2 → 0.
        """
        return Ball(self.dimension, 2 * self.budget / (self.l1 + np.sqrt(self.l1**2 + 2 * self.l2 * self.budget)))

    def prox(self, over: Set) -> ElasticNetProx | None:
        return ElasticNetProx(self, over) if isinstance(over, Box) or _is_ball_about_zero(over) else None


@dataclass(frozen=True, eq=False)
class L1Budget(ElasticNetBudget):
    """Keep a model sparse: a budget on the sum of absolute values.

    The constraint is g(x) = ‖x‖₁ − budget.

    Parameters
    ----------
    dimension : int
        The number of coordinates of a decision (d).
    budget : float
        The largest allowed norm.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.constraints import L1Budget
    >>> g = L1Budget(2, budget=1.0)
    >>> g.values(np.array([3.0, -4.0])), g.pullback(np.array([3.0, -4.0]), np.array([1.0]))
    (array([6.]), array([ 1., -1.]))
    """

    l1: float = field(default=1.0, init=False)
    l2: float = field(default=0.0, init=False)


@dataclass(frozen=True, eq=False)
class L2Budget(Constraint):
    """Keep a model small: a budget on the Euclidean norm.

    The constraint is g(x) = ‖x‖₂ − budget.

    Parameters
    ----------
    dimension : int
        The number of coordinates of a decision (d).
    budget : float
        The largest allowed norm.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.constraints import L2Budget
    >>> g = L2Budget(2, budget=1.0)
    >>> g.values(np.array([3.0, 4.0])), g.pullback(np.array([3.0, 4.0]), np.array([1.0]))
    (array([4.]), array([0.6, 0.8]))
    """

    dimension: int
    budget: float

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.dimension, "dimension")
        validate.validate_fields(self, validate.positive_scalar, "budget")
        validate.set_frozen(self, count=1)

    def values(self, x: Array, *parameters: Array) -> Array:
        return as_column(norm(x) - self.budget)

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        length = as_column(norm(x))  # below the square root of the smallest number it has no correct digits
        return weights * x / namespace(x).where(length > least_divisor(x), length, 1.0)

    def gradient_bound(self, over: Set) -> float:
        return 1.0

    def value_bound(self, over: Set) -> float:
        return float(max(self.budget, over.largest_norm(2) - self.budget))

    def least_values(self, over: Set) -> FloatArray:
        return np.asarray(self.values(over.project(np.zeros(self.dimension))))

    def projection(self, over: Set) -> Projection | None:
        return Ball(self.dimension, self.budget).project if holds_ball_about_zero(over, self.budget) else None

    def prox(self, over: Set) -> L2Prox | None:
        return L2Prox(self, over) if _is_ball_about_zero(over) else None


def _is_ball_about_zero(over: Set) -> bool:
    return isinstance(over, Ball) and not np.any(over.centre)
