"""What the commands that run experiments share: who does the work, the table on the terminal, the report."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from longterm import _validate as validate
from longterm.experiments import Backend, Result


@dataclass(frozen=True)
class BackendOptions:
    """Who does the work."""

    workers: int | None = None
    """Processes on this machine. Left out: one for each core."""
    backend: str = "loky"
    """loky: processes on this machine; dask: a cluster; or a name that was registered with joblib."""
    scheduler: str | None = None
    """Address of the Dask scheduler, tcp://host:8786 for example (with --backend dask)."""
    register: str | None = None
    """A function that registers another backend with joblib first, for example ray.util.joblib:register_ray."""

    @property
    def chosen(self) -> Backend:
        """As the experiments want it."""
        if self.workers is not None:
            validate.count("workers", self.workers)
        return Backend(self.backend, self.workers, self.scheduler, self.register)


def table(result: Result) -> str:
    """The last round of each curve, mean and deviation over the sequences."""
    columns = [measure.removesuffix("_violation").replace("_", "-") for measure in result.measures]
    widest = max(len(curve.name) for curve in result.curves) + 2
    lines = [result.title, " " * widest + "".join(f"{column:>22}" for column in columns)]
    for curve in result.curves:
        cells = (curve.last(m) for m in result.measures)
        lines.append(f"{curve.name:<{widest}}" + "".join(f"{cell:>22}" for cell in cells))
    for remark in result.remarks:
        lines += textwrap.wrap(f"{remark.verdict}: {remark.text}", 118, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(lines) + "\n"


def write_report(results: Sequence[Result], folders: Sequence[Path], page: Path, title: str) -> None:
    """Figures into each folder, and one page for all of them."""
    from longterm.report import write_figures, write_page

    for result, folder in zip(results, folders, strict=True):
        figures = folder / "figures"
        figures.mkdir(parents=True, exist_ok=True)
        write_figures(result, figures)
        sys.stdout.write(f"figures  {figures}\n")
    again = shlex.join(["longterm", "report", *map(str, folders), "--out", str(page), "--title", title])
    sys.stdout.write(f"report   {write_page(results, page, title=title, command=again)}\n")
