"""The site: make docs."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import generate  # noqa: E402
import reference  # noqa: E402
import thumbnails  # noqa: E402

from longterm import __version__  # noqa: E402

project = "longterm"
author = "The longterm developers"
copyright = "the longterm developers"  # noqa: A001  Sphinx's name
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_templates", "gallery/*.py", "gallery/README.rst", "reference/api/tables"]
html_theme = "furo"
html_title = "longterm"
html_favicon = "_static/favicon.svg"
# MathJax comes with a package and is copied into the site, which then works offline.
MATHJAX = Path(str(find_spec("sphinx-mathjax-offline").origin)).parent / "static" / "mathjax"  # type: ignore[union-attr]
mathjax_path = "tex-svg.js"
html_static_path = ["_static", str(MATHJAX / mathjax_path)]
html_css_files = ["site.css"]
html_js_files = ["math.js", "scroll.js", "published.js", "versions.js"]
html_copy_source = False
templates_path = ["_templates"]
html_theme_options = {"navigation_with_keys": True}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}

myst_heading_anchors = 4
myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]

autosummary_generate = False
autodoc_typehints = "none"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"


def themed_figures(gallery_conf: object, file: object) -> None:
    """Draw figures without a background and in greys that are readable on light and on dark pages."""
    from matplotlib import rcParams

    grey = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), GREY)
    nothing = dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor"), "none")
    rcParams.update(grey | nothing | {"savefig.transparent": True, "legend.frameon": False, "savefig.dpi": 130})


GREY = "#7f8792"
sphinx_gallery_conf = {
    "reset_modules": ("matplotlib", "seaborn", themed_figures),
    "capture_repr": ("_repr_html_",),
    "image_scrapers": (thumbnails.scraper,),
    "thumbnail_size": (480, 320),
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["gallery_pages"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 10_000,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "copyfile_regex": r".*\.rst",
}
suppress_warnings = ["config.cache"]


def escaped(app: Any, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Mathematics in docstrings is no markup: x* is a decision, |g| a size. Sections within sections are bold words."""
    if app.env.docname == f"reference/api/{name}":  # the page begins with this paragraph
        end = next((n for n, line in enumerate(lines) if not line.strip() and n), len(lines))
        del lines[: end + 1]
    # Scikit-learn's docstrings, which estimators inherit, point into its own pages.
    lines[:] = [re.sub(r":ref:`([^`<]*?) *(?:<[^`]*>)?`", r"\1", line) for line in lines]
    for number, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...", ".. ", ":")) or "``" in line:
            continue
        if number and set(line.strip()) == {"-"} and lines[number - 1].strip() == "**Examples**":
            lines[number] = ""
            continue
        if line.strip() == "Examples" and number + 1 < len(lines) and set(lines[number + 1].strip()) == {"-"}:
            lines[number] = line.replace("Examples", "**Examples**")
            continue
        line = re.sub(r"(?<!\\)\|", r"\\|", line)
        every = line.replace("**", "").count("*") % 2 == 1
        if every or not re.search(r"(?<![\w*\\])\*\w[^*]*\w\*(?![\w*])", line):  # *stressed* words stay so
            lines[number] = re.sub(r"(?<!\\)\*" if every else r"(?<=\w)\*(?=[\s_,.;:)]|$)", r"\\*", line)
        else:
            lines[number] = line


def signature(
    app: Any, what: str, name: str, thing: object, options: object, text: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Show defaults as a reader would write them."""
    return reference.signature_of(thing, text), returned


def links(app: Any, page: str, source: list[str]) -> None:
    """Lead links to sources, which work in a clone, to the pages made from them."""
    source[0] = reference.in_the_site(source[0])


def neighbours(app: Any, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Give the pages of the reference a previous and a next page: no table of contents has them."""
    pages = ORDER if page in ORDER else []
    at = pages.index(page) if pages else 0
    for word, other in (("prev", at - 1), ("next", at + 1)):
        if pages and 0 <= other < len(pages):
            title = pages[other].rpartition("api/")[2].removeprefix("longterm.")
            context[word] = {"link": app.builder.get_relative_uri(page, pages[other]), "title": title}


ORDER = [f"reference/api/{name}" for name in reference.ordered(reference.home_of())]


def setup(app: Any) -> None:
    """Write the pages that are read off the package."""
    reference.write(HERE / "reference" / "api")
    generate.write(HERE / "reference" / "api" / "tables")
    app.connect("autodoc-process-docstring", escaped, priority=900)  # after numpydoc
    app.connect("autodoc-process-signature", signature, priority=900)
    app.connect("source-read", links)
    app.connect("html-page-context", neighbours)
    app.connect("builder-inited", thumbnails.replace, priority=900)  # after the gallery is written
