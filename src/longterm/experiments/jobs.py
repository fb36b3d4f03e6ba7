"""What workers do. A job is a few words and numbers: the worker builds the problem itself and reads data by its name.

problem           what has to be known first: a budget to be chosen, how many rounds there are, the constants
bounds            the theorems' bounds of every curve
comparator, seed  x*_t at the kept rounds, warm-started along t
run, curve, seed  one learner over one sequence

**Where jobs run**: processes of this machine, a Dask cluster, or any backend that joblib knows.

A job that is lost with its worker is not lost for good: what is finished is on disk, and the same command goes on.
"""

from __future__ import annotations

import json
import os
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import hindsight
from longterm._arrays import FloatArray
from longterm.engines import run
from longterm.engines.trace import Trace
from longterm.errors import AssumptionWarning, InputError, LongtermError
from longterm.experiments.catalogue import Scenario, find_learner, find_problem
from longterm.experiments.result import LOGGED
from longterm.experiments.spec import ExperimentSpec, LearnerSpec, as_json, kept_rounds, logged_rounds, slug
from longterm.learners import Learner

LOCAL = "loky"
LOST = ("TerminatedWorkerError", "BrokenProcessPool", "KilledWorker")
"""What loky and Dask raise where a worker has died; by name, since neither is imported here."""
IDLE_SECONDS = 30
"""Workers whose experiment was killed go after this time."""


class Backend(NamedTuple):
    """Who does the work.

    Parameters
    ----------
    name : str
        loky (processes of this machine), dask, or a name that was registered with joblib.
    workers : int, optional
        How many; None: all cores, or all that the backend has.
    scheduler : str, optional
        The address of a Dask scheduler.
    register : str, optional
        A function that registers the backend first, as module:function (ray.util.joblib:register_ray).
    """

    name: str = LOCAL
    workers: int | None = None
    scheduler: str | None = None
    register: str | None = None


@contextmanager
def opened(backend: Backend) -> Iterator[Callable[..., Iterator[Any]]]:
    """``do(function, arguments)``, which yields function(*a) for every a as they are done there."""
    joblib = _joblib()
    given: list[Any] = []

    def do(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        # Jobs one by one: each is on disk as soon as it is done.
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        given.append(parallel(joblib.delayed(function)(*one) for one in arguments))
        return iter(given[-1])

    with _configured(joblib, backend), _quiet_tracker(), warnings.catch_warnings():
        # Between two jobs loky replaces a worker that has grown, as one that compiles does. Nothing is lost by it.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
        # After an interrupt joblib advises to ask for less.
        warnings.filterwarnings("ignore", message=".*have been cancelled|.*executed  but not used")
        stopped = False
        try:
            yield do
        except KeyboardInterrupt:
            stopped = True  # by the keyboard, or by SIGTERM: jobs under way are not waited for
            raise
        except Exception as error:
            if type(error).__name__ not in LOST:
                raise
            raise LongtermError(
                "a worker was lost (killed, or out of memory). What is finished is kept: run the same command again, "
                "with fewer workers if memory is short"
            ) from error
        finally:
            for results in given:
                results.close()
            if backend.name == LOCAL:  # the next experiment gets workers that know today's environment
                import_module("joblib.externals.loky").get_reusable_executor().shutdown(wait=True, kill_workers=stopped)


@contextmanager
def _quiet_tracker() -> Iterator[None]:
    """What an interrupt leaves of semaphores, loky's tracker removes, a process of its own: it need not warn of it."""
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [before, "ignore:resource_tracker:UserWarning"]))
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("PYTHONWARNINGS", None)
        else:
            os.environ["PYTHONWARNINGS"] = before


@contextmanager
def _configured(joblib: Any, backend: Backend) -> Iterator[None]:
    if backend.register is not None:
        _registered(backend.register)
    if backend.name == "dask":
        with _client(backend), joblib.parallel_config(backend="dask", n_jobs=backend.workers or -1):
            yield
        return
    if backend.scheduler is not None:
        raise InputError("scheduler", f"means nothing to {backend.name!r}", "Give --backend dask with it")
    options = {"inner_max_num_threads": 1, "idle_worker_timeout": IDLE_SECONDS} if backend.name == LOCAL else {}
    try:
        config = joblib.parallel_config(backend=backend.name, n_jobs=backend.workers or -1, **options)
    except (ValueError, ImportError) as error:
        remedy = "Choose loky or dask, or register it first (--register module:function)"
        raise InputError("backend", f"{backend.name!r} is not known to joblib", remedy) from error
    with config:
        yield


def _registered(where: str) -> None:
    module, _, function = where.partition(":")
    try:
        getattr(import_module(module), function)()
    except (ImportError, AttributeError) as error:
        remedy = "Give module:function of something installed, ray.util.joblib:register_ray for example"
        raise InputError("register", f"{where!r} cannot be imported ({error})", remedy) from error


@contextmanager
def _client(backend: Backend) -> Iterator[None]:
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise ImportError("backend 'dask' needs distributed: pip install distributed") from error
    if backend.scheduler is None:
        raise InputError("scheduler", "is missing", "Give the address of the Dask scheduler, tcp://host:8786")
    try:
        client = distributed.Client(backend.scheduler, timeout="10s")
    except (OSError, ValueError) as error:  # a TimeoutError is an OSError
        what = f"nothing answers at {backend.scheduler!r} ({error or type(error).__name__})"
        raise InputError("scheduler", what, "Start one with `dask scheduler`, and give its address") from error
    with client:
        yield


def _joblib() -> Any:
    try:
        return import_module("joblib")
    except ImportError as error:
        raise ImportError("experiments need joblib: pip install 'longterm[experiments]'") from error


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


def _bounds(spec: ExperimentSpec, job: Job, game: Scenario, rounds: NDArray[np.int64]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for curve in spec.curves:
        learner = learner_of(game, curve.learner, int(rounds[-1]), as_json(curve.parameters))
        for kind, theorem in (("bounds", learner.bound), ("printed_bounds", learner.bound_as_printed)):
            proved = theorem(game.problem, rounds)
            made.setdefault(kind, {})[curve.name] = {measure: values.tolist() for measure, values in proved.items()}
    return made


def _comparator(spec: ExperimentSpec, job: Job, game: Scenario, rounds: NDArray[np.int64]) -> dict[str, Any]:
    assert job.seed is not None
    best = hindsight.best(game.problem, game.stream, rounds, seeds=job.seed, benchmark=game.benchmark, progress=None)
    constraint = game.problem.constraint
    found = {"loss": best.loss, "gap": best.gap, "x": best.x[-1]}
    if not constraint.parameters:  # one that changes has no value at a decision alone
        found["constraint"] = np.max(constraint.values(best.x), axis=-1)
    return {"seed": job.seed, **{name: np.asarray(value).tolist() for name, value in found.items()}}


def _run(spec: ExperimentSpec, job: Job, game: Scenario, rounds: NDArray[np.int64]) -> dict[str, Any]:
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
def game_of(name: str, parameters: str) -> Scenario:
    """The game of this name, with parameters as JSON."""
    return find_problem(name).build(**_from_json(parameters))  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def learner_of(game: Scenario, name: str, rounds: int, parameters: str) -> Learner[Any]:
    """The learner of this name for a game, with parameters as JSON."""
    return find_learner(name).learner(game.problem, rounds, _from_json(parameters))


def _from_json(text: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(text)
    return made
