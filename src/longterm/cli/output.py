"""The table of a result on the terminal, and the files of a report."""

from __future__ import annotations

import shlex
import shutil
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from longterm._base.display import TextTable
from longterm.lab import Backend, ExperimentSpec, run_experiment
from longterm.lab.experiments.paper_remarks import with_paper_remarks
from longterm.lab.experiments.result import Result

MAX_WIDTH = 118
"""Characters in a line of a remark."""


def terminal_width() -> int | None:
    """Return the columns of the terminal; None if the output goes to a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def run_and_print(spec: ExperimentSpec, folder: Path, backend: Backend) -> Result:
    """Run an experiment, print its table and its folder, and return its result."""
    result = with_paper_remarks(run_experiment(spec, folder, backend=backend))
    sys.stdout.write(f"{result_table(result)}results  {folder}\n\n")
    return result


def result_table(result: Result) -> str:
    """Return the last round of each curve, mean ± standard deviation, and the remarks."""
    columns = [measure.removesuffix("_violation").replace("_", "-") for measure in result.measures]
    rows = [(curve.name, *(curve.last(measure) for measure in result.measures)) for curve in result.curves]
    width = terminal_width()
    lines = [TextTable(("", *columns), rows, title=result.title).to_text(width)]
    fill = textwrap.TextWrapper(min(width or MAX_WIDTH, MAX_WIDTH), initial_indent="  ", subsequent_indent="    ")
    for remark in result.remarks:
        lines += fill.wrap(f"{remark.verdict}: {remark.text}")
    return "\n".join(lines) + "\n"


def write_report(results: Sequence[Result], folders: Sequence[Path], page: Path, title: str) -> None:
    """Write figures into each folder, and one page for all results."""
    from longterm.lab import write_figures, write_page

    for result, folder in zip(results, folders, strict=True):
        figures = folder / "figures"
        figures.mkdir(parents=True, exist_ok=True)
        write_figures(result, figures)
        sys.stdout.write(f"figures  {figures}\n")
    command = shlex.join(["longterm", "report", *map(str, folders), "--out", str(page), "--title", title])
    sys.stdout.write(f"report   {write_page(results, page, title=title, command=command)}\n")
