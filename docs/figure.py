"""Draw the figure of the README and the landing page: python docs/figure.py writes docs/_static/regret.svg."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from page_figures import STYLE

from longterm import AOGD, compare, hindsight
from longterm.learners import MahdaviOGD, ProjectedOGD
from longterm.problems import doubly_stochastic
from longterm.problems.streams import RandomPermutations

FILE = Path(__file__).parent / "_static" / "regret.svg"
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
    """Write the figure, narrow enough for a phone."""
    played, best = comparison()
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(2, 1, figsize=(4.8, 6.4))
        played.plot(best, axes=axes)
        figure.savefig(FILE, metadata={"Date": None}, transparent=True)


if __name__ == "__main__":
    main()
