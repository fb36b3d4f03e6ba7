"""Options of the commands that run jobs."""

from __future__ import annotations

from dataclasses import dataclass

from longterm._base import validate
from longterm.cli.options import OptionalInt, OptionalStr
from longterm.lab import Backend


@dataclass(frozen=True)
class BackendOptions:
    """The engine that runs the jobs."""

    workers: OptionalInt = None
    """The number of processes on this machine. Default: one for each core."""
    executor: OptionalStr = None
    """A function module:function that returns the concurrent.futures.Executor to run the jobs, for example
    longterm.compat.ray:executor."""

    @property
    def chosen(self) -> Backend:
        """The backend with these options."""
        if self.workers is not None:
            validate.count("workers", self.workers)
        return Backend(self.workers, self.executor)
