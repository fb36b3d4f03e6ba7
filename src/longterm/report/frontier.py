"""Regret against violation on one problem: a point for each learner, and those that no other beats in both."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longterm.experiments.arena.league import MEASURE_OF
from longterm.experiments.arena.results import GRADIENTS, ORACLES, ArenaResult, Match
from longterm.report.style import Look, in_plain_text, leader, look, moved_apart, publication_style, save_figure
from longterm.report.words import logarithmic_scale

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
            _panel(axis, name, arena.played(name), measure)
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
