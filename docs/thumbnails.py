"""Make the gallery's thumbnails: one panel of a page's first figure, with thick lines and large words.

A whole figure that is shrunk to 160 pixels has letters of 4 pixels. Sphinx-Gallery calls `scraper` while the figures of
a page are open. `docs/conf.py` calls `replace` after Sphinx-Gallery has written its own thumbnails.
"""

from __future__ import annotations

import pickle
import re
import shutil
from pathlib import Path
from typing import Any

INCHES, DOTS = (4.8, 3.2), 100
LETTERS = 18
"""The most letters of a label."""
NAMES = 3
"""The most names in a legend."""
_DRAWN: set[str] = set()
"""The names of the pages whose thumbnail this build has drawn."""


def scraper(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Collect the figures as Sphinx-Gallery does. Before, draw the thumbnail from the first figure of a page."""
    from matplotlib import pyplot as plt
    from sphinx_gallery.scrapers import matplotlib_scraper

    name = Path(block_vars["src_file"]).stem
    if plt.get_fignums() and name not in _DRAWN:
        folder = thumbnails_of(gallery_conf["src_dir"])
        folder.mkdir(parents=True, exist_ok=True)
        _DRAWN.add(name)
        simplify(plt.figure(plt.get_fignums()[0])).savefig(folder / f"{name}.png", dpi=DOTS)
        plt.close(plt.get_fignums()[-1])  # the copy
    return str(matplotlib_scraper(block, block_vars, gallery_conf))


def simplify(figure: Any) -> Any:
    """Return a copy of a figure with its first panel only, without ticks, in thick lines and large words."""
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection

    copy = pickle.loads(pickle.dumps(figure))
    copy.set_size_inches(INCHES)
    axes: Axes = copy.axes[0]
    for other in copy.axes[1:]:
        other.remove()
    axes.set_subplotspec(copy.add_gridspec(1, 1)[0, 0])
    for text in list(axes.texts):
        text.remove()
    for line in [*axes.lines, *(one for one in axes.collections if isinstance(one, LineCollection))]:
        line.set_linewidth(5)
    for line in axes.lines:
        line.set_markersize(12)
    for patch in (one for one in axes.patches if not one.get_fill()):  # a histogram in steps
        patch.set_linewidth(5)
    axes.set_title("")
    axes.tick_params(which="both", length=0, labelleft=False, labelbottom=False)
    axes.set_xlabel(shortened(axes.get_xlabel()), fontsize=26)
    axes.set_ylabel(shortened(axes.get_ylabel()), fontsize=26)
    names = axes.get_legend_handles_labels()[1]
    for legend in [*copy.legends, *([axes.get_legend()] if axes.get_legend() else [])]:
        legend.remove()
    if 1 < len(names) <= NAMES and max(map(len, names)) <= LETTERS:
        axes.legend(fontsize=20, frameon=False, handlelength=1)
    return copy


def shortened(label: str) -> str:
    """Return the first words of a label, up to a comma, a colon or the most letters."""
    words = re.split(r"[,:]", label)[0].split()
    while len(" ".join(words)) > LETTERS:
        words.pop()
    return " ".join(words)


def replace(app: Any) -> None:
    """Put the thumbnails in the place of Sphinx-Gallery's, also those that an earlier build has drawn."""
    folder = Path(app.srcdir) / "gallery_pages" / "images" / "thumb"
    for path in thumbnails_of(app.srcdir).glob("*.png"):
        shutil.copyfile(path, folder / f"sphx_glr_{path.stem}_thumb.png")


def thumbnails_of(source: Any) -> Path:
    """Return the folder of the thumbnails, by the folder of the pages."""
    return Path(source) / "_build" / "thumbnails"
