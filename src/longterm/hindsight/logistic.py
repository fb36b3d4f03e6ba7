"""The best fixed decision of logistic regression under an elastic-net budget, at many rounds of many sequences.

x*_t minimises Σ_{s≤t} log(1 + exp(−y_s ⟨u_s, x⟩)) over {l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ ρ}, or over the part of it between two
planes ⟨v, x⟩ = ±c (`longterm.problems.fair_logistic`). Rows drawn with replacement are weights, not copies: how often
each was drawn among the first t. With weights w_ij of sequence j,

    F_j(x_j) = Σ_i w_ij log(1 + exp(−y_i ⟨u_i, x_j⟩)).

Rows are read in chunks that stay in the cache, and one product serves all sequences, so ten of them cost little more
than one; each starts from its own x* of the round before (`proximal_newton`).

**SAGA** (Defazio, Bach, Lacoste-Julien 2014) is the paper's own route. For every budget ρ that binds there is a ν > 0
with

    argmin { Σ_{s≤t} f_s(x) : l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ ρ } = argmin Σ_{s≤t} f_s(x) + ν (l1 ‖x‖₁ + ½ l2 ‖x‖²)

and the penalty's value falls as ν grows, so ν is the root of a decreasing function of log ν. scikit-learn's SAGA solves
the right side: slow, and independent of Newton's method, which it checks. The gap is certified anew.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.constraints import Affine, Constraint, ElasticNetBudget, Stack
from longterm.errors import InputError
from longterm.hindsight.base import Hindsight, Question, Solution, elastic_net_gap
from longterm.hindsight.proximal_newton import ElasticNetBall, ElasticNetSlab, Evaluation, Minimum, minimise
from longterm.losses import Logistic
from longterm.problems import Problem
from longterm.projections import project_onto_elastic_net
from longterm.sets import Ball
from longterm.streams import ResampledRows

TOGETHER = 16
"""Sequences solved together: their weights are one array."""
CHUNK = 8192
"""Rows read at a time: 54 columns of them take 3.5 MB."""
SAMPLE = 16_384
"""Rows that the first H is made of; eight times as many with every level."""
LEAST_PENALTY = 1e-9
"""As a share of the smallest penalty that makes x* = 0. A budget that binds less than this does not bind."""
MOST_PASSES = 50_000
"""Of SAGA."""


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Features (n, d), dense or in a SciPy sparse matrix, and labels ±1."""

    features: Any
    labels: FloatArray

    @classmethod
    def checked(cls, features: Any, labels: Any) -> LabelledRows:
        """LabelledRows that can be used, refused with the reason where they cannot."""
        table = features.tocsr() if hasattr(features, "tocsr") else np.asarray(features)
        if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "fiub":
            what = f"has shape {table.shape} and dtype {table.dtype}"
            raise InputError("features", what, "Give one row of numbers per example, shape (n, d)")
        if not np.isfinite(table.sum(dtype=np.float64)):  # one pass, and no copy
            raise InputError("features", "holds NaN or infinite values", "Clean the rows first")
        signs = np.asarray(labels, dtype=np.float64)
        if signs.shape != table.shape[:1] or np.any(np.abs(signs) != 1):
            raise InputError("labels", "are not one label ±1 per row", "Map 0 and 1 by 2 * labels − 1, for example")
        return cls(table, signs)

    @property
    def dimension(self) -> int:
        """How many features there are."""
        return int(self.features.shape[1])

    def chunks(self, used: NDArray[np.bool_]) -> Iterator[tuple[FloatArray, Any]]:
        """The used rows times their labels, and where they stand; a few unused ones may come along."""
        n = len(self.labels)
        (index,) = np.nonzero(used)
        places: list[Any] = (
            [slice(i, i + CHUNK) for i in range(0, n, CHUNK)]  # nearly all: reading on is faster than picking
            if 2 * len(index) > n
            else [index[i : i + CHUNK] for i in range(0, len(index), CHUNK)]
        )
        for place in places:
            part = self.features[place]
            dense = np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64)
            yield dense * self.labels[place, None], place

    def evaluate(self, weights: FloatArray, x: FloatArray) -> Evaluation:
        """F and ∇F for weights (n, k) at points (k, d)."""
        value, gradient = np.zeros(len(x)), np.zeros(x.shape)
        loss = Logistic(self.dimension, feature_norm=1.0)
        for signed, place in self.chunks(np.any(weights != 0, axis=1)):
            values, pull = loss.phi(signed @ x.T)
            value += np.sum(weights[place] * values, axis=0)
            gradient -= (weights[place] * pull).T @ signed
        return Evaluation(value, gradient)

    def curvature(self, weights: FloatArray, x: FloatArray) -> FloatArray:
        """∇²F for one weighting (n,) at one point (d,)."""
        hessian = np.zeros((self.dimension, self.dimension))
        for signed, place in self.chunks(weights != 0):
            share = 1 / (1 + np.exp(-np.abs(signed @ x)))
            hessian += (signed * (weights[place] * share * (1 - share))[:, None]).T @ signed
        return hessian


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Σ_{s≤t} f_s of several sequences, each given by the rows it drew.

    H, where it is not exact, comes from the first draws of a sequence: they are as random as any.
    """

    rows: LabelledRows
    draws: Sequence[NDArray[np.intp]]
    weights: FloatArray

    @classmethod
    def of(cls, rows: LabelledRows, draws: Sequence[NDArray[np.intp]]) -> DrawnRows:
        """Count the draws."""
        n = len(rows.labels)
        return cls(rows, draws, np.stack([np.bincount(drawn, minlength=n) for drawn in draws], axis=1).astype(float))

    def evaluate(self, which: NDArray[np.intp], x: FloatArray) -> Evaluation:
        """Values and gradients of these sequences."""
        every = len(which) == len(self.draws)
        return self.rows.evaluate(self.weights if every else self.weights[:, which], x)

    def curvature(self, which: int, x: FloatArray, level: int) -> FloatArray:
        """∇² of the first draws, scaled to all."""
        drawn = self.draws[which]
        first = drawn[: SAMPLE * 8**level]
        weights: FloatArray = self.weights[:, which]
        if len(first) < len(drawn):
            weights = np.bincount(first, minlength=len(weights)) * np.float64(len(drawn) / len(first))
        return self.rows.curvature(weights, x)


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
    columns: list[list[Solution]] = []
    for first in range(0, len(every), TOGETHER):
        drawn = [stream.drawn(seed, 0, int(wanted[-1])) for seed in every[first : first + TOGETHER]]
        minima: list[Minimum] = []
        x = np.zeros((len(drawn), question.problem.dimension))
        for t in wanted:
            minima.append(minimise(DrawnRows.of(rows, [d[:t] for d in drawn]), region, x, question.relative_gap))
            x = minima[-1].x
            done = first // TOGETHER * len(wanted) + len(minima)
            question.report(done, -(-len(every) // TOGETHER) * len(wanted))
        columns += [[Solution(m.x[k], m.value[k], m.gap[k]) for m in minima] for k in range(len(drawn))]
    return question.answer(columns, "Newton's method on weighted rows")


def _region(constraint: Constraint) -> ElasticNetBall | None:
    if isinstance(constraint, ElasticNetBudget):
        return ElasticNetBall(constraint)
    if not isinstance(constraint, Stack) or len(constraint.parts) != 2:
        return None
    budget, planes = constraint.parts
    if not isinstance(budget, ElasticNetBudget) or not isinstance(planes, Affine) or planes.count != 2:
        return None
    (normal, opposite), (limit, other) = planes.matrix, planes.limit
    if not np.array_equal(normal, -opposite) or limit != other or limit <= 0 or budget.l2 == 0:
        return None
    return ElasticNetSlab(budget, normal, float(limit))


def by_saga(question: Question) -> Hindsight:
    """Budgeted logistic regression by scikit-learn's SAGA, to a hundredth of the relative gap in its own terms."""
    region, drawn_rows = region_of(question.problem), rows_of(question)
    if type(region) is not ElasticNetBall or drawn_rows is None:
        what = f"{question.problem.name!r} is not logistic regression under an elastic-net budget, on rows drawn"
        raise InputError("method", what, "Use problems.budgeted_logistic with ResampledRows, or method='auto'")
    stream, rows = drawn_rows
    columns = []
    for seed in question.every_seed:
        drawn = stream.drawn(seed, 0, int(question.rounds[-1]))
        counts = (np.bincount(drawn[:t], minlength=len(rows.labels)).astype(np.float64) for t in question.rounds)
        columns.append([_solve(rows, weights, region.budget, question.relative_gap / 100) for weights in counts])
    return question.answer(columns, "SAGA")


def _solve(rows: LabelledRows, weights: FloatArray, g: ElasticNetBudget, tolerance: float) -> Solution:
    from scipy.optimize import brentq  # loaded when asked for

    used = weights > 0
    part = LabelledRows(rows.features[used], rows.labels[used])
    slope = part.evaluate(weights[used, None], np.zeros((1, rows.dimension))).gradient[0]
    largest = float(np.abs(slope).max()) / g.l1 if g.l1 > 0 else float(np.linalg.norm(slope)) * 1e3
    if len(np.unique(part.labels)) == 1:
        # scikit-learn asks for both classes: a row of zeros tells nothing about x, whatever its label.
        part = LabelledRows(_with_zeros(part.features), np.append(part.labels, -part.labels[0]))
        model = _Penalised(part, np.append(weights[used], 1.0), g, tolerance)
    else:
        model = _Penalised(part, weights[used], g, tolerance)

    def overspent(log_penalty: float) -> float:
        return float(g.values(model(log_penalty))[0])

    low, high = np.log(largest * LEAST_PENALTY), np.log(largest)
    root = low if overspent(low) <= 0 else brentq(overspent, low, high, xtol=1e-12, rtol=1e-13)
    x = np.asarray(project_onto_elastic_net(model(float(root)), g.budget, g.l1, g.l2))
    value, gradient = rows.evaluate(weights[:, None], x[None])
    return Solution(x, float(value[0]), float(elastic_net_gap(x, gradient[0], g.budget, g.l1, g.l2)))


class _Penalised:
    """x as a function of log ν, each solve from the solution before."""

    def __init__(self, rows: LabelledRows, weights: FloatArray, g: ElasticNetBudget, tolerance: float) -> None:
        try:
            kind: Any = import_module("sklearn.linear_model").LogisticRegression
            self._not_converged: Any = import_module("sklearn.exceptions").ConvergenceWarning
        except ImportError as error:
            raise ImportError("SAGA needs scikit-learn: pip install scikit-learn") from error
        # Newer versions tell the penalty by l1_ratio alone.
        named = inspect.signature(kind).parameters["penalty"].default != "deprecated"
        self._rows, self._weights, self._g = rows, weights, g
        self._model = kind(
            **({"penalty": "elasticnet"} if named else {}),
            l1_ratio=g.l1 / (g.l1 + g.l2),
            solver="saga",
            fit_intercept=False,
            tol=tolerance,
            max_iter=MOST_PASSES,
            random_state=0,
            warm_start=True,
        )

    def __call__(self, log_penalty: float) -> FloatArray:
        # C Σ f + (l1 ‖x‖₁ + ½ l2 ‖x‖²)/(l1 + l2) is the penalised form, times a constant, for this C.
        self._model.set_params(C=float(np.exp(-log_penalty)) / (self._g.l1 + self._g.l2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", self._not_converged)  # it shows in the certificate
            self._model.fit(self._rows.features, self._rows.labels, sample_weight=self._weights)
        return np.asarray(self._model.coef_[0], dtype=np.float64)


def _with_zeros(features: Any) -> Any:
    dense = features.toarray() if hasattr(features, "toarray") else np.asarray(features, dtype=np.float64)
    return np.concatenate([dense, np.zeros((1, dense.shape[1]))])
