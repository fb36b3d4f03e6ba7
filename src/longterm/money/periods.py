"""Days, weeks and months for which a limit holds, and the money spent in each of the last ones.

Money counts in the period of the clock that spends it. The sums of the last `KEPT` periods are kept, those that lie in
the future by the present clock included. So a clock that is wrong for a while, ahead or behind, uses the money of the
periods that it names, once. It neither renews nor empties any other period.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from longterm._base.messages import shown
from longterm.errors import InputError

KEPT = 4
"""The number of periods whose sums are kept."""
Period = Literal["day", "week", "month"]
PERIODS = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}

N = TypeVar("N", str, int)
T = TypeVar("T")


def require_period(period: Any) -> Period | None:
    """Return the name of a period, or None. Raise an InputError if there is no such period."""
    if period is None:
        return None
    if not (isinstance(period, str) and period in PERIODS):
        raise InputError("period", f"{shown(period)} is not known", f"Choose one of {list(PERIODS)}")
    return period  # type: ignore[return-value]


def require_zone(timezone: Any) -> ZoneInfo:
    """Return a time zone, or raise an InputError."""
    try:
        return ZoneInfo(timezone if isinstance(timezone, str) else "")
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        what = f"{shown(timezone)} is not known"
        raise InputError("timezone", what, "Give a name such as 'Europe/Berlin'") from None


def period_of(period: str, timezone: str, seconds: float) -> str:
    """Return the name of the period that a time is in; later periods have larger names."""
    return datetime.fromtimestamp(seconds, require_zone(timezone)).strftime(PERIODS[period])


def period_bounds(period: str, timezone: str, seconds: float) -> tuple[float, float]:
    """Return the beginning and the end of the period that a time is in, in seconds since 1970."""
    local = datetime.fromtimestamp(seconds, require_zone(timezone))
    start = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if period == "week":
        start -= timedelta(days=start.weekday())
    start = start.replace(day=1) if period == "month" else start
    next_month = (start + timedelta(days=32)).replace(day=1)
    end = next_month if period == "month" else start + timedelta(days=7 if period == "week" else 1)
    return start.timestamp(), end.timestamp()


def period_number(period: str | None, timezone: str, seconds: float) -> int:
    """Return the period that a time is in as a number: 20261118, 2026047 or 202611; 0 without a period."""
    if period is None:
        return 0
    return int(period_of(period, timezone, seconds).replace("W", "0").replace("-", ""))


def elapsed(period: str | None, timezone: str, seconds: float) -> float:
    """Return the share of the present period that is over; 1 without a period."""
    if period is None:
        return 1.0
    start, end = period_bounds(period, timezone, seconds)
    return (seconds - start) / (end - start)


def turned(sums: Mapping[N, T], name: N, fresh: T) -> tuple[N, dict[N, T]]:
    """Return the period in which money counts at a time in the period `name`, and the sums with that of this period.

    It is `name` itself, or the oldest period that is known if a clock is set back further: that begins no period.

    Parameters
    ----------
    sums : mapping of str or int to object
        The sums of 1 to `KEPT` periods.
    name : str or int
        The period of the present time.
    fresh : object
        The sum of a new period.
    """
    name = max(name, min(sums))
    known = {name: fresh, **sums}
    while len(known) > KEPT:
        del known[min(known)]
    return name, known
