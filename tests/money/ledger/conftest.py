"""A ledger and a clock that tests move."""

import pytest

from longterm import Ledger
from longterm.storage.database import Database
from memory_files import tmp_path as tmp_path


class SetClock:
    """A time in microseconds that tests set."""

    def __init__(self):
        self.microseconds = 1_700_000_000 * 10**6

    def wait(self, seconds):
        self.microseconds += round(seconds * 1e6)


@pytest.fixture
def clock(monkeypatch):
    made = SetClock()
    monkeypatch.setattr(Database, "now", lambda self: made.microseconds)
    return made


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "service.db", unit="microcent", durability="relaxed") as opened:
        yield opened
