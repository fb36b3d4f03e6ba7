"""Backends that run jobs: processes of this machine, a Dask cluster, or any backend that joblib knows.

Finished jobs are on disk at once. After a lost worker or an interrupt the same command continues from there.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

from longterm.errors import InputError, LongtermError, import_optional

LOCAL = "loky"
LOST_WORKER_ERRORS = ("TerminatedWorkerError", "BrokenProcessPool", "KilledWorker")
"""Names of the errors of loky and Dask for a dead worker; neither package is imported here."""
IDLE_SECONDS = 10
"""Workers end after this time without work, for example after a kill of the main process."""


class Backend(NamedTuple):
    """A joblib backend and its workers.

    Parameters
    ----------
    name : str
        loky (processes of this machine), dask, or a name that was registered with joblib.
    workers : int, optional
        The number of workers; None: all cores, or all workers of the backend.
    scheduler : str, optional
        The address of a Dask scheduler.
    register : str, optional
        A function that registers the backend with joblib, as module:function (ray.util.joblib:register_ray).
    """

    name: str = LOCAL
    workers: int | None = None
    scheduler: str | None = None
    register: str | None = None


@contextmanager
def open_backend(backend: Backend) -> Iterator[Callable[..., Iterator[Any]]]:
    """Yield ``do(function, arguments)``, which yields function(*a) for every a, in the order of completion."""
    joblib = _joblib()
    generators: list[Any] = []

    def do(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        # One job per batch: each is stored as soon as it is finished.
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        generators.append(parallel(joblib.delayed(function)(*one) for one in arguments))
        return iter(generators[-1])

    with _configure(joblib, backend), _quiet_tracker(), warnings.catch_warnings():
        # Between two jobs loky replaces a worker whose memory has grown, as compiling does. No job is lost.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
        # joblib warns about the jobs that an interrupt cancelled.
        warnings.filterwarnings("ignore", message=".*have been cancelled|.*executed  but not used")
        stopped = False
        try:
            yield do
        except KeyboardInterrupt:
            stopped = True  # jobs in progress are not waited for
            raise
        except Exception as error:
            if type(error).__name__ not in LOST_WORKER_ERRORS:
                raise
            raise LongtermError(
                "a worker was lost (killed, or out of memory). Finished jobs are kept: run the same command again, "
                "with fewer workers if memory is short"
            ) from error
        finally:
            for results in generators:
                results.close()
            if backend.name == LOCAL:  # the next experiment starts workers with the current environment
                import_module("joblib.externals.loky").get_reusable_executor().shutdown(wait=True, kill_workers=stopped)


@contextmanager
def _quiet_tracker() -> Iterator[None]:
    """Silence the warnings of loky's tracker process, which removes the semaphores of an interrupted run."""
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
def _configure(joblib: Any, backend: Backend) -> Iterator[None]:
    """Make joblib use the backend."""
    if backend.register is not None:
        _register(backend.register)
    if backend.name == "dask":
        with _dask_client(backend), joblib.parallel_config(backend="dask", n_jobs=backend.workers or -1):
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


def _register(where: str) -> None:
    module, _, function = where.partition(":")
    try:
        getattr(import_module(module), function)()
    except (ImportError, AttributeError) as error:
        remedy = "Give module:function of something installed, ray.util.joblib:register_ray for example"
        raise InputError("register", f"{where!r} cannot be imported ({error})", remedy) from error


@contextmanager
def _dask_client(backend: Backend) -> Iterator[None]:
    """Connect to the Dask scheduler."""
    distributed: Any = import_optional("distributed", "backend 'dask' needs distributed", "dask")
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
    return import_optional("joblib", "experiments need joblib", "experiments")
