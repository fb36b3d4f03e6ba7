"""Where jobs run: processes of this machine, a Dask cluster, or any backend that joblib knows.

A job that is lost with its worker is not lost for good: what is finished is on disk, and the same command goes on.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

from longterm.errors import InputError, LongtermError

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
