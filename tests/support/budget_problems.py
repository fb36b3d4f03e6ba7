"""Problems with a random elastic-net budget, and their best decisions in hindsight."""

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from longterm import Problem
from longterm.problems.constraints import ElasticNetBudget, L2Budget
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball

seeds = st.integers(0, 10**6)
horizons = st.integers(1, 200)
factors = st.floats(0.05, 20)


def best_in_budget(g, cost):
    """min ⟨cost, x⟩ with l1‖x‖₁ + ½ l2‖x‖² ≤ ρ: by duality, a concave function of one number."""

    def dual(nu):
        return -(np.maximum(np.abs(cost) - nu * g.l1, 0) ** 2).sum() / (2 * nu * g.l2) - nu * g.budget

    high = np.abs(cost).sum() + np.linalg.norm(cost) / np.sqrt(g.budget * g.l2) + 1e-12
    return -minimize_scalar(lambda nu: -dual(nu), bounds=(0, high), method="bounded", options={"xatol": 1e-12}).fun


def budget_problem(seed, d=4):
    rng = np.random.default_rng(seed)
    g = ElasticNetBudget(d, rng.uniform(0.1, 2), l1=rng.uniform(0.1, 2), l2=rng.uniform(0.1, 2))
    return Problem(g.enclosing_ball() if seed % 2 else Ball(d, 1.5 * g.enclosing_ball().radius), Linear(d, 2.0), g)


def best_of(g, cost):
    if isinstance(g, L2Budget):
        return -g.budget * np.linalg.norm(cost)
    return -g.budget * np.abs(cost).max() if g.l2 == 0 else best_in_budget(g, cost)
