"""Ray as an executor of experiments: ``longterm run … --executor longterm.compat.ray:executor`` (extra `ray`)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from longterm._base.extras import import_optional

RETRIES = 3
"""The number of times that a job is started again after its worker was lost."""


class RayExecutor(Executor):
    """An executor whose calls are Ray tasks.

    Call `ray.init` first to connect to a cluster. Otherwise Ray starts workers on this machine.
    """

    def __init__(self) -> None:
        self._ray: Any = import_optional("ray", "a RayExecutor needs Ray", "ray")

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Start a task and return its future."""
        found: Future[Any] = self._ray.remote(max_retries=RETRIES)(fn).remote(*args, **kwargs).future()
        return found


def executor() -> RayExecutor:
    """Return an executor on the cluster that Ray is connected to."""
    return RayExecutor()
