"""Draw the figure of the README and the landing page: python docs/figure.py writes docs/_static/figures/regret.svg."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from page_figures import FOLDER, collected

from longterm import AOGD, compare, hindsight
from longterm.learners import MahdaviOGD, ProjectedOGD
from longterm.problems import doubly_stochastic
from longterm.problems.streams import RandomPermutations

ROUNDS = 1000


def regret() -> None:
    """Four learners on doubly stochastic matrices while permutations arrive."""
    problem = doubly_stochastic(8)
    learners = {
        "A-OGD, strongly convex": AOGD.for_problem(problem, steps="strongly convex"),
        "A-OGD": AOGD.for_problem(problem),
        "OGD (Mahdavi et al. 2012)": MahdaviOGD.for_problem(problem, horizon=ROUNDS),
        "Projected OGD": ProjectedOGD.for_problem(problem),
    }
    recorded = np.unique(np.linspace(1, ROUNDS, 60).astype(int)).tolist()
    played = compare(problem, learners, RandomPermutations(8), ROUNDS, seeds=range(5), record=recorded, progress=None)
    _, axes = plt.subplots(2, 1, figsize=(4.8, 6.4))
    played.plot(hindsight.best(played, progress=None), axes=axes).savefig("regret.svg")


DRAWN = (regret,)


def main() -> None:
    """Write the figure, narrow enough for a phone."""
    FOLDER.mkdir(exist_ok=True)
    with collected(FOLDER):
        regret()


if __name__ == "__main__":
    main()
