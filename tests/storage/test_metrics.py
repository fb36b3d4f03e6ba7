"""Figures for monitoring: the same objects, read without a server."""

import numpy as np
import pytest

from longterm import AOGD, Ledger, LiveLearner
from longterm.calibration import LiveIntervals
from longterm.errors import OutOfBudgetError
from longterm.money import (
    Budget,
    Ceiling,
    Chooser,
    DualMirrorDescent,
    EntropicDual,
    LivePacer,
    PrimalDual,
    ThompsonSampling,
)
from longterm.money.periods import elapsed
from longterm.problems import two_dimensional


def chooser(url, limit=3.0):
    rule = PrimalDual(ThompsonSampling(2, 1), EntropicDual(0.5), Budget(limit, largest=1.0), horizon=10)
    return Chooser.open(url, rule)


def test_a_chooser_counts_money_and_refusals_over_all_processes(tmp_path):
    first, second = chooser(tmp_path / "a.db", 1.0), chooser(tmp_path / "a.db", 1.0)
    choice = first.act([1.0], costs=[0.75, 0.75])
    assert second.act([1.0], costs=[0.75, 0.75]).action is None
    figures = first.metrics()
    assert figures == second.metrics()
    assert (figures["requests"], figures["open"], figures["refused"]) == (2, 1, 1)
    assert (figures["spent"], figures["held"]) == ({"money": 0.0}, {"money": 0.75})
    assert figures["plan"] == {"money": pytest.approx(0.2)}
    with pytest.warns(match="more than its bound"):
        second.settle(str(choice), reward=1.0, cost=1.25)
    assert first.metrics()["overshoot"] == {"money": 0.25}


def test_the_plan_of_a_ceiling_is_the_ceiling_with_or_without_a_horizon():
    for horizon in (None, 10_000):
        rule = PrimalDual(ThompsonSampling(2, 1), EntropicDual(0.5, 0.1), Ceiling(0.5, largest=1.0), horizon=horizon)
        live = Chooser(rule)
        assert live.metrics()["plan"] == {"money": 0.0}
        for _ in range(4):
            live.skip(live.act([1.0], costs=[0.1, 0.2]))
        assert live.metrics()["plan"] == {"money": pytest.approx(2.0)}


def test_a_pacer_plans_an_even_spend(tmp_path):
    pacer = DualMirrorDescent(budget=10.0, horizon=4, step=0.1, start=0.5, mirror="euclidean")
    live = LivePacer.open(tmp_path / "a.db", pacer)
    live.settle(live.bid(2.0), paid=1.5)
    held = live.bid(1.0).amount
    figures = live.metrics()
    assert (figures["spent"], figures["held"], figures["plan"], figures["open"]) == (1.5, held, 5.0, 1)


def test_a_learner_reports_its_multiplier_and_violation():
    problem = two_dimensional()
    live = LiveLearner(AOGD.for_problem(problem), problem)
    assert live.metrics()["requests"] == 0
    live.tell(live.ask(), loss_parameters=[np.array([1.0, 0.0])])
    live.ask()
    figures = live.metrics()
    assert (figures["requests"], figures["told"], figures["open"]) == (2, 1, 1)
    assert figures["price"] == float(live.state.multiplier)
    assert figures["violation"] == float(live.state.signed_violation)


def test_intervals_report_coverage_by_group_and_repeat_an_answer(tmp_path):
    live = LiveIntervals.open(tmp_path / "a.db", 0.9)
    asked = live.ask(1.0, groups=["north"], key="first")
    again = LiveIntervals.open(tmp_path / "a.db", 0.9).ask(5.0, key="first")
    assert again == asked
    live.tell(asked, 1.0)
    figures = live.metrics()
    assert (figures["requests"], figures["open"], figures["target"]) == (1, 0, 0.9)
    assert figures["coverage"] == {"": 1.0, "north": 1.0}


def test_a_ledger_reports_its_accounts(tmp_path):
    ledger = Ledger.open(tmp_path / "a.db", unit="cent")
    assert ledger.metrics()["spent"] == {}
    ledger.add_account("team", 100)
    ledger.hold("team", 90, "one")
    with pytest.raises(OutOfBudgetError):
        ledger.hold("team", 20, "two")
    ledger.settle("one", 110)
    figures = ledger.metrics()
    assert (figures["spent"], figures["overshoot"], figures["open"]) == ({"team": 110}, {"team": 10}, 0)
    assert figures["plan"] == {"team": 100.0}


def test_the_plan_of_a_period_is_the_share_that_is_over():
    wednesday = 1_792_584_000  # 2026-10-21 12:00 UTC
    assert elapsed("day", "UTC", wednesday) == 0.5
    assert elapsed("week", "UTC", wednesday) == pytest.approx(2.5 / 7)
    assert elapsed("month", "UTC", wednesday) == pytest.approx(20.5 / 31)
    sunday = 1_792_922_400  # 2026-10-25 11:00 in Berlin: summer time ended at 3, and the day has 25 hours
    assert elapsed("day", "Europe/Berlin", sunday) == pytest.approx(12 / 25)
    assert elapsed(None, "UTC", sunday) == 1.0
