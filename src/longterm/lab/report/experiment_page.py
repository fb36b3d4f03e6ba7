"""The report page of one or more experiments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.lab.experiments.remarks import list_names
from longterm.lab.experiments.result import LOGGED, Curve, Remark, Result
from longterm.lab.report.axes import scale_of
from longterm.lab.report.document import Section, write_document
from longterm.lab.report.formats import format_gap, format_percent, format_seeds, format_size, page_slug
from longterm.lab.report.names import MEASURE_DESCRIPTIONS, MEASURE_FORMULAS, MEASURE_NAMES, ROLE_NAMES, problem_facts
from longterm.lab.report.page_tables import Cell, HtmlTable, measured_cell, regret_table, rounds_table, violation_table
from longterm.lab.report.style import curve_style, dashes

TITLE = "Online learning with long-term constraints"
LEAD = (
    "Regret is the loss beyond that of the best fixed decision in hindsight. Violation is the amount by which the "
    "constraint was violated. Both are sums over the rounds; smaller is better."
)
OVERVIEW_ID = "at-a-glance"
VERDICTS = {
    "matches": ("1 result matches the paper", "{} results match the paper", "✓"),
    "differs": ("1 result differs from the paper", "{} results differ from the paper", "≠"),
    "alarm": ("1 result to check", "{} results to check", "!"),
    "note": ("Note", "{} notes", "i"),
}
"""The heading of one remark and of several, and their mark."""
DEFAULT_MEASURES = ("regret", "signed_violation", LOGGED)
"""The measures of the plots until the reader chooses others."""

SPREADS = {
    "range": "smallest to largest",
    "deviation": "± standard deviation",
    "sequences": "each sequence",
    "none": "none",
}
"""Choices for the spread over the sequences; the first is the default."""
MAX_SPREADS = 12
"""With more curves the default is no spread."""
MAX_NUMBERS = 50_000
"""With more numbers the page does not contain the single sequences."""


def write_page(results: Result | Iterable[Result], path: str | Path, *, title: str = TITLE, command: str = "") -> Path:
    """Write one self-contained HTML page about one or more results.

    For each result: headline numbers, tables, interactive figures, remarks, the specification, the comparator's
    certificate, and the command that runs it again.

    Parameters
    ----------
    results : Result or iterable of Result
        The results.
    path : str or pathlib.Path
        The file; its folder is created if it is missing.
    title : str
        The title of the page.
    command : str
        The command that writes a page about several results again.

    Returns
    -------
    pathlib.Path
        The same path.
    """
    shown = [results] if isinstance(results, Result) else list(results)
    if not shown:
        raise InputError("results", "is empty", "Give at least one result")
    sections = [
        _section(result, anchor, len(shown) == 1) for result, anchor in zip(shown, _section_ids(shown), strict=True)
    ]
    if len(shown) > 1:
        runs = [(section.id, section.heading) for section in sections]
        overview = {"table": overview_table(shown), "runs": runs, "command": command}
        sections.insert(0, Section(OVERVIEW_ID, "At a glance", "glance.html.j2", overview))
    return write_document(path, title, LEAD, sections)


def overview_table(results: list[Result]) -> HtmlTable:
    """Return a table with one row for each experiment."""
    rows = []
    compared = any(comparison_with_paper(result.remarks) for result in results)
    for result in results:
        (_, regret, whose), (_, broken, by), (_, gap, _), *_ = headlines(result)
        cells = (
            Cell(regret, float(best_curves(result, "regret")[0].mean("regret")[-1]), small=whose),
            Cell(broken, float(best_curves(result, "hard_violation")[0].mean("hard_violation")[-1]), small=by),
            Cell(gap, float(np.max(result.certified_gap))),
            *([Cell(comparison_with_paper(result.remarks) or "–")] if compared else []),
            Cell(format_size(result)),
        )
        rows.append((result.title, cells))
    paper = ("Comparison with the paper",) if compared else ()
    columns = ("Smallest regret", "Smallest hard violation", "Certified gap", *paper, "Size")
    return HtmlTable("The last round of every experiment.", "Experiment", (("", columns),), tuple(rows))


def _section_ids(results: list[Result]) -> list[str]:
    """Return a unique anchor for each result."""
    taken = [OVERVIEW_ID]
    for result in results:
        base = page_slug(result.name)
        candidates = (base if k == 1 else f"{base}-{k}" for k in count(1))
        taken.append(next(anchor for anchor in candidates if anchor not in taken))
    return taken[1:]


def _section(result: Result, id: str, alone: bool) -> Section:
    """Return the section of one experiment; `alone` if it is the only one."""
    has_paper_curves = any(curve.role == "paper" for curve in result.curves)
    problem = {key: value for key, value in result.problem.items() if key != "rounds"}
    size = [
        ("Rounds T", f"{int(result.rounds[-1]):,}"),
        ("Sequences", f"{len(result.seeds)}, {format_seeds(result.seeds)}"),
    ]
    learners = [
        (
            curve.name,
            (curve.learner or "parameters as in the specification below")
            + (f" ({ROLE_NAMES[curve.role]})" if has_paper_curves else ""),
        )
        for curve in result.curves
    ]
    legend = [
        {
            "name": curve.name,
            "style": curve_style(k),
            "dash": dashes(k, curve.role),
            "title": ROLE_NAMES["fair"] if curve.role == "fair" else "",
        }
        for k, curve in enumerate(result.curves)
    ]
    heading = "Comparison with the paper"
    shown = {
        "headlines": headlines(result),
        "tables": [regret_table(result), violation_table(result)],
        "chart": chart_data(result),
        "has_bounds": any(curve.bounds or curve.printed_bounds for curve in result.curves),
        "legend": legend,
        "spreads": [(kind, words) for kind, words in SPREADS.items() if kind != "sequences" or _has_sequences(result)],
        "default_spread": next(iter(SPREADS)) if len(result.curves) <= MAX_SPREADS else "none",
        "default_measures": [measure for measure in DEFAULT_MEASURES if measure in result.measures],
        "remarks_heading": heading if comparison_with_paper(result.remarks) else "Remarks",
        "remarks": [
            (verdict, one if len(texts) == 1 else several.format(len(texts)), mark, texts)
            for verdict, (one, several, mark) in VERDICTS.items()
            if (texts := [remark.text for remark in result.remarks if remark.verdict == verdict])
        ],
        "has_printed": any(curve.printed_bounds for curve in result.curves),
        "facts": [*problem_facts(problem), *size],
        "learners": learners,
        "command": result.command,
        "alone": alone,
        "rounds_tables": [rounds_table(result, measure) for measure in result.measures],
        "spec": json.dumps(result.spec, indent=2, ensure_ascii=False, default=str),
        "versions": result.versions.items(),
    }
    return Section(id, result.title, "experiment.html.j2", shown, kicker=f"{result.name} · {format_size(result)}")


MAX_NAMES = 3
"""Tied learners that a headline names."""


def headlines(result: Result) -> list[tuple[str, str, str]]:
    """Return the headline numbers, each with its label and its learner."""
    lines = []
    for measure in ("regret", "hard_violation"):
        best, name = best_curves(result, measure), MEASURE_NAMES[measure]
        label = name if len(result.curves) == 1 else f"Smallest {name.lower()}"
        lines.append((label, measured_cell(best[0], measure).content, _learner_names(best, measure)))
    gap = format_gap(float(np.max(result.certified_gap)))
    lines.append(("Certified gap", gap, "of the best decision in hindsight, relative to its loss"))
    compared = comparison_with_paper(result.remarks)
    return [*lines, ("Comparison with the paper", compared, "reasons below")] if compared else lines


def best_curves(result: Result, measure: str) -> list[Curve]:
    """Return the curves with the smallest value at the last round."""
    ends = np.array([curve.mean(measure)[-1] for curve in result.curves])
    return [curve for curve, end in zip(result.curves, ends, strict=True) if end == ends.min()]


def comparison_with_paper(remarks: Sequence[Remark]) -> str:
    """Return the numbers of findings that match and differ from the paper, or an empty string."""
    counts = {verdict: sum(remark.verdict == verdict for remark in remarks) for verdict in ("matches", "differs")}
    words = {"matches": ("matches", "match"), "differs": ("differs", "differ")}
    return ", ".join(f"{n} {words[verdict][n != 1]}" for verdict, n in counts.items() if n)


def _learner_names(curves: list[Curve], measure: str) -> str:
    """Return the names of the best learners; of a single one, with the share of its bound."""
    names = list_names([curve.name for curve in curves], MAX_NAMES)
    if len(curves) > 1 or measure not in curves[0].bounds or not curves[0].bounds[measure][-1] > 0:
        return names
    return f"{names}: {format_percent(float(curves[0].mean(measure)[-1] / curves[0].bounds[measure][-1]))} of its bound"


def chart_data(result: Result) -> dict[str, Any]:
    """Return the data of the interactive figure, rounded for a screen; non-finite numbers are null."""
    return {
        "rounds": [int(t) for t in result.rounds],
        "measures": {
            measure: {
                "name": MEASURE_NAMES[measure],
                "formula": MEASURE_FORMULAS[measure],
                "words": MEASURE_DESCRIPTIONS[measure],
                **scale_of(result, measure)._asdict(),
            }
            for measure in result.measures
        },
        "curves": [
            {
                "name": curve.name,
                **curve_style(k)._asdict(),
                "dash": dashes(k, curve.role),
                "mean": {measure: _numbers(curve.mean(measure)) for measure in result.measures},
                "std": {measure: _numbers(curve.std(measure)) for measure in result.measures},
                "least": {measure: _numbers(curve.measures[measure].min(axis=1)) for measure in result.measures},
                "most": {measure: _numbers(curve.measures[measure].max(axis=1)) for measure in result.measures},
                "sequences": {
                    measure: [_numbers(one) for one in curve.measures[measure].T]
                    for measure in (result.measures if _has_sequences(result) else ())
                },
                "bounds": {measure: _numbers(bound) for measure, bound in curve.bounds.items()},
                "printed": {measure: _numbers(bound) for measure, bound in curve.printed_bounds.items()},
            }
            for k, curve in enumerate(result.curves)
        ],
    }


def _has_sequences(result: Result) -> bool:
    """Return whether the page contains the single sequences."""
    return sum(values.size for curve in result.curves for values in curve.measures.values()) <= MAX_NUMBERS


def _numbers(values: FloatArray) -> list[float | None]:
    return [float(f"{v:.7g}") if np.isfinite(v) else None for v in np.asarray(values, dtype=np.float64)]
