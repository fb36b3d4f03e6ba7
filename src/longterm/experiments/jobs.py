"""What workers do. A job is a few words and numbers: the worker builds the problem itself and reads data by its name.

problem           what has to be known first: a budget to be chosen, how many rounds there are, the constants
bounds            the theorems' bounds of every curve
comparator, seed  x*_t at the kept rounds, warm-started along t
run, curve, seed  one learner over one sequence
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
from longterm.experiments.catalogue import Game, find_learner, find_problem
from longterm.experiments.result import LOGGED
from longterm.experiments.spec import ExperimentSpec, LearnerSpec, as_json, kept_rounds, logged_rounds, slug
from longterm.learners import Learner

TRACED = (
    "cumulative_loss",
    "signed_violation",
    "hard_violation",
    "squared_violation",
    "long_term_violation",
    "largest_violation",
)
"""What is kept of a trace."""


@dataclass(frozen=True)
class Job:
    """One thing to compute, on its own."""

    kind: Literal["problem", "bounds", "comparator", "run"]
    curve: LearnerSpec | None = None
    seed: int | None = None

    @property
    def stem(self) -> str:
        """The name of its file, without the ending."""
        name = slug(self.curve.name) if self.curve is not None else self.kind
        return name if self.seed is None else f"{name}-{self.seed}"


def jobs_of(spec: ExperimentSpec) -> list[Job]:
    """Every job but the first (`problem`), those that take longest first."""
    comparators = [Job("comparator", seed=seed) for seed in spec.seeds]
    runs = [Job("run", curve, seed) for curve in spec.curves for seed in spec.seeds]
    return [*comparators, *runs, Job("bounds")]


def work(spec: ExperimentSpec, job: Job, prepared: Mapping[str, Any] | None) -> tuple[dict[str, Any], float]:
    """The record of a job, and the seconds it took. `prepared` is the record of the first job."""
    begin = time.perf_counter()
    with one_thread(), assumptions_noted() as noted:
        if job.kind == "problem":
            content = _prepare(spec)
        elif prepared is None:
            raise InputError("prepared", "is missing", "Run the job 'problem' first")
        else:
            rounds = kept_rounds(prepared["rounds"], spec.record)
            game = game_of(spec.problem.name, as_json(prepared["parameters"]))
            try:
                content = {"rounds": rounds.tolist()} | _WORK[job.kind](spec, job, game, rounds)
            except Exception as error:
                if job.kind != "run" or job.curve is None:
                    raise
                where = f"{job.curve.name} on {game.problem.name!r}, seed {job.seed}{where_it_stopped(error)}"
                content = {"failed": where}
    return {"job": job.stem, **content, **noted}, time.perf_counter() - begin


@contextmanager
def assumptions_noted() -> Iterator[dict[str, list[str]]]:
    """What a learner's theorem does not cover, as an entry of the record: the run goes on, and its record says so."""
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
def one_thread() -> Iterator[None]:
    """One thread for linear algebra: workers would get in each other's way, and the last bits would differ."""
    if find_spec("threadpoolctl") is None:
        yield
        return
    with import_module("threadpoolctl").threadpool_limits(limits=1):
        yield


def _prepare(spec: ExperimentSpec) -> dict[str, Any]:
    entry = find_problem(spec.problem.name)
    parameters: dict[str, Any] = dict(spec.problem.parameters)
    facts: dict[str, Any] = {}
    if entry.prepare is not None:
        found = entry.prepare(**parameters)
        parameters |= found.parameters
        facts |= found.facts
    game = game_of(spec.problem.name, as_json(parameters))
    rounds = spec.rounds if spec.rounds is not None else game.length
    if rounds is None:
        raise InputError("rounds", f"{spec.problem.name!r} has no length of its own", "Say how many rounds to play")
    for curve in spec.curves:  # what is wrong with one is said before the first has been run
        learner_of(game, curve.learner, int(rounds), as_json(curve.parameters))
    constants = game.problem.constants
    facts |= {
        **game.facts,
        "name": game.problem.name,
        "dimension": game.problem.dimension,
        "constraints": game.problem.constraint.count,
        "constants": asdict(constants) | {"gradient_bound": constants.gradient_bound},
    }
    return {"parameters": parameters, "rounds": int(rounds), "facts": facts}


def _bounds(spec: ExperimentSpec, job: Job, game: Game, rounds: NDArray[np.int64]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for curve in spec.curves:
        learner = learner_of(game, curve.learner, int(rounds[-1]), as_json(curve.parameters))
        for kind, theorem in (("bounds", learner.bound), ("printed_bounds", learner.bound_as_printed)):
            proved = theorem(game.problem, rounds)
            made.setdefault(kind, {})[curve.name] = {measure: values.tolist() for measure, values in proved.items()}
    return made


def _comparator(spec: ExperimentSpec, job: Job, game: Game, rounds: NDArray[np.int64]) -> dict[str, Any]:
    assert job.seed is not None
    best = hindsight.best(game.problem, game.stream, rounds, seeds=job.seed, benchmark=game.benchmark, progress=None)
    constraint = game.problem.constraint
    found = {"loss": best.loss, "gap": best.gap, "x": best.x[-1]}
    if not constraint.parameters:  # one that changes has no value at a decision alone
        found["constraint"] = np.max(constraint.values(best.x), axis=-1)
    return {"seed": job.seed, **{name: np.asarray(value).tolist() for name, value in found.items()}}


def _run(spec: ExperimentSpec, job: Job, game: Game, rounds: NDArray[np.int64]) -> dict[str, Any]:
    assert job.curve is not None
    assert job.seed is not None
    assert spec.engine != "auto"  # decided once, before the first job
    T = int(rounds[-1])
    learner = learner_of(game, job.curve.learner, T, as_json(job.curve.parameters))
    logged = logged_rounds(T) if spec.logged else rounds[:0]
    record = np.unique(np.concatenate([rounds, logged, logged - 1]))  # two sums in a row give g of a round
    trace = run(
        game.problem,
        learner,
        game.stream,
        T,
        seeds=job.seed,
        record=record[record > 0].tolist(),
        engine=spec.engine,
        progress=None,
    )
    kept = np.searchsorted(trace.rounds, rounds)
    measures = measures_of(trace) | ({LOGGED: _logged_sums(trace, logged)} if spec.logged else {})
    return {
        "curve": job.curve.name,
        "seed": job.seed,
        "measures": {name: values[kept].tolist() for name, values in measures.items()},
        "reports": {name: values[kept].tolist() for name, values in trace.reports.items() if values.ndim == 1},
        "x": np.asarray(learner.ask(trace.state)).tolist(),
    }


def where_it_stopped(error: BaseException) -> str:
    """The round that a run got to, the error, and the line of code that raised it."""
    trace = getattr(error, "trace", None)
    at = f", round {trace.last_round + 1}" if isinstance(trace, Trace) else ""
    frames = traceback.extract_tb(error.__traceback__)
    line = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{at}: {type(error).__name__}: {error}{line}"


def measures_of(trace: Trace) -> dict[str, FloatArray]:
    """The sums of a run at its recorded rounds."""
    return {name: getattr(trace, name) for name in TRACED}


def _logged_sums(trace: Trace, logged: NDArray[np.int64]) -> FloatArray:
    """At each recorded round, Σ g over the logged rounds so far."""
    sums = np.append(trace.signed_violation, 0.0)  # at the place −1: before round 1
    places = np.searchsorted(trace.rounds, logged)
    single = np.zeros(len(trace.rounds))
    single[places] = sums[places] - sums[places - 1]
    return np.cumsum(single)


_WORK = {"bounds": _bounds, "comparator": _comparator, "run": _run}


# A worker does many jobs of one experiment: what it built, and what the engine compiled for it, is used again.
@lru_cache(maxsize=2)
def game_of(name: str, parameters: str) -> Game:
    """The game of this name, with parameters as JSON."""
    return find_problem(name).build(**_from_json(parameters))  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def learner_of(game: Game, name: str, rounds: int, parameters: str) -> Learner[Any]:
    """The learner of this name for a game, with parameters as JSON."""
    return find_learner(name).learner(game.problem, rounds, _from_json(parameters))


def _from_json(text: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(text)
    return made
