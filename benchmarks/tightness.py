"""Tightness of the theorems: python benchmarks/tightness.py [--generations 25] [--learners aogd ...]

For every learner of the catalogue with a bound, `longterm.testing.find_worst_cases` searches sequences on a few small
problems and horizons. The table has the largest ratio of a measure to its bound, with the problem and the round. The
ratio is a lower bound of the true worst case: 1 means that the theorem cannot be improved on that problem.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from longterm import Problem
from longterm.catalogue.lookup import LearnerEntry, learners
from longterm.errors import InputError
from longterm.learners import every_learner
from longterm.problems import consensus
from longterm.problems.constraints import Affine, ElasticNetBudget, L2Budget, VaryingAffine
from longterm.problems.losses import Linear, SquaredDistance
from longterm.problems.sets import Ball, Box, Simplex
from longterm.testing import find_worst_cases
from longterm.testing.worst_case import WorstCase
from longterm.theory.bounds import REGRET

HORIZONS = (4, 32)
STRONGLY_CONVEX: tuple[dict[str, str], ...] = ({"steps": "strongly convex"},)
SKIPPED = {
    "osoco": "its bounds hold with high probability, against losses that do not depend on its draws",
    "two_point_bandit": "its bounds hold in expectation",
}


def problems() -> dict[str, Problem]:
    """Return small problems on which different terms of a bound dominate."""
    interval, unit_ball = Box([-1.0], [1.0]), Ball(2)
    ring, net = consensus(2, [(0, 1)], interval), ElasticNetBudget(2, budget=0.5)
    return {
        "interval, slack g": Problem(interval, Linear(1), Affine([[0.01]], [0.01])),
        "interval, half feasible": Problem(interval, Linear(1), Affine([[1.0]], [0.0])),
        "interval, small losses": Problem(interval, Linear(1, 0.01), Affine([[1.0]], [-0.9])),
        "interval, targets": Problem(interval, SquaredDistance(1), Affine([[0.01]], [0.01])),
        "disc, budget": Problem(unit_ball, Linear(2), L2Budget(2, budget=0.5)),
        "disc, targets and budget": Problem(unit_ball, SquaredDistance(2), L2Budget(2, budget=0.9)),
        "disc, elastic net": Problem(net.enclosing_ball(), Linear(2), net),
        "simplex": Problem(Simplex(3), Linear(3), Affine([[1.0, 0.0, 0.0]], [0.5])),
        "interval, changing g": Problem(interval, Linear(1), VaryingAffine(1, 1, 1.0, 0.5)),
        "two agents": Problem(ring.enclosing_set, Linear(2), ring.constraint),
    }


def cases(entry: LearnerEntry, generations: int) -> Iterator[tuple[str, str, WorstCase]]:
    """Yield the worst cases of a learner with its settings and the problem."""
    for name, problem in problems().items():
        for settings in STRONGLY_CONVEX if problem.constants.strong_convexity else ({},):
            for rounds in HORIZONS:
                try:
                    learner: Any = entry.learner(problem, rounds, settings)
                    found = find_worst_cases(problem, learner, rounds, generations=generations)
                except (InputError, TypeError, NotImplementedError):
                    continue
                label = entry.name if not settings else f"{entry.name} ({settings['steps']})"
                for case in found.values():
                    yield label, name, case


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--generations", type=int, default=25)
    parser.add_argument("--learners", nargs="*", default=[])
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    classes = {kind.name: kind.__name__ for kind in every_learner()}
    print("| learner | regret / bound | on | violation / bound | on |\n|---|---|---|---|---|")
    for name, entry in sorted(learners().items()):
        if name not in classes or name in SKIPPED or (chosen.learners and name not in chosen.learners):
            continue
        best: dict[str, tuple[str, str, WorstCase]] = {}
        for label, problem, case in cases(entry, chosen.generations):
            kind = "regret" if case.measure == REGRET else "violation"
            if kind not in best or case.ratio > best[kind][2].ratio:
                best[kind] = label, problem, case
        row = [f"`{classes[name]}`"]
        for kind in ("regret", "violation"):
            if kind not in best or not best[kind][2].ratio > 0:
                row += ["–", "–"]
                continue
            label, problem, case = best[kind]
            what = "" if kind == "regret" else f"{case.measure.removesuffix('_violation')}, "
            row += [f"{np.floor(1000 * case.ratio) / 1000:.3f}", f"{what}{problem}, T = {case.rounds}"]
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
