"""Linear models under a budget beside SGDClassifier with penalties, on streams of real rows.

    python examples/linear_model.py --help

covtype and sector are streamed in blocks of 100 rows. Every model scores a block before it learns it (*progressive*
loss). A-FTRL and penalised FTRL get the budget ρ and nothing else. `SGDClassifier` gets the same elastic net as a
penalty, α(½‖x‖₁ + ¼‖x‖²), for every α of a grid. The best α is chosen in hindsight: of all, of those whose last model
is within the budget, and of those with about as many non-zeros as ours. It prints a table and draws a figure.

The data are read from the folder in the environment variable LONGTERM_DATA, or downloaded. Where neither works, the
6,000 rows of covtype that come with the package are used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
from sklearn.linear_model import SGDClassifier

from longterm.data import load, load_sample
from longterm.data.labelled import Labelled
from longterm.errors import DataError
from longterm.lab.report.style import publication_style, set_plain_ticks
from longterm.linear_model import BudgetLinearLearner

BLOCK = 100
GRID: tuple[float, ...] = tuple(10.0 ** (k / 4) for k in range(-24, -3))
"""Values of α from 1e-6 to 0.1, four for each power of ten."""
BUDGETS = {"covtype": 7.0, "sector": 1000.0, "covtype sample": 7.0}
OURS = {"a-ftrl": ("A-FTRL, budget given", "C0", "-"), "penalised-ftrl": ("penalised FTRL, budget given", "C2", "--")}
THEIRS = {
    "best α of all": ("SGD, best α of all", "C1", "-"),
    "best α within budget": ("SGD, best α that fits the budget", "C4", "-"),
    "α as sparse as ours": ("SGD, α as sparse as ours", "C3", ":"),
}
FLOOR = 1e-4
"""The lower end of the scale of violations, in budgets."""


# --- training -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """The results of one model after each block."""

    name: str
    rows: Any
    loss: Any
    """The mean progressive loss so far."""
    size: Any
    """‖x‖₁ + ½‖x‖² of the current model."""
    nonzeros: Any
    alpha: float | None = None
    """The penalty of SGDClassifier."""


@dataclass(frozen=True)
class Comparison:
    """The curves of all models on one data set."""

    name: str
    budget: float
    dimension: int
    ours: list[Curve]
    grid: list[Curve]

    def best_penalties(self) -> dict[str, Curve]:
        """Return the best α in hindsight: of all, within the budget, with about as many non-zeros as ours."""
        within = [curve for curve in self.grid if curve.size[-1] <= self.budget]
        best = {"best α of all": min(self.grid, key=lambda curve: float(curve.loss[-1]))}
        if within:
            best["best α within budget"] = min(within, key=lambda curve: float(curve.loss[-1]))
        ours = self.ours[0].nonzeros[-1]
        best["α as sparse as ours"] = min(self.grid, key=lambda curve: abs(curve.nonzeros[-1] - ours))
        return best


def compare(
    data: Labelled, budget: float, rows: int | None = None, *, grid: Sequence[float] = GRID, seed: int = 0
) -> Comparison:
    """Train all models on the data set in a random order, on `rows` rows or all."""
    order = np.random.default_rng(seed).permutation(len(data.labels))[:rows]
    X, y = data.features[order], data.labels[order]
    d, is_sparse = X.shape[1], not isinstance(X, np.ndarray)
    if is_sparse:  # SGDClassifier takes no other indices
        X = type(X)((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    ours, penalised = [], []
    for rule in OURS:
        learner = BudgetLinearLearner(d, budget, rule=rule, sparse=is_sparse, scale_features=False)
        ours.append(_curve(rule, X, y, learner.margins, learner.learn, partial(getattr, learner, "weights")))
    for alpha in grid:
        learn, margins, weights = _sgd(alpha, d, seed)
        penalised.append(_curve("SGDClassifier", X, y, margins, learn, weights, alpha))
    return Comparison(data.name, budget, d, ours, penalised)


def _sgd(alpha: float, dimension: int, seed: int) -> tuple[Callable[..., Any], Callable[..., Any], Callable[[], Any]]:
    """Return functions that learn, score and return weights, also before the first block."""
    penalty = {"penalty": "elasticnet", "l1_ratio": 0.5, "alpha": alpha}
    model = SGDClassifier(loss="log_loss", shuffle=False, random_state=seed, **penalty)

    def learn(X: Any, y: Any) -> None:
        model.partial_fit(X, y, classes=[-1.0, 1.0])

    def margins(X: Any) -> Any:
        return model.decision_function(X) if hasattr(model, "coef_") else np.zeros(X.shape[0])

    return learn, margins, lambda: model.coef_[0] if hasattr(model, "coef_") else np.zeros(dimension)


def _curve(
    name: str,
    X: Any,
    y: Any,
    margins: Callable[..., Any],
    learn: Callable[..., Any],
    weights: Callable[[], Any],
    alpha: float | None = None,
) -> Curve:
    lines, total = [], 0.0
    for begin in range(0, len(y), BLOCK):
        end = min(begin + BLOCK, len(y))
        total += float(np.logaddexp(0.0, -y[begin:end] * margins(X[begin:end])).sum())
        learn(X[begin:end], y[begin:end])
        x = weights()
        lines.append((end, total / end, np.abs(x).sum() + 0.5 * (x @ x), np.count_nonzero(x)))
    rows, loss, used, nonzeros = np.array(lines, dtype=np.float64).T
    return Curve(name, rows, loss, used, nonzeros, alpha)


# --- table and figure ---------------------------------------------------------------------------------------------


def table(comparison: Comparison) -> str:
    """Return the comparison as text."""
    rows, budget = int(comparison.ours[0].rows[-1]), comparison.budget
    lines = [f"{comparison.name}: {rows:,} rows, d = {comparison.dimension:,}, budget {budget:g}"]
    lines.append(f"  {'':<24}{'α':>9}{'loss':>9}{'size':>10}{'non-zeros':>11}{'blocks over budget':>20}")
    for name, curve in ({curve.name: curve for curve in comparison.ours} | comparison.best_penalties()).items():
        alpha = "–" if curve.alpha is None else f"{curve.alpha:.1e}"
        over = f"{100 * float((curve.size > budget * (1 + 1e-9)).mean()):.1f} %"
        numbers = f"{alpha:>9}{curve.loss[-1]:>9.4f}{curve.size[-1]:>10.2f}{int(curve.nonzeros[-1]):>11,}"
        lines.append(f"  {name:<24}{numbers}{over:>20}")
    return "\n".join(lines)


def draw(comparisons: Sequence[Comparison], path: Path) -> None:
    """Draw a row of panels for each data set: loss, size, violation, every penalty of the grid."""
    shape = {"figsize": (13.5, 3.2 * len(comparisons)), "squeeze": False, "constrained_layout": True}
    with publication_style() as plt:
        figure, axes = plt.subplots(len(comparisons), 4, **shape)
        handles: dict[str, Any] = {}
        for row, comparison in zip(axes, comparisons, strict=True):
            _draw_row(row, comparison)
            handles |= dict(zip(*reversed(row[0].get_legend_handles_labels()), strict=True))
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, frameon=False)
        figure.savefig(path)


def _draw_row(axes: Any, comparison: Comparison) -> None:
    loss, size, violation, grid = axes
    budget = comparison.budget
    lines = [(curve, *OURS[curve.name]) for curve in comparison.ours]
    lines += [(curve, *THEIRS[name]) for name, curve in comparison.best_penalties().items()]
    for curve, label, colour, style in lines:
        shown = curve.rows >= 0.02 * curve.rows[-1]  # the first blocks would fill the scale
        loss.plot(curve.rows[shown], curve.loss[shown], style, color=colour, label=label)
        size.plot(curve.rows, curve.size, style, color=colour)
        over = np.cumsum(np.maximum(curve.size - budget, 0)) / np.arange(1, len(curve.size) + 1)
        violation.plot(curve.rows, np.maximum(over / budget, FLOOR), style, color=colour)
    loss.set(title=f"{comparison.name}: progressive loss", xlabel="rows", ylabel="mean log-loss so far")
    best = min(float(curve.loss[-1]) for curve, *_ in lines)
    loss.set_ylim(best - 0.02, 1.1 * np.log(2))
    violation.set(title="violation", xlabel="rows", ylabel="mean of [g]₊ so far, in budgets", yscale="log")
    violation.set_ylim(FLOOR, None)
    violation.annotate("0 lies below this scale", (0.98, 0.02), xycoords="axes fraction", ha="right", size=7)
    size.axhline(budget, color="0.4", linewidth=0.8)
    size.set(title="size of the model", xlabel="rows", ylabel="‖x‖₁ + ½‖x‖²", yscale="log")
    top = max(float(np.median(curve.size)) for curve, *_ in lines)
    size.set_ylim(budget / 5, 3 * max(top, budget))
    set_plain_ticks(size.yaxis)
    size.annotate("budget", (0.99, budget), xycoords=("axes fraction", "data"), ha="right", va="bottom", size=8)
    _draw_grid(grid, comparison)


def _draw_grid(axis: Any, comparison: Comparison) -> None:
    def ends(curves: Sequence[Curve]) -> tuple[list[float], list[float]]:
        return [max(float(curve.size[-1]), 1e-3) for curve in curves], [float(curve.loss[-1]) for curve in curves]

    axis.plot(*ends(comparison.grid), "o-", color="C1", markersize=3, linewidth=0.8)
    for curve in comparison.grid[::3]:
        place = (max(float(curve.size[-1]), 1e-3), float(curve.loss[-1]))
        axis.annotate(f"α = {curve.alpha:.1g}", place, (5, 2), textcoords="offset points", size=6)
    for curve in comparison.ours:
        axis.plot(*ends([curve]), "s", color=OURS[curve.name][1], markersize=6)
    axis.axvline(comparison.budget, color="0.4", linewidth=0.8)
    best = min(float(curve.loss[-1]) for curve in [*comparison.grid, *comparison.ours])
    axis.set_ylim(best - 0.02, 1.1 * np.log(2))
    title = "every α of the grid, and ours"
    axis.set(title=title, xlabel="size of the last model", ylabel="mean log-loss", xscale="log")
    set_plain_ticks(axis.xaxis)


def main(
    data: tuple[Literal["covtype", "sector", "sample"], ...] = ("covtype", "sector"),
    rows: int = 100_000,
    figure: Path = Path("linear_model.png"),
) -> None:
    """Stream real rows to models under a budget, and to SGDClassifier with penalties: a table and a figure.

    Parameters
    ----------
    data
        The data sets. One that cannot be found or downloaded is replaced by the package's sample.
    rows
        Use at most this many rows of each.
    figure
        The file of the figure.
    """
    comparisons: list[Comparison] = []
    for name in data:
        given = _data(name)
        if all(given.name != comparison.name for comparison in comparisons):
            comparisons.append(compare(given, BUDGETS[given.name], rows))
            sys.stdout.write(f"{table(comparisons[-1])}\n\n")
            sys.stdout.flush()
    draw(comparisons, figure)
    sys.stdout.write(f"figure: {figure}\n")


def _data(name: str) -> Labelled:
    if name == "sample":
        return load_sample()
    try:
        data = load(name)
    except DataError as error:
        sys.stderr.write(f"{name} is not here ({error}). Using the sample instead.\n")
        return load_sample()
    if name == "sector":  # 105 classes: the first half against the rest
        return Labelled(name, data.features.tocsr(), np.where(data.labels <= 52, 1.0, -1.0))
    return data


if __name__ == "__main__":
    tyro.cli(main)
