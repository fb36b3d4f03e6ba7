"""What both figures share: a curve with its band, and a legend that covers nothing."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from longterm._arrays import FloatArray
from longterm.experiments.result import Curve, Result
from longterm.report.style import line_style, look
from longterm.report.words import extent

LEGEND_WIDTH = 44
"""Letters in a line of the legend; longer names go on in the next."""


def draw_curve(axis: Any, result: Result, curve: Curve, index: int, measure: str) -> None:
    """The mean over the sequences, with a band from the least to the greatest of them."""
    values, style = curve.measures[measure], look(index)
    axis.plot(
        result.rounds, curve.mean(measure), color=style.colour, linestyle=line_style(index, curve.role),
        marker=style.marker, markersize=4, markevery=(0.14 * index / len(result.curves), 0.14),
    )  # fmt: skip
    axis.fill_between(result.rounds, values.min(axis=1), values.max(axis=1), color=style.colour, alpha=0.2, linewidth=0)


def height_of_words(result: Result) -> float:
    """What the title takes above the panels and the legend below them, in inches."""
    lines = sum(len(textwrap.wrap(curve.name, LEGEND_WIDTH)) for curve in result.curves)
    return 0.2 + 0.16 * (lines / legend_columns(result) + 2) + 0.2 * len(title_of(result).splitlines())


def legend_columns(result: Result) -> int:
    """More where there are many names, and short ones."""
    many, short = len(result.curves) > 16, max(len(curve.name) for curve in result.curves) <= 30
    return 4 if many and short else 2


def outside_legend(drawing: Any, result: Result, *, bounds: bool) -> None:
    """Below the panels, where it covers nothing."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Line2D([], [], color=look(k).colour, linestyle=line_style(k, curve.role), marker=look(k).marker, markersize=4)
        for k, curve in enumerate(result.curves)
    ]
    labels = [in_plain_text(textwrap.fill(curve.name, LEGEND_WIDTH)) for curve in result.curves]
    if bounds and any(curve.bounds for curve in result.curves):
        handles.append(Line2D([], [], color="black", linestyle="--", linewidth=1.1))
        labels.append("bound, in its colour")
    if bounds and any(curve.printed_bounds for curve in result.curves):
        handles.append(Line2D([], [], color="black", linestyle=":", linewidth=1.1))
        labels.append("bound as printed in the paper")
    if len(result.seeds) > 1:
        handles.append(Patch(color="black", alpha=0.2, linewidth=0))
        labels.append("least to greatest of the sequences")
    columns = legend_columns(result)
    drawing.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=8, handlelength=3.2
    )


def in_plain_text(text: str) -> str:
    """Text that matplotlib shows as it stands: a dollar in a user's name starts no formula."""
    return text.replace("$", r"\$")


def title_of(result: Result) -> str:
    """The figure's title: what was played, and below it how much of it, in lines that fit a figure of two panels."""
    what = textwrap.fill(textwrap.shorten(result.title, 130), 84)
    return in_plain_text(f"{what}\n{extent(result)}")


def leader(colour: str, width: float) -> dict[str, Any]:
    """The thin line from a point to the left edge of its label, as matplotlib wants it described."""
    ends = {"shrinkA": 1, "shrinkB": 0, "relpos": (0, 0.5)}
    return {"arrowstyle": "-", "color": colour, "linewidth": width, **ends}


def moved_apart(heights: FloatArray, gap: float) -> FloatArray:
    """Places for labels at these heights of a panel, 0 to 1, moved as little as it takes to be a gap apart.

    Examples
    --------
    >>> import numpy as np
    >>> moved_apart(np.array([0.5, 0.1, 0.5]), 0.1).round(3)
    array([0.45, 0.1 , 0.55])
    """
    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(len(heights))
    apart = np.clip(isotonic_regression(np.clip(heights[order], 0, 1) - steps).x, 0, max(0.0, 1 - steps[-1])) + steps
    places = np.empty(len(heights))
    places[order] = apart
    return places


def largest(result: Result, measure: str) -> list[float]:
    """How far from zero each curve goes."""
    return [float(np.max(np.abs(curve.mean(measure)))) for curve in result.curves]
