"""The report: one page for any number of experiments, each with what the reader came for first."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from longterm._arrays import FloatArray
from longterm.errors import InputError
from longterm.experiments.result import LOGGED, Curve, Remark, Result
from longterm.report.page import Cell, Section, Table, regret_table, rounds_table, violation_table, write_document
from longterm.report.style import dashes, look
from longterm.report.words import (
    MEASURE_FORMULAS,
    MEASURE_NAMES,
    MEASURE_WORDS,
    ROLE_WORDS,
    extent,
    gap_in_words,
    mean_and_deviation,
    number,
    problem_facts,
    scale_of,
    seeds_in_words,
    share,
    slug,
)

TITLE = "Online learning with long-term constraints"
LEAD = (
    "Regret is what was lost to the best fixed decision in hindsight; violation is by how much the constraint was "
    "broken on the way. Both are sums over the rounds: less is better."
)
GLANCE = "at-a-glance"
VERDICTS = {
    "matches": ("Matches the paper", "✓"),
    "differs": ("Differs from the paper", "≠"),
    "alarm": ("Check this", "!"),
    "note": ("Worth knowing", "i"),
}
WANTED_GAP = 1e-6
"""What every comparator is asked to certify, as a share of its loss."""
SHOWN_FIRST = ("regret", "signed_violation", LOGGED)
"""What the plots show until the reader chooses: the paper's figures."""

SPREADS = {
    "range": "least to greatest",
    "deviation": "± standard deviation",
    "sequences": "each sequence",
    "none": "none",
}
"""What may be shown of the sequences beside their mean; the first until the reader chooses, where curves are few."""
MANY = 12
"""More curves than this are drawn without their spread until the reader asks for it."""
MOST_NUMBERS = 50_000
"""More single numbers than this would make a page heavy: then each sequence is not in it."""


def write_page(results: Result | Iterable[Result], path: str | Path, *, title: str = TITLE, command: str = "") -> Path:
    """Write one self-contained HTML page about one result or several; it opens without a network.

    For each: the headline numbers, tables, interactive figures, what matches the paper and what does not, what was run,
    the comparator's certificate, and the command that runs it again.

    Parameters
    ----------
    results : Result or iterable of Result
        What to write about.
    path : str or pathlib.Path
        Of the file; its folder is made where it is missing.
    title : str
        Of the page.
    command : str
        What makes the page anew, where it is about several.

    Returns
    -------
    pathlib.Path
        The same path.
    """
    shown = [results] if isinstance(results, Result) else list(results)
    if not shown:
        raise InputError("results", "is empty", "Give at least one result")
    sections = [_section(result, place, len(shown) == 1) for result, place in zip(shown, _places(shown), strict=True)]
    if len(shown) > 1:
        runs = [(section.id, section.heading) for section in sections]
        glance = {"table": at_a_glance(shown), "runs": runs, "command": command}
        sections.insert(0, Section(GLANCE, "At a glance", "glance.html.j2", glance))
    return write_document(path, title, LEAD, sections)


def at_a_glance(results: list[Result]) -> Table:
    """Every experiment in a row."""
    rows = []
    compared = any(against_the_paper(result.remarks) for result in results)
    for result in results:
        (_, regret, whose), (_, broken, by), (_, gap, _), *_ = headlines(result)
        cells = (
            Cell(regret, float(least(result, "regret")[0].mean("regret")[-1]), small=whose),
            Cell(broken, float(least(result, "hard_violation")[0].mean("hard_violation")[-1]), small=by),
            Cell(gap, float(np.max(result.certified_gap))),
            *([Cell(against_the_paper(result.remarks) or "–")] if compared else []),
            Cell(extent(result)),
        )
        rows.append((result.title, cells))
    beside = ("Beside the paper",) if compared else ()
    columns = ("Least regret", "Least hard violation", "Certified gap", *beside, "Played")
    return Table("The last round of every experiment.", "Experiment", (("", columns),), tuple(rows))


def _places(results: list[Result]) -> list[str]:
    """An address for each within the page, unlike any other."""
    taken = [GLANCE]
    for result in results:
        base = slug(result.name)
        candidates = (base if k == 1 else f"{base}-{k}" for k in count(1))
        taken.append(next(place for place in candidates if place not in taken))
    return taken[1:]


def _section(result: Result, id: str, alone: bool) -> Section:
    """One experiment, as its template shows it; `alone` where the page is about no other."""
    drawn = any(curve.role == "paper" for curve in result.curves)  # else none of them has anything to do with it
    problem = {key: value for key, value in result.problem.items() if key != "rounds"}
    played = [
        ("Rounds T", f"{int(result.rounds[-1]):,}"),
        ("Sequences", f"{len(result.seeds)}, {seeds_in_words(result.seeds)}"),
    ]
    learners = [
        (
            curve.name,
            (curve.learner or "parameters as in the specification below")
            + (f" ({ROLE_WORDS[curve.role]})" if drawn else ""),
        )
        for curve in result.curves
    ]
    legend = [
        {
            "name": curve.name,
            "look": look(k),
            "dash": dashes(k, curve.role),
            "title": ROLE_WORDS["fair"] if curve.role == "fair" else "",
        }
        for k, curve in enumerate(result.curves)
    ]
    compared = "What matches the paper, what does not, and why"
    shown = {
        "headlines": headlines(result),
        "tables": [regret_table(result), violation_table(result)],
        "chart": chart_data(result),
        "has_bounds": any(curve.bounds or curve.printed_bounds for curve in result.curves),
        "legend": legend,
        "spreads": [(kind, words) for kind, words in SPREADS.items() if kind != "sequences" or few_enough(result)],
        "spread_first": next(iter(SPREADS)) if len(result.curves) <= MANY else "none",
        "shown_first": [measure for measure in SHOWN_FIRST if measure in result.measures],
        "remarks_heading": compared if against_the_paper(result.remarks) else "Remarks",
        "remarks": [
            (verdict, *words, texts)
            for verdict, words in VERDICTS.items()
            if (texts := [one.text for one in result.remarks if one.verdict == verdict])
        ],
        "has_printed": any(curve.printed_bounds for curve in result.curves),
        "facts": [*problem_facts(problem), *played],
        "learners": learners,
        "certificate": certificate(result),
        "command": result.command,
        "alone": alone,
        "rounds_tables": [rounds_table(result, measure) for measure in result.measures],
        "spec": json.dumps(result.spec, indent=2, ensure_ascii=False, default=str),
        "versions": result.versions.items(),
    }
    return Section(id, result.title, "experiment.html.j2", shown, kicker=f"{result.name} · {extent(result)}")


MOST_NAMED = 3
"""Learners that tie, in a headline."""


def headlines(result: Result) -> list[tuple[str, str, str]]:
    """What it is, the number, and whose it is."""
    regret, broken = least(result, "regret"), least(result, "hard_violation")
    gap, alone = float(np.max(result.certified_gap)), len(result.curves) == 1
    lines = [
        ("Regret" if alone else "Least regret", _mean_and_std(regret[0], "regret"), _whose(regret, "regret")),
        (
            "Hard violation" if alone else "Least hard violation",
            _mean_and_std(broken[0], "hard_violation"),
            _whose(broken, "hard_violation"),
        ),
        ("Certified gap", gap_in_words(gap), "of the best in hindsight, as a share of its loss"),
    ]
    compared = against_the_paper(result.remarks)
    return [*lines, ("Beside the paper", compared, "with reasons, below")] if compared else lines


def least(result: Result, measure: str) -> list[Curve]:
    """The curves that end lowest: several where they tie."""
    ends = np.array([curve.mean(measure)[-1] for curve in result.curves])
    return [curve for curve, end in zip(result.curves, ends, strict=True) if end == ends.min()]


def against_the_paper(remarks: Sequence[Remark]) -> str:
    """How many findings agree with the paper and how many do not; nothing where none was compared."""
    counts = {verdict: sum(remark.verdict == verdict for remark in remarks) for verdict in ("matches", "differs")}
    words = {"matches": ("matches", "match"), "differs": ("differs", "differ")}
    return ", ".join(f"{n} {words[verdict][n != 1]}" for verdict, n in counts.items() if n)


def certificate(result: Result) -> str:
    """How exact the comparator is, and what that means for regret."""
    gap = float(np.max(result.certified_gap))
    if not np.isfinite(gap):
        return (
            "Some of the comparators carry no certificate: true regret may be higher than shown by an unknown amount."
        )
    if gap == 0:
        return "The best fixed decision is known in closed form at every kept round: regret is exact, to rounding."
    kept = "which is" if gap <= WANTED_GAP else "which is not"
    return (
        f"At every kept round of every sequence, no feasible point has a loss lower than the comparator's by more than "
        f"{number(gap)} of it, {kept} within the {number(WANTED_GAP)} that is asked for. True regret is at least what "
        "is shown, and at most that share of the comparator's loss higher."
    )


def _mean_and_std(curve: Curve, measure: str) -> str:
    return mean_and_deviation(float(curve.mean(measure)[-1]), float(curve.std(measure)[-1]))


def _whose(curves: list[Curve], measure: str) -> str:
    shown = [curve.name for curve in curves[:MOST_NAMED]]
    more = len(curves) - len(shown)
    names = "; ".join(shown) + (f"; and {more} more" if more else "")  # names have commas in them
    if len(curves) > 1 or measure not in curves[0].bounds or not curves[0].bounds[measure][-1] > 0:
        return names
    return f"{names}: {share(float(curves[0].mean(measure)[-1] / curves[0].bounds[measure][-1]))} of its bound"


def chart_data(result: Result) -> dict[str, Any]:
    """Everything that the script draws, rounded to what a screen can show; a missing or infinite number is null."""
    return {
        "rounds": [int(t) for t in result.rounds],
        "measures": {
            measure: {
                "name": MEASURE_NAMES[measure],
                "formula": MEASURE_FORMULAS[measure],
                "words": MEASURE_WORDS[measure],
                **scale_of(result, measure)._asdict(),
            }
            for measure in result.measures
        },
        "curves": [
            {
                "name": curve.name,
                **look(k)._asdict(),
                "dash": dashes(k, curve.role),
                "mean": {measure: _numbers(curve.mean(measure)) for measure in result.measures},
                "std": {measure: _numbers(curve.std(measure)) for measure in result.measures},
                "least": {measure: _numbers(curve.measures[measure].min(axis=1)) for measure in result.measures},
                "most": {measure: _numbers(curve.measures[measure].max(axis=1)) for measure in result.measures},
                "sequences": {
                    measure: [_numbers(one) for one in curve.measures[measure].T]
                    for measure in (result.measures if few_enough(result) else ())
                },
                "bounds": {measure: _numbers(bound) for measure, bound in curve.bounds.items()},
                "printed": {measure: _numbers(bound) for measure, bound in curve.printed_bounds.items()},
            }
            for k, curve in enumerate(result.curves)
        ],
    }


def few_enough(result: Result) -> bool:
    """Whether each sequence of each curve fits into a page."""
    return sum(values.size for curve in result.curves for values in curve.measures.values()) <= MOST_NUMBERS


def _numbers(values: FloatArray) -> list[float | None]:
    return [float(f"{v:.7g}") if np.isfinite(v) else None for v in np.asarray(values, dtype=np.float64)]
