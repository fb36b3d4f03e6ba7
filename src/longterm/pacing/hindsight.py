"""The best that could have been bought, had all auctions been known: a fractional knapsack, solved exactly.

    max Σ (v_t − κ c_t) x_t    with   floor ≤ Σ c_t x_t ≤ budget,   0 ≤ x_t ≤ 1.

Buy in the order of value per cost. Without constraints one stops where it falls below κ; the amount spent
there, brought between floor and budget, is the amount to spend. At most one auction is bought in part. The
value per cost at which one stops is the price of money π*, and it certifies the answer: by weak duality no x
earns more than

    Σ [v_t − π* c_t]₊ + [π* − κ]₊ · budget − [κ − π*]₊ · floor,

which is equal to what was earned, up to rounding. A pacer buys whole auctions, so its optimum is at most this.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.errors import InputError


@dataclass(frozen=True)
class BestAllocation:
    """The optimum, and its proof.

    Parameters
    ----------
    objective : float
        Σ (v_t − κ c_t) x_t.
    upper_bound : float
        What no allocation exceeds: the dual at `price`. Equal to the objective up to rounding.
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
    """The fractional optimum with all values and costs known.

    Parameters
    ----------
    values, costs : array_like
        Of the requests, both at least 0.
    budget : float
        The most that may be spent.
    floor : float
        The least that must be spent.
    cost_weight : float
        κ: what a unit of money is worth elsewhere.

    Returns
    -------
    BestAllocation
        The optimum, and its proof.

    Examples
    --------
    >>> from longterm.pacing import best_in_hindsight
    >>> best = best_in_hindsight(values=[4.0, 3.0, 1.0], costs=[2.0, 3.0, 4.0], budget=3.5)
    >>> best.objective, best.price, best.taken
    (5.5, 1.0, array([1. , 0.5, 0. ]))
    """
    v, c = validate.vector("values", values), validate.vector("costs", costs)
    if len(v) != len(c) or np.any(v < 0) or np.any(c < 0):
        raise InputError("values", "and costs do not fit, or are negative", "Give two arrays ≥ 0 of one length")
    budget, floor = validate.positive_scalar("budget", budget), validate.non_negative_scalar("floor", floor)
    kappa = validate.non_negative_scalar("cost_weight", cost_weight)
    ratio = np.divide(v, c, out=np.full(len(v), np.inf), where=c > 0)
    order = np.argsort(-ratio, kind="stable")
    total = np.cumsum(c[order])
    most = min(budget, float(total[-1]))
    if floor > most:
        raise InputError("floor", f"{floor} cannot be spent", f"At most {most:g} can be")
    worth_it = int(np.count_nonzero(ratio >= kappa))  # the first of the order; summed as `total` is, to the last bit
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
    elif spend != free:  # the floor takes everything there is
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
