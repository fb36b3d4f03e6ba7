"""Numbers and names as text in tables and pages."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from longterm.lab.experiments.result import Result


def format_value(value: Any) -> str:
    """Format a value of a specification.

    Examples
    --------
    >>> format_value(2 / 3), format_value([1, 2.5]), format_value(None), format_value(50_000), format_value(True)
    ('0.666667', '1, 2.5', '–', '50,000', 'yes')
    """
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(format_value(part) for part in value)
    if not isinstance(value, (int, float)):
        return str(value)
    return f"{int(value):,}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def format_number(value: float) -> str:
    """Format a measured number with few digits.

    Examples
    --------
    >>> import math
    >>> [format_number(x) for x in (33.2691, 12623.5, -187.0, 9.9e-7, 0, math.inf)]
    ['33.27', '12,624', '−187.0', '9.9e−07', '0', '∞']
    """
    size = abs(value)
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        text = "∞"
    elif size == 0:
        return "0"
    elif size >= 1e7 or size < 0.005:
        text = f"{size:.2g}".replace("-", "−")
    else:
        text = f"{size:,.{_decimals(size)}f}"
    return f"−{text}" if value < 0 else text


def format_mean(mean: float, deviation: float) -> str:
    """Format mean ± standard deviation with the decimals of the mean.

    Examples
    --------
    >>> format_mean(33.27, 0.614), format_mean(4.04, 6e-15), format_mean(-9437.4, 555.5)
    ('33.27 ± 0.61', '4.04 ± 0.00', '−9,437 ± 556')
    >>> format_mean(0, 0), format_mean(2e-4, 1e-4)
    ('0', '0.0002 ± 0.0001')
    """
    if mean == deviation == 0:
        return "0"
    if not 0.005 <= abs(mean) < 1e7:
        return f"{format_number(mean)} ± {format_number(deviation)}"
    return f"{format_number(mean)} ± {deviation:,.{_decimals(abs(mean))}f}"


def _decimals(size: float) -> int:
    return 0 if size >= 1000 else 1 if size >= 100 else 2


def format_percent(share: float) -> str:
    """Format a share in per cent.

    Examples
    --------
    >>> format_percent(0.0088), format_percent(1.2), format_percent(3.7e-4), format_percent(-0.5)
    ('0.9 %', '120 %', '0.04 %', '−50 %')
    """
    percent = 100 * abs(share)
    text = f"{percent:,.0f}" if percent >= 10 else f"{percent:.1f}" if percent >= 0.1 else f"{percent:.1g}"
    return f"{'−' if share < 0 else ''}{text} %"


def format_gap(gap: float) -> str:
    """Format a certified relative gap."""
    return "exact" if gap == 0 else f"≤ {format_number(gap)}" if math.isfinite(gap) else "none"


def format_seeds(seeds: tuple[int, ...]) -> str:
    """Format the seeds of the sequences.

    Examples
    --------
    >>> format_seeds((0, 1, 2)), format_seeds((7,)), format_seeds((3, 5))
    ('seeds 0–2', 'seed 7', 'seeds 3, 5')
    """
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if seeds == tuple(range(seeds[0], seeds[0] + len(seeds))):
        return f"seeds {seeds[0]}–{seeds[-1]}"
    return f"seeds {', '.join(str(seed) for seed in seeds)}"


def format_count(count: int, noun: str) -> str:
    """Format a count with its noun.

    Examples
    --------
    >>> format_count(1, "learner"), format_count(50, "learner")
    ('one learner', '50 learners')
    """
    return f"one {noun}" if count == 1 else f"{count:,} {noun}s"


def format_size(result: Result) -> str:
    """Format the numbers of rounds and sequences of a result."""
    T, count = int(result.rounds[-1]), len(result.seeds)
    return f"{T:,} {'round' if T == 1 else 'rounds'}, {count} {'sequence' if count == 1 else 'sequences'}"


def page_slug(name: str) -> str:
    """Return a name as part of a file name or of an anchor.

    Examples
    --------
    >>> page_slug("My <b>grid</b>/β"), page_slug("///")
    ('my-b-grid-b-β', 'experiment')
    """
    return re.sub(r"[\W_]+", "-", name.lower()).strip("-") or "experiment"
