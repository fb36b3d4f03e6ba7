"""The jobs of an experiment, and the work that they share with those of an arena.

A job is a few words and numbers: the worker builds the problem and reads the data itself.

problem           parameters to be computed first (a chosen budget), the number of rounds, the constants
comparator, seed  x*_t at the recorded rounds
run, curve, seed  one learner on one sequence, with the bounds of its theorem
"""

from __future__ import annotations

import json
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from longterm.errors import AssumptionWarning, InputError
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


@dataclass(frozen=True)
class Job:
    """An independent unit of work."""

    kind: Literal["problem", "comparator", "run"]
    curve: LearnerSpec | None = None
    seed: int | None = None

    @property
    def stem(self) -> str:
        """The name of its file, without the suffix."""
        name = slug(self.curve.name) if self.curve is not None else self.kind
        return name if self.seed is None else f"{name}-{self.seed}"


def seeds_of(spec: ExperimentSpec, prepared: Mapping[str, Any] | None) -> tuple[int, ...]:
    """Return the seeds to run: only the first where every seed gives the same sequence."""
    return spec.seeds[:1] if prepared is not None and prepared.get("same_for_all_seeds") else spec.seeds


def all_jobs(spec: ExperimentSpec, prepared: Mapping[str, Any] | None) -> list[Job]:
    """Return every job, the longest first; `prepared` is the record of the first job, if there is one."""
    seeds = seeds_of(spec, prepared)
    comparators = [Job("comparator", seed=seed) for seed in seeds]
    return [Job("problem"), *comparators, *(Job("run", curve, seed) for curve in spec.curves for seed in seeds)]


def work(spec: ExperimentSpec, job: Job, prepared: Mapping[str, Any] | None) -> tuple[dict[str, Any], float]:
    """Return the record of a job and its seconds; `prepared` is the record of the job `problem`."""
    begin = time.perf_counter()
    with single_threaded(), collect_assumptions() as noted:
        content = _prepare(spec) if prepared is None else _run_or_compare(spec, job, prepared)
    return {"job": job.stem, **content, **noted}, time.perf_counter() - begin


@contextmanager
def collect_assumptions() -> Iterator[dict[str, list[str]]]:
    """Yield a table that gets an entry "warnings" with the assumptions of theorems that did not hold."""
    noted: dict[str, list[str]] = {}
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always", AssumptionWarning)
        yield noted
    found = {str(one.message) for one in raised if issubclass(one.category, AssumptionWarning)}
    if found:
        noted["warnings"] = sorted(found)
    for one in raised:
        if not issubclass(one.category, AssumptionWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


@contextmanager
def single_threaded() -> Iterator[None]:
    """Use one thread for linear algebra: workers do not compete, and the last bits do not depend on their number."""
    if find_spec("threadpoolctl") is None:
        yield
        return
    with import_module("threadpoolctl").threadpool_limits(limits=1):
        yield


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


def _run_or_compare(spec: ExperimentSpec, job: Job, prepared: Mapping[str, Any]) -> dict[str, Any]:
    assert job.seed is not None
    rounds = recorded_rounds(prepared["rounds"], spec.record)
    scenario = scenario_of(spec.problem.name, as_json(prepared["parameters"]))
    if job.curve is None:
        return {"seed": job.seed, **_comparator(scenario, job.seed, rounds)}
    try:
        content = _run(spec, job.curve, job.seed, scenario, rounds)
    except Exception as error:
        where = f"{job.curve.name} on {scenario.problem.name!r}, seed {job.seed}"
        return {"failed": f"{where}{describe_stop(error)}"}
    return {"curve": job.curve.name, "seed": job.seed, "rounds": rounds.tolist(), **content}


def _comparator(scenario: Scenario, seed: int, rounds: NDArray[np.int64]) -> dict[str, Any]:
    best, record = comparator_record(scenario, rounds, seed)
    record["x"] = best.x[-1].tolist()
    constraint = scenario.problem.constraint
    if not constraint.parameters:  # a varying constraint has no value without its round
        record["constraint"] = np.max(constraint.values(best.x), axis=-1).tolist()
    return record


def _run(
    spec: ExperimentSpec, curve: LearnerSpec, seed: int, scenario: Scenario, rounds: NDArray[np.int64]
) -> dict[str, Any]:
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
        seeds=seed,
        record=record[record > 0].tolist(),
        engine=spec.engine,
        progress=None,
    )
    index = np.searchsorted(trace.rounds, rounds)
    measures = {name: getattr(trace, name) for name in RECORDED}
    measures |= {LOGGED: _logged_sums(trace, logged)} if spec.logged else {}
    return {
        "measures": as_lists({name: values[index] for name, values in measures.items()}),
        "reports": as_lists({name: values[index] for name, values in trace.reports.items() if values.ndim == 1}),
        "bounds": as_lists(learner.bound(scenario.problem, rounds)),
        "printed_bounds": as_lists(learner.bound_as_printed(scenario.problem, rounds)),
        "x": np.asarray(learner.ask(trace.state)).tolist(),
    }


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
    sums = np.append(trace.signed_violation, 0.0)  # index −1: before round 1
    places = np.searchsorted(trace.rounds, logged)
    single = np.zeros(len(trace.rounds))
    single[places] = sums[places] - sums[places - 1]
    return np.cumsum(single)


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
