"""docs/guides/late_feedback.md has the cost of delay."""

import re
from pathlib import Path

import pytest

from delays import regret_in_blocks
from longterm.problems.named.adversarial import late_reversal
from longterm.theory import gradient_bound_under_delay, lemma_5_delayed
from longterm.theory.schedules import ConvexSchedule

DOCS = Path(__file__).parents[3] / "docs"
LATE = (DOCS / "guides" / "late_feedback.md").read_text(encoding="utf-8")


ROWS = re.findall(r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", LATE, flags=re.MULTILINE)


def test_there_is_a_table_of_the_cost_of_delay():
    assert [int(row[0]) for row in ROWS] == [0, 9, 49, 99]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"delay {row[0]}")
def test_the_table_of_the_cost_of_delay(row):
    delay, *figures = int(row[0]), *map(float, row[1:])
    schedules = [ConvexSchedule(2.0, G, 0.5) for G in (gradient_bound_under_delay(1.0, delay), 1.0)]
    regrets = [regret_in_blocks(delay, 1000, schedule) for schedule in schedules]
    bounds = [lemma_5_delayed(schedule, late_reversal().constants, 1000, delay).regret for schedule in schedules]
    assert regrets == pytest.approx(figures, abs=0.051)
    assert all(regret <= bound for regret, bound in zip(regrets, bounds, strict=True))
