"""Compare what code prints with what a page says that it prints."""

from __future__ import annotations

import re

import pytest

NUMBER = re.compile(r"-?\d[\d,]*\.?\d*")


def assert_same_output(printed: str, wanted: str) -> None:
    """Compare words exactly and numbers to five per cent: rounding differs between processors."""
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", wanted).split()
    ours, theirs = ([float(one.replace(",", "")) for one in NUMBER.findall(text)] for text in (printed, wanted))
    assert ours == pytest.approx(theirs, rel=0.05, abs=0.02)
