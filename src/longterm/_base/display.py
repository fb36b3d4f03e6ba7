"""Representations of objects: a short line in a terminal, a small table in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import partial
from html import escape
from typing import Any

import numpy as np

MAX_SHOWN_ITEMS = 4
"""Longer arrays are displayed by their shape."""
MAX_SHOWN_CHARACTERS = 80
"""Longer representations are replaced by the class name."""


class ReprMixin:
    """Mixin with a short ``repr``: the fields that differ from their defaults, long arrays by their shape."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # `dataclass` adds a repr to every class whose body has none.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        return _line(self)

    def _repr_html_(self) -> str:
        rows = [(name, short(value)) for name, value in _displayed_fields(self)]
        return TextTable(("", ""), rows, title=type(self).__name__).to_html()


def short(value: Any) -> str:
    """Return a short text for a value.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm._base.display import short
    >>> short(1 / 3), short(np.zeros(64)), short({"a": 2.0})
    ('0.3333', 'array of shape (64,)', '{a: 2}')
    """
    if isinstance(value, (bool, np.bool_, str)) or value is None:
        return repr(value)
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.4g}"
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}" if value.size > MAX_SHOWN_ITEMS else _numbers(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {short(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        inside = ", ".join(short(item) for item in value[:MAX_SHOWN_ITEMS]) + (
            ", …" if len(value) > MAX_SHOWN_ITEMS else ""
        )
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    if isinstance(value, partial):
        return short(value.func)
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    whole = _line(value) if is_dataclass(value) and not isinstance(value, type) else repr(value)
    return whole if len(whole) <= MAX_SHOWN_CHARACTERS else f"{type(value).__name__}(…)"


def _line(value: object) -> str:
    inside = ", ".join(f"{name}={short(field)}" for name, field in _displayed_fields(value))
    return f"{type(value).__name__.lstrip('_')}({inside})"


def _numbers(array: np.ndarray[Any, Any]) -> str:
    if array.ndim == 0:
        return short(array.item())
    return "[" + ", ".join(_numbers(part) for part in array) + "]"


def _displayed_fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the public fields that differ from their defaults, with their values."""
    if not is_dataclass(value):
        yield from ((name, attribute) for name, attribute in vars(value).items() if not name.startswith("_"))
        return
    for field in fields(value):
        attribute = getattr(value, field.name)
        if field.repr and not field.name.startswith("_") and not _is_default(field, attribute):
            yield field.name, attribute


def _is_default(field: Field[Any], value: Any) -> bool:
    default = field.default_factory() if field.default_factory is not MISSING else field.default
    if default is MISSING:
        return False
    if isinstance(value, np.ndarray) or isinstance(default, np.ndarray):
        try:
            return bool(np.all(np.asarray(value) == np.asarray(default)))
        except (TypeError, ValueError):
            return False
    return type(value) is type(default) and bool(value == default)


@dataclass(frozen=True, repr=False)
class TextTable:
    """A small table: text in a terminal, HTML in a notebook.

    Examples
    --------
    >>> from longterm._base.display import TextTable
    >>> TextTable(("learner", "regret"), [("A-OGD", "33.3"), ("OGD", "168")])
    learner  regret
    A-OGD      33.3
    OGD         168
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, width: int | None = None) -> str:
        """Return the table as text. Columns that do not fit into `width` characters continue below."""
        lines = ([self.headings] if any(self.headings) else []) + [list(row) for row in self.rows]
        widths = [max((len(line[k]) for line in lines), default=0) for k in range(len(self.headings))]
        texts = [self.title] if self.title else []
        for number, columns in enumerate(_fitting_columns(widths, width)):
            texts += [""] if number else []
            for line in lines:
                cells = (line[k].rjust(widths[k]) if k else line[k].ljust(widths[k]) for k in columns)
                texts.append("  ".join(cells).rstrip())
        return "\n".join(texts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(self) -> str:
        """Return the table as HTML."""

        def row(cells: Iterable[str], tag: str) -> str:
            aligned = ("left" if k == 0 else "right" for k in range(len(self.headings)))
            return "<tr>" + "".join(
                f'<{tag} style="text-align:{side}">{escape(cell)}</{tag}>'
                for cell, side in zip(cells, aligned, strict=True)
            ) + "</tr>"  # fmt: skip

        caption = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        head = f"<thead>{row(self.headings, 'th')}</thead>" if any(self.headings) else ""
        return f"<table>{caption}{head}<tbody>{''.join(row(cells, 'td') for cells in self.rows)}</tbody></table>"


def _fitting_columns(widths: Sequence[int], width: int | None) -> list[list[int]]:
    """Return groups of columns that fit side by side, each with the first column."""
    groups = [[0]]
    for k in range(1, len(widths)):
        taken = sum(widths[j] + 2 for j in groups[-1]) + widths[k]
        if width is not None and taken > width and len(groups[-1]) > 1:
            groups.append([0])
        groups[-1].append(k)
    return groups


def format_number(value: float) -> str:
    """Return a number with four significant digits, for a table.

    Examples
    --------
    >>> from longterm._base.display import format_number
    >>> format_number(1234567.0), format_number(33.267), format_number(-0.00012345), format_number(0.0)
    ('1,234,567', '33.27', '-0.0001234', '0')
    """
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"


def format_decimals(value: float | None, digits: int = 2) -> str:
    """Format a number with this many decimals, never as −0.00; None becomes a dash."""
    return "–" if value is None else f"{round(value, digits) + 0.0:.{digits}f}"
