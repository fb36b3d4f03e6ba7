"""Ready-made games: a problem, the stream it is played on, and the best fixed decision in hindsight.

Each builder takes a few plain parameters, so that a specification or an arena can ask for a game by its name:

    game = routing()
    trace = run(game.problem, AOGD.for_problem(game.problem), game.stream, 1000, seeds=range(10))
    regret = trace.regret(game.best(trace.rounds, range(10)))

`best` is what the theory of the constraint allows to compare with (`longterm.hindsight.benchmarks`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longterm import problems, streams
from longterm.data import load, load_elec2
from longterm.errors import InputError
from longterm.hindsight import (
    Benchmark,
    EveryRound,
    Hindsight,
    InExpectation,
    OnAverage,
    best_fair_logistic,
    best_fixed,
    best_power,
    nearest_to_mean,
)
from longterm.problems.routing import SMALL
from longterm.streams import Seeds

Rounds = Sequence[int] | NDArray[np.int64]
PRICE_UNIT = 10.0
"""ELEC2's prices are in [0, 1], half of them below 0.05: times ten they are near what power is worth."""
FEMALE, MALE = 71, 72
"""Columns of a9a, counted from 0."""


@dataclass(frozen=True, eq=False)
class Game:
    """All that is played."""

    problem: problems.Problem
    stream: streams.Stream
    best: Callable[[Rounds, Seeds], Hindsight]
    """From rounds and seeds to x*_t, its loss and the certified gap."""
    length: int | None = None
    """How many rounds to play where the user does not say: the rows of a data set, or what it was made for."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What a reader of the results should know beyond the constants."""


def noisy_doubly_stochastic(size: int = 8, noise: float = 0.5, hidden: float = 0.5) -> Game:
    """Doubly-stochastic matrices from permutation matrices read by sensors that are off.

    >>> from longterm.problems import games
    >>> game = games.noisy_doubly_stochastic(3)
    >>> best = game.best([10, 100], range(2))
    >>> best.x.shape, bool(best.relative_gap.max() < 1e-12)
    ((2, 2, 9), True)
    """
    problem, stream = problems.noisy_doubly_stochastic(size, noise), streams.NoisyPermutations(size, noise, hidden)
    return Game(problem, stream, partial(_nearest, problem, stream), facts={"size": size, "noise": noise})


def online_linear_program(rounds: int = 5000, instance: int = 0, dimension: int = 2, constraints: int = 3) -> Game:
    """Yu and Neely's online linear program with its drifting costs."""
    problem = problems.online_linear_program(rounds, instance=instance, dimension=dimension, constraints=constraints)
    stream = streams.DriftingCosts(dimension, rounds)
    return Game(problem, stream, partial(_fixed, problem, stream, None), rounds, {"instance": instance})


def power_allocation(devices: int = 5) -> Game:
    """Power for devices with average limits, at the real prices of New South Wales (ELEC2), a window for each seed."""
    prices = PRICE_UNIT * load_elec2().nsw_price
    problem, stream = problems.power_allocation(prices, devices), streams.Windows(prices)
    return Game(problem, stream, partial(_power, problem, stream), len(prices), {"data": "elec2", "devices": devices})


def routing() -> Game:
    """Flow of two demands over nine edges with capacities in the long run, latencies that come and go."""
    problem, stream = problems.routing(SMALL), streams.EdgeLatencies(SMALL.incidence)
    return Game(problem, stream, partial(_fixed, problem, stream, None), facts={"edges": len(SMALL.capacities)})


def fair_logistic(data: Literal["a9a", "a9a.t"] = "a9a", budget: float = 10.0, limit: float = 0.01) -> Game:
    """Logistic regression on Adult under a sparsity budget, the score's covariance with sex kept within ±limit.

    The rows are those of a9a, without its columns 72 (Female, the sensitive attribute) and 73 (Male).
    """
    table = load(data)
    every = table.features.toarray()
    features, female = np.delete(every, [FEMALE, MALE], axis=1), every[:, FEMALE]
    problem = problems.fair_logistic(features, female, budget, limit)
    stream = streams.ResampledRows(features, table.labels)
    facts = {"data": data, "sensitive": "Female", "rows": len(features), "budget": budget, "limit": limit}
    return Game(problem, stream, partial(_logistic, problem, stream), len(features), facts)


def switching_constraints(
    dimension: int = 3,
    constraints: int = 6,
    instance: int = 0,
    benchmark: Literal["every round", "on average"] = "every round",
) -> Game:
    """An adversary who keeps changing the constraint and pulls across the one in force."""
    pool = problems.random_half_spaces(dimension, constraints, instance=instance)
    problem, stream = problems.switching_constraints(pool), streams.SwitchingConstraints(pool)
    return Game(problem, stream, partial(_fixed, problem, stream, _chosen(benchmark)), facts={"benchmark": benchmark})


def job_scheduling(
    servers: int = 12, benchmark: Literal["every round", "on average", "in expectation"] = "in expectation"
) -> Game:
    """Servers that must keep up with random jobs on average, at prices that follow the day."""
    problem = problems.job_scheduling(servers)
    stream = streams.JobsAndPrices(problems.speeds_of_servers(servers))
    mean = InExpectation(problems.mean_of_arrivals(servers))
    best = partial(_fixed, problem, stream, mean if benchmark == "in expectation" else _chosen(benchmark))
    return Game(problem, stream, best, facts={"benchmark": benchmark})


GAMES: Mapping[str, Callable[..., Game]] = MappingProxyType(
    {
        build.__name__: build
        for build in (
            noisy_doubly_stochastic,
            online_linear_program,
            power_allocation,
            routing,
            fair_logistic,
            switching_constraints,
            job_scheduling,
        )
    }
)
"""Every builder here, by name."""


def _chosen(benchmark: str) -> Benchmark:
    known: dict[str, Benchmark] = {"every round": EveryRound(), "on average": OnAverage()}
    if benchmark not in known:
        raise InputError("benchmark", f"{benchmark!r} is not known", f"Choose from {sorted(known)}")
    return known[benchmark]


# Functions of the module, so that a game can be sent to another process.


def _nearest(problem: problems.Problem, stream: streams.Stream, rounds: Rounds, seeds: Seeds) -> Hindsight:
    return nearest_to_mean(problem, stream, rounds, seeds=seeds)


def _fixed(
    problem: problems.Problem, stream: streams.Stream, benchmark: Benchmark | None, rounds: Rounds, seeds: Seeds
) -> Hindsight:
    return best_fixed(problem, stream, rounds, seeds=seeds, benchmark=benchmark)


def _power(problem: problems.Problem, stream: streams.Stream, rounds: Rounds, seeds: Seeds) -> Hindsight:
    return best_power(problem, stream, rounds, seeds=seeds)


def _logistic(problem: problems.Problem, stream: streams.ResampledRows, rounds: Rounds, seeds: Seeds) -> Hindsight:
    return best_fair_logistic(problem, stream, rounds, seeds=seeds, progress=None)
