"""The command `longterm report`: figures and a page from result folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from longterm.cli.output import write_report
from longterm.errors import InputError
from longterm.lab import load_result
from longterm.lab.experiments.paper_remarks import with_paper_remarks


@dataclass(frozen=True)
class ReportCommand:
    """Draw the figures and write the page of finished experiments.

    The command only reads results. It imports no module that a manifest names, so a stranger's folder runs no code.

    for example:
      longterm report results/dsm results/sample --out results/report.html
    """

    folders: tyro.conf.Positional[tuple[Path, ...]]
    """The result folders to draw."""
    out: Path = Path("report.html")
    """The HTML file to write."""
    title: str = "Online convex optimisation with long-term constraints"
    """The title of the page."""

    def run(self) -> None:
        """Write figures and page."""
        if not self.folders:
            raise InputError("folders", "is empty", "Give result folders, results/dsm for example")
        results = [with_paper_remarks(load_result(folder)) for folder in self.folders]
        write_report(results, self.folders, self.out, self.title)
