"""The best fixed decision of logistic regression under a budget and a fairness constraint.

x*_t minimises Σ_{s≤t} log(1 + exp(−y_s ⟨u_s, x⟩)) over the part of the elastic-net ball between the two planes
⟨v, x⟩ = ±c. The method is that of `budgeted_logistic`; projection and certificate are those of that part (`regions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from longterm.constraints import Affine, Constraint, ElasticNetBudget, Stack
from longterm.errors import InputError
from longterm.hindsight.base import Hindsight
from longterm.hindsight.budgeted_logistic import RELATIVE_GAP, best_in_region, checked_problem
from longterm.hindsight.regions import ElasticNetSlab
from longterm.problems import Problem
from longterm.progress import Progress
from longterm.streams import ResampledRows, Seeds


def best_fair_logistic(
    problem: Problem,
    stream: ResampledRows,
    rounds: Sequence[int] | NDArray[np.int64],
    *,
    seeds: Seeds = 0,
    relative_gap: float = RELATIVE_GAP,
    progress: Progress = "auto",
) -> Hindsight:
    """x*_t for each t in `rounds` (increasing), with gap ≤ relative_gap · loss, for `longterm.fair_logistic`.

    >>> import numpy as np
    >>> from longterm.problems import fair_logistic
    >>> from longterm.hindsight import best_fair_logistic
    >>> from longterm.streams import ResampledRows
    >>> rows, labels = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([1.0, -1.0, 1.0])
    >>> problem = fair_logistic(rows, sensitive=[1, 0, 0], budget=1.5, limit=0.05)
    >>> best = best_fair_logistic(problem, ResampledRows(rows, labels), [30], progress=None)
    >>> best.x.round(3), bool(best.relative_gap <= 1e-6)  # without the limit it is (1, 0)
    (array([[0.878, 0.214]]), True)
    """
    slab = _slab(problem.constraint)
    if slab is None:
        what = f"{problem.name!r} is not logistic regression under an elastic-net budget and |⟨v, x⟩| ≤ c"
        raise InputError("problem", what, "Use longterm.fair_logistic, or best_by_cvxpy for other problems")
    checked_problem(replace(problem, constraint=slab.budget), stream)
    return best_in_region(slab, problem, stream, rounds, seeds, relative_gap, progress)


def _slab(constraint: Constraint) -> ElasticNetSlab | None:
    """{g ≤ 0}, where it is the part of an elastic-net ball between two planes at the same distance from 0."""
    if not isinstance(constraint, Stack) or len(constraint.parts) != 2:
        return None
    budget, planes = constraint.parts
    if not isinstance(budget, ElasticNetBudget) or not isinstance(planes, Affine) or planes.count != 2:
        return None
    (normal, opposite), (limit, other) = planes.matrix, planes.offset
    if not np.array_equal(normal, -opposite) or limit != other or limit <= 0 or budget.l2 == 0:
        return None
    return ElasticNetSlab(budget, normal, float(limit))
