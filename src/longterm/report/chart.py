"""The interactive figure: data for the script of the page, and the controls that it listens to."""

from __future__ import annotations

from typing import Any

import numpy as np

from longterm._arrays import FloatArray
from longterm.experiments.result import Curve, Result
from longterm.report.appearance import DASHES, Look, look
from longterm.report.html import Html, data_block, tag
from longterm.report.scales import scale_of
from longterm.report.words import MEASURE_FORMULAS, MEASURE_NAMES, MEASURE_WORDS, ROLE_WORDS

SHOWN_FIRST = ("regret", "signed_violation")
"""What the two plots show until the reader chooses: the paper's figures."""
SHAPES = {
    "circle": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "square": "M-4-4h8v8h-8z",
    "triangle-up": "M0-5L4.6 3.5H-4.6z",
    "diamond": "M0-5L5 0L0 5L-5 0z",
    "triangle-down": "M0 5L4.6-3.5H-4.6z",
    "x": "M-4.5-2.5L-2.5-4.5L0-2L2.5-4.5L4.5-2.5L2 0L4.5 2.5L2.5 4.5L0 2L-2.5 4.5L-4.5 2.5L-2 0z",
    "cross": "M-1.6-5h3.2v3.4h3.4v3.2h-3.4v3.4h-3.2v-3.4h-3.4v-3.2h3.4z",
}
"""plotly's markers, as paths about their centre."""


def chart(result: Result, id: str) -> Html:
    """Two plots with one legend: every curve can be hidden, every measure chosen, the axes linear or logarithmic."""
    axes = tag(
        "fieldset",
        tag("legend", "Axes"),
        *(_choice(f"{id}-axes", kind, words, kind == "log") for kind, words in (("log", "Log"), ("linear", "Linear"))),
        class_="pills",
    )
    switches = [_switch("bands", "Deviation")]
    if any(curve.bounds or curve.printed_bounds for curve in result.curves):
        switches.append(_switch("bounds", "Bounds"))
    legend = [_legend_entry(k, curve) for k, curve in enumerate(result.curves)]
    caption = (
        "Mean over the sequences, with a band of one standard deviation. Dashed: the theorem's bound; dotted: the "
        "bound as printed in the paper. On linear axes only bounds that are not far above the curves are "
        "drawn. Press a name to hide or show its curve; with a mouse, drag to zoom and double-click to see all again."
    )
    return tag(
        "figure",
        data_block(chart_data(result)),
        tag("div", axes, *switches, class_="controls"),
        tag("div", *legend, class_="legend", role="group", aria_label="Curves: press to hide or show"),
        tag("div", *(_plot(result, id, k, measure) for k, measure in enumerate(SHOWN_FIRST)), class_="plots"),
        tag("noscript", tag("p", "The figure needs JavaScript; the tables have its numbers.")),
        tag("figcaption", caption),
        class_="chart",
    )


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
                "dash": DASHES[curve.role],
                "mean": {measure: _numbers(curve.mean(measure)) for measure in result.measures},
                "std": {measure: _numbers(curve.std(measure)) for measure in result.measures},
                "bounds": {measure: _numbers(bound) for measure, bound in curve.bounds.items()},
                "printed": {measure: _numbers(bound) for measure, bound in curve.printed_bounds.items()},
            }
            for k, curve in enumerate(result.curves)
        ],
    }


def swatch(style: Look, dash: str) -> Html:
    """A piece of the line with its marker."""
    line = tag("line", x1=-15, x2=15, y1=0, y2=0, stroke_dasharray="7 2 1.5 2" if dash == "dashdot" else None)
    colours = f"--light:{style.colour};--dark:{style.on_dark}"
    drawn = (line, tag("path", d=SHAPES[style.symbol]))
    return tag("svg", *drawn, viewBox="-16 -7 32 14", class_="swatch", style=colours, aria_hidden="true")


def _numbers(values: FloatArray) -> list[float | None]:
    return [float(f"{v:.7g}") if np.isfinite(v) else None for v in np.asarray(values, dtype=np.float64)]


def _legend_entry(index: int, curve: Curve) -> Html:
    words = ROLE_WORDS[curve.role] if curve.role == "fair" else None
    return tag(
        "button",
        swatch(look(index), DASHES[curve.role]),
        tag("span", curve.name),
        type="button",
        aria_pressed="true",
        data_curve=index,
        title=words,
    )


def _choice(group: str, value: str, words: str, checked: bool) -> Html:
    return tag("label", tag("input", type="radio", name=group, value=value, checked=checked), tag("span", words))


def _switch(value: str, words: str) -> Html:
    return tag("label", tag("input", type="checkbox", value=value, checked=True), tag("span", words), class_="switch")


def _plot(result: Result, id: str, index: int, chosen: str) -> Html:
    options = [tag("option", MEASURE_NAMES[m], value=m, selected=m == chosen) for m in result.measures]
    select = tag("select", *options, aria_label=f"Measure of plot {index + 1}")
    return tag(
        "div",
        tag("div", select, tag("span", MEASURE_FORMULAS[chosen], class_="formula"), class_="plot-head"),
        tag("p", MEASURE_WORDS[chosen], class_="words", aria_live="polite"),
        tag("div", class_="plot", id=f"{id}-plot-{index + 1}", role="img", aria_label=MEASURE_NAMES[chosen]),
        class_="plot-box",
    )
