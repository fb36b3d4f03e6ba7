"""Learners on a stream that drifts: ELEC2 in the order of time.

Every half hour of two and a half years a logistic model predicts whether the price of electricity in New South Wales is
above its mean of the last day. Each row is scored before it is learned (*progressive* log-loss). The best model changes
with the season and with the rules of the market. The model must stay within an elastic-net budget, ‖x‖₁ + ½‖x‖² ≤ ρ.

The learners are compared with the best fixed model in hindsight, which is the comparator of regret, and with the best
model of each period of four weeks. Labels come in runs, so a learner that follows quickly beats both. The example
prints a table and draws a figure.

ELEC2 is read from the folder in the environment variable LONGTERM_DATA, or downloaded. Where neither works, the 6,000
rows of covtype that come with the package are used, in their order.

python examples/drift_in_models.py --help
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm import Problem, hindsight, run
from longterm.cli import run_function
from longterm.data import load_elec2, load_sample
from longterm.errors import DataError
from longterm.lab.report.style import publication_style, save_figure
from longterm.learners import HedgedCuts, Learner, PenalisedFTRL, ProjectedOGD, Restarted, TrackedPenalty
from longterm.problems import budgeted_logistic
from longterm.problems.streams import Replay

DAY = 48
PERIOD = 28 * DAY
"""Four weeks of half hours."""
COLUMNS = ("period", "nsw_price", "nsw_demand", "vic_price", "vic_demand", "transfer")


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Features with a constant in the last column, and labels ±1, in the order of the file."""

    name: str
    features: NDArray[np.float64]
    labels: NDArray[np.float64]


def read(rows: int | None) -> LabelledRows:
    """Return the first rows of ELEC2, scaled to [−1, 1], or of the sample of covtype if ELEC2 is not available."""
    try:
        table = load_elec2()
    except DataError as missing:
        sys.stderr.write(f"{missing}\nusing the sample of covtype instead\n")
        sample = load_sample()
        name, features, labels = "covtype sample", np.asarray(sample.features), np.asarray(sample.labels)
    else:
        name, labels = "ELEC2", table.labels
        columns = [np.asarray(getattr(table, column), dtype=np.float64) for column in COLUMNS]
        features = 2 * np.stack(columns, axis=1) - 1
    features = np.concatenate([features, np.ones((len(features), 1))], axis=1)[:rows]
    return LabelledRows(name, features, labels[:rows])


def learners_for(problem: Problem, horizon: int) -> dict[str, Learner[Any]]:
    """Return the learners by name; those with T know the number of rows."""

    def tracked(tracker: Any) -> TrackedPenalty:
        return TrackedPenalty.for_problem(problem, horizon=horizon, tracker=tracker, penalty="projection")

    return {
        "penalised FTRL": PenalisedFTRL.for_problem(problem),
        "projected OGD": ProjectedOGD.for_problem(problem),
        "projected OGD, weekly restarts": Restarted(ProjectedOGD.for_problem(problem), every=7 * DAY),
        "hedged cuts": HedgedCuts.for_problem(problem),
        "hedged cuts, path = 100": HedgedCuts.for_problem(problem, path=100.0),
        "Ader, T": tracked("ader"),
        "hedged restarts, T": tracked("restarts"),
    }


def main(rows: int | None = None, budget: float = 30.0, out: Path = Path("results")) -> None:
    """Compare the progressive log-loss of learners on ELEC2 with the best models in hindsight.

    Parameters
    ----------
    rows
        The number of rows; all unless given.
    budget
        The bound ρ on ‖x‖₁ + ½‖x‖².
    out
        The folder of the figure.
    """
    data = read(rows)
    T = len(data.labels)
    problem, stream = budgeted_logistic(data.features, budget), Replay([data.features, data.labels])
    ends = [*range(PERIOD, T, PERIOD), T]
    best = hindsight.best(problem, stream, [T])
    losses: dict[str, NDArray[np.float64]] = {}
    lines = [f"{data.name}, {T} rows in the order of the file, ρ = {budget:g}: progressive log-loss of a row"]
    lines.append(f"{'':<34}{'log-loss':>10}{'above the best model':>22}{'violation':>11}")
    violations: dict[str, float] = {}
    for name, learner in learners_for(problem, T).items():
        trace = run(problem, learner, stream, record=ends, progress=None)
        losses[name], violations[name] = np.asarray(trace.cumulative_loss), float(trace.hard_violation[-1])
    fixed = best.loss[0]
    for name, loss in losses.items():
        lines.append(
            f"{name:<34}{loss[-1] / T:>10.4f}{100 * (loss[-1] / fixed - 1):>21.1f}%{violations[name] / T:>11.4f}"
        )
    best_models = best_per_period(problem, data, ends)
    changing = sum(float(best_model.loss[0]) for best_model in best_models)
    lines += [
        f"{'hindsight, one model':<34}{fixed / T:>10.4f}",
        f"{'hindsight, one every four weeks':<34}{changing / T:>10.4f}{100 * (changing / fixed - 1):>21.1f}%",
        f"{'always ½':<34}{np.log(2):>10.4f}",
    ]
    sys.stdout.write("\n".join([*lines, ""]))
    for path in figure(losses, best_models, ends, out):
        sys.stdout.write(f"wrote {path}\n")


def best_per_period(problem: Problem, data: LabelledRows, ends: list[int]) -> list[hindsight.Hindsight]:
    """Return the best model of each period."""
    found = []
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        part = Replay([data.features[begin:end], data.labels[begin:end]])
        found.append(hindsight.best(problem, part, [end - begin]))
    return found


def figure(
    losses: dict[str, NDArray[np.float64]], best_models: list[hindsight.Hindsight], ends: list[int], folder: Path
) -> list[Path]:
    """Draw the log-loss of the learners, and of the best model, in each period."""
    lengths, days = np.diff([0, *ends]), np.asarray(ends) / DAY
    with publication_style() as plt:
        drawing, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
        for i, (name, loss) in enumerate(losses.items()):
            line, colour = ("-", f"C{i}") if i < 5 else ("--", f"C{i - 5}")
            axes.plot(days, np.diff(loss, prepend=0.0) / lengths, line, color=colour, linewidth=1.2, label=name)
        own = np.array([best_model.loss[0] for best_model in best_models]) / lengths
        axes.plot(days, own, "*", color="black", markersize=5, label="hindsight, one every four weeks")
        axes.set(xlabel="days", ylabel="log-loss of a row, mean of four weeks")
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return save_figure(drawing, folder, "drift_in_models")


if __name__ == "__main__":
    sys.exit(run_function(main))
