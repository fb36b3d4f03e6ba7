"""The Matplotlib figure of traces: regret or loss on the left, violation on the right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from longterm._base.arrays import FloatArray
from longterm._base.extras import import_optional
from longterm.errors import InputError
from longterm.play.engines.trace import Comparator, Trace
from longterm.theory.bounds import Bounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""The palette of Okabe and Ito, distinguishable with colour blindness."""
DASHES = ("-", "--", ":", "-.", (0, (6, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 3)), (0, (3, 3)))
"""Line styles for repeated colours."""
Band = Literal["quantiles", "range", "ends", "none"]
"""How to draw several seeds: from the 10 % to the 90 % quantile, from the smallest to the largest value, one standard
deviation at the last round, or the mean alone."""
MAX_BANDS = 4
"""With more curves their bands would cover each other, so only the ends are marked."""
MAX_CURVES_INSIDE, SHORT_NAME = 8, 26
"""With more curves, or longer names, the legend is below the panels."""


def draw(
    traces: Mapping[str, Trace],
    comparator: Comparator | ArrayLike | None,
    axes: Any = None,
    bounds: Mapping[str, Bounds] | None = None,
    band: Band | None = None,
    size: tuple[float, float] | None = None,
) -> Figure:
    """Draw the traces, and bounds by name, into a pair of axes, or into a new figure, and return the figure."""
    pyplot: Any = import_optional("matplotlib.pyplot", "a figure needs Matplotlib", "experiments")
    curves = [curve for name, trace in traces.items() for curve in _curves(name, trace, comparator)]
    longest = max(len(name) for name, *_ in curves)
    below = axes is None and (len(curves) > MAX_CURVES_INSIDE or longest > SHORT_NAME)
    columns = 4 if longest <= SHORT_NAME else 2 if longest <= 2 * SHORT_NAME else 1
    if axes is None:
        height = 3.2 + (0.18 * -(-len(curves) // columns) if below else 0.0)
        axes = pyplot.figure(figsize=size or (8, height), layout="constrained").subplots(1, 2)
    left, right = axes
    band = band_for(len(curves), band)
    for number, (name, rounds, first, violation) in enumerate(curves):
        style = {
            "color": COLOURS[number % len(COLOURS)],
            "linestyle": DASHES[number // len(COLOURS) % len(DASHES)],
            "label": name or None,
        }
        _line(left, rounds, first, style, band)
        _line(right, rounds, violation, style, band)
    if bounds:
        shown = [left, right] if comparator is not None else [right]
        _draw_bounds(shown, bounds, [name for name, *_ in curves])
    left.set_ylabel("cumulative loss, Σ f_t(x_t)" if comparator is None else "regret")
    right.set_ylabel("violation, Σ g(x_t)")
    for panel in (left, right):
        panel.set_xlabel("round t")
        panel.axhline(0, color="#888888", linewidth=0.6, zorder=0)
        panel.spines[["top", "right"]].set_visible(False)
    handles, names = left.get_legend_handles_labels()
    names = [shorten(name, 4 * SHORT_NAME, placeholder="…") for name in names]
    if below and names:
        left.figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False, fontsize="small")
    elif names:
        left.legend(handles, names, frameon=False, fontsize="small")
    return cast("Figure", left.figure)


def _draw_bounds(panels: Sequence[Any], bounds: Mapping[str, Bounds], names: Sequence[str]) -> None:
    """Draw bounds dotted in the colours of their learners: violation in the last panel, regret in another."""
    for number, name in enumerate(names):
        style = {"color": COLOURS[number % len(COLOURS)], "linestyle": ":", "linewidth": 1.0}
        for panel in panels if name in bounds else ():
            # A bound on the hard violation bounds the signed one.
            wanted = ("signed_violation", "hard_violation") if panel is panels[-1] else ("regret",)
            for measure in [one for one in wanted if one in bounds[name]][:1]:
                panel.plot(bounds[name].rounds, bounds[name][measure], **style)
    for panel in panels:
        panel.set_xscale("log")
        panel.set_yscale("symlog")
        panel.set_ylim(bottom=1.5 * min(0.0, *(float(line.get_ydata().min()) for line in panel.lines)))
        panel.set_title("dotted: proved bounds", fontsize="small")


def _curves(
    name: str, trace: Trace, comparator: Comparator | ArrayLike | None
) -> Iterator[tuple[str, Any, FloatArray, FloatArray]]:
    """Yield (label, rounds, regret or loss, violation) for each member of a grid; seeds are on the last axis."""
    first = trace.cumulative_loss if comparator is None else trace.regret(comparator)
    rounds = len(trace.rounds)
    seeds = 1 if isinstance(trace.seeds, int) else len(trace.seeds)
    first, violation = (values.reshape(rounds, -1, seeds) for values in (first, trace.signed_violation))
    for member in range(first.shape[1]):
        label = name if first.shape[1] == 1 else f"{name} [{member}]".strip()
        yield label, trace.rounds, first[:, member], violation[:, member]


def _line(panel: Any, rounds: Any, values: FloatArray, style: Mapping[str, Any], band: Band) -> None:
    """Plot the mean over the seeds and, with several seeds, how far they lie apart."""
    panel.plot(rounds, values.mean(axis=-1), **style)
    draw_band(panel, rounds, values, style["color"], band)


def band_for(curves: int, band: Band | None) -> Band:
    """Return the way to draw several seeds: the one asked for, or else the one for so many curves."""
    if band is not None and band not in get_args(Band):
        raise InputError("band", f"{band!r} is not known", f"Use one of {', '.join(map(repr, get_args(Band)))}")
    return band or ("quantiles" if curves <= MAX_BANDS else "ends")


def draw_band(panel: Any, rounds: Any, values: FloatArray, colour: str, band: Band) -> None:
    """Draw how far the seeds, on the last axis of `values`, lie apart."""
    if values.shape[-1] == 1 or band == "none":
        return
    if band == "ends":
        mean, std = values[-1].mean(), values[-1].std()
        panel.vlines(rounds[-1], mean - std, mean + std, color=colour, linewidth=2.5, clip_on=False)
        return
    low, high = np.quantile(values, (0.1, 0.9) if band == "quantiles" else (0.0, 1.0), axis=-1)
    panel.fill_between(rounds, low, high, color=colour, alpha=0.18, linewidth=0)
