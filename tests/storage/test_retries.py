"""Calls that are repeated, late, or cross the calls of another replica."""

import threading

import numpy as np
import pytest

from clocks import ManualClock
from live_plan import learner, start
from longterm import LiveLearner
from longterm.calibration import LiveIntervals
from longterm.errors import (
    BrokenBoundWarning,
    ExpiredTokenError,
    InputError,
    LongtermError,
    TokenError,
    WindowFullError,
)
from longterm.money import (
    Budget,
    Chooser,
    DualMirrorDescent,
    EntropicDual,
    HedgeDual,
    LeasedAccount,
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
def test_a_bid_that_is_never_settled_counts_in_full(tmp_path, stored):
    clock = ManualClock()
    with bids(tmp_path, stored, max_age=60.0, max_in_flight=2, clock=clock) as live:
        old = live.bid(4.0)
        clock.advance(59.0)
        young = live.bid(0.5)
        with pytest.raises(WindowFullError):
            live.bid(0.5)
        assert (live.spent, live.held) == (0.0, old.amount + young.amount)
        clock.advance(2.0)
        figures = live.metrics()
        assert (figures["spent"], figures["held"], figures["open"]) == (old.amount, young.amount, 1)
        with pytest.raises(ExpiredTokenError, match="correct"):
            live.settle(old, 1.0)
        live.correct(old, 1.0)  # nothing that was paid is lost
        assert (live.spent, live.held) == (1.0, young.amount)
        assert live.bid(99.0).amount == 10.0 - 1.0 - young.amount
    name = {"name": "p2"} if stored else {}
    with bids(tmp_path, stored, expire_after=2, clock=clock, **name) as live:
        open_bids = [live.bid(0.1) for _ in range(4)]
        assert [token.number for token in live.in_flight] == [2, 3, 4]
        assert live.spent == open_bids[0].amount


def test_late_payments_of_expired_bids_stay_within_the_budget(tmp_path):
    """Expired bids count whole in the pacer and in the account, so what is reported late fits in."""
    clock = ManualClock()
    with Ledger.open(tmp_path / "p.db", clock=clock) as ledger:
        ledger.add_account("a", 800)
        with bids(tmp_path, True, max_age=60.0, clock=clock, account=SharedAccount("a", units=100)) as live:
            late = [live.bid(1.5), live.bid(1.5)]
            clock.advance(61.0)
            while (bid := live.bid(2.0)).amount > 0:
                live.settle(bid, bid.amount)
            for bid in late:
                live.correct(bid, bid.amount)
            assert live.spent <= 8.0 + 1e-12
            assert ledger.balance("a").spent <= 800
            for bid in late:
                live.correct(bid, 0.0, correction=str(bid))  # both auctions were lost
            assert ledger.balance("a").available == sum(int(100 * bid.amount) for bid in late)


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


def test_a_settle_that_is_refused_frees_no_money(tmp_path):
    """A price that is no number was refused after the bid had been paid in the account: 202.6 were paid from 20."""
    with Ledger.open(tmp_path / "p.db") as ledger:
        ledger.add_account("a", 20)
        account = LeasedAccount(ledger, "a", slice=20, units=1)
        for live in (bids(tmp_path, True, account=SharedAccount("a", units=1)), LivePacer(pacer(), account=account)):
            bid, before = live.bid(4.0), None
            for wrong in ({"price": float("nan")}, {"price": -1.0}, {"paid": float("nan")}, {"paid": 1e9}):
                before = before or ledger.balance("a")
                with pytest.raises(InputError):
                    live.settle(bid, **{"paid": 1.0} | wrong)
                assert (live.held, live.spent) == (bid.amount, 0.0)
                assert ledger.balance("a") == before
            paid = 0.0
            while bid.amount > 0:
                with pytest.raises(InputError):
                    live.settle(bid, bid.amount, price=float("nan"))
                live.settle(bid, bid.amount)
                paid += bid.amount
                bid = live.bid(4.0)
            assert paid <= 10.0 + 1e-9
            live.close()
        account.close()
        assert ledger.balance("a").spent <= 20


@pytest.mark.parametrize("stored", [False, True])
def test_the_key_of_a_round_that_is_too_old_is_free_again(tmp_path, stored):
    """A process that has not read the round since finds it open in the database, long after its age."""
    clock = ManualClock()
    options = {"max_age": 60.0, "remember": 300.0, "clock": clock}
    one = chooser(tmp_path, **options) if stored else Chooser(rule(), **options)
    other = chooser(tmp_path, **options) if stored else one
    first = one.act([1.0], costs=COSTS, key="a")
    assert str(other.act([1.0], costs=COSTS, key="a")) == str(first)
    one.settle(first, 0.5, 0.1)
    last = chooser(tmp_path, **options) if stored else one
    second = one.act([1.0], costs=COSTS, key="b")
    clock.advance(7200.0)
    again = last.act([1.0], costs=COSTS, key="b")
    assert again.number == second.number + 1
    last.settle(again, 0.5, 0.1)
    for made in {id(made): made for made in (one, other, last)}.values():
        made.close()


# --- arguments of any kind ----------------------------------------------------------------------------------------

WRONG = {
    "masked": np.ma.masked,
    "masked array": np.ma.array([1.0, 1.0], mask=[True, False]),
    "0-d": np.array(0.5),
    "1-d": np.array([0.1, 0.2]),
    "NumPy": np.int64(1),
    "huge": 10**400,
    "NaN": float("nan"),
    "complex": 1j,
    "text": "x",
    "bytes": b"x",
    "surrogate": "\ud800",
    "NUL": "a\0b",
    "list": [1],
    "mapping": {1: "x"},
    "None": None,
    "object": object(),
}


def calls_with(wrong, folder):
    """Return calls with a wrong value in each place."""
    learned, made = start(folder), chooser(folder)
    paced, router = LivePacer(pacer()), Router.for_models({"a": 1.0, "b": 2.0}, per_request=1.0, features=2)
    ledger = Ledger.open(folder / "ledger.db", durability="relaxed")
    ledger.add_account("a", 100)
    act, x, models = {"context": [1.0], "costs": COSTS}, [1.0, 2.0], {"a": 1.0, "b": 2.0}
    yield from (
        lambda: learned.ask(wrong),
        lambda: learned.tell(learned.ask(), loss_parameters=wrong),
        lambda: learned.tell(learned.ask(), loss_parameters=TARGET, constraint_parameters=wrong),
        lambda: learned.tell(wrong, loss_parameters=TARGET),
        *(lambda name=name: made.act(**act | {name: wrong}) for name in ("context", "costs", "bounds", "allowed")),
        *(lambda name=name: made.act(**act | {name: wrong}) for name in ("key", "group")),
        lambda: made.settle(wrong, 0.5, 0.1),
        *(lambda name=name: made.settle(made.act(**act), **{name: wrong}) for name in ("reward", "cost", "rewards")),
        lambda: made.settle(made.act(**act), 0.5, costs=wrong),
        lambda: made.correct(wrong, 0.1),
        lambda: made.teach([1.0], wrong, COSTS),
        lambda: made.find(wrong),
        lambda: made.remove_action(wrong),
        lambda: made.add_action(wrong),
        lambda: made.name_actions(wrong),
        lambda: paced.bid(wrong),
        lambda: paced.bid(0.1, wrong),
        lambda: paced.settle(wrong, 0.1),
        lambda: paced.settle(paced.bid(0.1), wrong),
        lambda: paced.settle(paced.bid(0.1), 0.0, price=wrong),
        lambda: paced.correct(wrong, 0.1),
        *(lambda name=name: Router.for_models(**{"models": models, "per_request": 1.0, name: wrong})
          for name in ("models", "largest", "per_request")),
        *(lambda name=name: router.route(**{"prompt": x, name: wrong}) for name in ("prompt", "models", "costs")),
        lambda: router.route(x, key=wrong),
        lambda: router.settle(wrong, 1.0),
        lambda: router.settle(router.route(x), 1.0, wrong),
        lambda: router.settle(router.route(x), wrong, 1.0),
        lambda: router.teach(x, wrong),
        lambda: router.teach(x, {"a": 1.0}, wrong),
        lambda: router.set_prices(wrong),
        lambda: router.remove_model(wrong),
        *(lambda name=name: ledger.add_account(**{"name": "b", "limit": 3, name: wrong})
          for name in ("name", "limit", "parent", "period", "timezone", "rate", "reserve")),
        *(lambda name=name: ledger.hold(**{"account": "a", "amount": 1, "key": "k", name: wrong})
          for name in ("account", "amount", "key", "seconds", "group", "who")),
        *(lambda name=name: ledger.settle(**{"key": "k", "actual": 1, name: wrong}) for name in ("key", "actual")),
        *(lambda name=name: ledger.correct(**{"key": "k", "actual": 1, name: wrong}) for name in ("actual", "note")),
        *(lambda name=name: ledger.record(**{name: wrong}) for name in ("since", "most")),
        lambda: ledger.lease("a", wrong, 1.0),
        lambda: ledger.lease("a", 1, wrong),
        lambda: ledger.change(wrong, {"limit": 5}),
        lambda: ledger.change("a", {"limit": wrong}),
        lambda: ledger.change("a", {"period": wrong}),
        lambda: ledger.balance(wrong),
        lambda: Ledger.existing(folder / "ledger.db", wrong),
        lambda: Ledger.open(wrong) if not isinstance(wrong, str) or "x" not in wrong else None,
        lambda: SharedAccount("a", units=wrong),
    )  # fmt: skip
    for opened in (learned, made, ledger):
        opened.close()


@pytest.mark.filterwarnings("ignore::longterm.errors.BrokenBoundWarning")
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_no_argument_leads_to_an_error_of_python_or_numpy(tmp_path, wrong):
    for call in calls_with(wrong, tmp_path):
        try:
            call()
        except LongtermError:  # what some calls accept, others name
            continue


def test_a_cost_of_a_route_that_is_no_number_settles_nothing():
    router = Router.for_models({"a": 1.0, "b": 2.0}, per_request=1.0, features=2)
    route = router.route([1.0, 2.0])
    with pytest.raises(InputError, match="cost"):
        router.settle(route, 1.0, [[1.0]])
    router.settle(route, 1.0, 1.0)
    assert router.chooser.spent == 1.0


def test_an_argument_of_a_router_that_does_not_exist_is_named():
    with pytest.raises(InputError, match=r"feature: is not known.*features"):
        Router.for_models({"a": 1.0, "b": 2.0}, per_request=1.0, feature=3)
