"""Budgeted logistic regression on a whole data set, and the budget that gives a wanted sparsity.

The paper chooses ρ so that about 30 % of the offline solution is non-zero. The number of non-zeros is a step function
of ρ that usually increases. `choose_budget` uses this rule. Let k be the wanted share of d, rounded, from 1 to d − 1.
ρ is doubled from a small value until more than k coordinates are non-zero. Bisection of log ρ for "at least k" and
"more than k" finds an interval with k non-zeros, and its geometric mean is returned. If the number jumps over k, the
end with the nearest share is returned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm._base.progress import Progress, reporter
from longterm.errors import InputError
from longterm.hindsight.logistic_rows import DrawnRows, LabelledRows
from longterm.hindsight.proximal_newton import ElasticNetBall, Minimum, minimise
from longterm.problems.constraints import ElasticNetBudget

FIRST_BUDGET = 2.0**-10
BUDGET_RANGE = 2.0**40
"""The search covers budgets from FIRST_BUDGET / BUDGET_RANGE to FIRST_BUDGET · BUDGET_RANGE."""


@dataclass(frozen=True)
class Offline:
    """The offline solution for a budget.

    Parameters
    ----------
    x : array of shape (d,)
        The solution.
    budget, loss, gap, slack : float
        The budget, the loss of x, its certified gap, and the unused share of the budget.
    path : tuple of Offline
        For a chosen budget: all solutions of the search, by increasing budget.
    """

    budget: float
    x: FloatArray
    loss: float
    gap: float
    slack: float
    path: tuple[Offline, ...] = ()

    @property
    def count(self) -> int:
        """The number of non-zero coordinates. The solver sets the others exactly to 0."""
        return int(np.count_nonzero(self.x))

    @property
    def share(self) -> float:
        """The share of non-zero coordinates."""
        return self.count / len(self.x)


def least_log_loss(
    features: Any,
    labels: ArrayLike,
    budget: float,
    *,
    l1: float = 1.0,
    l2: float = 1.0,
    start: ArrayLike | None = None,
    relative_gap: float = 1e-6,
) -> Offline:
    """Minimise Σ_i log(1 + exp(−y_i ⟨u_i, x⟩)) over {l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ budget} to gap ≤ relative_gap · loss.

    Sparse features must have few columns, because the Hessian is dense.

    Parameters
    ----------
    features : Any
        Rows, shape (n, d), dense or sparse.
    labels : array_like
        ±1 for each row.
    budget, l1, l2 : float
        ρ, the weight of ‖x‖₁ and the weight of ½‖x‖².
    start : array_like, optional
        The first iterate, shape (d,).
    relative_gap : float
        The target of the certified gap.

    Returns
    -------
    Offline
        The solution, with its gap.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.hindsight.offline_logistic import least_log_loss
    >>> features = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> solution = least_log_loss(features, np.array([1.0, -1.0, 1.0]), budget=1.5)
    >>> solution.x, round(solution.loss, 4), solution.share
    (array([1., 0.]), 1.3197, 0.5)
    """
    return _solve(_all_rows_once(features, labels), budget, l1, l2, start, relative_gap)


def choose_budget(
    features: Any,
    labels: ArrayLike,
    share: float = 0.3,
    *,
    l1: float = 1.0,
    l2: float = 1.0,
    precision: float = 0.01,
    relative_gap: float = 1e-8,
    progress: Progress = "auto",
) -> Offline:
    """Return a budget whose offline solution has this share of non-zeros, as nearly as possible.

    Every solve starts from the solution of the nearest budget and is certified.

    Parameters
    ----------
    features : Any
        Rows, shape (n, d), dense or sparse.
    labels : array_like
        ±1 for each row.
    share : float
        The wanted share of non-zero coordinates.
    l1, l2 : float
        The weight of ‖x‖₁ and the weight of ½‖x‖².
    precision : float
        The relative precision of the ends of the interval.
    relative_gap : float
        The target of each solve's certified gap.
    progress : Progress
        A bar, a function of the number of solves, or None.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.hindsight.offline_logistic import choose_budget
    >>> rng = np.random.default_rng(0)
    >>> features = rng.standard_normal((500, 10))
    >>> labels = np.sign(features @ np.arange(10.0) + rng.standard_normal(500))
    >>> chosen = choose_budget(features, labels, share=0.3, progress=None)
    >>> round(chosen.budget, 2), chosen.share, np.flatnonzero(chosen.x)
    (0.22, 0.3, array([6, 8, 9]))
    """
    share = validate.positive_scalar("share", share)
    if share >= 1:
        what = f"{share!r} is outside (0, 1)"
        raise InputError("share", what, "Give the share of non-zero coordinates, for example 0.3")
    precision = validate.positive_scalar("precision", precision)
    functions, path = _all_rows_once(features, labels), list[Offline]()
    d = functions.rows.dimension
    if d < 2:
        raise InputError("features", "has one column", "Give at least two")
    wanted = min(max(1, round(share * d)), d - 1)
    with reporter(progress, "choosing the budget") as report:

        def solve(budget: float) -> Offline:
            start = min(path, key=lambda known: abs(np.log(known.budget / budget))).x if path else None
            path.append(_solve(functions, budget, l1, l2, start, relative_gap))
            report(len(path), None)
            return path[-1]

        def first_with(count: int) -> tuple[Offline, Offline]:
            """Return two neighbouring solutions, with fewer than `count` non-zeros and with at least as many."""
            above = min((known for known in path if known.count >= count), key=lambda known: known.budget)
            smaller = (known for known in path if known.budget < above.budget)
            below = max(smaller, key=lambda known: known.budget, default=above)
            while above.budget > below.budget * (1 + precision):
                middle = solve(float(np.sqrt(below.budget * above.budget)))
                below, above = (middle, above) if middle.count < count else (below, middle)
            return below, above

        latest = solve(FIRST_BUDGET)
        while latest.count >= max(wanted, 2) and latest.budget > FIRST_BUDGET / BUDGET_RANGE:  # large features
            latest = solve(latest.budget / 2)
        latest = max(path, key=lambda known: known.budget)
        while latest.count <= wanted:
            if latest.slack > 0.5 or latest.budget > FIRST_BUDGET * BUDGET_RANGE:  # the budget does not bind
                what = f"the solution has no more than {latest.count} of {d} non-zeros for any budget"
                raise InputError("share", what, "Ask for a smaller share")
            latest = solve(2 * latest.budget)
        short, least = first_with(wanted)
        most, _ = first_with(wanted + 1)
        ends = [short, least, most]
        if most.budget >= least.budget:
            ends = [solve(float(np.sqrt(least.budget * most.budget)))]
    chosen = min(ends, key=lambda known: abs(known.share - share))
    by_budget = tuple(sorted(path, key=lambda known: known.budget))
    return replace(chosen, path=by_budget)


def _all_rows_once(features: Any, labels: ArrayLike) -> DrawnRows:
    rows = LabelledRows.checked(features, labels)
    # In random order, because rows may be sorted and approximate Hessians use the first.
    return DrawnRows.of(rows, [np.random.default_rng(0).permutation(len(rows.labels))])


def _solve(
    functions: DrawnRows, budget: float, l1: float, l2: float, start: ArrayLike | None, relative_gap: float
) -> Offline:
    d = functions.rows.dimension
    constraint = ElasticNetBudget(d, budget, l1=l1, l2=l2)
    first = np.zeros(d) if start is None else validate.vector("start", start, d)
    minimum: Minimum = minimise(
        functions, ElasticNetBall(constraint), first[None], validate.positive_scalar("relative_gap", relative_gap)
    )
    slack = max(0.0, -float(constraint.values(minimum.x)[0, 0]) / constraint.budget)
    return Offline(constraint.budget, minimum.x[0], float(minimum.value[0]), float(minimum.gap[0]), slack)
