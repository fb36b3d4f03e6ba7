"""Limits that change while a chooser is used: in memory, in a database with several copies, and after a restart."""

import linecache
import math
import sys
import threading
from contextlib import closing

import numpy as np
import pytest

from longterm import InputError
from longterm.errors import DatabaseError
from longterm.money import (
    EXP3IX,
    Budget,
    Ceiling,
    Chooser,
    DualMirrorDescent,
    EntropicDual,
    EuclideanDual,
    HedgeDual,
    LivePacer,
    PlannedPrice,
    PrimalDual,
    Router,
    ThompsonSampling,
)
from longterm.money.limit_changes import change_limits, limits_of
from longterm.storage.database import Database
from longterm.storage.engine import ConflictError
from longterm.storage.packing import state_arrays

COSTS = [0.0, 0.4, 1.0]
PRICES = {"small": 1e-4, "large": 1e-2}


def rule(primal=None, dual=None, budgets=None, horizon=100):
    budgets = Budget(10.0, largest=1.0) if budgets is None else budgets
    return PrimalDual(primal or ThompsonSampling(3, 1), dual or EuclideanDual(), budgets, horizon)


def step(chooser, number=1):
    for _ in range(number):
        choice = chooser.act([1.0], costs=COSTS)
        if choice.action is not None:
            chooser.settle(str(choice), choice.action / 2, COSTS[choice.action])


def image(chooser):
    return {name: np.asarray(one).tolist() for name, one in state_arrays(chooser.state).items()}


RULES = {
    "thompson, euclidean": rule(),
    "thompson, planned": rule(ThompsonSampling(3, 1, window=32, learn_costs=True), PlannedPrice()),
    "exp3, hedge": rule(EXP3IX(3), HedgeDual()),
    "exp3, entropic": rule(EXP3IX(3), EntropicDual(0.5)),
}


@pytest.mark.parametrize("name", RULES)
def test_every_copy_and_every_restart_has_the_same_state_afterwards(tmp_path, name):
    file, made = tmp_path / "a.db", RULES[name]
    with Chooser.open(file, made, seed=3) as one, Chooser.open(file, made) as other:
        twin = Chooser(made, seed=3)
        for number, changes in enumerate(({}, {"limit": 30.0}, {"limit": 12.0, "horizon": 300}, {"limit": 14.0})):
            for chooser in (one, twin):
                if changes:
                    change_limits(chooser, changes)
            for chooser in (one, other) * 5:
                step(chooser)
            step(twin, 10)
            with Chooser.open(file, made, follow=True) as restarted:
                assert image(one) == image(other) == image(twin) == image(restarted), number
                assert limits_of(one) == limits_of(other) == limits_of(twin) == limits_of(restarted)
            assert one.state.dual is not None
        assert one.rule.setting == one.rule.with_limits({}).setting
    for earlier in (made, made.with_limits({"money": {"limit": 12.0}})):  # what was set in the database stays
        with Chooser.open(file, earlier) as restarted:
            assert image(restarted) == image(twin)
    with pytest.raises(DatabaseError, match=r"rule.horizon was 300, is 100; .*limit was 14.0, is 11.0.*follow=True"):
        Chooser.open(file, made.with_limits({"money": {"limit": 11.0}}))
    with pytest.raises(DatabaseError, match=r"was created with other arguments: .*that it was created with"):
        Chooser.open(file, rule(ThompsonSampling(3, 1, noise=0.1)), follow=True)  # only limits are followed


def test_money_that_was_spent_counts_and_a_lower_limit_refuses_at_once(tmp_path):
    with Chooser.open(tmp_path / "a.db", rule()) as one, Chooser.open(tmp_path / "a.db", rule()) as other:
        greedy = {"costs": [9.0, 9.0, 9.0], "allowed": [True, False, False]}
        first = one.act([1.0], **greedy)
        assert other.act([1.0], **greedy).action is None
        one.change({"money": {"limit": 18.0}})
        assert other.act([1.0], **greedy).action == 0
        assert one.act([1.0], **greedy).action is None
        other.change({"money": {"limit": 5.0}})  # below what is held
        assert one.act([1.0], costs=[1.0, 1.0, 1.0]).action is None
        assert one.act([1.0], costs=COSTS).action == 0  # what costs nothing is always affordable
        one.settle(str(first), 1.0, 9.0)
        assert other.metrics()["overshoot"] == {"money": 4.0}


@pytest.mark.parametrize(("before", "after"), [(1.0, 4.0), (4.0, 1.0), (1e-9, 1e3), (1.0, 1.0)])
def test_a_ceiling_counts_for_the_requests_that_come(before, after):
    """Whatever comes, the money is at most credit + before · (requests before) + after · (requests since)."""
    draw = np.random.default_rng(0)
    chooser = Chooser(
        PrimalDual(ThompsonSampling(2, 1, window=32), PlannedPrice(), Ceiling(before, 1e6, credit=0.5 * before))
    )
    allowed = 0.5 * before
    for number in range(300):
        if number == 100:
            chooser.change({"money": {"per_request": after}})
        allowed += before if number < 100 else after
        cost = float(draw.choice([0.1, 1.0, 30.0])) * (before if number < 100 else after)
        choice = chooser.act([1.0], costs=[cost, cost])
        if choice.action is not None:
            chooser.settle(choice, 1.0, cost)
        assert chooser.committed[0] <= allowed * (1 + 1e-15)
        assert chooser.metrics()["limit"]["money"] == pytest.approx(allowed, rel=1e-9)
    assert chooser.committed[0] > 0.5 * allowed
    chooser.change({"money": {"credit": allowed}})
    assert chooser.metrics()["limit"]["money"] == pytest.approx(2 * allowed - 0.5 * before, rel=1e-9)


def test_several_budgets_keep_their_units(tmp_path):
    budgets = [Budget(20.0, largest=1.0, name="money"), Budget(60.0, largest=4.0, name="energy")]
    made = rule(EXP3IX(2), EntropicDual(0.5), budgets)
    with Chooser.open(tmp_path / "a.db", made) as one, Chooser.open(tmp_path / "a.db", made) as other:
        costs = np.array([[0.1, 0.1], [1.0, 3.0]])
        for _ in range(20):
            choice = one.act(costs=costs)
            one.settle(choice, 1.0, costs[choice.action])
        prices, unit = one.prices, one.rule.budget_set.unit
        other.change({"energy": {"limit": 200.0}, "money": {"limit": 25.0}}, horizon=150)
        assert one.metrics()["limit"] == {"money": 25.0, "energy": 200.0}
        assert one.rule.budget_set.unit.tolist() == unit.tolist()
        np.testing.assert_allclose(one.prices, prices)
        rates = one.rule.budget_set.rates * unit
        np.testing.assert_allclose(rates, [25 / 150, 200 / 150])  # each budget is planned evenly
        with pytest.raises(InputError, match="name of one budget"):
            one.change({"cash": {"limit": 3.0}})
        with pytest.raises(InputError, match=r"Choose from \['money.limit', 'energy.limit', 'horizon'\]"):
            change_limits(one, {"limit": 3.0})
        change_limits(one, {"energy.limit": 100.0})
        assert other.metrics()["limit"]["energy"] == 100.0


@pytest.mark.parametrize(
    ("budgets", "others"),
    [
        ({"money": {"limit": -1.0}}, {}),
        ({"money": {"limit": float("nan")}}, {}),
        ({"money": {"limit": "much"}}, {}),
        ({"money": {"largest": 2.0}}, {}),
        ({"money": {"per_request": 2.0}}, {}),
        ({"money": {"limit": 1000.0}}, {}),  # more than 100 requests can cost
        ({"money": {"limit": 20.0}}, {"horizon": 0}),
        ({"money": {"limit": 20.0}}, {"least_reward": 0.5}),
    ],
)
def test_a_change_that_cannot_be_made_changes_nothing(tmp_path, budgets, others):
    with Chooser.open(tmp_path / "a.db", rule()) as stored:
        for chooser in (stored, Chooser(rule())):
            step(chooser, 5)
            before = image(chooser), limits_of(chooser)
            with pytest.raises(InputError):
                chooser.change(budgets, **others)
            assert (image(chooser), limits_of(chooser)) == before
            step(chooser, 5)


def test_a_write_that_fails_changes_nothing(tmp_path, monkeypatch):
    with Chooser.open(tmp_path / "a.db", rule()) as chooser:
        step(chooser, 5)
        before = image(chooser), limits_of(chooser)
        with monkeypatch.context() as patch:

            def fail(self, _):
                raise DatabaseError(self.path, "full", "no space", "Free some")

            patch.setattr(Database, "write_locked", fail)
            with pytest.raises(DatabaseError):
                chooser.change({"money": {"limit": 20.0}})
        assert (image(chooser), limits_of(chooser)) == before
        with Chooser.open(tmp_path / "a.db", rule()) as again:  # the file has the old limit, too
            assert image(again) == before[0]


def test_a_change_that_another_call_crosses_is_made_again(tmp_path, monkeypatch):
    """On PostgreSQL another process may open a round, without the lock, after this one has counted them."""
    with Chooser.open(tmp_path / "a.db", rule()) as chooser:
        step(chooser, 5)
        write, crossed = Database.write_locked, []

        def cross(self, statements):
            write(self, statements)
            if not crossed:
                crossed.append(statements)
                raise ConflictError

        monkeypatch.setattr(Database, "write_locked", cross)
        chooser.change({"money": {"limit": 20.0}})
        assert crossed
        with Chooser.open(tmp_path / "a.db", rule(), follow=True) as again:
            assert limits_of(again) == limits_of(chooser)
            assert image(again) == image(chooser)
            assert again.metrics()["limit"] == {"money": 20.0}


def test_threads_that_act_meanwhile_keep_every_limit(tmp_path):
    """Once a change has returned, no act takes the money above the new limit."""
    file, made = tmp_path / "a.db", rule(budgets=Budget(40.0, largest=1.0), horizon=1000)
    limits, broken, end = [40.0], [], threading.Event()

    def act():
        with Chooser.open(file, made, durability="relaxed", follow=True) as mine:
            while not end.is_set():
                most = limits[0]  # limits only rise here
                mine.act([1.0], costs=[1.0, 1.0, 1.0])
                if mine.committed[0] > max(most, limits[0]):
                    broken.append((most, mine.committed[0]))

    with Chooser.open(file, made, durability="relaxed") as chooser:
        threads = [threading.Thread(target=act) for _ in range(3)]
        for thread in threads:
            thread.start()
        for limit in (45.0, 50.0, 60.0):
            limits[0] = limit  # before the change: the larger one may be used as soon as it is made
            chooser.change({"money": {"limit": limit}})
            while chooser.committed[0] < limit:
                pass
        end.set()
        for thread in threads:
            thread.join()
        assert not broken
        assert chooser.committed[0] == 60.0


def test_a_router_keeps_what_it_learned(tmp_path):
    file = tmp_path / "a.db"

    def opened(per_request, **options):
        return closing(Router.for_models(PRICES, per_request=per_request, url=file, **options))

    with opened(1e-3) as router, opened(1e-3) as other:
        for _ in range(60):
            route = router.route("hello")
            other.settle(str(route), float(route.model == "large"), PRICES[route.model])
        belief = router.chooser.state.primal.belief
        allowed = 60 * 1e-3
        other.change(per_request=5e-3)
        assert router.metrics()["limit"]["money"] == pytest.approx(allowed)
        np.testing.assert_array_equal(router.chooser.state.primal.belief.mean, belief.mean)
        router.route("hello")
        assert other.metrics()["limit"]["money"] == pytest.approx(allowed + 5e-3)
        with pytest.raises(InputError, match="without a ceiling"):
            router.change(least_quality=0.5)
    with pytest.raises(DatabaseError, match=r"since: rule.budgets\[0\].per_request was 0.005, is 0.002. Open"):
        Router.for_models(PRICES, per_request=2e-3, url=file)
    for per_request, follow in ((5e-3, False), (1e-3, False), (2e-3, True)):
        with opened(per_request, follow=follow) as router:
            assert router.chooser.rule.budgets[0].per_request == 5e-3


def test_a_router_changes_its_least_quality():
    router = Router.for_models(PRICES, least_quality=0.5)
    router.change(least_quality=0.9)
    assert router.chooser.rule.dual.least_reward == 0.9
    with pytest.raises(InputError, match="with a ceiling"):
        router.change(per_request=1.0)
    with pytest.raises(InputError):
        router.change(least_quality=1.5)


def test_a_bank_that_is_too_small_is_refused_and_does_not_prevent_a_start(tmp_path):
    options = {"per_request": 1e-3, "url": tmp_path / "a.db"}
    with closing(Router.for_models(PRICES, **options)) as router:
        for changes in ({"bank": 1.0}, {"bank": 1e5, "per_request": 1e-9}):
            with pytest.raises(InputError, match=r"^bank: .*it could never answer"):
                router.change(**changes)
        assert router.chooser.rule.limits["money.bank"] is None
        router.chooser.change({"money": {"bank": 1.0}})  # as a command does, which knows no prices
    with closing(Router.for_models(PRICES, **options, follow=True)) as router:
        assert router.chooser.rule.limits["money.bank"] == 1.0
        router.change(bank=math.inf)
    with pytest.raises(InputError, match=r"^largest: .*it could never answer"):
        Router.for_models(PRICES, **options, bank=1.0)


def test_a_bank_is_compared_with_the_ceiling_that_another_replica_has_changed(tmp_path):
    options = {"per_request": 1e-3, "url": tmp_path / "a.db"}
    with closing(Router.for_models(PRICES, **options)) as one, closing(Router.for_models(PRICES, **options)) as other:
        other.change(per_request=1.0)
        one.change(bank=5.0)
        other.change(bank=math.inf)
        other.change(per_request=1e-3)
        with pytest.raises(InputError, match=r"^bank: .*it could never answer"):
            one.change(bank=5.0)


@pytest.mark.parametrize("credit", [1e18, 1e50])
def test_a_ceiling_with_a_bank_recovers_from_a_credit_that_is_much_too_large(credit):
    chooser = Chooser(rule(dual=EuclideanDual(step=0.1), budgets=Ceiling(1.0, 1.0, bank=3.0), horizon=None))
    chooser.change({"money": {"credit": credit}})
    step(chooser)
    chooser.change({"money": {"credit": 2.0}})
    step(chooser, 100)
    assert chooser.metrics()["refused"] == 0
    assert 0.0 < chooser.metrics()["limit"]["money"] - chooser.spent[0] <= 1.0 * 3.0 + 2.0
    assert chooser.act([1.0], costs=[1.0, 1.0, 1.0]).action is not None


def test_a_bank_may_be_too_small_for_a_removed_model():
    router = Router.for_models({"small": 1e-4, "large": 1e-2}, per_request=1e-3, largest={"large": 0.1})
    router.remove_model("large")
    router.change(bank=50.0)
    assert router.chooser.rule.limits["money.bank"] == 50.0


class StopError(Exception):
    """What a signal handler raises."""


@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("stored", [True, False], ids=["database", "memory"])
def test_a_change_that_is_interrupted_has_happened_or_not(tmp_path, stored):
    """Raise at one line after the other. The ceiling of the past stays whatever happens."""
    made = PrimalDual(ThompsonSampling(3, 1), EntropicDual(0.5, step=0.1), Ceiling(0.5, 1.0))
    left, folders = [0], ("longterm/storage/", "longterm/money/choosing/choose")

    def trace(frame, event, argument):
        file = frame.f_code.co_filename
        if not any(folder in file for folder in folders) or file.endswith("specification.py"):
            return None
        if event == "line" and not linecache.getline(file, frame.f_lineno).lstrip().startswith(("with ", "try:")):
            left[0] -= 1
            if left[0] == 0:
                raise StopError
        return trace

    chooser = Chooser.open(tmp_path / "a.db", made, durability="relaxed") if stored else Chooser(made)
    step(chooser, 10)
    allowed, rate, line, stopped = 5.0, 0.5, 0, {True: 0, False: 0}
    while left[0] <= 0:
        line += 1
        wanted, left[0] = 1.5 - rate, line
        sys.settrace(trace)
        try:
            chooser.change({"money": {"per_request": wanted}})
        except StopError:
            pass
        finally:
            sys.settrace(None)
        assert chooser.metrics()["limit"]["money"] == pytest.approx(allowed)
        now = chooser.rule.budgets[0].per_request
        assert now in (rate, wanted)
        stopped[now == wanted] += left[0] <= 0
        rate, allowed = now, allowed + now
        step(chooser)
        assert chooser.metrics()["limit"]["money"] == pytest.approx(allowed)
    chooser.close()
    assert stopped[False] > 20  # interrupts after the write depend on the Python version: some have no line there


@pytest.mark.parametrize("given", [("p", 1), 3, b"UTC", 10**400, [], None, np.array([1.0, 2.0]), {"a": 1}, "\ud800"])
def test_what_is_no_limit_changes_nothing(tmp_path, given):
    """A time zone that was no text, or a horizon that no float can have, made the stored object unusable."""
    pacer = DualMirrorDescent(budget=1000.0, horizon=100, step=0.1, start=0.5)
    with LivePacer.open(tmp_path / "s.db", pacer, durability="relaxed") as live:
        for name in ("budget", "horizon", "period", "timezone"):
            if given is not None and not (type(given) is int and given == 3 and name in ("budget", "horizon")):
                with pytest.raises(InputError):
                    live.change(**{name: given})
        live.settle(live.bid(1.0), 0.5)
    with Chooser.open(tmp_path / "s.db", rule(), durability="relaxed") as chooser:
        with pytest.raises(InputError):
            chooser.change(given)
        chooser.settle(chooser.act([1.0], costs=COSTS), 0.5, 0.0)
    router = Router.for_models({"s": 1e-4, "l": 1e-2}, per_request=2e-3, features=1)
    for arguments in ((given, 1e-3), ("new", 1e308), ("new", "1")):
        with pytest.raises(InputError):
            router.add_model(*arguments)
    with pytest.raises(InputError):
        router.set_prices({"l": 1e300})
    router.settle(router.route([1.0]), 0.5, 1e-4)
