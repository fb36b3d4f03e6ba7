"""A model that is learned while the world moves: ELEC2 in the order of its file.

Every half hour of two and a half years a logistic model says how likely it is that the price of electricity in New
South Wales lies above its mean of the last day; then it is told, and charged its log-loss (*progressive* loss: no row
is scored by a model that has seen it). What is best moves with the season and the market's rules. The model must stay
within an elastic-net budget, ‖x‖₁ + ½‖x‖² ≤ ρ.

Beside the learners stand the best fixed model in hindsight, which is the comparator of ordinary regret, and the best
model of each stretch of four weeks. Labels come in runs, so that whoever follows fast beats both. Prints a table and
draws a figure.

ELEC2 is found in the folder that the environment variable LONGTERM_DATA names, or downloaded; where neither works, the
6,000 rows of covtype that come with the package are played, in their order.

python examples/drift_in_models.py --help
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from longterm import Problem, hindsight, run
from longterm._arrays import FloatArray
from longterm.cli import run_function
from longterm.data import load_elec2, load_sample
from longterm.errors import DataError
from longterm.learners import HedgedCuts, Learner, PenalisedFTRL, ProjectedOGD, Restarted, TrackedPenalty
from longterm.problems import budgeted_logistic
from longterm.report.style import publication_style, save_figure
from longterm.streams import Replay

DAY = 48
STRETCH = 28 * DAY
"""Four weeks of half hours."""
COLUMNS = ("period", "nsw_price", "nsw_demand", "vic_price", "vic_demand", "transfer")


@dataclass(frozen=True, eq=False)
class Rows:
    """Features with a constant at the end, labels ±1, in the order of the file."""

    name: str
    features: FloatArray
    labels: FloatArray


def read(rows: int | None) -> Rows:
    """The first rows of ELEC2, columns from −1 to 1; of the sample of covtype where ELEC2 cannot be had."""
    try:
        table = load_elec2()
    except DataError as missing:
        sys.stderr.write(f"{missing}\ncovtype's sample instead\n")
        sample = load_sample()
        name, features, labels = "covtype sample", np.asarray(sample.features), np.asarray(sample.labels)
    else:
        name, labels = "ELEC2", table.labels
        columns = [np.asarray(getattr(table, column), dtype=np.float64) for column in COLUMNS]
        features = 2 * np.stack(columns, axis=1) - 1
    features = np.concatenate([features, np.ones((len(features), 1))], axis=1)[:rows]
    return Rows(name, features, labels[:rows])


def contestants(problem: Problem, horizon: int) -> dict[str, Learner[Any]]:
    """Who plays; those with T are told how many rows there are."""

    def tracked(tracker: Any) -> TrackedPenalty:
        return TrackedPenalty.for_problem(problem, horizon=horizon, tracker=tracker, penalty="projection")

    return {
        "penalised FTRL": PenalisedFTRL.for_problem(problem),
        "projected OGD": ProjectedOGD.for_problem(problem),
        "projected OGD, anew every week": Restarted(ProjectedOGD.for_problem(problem), every=7 * DAY),
        "hedged cuts": HedgedCuts.for_problem(problem),
        "hedged cuts, path = 100": HedgedCuts.for_problem(problem, path=100.0),
        "Ader, T": tracked("ader"),
        "strongly adaptive, T": tracked("strongly adaptive"),
        "hedged restarts, T": tracked("restarts"),
    }


def main(rows: int | None = None, budget: float = 30.0, out: Path = Path("results")) -> None:
    """Learn a model of a market that drifts: progressive log-loss beside the best models in hindsight.

    Parameters
    ----------
    rows
        How many of the first rows are played; left out, all.
    budget
        ρ: ‖x‖₁ + ½‖x‖² of the model may not be more.
    out
        Folder for the figure.
    """
    data = read(rows)
    T = len(data.labels)
    problem, stream = budgeted_logistic(data.features, budget), Replay([data.features, data.labels])
    ends = [*range(STRETCH, T, STRETCH), T]
    best = hindsight.best(problem, stream, [T])
    lost: dict[str, FloatArray] = {}
    lines = [f"{data.name}, {T} rows in the order of the file, ρ = {budget:g}: progressive log-loss of a row"]
    lines.append(f"{'':<34}{'log-loss':>10}{'above the best model':>22}{'broken':>9}")
    worst: dict[str, float] = {}
    for name, learner in contestants(problem, T).items():
        trace = run(problem, learner, stream, record=ends, progress=None)
        lost[name], worst[name] = np.asarray(trace.cumulative_loss), float(trace.hard_violation[-1])
    fixed = best.loss[0]
    for name, loss in lost.items():
        lines.append(f"{name:<34}{loss[-1] / T:>10.4f}{100 * (loss[-1] / fixed - 1):>21.1f}%{worst[name] / T:>9.4f}")
    pieces = stretches(problem, data, ends)
    moving = sum(float(piece.loss[0]) for piece in pieces)
    lines += [
        f"{'hindsight, one model':<34}{fixed / T:>10.4f}",
        f"{'hindsight, one every four weeks':<34}{moving / T:>10.4f}{100 * (moving / fixed - 1):>21.1f}%",
        f"{'always ½':<34}{np.log(2):>10.4f}",
    ]
    sys.stdout.write("\n".join([*lines, ""]))
    for path in figure(lost, pieces, ends, out):
        sys.stdout.write(f"wrote {path}\n")


def stretches(problem: Problem, data: Rows, ends: list[int]) -> list[hindsight.Hindsight]:
    """The best model of each stretch."""
    found = []
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        part = Replay([data.features[begin:end], data.labels[begin:end]])
        found.append(hindsight.best(problem, part, [end - begin]))
    return found


def figure(lost: dict[str, FloatArray], pieces: list[hindsight.Hindsight], ends: list[int], folder: Path) -> list[Path]:
    """The log-loss of each stretch, and that of the stretch's own best model."""
    lengths, days = np.diff([0, *ends]), np.asarray(ends) / DAY
    with publication_style() as plt:
        drawing, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
        for i, (name, loss) in enumerate(lost.items()):
            line, colour = ("-", f"C{i}") if i < 5 else ("--", f"C{i - 5}")
            axes.plot(days, np.diff(loss, prepend=0.0) / lengths, line, color=colour, linewidth=1.2, label=name)
        own = np.array([piece.loss[0] for piece in pieces]) / lengths
        axes.plot(days, own, "*", color="black", markersize=5, label="hindsight, one every four weeks")
        axes.set(xlabel="days", ylabel="log-loss of a row, mean of four weeks")
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return save_figure(drawing, folder, "drift_in_models")


if __name__ == "__main__":
    sys.exit(run_function(main))
