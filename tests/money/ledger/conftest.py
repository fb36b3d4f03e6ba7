"""A ledger and a clock that tests move."""

import pytest
from tests.support.clocks import ManualClock

from longterm import Ledger
from memory_files import tmp_path as tmp_path


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def ledger(tmp_path, clock):
    with Ledger.open(tmp_path / "service.db", unit="microcent", durability="relaxed", clock=clock) as opened:
        yield opened
