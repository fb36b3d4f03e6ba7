"""The report: one page for any number of experiments."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from pathlib import Path

import numpy as np

from longterm.errors import InputError
from longterm.experiments.result import Result
from longterm.report.components import Cell, Section, Table, two_lines
from longterm.report.document import write_document
from longterm.report.experiment import against_the_paper, experiment_section, headlines, least
from longterm.report.words import extent, slug

TITLE = "Online learning with long-term constraints"
LEAD = (
    "Regret is what was lost to the best fixed decision in hindsight; violation is by how much the constraint was "
    "broken on the way. Both are sums over the rounds: less is better."
)
GLANCE = "at-a-glance"


def write_page(results: Result | Iterable[Result], path: str | Path, *, title: str = TITLE) -> Path:
    """Write one self-contained HTML page about one result or several; it opens without a network.

    For each: the headline numbers, tables, interactive figures, what matches the paper and what does not, what was run,
    the comparator's certificate, and the command that runs it again.
    """
    shown = [results] if isinstance(results, Result) else list(results)
    if not shown:
        raise InputError("results", "is empty", "Give at least one result")
    sections = [experiment_section(result, place) for result, place in zip(shown, _places(shown), strict=True)]
    if len(shown) > 1:
        sections.insert(0, Section(GLANCE, "At a glance", at_a_glance(shown).html()))
    return write_document(path, title, LEAD, sections)


def at_a_glance(results: list[Result]) -> Table:
    """Every experiment in a row."""
    rows = []
    for result in results:
        (_, regret, whose), (_, broken, by), (_, gap, _), *_ = headlines(result)
        cells = (
            Cell(two_lines(regret, whose), float(least(result, "regret")[0].mean("regret")[-1])),
            Cell(two_lines(broken, by), float(least(result, "hard_violation")[0].mean("hard_violation")[-1])),
            Cell(gap, float(np.max(result.certified_gap))),
            Cell(against_the_paper(result.remarks) or "–"),
            Cell(extent(result)),
        )
        rows.append((result.title, cells))
    columns = ("Least regret", "Least hard violation", "Certified gap", "Beside the paper", "Played")
    return Table("The last round of every experiment.", "Experiment", (("", columns),), tuple(rows))


def _places(results: list[Result]) -> list[str]:
    """An address for each within the page, unlike any other."""
    taken = [GLANCE]
    for result in results:
        base = slug(result.name)
        candidates = (base if k == 1 else f"{base}-{k}" for k in count(1))
        taken.append(next(place for place in candidates if place not in taken))
    return taken[1:]
