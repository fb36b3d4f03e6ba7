"""The best fixed decision of budgeted logistic regression, at many rounds of many sequences.

x*_t minimises Σ_{s≤t} log(1 + exp(−y_s ⟨u_s, x⟩)) over {l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ ρ}. Rows drawn with replacement are
weights: how often each was drawn among the first t. Sequences are solved together (`weighted_rows`), each from its
own x* of the round before, by a proximal Newton method (`elastic_net_newton`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.constraints import ElasticNetBudget
from longterm.errors import InputError
from longterm.hindsight.base import Hindsight, increasing_rounds
from longterm.hindsight.elastic_net_newton import Minimum, minimise
from longterm.hindsight.regions import ElasticNetBall, Region
from longterm.hindsight.weighted_rows import DrawnRows, Rows
from longterm.losses import Logistic
from longterm.problems import Problem
from longterm.progress import Progress, reporter
from longterm.sets import Ball
from longterm.streams import ResampledRows, Seeds
from longterm.streams.base import checked_seeds

RELATIVE_GAP = 1e-6
"""What every comparator certifies: its loss is at most this share above the least."""
TOGETHER = 16
"""Sequences solved together: their weights are one array."""


def best_budgeted_logistic(
    problem: Problem,
    stream: ResampledRows,
    rounds: Sequence[int] | NDArray[np.int64],
    *,
    seeds: Seeds = 0,
    relative_gap: float = RELATIVE_GAP,
    progress: Progress = "auto",
) -> Hindsight:
    """x*_t for each t in `rounds` (increasing), with gap ≤ relative_gap · loss.

    >>> import numpy as np
    >>> from longterm.problems import budgeted_logistic
    >>> from longterm.hindsight import best_budgeted_logistic
    >>> from longterm.streams import ResampledRows
    >>> features = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> problem = budgeted_logistic(features, budget=1.5)
    >>> stream = ResampledRows(features, np.array([1.0, -1.0, 1.0]))
    >>> best = best_budgeted_logistic(problem, stream, [30], progress=None)
    >>> best.x.round(3), best.loss.round(3), bool(best.relative_gap <= 1e-6)
    (array([[1., 0.]]), array([11.677]), True)
    """
    constraint = checked_problem(problem, stream)
    return best_in_region(ElasticNetBall(constraint), problem, stream, rounds, seeds, relative_gap, progress)


def checked_problem(problem: Problem, stream: Any) -> ElasticNetBudget:
    """The budget, where problem and stream are those of budgeted logistic regression; raise where they are not."""
    constraint, B = problem.constraint, problem.enclosing_set
    if not isinstance(problem.loss, Logistic) or not isinstance(constraint, ElasticNetBudget):
        what = f"{problem.name!r} is not logistic regression under an elastic-net budget"
        raise InputError("problem", what, "Use longterm.budgeted_logistic, or best_by_cvxpy for other problems")
    reach = constraint.enclosing_ball().radius * (1 - 1e-12)
    if not isinstance(B, Ball) or np.linalg.norm(B.centre) + reach > B.radius:
        raise InputError("problem", "its B cuts the budget's set", "Use constraint.enclosing_ball() or a larger ball")
    if not isinstance(stream, ResampledRows) or len(stream.arrays) != 2:
        raise InputError("stream", "does not draw rows with labels", "Use ResampledRows(features, labels)")
    return constraint


def best_in_region(
    region: Region,
    problem: Problem,
    stream: ResampledRows,
    rounds: Sequence[int] | NDArray[np.int64],
    seeds: Seeds,
    relative_gap: float,
    progress: Progress,
) -> Hindsight:
    """The same over any region that Newton's method knows: what the comparators of logistic regression share."""
    rows = Rows.checked(*stream.arrays)
    if rows.dimension != problem.dimension:
        what = f"has {rows.dimension} features, the problem has {problem.dimension}"
        raise InputError("stream", what, "Build the problem from the features of the stream")
    wanted, played = increasing_rounds(rounds), checked_seeds(seeds)
    tolerance = validate.positive_scalar("relative_gap", relative_gap)
    every = [played] if isinstance(played, int) else list(played)
    columns: list[list[Minimum]] = []
    with reporter(progress, f"hindsight, {problem.name}") as report:
        for first in range(0, len(every), TOGETHER):
            drawn = [stream.drawn(seed, 0, int(wanted[-1])) for seed in every[first : first + TOGETHER]]
            found: list[Minimum] = []
            x = np.zeros((len(drawn), problem.dimension))
            for t in wanted:
                found.append(minimise(DrawnRows.of(rows, [d[:t] for d in drawn]), region, x, tolerance))
                x = found[-1].x
                report(len(columns) * len(wanted) + len(found), -(-len(every) // TOGETHER) * len(wanted))
            columns.append(found)

    def collect(part: str) -> FloatArray:
        joined = np.concatenate([np.stack([getattr(m, part) for m in found]) for found in columns], axis=1)
        return joined[:, 0] if isinstance(played, int) else joined

    return Hindsight(wanted, collect("x"), collect("value"), collect("gap"), played)
