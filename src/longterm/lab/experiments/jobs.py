"""The jobs of an experiment, and the work that they share with those of an arena.

A job is a few words and numbers: the worker builds the problem and reads the data itself.

problem           parameters to be computed first (a chosen budget), the number of rounds, the constants
comparator, seed  x*_t at the recorded rounds
run, curve, seed  one learner on one sequence, with the bounds of its theorem

One call computes a batch of up to 20 sequences. Each sequence has a record of its own.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longterm import hindsight
from longterm._base.arrays import FloatArray
from longterm.catalogue.lookup import find_learner, find_problem
from longterm.catalogue.scenarios import Scenario
from longterm.errors import InputError
from longterm.hindsight.base import Hindsight
from longterm.lab.experiments.recorded_rounds import logged_rounds, recorded_rounds
from longterm.lab.experiments.result import LOGGED
from longterm.lab.experiments.spec import ExperimentSpec, LearnerSpec, as_json, slug
from longterm.learners import Learner
from longterm.play import run
from longterm.play.engines.trace import Trace

RECORDED = (
    "cumulative_loss",
    "signed_violation",
    "hard_violation",
    "squared_violation",
    "long_term_violation",
    "largest_violation",
)
"""The columns of a trace that a record has."""
SEEDS_IN_A_BATCH = 20
"""Sequences that one call plays. A call of 20 takes about three times as long as a call of one."""


@dataclass(frozen=True)
class Job:
    """A record to be made: an independent unit of work, or one of a batch."""

    kind: Literal["problem", "comparator", "run"]
    curve: LearnerSpec | None = None
    seed: int | None = None

    @property
    def stem(self) -> str:
        """The name of its file, without the suffix."""
        name = slug(self.curve.name) if self.curve is not None else self.kind
        return name if self.seed is None else f"{name}-{self.seed}"


Batch = tuple[Job, ...]
"""Jobs that one call computes: the same curve on several sequences."""


def seeds_of(spec: ExperimentSpec, prepared: Mapping[str, Any] | None) -> tuple[int, ...]:
    """Return the seeds to run: only the first where every seed gives the same sequence."""
    return spec.seeds[:1] if prepared is not None and prepared.get("same_for_all_seeds") else spec.seeds


def all_jobs(spec: ExperimentSpec, prepared: Mapping[str, Any] | None) -> list[Job]:
    """Return every job; `prepared` is the record of the first job, if there is one."""
    return [Job("problem"), *(job for batch in batches(spec, prepared) for job in batch)]


def batches(spec: ExperimentSpec, prepared: Mapping[str, Any] | None) -> list[Batch]:
    """Return the jobs after the first, in batches that depend on the specification alone, the longest first.

    An interrupted batch is computed again as a whole, so its numbers do not depend on the interrupt.
    """
    seeds = seeds_of(spec, prepared)
    parts = [seeds[k : k + SEEDS_IN_A_BATCH] for k in range(0, len(seeds), SEEDS_IN_A_BATCH)]
    comparators: list[Batch] = [(Job("comparator", seed=seed),) for seed in seeds]
    return comparators + [tuple(Job("run", curve, seed) for seed in part) for curve in spec.curves for part in parts]


def prepare(spec: ExperimentSpec) -> tuple[dict[str, Any], float]:
    """Return the record of the job `problem` and its seconds."""
    begin = time.perf_counter()
    with single_threaded():
        content = _prepare(spec)
    return {"job": Job("problem").stem, **content}, time.perf_counter() - begin


def work(spec: ExperimentSpec, batch: Batch, prepared: Mapping[str, Any]) -> list[tuple[dict[str, Any], float]]:
    """Return the records of a batch, each with its share of the time; `prepared` is the record of the job `problem`."""
    begin = time.perf_counter()
    with single_threaded():
        records = _compare(spec, batch, prepared) if batch[0].curve is None else _play(spec, batch, prepared)
    seconds = (time.perf_counter() - begin) / len(batch)
    return [({"job": job.stem, **record}, seconds) for job, record in zip(batch, records, strict=True)]


@contextmanager
def single_threaded() -> Iterator[None]:
    """Use one thread for linear algebra: workers do not compete, and the last bits do not depend on their number."""
    libraries = _libraries(len(sys.modules))
    with nullcontext() if libraries is None else libraries.limit(limits=1):
        yield


@lru_cache(maxsize=1)
def _libraries(modules: int) -> Any:
    """Return the loaded libraries for linear algebra. They are looked for again after modules were imported."""
    return None if find_spec("threadpoolctl") is None else import_module("threadpoolctl").ThreadpoolController()


def _prepare(spec: ExperimentSpec) -> dict[str, Any]:
    """Return the record of the job `problem`; raise if a learner cannot be built."""
    entry = find_problem(spec.problem.name)
    parameters: dict[str, Any] = dict(spec.problem.parameters)
    facts: dict[str, Any] = {}
    if entry.prepare is not None:
        found = entry.prepare(**parameters)
        parameters |= found.parameters
        facts |= found.facts
    scenario = scenario_of(spec.problem.name, as_json(parameters))
    rounds = spec.rounds if spec.rounds is not None else scenario.length
    if rounds is None:
        raise InputError("rounds", f"{spec.problem.name!r} has no length of its own", "Give the number of rounds")
    for curve in spec.curves:  # an error in one stops the experiment before the first run
        learner_of(scenario, curve, int(rounds))
    constants = scenario.problem.constants
    facts |= {
        **scenario.facts,
        "name": scenario.problem.name,
        "dimension": scenario.problem.dimension,
        "constraints": scenario.problem.constraint.count,
        "constants": asdict(constants) | {"gradient_bound": constants.gradient_bound},
    }
    prepared = {"parameters": parameters, "rounds": int(rounds), "facts": facts}
    return prepared if scenario.stream.depends_on_seed else {**prepared, "same_for_all_seeds": True}


def _compare(spec: ExperimentSpec, batch: Batch, prepared: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the records of the best decisions in hindsight."""
    rounds, scenario = _rounds_and_scenario(spec, prepared)
    best, record = comparator_record(scenario, rounds, [job.seed for job in batch])
    constraint = scenario.problem.constraint
    made = []
    for k, job in enumerate(batch):
        x = best.x[:, k]
        one: dict[str, Any] = {"seed": job.seed, "rounds": record["rounds"]}
        one |= as_lists({"loss": best.loss[:, k], "gap": best.gap[:, k], "x": x[-1]})
        if not constraint.parameters:  # a varying constraint has no value without its round
            one["constraint"] = np.max(constraint.values(x), axis=-1).tolist()
        made.append(one)
    return made


def _play(spec: ExperimentSpec, batch: Batch, prepared: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the records of runs. If a run stops, each sequence is played alone, and the others are kept."""
    rounds, scenario = _rounds_and_scenario(spec, prepared)
    curve = batch[0].curve
    assert curve is not None
    try:
        return _run(spec, curve, [job.seed for job in batch if job.seed is not None], scenario, rounds)
    except Exception as error:
        if len(batch) > 1:
            return [record for job in batch for record in _play(spec, (job,), prepared)]
        where = f"{curve.name} on {scenario.problem.name!r}, seed {batch[0].seed}"
        return [{"failed": f"{where}{describe_stop(error)}"}]


def _rounds_and_scenario(spec: ExperimentSpec, prepared: Mapping[str, Any]) -> tuple[NDArray[np.int64], Scenario]:
    rounds = recorded_rounds(prepared["rounds"], spec.record)
    return rounds, scenario_of(spec.problem.name, as_json(prepared["parameters"]))


def _run(
    spec: ExperimentSpec, curve: LearnerSpec, seeds: list[int], scenario: Scenario, rounds: NDArray[np.int64]
) -> list[dict[str, Any]]:
    assert spec.engine != "auto"  # chosen before the first job
    T = int(rounds[-1])
    learner = learner_of(scenario, curve, T)
    logged = logged_rounds(T) if spec.logged else rounds[:0]
    record = np.unique(np.concatenate([rounds, logged, logged - 1]))  # two consecutive sums give g in a round
    trace = run(
        scenario.problem,
        learner,
        scenario.stream,
        T,
        seeds=seeds,
        record=record[record > 0].tolist(),
        engine=spec.engine,
        progress=None,
    )
    index = np.searchsorted(trace.rounds, rounds)
    measures = {name: getattr(trace, name)[index] for name in RECORDED}
    measures |= {LOGGED: _logged_sums(trace, logged)[index]} if spec.logged else {}
    reports = {name: values[index] for name, values in trace.reports.items() if values.ndim == 2}
    broken = learner.broken_assumptions(scenario.problem)
    shared = {
        "bounds": as_lists(learner.bound(scenario.problem, rounds)),
        "printed_bounds": as_lists(learner.bound_as_printed(scenario.problem, rounds)),
        **({"warnings": broken} if broken else {}),
    }
    x = np.asarray(learner.ask(trace.state))
    return [
        {
            "curve": curve.name,
            "seed": seed,
            "rounds": rounds.tolist(),
            "measures": as_lists({name: values[:, k] for name, values in measures.items()}),
            "reports": as_lists({name: values[:, k] for name, values in reports.items()}),
            "x": x[k].tolist(),
            **shared,
        }
        for k, seed in enumerate(seeds)
    ]


def comparator_record(
    scenario: Scenario, rounds: Sequence[int] | NDArray[np.int64], seeds: Any, **options: Any
) -> tuple[Hindsight, dict[str, Any]]:
    """Return the best decisions in hindsight after each of the rounds, and their losses and gaps as lists."""
    best = hindsight.best(
        scenario.problem, scenario.stream, rounds, seeds=seeds, benchmark=scenario.benchmark, progress=None, **options
    )
    return best, {"rounds": [int(t) for t in rounds], **as_lists({"loss": best.loss, "gap": best.gap})}


def as_lists(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays as lists, for a record."""
    return {name: np.asarray(values).tolist() for name, values in arrays.items()}


def describe_stop(error: BaseException) -> str:
    """Return the round, the error and the line of code that stopped a run."""
    trace = getattr(error, "trace", None)
    at = f", round {trace.last_round + 1}" if isinstance(trace, Trace) else ""
    frames = traceback.extract_tb(error.__traceback__)
    line = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{at}: {type(error).__name__}: {error}{line}"


def _logged_sums(trace: Trace, logged: NDArray[np.int64]) -> FloatArray:
    """Return Σ g over the logged rounds up to each recorded round."""
    signed = trace.signed_violation
    sums = np.concatenate([signed, np.zeros_like(signed[:1])])  # index −1: before round 1
    places = np.searchsorted(trace.rounds, logged)
    single = np.zeros_like(signed)
    single[places] = sums[places] - sums[places - 1]
    return np.cumsum(single, axis=0)


# A worker runs many jobs of one experiment and reuses what it built and what the engine compiled.
@lru_cache(maxsize=2)
def scenario_of(name: str, parameters: str) -> Scenario:
    """Return the problem and stream of this name; the parameters are JSON."""
    return find_problem(name).build(**json.loads(parameters))  # type: ignore[no-any-return]


def learner_of(scenario: Scenario, spec: LearnerSpec, rounds: int) -> Learner[Any]:
    """Return the learner of a specification for a problem."""
    return _build_learner(scenario, spec.learner, rounds, as_json(spec.parameters))


@lru_cache(maxsize=64)
def _build_learner(scenario: Scenario, name: str, rounds: int, parameters: str) -> Learner[Any]:
    return find_learner(name).learner(scenario.problem, rounds, json.loads(parameters))
