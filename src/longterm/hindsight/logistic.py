"""The best fixed decision of logistic regression under an elastic-net budget, at many rounds of many sequences.

x*_t minimises Σ_{s≤t} log(1 + exp(−y_s ⟨u_s, x⟩)) over {l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ ρ}, or over the part of it between two
planes ⟨v, x⟩ = ±c (`longterm.problems.fair_logistic`). Rows drawn with replacement are weights: how often each was
drawn among the first t. Sequences are solved together (`weighted_rows`), each from its own x* of the round before, by a
proximal Newton method (`proximal_newton`); projection and certificate are those of the set (`regions`).
"""

from __future__ import annotations

import numpy as np

from longterm._arrays import FloatArray
from longterm.constraints import Affine, Constraint, ElasticNetBudget, Stack
from longterm.errors import InputError
from longterm.hindsight.base import Hindsight, Question
from longterm.hindsight.proximal_newton import Minimum, minimise
from longterm.hindsight.regions import ElasticNetBall, ElasticNetSlab
from longterm.hindsight.weighted_rows import DrawnRows, LabelledRows
from longterm.losses import Logistic
from longterm.problems import Problem
from longterm.sets import Ball
from longterm.streams import ResampledRows

TOGETHER = 16
"""Sequences solved together: their weights are one array."""


def region_of(problem: Problem) -> ElasticNetBall | None:
    """{g ≤ 0} of logistic regression, where it is an elastic-net ball inside B, or what two planes leave of one."""
    region = _region(problem.constraint)
    if not isinstance(problem.loss, Logistic) or region is None:
        return None
    B, reach = problem.enclosing_set, region.budget.enclosing_ball().radius * (1 - 1e-12)
    return region if isinstance(B, Ball) and np.linalg.norm(B.centre) + reach <= B.radius else None


def rows_of(question: Question) -> tuple[ResampledRows, LabelledRows] | None:
    """The stream and its rows, where it draws rows with labels."""
    stream = question.stream
    if not isinstance(stream, ResampledRows) or len(stream.arrays) != 2:
        return None
    rows = LabelledRows.checked(*stream.arrays)
    if rows.dimension != question.problem.dimension:
        what = f"has {rows.dimension} features, the problem has {question.problem.dimension}"
        raise InputError("stream", what, "Build the problem from the features of the stream")
    return stream, rows


def by_newton(question: Question) -> Hindsight | None:
    """Budgeted and fair logistic regression on rows drawn with replacement; None for other problems."""
    region = region_of(question.problem)
    drawn_rows = None if region is None else rows_of(question)
    if region is None or drawn_rows is None:
        return None
    stream, rows = drawn_rows
    wanted, every = question.rounds, question.every_seed
    columns: list[list[Minimum]] = []
    for first in range(0, len(every), TOGETHER):
        drawn = [stream.drawn(seed, 0, int(wanted[-1])) for seed in every[first : first + TOGETHER]]
        minima: list[Minimum] = []
        x = np.zeros((len(drawn), question.problem.dimension))
        for t in wanted:
            minima.append(minimise(DrawnRows.of(rows, [d[:t] for d in drawn]), region, x, question.relative_gap))
            x = minima[-1].x
            question.report(len(columns) * len(wanted) + len(minima), -(-len(every) // TOGETHER) * len(wanted))
        columns.append(minima)

    def collect(part: str) -> FloatArray:
        joined = np.concatenate([np.stack([getattr(m, part) for m in minima]) for minima in columns], axis=1)
        return joined[:, 0] if isinstance(question.seeds, int) else joined

    solver = "Newton's method on weighted rows"
    return Hindsight(wanted, collect("x"), collect("value"), collect("gap"), question.seeds, solver)


def _region(constraint: Constraint) -> ElasticNetBall | None:
    if isinstance(constraint, ElasticNetBudget):
        return ElasticNetBall(constraint)
    if not isinstance(constraint, Stack) or len(constraint.parts) != 2:
        return None
    budget, planes = constraint.parts
    if not isinstance(budget, ElasticNetBudget) or not isinstance(planes, Affine) or planes.count != 2:
        return None
    (normal, opposite), (limit, other) = planes.matrix, planes.offset
    if not np.array_equal(normal, -opposite) or limit != other or limit <= 0 or budget.l2 == 0:
        return None
    return ElasticNetSlab(budget, normal, float(limit))
