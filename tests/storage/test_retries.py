"""Calls that are repeated, late, or cross the calls of another replica."""

import threading

import numpy as np
import pytest

from clocks import ManualClock
from live_plan import learner, start
from longterm import LiveLearner
from longterm.calibration import LiveIntervals
from longterm.errors import BrokenBoundWarning, ExpiredTokenError, InputError, TokenError, WindowFullError
from longterm.money import (
    Budget,
    Chooser,
    DualMirrorDescent,
    EntropicDual,
    HedgeDual,
    Ledger,
    LinearUCB,
    LivePacer,
    PrimalDual,
    ReturnOnSpend,
    Router,
    SharedAccount,
    ThompsonSampling,
)
from longterm.storage.database import Database

TARGET = [np.array([0.3, -0.2])]
COSTS = [0.1, 0.2, 0.3]


def rule():
    return PrimalDual(LinearUCB(3, 1), HedgeDual(), Budget(6.0, 1.0), 2000)


def pacer(**options):
    return DualMirrorDescent(budget=10.0, horizon=100, step=0.1, start=0.5, mirror="euclidean", **options)


def chooser(tmp_path, **options):
    return Chooser.open(tmp_path / "service.db", rule(), durability="relaxed", **options)


@pytest.mark.parametrize("behind", [1, 40, 100])
def test_a_choice_settled_in_two_parts_is_closed_for_a_replica_that_is_behind(tmp_path, behind):
    with chooser(tmp_path) as one, chooser(tmp_path) as other:
        choice = one.act([1.0], costs=COSTS)
        assert list(other.pending) == [1]
        one.settle(choice, cost=0.1)
        one.settle(str(choice), reward=1.0)
        for _ in range(behind):
            one.settle(one.act([1.0], costs=COSTS), reward=1.0, cost=0.01)
        assert other.act([1.0], costs=COSTS).number == behind + 2
        assert list(other.pending) == [behind + 2]
        assert other.spent == one.spent


def test_a_delay_counts_the_rounds_that_another_replica_has_asked_for(tmp_path, monkeypatch):
    with start(tmp_path) as one, start(tmp_path) as other:
        token, locked, asked = one.ask(), Database.locked, []

        def lock_after_an_ask(self, name):
            if self is one._replica.database and not asked:
                asked.append(other.ask())
            return locked(self, name)

        monkeypatch.setattr(Database, "locked", lock_after_an_ask)
        one.tell(token, loss_parameters=TARGET)
        assert one.state.largest_delay == 1


@pytest.mark.parametrize("stored", [False, True])
def test_the_keys_of_choosers_are_remembered_by_time(tmp_path, stored):
    clock = ManualClock()
    made = chooser(tmp_path, clock=clock) if stored else Chooser(rule(), clock=clock)
    first = made.act([1.0], costs=COSTS, key="payment 1")
    made.settle(first, reward=1.0, cost=0.1)
    for _ in range(1080):
        made.skip(made.act([1.0], costs=[0.0, 0.0, 0.0]))
    clock.advance(86_399.0)
    again = made.act([1.0], costs=COSTS, key="payment 1")
    assert str(again) == str(first)
    with pytest.raises(TokenError):
        made.settle(again, reward=1.0, cost=0.1)
    clock.advance(2.0)
    assert made.act([1.0], costs=COSTS, key="payment 1").number == 1082
    made.close()


@pytest.mark.parametrize("stored", [False, True])
def test_a_retried_act_returns_the_first_answer_after_an_action_was_added(tmp_path, stored):
    made = chooser(tmp_path) if stored else Chooser(rule())
    first = made.act([1.0], costs=COSTS, key="a")
    assert made.add_action() == 3
    for again in (made.act([1.0], costs=[*COSTS, 0.1], key="a"), made.find(str(first)), made.pending[1]):
        np.testing.assert_array_equal(again.probabilities, first.probabilities)
    made.settle(str(first), reward=1.0, rewards=None, cost=0.1)
    made.close()


def test_two_threads_add_two_actions():
    made, found = Chooser(rule()), []
    transact, both = made._replica.transact, threading.Barrier(2)

    def transact_together(*arguments):
        change = transact(*arguments)
        both.wait(10)
        return change

    made._replica.transact = transact_together
    threads = [threading.Thread(target=lambda: found.append(made.add_action())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [3, 4]


def test_a_route_of_a_model_that_only_another_process_knows_is_repeated(tmp_path):
    old, new = ({"small": 1e-4, "large": 1e-2}, {"small": 1e-4, "large": 1e-2, "third": 1e-3})
    routers = [
        Router.for_models(models, per_request=2e-3, features=1, url=tmp_path / "service.db") for models in (new, old)
    ]
    first = routers[0].route([1.0], models="third", key="request 7")
    assert routers[1].route([1.0], key="request 7").model == first.model == "third"
    for router in routers:
        router.close()


@pytest.mark.parametrize(
    "names", [[1, 2, 3], "abc", ["a", "a", "b"], [None, "a", "b"], ["a\0b"], ["\udcff"], None, [""]]
)
def test_names_that_are_none(tmp_path, names):
    with pytest.raises(InputError, match="names"):
        chooser(tmp_path, names=names)
    with chooser(tmp_path, names=["a", "b", "c"]) as made:
        assert made.names == ("a", "b", "c")


def test_texts_that_postgresql_cannot_store_are_refused(tmp_path):
    with chooser(tmp_path) as made, start(tmp_path) as live:
        for text in ("a\0b", "\udcff"):
            with pytest.raises(InputError, match="group"):
                made.act([1.0], costs=COSTS, group=text)
            with pytest.raises(InputError, match="key"):
                live.ask(key=text)


def test_a_return_on_spend_without_a_landscape_is_stored(tmp_path):
    def made():
        bidder = ReturnOnSpend(target=1.2, horizon=60, largest_value=2.0, largest_bid=2.0, budget=20.0)
        return LivePacer.open(tmp_path / "service.db", bidder)

    with made() as one:
        one.settle(one.bid(1.0), 0.5, won=True)
    with made() as again:
        assert again.spent == 0.5


# --- windows and ages -------------------------------------------------------------------------------------------


def bids(tmp_path, stored, **options):
    return LivePacer.open(tmp_path / "p.db", pacer(), **options) if stored else LivePacer(pacer(), **options)


@pytest.mark.parametrize("stored", [False, True])
def test_a_bid_that_is_never_settled_gives_its_money_back(tmp_path, stored):
    clock = ManualClock()
    with bids(tmp_path, stored, max_age=60.0, max_in_flight=2, clock=clock) as live:
        old = live.bid(4.0)
        clock.advance(59.0)
        live.bid(0.5)
        with pytest.raises(WindowFullError):
            live.bid(0.5)
        assert live.held > old.amount > 0
        clock.advance(2.0)
        assert live.metrics()["held"] == live.held < old.amount
        assert len(live.in_flight) == 1
        with pytest.raises(TokenError):
            live.settle(old, 1.0)
        live.bid(0.5)
    with bids(tmp_path, stored, expire_after=2, clock=clock) as live:
        open_bids = [live.bid(0.1) for _ in range(4)]
        assert live.in_flight[0] != open_bids[0].token


@pytest.mark.parametrize("stored", [False, True])
def test_intervals_have_a_window_an_age_and_a_limit_of_groups(tmp_path, stored):
    clock = ManualClock()
    options = {"max_age": 60.0, "max_in_flight": 2, "max_groups": 2, "clock": clock}
    live = LiveIntervals.open(tmp_path / "i.db", **options) if stored else LiveIntervals(**options)
    first = live.ask(1.0, ["north"])
    live.ask(1.0, ["south"])
    with pytest.raises(WindowFullError):
        live.ask(1.0)
    clock.advance(61.0)
    assert live.in_flight == ()
    with pytest.raises(TokenError):
        live.tell(first, 1.0)
    with pytest.raises(InputError, match="max_groups"):
        live.ask(1.0, ["east"])
    live.tell(live.ask(1.0, ["north"]), 1.0)
    assert set(live.coverage) == {"", "north", "south"}
    live.close()


@pytest.mark.parametrize("stored", [False, True])
def test_expiry_depends_on_the_clock_alone(tmp_path, stored):
    """A round that is too old is refused although no other call came before."""
    clock = ManualClock()
    made = chooser(tmp_path, max_age=60.0, clock=clock) if stored else Chooser(rule(), max_age=60.0, clock=clock)
    late, in_time = made.act([1.0], costs=COSTS), None
    clock.advance(30.0)
    in_time = made.act([1.0], costs=COSTS)
    clock.advance(31.0)
    with pytest.raises(TokenError):
        made.settle(late, reward=1.0, cost=0.1)
    made.settle(in_time, reward=1.0, cost=0.1)
    assert made.metrics()["open"] == 0
    bound = COSTS[late.action]
    assert made.spent == pytest.approx(0.1 + bound)
    made.close()
    live = LiveLearner(learner(), max_age=60.0, clock=clock)
    token = live.ask()
    clock.advance(61.0)
    with pytest.raises(ExpiredTokenError):
        live.skip(token)


# --- numbers that are none ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [np.ma.masked, 10**400, "1", None, [], np.array(None), float("nan")])
def test_amounts_that_are_no_numbers_change_nothing(number):
    live = LivePacer(pacer())
    bid = live.bid(1.0)
    for call in (lambda: live.bid(number), lambda: live.settle(bid, number)):
        with pytest.raises(InputError):
            call()
    assert (live.spent, live.held) == (0.0, bid.amount)
    made = Chooser(PrimalDual(ThompsonSampling(3, 1), EntropicDual(start=0.5), Budget(6.0, 1.0), 20))
    choice = made.act([1.0], costs=COSTS)
    if number is not None:
        with pytest.raises(InputError):
            made.settle(choice, reward=0.5, cost=number)
        with pytest.raises(InputError):
            made.settle(choice, reward=number)
    assert (made.spent, len(made.pending)) == (0.0, 1)


@pytest.mark.parametrize("number", [np.int64(1), np.float32(1.0), np.array(1.0), 1])
def test_amounts_of_any_kind_of_number(number):
    live = LivePacer(pacer())
    live.settle(live.bid(number), number)
    assert live.spent == 1.0


# --- corrections --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stored", [False, True])
def test_a_mistaken_cost_is_corrected_once(tmp_path, stored):
    made = chooser(tmp_path) if stored else Chooser(rule())
    choice, skipped = made.act([1.0], costs=COSTS), made.act([1.0], costs=COSTS)
    with pytest.raises(TokenError, match="open"):
        made.correct(choice, 0.1)
    made.settle(choice, reward=1.0, cost=0.1)
    with pytest.raises(InputError, match="force"):
        made.correct(choice, 1000.0)
    for _ in range(2):
        made.correct(choice, 0.25, correction="c1")
    assert made.spent == pytest.approx(0.25)
    for change in (lambda: made.correct(choice, 0.3, correction="c1"), lambda: made.act([1.0], costs=COSTS, key="c1")):
        with pytest.raises(InputError):
            change()
    made.correct(str(choice), 0.05, correction="c2")
    made.correct(choice, 0.25, correction="c1")  # a late repetition
    made.skip(skipped)
    made.correct(skipped, 0.0)
    assert made.spent == made.committed == pytest.approx(0.05)
    with pytest.raises(TokenError):
        made.settle(choice, reward=1.0, cost=0.1)
    made.close()
    if stored:
        with chooser(tmp_path) as again:
            again.correct(choice, 0.1)
            assert again.spent == pytest.approx(0.1)


@pytest.mark.parametrize("stored", [False, True])
def test_a_mistaken_payment_is_corrected_once(tmp_path, stored):
    with bids(tmp_path, stored) as live:
        bid, lost = live.bid(1.0), live.bid(1.0)
        with pytest.raises(InputError, match="force"):
            live.settle(bid, 101 * bid.amount)
        live.settle(bid, 0.5)
        live.skip(lost)
        for _ in range(2):
            live.correct(bid, 0.2, correction="c")
        with pytest.raises(InputError, match="different correction"):
            live.correct(lost, 0.2, correction="c")
        live.correct(lost, 0.3)
        assert live.spent == pytest.approx(0.5)


@pytest.mark.parametrize("kind", ["chooser", "pacer"])
def test_a_correction_counts_in_the_account_and_its_parents(tmp_path, kind):
    url = tmp_path / "s.db"
    with Ledger.open(url) as ledger:
        ledger.add_account("all", 10_000)
        ledger.add_account("team", 5000, parent="all")
        account = SharedAccount("team", units=1000.0)
        if kind == "chooser":
            made = Chooser.open(url, rule(), account=account)
            token = made.act([1.0], costs=COSTS)
            made.settle(token, reward=1.0, cost=0.1)
        else:
            made = LivePacer.open(url, pacer(), account=account)
            token = made.bid(1.0)
            made.settle(token, 0.1)
        for _ in range(2):
            made.correct(token, 0.02, correction="c")
        assert ledger.balance("team").spent == ledger.balance("all").spent == 20
        made.close()


def test_an_absurd_cost_needs_force():
    made = Chooser(rule())
    choice = made.act([1.0], costs=COSTS)
    with pytest.raises(InputError, match="force"):
        made.settle(choice, reward=1.0, cost=1e6)
    assert made.spent == 0.0
    with pytest.warns(BrokenBoundWarning):
        made.settle(choice, reward=1.0, cost=1e6, force=True)
    made.correct(choice, 0.1)
    assert made.spent == pytest.approx(0.1)
    made.act([1.0], costs=COSTS)


@pytest.mark.parametrize("stored", [False, True])
def test_a_refused_call_forgets_no_key(tmp_path, stored):
    clock = ManualClock()
    options = {"max_in_flight": 1, "remember": 60.0, "clock": clock}
    live = bids(tmp_path, stored, **options)
    first = live.bid(0.1, key="a")
    live.skip(first)
    live.bid(0.1)
    clock.advance(61.0)
    with pytest.raises(WindowFullError):
        live.bid(0.1, key="a")
    clock.step(-10.0)
    assert live.bid(0.1, key="a") == first
    live.close()
