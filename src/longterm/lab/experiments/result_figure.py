"""The Matplotlib figure of a result: one panel for each measure, on linear axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from longterm._base.extras import import_optional
from longterm.errors import InputError
from longterm.play.engines.figure import COLOURS, DASHES, Band, band_for, draw_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from longterm.lab.experiments.result import Result

WIDTH, HEIGHT = 4.2, 3.2
"""Inches of a panel."""


def draw_result(
    result: Result, measures: Sequence[str], band: Band | None, size: tuple[float, float] | None, axes: Any
) -> Figure:
    """Draw these measures into given axes, or into a new figure, and return the figure."""
    plt: Any = import_optional("matplotlib.pyplot", "a figure needs Matplotlib", "experiments")
    unknown = [measure for measure in measures if measure not in result.measures]
    if unknown or not measures:
        what = f"{unknown} are not recorded" if unknown else "is empty"
        raise InputError("measures", what, f"Choose from {list(result.measures)}")
    band = band_for(len(result.curves), band)
    if axes is None:
        figure = plt.figure(figsize=size or (WIDTH * len(measures), HEIGHT), layout="constrained")
        axes = figure.subplots(1, len(measures), squeeze=False)[0]
    for panel, measure in zip(axes, measures, strict=True):
        for number, curve in enumerate(result.curves):
            colour, dash = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
            panel.plot(result.rounds, curve.mean(measure), color=colour, linestyle=dash)
            draw_band(panel, result.rounds, curve.measures[measure], colour, band)
        panel.axhline(0, color="#888888", linewidth=0.6, zorder=0)
        panel.set(xlabel="round t", ylabel=measure.replace("_", " "))
        panel.spines[["top", "right"]].set_visible(False)
    curves = axes[0].lines[-1 - len(result.curves) : -1]  # the last line is the one at 0
    names = [curve.name.replace("$", r"\$") for curve in result.curves]
    axes[0].legend(curves, names, frameon=False, fontsize="small")
    return cast("Figure", axes[0].figure)
