"""Regret against violation on one problem: a point for each learner, and those that no other beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longterm.experiments.arena.league import MEASURE_OF
from longterm.experiments.arena.results import GRADIENTS, ORACLES, ArenaResult, Match
from longterm.report.drawing import in_plain_text
from longterm.report.scales import logarithmic_scale
from longterm.report.style import Look, look, publication_style, save_figure

KINDS = (GRADIENTS, *(name for name, _ in ORACLES))
"""What a learner asks for, each with a colour and a marker."""


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
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    with publication_style() as plt:
        drawing = plt.figure(figsize=(3.6 * columns, 3.0 * rows + 0.5), layout="constrained")
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
    for values, which in (([m.lost(measure) for m in matches], "x"), ([m.mean("regret") for m in matches], "y")):
        getattr(axis, f"set_{which}scale")("symlog", linthresh=_threshold(values))
    axis.set_title(in_plain_text(name), loc="left", fontsize=10)
    axis.set(xlabel=measure.replace("_", " "), ylabel="regret")
    axis.tick_params(labelsize=7)
    axis.grid(visible=True, alpha=0.3)


def _legend(drawing: Any, arena: ArenaResult) -> None:
    from matplotlib.lines import Line2D

    present = kinds_of([match for match in arena.matches if not match.refused])
    handles = [Line2D([], [], color=one.colour, marker=one.marker, linestyle="none") for _, one in present]
    handles.append(Line2D([], [], color="0.3", marker="o", markerfacecolor="white", linestyle="none"))
    labels = [*(kind for kind, _ in present), "hollow: needs the horizon"]
    drawing.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
