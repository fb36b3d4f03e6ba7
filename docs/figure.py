"""The figure of the README: python docs/figure.py writes docs/_static/regret.svg (make tables runs it too)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context

from longterm import AOGD, compare, hindsight
from longterm.learners import MahdaviOGD, ProjectedOGD
from longterm.problems import doubly_stochastic
from longterm.streams import RandomPermutations

FIGURE = Path(__file__).parent / "_static" / "regret.svg"
ROUNDS = 1000


def figure() -> Any:
    """Four ways to keep a matrix doubly stochastic while permutations come in: regret and violation."""
    problem = doubly_stochastic(8)
    learners = {
        "A-OGD, strongly convex": AOGD.for_problem(problem, steps="strongly convex"),
        "A-OGD": AOGD.for_problem(problem),
        "OGD of 2012": MahdaviOGD.for_problem(problem, horizon=ROUNDS),
        "projecting every round": ProjectedOGD.for_problem(problem),
    }
    kept = np.unique(np.linspace(1, ROUNDS, 60).astype(int)).tolist()
    played = compare(problem, learners, RandomPermutations(8), ROUNDS, seeds=range(5), record=kept, progress=None)
    return played.plot(hindsight.best(played, progress=None))


if __name__ == "__main__":
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "longterm", "font.size": 9}):
        figure().savefig(FIGURE, metadata={"Date": None})
