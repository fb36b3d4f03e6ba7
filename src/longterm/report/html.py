"""Markup that cannot be broken into: whatever is not markup already is escaped.

>>> tag("p", "a < b, says ", tag("em", "<script>"), class_="note", data_value=2.5, hidden=False)
'<p class="note" data-value="2.5">a &lt; b, says <em>&lt;script&gt;</em></p>'
"""

from __future__ import annotations

import html
import json
from typing import Any

EMPTY = frozenset({"input", "meta"})
"""Elements without an end."""


class Html(str):
    """Text that is markup, made by the functions here."""

    __slots__ = ()


def escaped(text: str) -> Html:
    """Text as markup that shows it as it stands."""
    return text if isinstance(text, Html) else Html(html.escape(text, quote=True))


def join(*parts: str) -> Html:
    """One after the other."""
    return Html("".join(escaped(part) for part in parts))


def tag(name: str, /, *children: str, **attributes: str | float | bool | None) -> Html:
    """An element. In attributes `class_` is class and data_value is data-value; None and False leave them out."""
    written = []
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if value is True:
            written.append(f" {attribute}")
        elif value is not None and value is not False:
            written.append(f' {attribute}="{escaped(str(value))}"')
    start = f"<{name}{''.join(written)}>"
    return Html(start if name in EMPTY else f"{start}{join(*children)}</{name}>")


def data_block(data: Any, **attributes: str) -> Html:
    """Data for a script to read, as JSON in which nothing can end the element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return tag("script", Html(text.replace("<", r"\u003c")), type="application/json", **attributes)
