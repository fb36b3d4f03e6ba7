"""The arena's page: the league, which the reader ranks again, and for each problem the frontier and every number.

The frontier is regret against violation: a point for each learner, and those that no other beats in both.
"""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longterm.experiments.arena.league import MEASURE_OF, Preference, Standing, shares
from longterm.experiments.arena.results import GRADIENTS, ORACLES, ArenaResult, Match
from longterm.experiments.arena.tables import format_decimals
from longterm.report.page import NOTHING, Cell, Section, Table, write_document
from longterm.report.style import Look, in_plain_text, leader, look, moved_apart, publication_style, save_figure
from longterm.report.words import counted, gap_in_words, logarithmic_scale, mean_and_deviation, number, slug

KINDS = (GRADIENTS, *(name for name, _ in ORACLES))
"""What a learner asks for, each with a colour and a marker."""
NAME_GAP = 0.06
"""Between two names beside a panel, as a share of its height."""
CROWD = 12
"""Names beside a panel; of more, only those of points that stand alone, and one of each cluster."""


def look_of(match: Match) -> Look:
    """The look of its kind."""
    return look(KINDS.index(match.oracle))


def on_the_frontier(matches: Sequence[Match], measure: str) -> list[Match]:
    """Those that no other beats in both, the least violation first; slack is no merit.

    Of several with the same violation and the same regret, the first.
    """
    found: list[Match] = []
    for match in sorted(matches, key=lambda one: (one.lost(measure), one.mean("regret"))):
        if not found or match.mean("regret") < found[-1].mean("regret"):
            found.append(match)
    return found


def kinds_of(matches: Sequence[Match]) -> list[tuple[str, Look]]:
    """What these learners ask for, each with its look."""
    return [(kind, look(k)) for k, kind in enumerate(KINDS) if any(match.oracle == kind for match in matches)]


def frontier_data(matches: Sequence[Match]) -> dict[str, Any]:
    """What the page's script draws: the violation is the one that the reader chose for the league."""
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
                **look_of(match)._asdict(),
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


def write_frontiers(arena: ArenaResult, measure: str, folder: str | Path) -> list[Path]:
    """The same for print, all problems in one figure: frontier.pdf, .svg and .png."""
    names = list(arena.problems)
    columns = min(2, len(names))
    rows = -(-len(names) // columns)
    with publication_style() as plt:
        drawing = plt.figure(figsize=(5.2 * columns, 3.0 * rows + 0.5), layout="constrained")
        grid = drawing.subplots(rows, columns, squeeze=False).ravel()
        for axis, name in zip(grid, names, strict=False):
            _panel(axis, name, arena.on_problem(name), measure)
        for axis in grid[len(names) :]:
            axis.remove()
        _legend(drawing, arena)
        return save_figure(drawing, folder, "frontier")


def _panel(axis: Any, name: str, matches: Sequence[Match], measure: str) -> None:
    best = on_the_frontier(matches, measure)
    x, y = ([one.lost(measure) for one in best], [one.mean("regret") for one in best])
    axis.step(x, y, where="post", color="0.5", linewidth=1, zorder=1)
    for match in matches:
        style = look_of(match)
        axis.plot(
            match.lost(measure), match.mean("regret"), style.marker, color=style.colour, markersize=5,
            markerfacecolor=style.colour if match.anytime else "white", zorder=2,
        )  # fmt: skip
    alone = len(matches) == 1  # a single point stands in a plane that begins at the origin
    if alone:
        axis.update_datalim([(0, 0)])
    for found, which in (([m.lost(measure) for m in matches], "x"), ([m.mean("regret") for m in matches], "y")):
        values = [0.0, *found] if alone else found
        getattr(axis, f"set_{which}scale")("symlog", linthresh=_threshold(values))
        ticks = folded_ticks(_threshold(values), min(values), max(values))
        getattr(axis, f"{which}axis").set(ticks=ticks, major_formatter=lambda value, _: short_tick(value))
    axis.margins(0.06)
    axis.autoscale_view()
    _name(axis, best, measure)
    axis.set_title(in_plain_text(name), loc="left", fontsize=10)
    axis.set(xlabel=measure.replace("_", " "), ylabel="regret")
    axis.tick_params(labelsize=7)
    axis.grid(visible=True, alpha=0.3)


def folded_ticks(threshold: float, low: float, high: float) -> list[float]:
    """Zero, and on either side of it powers of ten of the threshold that the values reach, four at most.

    Even ticks where all values lie between two of these.

    Examples
    --------
    >>> folded_ticks(1.0, -0.5, 1500.0), folded_ticks(10.0, 0.0, 3.0), folded_ticks(1e3, -5e3, -1.5e3)
    ([0.0, 1.0, 10.0, 100.0, 1000.0], [0.0, 10.0], [-5000.0, -4000.0, -3000.0, -2000.0, -1000.0])
    """
    sides = []
    for end in (-low, high):
        decades = int(np.floor(np.log10(max(end, threshold) / threshold) + 1e-9))
        step = max(1, -(-(decades + 1) // 4))
        sides.append(
            [threshold * 10.0**k for k in range(decades % step, decades + 1, step)] if end >= threshold else []
        )
    below, above = sides
    ticks = [*(-tick for tick in reversed(below)), 0.0, *(above or ([] if below else [threshold]))]
    if low <= 0 <= high or sum(low <= tick <= high for tick in ticks) > 1:
        return ticks
    from matplotlib.ticker import MaxNLocator

    return [float(tick) for tick in MaxNLocator(4).tick_values(low, high)]


def short_tick(value: float) -> str:
    """As the page writes it.

    Examples
    --------
    >>> short_tick(0.0), short_tick(-1000.0), short_tick(1e6), short_tick(-2.5e5), short_tick(1e-5)
    ('0', '−1,000', '$10^{6}$', '−2.5×$10^{5}$', '$10^{-5}$')
    """
    size = abs(value)
    if size == 0 or 1e-3 <= size < 1e5:
        return f"{value:,g}".replace("-", "−")
    power = int(np.floor(np.log10(size) + 1e-9))
    factor = f"{size / 10.0**power:.3g}"
    return f"{'−' if value < 0 else ''}{'' if factor == '1' else f'{factor}×'}$10^{{{power}}}$"


def _name(axis: Any, best: Sequence[Match], measure: str) -> None:
    """The learners on the frontier by name, beside the panel where they cover nothing; in a crowd, some of them."""
    points = axis.transData.transform([(one.lost(measure), one.mean("regret")) for one in best])
    heights = axis.transAxes.inverted().transform(points)[:, 1]
    if len(best) > CROWD:
        size = np.abs(np.diff(axis.transAxes.transform([(0, 0), (1, 1)]), axis=0))[0]
        kept: list[int] = []
        for k in range(len(best)):
            if all(np.hypot(*((points[k] - points[other]) / size)) > 2 * NAME_GAP for other in kept):
                kept.append(k)
        best, heights = [best[k] for k in kept], heights[kept]
    gap = min(NAME_GAP, 1 / len(best))
    for one, place in zip(best, moved_apart(heights, gap), strict=True):
        axis.annotate(
            in_plain_text(textwrap.shorten(one.learner, 34, placeholder="…")),
            (one.lost(measure), one.mean("regret")), (1.04, place), textcoords="axes fraction", va="center",
            fontsize=7 * min(1.0, 1.1 * gap / NAME_GAP), annotation_clip=False, zorder=1,
            arrowprops=leader("0.6", 0.4),
        )  # fmt: skip


def _legend(drawing: Any, arena: ArenaResult) -> None:
    from matplotlib.lines import Line2D

    present = kinds_of([match for match in arena.matches if not match.refused])
    handles = [Line2D([], [], color=one.colour, marker=one.marker, linestyle="none") for _, one in present]
    handles.append(Line2D([], [], color="0.3", marker="o", markerfacecolor="white", linestyle="none"))
    labels = [*(kind for kind, _ in present), "hollow: needs the horizon"]
    drawing.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)


VIOLATIONS = {
    "long-term": "Long-term: the largest of the Σ gⱼ(xₜ)",
    "signed": "Signed: Σ max gⱼ(xₜ)",
    "hard": "Hard: Σ [max gⱼ(xₜ)]₊",
    "squared": "Squared: Σ [max gⱼ(xₜ)]₊²",
    "largest": "Largest in one round",
}
VERDICTS = {"held": "held", "held on average": "on average", "broken": "broken", "none": "–"}


def write_arena_page(
    arena: ArenaResult, standings: Sequence[Standing], preference: Preference, path: str | Path
) -> Path:
    """Write one self-contained HTML page; it opens without a network."""
    who = f"{counted(len(standings), 'learner')} on {counted(len(arena.problems), 'problem')}"
    lead = (
        f"{who[0].upper()}{who[1:]}, {arena.spec.rounds:,} rounds each, means over "
        f"{counted(len(arena.spec.seeds), 'sequence')} that all of them see. Regret is what was lost to the best "
        "fixed decision in hindsight; violation is by how much the constraint was broken. Less is better."
    )
    sections = [_heat(arena, standings, preference), _league(arena, standings, preference)]
    sections += [_problem(arena, name) for name in arena.problems]
    sections.append(_reading(arena, preference, Path(path).parent))
    return write_document(path, "Arena", lead, sections, script="arena.js")


def _heat(arena: ArenaResult, standings: Sequence[Standing], preference: Preference) -> Section:
    """Learner × problem, each cell the learner's score on that problem."""
    cells: dict[tuple[str, str], dict[str, Any]] = {}
    for problem in arena.problems:
        present, votes = arena.on_problem(problem), arena.weights(problem)
        parts = [
            (1 - preference.weight, shares([match.lost("regret") for match in present], votes)),
            (preference.weight, shares([match.lost(preference.measure) for match in present], votes)),
        ]
        for place, match in enumerate(present):
            score = sum(weight * lost[place] for weight, lost in parts)
            regret, broken = number(match.mean("regret")), number(match.mean(preference.measure))
            words = f"{match.learner} on {problem}: score {score:.2f}, regret {regret}, violation {broken}"
            cells[match.learner, problem] = {"score": score, "regret": regret, "words": words}
    rows = [(one.learner, [cells.get((one.learner, problem)) for problem in arena.problems]) for one in standings]
    words = (
        "Each cell is a learner's score on one problem: 0 (no colour) where nothing was lost, ½ in the middle of the "
        "field, near 1 (deep orange) for the worst; empty where it does not play. Below it, in small figures, its "
        "regret. The best learners stand on top; look for rows that stay pale, and for single deep cells in them."
    )
    shown = {
        "problems": list(arena.problems),
        "rows": rows,
        "words": words,
        "places": [slug(n) for n in arena.problems],
    }
    return Section("heat", "Who does well where", "heat.html.j2", shown)


def _league(arena: ArenaResult, standings: Sequence[Standing], preference: Preference) -> Section:
    best = standings[0]
    broken = [match for match in arena.matches if match.verdict == "broken"]
    refused = sum(bool(match.refused) for match in arena.matches)
    stopped = sum(match.stopped for match in arena.matches)
    not_played = f"{refused - stopped:,} refused before round 1" + (f", {stopped:,} with an error" if stopped else "")
    headlines = (
        ("First", best.learner, f"score {best.score:.3f}"),
        (
            "Theorems",
            f"{sum(m.verdict != 'none' and not m.refused for m in arena.matches):,} checked",
            f"{len(broken)} broken" if broken else "none broken",
        ),
        ("Matches", f"{len(arena.matches) - refused:,} played", not_played),
    )
    data = {
        "learners": [{"name": one.learner, "shares": dict(one.shares), "slopes": _slopes(one)} for one in standings]
    }
    table = Table(
        "The score is (1 − weight) × regret + weight × violation, in shares from 0 to 1. Growth is the median exponent "
        "of T over the problems where something was lost. The bound's column has the worst ratio of measured to "
        "proven. µs of processor time are for a round of all sequences at once, in NumPy.",
        "Learner",
        (
            ("", ("rank", "score")),
            ("Share lost", ("regret", "violation")),
            ("Growth", ("regret", "violation")),
            ("", ("bound", "played", "anytime", "asks for", "µs")),
        ),
        tuple((one.learner, _line(arena, one, preference)) for one in standings),
    )
    shown = {
        "headlines": headlines,
        "weight": f"{preference.weight:g}",
        "violations": [(MEASURE_OF[key], words, key == preference.violation) for key, words in VIOLATIONS.items()],
        "learners": [one.learner for one in standings],
        "data": data,
        "table": table,
        "broken": _broken(broken),
    }
    return Section("league", "League", "league.html.j2", shown)


def _line(arena: ArenaResult, one: Standing, preference: Preference) -> tuple[Cell, ...]:
    first = one.matches[0]
    return (
        Cell(str(one.rank), one.rank),
        Cell(f"{one.score:.3f}", one.score),
        Cell(f"{one.shares['regret']:.3f}", one.shares["regret"]),
        Cell(f"{one.shares[preference.measure]:.3f}", one.shares[preference.measure]),
        _growth(one.slope("regret")),
        _growth(one.slope(preference.measure)),
        _of_bound(one.bound_ratio),
        Cell(f"{len(one.matches)} of {len(arena.problems)}", len(one.matches)),
        Cell("yes" if first.anytime else "no"),
        Cell(first.oracle, small=", ".join(first.also_needs)),
        NOTHING if one.microseconds is None else Cell(f"{one.microseconds:,.0f}", one.microseconds),
    )


def _slopes(one: Standing) -> dict[str, str]:
    """In words, for the column that follows the reader's violation."""
    return {measure: format_decimals(one.slope(measure)) for measure in MEASURE_OF.values()}


def _problem(arena: ArenaResult, name: str) -> Section:
    about, present = arena.problems[name], arena.on_problem(name)
    refused = [match for match in arena.matches if match.problem == name and match.refused]
    assumed = [(match.learner, " ".join(match.warnings)) for match in present if match.warnings]
    shown = {
        "data": frontier_data(present),
        "kinds": kinds_of(present),
        "table": _numbers(arena, present),
        "players": counted(len(present), "learner"),
        "reasons": [
            (f"{words} {counted(len(found), 'learner')}, and why", found)
            for words, found in (
                ("Not played by", [(match.learner, match.refused) for match in refused if not match.stopped]),
                ("Stopped with an error in", [(match.learner, match.refused) for match in refused if match.stopped]),
                ("Played outside of the theorem of", assumed),
            )
        ],
    }
    count, gap = about["constraints"], gap_in_words(about["certified_gap"])
    constraints = counted(count, "constraint")
    kicker = f"Dimension {about['dimension']}, {constraints}; best in hindsight: {gap}"
    return Section(slug(name), name[0].upper() + name[1:], "problem.html.j2", shown, kicker)


def _numbers(arena: ArenaResult, present: Sequence[Match]) -> Table:
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
            cells += [Cell(mean_and_deviation(mean, match.std(measure)), mean), _growth(match.slope(measure))]
            ratio = match.ratios.get(measure)
            cells.append(NOTHING if ratio is None else _of_bound(ratio[0]))
        cells.append(Cell(number(match.mean("largest_violation")), match.mean("largest_violation")))
        cells.append(Cell(VERDICTS[match.verdict]))
        rows.append((match.learner, tuple(cells)))
    groups = (*((name, ("mean ± std", "growth", "of bound")) for name in columns), ("", ("worst round", "bounds")))
    return Table(f"After {arena.spec.rounds:,} rounds.", "Learner", groups, tuple(rows))


def _broken(broken: Sequence[Match]) -> list[tuple[str, str]]:
    return [
        (
            f"{one.learner} on {one.problem}",
            ", ".join(f"{m.replace('_', ' ')}: {r:.3g} of its bound" for m, (r, _) in one.ratios.items() if r > 1),
        )
        for one in broken
    ]


def _reading(arena: ArenaResult, preference: Preference, folder: Path) -> Section:
    score = (
        "On each problem a measure v, mean over the sequences after the last round, becomes the share [v]₊/([v]₊ + "
        "s), where s is the median of the positive ones among all that played (the settings of a learner have one "
        "vote together): 0 where nothing was lost, ½ in the middle of the field. A score is (1 − weight) times the "
        "share of the regret plus weight times that of the violation, mean over the problems; one that a learner "
        "cannot play counts ½."
    )
    oracle = (
        "Gradients: a value and a gradient of loss and constraint where it plays. Prox, projection: that map of the "
        "constraint besides. Affine g: the matrix. Values at other points: of the constraint, instead of its gradient. "
        "G known: its gradients elsewhere, too, where it does not change."
    )
    asked = f"--weight {preference.weight:g} --violation {preference.violation} --out {shlex.quote(str(folder))}"
    again = f"{arena.spec.command} {asked}"
    facts: list[tuple[str, str]] = [
        ("Score", score),
        ("Growth", "The exponent a of c·Tᵃ through T/16, T/4 and T rounds. Learners that need T are run for each."),
        (
            "Bounds",
            "Measured ÷ proven where it is largest, over the kept rounds and the sequences; above 1 it is broken.",
        ),
        ("Asks for", oracle),
    ]
    idle = [name for name in arena.learners if not arena.of_learner(name)]
    if idle:
        facts.append(("Refused every problem", ", ".join(idle)))
    facts += [(f"Left out: {name}", reason) for name, reason in arena.without_data.items()]
    return Section("reading", "How to read it", "reading.html.j2", {"facts": facts, "command": again})


def _growth(slope: float | None) -> Cell:
    return NOTHING if slope is None else Cell("T", slope, exponent=format_decimals(slope).replace("-", "−"))


def _of_bound(ratio: float | None) -> Cell:
    return NOTHING if ratio is None else Cell(f"{ratio:.2g}" if ratio < 1e6 else "∞", ratio if ratio < 1e300 else None)
