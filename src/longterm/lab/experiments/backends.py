"""Backends that run jobs: this process, processes of this machine, or any `concurrent.futures.Executor`.

Dask, Ray, MPI and Slurm have executors. Finished jobs are on disk at once. After a lost worker or an interrupt the
same command continues from there.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from typing import Any, NamedTuple

from longterm._base.extras import import_optional
from longterm.errors import AssumptionWarning, InputError, LongtermError

LOST_WORKER_ERRORS = ("KilledWorker", "WorkerCrashedError", "NodeDiedError", "OutOfMemoryError")
"""Names of the errors of Dask and Ray for a dead worker. Neither package is imported here."""
IDLE_SECONDS = 10
"""Workers end after this time without work."""
STARTS = 3
"""Processes of this machine are started so often before a lost worker stops the command."""
MOST_AT_ONCE = 1000
"""An executor that is given has at most so many jobs at a time."""
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB", "NUMEXPR")}


class Backend(NamedTuple):
    """Workers for the jobs of an experiment or an arena.

    Parameters
    ----------
    workers : int, optional
        The number of processes on this machine. 1: this process itself. Default: one for each core.
    executor : concurrent.futures.Executor or str, optional
        An executor to use instead, or ``module:function`` of a function that returns one. An executor that is given
        stays open; one that a function returns is shut down at the end.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from longterm.lab import Backend
    >>> Backend(workers=4), Backend(executor="longterm.compat.ray:executor").workers
    (Backend(workers=4, executor=None), None)
    """

    workers: int | None = None
    executor: Executor | str | None = None


Do = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], Iterator[Any]]


@contextmanager
def open_backend(backend: Backend) -> Iterator[Do]:
    """Yield ``do(function, arguments)``, which yields function(*a) for every a, in the order of completion."""
    running: list[Generator[Any]] = []
    pool = None if backend == Backend(workers=1) else _Pool(backend)

    def do(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        made = (_quietly(function, *one) for one in arguments) if pool is None else pool.results(function, arguments)
        running.append(made)
        return made

    with _quiet_tracker():
        try:
            yield do
        except KeyboardInterrupt:
            if pool is not None:
                pool.close(wait=False)
            raise
        except Exception as error:
            if not _is_lost(error):
                raise
            raise LongtermError(
                "a worker was lost (killed, or out of memory). Finished jobs are kept: run the same command again, "
                "with fewer workers if memory is short"
            ) from error
        finally:
            for results in running:
                results.close()
            if pool is not None:
                pool.close(wait=True)


class _Pool:
    """An executor that starts again after a lost worker, if it is of this machine."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.executor: Any = _open(backend)

    def results(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> Generator[Any]:
        """Yield the results in the order of completion. A cluster keeps a result as long as its future lives."""
        left, most = list(arguments), self._most_at_once()
        for start in range(STARTS):
            waiting, futures = iter(list(left)), dict[Future[Any], tuple[Any, ...]]()
            try:
                while True:
                    for one in islice(waiting, most - len(futures)):
                        futures[self.executor.submit(_on_worker, function, *one)] = one
                    if not futures:
                        return
                    done = wait(futures, return_when=FIRST_COMPLETED).done
                    while done:
                        future = done.pop()
                        result = future.result()
                        left.remove(futures.pop(future))
                        del future
                        yield result
            except KeyboardInterrupt:
                self.close(wait=False)  # before the futures are cancelled: loky's thread fails on a cancelled one
                raise
            except Exception as error:
                if not _is_lost(error) or self.backend.executor is not None or start == STARTS - 1:
                    raise _of_worker(error) from error
                self.close(wait=True)
                self.executor = _open(self.backend)
            finally:
                for future in futures:
                    future.cancel()

    def _most_at_once(self) -> int:
        """Return how many jobs wait in the executor at a time.

        An interrupt kills the workers of this machine. Loky's thread then fails if a job was not yet passed on to them.
        """
        if self.backend.executor is not None:
            return MOST_AT_ONCE
        return 2 * (self.backend.workers or os.cpu_count() or 1)

    def close(self, *, wait: bool) -> None:
        """End the workers of an executor that was opened here."""
        if self.backend.executor is None:
            self.executor.shutdown(wait=True, kill_workers=not wait)
        elif not isinstance(self.backend.executor, Executor):
            self.executor.shutdown(wait=wait)  # Dask's knows no other argument


def _quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a job without the warnings of assumptions, which its record names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return function(*arguments)


def _is_lost(error: Exception) -> bool:
    return isinstance(error, BrokenExecutor) or type(error).__name__ in LOST_WORKER_ERRORS


def _on_worker(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a job on a worker. A module that is missing there raises its own error, whatever message it led to."""
    try:
        return _quietly(function, *arguments)
    except InputError as error:
        missing = error.__cause__
        if isinstance(missing, ModuleNotFoundError):
            raise ModuleNotFoundError(str(missing), name=missing.name) from None
        raise


def _of_worker(error: Exception) -> Exception:
    """Return the error to raise: a module that only the worker misses gets a remedy. Ray wraps the error's cause."""
    if not isinstance(error, ModuleNotFoundError):
        return error
    missing = getattr(error, "cause", error)
    return LongtermError(
        f"a worker cannot import {missing.name!r}. Install it on every machine, or send it to the workers: "
        'client.upload_file("mine.py") with Dask, runtime_env={"working_dir": "."} with Ray'
    )


def _end_with(parent: int) -> None:
    """End this worker soon after its parent was killed. It would wait for ever for somebody to read its result."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _open(backend: Backend) -> Executor:
    if isinstance(backend.executor, Executor):
        return backend.executor
    if backend.executor is None:
        import_optional("joblib", "several processes need joblib", "experiments")
        loky: Any = import_module("joblib.externals.loky")
        options = {"timeout": IDLE_SECONDS, "reuse": False, "env": ONE_THREAD}
        options |= {"initializer": _end_with, "initargs": (os.getpid(),)}
        made: Executor = loky.get_reusable_executor(backend.workers, **options)
        return made
    remedy = "Give module:function of a function that returns one, longterm.compat.ray:executor for example"
    try:
        module, _, function = backend.executor.partition(":")
        found = getattr(import_module(module), function)()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise InputError("executor", f"{backend.executor!r} cannot be used ({error})", remedy) from error
    if not isinstance(found, Executor):
        what = f"{backend.executor!r} returned a {type(found).__name__}, not a concurrent.futures.Executor"
        raise InputError("executor", what, remedy)
    return found


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
