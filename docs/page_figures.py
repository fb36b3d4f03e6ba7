"""Draw the figures of the pages: python docs/page_figures.py [PAGE…] writes docs/_static/figures/*.svg.

The code of a page draws its own figure and ends with `figure.savefig("NAME.svg")`. This script runs that code and keeps
the figure, in a style that is readable on light and dark pages and on a phone. Each file describes the curves, bars and
points that it shows. The tests run the pages again and compare the descriptions, so a figure that is out of date fails.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

DOCS = Path(__file__).parent
FOLDER = DOCS / "_static" / "figures"
GENERATED = {"_build", "api", "gallery_pages"}
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAVED = re.compile(r"""savefig\("([\w-]+\.svg)"\)""")
SHOWN = re.compile(r"!\[[^\]]+\]\((?:docs/|[./]*)_static/figures/([\w-]+\.svg)\)")
GREY = "#7f8792"
"""A colour for text that is readable on white and on black."""
STYLE = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), GREY),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
    "axes.prop_cycle": mpl.cycler(color=("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "figure.figsize": (4.8, 3.0),
    "font.size": 10,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "longterm",
}
"""The figures are 4.8 inches wide: on a phone their text shrinks by a quarter only."""
TOLERANCE = 0.05
"""The part of an axis by which a number may differ between processors."""


def pages() -> list[Path]:
    """Return the pages whose code saves a figure."""
    written = (page for page in sorted(DOCS.rglob("*.md")) if not GENERATED & set(page.relative_to(DOCS).parts))
    return [page for page in written if saved(page)]


def saved(page: Path) -> list[str]:
    """Return the names of the figures that a page's code saves."""
    return SAVED.findall("".join(BLOCK.findall(page.read_text(encoding="utf-8"))))


def shown(page: Path) -> list[str]:
    """Return the names of the figures that a page shows from the folder of figures."""
    return SHOWN.findall(page.read_text(encoding="utf-8"))


@contextmanager
def collected(folder: Path | None = None) -> Iterator[dict[str, Any]]:
    """Describe each SVG figure that is saved inside, by name, and write it into `folder` if one is given."""
    found: dict[str, Any] = {}
    original = Figure.savefig

    def savefig(self: Figure, path: Any, **options: Any) -> None:
        if not str(path).endswith(".svg"):
            return original(self, path, **options)
        name = Path(path).name
        found[name] = described(self)
        if folder is not None:
            metadata = {"Date": None, "Description": json.dumps(found[name], ensure_ascii=False)}
            original(self, folder / name, metadata=metadata, transparent=True)
        plt.close(self)
        return None

    with mpl.rc_context(STYLE):
        Figure.savefig = savefig  # type: ignore[method-assign]
        try:
            yield found
        finally:
            Figure.savefig = original  # type: ignore[method-assign]
            plt.close("all")


def described(figure: Figure) -> list[dict[str, Any]]:
    """Return what each pair of axes shows: its texts, and five numbers for each curve, group of points and bar."""
    return [
        {
            "texts": [axes.get_title(), axes.get_xlabel(), axes.get_ylabel()],
            "range": [_rounded(limit) for limit in axes.get_ylim()],
            "shapes": [
                *(_numbers(np.asarray(line.get_ydata(), dtype=float)) for line in axes.lines),
                *(
                    _numbers(np.asarray(points.get_offsets())[:, 1])
                    for points in axes.collections
                    if _is_points(points)
                ),
                *([_rounded(bar.get_y() + bar.get_height())] for bar in axes.patches if hasattr(bar, "get_height")),
            ],
        }
        for axes in figure.axes
    ]


def _is_points(collection: Any) -> bool:
    return type(collection).__name__ == "PathCollection"


def _numbers(values: np.ndarray[Any, Any]) -> list[float]:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return []
    return [_rounded(one) for one in (finite[0], finite[-1], finite.min(), finite.max(), finite.mean())]


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def committed(name: str) -> Any:
    """Return the description inside a figure's file."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    found = re.search(r"<dc:description>(.*?)</dc:description>", text, re.DOTALL)
    if found is None:
        raise ValueError(f"{name} has no description: run python docs/page_figures.py")
    return json.loads(found[1].replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


def differences(old: Any, new: Any) -> list[str]:
    """Return what differs between two descriptions; numbers may differ by `TOLERANCE` of their axis."""
    found = [] if len(old) == len(new) else [f"{len(old)} axes before, {len(new)} now"]
    for one, other in zip(old, new, strict=False):
        if one["texts"] != other["texts"]:
            found.append(f"{one['texts']} before, {other['texts']} now")
        if [len(shape) for shape in one["shapes"]] != [len(shape) for shape in other["shapes"]]:
            found.append(f"other curves in {other['texts']}")
            continue
        size = abs(one["range"][1] - one["range"][0])
        for before, now in zip(one["shapes"], other["shapes"], strict=True):
            if not np.allclose(before, now, rtol=TOLERANCE, atol=TOLERANCE * size):
                found.append(f"{other['texts']}: {before} before, {now} now")
    return found


def run(page: Path) -> None:
    """Run the code of a page in an empty folder."""
    names: dict[str, Any] = {"__name__": page.stem}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for code in BLOCK.findall(page.read_text(encoding="utf-8")):
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(code, str(page), "exec"), names)


def main(chosen: list[Path]) -> None:
    """Write the figures of these pages, or of all."""
    FOLDER.mkdir(exist_ok=True)
    for page in chosen or pages():
        with collected(FOLDER) as found:
            run(page)
        sys.stdout.write(f"{page.relative_to(DOCS)}: {', '.join(found)}\n")


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "80")
    main([Path(one).resolve() for one in sys.argv[1:]])
