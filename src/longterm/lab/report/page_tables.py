"""Tables of a page, and those of a result: the last round, bounds and the paper's values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from longterm._base.display import format_decimals
from longterm.lab.experiments.result import Curve, Result
from longterm.lab.report.axes import last_decade_slope
from longterm.lab.report.formats import format_count, format_gap, format_mean, format_number, format_percent
from longterm.lab.report.names import MEASURE_FORMULAS, MEASURE_NAMES

SMALLEST_IS_BEST = ("regret", "hard_violation", "squared_violation")
"""The signed sums are not among them, since slack has no merit."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    content: str
    value: float | None = None
    """The exact number, stored in the page."""
    best: bool = False
    exponent: str = ""
    """The exponent, where the content is the base of a power."""
    small: str = ""
    """Additional text in small type."""

    @property
    def digits(self) -> str:
        """All digits of the value."""
        return "" if self.value is None else repr(float(self.value))


@dataclass(frozen=True)
class HtmlTable:
    """A table whose first column names the rows and whose other columns are in named groups."""

    caption: str
    corner: str
    """The heading of the first column."""
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    """The heading of each group and of its columns."""
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    """The name and the cells of each row."""

    @property
    def is_grouped(self) -> bool:
        """True if a group has a heading."""
        return any(name for name, _ in self.groups)

    def begins_group(self, column: int) -> bool:
        """Return whether a column is the first of its group."""
        return column in {sum(len(columns) for _, columns in self.groups[:k]) for k in range(len(self.groups))}


EMPTY = Cell("–")
Column = tuple[str, Callable[[Curve], Cell]]


def regret_table(result: Result) -> HtmlTable:
    """Return the table of regret and of the comparator's certified gap."""
    caption = (
        f"Regret after {_size(result)}. "
        "Growth is the slope of the last decade on logarithmic axes. The certified gap is relative to the loss of the "
        "best decision in hindsight."
    )
    return _table(result, ("regret",), caption)


def violation_table(result: Result) -> HtmlTable:
    """Return the table of all measures of violation."""
    return _table(result, result.measures[1:], f"Violation after {_size(result)}. Below zero is slack.")


def _size(result: Result) -> str:
    sequences = format_count(len(result.seeds), "sequence")
    return f"{result.rounds[-1]:,} rounds: mean and standard deviation over {sequences}"


def rounds_table(result: Result, measure: str) -> HtmlTable:
    """Return the table of one measure at powers of ten and at the last round."""
    powers = {int(10**k) for k in range(19)}
    index = [k for k, t in enumerate(result.rounds.tolist()) if t in powers or k == len(result.rounds) - 1]
    return HtmlTable(
        f"{MEASURE_NAMES[measure]}, {MEASURE_FORMULAS[measure]}: mean ± standard deviation.",
        "Learner",
        (("Round", tuple(f"{result.rounds[k]:,}" for k in index)),),
        tuple((curve.name, tuple(measured_cell(curve, measure, k) for k in index)) for curve in result.curves),
    )


def _table(result: Result, measures: Sequence[str], caption: str) -> HtmlTable:
    columns = {measure: _columns(result, measure) for measure in measures}
    return HtmlTable(
        caption,
        "Learner",
        tuple((MEASURE_NAMES[m], tuple(name for name, _ in columns[m])) for m in measures),
        tuple((curve.name, tuple(make(curve) for m in measures for _, make in columns[m])) for curve in result.curves),
    )


def _columns(result: Result, measure: str) -> list[Column]:
    """Return the columns of a measure that are not empty."""
    ends = [float(curve.mean(measure)[-1]) for curve in result.curves]
    least, wins = min(ends), measure in SMALLEST_IS_BEST and max(ends) > min(ends)

    def measured(curve: Curve) -> Cell:
        return measured_cell(curve, measure, -1, wins and curve.mean(measure)[-1] == least)

    def bound(curve: Curve) -> Cell:
        return _plain(curve.bounds[measure][-1]) if measure in curve.bounds else EMPTY

    def of_bound(curve: Curve) -> Cell:
        if measure not in curve.bounds or not curve.bounds[measure][-1] > 0:
            return EMPTY
        ratio = float(curve.mean(measure)[-1] / curve.bounds[measure][-1])
        return Cell(format_percent(ratio) if ratio >= 0 else "below 0", ratio)

    def printed(curve: Curve) -> Cell:
        return _plain(curve.printed_bounds[measure][-1]) if measure in curve.printed_bounds else EMPTY

    def growth(curve: Curve) -> Cell:
        mean = curve.mean(measure)
        return growth_cell("−t" if mean[-1] < 0 else "t", last_decade_slope(result.rounds, mean))

    def read_off(curve: Curve) -> Cell:
        if measure not in curve.read_off:
            return EMPTY
        return Cell(f"≈ {curve.read_off[measure]:,.6g}".replace("-", "−"), curve.read_off[measure])

    def gap(_: Curve) -> Cell:
        largest = float(np.max(result.certified_gap[-1]))
        return Cell(format_gap(largest), largest)

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


def measured_cell(curve: Curve, measure: str, at: int = -1, best: bool = False) -> Cell:
    """Return a cell with the mean and the standard deviation at a recorded round."""
    mean, spread = float(curve.mean(measure)[at]), float(curve.std(measure)[at])
    return Cell(format_mean(mean, spread), mean, best)


def _plain(value: float) -> Cell:
    return Cell(format_number(float(value)), float(value))


def growth_cell(base: str, slope: float | None) -> Cell:
    """Return a cell with a power of the base, or an empty one."""
    return EMPTY if slope is None else Cell(base, slope, exponent=format_decimals(slope).replace("-", "−"))
