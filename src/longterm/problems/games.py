"""Ready-made games: a problem and the stream it is played on.

Each builder takes a few plain parameters, so that a specification or an arena can ask for a game by its name:

    game = routing()
    trace = run(game.problem, learner, game.stream, 1000, seeds=range(10))
    best = hindsight.best(game.problem, game.stream, trace.rounds, seeds=range(10), benchmark=game.benchmark)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from longterm import problems, streams
from longterm._arrays import FloatArray
from longterm._display import ReprMixin
from longterm.constraints import Affine, L2Budget, VaryingAffine
from longterm.data import Labelled, load, load_elec2, load_mapped, load_table
from longterm.data.tables import Missing
from longterm.errors import InputError, did_you_mean
from longterm.losses import Linear, SquaredDistance
from longterm.problems.adversarial import Benchmark, EveryRound, InExpectation, OnAverage
from longterm.problems.resources import SMALL
from longterm.sets import Ball, Box, Simplex

PRICE_UNIT = 10.0
"""ELEC2's prices are in [0, 1], half of them below 0.05: times ten they are near what power is worth."""
FEMALE, MALE = 71, 72
"""Columns of a9a, counted from 0."""


@dataclass(frozen=True, eq=False)
class Game(ReprMixin):
    """All that is played.

    Parameters
    ----------
    problem : Problem
        B, the losses and the constraint.
    stream : Stream
        The rounds.
    length : int, optional
        How many rounds to play where the user does not say: the rows of a data set, or what it was made for.
    facts : Mapping[str, Any]
        What a reader of the results should know beyond the constants.
    benchmark : Benchmark, optional
        What the theory of a constraint that changes allows to compare with.
    path : float, optional
        Where one fixed decision is nobody's aim: how far the decisions to compare with may move, Σ ‖u_t − u_{t−1}‖.
    """

    problem: problems.Problem
    stream: streams.Stream
    length: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    benchmark: Benchmark | None = None
    path: float | None = None


def doubly_stochastic(size: int = 8, enclosing: Literal["ball", "rows"] = "ball") -> Game:
    """Doubly-stochastic matrices near random permutation matrices: Figures 1 and 2 of the paper."""
    problem, stream = problems.doubly_stochastic(size, enclosing), streams.RandomPermutations(size)
    return Game(problem, stream, facts={"size": size})


def budgeted_logistic(
    data: str = "sample",
    budget: float = 0.3,
    l1: float = 1.0,
    l2: float = 1.0,
    label: str = "",
    drop: str = "",
    scale: bool = True,
    missing: Missing = "refuse",
) -> Game:
    """Logistic regression with l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ budget on rows drawn with replacement: Figures 3 and 4.

    Of a table of your own `label` names the column of the labels, `drop` those to leave out, with commas between them;
    with `scale` its columns are divided by their largest sizes; `missing` says what to do about empty cells.
    """
    rows = labelled_rows(data, label, drop, scale, missing)
    problem = problems.budgeted_logistic(rows.features, budget, l1=l1, l2=l2)
    facts = {"data": data, "rows": len(rows.labels), "budget": budget}
    return Game(problem, streams.ResampledRows(rows.features, rows.labels), len(rows.labels), facts)


def labelled_rows(
    data: str, label: str = "", drop: str = "", scale: bool = True, missing: Missing = "refuse"
) -> Labelled:
    """The rows of a data set, or of a file whose columns are named as on the command line: "customer,date"."""
    return load_mapped(data, label or None, drop=_names(drop), scale=scale, missing=missing)


def _names(words: str) -> list[str]:
    return [name.strip() for name in words.split(",") if name.strip()]


def covariance(size: int = 8, floor: float = 0.1, unit_diagonal: bool = True, decay: float = 0.9) -> Game:
    """Correlation matrices with λ_min ≥ floor, from pairs that were not measured together."""
    problem = problems.covariance(size, floor, unit_diagonal=unit_diagonal)
    return Game(problem, streams.PairwiseSigns(size, decay), facts={"size": size, "floor": floor})


def consensus(agents: int = 5, spread: float = 0.2) -> Game:
    """Agents on a ring who see different targets in the plane and want to agree on one point."""
    ring = [(i, (i + 1) % agents) for i in range(agents)]
    problem = problems.consensus(agents, ring, Box.cube(2, -1.0, 1.0))
    angles = 2 * np.pi * np.arange(agents) / agents
    means = 0.5 * np.stack([np.cos(angles), np.abs(np.sin(angles))], axis=1).ravel()
    return Game(problem, streams.NoisyTargets(means, spread), facts={"agents": agents})


def expert_advice(experts: int = 8, cap: float = 0.4, spread: float = 0.3) -> Game:
    """Weights on experts, of whom the two that err least may together get no more than `cap`."""
    means = np.linspace(0.3, 0.7, experts)
    capped = Affine((np.arange(experts) < 2)[None, :].astype(np.float64), np.array([cap]))
    longest = float(np.linalg.norm(means + spread))
    problem = problems.Problem(Simplex(experts), Linear(experts, longest), capped, name="expert advice with a cap")
    return Game(problem, streams.NoisyTargets(means, spread), facts={"experts": experts, "cap": cap})


def noisy_doubly_stochastic(size: int = 8, noise: float = 0.5, hidden: float = 0.5) -> Game:
    """Doubly-stochastic matrices from permutation matrices read by sensors that are off.

    Examples
    --------
    >>> from longterm import hindsight
    >>> from longterm.problems import games
    >>> game = games.noisy_doubly_stochastic(3)
    >>> best = hindsight.best(game.problem, game.stream, [10, 100], seeds=range(2))
    >>> best.x.shape, bool(best.relative_gap.max() < 1e-12)
    ((2, 2, 9), True)
    """
    problem, stream = problems.noisy_doubly_stochastic(size, noise), streams.NoisyPermutations(size, noise, hidden)
    return Game(problem, stream, facts={"size": size, "noise": noise})


def online_linear_program(rounds: int = 5000, instance: int = 0, dimension: int = 2, constraints: int = 3) -> Game:
    """Yu and Neely's online linear program with its drifting costs."""
    problem = problems.online_linear_program(rounds, instance=instance, dimension=dimension, constraints=constraints)
    return Game(problem, streams.DriftingCosts(dimension, rounds), rounds, {"instance": instance})


def power_allocation(devices: int = 5) -> Game:
    """Power for devices with average limits, at the real prices of New South Wales (ELEC2), a window for each seed."""
    prices = PRICE_UNIT * load_elec2().nsw_price
    problem, stream = problems.power_allocation(prices, devices), streams.Windows(prices)
    return Game(problem, stream, len(prices), {"data": "elec2", "devices": devices})


def routing() -> Game:
    """Flow of two demands over nine edges with capacities in the long run, latencies that come and go."""
    problem, stream = problems.routing(SMALL), streams.EdgeLatencies(SMALL.incidence)
    return Game(problem, stream, facts={"edges": len(SMALL.capacities)})


def fair_logistic(
    data: str = "a9a",
    budget: float = 10.0,
    limit: float = 0.01,
    sensitive: str = "",
    label: str = "",
    drop: str = "",
    scale: bool = True,
    missing: Missing = "refuse",
) -> Game:
    """Logistic regression under a sparsity budget, the score's covariance with a sensitive column kept within ±limit.

    Of a table of your own `sensitive` names that column, of numbers or of two values; it is no feature. `label`,
    `drop`, `scale` and `missing` are those of budgeted_logistic. Of a9a the column is Female, and Male is left out.
    """
    if data in ("a9a", "a9a.t"):
        if sensitive or label or drop:
            what = f"{data} has no named columns, and Female is its sensitive one"
            raise InputError("sensitive, label, drop", what, "Leave them out, or give a table of your own")
        table = load(data)
        every, name = table.features.toarray(), "Female"
        attribute, others = every[:, FEMALE], np.delete(every, [FEMALE, MALE], axis=1)
    else:
        if not sensitive:
            raise InputError("sensitive", f"{data} has no column that is known to be", "Name one: sensitive=sex")
        table = load_table(data, label or None, drop=_names(drop), scale=scale, missing=missing)
        attribute, others, name = _without(table, sensitive)
    problem = problems.fair_logistic(others, attribute, budget, limit)
    facts = {"data": data, "sensitive": name, "rows": len(others), "budget": budget, "limit": limit}
    return Game(problem, streams.ResampledRows(others, table.labels), len(others), facts)


def _without(table: Labelled, sensitive: str) -> tuple[FloatArray, FloatArray, str]:
    """The sensitive column, the features without it, and what 1 means in it."""
    columns = list(table.columns)
    places = [k for k, name in enumerate(columns) if name == sensitive or name.startswith(f"{sensitive}=")]
    if not places:
        known = sorted({name.partition("=")[0] for name in columns})
        what = f"{table.name} has no column {sensitive!r}{did_you_mean(sensitive, known)}"
        raise InputError("sensitive", what, f"Choose from {known[:12]}")
    if len(places) > 2:
        what = f"column {sensitive!r} has {len(places)} values"
        raise InputError("sensitive", what, "Give a column of numbers or of two values")
    return table.features[:, places[-1]], np.delete(table.features, places, axis=1), columns[places[-1]]


def switching_constraints(
    dimension: int = 3,
    constraints: int = 6,
    instance: int = 0,
    benchmark: Literal["every round", "on average"] = "every round",
) -> Game:
    """An adversary who keeps changing the constraint and pulls across the one in force."""
    pool = problems.random_half_spaces(dimension, constraints, instance=instance)
    problem, stream = problems.switching_constraints(pool), streams.SwitchingConstraints(pool)
    return Game(problem, stream, facts={"benchmark": benchmark}, benchmark=_chosen(benchmark, OF_ROUNDS))


def job_scheduling(
    servers: int = 12, benchmark: Literal["every round", "on average", "in expectation"] = "in expectation"
) -> Game:
    """Servers that must keep up with random jobs on average, at prices that follow the day."""
    problem = problems.job_scheduling(servers)
    stream = streams.JobsAndPrices(problems.speeds_of_servers(servers))
    known = {**OF_ROUNDS, "in expectation": InExpectation(problems.mean_of_arrivals(servers))}
    return Game(problem, stream, facts={"benchmark": benchmark}, benchmark=_chosen(benchmark, known))


def turning_half_plane(turns: float = 2.0, offset: float = 0.3, rounds: int = 4096, noise: float = 0.3) -> Game:
    """A half-plane through the disc that turns, with costs that push across its edge: no point is feasible for long."""
    problem = problems.Problem(Ball(2), Linear(2), VaryingAffine(2, 1, 1.0, offset), name="a half-plane that turns")
    stream = streams.TurningHalfPlane(turns, offset, rounds, noise)
    return Game(problem, stream, rounds, {"turns": turns}, path=2 * np.pi * turns * offset)


def drifting_targets(dimension: int = 5, turns: float = 3.0, budget: float = 0.5, rounds: int = 4096) -> Game:
    """Targets that go round while the decision must stay within a ball about the origin."""
    far = Ball(dimension, radius=1.0)
    loss = SquaredDistance(dimension, targets=Ball(dimension, radius=1.3))
    problem = problems.Problem(far, loss, L2Budget(dimension, budget=budget), name="targets that go round")
    stream = streams.TurningTargets(dimension, turns, rounds)
    return Game(problem, stream, rounds, {"turns": turns}, path=2 * np.pi * turns * budget)


OF_ROUNDS: Mapping[str, Benchmark] = MappingProxyType({"every round": EveryRound(), "on average": OnAverage()})


def _chosen(benchmark: str, known: Mapping[str, Benchmark]) -> Benchmark:
    if benchmark not in known:
        raise InputError("benchmark", f"{benchmark!r} is not known", f"Choose from {sorted(known)}")
    return known[benchmark]


GAMES: Mapping[str, Callable[..., Game]] = MappingProxyType(
    {
        build.__name__: build
        for build in (
            doubly_stochastic,
            budgeted_logistic,
            covariance,
            consensus,
            expert_advice,
            noisy_doubly_stochastic,
            online_linear_program,
            power_allocation,
            routing,
            fair_logistic,
            switching_constraints,
            job_scheduling,
            turning_half_plane,
            drifting_targets,
        )
    }
)
"""Every builder here, by name."""
