"""Draw the figure of the README and the landing page: python docs/figure.py writes docs/_static/regret*.svg."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from longterm import AOGD, compare, hindsight
from longterm.learners import MahdaviOGD, ProjectedOGD
from longterm.problems import doubly_stochastic
from longterm.problems.streams import RandomPermutations

FOLDER = Path(__file__).parent / "_static"
LAYOUTS = {"regret.svg": (1, 2, (9.0, 3.6)), "regret_narrow.svg": (2, 1, (4.6, 6.4))}
"""By file: rows and columns of panels, and the size. A phone shows the narrow one."""
GREY = "#7f8792"
"""A colour for text that is readable on white and on black."""
STYLE = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), GREY),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
    "font.size": 10,
    "svg.fonttype": "none",
    "svg.hashsalt": "longterm",
    "legend.frameon": False,
}
ROUNDS = 1000


def comparison() -> tuple[Any, Any]:
    """Return four learners on doubly stochastic matrices while permutations arrive, and the best in hindsight."""
    problem = doubly_stochastic(8)
    learners = {
        "A-OGD, strongly convex": AOGD.for_problem(problem, steps="strongly convex"),
        "A-OGD": AOGD.for_problem(problem),
        "OGD (Mahdavi et al. 2012)": MahdaviOGD.for_problem(problem, horizon=ROUNDS),
        "Projected OGD": ProjectedOGD.for_problem(problem),
    }
    kept = np.unique(np.linspace(1, ROUNDS, 60).astype(int)).tolist()
    played = compare(problem, learners, RandomPermutations(8), ROUNDS, seeds=range(5), record=kept, progress=None)
    return played, hindsight.best(played, progress=None)


def main() -> None:
    """Write the figures."""
    played, best = comparison()
    for file, (rows, columns, size) in LAYOUTS.items():
        with plt.rc_context(STYLE):
            figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained")
            played.plot(best, axes=axes)
            figure.savefig(FOLDER / file, metadata={"Date": None}, transparent=True)


if __name__ == "__main__":
    main()
