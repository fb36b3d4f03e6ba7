r"""The best choices in hindsight on a table of outcomes, with a certificate.

A table has rewards r[t, a] and costs c[t, a, i]. Three benchmarks, each a linear program, each at most the one before:

    rows      max Σ_t Σ_a x[t,a] r[t,a]     one distribution over actions for each row; knows every outcome
    classes   max Σ_z n_z Σ_a p[z,a] r̄[z,a]  one distribution for each class of contexts, with the means of the class
    mixture   one distribution for all: one class

subject to σ_i(Σ x c_i − B_i) ≤ 0. For *every* μ ≥ 0

    D(μ) = Σ_i σ_i μ_i B_i + Σ_t max_a (r[t,a] − Σ_i σ_i μ_i c[t,a,i])   ≥   the optimum,

so value, D(μ) and their gap prove the result without trust in the solver. The solution is brought within the budgets
first, and D is summed exactly.

**Noisy rows.** With 0/1 rewards the row benchmark knows the noise: it picks an action that happened to be right, and
the expected maximum of noisy outcomes exceeds the maximum of their means. No policy that sees requests only can come
near it. Use classes, or rewards smoothed by a model fitted elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, kron

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.money.budgets import Budget

Benchmark = Literal["rows", "classes", "mixture"]


@dataclass(frozen=True, eq=False)
class BestChoices:
    """The optimum of a benchmark and its certificate.

    Parameters
    ----------
    benchmark : {"rows", "classes", "mixture"}
        The benchmark.
    value : float
        The total reward of shares that keep every budget.
    upper_bound : float
        D at `prices`. No shares have a larger value.
    prices : array, shape (m,)
        μ, the reward of one more unit of each budget.
    shares : array, shape (rows or classes, K)
        The share of each row or class that each action answers.
    spent : array, shape (m,)
        The cost of the shares, as the budgets count.
    noisy : bool
        True if every reward is 0 or 1 and each row was known. Then the value is mostly noise.
    """

    benchmark: Benchmark
    value: float
    upper_bound: float
    prices: FloatArray
    shares: FloatArray
    spent: FloatArray
    noisy: bool

    @property
    def gap(self) -> float:
        """An upper bound on the distance of the value from the optimum."""
        return max(self.upper_bound - self.value, 0.0)

    def regret(self, reward: float) -> float:
        """Return the value of the benchmark less a total reward."""
        return self.value - reward


def best_choices(
    rewards: ArrayLike,
    costs: ArrayLike,
    budgets: Budget | Sequence[Budget],
    benchmark: Benchmark = "rows",
    *,
    classes: ArrayLike | None = None,
) -> BestChoices:
    """Solve a benchmark on a table of outcomes.

    Parameters
    ----------
    rewards : array, shape (T, K)
        Of every action in every row.
    costs : array, shape (T, K) or (T, K, m)
        In the units of the budgets. Budgets that count above the cheapest action do so here too.
    budgets : Budget or sequence of Budget
        Caps and floors.
    benchmark : {"rows", "classes", "mixture"}
        "rows": one distribution for each row; "classes": for each class; "mixture": for all rows.
    classes : array of int, shape (T,), optional
        The class of each row, for "classes".

    Returns
    -------
    BestChoices
        The optimum and its certificate.

    Examples
    --------
    >>> from longterm.money.budgets import Budget
    >>> from longterm.money.choosing.best_choices import best_choices
    >>> rewards, costs = [[0.0, 1.0], [0.0, 0.5], [0.0, 0.2]], [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]
    >>> best = best_choices(rewards, costs, Budget(1.5, largest=1.0))
    >>> best.value, best.prices, best.gap
    (1.25, array([0.5]), 0.0)
    >>> round(best_choices(rewards, costs, Budget(1.5, largest=1.0), "mixture").value, 12)
    0.85
    """
    r, c, given = _validated(rewards, costs, budgets)
    sign = np.array([1.0 if b.kind == "at most" else -1.0 for b in given])
    limit = np.array([b.limit for b in given])
    if benchmark != "rows":
        labels = np.zeros(len(r), dtype=np.int64) if benchmark == "mixture" else _labels(classes, len(r))
        r, c = _class_sums(r, c, labels)
    if c.shape[2] == 1 and sign[0] > 0:
        shares, prices = _solve_one_cap(r, c[:, :, 0], float(limit[0]))
    else:
        shares, prices = _solve_program(r, c, sign, limit)
    shares = _feasible(shares, c, sign, limit)
    noisy = benchmark == "rows" and bool(np.isin(r, (0.0, 1.0)).all())
    return BestChoices(
        benchmark,
        math.fsum((shares * r).ravel().tolist()),
        dual_bound(r, c, sign, limit, prices),
        prices,
        shares,
        np.einsum("ta,tai->i", shares, c),
        noisy,
    )


def dual_bound(r: FloatArray, c: FloatArray, sign: FloatArray, limit: FloatArray, prices: FloatArray) -> float:
    """Return D(μ), summed exactly: an upper bound for every μ ≥ 0."""
    signed = sign * prices
    rows = (r - c @ signed).max(axis=1)
    return math.fsum([*(signed * limit).tolist(), *rows.tolist()])


def _validated(
    rewards: ArrayLike, costs: ArrayLike, budgets: Budget | Sequence[Budget]
) -> tuple[FloatArray, FloatArray, tuple[Budget, ...]]:
    r = validate.matrix("rewards", rewards)
    c = np.asarray(validate.number("costs", costs), dtype=np.float64)
    given = (budgets,) if isinstance(budgets, Budget) else tuple(budgets)
    if c.ndim == 2:
        c = c[:, :, None]
    if c.shape != (*r.shape, len(given)):
        raise InputError("costs", f"have shape {c.shape}", f"Give rows × actions × budgets: {(*r.shape, len(given))}")
    cheapest = np.array([b.above_cheapest for b in given])
    return r, np.where(cheapest, c - c.min(axis=1, keepdims=True), c), given


def _labels(classes: ArrayLike | None, rows: int) -> NDArray[np.int64]:
    shape = () if classes is None else np.asarray(classes).shape
    if shape != (rows,):
        raise InputError("classes", f"have shape {shape}", f"Give the class of each of the {rows} rows")
    return np.asarray(np.unique(np.asarray(classes), return_inverse=True)[1], dtype=np.int64).reshape(-1)


def _class_sums(r: FloatArray, c: FloatArray, labels: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """Return the sums of rewards and costs over the rows of each class."""
    count = int(labels.max()) + 1
    picks = csr_array((np.ones(len(r)), (labels, np.arange(len(r)))), shape=(count, len(r)))
    sums = np.asarray(picks @ r)
    costs = np.asarray(picks @ c.reshape(len(r), -1)).reshape(count, r.shape[1], -1)
    return sums, costs


def _solve_one_cap(r: FloatArray, c: FloatArray, limit: float) -> tuple[FloatArray, FloatArray]:
    """Solve for one cap: climb the concave hulls of all rows, steepest step first, until the money is gone."""
    rows, actions = r.shape
    at = start = np.lexsort((-r, c), axis=1)[:, 0]  # the cheapest action; the best of equally cheap ones
    every = np.arange(rows)
    left = limit - math.fsum(c[every, at].tolist())
    if left < -1e-9 * limit:
        raise InputError(
            "budgets",
            "are lower than what the cheapest actions cost, so no choice can meet them",
            "Raise the limits, or add a free action",
        )
    steps: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], FloatArray, FloatArray]] = []
    active = every
    for _ in range(actions - 1):  # the next vertex of each hull is the action of steepest slope
        gain, price = r[active] - r[active, at[active]][:, None], c[active] - c[active, at[active]][:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where((gain > 0) & (price > 0), gain / price, -np.inf)
        # The farthest of equal slopes, so that every step reaches a vertex.
        best = np.where(slope >= slope.max(axis=1, keepdims=True) * (1 - 1e-15), price, -np.inf).argmax(axis=1)
        steep = slope[np.arange(len(active)), best]
        going = np.isfinite(steep) & (steep > 0)
        active, best, steep = active[going], best[going], steep[going]
        if not len(active):
            break
        steps.append((active, at[active].copy(), best, steep, c[active, best] - c[active, at[active]]))
        at = at.copy()
        at[active] = best
    shares = np.zeros((rows, actions))
    if not steps:
        shares[every, start] = 1.0
        return shares, np.zeros(1)
    row, origin, goal, slope, price = (np.concatenate([step[k] for step in steps]) for k in range(5))
    order = np.argsort(-slope, kind="stable")
    total = np.cumsum(price[order])
    whole = int(np.searchsorted(total, left, side="right"))
    now = start.copy()
    for k in order[:whole].tolist():
        now[row[k]] = goal[k]
    shares[every, now] = 1.0
    if whole == len(order):
        return shares, np.zeros(1)
    last = order[whole]
    part = max(left - (float(total[whole - 1]) if whole else 0.0), 0.0) / float(price[last])
    shares[row[last], origin[last]] = 1.0 - part
    shares[row[last], goal[last]] = part
    return shares, np.array([float(slope[last])])


def _solve_program(r: FloatArray, c: FloatArray, sign: FloatArray, limit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solve for any caps and floors with HiGHS."""
    rows, actions = r.shape
    scale = np.maximum(np.abs(c).max(axis=(0, 1)), 1e-300)
    constraint = (sign / scale)[:, None] * c.reshape(rows * actions, -1).T
    # The type stubs of linprog accept dense arrays only.
    caps: Any = csr_array(constraint)
    sum_to_one: Any = kron(eye_array(rows), np.ones((1, actions)), format="csr")
    found = linprog(
        -r.ravel(),
        A_ub=caps,
        b_ub=sign * limit / scale,
        A_eq=sum_to_one,
        b_eq=np.ones(rows),
        bounds=(0, 1),
        method="highs",
    )
    if not found.success or found.x is None:
        raise InputError("budgets", f"cannot be met by any choice of actions ({found.message})", "Relax the limits")
    return found.x.reshape(rows, actions), np.maximum(-found.ineqlin.marginals, 0.0) / scale


def _feasible(shares: FloatArray, c: FloatArray, sign: FloatArray, limit: FloatArray) -> FloatArray:
    """Return distributions that keep every budget, moved from the solver's by no more than its rounding."""
    shares = np.maximum(shares, 0.0)
    shares = shares / shares.sum(axis=1, keepdims=True)
    over = sign * (np.einsum("ta,tai->i", shares, c) - limit)
    if np.all(over <= 0):
        return shares
    # Mix with the choice that is safest for the budget with the largest excess; a small part of it is enough.
    worst = int(np.argmax(over / np.maximum(np.abs(limit), 1e-300)))
    safe = np.zeros_like(shares)
    safe[np.arange(len(shares)), (sign[worst] * c[:, :, worst]).argmin(axis=1)] = 1.0
    slack = float(sign[worst] * (limit[worst] - np.einsum("ta,ta->", safe, c[:, :, worst])))
    if slack <= 0:
        return shares
    part = min(2.0 * float(over[worst]) / (slack + float(over[worst])) + 1e-15, 1.0)
    return np.asarray((1 - part) * shares + part * safe)
