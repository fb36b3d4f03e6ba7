"""Messages of a queue that are delivered twice, at any time later, count once."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from clocks import ManualClock
from longterm import AOGD, Fleet, Ledger, LiveLearner, observe
from longterm.calibration import LiveIntervals
from longterm.errors import DatabaseError, InputError, LongtermError, RepeatedPositionError
from longterm.money import EXP3IX, Budget, Chooser, DualMirrorDescent, HedgeDual, LivePacer, PrimalDual, Router
from longterm.problems import two_dimensional
from longterm.storage.contents import rename

PROBLEM = two_dimensional()
PARAMETERS = [np.array([0.3, -0.2])]
DAY = 86_400.0


def learner(url, clock):
    rule = AOGD.for_problem(PROBLEM, steps="strongly convex", beta=0.5)
    return LiveLearner.open(url, rule, PROBLEM, durability="relaxed", clock=clock)


def feed_learner(live, key, position):
    live.tell(live.ask(key), loss_parameters=PARAMETERS, position=position)


def ledger(url, clock):
    made = Ledger.open(url, durability="relaxed", clock=clock)
    made.add_account("team", 10**9)
    return made


def feed_ledger(made, key, position):
    made.hold("team", 100, key=key)
    made.settle(key, 60, position=position)


def chooser(url, clock):
    rule = PrimalDual(EXP3IX(2), HedgeDual(), Budget(40.0, 1.0), 400)
    return Chooser.open(url, rule, durability="relaxed", clock=clock)


def feed_chooser(made, key, position):
    made.settle(made.act(costs=[0.1, 0.2], key=key), 0.5, 0.1, position=position)


def teach_chooser(made, key, position):
    made.teach([], [0.3, 0.9], [0.1, 0.2], announced=[0.1, 0.2], position=position)


def router(url, clock):
    models = {"small": 1e-4, "large": 1e-2}
    return Router.for_models(models, per_request=2e-3, features=2, url=url, durability="relaxed", clock=clock)


def feed_router(made, key, position):
    made.settle(made.route([1.0, 0.5], key=key), 0.5, 1e-4, position=position)


def teach_router(made, key, position):
    made.teach([1.0, 0.5], {"small": 0.4}, position=position)


def pacer(url, clock):
    rule = DualMirrorDescent(budget=20.0, horizon=200, step=0.1, start=0.5, mirror="euclidean")
    return LivePacer.open(url, rule, durability="relaxed", clock=clock)


def feed_pacer(live, key, position):
    live.settle(live.bid(0.4, key), 0.1, position=position)


def intervals(url, clock):
    return LiveIntervals.open(url, durability="relaxed", clock=clock)


def feed_intervals(live, key, position):
    live.tell(live.ask(1.0, key=key), 1.3, position=position)


def fleet(url, clock):
    return Fleet.open(url, AOGD.for_problem(PROBLEM, beta=0.5), 40, durability="relaxed")


def feed_fleet(made, key, position):
    made.tell(observe(PROBLEM, made.ask([3]), [np.full((1, 2), 0.4)]), [3], position=position)


OBJECTS = {
    "learner": (learner, feed_learner, lambda live: (live.state.told, live.state.x.tolist())),
    "ledger": (ledger, feed_ledger, lambda made: made.balance("team").spent),
    "chooser": (chooser, feed_chooser, lambda made: (made.spent.tolist(), made.prices.tolist())),
    "taught chooser": (chooser, teach_chooser, lambda made: repr(made.state)),
    "router": (router, feed_router, lambda made: (made.chooser.spent.tolist(), made.chooser.prices.tolist())),
    "taught router": (router, teach_router, lambda made: repr(made.chooser.state)),
    "pacer": (pacer, feed_pacer, lambda live: (live.spent, repr(live.state))),
    "intervals": (intervals, feed_intervals, lambda live: live._replica.copy.encode()),
    "fleet": (fleet, feed_fleet, lambda made: (made.rounds.tolist(), made.ask().tolist())),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_a_message_delivered_again_after_its_key_is_forgotten(tmp_path, kind):
    make, feed, see = OBJECTS[kind]
    clock = ManualClock()
    with closing(make(tmp_path / "a.db", clock)) as made:
        for number in range(20):
            feed(made, f"request {number}", ("orders-3", 10 * number))
        feed(made, "another", ("orders-4", 7))
        assert (made.last_position("orders-3"), made.last_position("orders-4")) == (190, 7)
        before = see(made)
    clock.advance(2 * DAY)
    with closing(make(tmp_path / "a.db", clock)) as made:
        for number in range(0, 20, 3):
            with pytest.raises(RepeatedPositionError, match=r"position: .*'orders-3'.* is 190. Acknowledge") as raised:
                feed(made, f"request {number}", ("orders-3", 10 * number))
            assert raised.value.argument == "position"
            assert see(made) == before
        assert made.last_position("orders-3") == 190
        assert made.last_position("orders-5") == -1
        feed(made, "request 0", None)  # without a position it is a new request
        feed(made, "request 20", ("orders-3", 191))
        assert made.last_position("orders-3") == 191
        assert see(made) != before


@pytest.mark.parametrize("kind", ["learner", "ledger", "fleet", "chooser"])
def test_another_process_that_has_applied_a_message(tmp_path, kind):
    make, feed, see = OBJECTS[kind]
    clock = ManualClock()
    with make(tmp_path / "a.db", clock) as one, make(tmp_path / "a.db", clock) as other:
        for number in range(9):
            feed((one, other)[number % 2], str(number), ("p", number))
            with pytest.raises(LongtermError):
                feed((other, one)[number % 2], str(number), ("p", number))
        assert one.last_position("p") == other.last_position("p") == 8
        assert see(one) == see(other)


def test_feedback_that_is_refused_does_not_count_as_applied(tmp_path):
    with learner(tmp_path / "a.db", ManualClock()) as live, ledger(tmp_path / "a.db", ManualClock()) as made:
        token = live.ask()
        with pytest.raises(InputError, match="loss"):
            live.tell(token, loss_parameters=[np.array([np.nan, 0.0])], position=("p", 5))
        with pytest.raises(InputError, match="key"):
            made.settle("unknown", 5, position=("p", 5))
        assert live.last_position("p") == made.last_position("p") == -1
        live.tell(token, loss_parameters=PARAMETERS, position=("p", 5))


def test_a_cost_that_was_settled_already_moves_the_position(tmp_path):
    with ledger(tmp_path / "a.db", ManualClock()) as made:
        made.hold("team", 100, key="k")
        made.settle("k", 60)
        made.settle("k", 60, position=("p", 5))
        assert made.last_position("p") == 5
        assert made.balance("team").spent == 60


def test_in_memory():
    rule = AOGD.for_problem(PROBLEM, steps="strongly convex", beta=0.5)
    live = LiveLearner(rule, PROBLEM)
    feed_learner(live, "a", ("p", 2**63 - 1))
    with pytest.raises(RepeatedPositionError):
        feed_learner(live, "b", ("p", 2**63 - 1))
    assert live.state.told == 1


BAD = ["orders-3", ("p",), ("p", 1, 2), ("p", -1), ("p", 2**63), ("p", 1.0), ("p", True), ("", 1), ("a\0", 1), (3, 1)]


@pytest.mark.parametrize("position", [*BAD, ("p" * 201, 1), ("p", None)])
def test_what_is_not_a_position(tmp_path, position):
    with ledger(tmp_path / "a.db", ManualClock()) as made:
        made.hold("team", 100, key="k")
        with pytest.raises(InputError, match=r"^position: "):
            made.settle("k", 60, position=position)
        assert made.balance("team").held == 100
        with pytest.raises(InputError, match=r"^partition: "):
            made.last_position("")


def test_a_renamed_object_keeps_its_positions_and_keys(tmp_path):
    clock = ManualClock()
    with learner(tmp_path / "a.db", clock) as live:
        token = live.ask("open")
        feed_learner(live, "a", ("p", 5))
    rename(tmp_path / "a.db", "learner", "bids")
    rule = AOGD.for_problem(PROBLEM, steps="strongly convex", beta=0.5)
    with LiveLearner.open(tmp_path / "a.db", rule, PROBLEM, name="bids", clock=clock) as live:
        assert live.last_position("p") == 5
        assert live.ask("open") == token


@pytest.mark.parametrize("number", ["'x'", "-7", "1.5", "NULL"])
def test_a_forged_position(tmp_path, number):
    with ledger(tmp_path / "a.db", ManualClock()) as made:
        feed_ledger(made, "k", ("p", 1))
        made.hold("team", 100, key="l")
    connection = sqlite3.connect(tmp_path / "a.db")
    if number == "NULL":
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute("UPDATE longterm_positions SET number = NULL")
        return
    connection.execute(f"UPDATE longterm_positions SET number = {number}")
    connection.commit()
    connection.close()
    with ledger(tmp_path / "a.db", ManualClock()) as made, pytest.raises(DatabaseError, match="last position"):
        made.settle("l", 60, position=("p", 2))


@pytest.mark.cross
def test_a_hundred_thousand_requests_later(tmp_path):
    clock = ManualClock()
    with learner(tmp_path / "a.db", clock) as live, ledger(tmp_path / "a.db", clock) as made:
        for number in range(100_000):
            feed_learner(live, str(number), ("orders", number))
            feed_ledger(made, str(number), ("orders", number))
            clock.advance(2.0)
        before = live.state.x.tolist(), live.state.told, made.balance("team").spent
        assert before[1:] == (100_000, 6_000_000)
        for number in (0, 1, 50_000, 99_999):
            for feed, one in ((feed_learner, live), (feed_ledger, made)):
                with pytest.raises(LongtermError):
                    feed(one, str(number), ("orders", number))
        assert (live.state.x.tolist(), live.state.told, made.balance("team").spent) == before


@pytest.mark.parametrize("stored", [True, False], ids=["database", "memory"])
def test_a_message_delivered_again_has_one_error_whatever_became_of_its_round(tmp_path, stored):
    """Its round is closed, but what the consumer must know is that the message counts already."""
    rule = AOGD.for_problem(PROBLEM)
    live = LiveLearner.open(tmp_path / "a.db", rule, PROBLEM) if stored else LiveLearner(rule, PROBLEM)
    models, url = {"small": 1e-4, "large": 1e-2}, tmp_path / "a.db" if stored else None
    sent = Router.for_models(models, per_request=2e-3, features=2, url=url)
    round_, route = str(live.ask()), str(sent.route([0.1, 0.2]))
    live.tell(round_, loss_parameters=PARAMETERS, position=("queue", 5))
    sent.settle(route, 0.5, 1e-4, position=("queue", 5))
    for number in (5, 3):
        with pytest.raises(RepeatedPositionError):
            live.tell(round_, loss_parameters=PARAMETERS, position=("queue", number))
        with pytest.raises(RepeatedPositionError):
            sent.settle(route, 0.5, 1e-4, position=("queue", number))


def settle_learner(live, opened, position):
    live.tell(str(opened), loss_parameters=PARAMETERS, position=position)


def settle_router(made, opened, position):
    made.settle(str(opened), 0.5, 1e-4, position=position)


@pytest.mark.parametrize(("make", "settle"), [(learner, settle_learner), (router, settle_router)])
def test_a_message_that_another_consumer_applies_meanwhile_has_the_same_error(tmp_path, make, settle):
    clock, url = ManualClock(1e9), tmp_path / "service.db"
    with closing(make(url, clock)) as first, closing(make(url, clock)) as second:
        opened = first.ask("key") if make is learner else first.route([1.0, 0.5], key="key")
        checked = first if make is learner else first.chooser
        check = type(checked).check_position

        def check_and_lose(position):
            del checked.check_position
            place = check(checked, position)
            settle(second, opened, position)
            return place

        checked.check_position = check_and_lose
        with pytest.raises(RepeatedPositionError):
            settle(first, opened, ("orders", 3))
