"""The problems that can be named: what is played, where its rounds come from, and the best in hindsight."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np

from longterm.constraints import Affine
from longterm.data import load_mapped
from longterm.experiments.catalogue.base import Prepared, ProblemEntry
from longterm.hindsight import (
    Hindsight,
    best_budgeted_logistic,
    best_fixed,
    choose_budget,
    least_log_loss,
    nearest_to_mean,
)
from longterm.losses import Linear
from longterm.problems import Problem
from longterm.problems import budgeted_logistic as budgeted_logistic_problem
from longterm.problems import consensus as consensus_problem
from longterm.problems import covariance as covariance_problem
from longterm.problems import doubly_stochastic as doubly_stochastic_problem
from longterm.problems.games import GAMES, Game, Rounds
from longterm.sets import Box, Simplex
from longterm.streams import NoisyTargets, PairwiseSigns, RandomPermutations, ResampledRows, Seeds, Stream

DATA = {"power_allocation": "elec2", "fair_logistic": "a9a"}
"""What games read that does not come with the package."""
SHARE = 0.3
"""Of the offline solution's coordinates, those that the paper wants not to be zero."""


def doubly_stochastic(size: int = 8, enclosing: Literal["ball", "rows"] = "ball") -> Game:
    """Doubly-stochastic matrices near random permutation matrices: Figures 1 and 2 of the paper."""
    problem, stream = doubly_stochastic_problem(size, enclosing), RandomPermutations(size)
    return Game(problem, stream, partial(_nearest, problem, stream), facts={"size": size})


def covariance(size: int = 8, floor: float = 0.1, unit_diagonal: bool = True, decay: float = 0.9) -> Game:
    """Correlation matrices with λ_min ≥ floor, from pairs that were not measured together."""
    problem, stream = covariance_problem(size, floor, unit_diagonal=unit_diagonal), PairwiseSigns(size, decay)
    return Game(problem, stream, partial(_nearest, problem, stream), facts={"size": size, "floor": floor})


def budgeted_logistic(
    data: str = "sample", budget: float | None = None, share: float = SHARE, l1: float = 1.0, l2: float = 1.0
) -> Game:
    """Logistic regression with l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ budget on rows drawn with replacement: Figures 3 and 4.

    Left out, the budget is chosen so that `share` of the offline solution's coordinates are not zero.
    """
    rows = load_mapped(data)
    if budget is None:
        budget = choose_budget(rows.features, rows.labels, share, l1=l1, l2=l2, progress=None).budget
    problem = budgeted_logistic_problem(rows.features, budget, l1=l1, l2=l2)
    stream = ResampledRows(rows.features, rows.labels)
    facts = {"data": data, "rows": len(rows.labels), "budget": budget}
    return Game(problem, stream, partial(_budgeted, problem, stream), len(rows.labels), facts)


def consensus(agents: int = 5, spread: float = 0.2) -> Game:
    """Agents on a ring who see different targets in the plane and want to agree on one point."""
    ring = [(i, (i + 1) % agents) for i in range(agents)]
    problem = consensus_problem(agents, ring, Box.cube(2, -1.0, 1.0))
    angles = 2 * np.pi * np.arange(agents) / agents
    means = 0.5 * np.stack([np.cos(angles), np.abs(np.sin(angles))], axis=1).ravel()
    stream = NoisyTargets(means, spread)
    return Game(problem, stream, partial(_fixed, problem, stream), facts={"agents": agents})


def expert_advice(experts: int = 8, cap: float = 0.4, spread: float = 0.3) -> Game:
    """Weights on experts, of whom the two that err least may together get no more than `cap`."""
    means = np.linspace(0.3, 0.7, experts)
    capped = Affine((np.arange(experts) < 2)[None, :].astype(np.float64), np.array([cap]))
    longest = float(np.linalg.norm(means + spread))
    problem = Problem(Simplex(experts), Linear(experts, longest), capped, name="expert advice with a cap")
    stream = NoisyTargets(means, spread)
    return Game(problem, stream, partial(_fixed, problem, stream), facts={"experts": experts, "cap": cap})


def prepare_budgeted_logistic(
    data: str = "sample", budget: float | None = None, share: float = SHARE, l1: float = 1.0, l2: float = 1.0
) -> Prepared:
    """Choose the budget, where none is given, and solve offline."""
    rows = load_mapped(data)
    if budget is None:
        found: Any = choose_budget(rows.features, rows.labels, share, l1=l1, l2=l2, progress=None)
    else:
        found = least_log_loss(rows.features, rows.labels, budget, l1=l1, l2=l2)
    facts = {
        "budget_chosen": budget is None,
        "offline_loss": found.loss,
        "offline_gap": found.gap,
        "offline_nonzeros": found.count,
        "offline_unused_budget": found.slack,
    }
    return Prepared({"budget": found.budget}, facts)


def _nearest(problem: Problem, stream: Stream, rounds: Rounds, seeds: Seeds) -> Hindsight:
    return nearest_to_mean(problem, stream, rounds, seeds=seeds)


def _fixed(problem: Problem, stream: Stream, rounds: Rounds, seeds: Seeds) -> Hindsight:
    return best_fixed(problem, stream, rounds, seeds=seeds)


def _budgeted(problem: Problem, stream: ResampledRows, rounds: Rounds, seeds: Seeds) -> Hindsight:
    return best_budgeted_logistic(problem, stream, rounds, seeds=seeds, progress=None)


PROBLEMS = (
    ProblemEntry("doubly_stochastic", doubly_stochastic),
    ProblemEntry("budgeted_logistic", budgeted_logistic, prepare_budgeted_logistic, arena={"budget": 0.3}),
    ProblemEntry("covariance", covariance),
    ProblemEntry("consensus", consensus),
    ProblemEntry("expert_advice", expert_advice),
    *(ProblemEntry(name, build, data=DATA.get(name)) for name, build in GAMES.items()),
)
"""Ours."""
