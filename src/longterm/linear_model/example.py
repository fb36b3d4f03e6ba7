"""A worked example: a stream of real rows, a budget that is kept, and the penalty that would have to be tuned instead.

Rows come in blocks of 100. Every contestant scores a block, is charged its log-loss, and then learns it (*progressive*
loss: no row is scored by a model that has seen it). Ours are given the budget ρ and nothing else. `SGDClassifier` is
given the same elastic net as a penalty, α(½‖x‖₁ + ¼‖x‖²), for every α of a grid, and we look afterwards which one was
best: of all, of those whose last model fits into the budget, and of those with about as many non-zeros as ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longterm._arrays import FloatArray
from longterm.data import Labelled
from longterm.linear_model.streaming import BudgetLinearLearner

BLOCK = 100
GRID: tuple[float, ...] = tuple(10.0 ** (k / 4) for k in range(-24, -3))
"""α from 1e-6 to 0.1, four for each power of ten."""


@dataclass(frozen=True)
class Course:
    """How one contestant fared, a number after each block."""

    name: str
    rows: FloatArray
    loss: FloatArray
    """Mean progressive loss up to here."""
    size: FloatArray
    """‖x‖₁ + ½‖x‖² of the model in force."""
    nonzeros: FloatArray
    alpha: float | None = None
    """The penalty, for those that have one."""


@dataclass(frozen=True)
class Study:
    """One data set's contestants."""

    name: str
    budget: float
    dimension: int
    ours: list[Course]
    grid: list[Course]

    def chosen(self) -> dict[str, Course]:
        """The best penalties in hindsight: of all, within the budget, with the number of non-zeros nearest to ours."""
        ours, grid = self.ours[0], self.grid
        within = [course for course in grid if course.size[-1] <= self.budget]
        found = {"best α of all": min(grid, key=lambda course: float(course.loss[-1]))}
        if within:
            found["best α within budget"] = min(within, key=lambda course: float(course.loss[-1]))
        found["α as sparse as ours"] = min(grid, key=lambda course: abs(course.nonzeros[-1] - ours.nonzeros[-1]))
        return found


def study(
    data: Labelled, budget: float, rows: int | None = None, *, grid: Sequence[float] = GRID, seed: int = 0
) -> Study:
    """Play the data set, in an order drawn from the seed, `rows` of it or all.

    >>> from longterm.data import load_sample
    >>> from longterm.linear_model.example import study
    >>> found = study(load_sample(), budget=7.0, rows=2000, grid=[1e-4, 1e-3])
    >>> ours = found.ours[0]
    >>> bool(ours.loss[-1] < 0.69), [course.alpha for course in found.grid]
    (True, [0.0001, 0.001])
    """
    order = np.random.default_rng(seed).permutation(len(data.labels))[:rows]
    X, y = data.features[order], data.labels[order]
    d, is_sparse = X.shape[1], not isinstance(X, np.ndarray)
    if is_sparse:  # SGDClassifier takes no other indices
        X = type(X)((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    ours = []
    for rule in ("a-ftrl", "penalised-ftrl"):
        learner = BudgetLinearLearner(d, budget, rule=rule, sparse=is_sparse)
        ours.append(_course(rule, X, y, learner.margins, learner.learn, lambda learner=learner: learner.weights))  # type: ignore[misc]
    penalised = []
    for alpha in grid:
        learn, margins, weights = _sgd(alpha, d, seed)
        penalised.append(_course("SGDClassifier", X, y, margins, learn, weights, alpha))
    return Study(data.name, budget, d, ours, penalised)


def _sgd(alpha: float, dimension: int, seed: int) -> tuple[Callable[..., Any], Callable[..., Any], Callable[[], Any]]:
    from sklearn.linear_model import SGDClassifier

    model = SGDClassifier(
        loss="log_loss", penalty="elasticnet", l1_ratio=0.5, alpha=alpha, shuffle=False, random_state=seed
    )

    def learn(X: Any, y: Any) -> None:
        model.partial_fit(X, y, classes=[-1.0, 1.0])

    def margins(X: Any) -> Any:
        return model.decision_function(X) if hasattr(model, "coef_") else np.zeros(X.shape[0])

    return learn, margins, lambda: model.coef_[0] if hasattr(model, "coef_") else np.zeros(dimension)


def _course(
    name: str,
    X: Any,
    y: FloatArray,
    margins: Callable[..., Any],
    learn: Callable[..., Any],
    weights: Callable[[], FloatArray],
    alpha: float | None = None,
) -> Course:
    rows, losses, sizes, nonzeros, total = [], [], [], [], 0.0
    for begin, end in _blocks(len(y)):
        total += float(np.logaddexp(0.0, -y[begin:end] * margins(X[begin:end])).sum())
        learn(X[begin:end], y[begin:end])
        x = weights()
        rows.append(end)
        losses.append(total / end)
        sizes.append(np.abs(x).sum() + 0.5 * (x @ x))
        nonzeros.append(np.count_nonzero(x))
    course = np.array([rows, losses, sizes, nonzeros], dtype=np.float64)
    return Course(name, course[0], course[1], course[2], course[3], alpha)


def _blocks(rows: int) -> Iterator[tuple[int, int]]:
    for begin in range(0, rows, BLOCK):
        yield begin, min(begin + BLOCK, rows)


def table(found: Study) -> str:
    """What the study found, for a terminal."""
    lines = [f"{found.name}: {int(found.ours[0].rows[-1]):,} rows, d = {found.dimension:,}, budget {found.budget:g}"]
    lines.append(f"  {'':<24}{'α':>9}{'loss':>9}{'size':>10}{'non-zeros':>11}{'blocks over budget':>20}")
    named = {course.name: course for course in found.ours} | found.chosen()
    for name, course in named.items():
        alpha = "–" if course.alpha is None else f"{course.alpha:.1e}"
        over = f"{100 * float((course.size > found.budget * (1 + 1e-9)).mean()):.1f} %"
        numbers = f"{alpha:>9}{course.loss[-1]:>9.4f}{course.size[-1]:>10.2f}{int(course.nonzeros[-1]):>11,}"
        lines.append(f"  {name:<24}{numbers}{over:>20}")
    return "\n".join(lines)
