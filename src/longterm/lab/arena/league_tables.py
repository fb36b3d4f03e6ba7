"""Tables of an arena: text for the terminal, and CSV.

league.csv     one row for each learner, by rank
matches.csv    one row for each learner on each problem, refusals with their reason
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from longterm._base.display import TextTable, format_decimals
from longterm.lab.arena.league import Preference, Standing
from longterm.lab.arena.results import MEASURED, ArenaResult, Match
from longterm.lab.experiments.records import write_file

MAX_COLUMNS = 6
"""Learners in the tables of regret and violation on the terminal."""


def write_tables(arena: ArenaResult, standings: Sequence[Standing], preference: Preference, folder: str | Path) -> None:
    """Write all tables into a folder."""
    rows = [league_row(one, preference, len(arena.problems)) for one in standings]
    write_file(Path(folder) / "league.csv", to_csv(rows))
    write_file(Path(folder) / "matches.csv", to_csv([match_row(one) for one in arena.matches]))


def league_row(one: Standing, preference: Preference, problems: int) -> dict[str, Any]:
    """Return one learner's row of league.csv."""
    first = one.matches[0]
    return {
        "rank": one.rank,
        "learner": one.learner,
        "score": one.score,
        "score_error": one.deviation,
        "tied_with_previous": one.tied,
        "regret_share": one.shares["regret"],
        "violation_share": one.shares[preference.measure],
        "matches": len(one.matches),
        "problems": problems,
        "regret_slope": one.slope("regret"),
        "violation_slope": one.slope(preference.measure),
        "bound_ratio": one.bound_ratio,
        "bounds_held": one.verdicts("held"),
        "bounds_held_on_average": one.verdicts("held on average"),
        "bounds_broken": one.verdicts("broken"),
        "oracle": first.oracle,
        "anytime": first.anytime,
        "also_needs": ", ".join(first.also_needs),
    }


def match_row(one: Match) -> dict[str, Any]:
    """Return one match's row of matches.csv."""
    row: dict[str, Any] = {"learner": one.learner, "problem": one.problem, "refused": one.refused}
    for measure in MEASURED:
        row[measure] = None if one.refused else one.mean(measure)
        row[f"{measure}_std"] = None if one.refused else one.std(measure)
    for measure in MEASURED[:-1]:
        row[f"{measure}_slope"] = None if one.refused else one.slope(measure)
    for measure in MEASURED[:-1]:
        row[f"{measure}_of_bound"] = one.ratios[measure][0] if measure in one.ratios else None
    return {**row, "bounds": one.verdict, "assumptions": " ".join(one.warnings)}


def league_text(
    arena: ArenaResult, standings: Sequence[Standing], preference: Preference, width: int | None = None
) -> str:
    """Return the text for a terminal of this width: league, broken bounds, refusals, and problems without data."""
    shares = ("", "score", "± error", "regret", "violation", "problems")
    headings = (*shares, "T^regret", "T^viol.", "of bound", "µs/round", "anytime", "oracle")
    rows = [
        (
            f"{one.rank:>3}{'=' if one.tied else ' '}{one.learner}",
            f"{one.score:.3f}",
            f"{one.deviation:.3f}" if len(arena.spec.seeds) > 1 else "–",
            f"{one.shares['regret']:.3f}",
            f"{one.shares[preference.measure]:.3f}",
            f"{len(one.matches)}/{len(arena.problems)}",
            format_decimals(one.slope("regret")),
            format_decimals(one.slope(preference.measure)),
            format_decimals(one.bound_ratio),
            format_decimals(one.microseconds, 0),
            "yes" if one.matches[0].anytime else "no",
            ", ".join((one.matches[0].oracle, *one.matches[0].also_needs)),
        )
        for one in standings
    ]
    lines = [
        f"score = {1 - preference.weight:g} × regret + {preference.weight:g} × {preference.violation} violation, "
        "shares from 0 to 1, smaller is better",
        TextTable(headings, rows).to_text(width),
        "= tied: the difference to the learner above is less than twice its standard error",
    ]
    return "\n".join([*lines, *_values(arena, standings, preference, width), *_findings(arena)]) + "\n"


def _values(
    arena: ArenaResult, standings: Sequence[Standing], preference: Preference, width: int | None
) -> Iterable[str]:
    """Yield tables of regret and violation for the first learners."""
    first, several = standings[:MAX_COLUMNS], len(arena.spec.seeds) > 1
    for measure in ("regret", preference.measure):
        rows = []
        for problem in arena.problems:
            matches = [next((m for m in one.matches if m.problem == problem), None) for one in first]
            cells = [
                "–" if m is None else f"{m.mean(measure):.4g}" + (f" ± {m.std(measure):.2g}" if several else "")
                for m in matches
            ]
            rows.append((problem, *cells))
        title = f"\n{measure.replace('_', ' ')} after {arena.spec.rounds} rounds"
        title += ", mean ± standard deviation" if several else ", one sequence"
        yield TextTable(("", *(one.learner for one in first)), rows, title=title).to_text(width)
    yield ""


def _findings(arena: ArenaResult) -> Iterable[str]:
    """Yield broken bounds, refusals, errors and problems without data."""
    for match in arena.matches:
        if match.verdict == "broken":
            found = ", ".join(f"{measure} {single:.3g} of it" for measure, (single, _) in match.ratios.items())
            yield f"bound broken: {match.learner} on {match.problem}: {found}"
    stopped = [match for match in arena.matches if match.stopped]
    refused = [match for match in arena.matches if match.refused and not match.stopped]
    reasons = "; matches.csv has the reasons" if refused else ""
    yield f"{len(refused)} of {len(arena.matches)} matches were refused{reasons}"
    for match in stopped:
        yield f"stopped with an error: {match.refused}"
    if stopped:
        yield "correct the error and run the same command again"
    idle = [
        name for name in arena.learners if not arena.of_learner(name) and name not in {one.learner for one in stopped}
    ]
    if idle:
        yield f"refused every problem: {', '.join(idle)}"
    for problem, reason in arena.without_data.items():
        yield f"left out: {problem}: {reason}"


def to_csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the rows as CSV in which no cell is a formula."""
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: escape_formula(value) for key, value in row.items()} for row in rows)
    return text.getvalue().encode()


def escape_formula(value: Any) -> Any:
    """Return a cell that a spreadsheet does not evaluate: text that begins like a formula gets an apostrophe.

    Examples
    --------
    >>> from longterm.lab.arena.league_tables import escape_formula
    >>> escape_formula("=1+1"), escape_formula(-1.5), escape_formula("A-OGD")
    ("'=1+1", -1.5, 'A-OGD')
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    mark = "'" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else ""
    return mark + value.replace("\r", " ")  # a CSV reader takes it for the end of a line
