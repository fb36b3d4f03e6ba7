"""One HTML file that needs nothing else: styles, script, plotly.js and data are inside it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from longterm.report.components import Section
from longterm.report.html import Html, join, tag


def write_document(
    path: str | Path, title: str, lead: str, sections: Sequence[Section], script: str = "page.js"
) -> Path:
    """Write a page of sections, with its contents on top; the same sections give the same bytes.

    The page may not reach the network, nor run any script but its own two: its security policy names them by hash.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(document(title, lead, sections, script), encoding="utf-8", newline="\n")
    return target


def document(title: str, lead: str, sections: Sequence[Section], script: str = "page.js") -> str:
    """The page as text; `script` draws its figures."""
    scripts = [_plotly(), f'"use strict";\n(() => {{\n{_own("common.js")}\n{_own(script)}}})();\n']
    policy = "; ".join(
        (
            "default-src 'none'",
            "script-src " + " ".join(f"'sha256-{_digest(script)}'" for script in scripts),
            "style-src 'unsafe-inline'",
            "img-src data: blob:",
        )
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(_own("page.css"))),
    )
    contents = [tag("li", tag("a", section.heading, href=f"#{section.id}")) for section in sections]
    navigation = tag("nav", tag("ul", *contents), aria_label="Contents") if len(sections) > 1 else ""
    header = tag("header", tag("h1", title), tag("p", lead, class_="lead"), navigation)
    main = tag("main", *(section.html() for section in sections))
    body = tag("body", header, main, *(tag("script", Html(script)) for script in scripts))
    return join(Html("<!doctype html>\n"), tag("html", head, body, lang="en"), Html("\n"))


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _own(name: str) -> str:
    return files("longterm.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    """plotly.js, from the installed package."""
    try:
        from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError("the report needs plotly: install longterm[experiments]") from error
    return str(get_plotlyjs())
