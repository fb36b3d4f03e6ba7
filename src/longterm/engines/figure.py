"""Traces as a Matplotlib figure: two panels, regret or loss on the left, violation on the right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from textwrap import shorten
from typing import Any

from numpy.typing import ArrayLike

from longterm._arrays import FloatArray
from longterm.engines.trace import Comparator, Trace

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Okabe and Ito's, which colour-blind readers tell apart."""
DASHES = ("-", "--", ":", "-.", (0, (6, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 3)), (0, (3, 3)))
"""A colour that comes again has another."""
FEW, SHORT = 8, 26
"""So many curves, with names of so many letters, are named inside of a panel; others below both."""


def draw(traces: Mapping[str, Trace], comparator: Comparator | ArrayLike | None, axes: Any = None) -> Any:
    """The figure; `axes` is the pair of panels to draw into, a new one where it is None."""
    try:
        pyplot: Any = import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError("a figure needs Matplotlib: pip install 'longterm[experiments]'") from error
    curves = [curve for name, trace in traces.items() for curve in _curves(name, trace, comparator)]
    longest = max(len(name) for name, *_ in curves)
    below = axes is None and (len(curves) > FEW or longest > SHORT)
    columns = 4 if longest <= SHORT else 2 if longest <= 2 * SHORT else 1
    if axes is None:
        height = 3.2 + (0.18 * -(-len(curves) // columns) if below else 0.0)
        axes = pyplot.figure(figsize=(8, height), layout="constrained").subplots(1, 2)
    left, right = axes
    for number, (name, rounds, first, violation) in enumerate(curves):
        look = {
            "color": COLOURS[number % len(COLOURS)],
            "linestyle": DASHES[number // len(COLOURS) % len(DASHES)],
            "label": name or None,
        }
        _line(left, rounds, first, look)
        _line(right, rounds, violation, look)
    left.set_ylabel("loss so far, Σ f_t(x_t)" if comparator is None else "regret")
    right.set_ylabel("violation, Σ g(x_t)")
    for panel in (left, right):
        panel.set_xlabel("round t")
        panel.axhline(0, color="#888888", linewidth=0.6, zorder=0)
        panel.spines[["top", "right"]].set_visible(False)
    handles, names = left.get_legend_handles_labels()
    names = [shorten(name, 4 * SHORT, placeholder="…") for name in names]
    if below and names:
        left.figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False, fontsize="small")
    elif names:
        left.legend(handles, names, frameon=False, fontsize="small")
    return left.figure


def _curves(
    name: str, trace: Trace, comparator: Comparator | ArrayLike | None
) -> Iterator[tuple[str, Any, FloatArray, FloatArray]]:
    """One curve for each member of a grid of hyper-parameters: its values at the rounds, seeds on the last axis."""
    first = trace.cumulative_loss if comparator is None else trace.regret(comparator)
    rounds = len(trace.rounds)
    seeds = 1 if isinstance(trace.seeds, int) else len(trace.seeds)
    first, violation = (values.reshape(rounds, -1, seeds) for values in (first, trace.signed_violation))
    for member in range(first.shape[1]):
        label = name if first.shape[1] == 1 else f"{name} [{member}]".strip()
        yield label, trace.rounds, first[:, member], violation[:, member]


def _line(panel: Any, rounds: Any, values: FloatArray, look: Mapping[str, Any]) -> None:
    panel.plot(rounds, values.mean(axis=-1), **look)
    if values.shape[-1] > 1:
        panel.fill_between(
            rounds, values.min(axis=-1), values.max(axis=-1), color=look["color"], alpha=0.18, linewidth=0
        )
