"""Self-contained HTML pages: the templates of this folder, with styles, script and data inside."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from longterm._base.extras import import_optional
from longterm.lab.experiments.records import write_file


@dataclass(frozen=True)
class Section:
    """A part of a page with a heading and an entry in the contents."""

    id: str
    heading: str
    template: str
    """The name of its template."""
    shown: Any
    """The variable `shown` of the template."""
    kicker: str = ""
    """A line above the heading."""


def write_document(
    path: str | Path, title: str, lead: str, sections: Sequence[Section], script: str = "page.js"
) -> Path:
    """Write a page of sections; equal sections give equal bytes.

    All content is escaped. The page's security policy allows no network and no script but its own, named by hash.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    parts = "\n".join(_read_resource(name) for name in ("common.js", "plot.js", script))
    code = f'"use strict";\n(() => {{\n{parts}}})();\n'
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:"
    safe = import_module("markupsafe").Markup
    text = _environment().get_template("page.html.j2").render(
        title=title, lead=lead, sections=sections, policy=policy,
        style=safe(_read_resource("page.css")), script=safe(code),
    )  # fmt: skip
    write_file(target, text.encode())
    return target


@cache
def _environment() -> Any:
    jinja2: Any = import_optional("jinja2", "the report needs Jinja2", "experiments")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("longterm.lab.report"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    return environment


def _read_resource(name: str) -> str:
    return files("longterm.lab.report").joinpath(name).read_text(encoding="utf-8")
