"""What pages are made of: sections, tables that scroll in a box of their own, facts, commands, details."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from longterm.report.html import Html, join, tag


@dataclass(frozen=True)
class Section:
    """A part of a page with its own heading and its own place in the contents."""

    id: str
    heading: str
    body: Html
    kicker: str = ""
    """A line above the heading."""

    def html(self) -> Html:
        """As an element."""
        kicker = tag("p", self.kicker, class_="kicker") if self.kicker else ""
        heading = tag("h2", self.heading, id=f"{self.id}-heading")
        return tag("section", kicker, heading, self.body, id=self.id, aria_labelledby=f"{self.id}-heading")


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    content: str
    value: float | None = None
    """The number behind it, to every digit; it is kept in the page."""
    best: bool = False


@dataclass(frozen=True)
class Table:
    """Columns in named groups; the first column, outside of them, names the rows."""

    caption: str
    corner: str
    """The heading of the first column."""
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    """Each group's heading and those of its columns; one group with an empty heading is no group."""
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    """Each row's name and cells."""

    def html(self) -> Html:
        """As an element that scrolls in a box of its own where it is too wide."""
        top = [tag("th", name, colspan=len(columns), scope="colgroup") for name, columns in self.groups]
        under = [
            tag("th", column, scope="col", class_="first" if k == 0 else None)
            for _, columns in self.groups
            for k, column in enumerate(columns)
        ]
        firsts = {sum(len(columns) for _, columns in self.groups[:k]) for k in range(len(self.groups))}
        body = [
            tag("tr", tag("th", name, scope="row"), *(_cell(cell, k in firsts) for k, cell in enumerate(cells)))
            for name, cells in self.rows
        ]
        if any(name for name, _ in self.groups):
            head = tag("thead", tag("tr", tag("th", self.corner, rowspan=2, scope="col"), *top), tag("tr", *under))
        else:
            head = tag("thead", tag("tr", tag("th", self.corner, scope="col"), *under))
        table = tag("table", tag("caption", self.caption), head, tag("tbody", *body))
        return tag("div", table, class_="scroll", role="region", aria_label=self.caption, tabindex=0)


def _cell(cell: Cell, first: bool) -> Html:
    kinds = [kind for kind, holds in (("first", first), ("best", cell.best)) if holds]
    value = None if cell.value is None else repr(float(cell.value))
    return tag("td", cell.content, class_=" ".join(kinds) or None, data_value=value)


def two_lines(first: str, second: str) -> Html:
    """What counts, and in small letters what belongs to it."""
    return join(first, tag("small", second))


def facts(pairs: Iterable[tuple[str, str]], *, wide: bool = False) -> Html:
    """A list of names and what they are; `wide` for sentences, one below the other."""
    items = (tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs)
    return tag("dl", *items, class_="facts wide" if wide else "facts")


def details(summary: str, *children: str) -> Html:
    """What only some readers want, folded away."""
    return tag("details", tag("summary", summary), *children)


def command(text: str) -> Html:
    """A command with a button that copies it."""
    button = tag("button", "Copy", type="button", class_="copy", aria_label="Copy the command")
    return tag("div", tag("pre", tag("code", text), tabindex=0), button, class_="command")


def tiles(items: Sequence[tuple[str, str, str]]) -> Html:
    """Headlines side by side: what it is, the number, whose it is or what it means."""
    return tag(
        "ul",
        *(
            tag("li", tag("span", what, class_="what"), tag("strong", number), tag("span", who, class_="who"))
            for what, number, who in items
        ),
        class_="tiles",
    )


def power(base: str, exponent: str) -> Html:
    """A power, such as t to the 0.67."""
    return join(base, tag("sup", exponent))
