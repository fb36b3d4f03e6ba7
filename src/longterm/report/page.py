"""One HTML file that needs nothing else: templates of this folder, with styles, script and data inside; and its tables.

Tables of a result have the numbers at the last round, beside bounds and what the paper shows.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from longterm.experiments.result import Curve, Result
from longterm.report.words import (
    MEASURE_FORMULAS,
    MEASURE_NAMES,
    gap_in_words,
    last_decade_slope,
    mean_and_deviation,
    number,
    share,
)
from longterm.storage.files import write_atomically


@dataclass(frozen=True)
class Section:
    """A part of a page with its own heading and its own place in the contents."""

    id: str
    heading: str
    template: str
    """Which of the templates shows it."""
    shown: Any
    """What the template shows, under this name."""
    kicker: str = ""
    """A line above the heading."""


def write_document(
    path: str | Path, title: str, lead: str, sections: Sequence[Section], script: str = "page.js"
) -> Path:
    """Write a page of sections, with its contents on top, into a folder that is made where it is missing.

    The same sections give the same bytes. Whatever is shown is escaped. The page may not reach the network, nor run any
    script but its own (`script`, a file of this package): its security policy names it by hash.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    parts = "\n".join(_own(name) for name in ("common.js", "plot.js", script))
    code = f'"use strict";\n(() => {{\n{parts}}})();\n'
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:"
    safe = import_module("markupsafe").Markup
    text = _environment().get_template("page.html.j2").render(
        title=title, lead=lead, sections=sections, policy=policy,
        style=safe(_own("page.css")), script=safe(code),
    )  # fmt: skip
    write_atomically(target, text.encode())
    return target


@cache
def _environment() -> Any:
    try:
        jinja2: Any = import_module("jinja2")
    except ImportError as error:
        raise ImportError("the report needs jinja2: pip install 'longterm[experiments]'") from error
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("longterm.report"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    made.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    return made


def _own(name: str) -> str:
    return files("longterm.report").joinpath(name).read_text(encoding="utf-8")


LEAST_IS_BEST = ("regret", "hard_violation", "squared_violation")
"""Not the signed sums: far below zero is slack, not merit."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    content: str
    value: float | None = None
    """The number behind it, to every digit; it is kept in the page."""
    best: bool = False
    exponent: str = ""
    """Where the content is the base of a power, t for example."""
    small: str = ""
    """What belongs to it, in small letters."""

    @property
    def digits(self) -> str:
        """Every digit of the number behind it."""
        return "" if self.value is None else repr(float(self.value))


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

    @property
    def is_grouped(self) -> bool:
        """Whether a group has a heading."""
        return any(name for name, _ in self.groups)

    def begins_group(self, column: int) -> bool:
        """Whether a column is the first of its group."""
        return column in {sum(len(columns) for _, columns in self.groups[:k]) for k in range(len(self.groups))}


NOTHING = Cell("–")
Column = tuple[str, Callable[[Curve], Cell]]


def regret_table(result: Result) -> Table:
    """Regret of each learner, and the certified gap of what it is measured against."""
    caption = (
        f"Regret after {result.rounds[-1]:,} rounds: mean and standard deviation over {_sequences(result)}. "
        "Growth is the slope of the last decade on logarithmic axes; the certified gap is that of the best in "
        "hindsight, as a share of its loss."
    )
    return _table(result, ("regret",), caption)


def violation_table(result: Result) -> Table:
    """All readings of violation of each learner."""
    caption = (
        f"Violation after {result.rounds[-1]:,} rounds: mean and standard deviation over {_sequences(result)}. "
        "Below zero is slack."
    )
    return _table(result, result.measures[1:], caption)


def rounds_table(result: Result, measure: str) -> Table:
    """One measure on the way: at powers of ten and the last round."""
    powers = {int(10**k) for k in range(19)}
    kept = [k for k, t in enumerate(result.rounds.tolist()) if t in powers or k == len(result.rounds) - 1]
    return Table(
        f"{MEASURE_NAMES[measure]}, {MEASURE_FORMULAS[measure]}: mean ± standard deviation.",
        "Learner",
        (("Round", tuple(f"{result.rounds[k]:,}" for k in kept)),),
        tuple((curve.name, tuple(_measured(curve, measure, k, False) for k in kept)) for curve in result.curves),
    )


def _table(result: Result, measures: Sequence[str], caption: str) -> Table:
    columns = {measure: _columns(result, measure) for measure in measures}
    return Table(
        caption,
        "Learner",
        tuple((MEASURE_NAMES[m], tuple(name for name, _ in columns[m])) for m in measures),
        tuple((curve.name, tuple(make(curve) for m in measures for _, make in columns[m])) for curve in result.curves),
    )


def _columns(result: Result, measure: str) -> list[Column]:
    """The columns of a measure that have something in them."""
    ends = [float(curve.mean(measure)[-1]) for curve in result.curves]
    least, wins = min(ends), measure in LEAST_IS_BEST and max(ends) > min(ends)  # nobody wins against nobody

    def measured(curve: Curve) -> Cell:
        return _measured(curve, measure, -1, wins and curve.mean(measure)[-1] == least)

    def bound(curve: Curve) -> Cell:
        return _plain(curve.bounds[measure][-1]) if measure in curve.bounds else NOTHING

    def of_bound(curve: Curve) -> Cell:
        if measure not in curve.bounds or not curve.bounds[measure][-1] > 0:
            return NOTHING
        ratio = float(curve.mean(measure)[-1] / curve.bounds[measure][-1])
        return Cell(share(ratio) if ratio >= 0 else "below 0", ratio)

    def printed(curve: Curve) -> Cell:
        return _plain(curve.printed_bounds[measure][-1]) if measure in curve.printed_bounds else NOTHING

    def growth(curve: Curve) -> Cell:
        mean = curve.mean(measure)
        slope = last_decade_slope(result.rounds, mean)
        return NOTHING if slope is None else Cell("−t" if mean[-1] < 0 else "t", slope, exponent=_exponent(slope))

    def read_off(curve: Curve) -> Cell:
        if measure not in curve.read_off:
            return NOTHING
        return Cell(f"≈ {curve.read_off[measure]:,.6g}".replace("-", "−"), curve.read_off[measure])

    def gap(_: Curve) -> Cell:
        largest = float(np.max(result.certified_gap[-1]))
        return Cell(gap_in_words(largest), largest)

    columns: list[tuple[str, Callable[[Curve], Cell], bool]] = [
        ("mean ± std", measured, True),
        ("paper's figure", read_off, any(measure in curve.read_off for curve in result.curves)),
        ("bound", bound, any(measure in curve.bounds for curve in result.curves)),
        ("of the bound", of_bound, any(measure in curve.bounds for curve in result.curves)),
        ("bound as printed", printed, any(measure in curve.printed_bounds for curve in result.curves)),
        ("growth", growth, measure in ("regret", "signed_violation", "hard_violation")),
        ("certified gap", gap, measure == "regret"),
    ]
    return [(name, make) for name, make, wanted in columns if wanted]


def _measured(curve: Curve, measure: str, at: int, best: bool) -> Cell:
    mean, spread = float(curve.mean(measure)[at]), float(curve.std(measure)[at])
    return Cell(mean_and_deviation(mean, spread), mean, best)


def _plain(value: float) -> Cell:
    return Cell(number(float(value)), float(value))


def _exponent(slope: float) -> str:
    return f"{slope + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "−")


def _sequences(result: Result) -> str:
    return "one sequence" if len(result.seeds) == 1 else f"{len(result.seeds)} sequences"
