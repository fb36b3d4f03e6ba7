"""Options of the commands that run jobs."""

from __future__ import annotations

from dataclasses import dataclass

from longterm import _validate as validate
from longterm.cli.options import OptionalInt, OptionalStr
from longterm.experiments import Backend


@dataclass(frozen=True)
class BackendOptions:
    """Workers and their backend."""

    workers: OptionalInt = None
    """Processes on this machine. Left out: one for each core."""
    backend: str = "loky"
    """loky: processes on this machine; dask: a cluster; or a name that was registered with joblib."""
    scheduler: OptionalStr = None
    """Address of the Dask scheduler, tcp://host:8786 for example (with --backend dask)."""
    register: OptionalStr = None
    """A function that registers another backend with joblib first, for example ray.util.joblib:register_ray."""

    @property
    def chosen(self) -> Backend:
        """The backend with these options."""
        if self.workers is not None:
            validate.count("workers", self.workers)
        return Backend(self.backend, self.workers, self.scheduler, self.register)
