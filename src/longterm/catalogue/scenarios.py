"""Ready-made scenarios: a problem with its stream.

Each builder takes a few plain parameters, so that a specification or an arena can refer to a scenario by name:

    scenario = routing()
    trace = run(scenario.problem, learner, scenario.stream, 1000, seeds=range(10))
    best = hindsight.best(
        scenario.problem, scenario.stream, trace.rounds, seeds=range(10), benchmark=scenario.benchmark
    )
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from longterm import problems
from longterm._base.arrays import FloatArray
from longterm._base.display import ReprMixin
from longterm._base.messages import did_you_mean
from longterm.data import load, load_elec2, load_table
from longterm.data.encoder import Missing
from longterm.data.labelled import Labelled
from longterm.data.named_rows import load_mapped
from longterm.errors import InputError
from longterm.problems import streams
from longterm.problems.benchmarks import Benchmark, EveryRound, InExpectation, OnAverage
from longterm.problems.constraints import Affine, L2Budget, VaryingAffine
from longterm.problems.losses import Linear, SquaredDistance
from longterm.problems.named import adversarial
from longterm.problems.named.network import SMALL_NETWORK
from longterm.problems.named.servers import mean_of_arrivals, speeds_of_servers
from longterm.problems.sets import Ball, Box, Simplex
from longterm.problems.streams.costs import SwitchingConstraints
from longterm.problems.streams.points import NoisyPermutations, PairwiseSigns
from longterm.problems.streams.resources import DriftingCosts, EdgeLatencies, JobsAndPrices
from longterm.problems.streams.turning import TurningHalfPlane, TurningTargets

PRICE_UNIT = 10.0
"""ELEC2's prices are in [0, 1] with a median below 0.05. This factor brings them near the devices' utilities."""
FEMALE, MALE = 71, 72
"""Columns of a9a, numbered from 0."""


@dataclass(frozen=True, eq=False)
class Scenario(ReprMixin):
    """Try a learner on a ready-made problem: the problem, its stream and what to compare with.

    Parameters
    ----------
    problem : Problem
        The enclosing set, the losses and the constraint.
    stream : Stream
        The rounds.
    length : int, optional
        The default number of rounds, for example the rows of a data set.
    facts : Mapping[str, Any]
        Parameters to report with the results.
    benchmark : Benchmark, optional
        The comparator set for a constraint that changes.
    path : float, optional
        The path length Σ ‖u_t − u_{t−1}‖ of a moving comparator, where no fixed decision is a sensible target.
    """

    problem: problems.Problem
    stream: streams.Stream
    length: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    benchmark: Benchmark | None = None
    path: float | None = None


def doubly_stochastic(size: int = 8, enclosing: Literal["ball", "rows"] = "ball") -> Scenario:
    """Return doubly-stochastic matrices near random permutation matrices, Figures 1 and 2 of the paper."""
    problem, stream = problems.doubly_stochastic(size, enclosing), streams.RandomPermutations(size)
    return Scenario(problem, stream, facts={"size": size})


def budgeted_logistic(
    data: str = "sample",
    budget: float = 0.3,
    l1: float = 1.0,
    l2: float = 1.0,
    label: str = "",
    drop: str = "",
    scale: bool = True,
    missing: Missing = "refuse",
) -> Scenario:
    """Return logistic regression with l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ budget on resampled rows, Figures 3 and 4 of the paper.

    For a table of your own, `label` names the label column and `drop` the columns to leave out, separated by commas.
    `scale` divides columns by their largest absolute values. `missing` selects the treatment of empty cells.
    """
    rows = labelled_rows(data, label, drop, scale, missing)
    problem = problems.budgeted_logistic(rows.features, budget, l1=l1, l2=l2)
    facts = {"data": data, "rows": len(rows.labels), "budget": budget}
    return Scenario(problem, streams.ResampledRows(rows.features, rows.labels), len(rows.labels), facts)


def labelled_rows(
    data: str, label: str = "", drop: str = "", scale: bool = True, missing: Missing = "refuse"
) -> Labelled:
    """Return the rows of a data set or of a file. Columns are named as on the command line: "customer,date"."""
    return load_mapped(data, label or None, drop=_split_names(drop), scale=scale, missing=missing)


def _split_names(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def covariance(size: int = 8, floor: float = 0.1, unit_diagonal: bool = True, decay: float = 0.9) -> Scenario:
    """Return correlation matrices with λ_min ≥ floor, estimated from pairs measured at different times."""
    problem = problems.covariance(size, floor, unit_diagonal=unit_diagonal)
    return Scenario(problem, PairwiseSigns(size, decay), facts={"size": size, "floor": floor})


def consensus(agents: int = 5, spread: float = 0.2) -> Scenario:
    """Return agents on a ring with different targets in the plane who must agree on one point."""
    ring = [(i, (i + 1) % agents) for i in range(agents)]
    problem = problems.consensus(agents, ring, Box.cube(2, -1.0, 1.0))
    angles = 2 * np.pi * np.arange(agents) / agents
    means = 0.5 * np.stack([np.cos(angles), np.abs(np.sin(angles))], axis=1).ravel()
    return Scenario(problem, streams.NoisyTargets(means, spread), facts={"agents": agents})


def expert_advice(experts: int = 8, cap: float = 0.4, spread: float = 0.3) -> Scenario:
    """Return weights on experts, where the two best experts together may get at most `cap`."""
    means = np.linspace(0.3, 0.7, experts)
    capped = Affine((np.arange(experts) < 2)[None, :].astype(np.float64), np.array([cap]))
    longest = float(np.linalg.norm(means + spread))
    problem = problems.Problem(Simplex(experts), Linear(experts, longest), capped, name="expert advice with a cap")
    return Scenario(problem, streams.NoisyTargets(means, spread), facts={"experts": experts, "cap": cap})


def noisy_doubly_stochastic(size: int = 8, noise: float = 0.5, hidden: float = 0.5) -> Scenario:
    """Return doubly-stochastic matrices near permutation matrices with constant and random errors.

    Examples
    --------
    >>> from longterm import hindsight
    >>> from longterm.catalogue import scenarios
    >>> scenario = scenarios.noisy_doubly_stochastic(3)
    >>> best = hindsight.best(scenario.problem, scenario.stream, [10, 100], seeds=range(2))
    >>> best.x.shape, bool(best.relative_gap.max() < 1e-12)
    ((2, 2, 9), True)
    """
    problem, stream = problems.noisy_doubly_stochastic(size, noise), NoisyPermutations(size, noise, hidden)
    return Scenario(problem, stream, facts={"size": size, "noise": noise})


def online_linear_program(rounds: int = 5000, instance: int = 0, dimension: int = 2, constraints: int = 3) -> Scenario:
    """Return Yu and Neely's online linear program with drifting costs."""
    problem = problems.online_linear_program(rounds, instance=instance, dimension=dimension, constraints=constraints)
    return Scenario(problem, DriftingCosts(dimension, rounds), rounds, {"instance": instance})


def power_allocation(devices: int = 5) -> Scenario:
    """Return power allocation at the prices of New South Wales (ELEC2), one window for each seed."""
    prices = PRICE_UNIT * load_elec2().nsw_price
    problem, stream = problems.power_allocation(prices, devices), streams.Windows(prices)
    return Scenario(problem, stream, len(prices), {"data": "elec2", "devices": devices})


def routing() -> Scenario:
    """Return the flow of two demands over nine edges with changing latencies and long-term capacities."""
    problem, stream = problems.routing(SMALL_NETWORK), EdgeLatencies(SMALL_NETWORK.incidence)
    return Scenario(problem, stream, facts={"edges": len(SMALL_NETWORK.capacities)})


def fair_logistic(
    data: str = "a9a",
    budget: float = 10.0,
    limit: float = 0.01,
    sensitive: str = "",
    label: str = "",
    drop: str = "",
    scale: bool = True,
    missing: Missing = "refuse",
) -> Scenario:
    """Return logistic regression under a budget with the score's covariance with a sensitive column within ±limit.

    For a table of your own, `sensitive` names that column, which has numbers or two values and is not a feature.
    `label`, `drop`, `scale` and `missing` are as in `budgeted_logistic`. In a9a it is Female, and Male is left out.
    """
    if data in ("a9a", "a9a.t"):
        if sensitive or label or drop:
            what = f"{data} has no named columns; its sensitive column is always Female"
            raise InputError("sensitive, label, drop", what, "Leave these arguments out, or give a table of your own")
        table = load(data)
        every, name = table.features.toarray(), "Female"
        attribute, others = every[:, FEMALE], np.delete(every, [FEMALE, MALE], axis=1)
    else:
        if not sensitive:
            raise InputError("sensitive", f"{data} has no known sensitive column", "Name it, for example sensitive=sex")
        table = load_table(data, label or None, drop=_split_names(drop), scale=scale, missing=missing)
        attribute, others, name = _split_sensitive(table, sensitive)
    problem = problems.fair_logistic(others, attribute, budget, limit)
    facts = {"data": data, "sensitive": name, "rows": len(others), "budget": budget, "limit": limit}
    return Scenario(problem, streams.ResampledRows(others, table.signs), len(others), facts)


def _split_sensitive(table: Labelled, sensitive: str) -> tuple[FloatArray, FloatArray, str]:
    """Return the sensitive column, the features without it, and the meaning of 1 in it."""
    columns = list(table.columns)
    places = [k for k, name in enumerate(columns) if name == sensitive or name.startswith(f"{sensitive}=")]
    if not places:
        known = sorted({name.partition("=")[0] for name in columns})
        what = f"{table.name} has no column {sensitive!r}{did_you_mean(sensitive, known)}"
        raise InputError(
            "sensitive", what, "Choose from [" + ", ".join(map(repr, known[:12])) + (", …]" if len(known) > 12 else "]")
        )
    if len(places) > 2:
        what = f"column {sensitive!r} has {len(places)} values"
        raise InputError("sensitive", what, "Give a column of numbers or of two values")
    return table.features[:, places[-1]], np.delete(table.features, places, axis=1), columns[places[-1]]


def switching_constraints(
    dimension: int = 3,
    constraints: int = 6,
    instance: int = 0,
    benchmark: Literal["every round", "on average"] = "every round",
) -> Scenario:
    """Return an adversary that switches the constraint and pushes across the current one."""
    pool = adversarial.random_half_spaces(dimension, constraints, instance=instance)
    problem, stream = adversarial.switching_constraints(pool), SwitchingConstraints(pool)
    return Scenario(problem, stream, facts={"benchmark": benchmark}, benchmark=_find_benchmark(benchmark, OF_ROUNDS))


def job_scheduling(
    servers: int = 12, benchmark: Literal["every round", "on average", "in expectation"] = "in expectation"
) -> Scenario:
    """Return servers that must complete random jobs on average, at prices that follow the time of day."""
    problem = problems.job_scheduling(servers)
    stream = JobsAndPrices(speeds_of_servers(servers))
    known = {**OF_ROUNDS, "in expectation": InExpectation(mean_of_arrivals(servers))}
    return Scenario(problem, stream, facts={"benchmark": benchmark}, benchmark=_find_benchmark(benchmark, known))


def turning_half_plane(turns: float = 2.0, limit: float = 0.3, rounds: int = 4096, noise: float = 0.3) -> Scenario:
    """Return a half-plane that rotates in the disc, with costs that push across its edge."""
    problem = problems.Problem(Ball(2), Linear(2), VaryingAffine(2, 1, 1.0, limit), name="a half-plane that turns")
    stream = TurningHalfPlane(turns, limit, rounds, noise)
    return Scenario(problem, stream, rounds, {"turns": turns}, path=2 * np.pi * turns * limit)


def drifting_targets(dimension: int = 5, turns: float = 3.0, budget: float = 0.5, rounds: int = 4096) -> Scenario:
    """Return targets that move on a circle while the decision must stay in a ball about the origin."""
    unit_ball = Ball(dimension, radius=1.0)
    loss = SquaredDistance(dimension, targets=Ball(dimension, radius=1.3))
    problem = problems.Problem(unit_ball, loss, L2Budget(dimension, budget=budget), name="targets that go round")
    stream = TurningTargets(dimension, turns, rounds)
    return Scenario(problem, stream, rounds, {"turns": turns}, path=2 * np.pi * turns * budget)


OF_ROUNDS: Mapping[str, Benchmark] = MappingProxyType({"every round": EveryRound(), "on average": OnAverage()})


def _find_benchmark(benchmark: str, known: Mapping[str, Benchmark]) -> Benchmark:
    if benchmark not in known:
        raise InputError("benchmark", f"{benchmark!r} is not known", f"Choose from {sorted(known)}")
    return known[benchmark]


SCENARIOS: Mapping[str, Callable[..., Scenario]] = MappingProxyType(
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
"""All builders by name."""
