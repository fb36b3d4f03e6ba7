"""Options of the commands that run jobs."""

from __future__ import annotations

from dataclasses import dataclass

from longterm._base import validate
from longterm.cli.options import OptionalInt, OptionalStr
from longterm.lab import Backend


@dataclass(frozen=True)
class BackendOptions:
    """Workers and their backend."""

    workers: OptionalInt = None
    """Processes on this machine. Left out: one for each core."""
    backend: str = "loky"
    """loky: processes on this machine; or a name that joblib knows, dask for example."""
    register: OptionalStr = None
    """A function to call first: it registers the backend (ray.util.joblib:register_ray) or connects to a cluster."""

    @property
    def chosen(self) -> Backend:
        """The backend with these options."""
        if self.workers is not None:
            validate.count("workers", self.workers)
        return Backend(self.backend, self.workers, self.register)
