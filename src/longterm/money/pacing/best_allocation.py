"""The best purchases in hindsight, with a certificate.

**Under a budget** it is a fractional knapsack, solved exactly:

    max Σ (v_t − κ c_t) x_t    with   floor ≤ Σ c_t x_t ≤ budget,   0 ≤ x_t ≤ 1.

Buy in the order of value per cost. Without constraints one stops where it falls below κ. The amount spent there,
brought between floor and budget, is the amount to spend. At most one auction is bought in part. The value per cost at
which one stops is the price of money π*, and it certifies the answer: by weak duality no x earns more than

    Σ [v_t − π* c_t]₊ + [π* − κ]₊ · budget − [κ − π*]₊ · floor,

which equals the objective up to rounding. A pacer buys whole auctions, so its optimum is at most this. With a target
for the return on spend the order is the same (`best_return`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.errors import InputError


@dataclass(frozen=True)
class BestAllocation:
    """The optimum under a budget and its certificate.

    Parameters
    ----------
    objective : float
        Σ (v_t − κ c_t) x_t.
    upper_bound : float
        The dual at `price`. No allocation has a larger objective.
    price : float
        π*: the value of one more unit of money.
    spent : float
        Σ c_t x_t.
    taken : array of shape (T,)
        x_t, in [0, 1]; at most one is a fraction.
    """

    objective: float
    upper_bound: float
    price: float
    spent: float
    taken: FloatArray

    def __repr__(self) -> str:
        found = f"objective {self.objective:.6g}, price {self.price:.4g}, spent {self.spent:.6g}"
        return f"BestAllocation({found}, {np.count_nonzero(self.taken)} of {len(self.taken)} taken)"


def best_in_hindsight(
    values: ArrayLike, costs: ArrayLike, budget: float, *, floor: float = 0.0, cost_weight: float = 0.0
) -> BestAllocation:
    """Solve the fractional knapsack with all values and costs known.

    Parameters
    ----------
    values, costs : array_like
        The values and costs of the requests, at least 0.
    budget : float
        The most that may be spent.
    floor : float
        The least that must be spent.
    cost_weight : float
        κ: the value of a unit of money elsewhere.

    Returns
    -------
    BestAllocation
        The optimum and its certificate.

    Examples
    --------
    >>> from longterm.money.pacing.best_allocation import best_in_hindsight
    >>> best = best_in_hindsight(values=[4.0, 3.0, 1.0], costs=[2.0, 3.0, 4.0], budget=3.5)
    >>> best.objective, best.price, best.taken
    (5.5, 1.0, array([1. , 0.5, 0. ]))
    """
    v, c = validate.vector("values", values), validate.vector("costs", costs)
    if len(v) != len(c) or np.any(v < 0) or np.any(c < 0):
        raise InputError(
            "values, costs",
            "have different lengths or contain a negative number",
            "Give two arrays of the same length with numbers ≥ 0",
        )
    budget, floor = validate.positive_scalar("budget", budget), validate.non_negative_scalar("floor", floor)
    kappa = validate.non_negative_scalar("cost_weight", cost_weight)
    ratio = np.divide(v, c, out=np.full(len(v), np.inf), where=c > 0)
    order = np.argsort(-ratio, kind="stable")
    total = np.cumsum(c[order])
    most = min(budget, float(total[-1]))
    if floor > most:
        raise InputError("floor", f"{floor} is more than the auctions can cost", f"Give a floor of at most {most:g}")
    worth_it = int(np.count_nonzero(ratio >= kappa))  # the first ones in the order
    free = float(total[worth_it - 1]) if worth_it else 0.0
    spend = min(max(free, floor), budget)
    whole = int(np.searchsorted(total, spend, side="right"))
    taken = np.zeros(len(v))
    taken[order[:whole]] = 1.0
    price = kappa
    if spend != free and whole < len(v):
        margin = order[whole]
        taken[margin] = (spend - (total[whole - 1] if whole else 0.0)) / c[margin]
        price = float(ratio[margin])
    elif spend != free:  # the floor takes everything
        price = float(min(ratio.min(), kappa))
    return BestAllocation(
        objective=float((v - kappa * c) @ taken),
        upper_bound=float(
            np.maximum(v - price * c, 0.0).sum() + max(price - kappa, 0.0) * budget - max(kappa - price, 0.0) * floor
        ),
        price=price,
        spent=float(c @ taken),
        taken=taken,
    )


class BestReturn(NamedTuple):
    """The optimum with a target for the return, and its certificate.

    Parameters
    ----------
    value : float
        Σ v x, in money.
    upper_bound : float
        Σ [(1+λ)v − (λ+μ)τc]₊ + μτ·budget. No choice of auctions has a larger value.
    multiplier : float
        λ, the price of the return.
    price : float
        μ, the price of money, in value/τ.
    taken : array, shape (T,)
        x, in [0, 1].
    """

    value: float
    upper_bound: float
    multiplier: float
    price: float
    taken: FloatArray


def best_return(values: FloatArray, costs: FloatArray, target: float, budget: float | None = None) -> BestReturn:
    """Maximise Σ v x with Σ v x ≥ τ Σ c x, Σ c x ≤ budget, 0 ≤ x ≤ 1, in units of money.

    Both multipliers lead to the same order: the Lagrangian takes auctions with v/(τc) > (λ+μ)/(1+λ). So auctions are
    bought by value per cost until the money is gone or the return is down to its target, the last one in part. Its
    ratio θ gives the multiplier of the binding constraint: μ = θ, or λ = θ/(1 − θ).

    Parameters
    ----------
    values, costs : array_like, shape (T,)
        The values and costs of the requests in money, at least 0.
    target : float
        τ, the average value that a unit of money must bring.
    budget : float, optional
        The most that may be spent.

    Returns
    -------
    BestReturn
        The optimum and its certificate.

    Examples
    --------
    >>> from longterm.money.pacing.best_allocation import best_return
    >>> best = best_return([4.0, 3.0, 1.0], [1.0, 3.0, 5.0], target=1.0)
    >>> round(best.value, 9), round(best.upper_bound, 9)
    (7.75, 7.75)
    """
    c = validate.vector("costs", costs)
    v = validate.vector("values", values, len(c)) / validate.positive_scalar("target", target)
    if np.any(v < 0) or np.any(c < 0):
        raise InputError("values, costs", "contain a negative number", "Give two arrays with numbers ≥ 0")
    most = np.inf if budget is None else validate.positive_scalar("budget", budget)
    order = np.argsort(-np.divide(v, c, out=np.full(len(c), np.inf), where=c > 0), kind="stable")
    spent, worth, slack = np.cumsum(c[order]), np.cumsum(v[order]), np.cumsum((v - c)[order])
    # The slack rises while v > c, then falls. Auctions exactly at the target are taken in spite of rounding.
    short = slack < -1e-12 * worth
    whole = min(int(np.searchsorted(spent, most, side="right")), int(short.argmax()) if short.any() else len(c))
    x = np.zeros(len(c))
    x[order[:whole]] = 1.0
    lam = mu = 0.0
    if whole < len(c):
        margin = order[whole]
        before = (float(spent[whole - 1]), float(slack[whole - 1])) if whole else (0.0, 0.0)
        by_money = (most - before[0]) / c[margin]
        by_return = max(before[1], 0.0) / (c[margin] - v[margin]) if short[whole] else np.inf
        x[margin] = min(by_money, by_return, 1.0)
        if by_return <= by_money:
            lam = float(v[margin] / (c[margin] - v[margin]))
        else:
            mu = float(v[margin] / c[margin])
    upper = float(np.maximum((1 + lam) * v - (lam + mu) * c, 0.0).sum()) + (0.0 if budget is None else mu * most)
    return BestReturn(float(v @ x) * target, upper * target, lam, mu, x)
