"""Choosers and pacers whose money comes from a ledger, and calibrated holds of choosers."""

import multiprocessing
import random

import pytest

from longterm import Ledger
from longterm.errors import DatabaseError, InputError
from longterm.money import (
    EXP3IX,
    Budget,
    Chooser,
    DualMirrorDescent,
    EntropicDual,
    ExcessHold,
    HedgeDual,
    LeasedAccount,
    LivePacer,
    PrimalDual,
    SharedAccount,
    ThompsonSampling,
)
from longterm.money.ledger.accounts import Balance
from longterm.storage.database import Database


def rule(limit=1000.0):
    return PrimalDual(ThompsonSampling(2, 1), EntropicDual(0.2), Budget(limit, 1.0), 2000)


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "s.db", unit="cent", durability="relaxed") as made:
        made.add_account("all", 1000)
        made.add_account("team", 400, parent="all")
        yield made


def start(tmp_path, name="chooser", account="team", **options):
    spending = SharedAccount(account, units=100)
    return Chooser.open(tmp_path / "s.db", rule(), name=name, account=spending, durability="relaxed", **options)


def test_an_act_holds_and_a_settle_pays_in_the_account(ledger, tmp_path):
    with start(tmp_path) as chooser:
        first = chooser.act([1.0], costs=[0.3, 0.3], bounds=[0.5, 0.5])
        assert ledger.balance("team") == Balance(400, 0, 50)
        second = chooser.act([1.0], costs=[0.3, 0.3], key="k")
        assert chooser.act([1.0], costs=[0.3, 0.3], key="k").number == second.number
        assert ledger.balance("all") == Balance(1000, 0, 80)
        chooser.settle(first, cost=0.123)  # the reward comes later
        assert ledger.balance("team") == Balance(400, 13, 30)  # rounded up
        chooser.settle(first, reward=1.0)
        chooser.skip(second)  # counts with its bound
        assert ledger.balance("all") == Balance(1000, 43, 0)


def test_what_the_account_cannot_pay_is_not_affordable(ledger, tmp_path):
    with start(tmp_path, "one") as one, start(tmp_path, "two") as two:
        taken = 0.0
        for t in range(60):
            choice = (one, two)[t % 2].act([1.0], costs=[0.2, 0.9])
            taken += 0.0 if choice.action is None else (0.2, 0.9)[choice.action]
        assert 3.8 < taken <= 4.0 + 1e-9
        assert ledger.balance("team").held <= 400
        assert one.act([1.0], costs=[0.0, 0.9]).action == 0  # a free action needs no money
        assert one.act([1.0], costs=[0.9, 0.9], allowed=[False, True]).action is None


def test_expired_choices_count_in_the_account(ledger, tmp_path):
    with start(tmp_path, expire_after=2) as chooser:
        for _ in range(4):
            chooser.act([1.0], costs=[0.1, 0.1])
        balance = ledger.balance("team")
        assert (balance.spent, balance.held) == (10, 30)


def test_a_call_that_fails_changes_neither_chooser_nor_account(ledger, tmp_path, monkeypatch):
    with start(tmp_path) as chooser:
        choice = chooser.act([1.0], costs=[0.1, 0.1])
        write = Database.write_locked

        def fail(self, statements, rows=None):
            if any("longterm_rounds" in sql or "state = ?" in sql for sql, _ in statements):
                raise DatabaseError(self.path, "full", "no space", "Free some")
            write(self, statements)

        monkeypatch.setattr(Database, "write_locked", fail)
        for call in (lambda: chooser.act([1.0], costs=[0.1, 0.1]), lambda: chooser.settle(choice, 1.0, 0.05)):
            with pytest.raises(DatabaseError):
                call()
        monkeypatch.undo()
        assert ledger.balance("team") == Balance(400, 0, 10)
        assert list(chooser.pending) == [choice.number]
        with pytest.raises(InputError):
            chooser.act([1.0], costs=[-0.1, 0.1])
        chooser.settle(choice, 1.0, 0.05)
        assert ledger.balance("team") == Balance(400, 5, 0)


def test_arguments(ledger, tmp_path):
    with pytest.raises(DatabaseError, match=r"Ledger\.open"):
        Chooser.open(tmp_path / "other.db", rule(), account=SharedAccount("team", units=100))
    with pytest.raises(InputError, match="account"):
        start(tmp_path, account="nobody")
    with pytest.raises(InputError, match="open"):
        Chooser(rule(), account=SharedAccount("team", units=100)).act([1.0], costs=[0.1, 0.1])
    two = PrimalDual(EXP3IX(2), HedgeDual(), [Budget(10.0, 1.0), Budget(20.0, 1.0)], 100)
    for options in ({"holds": ExcessHold()}, {"account": SharedAccount("team", units=100)}):
        with pytest.raises(InputError, match="one cap"):
            Chooser(two, **options)
    with pytest.raises(InputError, match="holds"):
        Chooser(rule(), holds="small")
    with pytest.raises(InputError, match="units"):
        SharedAccount("team", units=0)


def test_a_pacer_bids_what_the_account_has_left(ledger, tmp_path):
    pacer = DualMirrorDescent(budget=10.0, horizon=4, step=0.1, start=0.5, mirror="euclidean")
    with LivePacer.open(tmp_path / "s.db", pacer, account=SharedAccount("team", units=100)) as live:
        first, second = live.bid(1.5), live.bid(4.0)
        assert (first.amount, second.amount) == (3.0, 1.0)
        assert ledger.balance("team") == Balance(400, 0, 400)
        live.settle(first, paid=1.25)
        with pytest.raises(InputError):
            live.settle(second, paid=-1.0)
        assert ledger.balance("team") == Balance(400, 125, 100)
        live.skip(second)
        assert ledger.balance("team") == Balance(400, 125, 0)


# --- calibrated holds -----------------------------------------------------------------------------------------


def test_calibrated_holds_of_a_chooser_by_hand():
    """As for a ledger: after costs .4 and .2 the hold is .35; the group's own hold begins with the worst case."""
    chooser = Chooser(rule(), holds=ExcessHold(0.1, 0.5, warm_up=2))
    for cost in (0.4, 0.2):
        choice = chooser.act([1.0], costs=[0.5, 0.5], bounds=[1.0, 1.0], allowed=[True, False])
        assert chooser.committed[0] - chooser.spent[0] == pytest.approx(1.0)
        chooser.settle(choice, 0.5, cost)
    chooser.act([1.0], costs=[0.5, 0.5], bounds=[1.0, 1.0], allowed=[True, False])
    assert chooser.committed[0] - chooser.spent[0] == pytest.approx(0.35)
    chooser.act([1.0], costs=[0.5, 0.5], bounds=[1.0, 1.0], allowed=[True, False], group="north")
    assert chooser.committed[0] - chooser.spent[0] == pytest.approx(1.35)


def test_holds_are_stored_with_the_chooser(tmp_path):
    holds, dice = ExcessHold(0.1, 0.3, warm_up=5), random.Random(1)
    mirror = Chooser(rule(), holds=holds)
    replicas = [Chooser.open(tmp_path / "s.db", rule(), holds=holds, durability="relaxed") for _ in range(2)]
    for t in range(60):
        cost, group = 0.5 * dice.random(), dice.choice(["", "north"])
        for chooser in (mirror, replicas[t % 2]):
            choice = chooser.act([1.0], costs=[0.5, 0.5], bounds=[1.0, 1.0], group=group)
            if t % 3:
                chooser.settle(choice, 0.5, cost)
    assert float(mirror.committed[0]) == float(replicas[0].committed[0]) == float(replicas[1].committed[0])
    with Chooser.open(tmp_path / "s.db", rule(), holds=holds) as again:
        assert again._replica.copy.state.holds == mirror._replica.copy.state.holds
    says = r"holds was ExcessHold\(share=0\.1, step=0\.3, warm_up=5\), is 'worst'"
    with pytest.raises(DatabaseError, match=says):
        Chooser.open(tmp_path / "s.db", rule())
    for replica in replicas:
        replica.close()


@pytest.mark.parametrize("seed", range(5))
def test_the_overshoot_of_calibrated_holds(seed):
    """Spend ≤ limit + Σ (cost − hold)₊ over the choices open at the last act."""
    dice, limit = random.Random(seed), 20.0
    chooser = Chooser(rule(limit), holds=ExcessHold(0.2, 0.3, warm_up=3), seed=seed)
    costs, excess = {}, 0.0
    for _ in range(300):
        if costs and (len(costs) > 7 or dice.random() < 0.4):
            number = dice.choice(list(costs))
            chooser.settle(chooser.pending[number], 0.5, costs.pop(number)[0])
            continue
        before = float(chooser.committed[0])
        choice = chooser.act([1.0], costs=[0.2, 0.3], bounds=[1.0, 1.0])
        if choice.action is not None:
            costs[choice.number] = dice.choice([1.0, 0.1, 0.2]), float(chooser.committed[0]) - before
            excess = sum(max(cost - held, 0.0) for cost, held in costs.values())
            assert float(chooser.committed[0]) <= limit
    for number, (cost, _) in costs.items():
        chooser.settle(chooser.pending[number], 0.5, cost)
    assert limit - 1.0 < float(chooser.spent[0]) <= limit + excess + 1e-9


# --- leases ---------------------------------------------------------------------------------------------------


def test_a_leased_chooser_spends_from_memory(ledger):
    account = LeasedAccount(ledger, "team", slice=100, units=100)
    chooser = Chooser(rule(), account=account)
    first = chooser.act([1.0], costs=[0.3, 0.3])
    assert ledger.balance("team") == Balance(400, 0, 100)
    chooser.settle(first, 0.5, 0.2)
    for _ in range(3):  # 90 of the 80 that are left: another slice
        chooser.settle(chooser.act([1.0], costs=[0.3, 0.3]), 0.5, 0.3)
    account.close()
    assert ledger.balance("team") == Balance(400, 110, 0)


def test_leased_objects_share_one_limit(ledger):
    accounts = [LeasedAccount(ledger, "team", slice=150, units=100) for _ in range(2)]
    pacer = DualMirrorDescent(budget=3.0, horizon=10, step=0.1, start=0.5, mirror="euclidean")
    chooser, live = Chooser(rule(), account=accounts[0]), LivePacer(pacer, account=accounts[1])
    spent = 0.0
    for _ in range(12):
        bid = live.bid(0.1)
        live.settle(bid, paid=bid.amount)
        choice = chooser.act([1.0], costs=[0.4, 0.4])
        if choice.action is not None:
            chooser.settle(choice, 0.5)
        spent += bid.amount + (0.4 if choice.action is not None else 0.0)
        balance = ledger.balance("all")
        assert balance.spent + balance.held <= 400
    for account in accounts:
        account.close()
    balance = ledger.balance("team")
    assert balance.held == 0
    assert abs(balance.spent - 100 * spent) < 13  # every payment is rounded to a cent
    assert spent > 3.5


def spend(path, answers):
    with Ledger.open(path, unit="cent", durability="relaxed") as ledger:
        account = LeasedAccount(ledger, "team", slice=40, units=100)
        chooser, count = Chooser(rule(), account=account), 0
        for _ in range(300):
            choice = chooser.act([1.0], costs=[0.03, 0.03])
            if choice.action is not None:
                chooser.settle(choice, 0.5)
                count += 1
        account.close()
    answers.put(count)


@pytest.mark.slow
def test_processes_with_leases_spend_one_budget(ledger, tmp_path):
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    workers = [context.Process(target=spend, args=(tmp_path / "s.db", answers)) for _ in range(3)]
    for worker in workers:
        worker.start()
    counts = [answers.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    assert ledger.balance("team") == Balance(400, 3 * sum(counts), 0)
    assert 120 <= sum(counts) <= 133  # slices are rounded, and none is left over for long
