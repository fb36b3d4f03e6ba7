"""The paper's own route to the offline solution: SAGA (Defazio, Bach, Lacoste-Julien 2014) on the penalised form.

For every budget ρ that binds there is a ν > 0 with

    argmin { Σ_{s≤t} f_s(x) : l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ ρ } = argmin Σ_{s≤t} f_s(x) + ν (l1 ‖x‖₁ + ½ l2 ‖x‖²)

and the penalty's value falls as ν grows, so ν is the root of a decreasing function of log ν. scikit-learn's SAGA solves
the right side. Slow, and independent of `longterm.hindsight.logistic`, which it checks. The gap is certified anew.
"""

from __future__ import annotations

import inspect
import warnings
from importlib import import_module
from typing import Any

import numpy as np

from longterm._arrays import FloatArray
from longterm.constraints import ElasticNetBudget
from longterm.errors import InputError
from longterm.hindsight.base import Hindsight, Question, Solution
from longterm.hindsight.certificates import elastic_net_gap
from longterm.hindsight.logistic import region_of, rows_of
from longterm.hindsight.regions import ElasticNetBall
from longterm.hindsight.weighted_rows import LabelledRows
from longterm.projections import project_onto_elastic_net

LEAST_PENALTY = 1e-9
"""As a share of the smallest penalty that makes x* = 0. A budget that binds less than this does not bind."""
MOST_PASSES = 50_000


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
