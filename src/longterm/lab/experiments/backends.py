"""Backends that run jobs: processes of this machine, or any backend that joblib knows.

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
        loky (processes of this machine), or a name that joblib knows.
    workers : int, optional
        The number of workers; None: all cores, or all workers of the backend.
    register : str, optional
        A function to call first, as module:function: it registers the backend or connects to a cluster.
    """

    name: str = LOCAL
    workers: int | None = None
    register: str | None = None


@contextmanager
def open_backend(backend: Backend) -> Iterator[Callable[..., Iterator[Any]]]:
    """Yield ``do(function, arguments)``, which yields function(*a) for every a, in the order of completion."""
    joblib: Any = import_optional("joblib", "experiments need joblib", "experiments")
    generators: list[Any] = []

    def do(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        # One job per batch: each is stored as soon as it is finished.
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        generators.append(parallel(joblib.delayed(function)(*one) for one in arguments))
        return iter(generators[-1])

    with _joblib_config(joblib, backend), _quiet_tracker(), warnings.catch_warnings():
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


def _joblib_config(joblib: Any, backend: Backend) -> Any:
    if backend.register is not None:
        _register(backend.register)
    options = {"inner_max_num_threads": 1, "idle_worker_timeout": IDLE_SECONDS} if backend.name == LOCAL else {}
    try:
        return joblib.parallel_config(backend=backend.name, n_jobs=backend.workers or -1, **options)
    except (ValueError, ImportError) as error:
        what = f"{backend.name!r} cannot be used ({' '.join(str(error).split())})"
        remedy = "Choose loky, or register another first (--register module:function)"
        raise InputError("backend", what, remedy) from error


def _register(where: str) -> None:
    module, _, function = where.partition(":")
    try:
        getattr(import_module(module), function)()
    except (ImportError, AttributeError) as error:
        remedy = "Give module:function of something installed, ray.util.joblib:register_ray for example"
        raise InputError("register", f"{where!r} cannot be imported ({error})", remedy) from error
