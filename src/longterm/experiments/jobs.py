"""The jobs of an experiment, as workers run them.

A job is a few words and numbers: the worker builds the problem and reads the data itself.

problem           parameters to be computed first (a chosen budget), the number of rounds, the constants
bounds            the theorems' bounds of every curve
comparator, seed  x*_t at the recorded rounds
run, curve, seed  one learner on one sequence
"""

from __future__ import annotations

import json
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping
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
from longterm._arrays import FloatArray
from longterm.engines import run
from longterm.engines.trace import Trace
from longterm.errors import AssumptionWarning, InputError
from longterm.experiments.catalogue import find_learner, find_problem
from longterm.experiments.result import LOGGED
from longterm.experiments.rounds import logged_rounds, recorded_rounds
from longterm.experiments.spec import ExperimentSpec, LearnerSpec, as_json, slug
from longterm.learners import Learner
from longterm.problems.scenarios import Scenario

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

    kind: Literal["problem", "bounds", "comparator", "run"]
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
    runs = [Job("run", curve, seed) for curve in spec.curves for seed in seeds]
    return [Job("problem"), *comparators, *runs, Job("bounds")]


def work(spec: ExperimentSpec, job: Job, prepared: Mapping[str, Any] | None) -> tuple[dict[str, Any], float]:
    """Return the record of a job and its seconds; `prepared` is the record of the job `problem`."""
    begin = time.perf_counter()
    with single_threaded(), collect_assumptions() as noted:
        if job.kind == "problem":
            content = _prepare(spec)
        elif prepared is None:
            raise InputError("prepared", "is missing", "Run the job 'problem' first")
        else:
            rounds = recorded_rounds(prepared["rounds"], spec.record)
            scenario = scenario_of(spec.problem.name, as_json(prepared["parameters"]))
            try:
                content = {"rounds": rounds.tolist()} | _WORK[job.kind](spec, job, scenario, rounds)
            except Exception as error:
                if job.kind != "run" or job.curve is None:
                    raise
                where = f"{job.curve.name} on {scenario.problem.name!r}, seed {job.seed}"
                content = {"failed": f"{where}{describe_stop(error)}"}
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
        learner_of(scenario, curve.learner, int(rounds), as_json(curve.parameters))
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


def _bounds(spec: ExperimentSpec, job: Job, scenario: Scenario, rounds: NDArray[np.int64]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for curve in spec.curves:
        learner = learner_of(scenario, curve.learner, int(rounds[-1]), as_json(curve.parameters))
        for kind, theorem in (("bounds", learner.bound), ("printed_bounds", learner.bound_as_printed)):
            proved = theorem(scenario.problem, rounds)
            found.setdefault(kind, {})[curve.name] = {measure: values.tolist() for measure, values in proved.items()}
    return found


def _comparator(spec: ExperimentSpec, job: Job, scenario: Scenario, rounds: NDArray[np.int64]) -> dict[str, Any]:
    assert job.seed is not None
    best = hindsight.best(
        scenario.problem, scenario.stream, rounds, seeds=job.seed, benchmark=scenario.benchmark, progress=None
    )
    constraint = scenario.problem.constraint
    found = {"loss": best.loss, "gap": best.gap, "x": best.x[-1]}
    if not constraint.parameters:  # a varying constraint has no value without its round
        found["constraint"] = np.max(constraint.values(best.x), axis=-1)
    return {"seed": job.seed, **{name: np.asarray(value).tolist() for name, value in found.items()}}


def _run(spec: ExperimentSpec, job: Job, scenario: Scenario, rounds: NDArray[np.int64]) -> dict[str, Any]:
    assert job.curve is not None
    assert job.seed is not None
    assert spec.engine != "auto"  # chosen before the first job
    T = int(rounds[-1])
    learner = learner_of(scenario, job.curve.learner, T, as_json(job.curve.parameters))
    logged = logged_rounds(T) if spec.logged else rounds[:0]
    record = np.unique(np.concatenate([rounds, logged, logged - 1]))  # two consecutive sums give g in a round
    trace = run(
        scenario.problem,
        learner,
        scenario.stream,
        T,
        seeds=job.seed,
        record=record[record > 0].tolist(),
        engine=spec.engine,
        progress=None,
    )
    index = np.searchsorted(trace.rounds, rounds)
    measures = measures_of(trace) | ({LOGGED: _logged_sums(trace, logged)} if spec.logged else {})
    return {
        "curve": job.curve.name,
        "seed": job.seed,
        "measures": {name: values[index].tolist() for name, values in measures.items()},
        "reports": {name: values[index].tolist() for name, values in trace.reports.items() if values.ndim == 1},
        "x": np.asarray(learner.ask(trace.state)).tolist(),
    }


def describe_stop(error: BaseException) -> str:
    """Return the round, the error and the line of code that stopped a run."""
    trace = getattr(error, "trace", None)
    at = f", round {trace.last_round + 1}" if isinstance(trace, Trace) else ""
    frames = traceback.extract_tb(error.__traceback__)
    line = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{at}: {type(error).__name__}: {error}{line}"


def measures_of(trace: Trace) -> dict[str, FloatArray]:
    """Return the totals of a run at its recorded rounds."""
    return {name: getattr(trace, name) for name in RECORDED}


def _logged_sums(trace: Trace, logged: NDArray[np.int64]) -> FloatArray:
    """Return Σ g over the logged rounds up to each recorded round."""
    sums = np.append(trace.signed_violation, 0.0)  # index −1: before round 1
    places = np.searchsorted(trace.rounds, logged)
    single = np.zeros(len(trace.rounds))
    single[places] = sums[places] - sums[places - 1]
    return np.cumsum(single)


_WORK = {"bounds": _bounds, "comparator": _comparator, "run": _run}


# A worker runs many jobs of one experiment and reuses what it built and what the engine compiled.
@lru_cache(maxsize=2)
def scenario_of(name: str, parameters: str) -> Scenario:
    """Return the problem and stream of this name; the parameters are JSON."""
    return find_problem(name).build(**_from_json(parameters))  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def learner_of(scenario: Scenario, name: str, rounds: int, parameters: str) -> Learner[Any]:
    """Return the learner of this name for a problem; the parameters are JSON."""
    return find_learner(name).learner(scenario.problem, rounds, _from_json(parameters))


def _from_json(text: str) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(text)
    return table
