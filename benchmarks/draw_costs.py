"""Draw the figure of docs/benchmarks/what_it_costs.md from what the scale benchmarks wrote.

python benchmarks/scale.py growth --out cpu.json
python benchmarks/draw_costs.py cpu.json [gpu.json …] docs/_static/what_it_costs.svg
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from longterm.lab.report.style import set_plain_ticks

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")


def drawn(points: list[dict[str, float | str]]) -> Figure:
    """Return a figure with a panel for each kind of cost; floors are grey and dashed."""
    panels = list(dict.fromkeys(str(point["panel"]) for point in points))
    columns = 2
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(8, 3.1 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, panel in zip(axes, panels, strict=False):
        curves: dict[str, list[tuple[float, float]]] = {}
        for point in points:
            if point["panel"] == panel:
                curves.setdefault(str(point["curve"]), []).append((float(point["x"]), float(point["y"])))
        colours = iter(COLOURS)
        for name, curve in curves.items():
            is_floor = name.startswith("floor")
            look = {"color": "#888888", "linestyle": "--"} if is_floor else {"color": next(colours), "marker": "o"}
            axis.plot(*zip(*sorted(curve), strict=True), label=name, markersize=3, linewidth=1.3, **look)
        what, _, against = panel.partition(", against ")
        axis.set(xscale="log", yscale="log", title=what, xlabel=against)
        axis.title.set_fontsize(9)
        axis.grid(which="major", color="#e5e5e5", linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
        set_plain_ticks(axis.xaxis)
        set_plain_ticks(axis.yaxis)
        # Below its panel: within it, it would lie on curves.
        below = {"loc": "upper left", "bbox_to_anchor": (-0.02, -0.2), "borderaxespad": 0.0}
        axis.legend(frameon=False, fontsize="small", ncols=1 if max(map(len, curves)) > 30 else 2, **below)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    return figure


def main() -> None:
    *measured, out = sys.argv[1:]
    points = [point for name in measured for point in json.loads(Path(name).read_text())["points"]]
    grey = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), "#7f8792")
    clear = dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor"), "none")
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "longterm", "font.size": 8, **grey, **clear}):
        drawn(points).savefig(out, **({"metadata": {"Date": None}} if out.endswith("svg") else {"dpi": 130}))


if __name__ == "__main__":
    main()
