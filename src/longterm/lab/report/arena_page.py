"""The page of an arena: the league, and for each problem the frontier of regret against violation and all numbers."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longterm._base.display import format_decimals
from longterm.lab.arena.league import MEASURE_OF, Preference, Standing, shares
from longterm.lab.arena.results import GRADIENTS, ORACLES, ArenaResult, Match
from longterm.lab.report.axes import logarithmic_scale
from longterm.lab.report.document import Section, write_document
from longterm.lab.report.formats import format_count, format_gap, format_mean, format_number, page_slug
from longterm.lab.report.names import MEASURE_FORMULAS
from longterm.lab.report.page_tables import EMPTY, Cell, HtmlTable, growth_cell
from longterm.lab.report.style import CurveStyle, curve_style

ORACLE_NAMES = (GRADIENTS, *(name for name, _ in ORACLES))
"""Each oracle has a colour and a marker."""
VERDICTS = {"held": "held", "held on average": "on average", "broken": "broken", "none": "–"}


def write_arena_page(
    arena: ArenaResult, standings: Sequence[Standing], preference: Preference, path: str | Path
) -> Path:
    """Write one self-contained HTML page."""
    size = f"{format_count(len(standings), 'learner')} on {format_count(len(arena.problems), 'problem')}"
    lead = (
        f"{size[0].upper()}{size[1:]}, {arena.spec.rounds:,} rounds each, means over "
        f"{format_count(len(arena.spec.seeds), 'sequence')}, the same for all learners. Regret is the loss beyond that "
        "of the best fixed decision in hindsight. Violation is the amount by which the constraint was violated. "
        "Smaller is better."
    )
    sections = [_heat(arena, standings, preference), _league(arena, standings, preference)]
    sections += [_problem(arena, name) for name in arena.problems]
    sections.append(_reading(arena, preference, Path(path).parent))
    return write_document(path, "Arena", lead, sections, script="arena.js")


def _heat(arena: ArenaResult, standings: Sequence[Standing], preference: Preference) -> Section:
    """Return the section with each learner's score on each problem."""
    cells: dict[tuple[str, str], dict[str, Any]] = {}
    for problem in arena.problems:
        present, weights = arena.on_problem(problem), arena.weights(problem)
        parts = [
            (1 - preference.weight, shares([match.lost("regret") for match in present], weights)),
            (preference.weight, shares([match.lost(preference.measure) for match in present], weights)),
        ]
        for index, match in enumerate(present):
            score = sum(weight * lost[index] for weight, lost in parts)
            regret, violation = (format_number(match.mean(measure)) for measure in ("regret", preference.measure))
            words = f"{match.learner} on {problem}: score {score:.2f}, regret {regret}, violation {violation}"
            cells[match.learner, problem] = {"score": score, "regret": regret, "words": words}
    rows = [(one.learner, [cells.get((one.learner, problem)) for problem in arena.problems]) for one in standings]
    words = (
        "Each cell is a learner's score on one problem: 0 (no colour) without loss, ½ at the median, near 1 (deep "
        "orange) for the worst. It is empty if the learner cannot handle the problem. The small number is the regret. "
        "Learners are sorted by their score."
    )
    shown = {
        "problems": list(arena.problems),
        "rows": rows,
        "words": words,
        "places": [page_slug(n) for n in arena.problems],
    }
    return Section("heat", "Scores by problem", "heat.html.j2", shown)


def _league(arena: ArenaResult, standings: Sequence[Standing], preference: Preference) -> Section:
    """Return the section with the league table, which the reader can rank again."""
    best = standings[0]
    broken = [match for match in arena.matches if match.verdict == "broken"]
    refused = sum(bool(match.refused) for match in arena.matches)
    stopped = sum(match.stopped for match in arena.matches)
    refusals = f"{refused - stopped:,} refused before round 1" + (f", {stopped:,} with an error" if stopped else "")
    headlines = (
        ("First", best.learner, f"score {best.score:.3f}"),
        (
            "Theorems",
            f"{sum(m.verdict != 'none' and not m.refused for m in arena.matches):,} checked",
            f"{len(broken)} broken" if broken else "none broken",
        ),
        ("Matches", f"{len(arena.matches) - refused:,} finished", refusals),
    )
    data = {
        "learners": [
            {
                "name": one.learner,
                "shares": dict(one.shares),
                "slopes": {measure: format_decimals(one.slope(measure)) for measure in MEASURE_OF.values()},
            }
            for one in standings
        ]
    }
    table = HtmlTable(
        "The score is (1 − weight) × regret + weight × violation, in shares from 0 to 1. Growth is the median exponent "
        "of T over the problems with a positive value. The column bound has the largest ratio of measured to bound. µs "
        "of processor time are for one round of all sequences, in NumPy.",
        "Learner",
        (
            ("", ("rank", "score")),
            ("Share", ("regret", "violation")),
            ("Growth", ("regret", "violation")),
            ("", ("bound", "problems", "anytime", "oracle", "µs")),
        ),
        tuple((one.learner, _league_cells(arena, one, preference)) for one in standings),
    )
    shown = {
        "headlines": headlines,
        "weight": f"{preference.weight:g}",
        "violations": [
            (measure, f"{name.capitalize()}: {MEASURE_FORMULAS[measure]}", name == preference.violation)
            for name, measure in MEASURE_OF.items()
        ],
        "learners": [one.learner for one in standings],
        "data": data,
        "table": table,
        "broken": _broken(broken),
    }
    return Section("league", "League", "league.html.j2", shown)


def _league_cells(arena: ArenaResult, one: Standing, preference: Preference) -> tuple[Cell, ...]:
    first = one.matches[0]
    return (
        Cell(str(one.rank), one.rank),
        Cell(f"{one.score:.3f}", one.score),
        Cell(f"{one.shares['regret']:.3f}", one.shares["regret"]),
        Cell(f"{one.shares[preference.measure]:.3f}", one.shares[preference.measure]),
        growth_cell("T", one.slope("regret")),
        growth_cell("T", one.slope(preference.measure)),
        _of_bound(one.bound_ratio),
        Cell(f"{len(one.matches)} of {len(arena.problems)}", len(one.matches)),
        Cell("yes" if first.anytime else "no"),
        Cell(first.oracle, small=", ".join(first.also_needs)),
        EMPTY if one.microseconds is None else Cell(f"{one.microseconds:,.0f}", one.microseconds),
    )


def frontier_data(matches: Sequence[Match]) -> dict[str, Any]:
    """Return the data of the interactive frontier, for every measure of violation."""
    measures = tuple(MEASURE_OF.values())
    return {
        "points": [
            {
                "name": match.learner,
                "regret": match.mean("regret"),
                "violation": {measure: match.mean(measure) for measure in measures},
                "lost": {measure: match.lost(measure) for measure in measures},
                "oracle": match.oracle,
                "anytime": match.anytime,
                **curve_style(ORACLE_NAMES.index(match.oracle))._asdict(),
            }
            for match in matches
        ],
        "thresholds": {
            "regret": _threshold([match.mean("regret") for match in matches]),
            **{measure: _threshold([match.lost(measure) for match in matches]) for measure in measures},
        },
    }


def _threshold(values: Sequence[float]) -> float:
    return logarithmic_scale(np.array([0.0, *values])).threshold


def _oracle_styles(matches: Sequence[Match]) -> list[tuple[str, CurveStyle]]:
    found = {match.oracle for match in matches}
    return [(name, curve_style(k)) for k, name in enumerate(ORACLE_NAMES) if name in found]


def _problem(arena: ArenaResult, name: str) -> Section:
    facts, present = arena.problems[name], arena.on_problem(name)
    refused = [match for match in arena.matches if match.problem == name and match.refused]
    assumed = [(match.learner, " ".join(match.warnings)) for match in present if match.warnings]
    shown = {
        "data": frontier_data(present),
        "kinds": _oracle_styles(present),
        "table": _numbers(arena, present),
        "players": format_count(len(present), "learner"),
        "reasons": [
            (f"{words} {format_count(len(found), 'learner')}, with reasons", found)
            for words, found in (
                ("Refused by", [(match.learner, match.refused) for match in refused if not match.stopped]),
                ("Stopped with an error in", [(match.learner, match.refused) for match in refused if match.stopped]),
                ("Assumptions of a theorem do not hold for", assumed),
            )
        ],
    }
    constraints, gap = format_count(facts["constraints"], "constraint"), format_gap(facts["certified_gap"])
    kicker = f"Dimension {facts['dimension']}, {constraints}; gap of the best decision in hindsight: {gap}"
    return Section(page_slug(name), name[0].upper() + name[1:], "problem.html.j2", shown, kicker)


def _numbers(arena: ArenaResult, present: Sequence[Match]) -> HtmlTable:
    """Return the table of all measures on one problem."""
    columns = {
        "Regret": "regret",
        "Long-term": "long_term_violation",
        "Signed": "signed_violation",
        "Hard": "hard_violation",
        "Squared": "squared_violation",
    }
    rows = []
    for match in present:
        cells: list[Cell] = []
        for measure in columns.values():
            mean = match.mean(measure)
            cells += [Cell(format_mean(mean, match.std(measure)), mean), growth_cell("T", match.slope(measure))]
            ratio = match.ratios.get(measure)
            cells.append(EMPTY if ratio is None else _of_bound(ratio[0]))
        cells.append(Cell(format_number(match.mean("largest_violation")), match.mean("largest_violation")))
        cells.append(Cell(VERDICTS[match.verdict]))
        rows.append((match.learner, tuple(cells)))
    groups = (*((name, ("mean ± std", "growth", "of bound")) for name in columns), ("", ("largest g", "bounds")))
    return HtmlTable(f"After {arena.spec.rounds:,} rounds.", "Learner", groups, tuple(rows))


def _broken(broken: Sequence[Match]) -> list[tuple[str, str]]:
    return [
        (
            f"{one.learner} on {one.problem}",
            ", ".join(f"{m.replace('_', ' ')}: {r:.3g} of its bound" for m, (r, _) in one.ratios.items() if r > 1),
        )
        for one in broken
    ]


def _reading(arena: ArenaResult, preference: Preference, folder: Path) -> Section:
    """Return the section that explains the columns."""
    score = (
        "On each problem, v is the mean of a measure over the sequences after the last round. Its share is "
        "[v]₊/([v]₊ + s), where s is the median of the positive values of all learners. All settings of one learner "
        "together have weight 1. The share is 0 without loss and ½ at the median. The score is the mean over the "
        "problems of (1 − weight) times the share of regret plus weight times the share of violation. A problem that "
        "a learner cannot handle counts ½."
    )
    oracle = (
        "Gradients: a value and a gradient of loss and constraint at the learner's point. Prox, projection: this map "
        "of the constraint in addition. Affine g: the matrix of the constraint. Values at other points: values of the "
        "constraint instead of its gradient. g known: gradients of a fixed constraint at other points in addition."
    )
    asked = f"--weight {preference.weight:g} --violation {preference.violation} --out {shlex.quote(str(folder))}"
    facts: list[tuple[str, str]] = [
        ("Score", score),
        ("Growth", "The exponent a of a fit c·Tᵃ at T/16, T/4 and T rounds. Learners that need T are run for each."),
        (
            "Bounds",
            "The largest ratio of measured to bound over recorded rounds and sequences; above 1 the bound is broken.",
        ),
        ("Oracle", oracle),
    ]
    idle = [name for name in arena.learners if not arena.of_learner(name)]
    if idle:
        facts.append(("Refused every problem", ", ".join(idle)))
    facts += [(f"Left out: {name}", reason) for name, reason in arena.without_data.items()]
    return Section(
        "reading", "How to read it", "reading.html.j2", {"facts": facts, "command": f"{arena.spec.command} {asked}"}
    )


def _of_bound(ratio: float | None) -> Cell:
    return EMPTY if ratio is None else Cell(f"{ratio:.2g}" if ratio < 1e6 else "∞", ratio if ratio < 1e300 else None)
