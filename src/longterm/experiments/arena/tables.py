"""The tables of an arena: for the terminal, as CSV and as JSON. Times are kept apart: all else is the same every time.

league.csv     a line for each learner, by rank
matches.csv    a line for each learner on each problem, refusals with their reason
arena.json     both, what was asked for, and what was left out
speed.csv      µs per round
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from longterm.experiments.arena.league import Preference, Standing
from longterm.experiments.arena.results import MEASURED, ArenaResult, Match
from longterm.experiments.folder import JobFolder
from longterm.storage.files import write_atomically


def write_tables(arena: ArenaResult, standings: Sequence[Standing], preference: Preference, folder: str | Path) -> None:
    """Write them all."""
    kept = JobFolder(folder)
    leagues = [league_row(one, preference, len(arena.problems)) for one in standings]
    matches = [match_row(one) for one in arena.matches]
    for name, rows in (("league.csv", leagues), ("matches.csv", matches), ("speed.csv", _speed(arena))):
        write_atomically(kept.path / name, _csv(rows))
    asked = {"weight": preference.weight, "violation": preference.violation, **arena.spec.table()}
    problems = {name: dict(about) for name, about in arena.problems.items()}
    content = {"asked": asked, "problems": problems, "left_out": dict(arena.without_data)}
    kept.write_json("arena.json", _finite({**content, "league": leagues, "matches": matches}))


def league_row(one: Standing, preference: Preference, problems: int) -> dict[str, Any]:
    """One learner."""
    first = one.matches[0]
    return {
        "rank": one.rank,
        "learner": one.learner,
        "score": one.score,
        "score_error": one.deviation,
        "tied_with_the_one_before": one.tied,
        "regret_share": one.shares["regret"],
        "violation_share": one.shares[preference.measure],
        "played": len(one.matches),
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
    """One learner on one problem."""
    row: dict[str, Any] = {"learner": one.learner, "problem": one.problem, "refused": one.refused}
    for measure in MEASURED:
        row[measure] = None if one.refused else one.mean(measure)
        row[f"{measure}_std"] = None if one.refused else one.std(measure)
    for measure in MEASURED[:-1]:
        row[f"{measure}_slope"] = None if one.refused else one.slope(measure)
    for measure in MEASURED[:-1]:
        row[f"{measure}_of_bound"] = one.ratios[measure][0] if measure in one.ratios else None
    return {**row, "bounds": one.verdict, "assumptions": " ".join(one.warnings)}


def league_text(arena: ArenaResult, standings: Sequence[Standing], preference: Preference) -> str:
    """For the terminal: the league, then bounds that were broken, refusals by reason, and what was left out."""
    widest = max(len(one.learner) for one in standings) + 2
    columns = ("score", "± error", "regret", "violation", "played", "T^regret", "T^viol.", "of bound", "µs/round")
    lines = [
        f"score = {1 - preference.weight:g} × regret + {preference.weight:g} × {preference.violation} violation, "
        "shares from 0 to 1, less is better",
        " " * (widest + 4) + "".join(f"{column:>10}" for column in columns) + "  anytime  oracle",
    ]
    for one in standings:
        cells = (
            f"{one.score:.3f}",
            f"{one.deviation:.3f}",
            f"{one.shares['regret']:.3f}",
            f"{one.shares[preference.measure]:.3f}",
            f"{len(one.matches)}/{len(arena.problems)}",
            short(one.slope("regret")),
            short(one.slope(preference.measure)),
            short(one.bound_ratio),
            short(one.microseconds, 0),
        )
        first = one.matches[0]
        needs = ", ".join((first.oracle, *first.also_needs))
        lines.append(
            f"{one.rank:>3}{'=' if one.tied else ' '}{one.learner:<{widest}}"
            + "".join(f"{cell:>10}" for cell in cells)
            + f"  {'yes' if first.anytime else 'no':<7}  {needs}"
        )
    lines.append("= behind the one before by less than twice the standard error of their difference: a tie")
    return "\n".join([*lines, *_raw(arena, standings, preference), *_findings(arena)]) + "\n"


def _raw(arena: ArenaResult, standings: Sequence[Standing], preference: Preference, first: int = 6) -> Iterable[str]:
    """What the shares are made of: regret and violation themselves, of the first few, mean ± deviation."""
    for measure in ("regret", preference.measure):
        yield f"\n{measure.replace('_', ' ')} after {arena.spec.rounds} rounds, mean ± deviation over the sequences"
        yield f"{'':<28}" + "".join(f"{one.learner[:22]:>24}" for one in standings[:first])
        for problem in arena.problems:
            cells = []
            for one in standings[:first]:
                match = next((m for m in one.matches if m.problem == problem), None)
                cells.append("–" if match is None else f"{match.mean(measure):.4g} ± {match.std(measure):.2g}")
            yield f"{problem[:27]:<28}" + "".join(f"{cell:>24}" for cell in cells)
    yield ""


def _findings(arena: ArenaResult) -> Iterable[str]:
    for match in arena.matches:
        if match.verdict == "broken":
            found = ", ".join(f"{measure} {single:.3g} of it" for measure, (single, _) in match.ratios.items())
            yield f"bound broken: {match.learner} on {match.problem}: {found}"
    stopped = [match for match in arena.matches if match.stopped]
    refused = [match for match in arena.matches if match.refused and not match.stopped]
    yield f"{len(refused)} of {len(arena.matches)} matches were refused; matches.csv has the reasons"
    for match in stopped:
        yield f"stopped with an error: {match.refused}"
    if stopped:
        yield "mend it, and the same command plays it again"
    idle = [name for name in arena.learners if not arena.of(name) and name not in {one.learner for one in stopped}]
    if idle:
        yield f"refused every problem: {', '.join(idle)}"
    for problem, reason in arena.without_data.items():
        yield f"left out: {problem}: {reason}"


def _speed(arena: ArenaResult) -> list[dict[str, Any]]:
    return [
        {"learner": one.learner, "problem": one.problem, "microseconds_per_round": round(one.microseconds, 1)}
        for one in arena.matches
        if one.microseconds is not None
    ]


def _csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: harmless(value) for key, value in row.items()} for row in rows)
    return text.getvalue().encode()


def harmless(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: a word that begins as one does gets an apostrophe before it.

    Examples
    --------
    >>> from longterm.experiments.arena.tables import harmless
    >>> harmless("=1+1"), harmless(-1.5), harmless("A-OGD")
    ("'=1+1", -1.5, 'A-OGD')
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    mark = "'" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else ""
    return mark + value.replace("\r", " ")  # which a reader would take for the end of a line


def _finite(value: Any) -> Any:
    """JSON has no infinity: a bound of 0 that was broken is the word."""
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return "infinite" if isinstance(value, float) and math.isinf(value) else value


def short(value: float | None, digits: int = 2) -> str:
    """A number with so many digits, never −0.00; a dash for none."""
    return "–" if value is None else f"{round(value, digits) + 0.0:.{digits}f}"
