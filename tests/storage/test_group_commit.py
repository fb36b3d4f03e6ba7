"""Calls that share a transaction have the effects and answers that they have one after the other."""

import random
import signal
import threading
from functools import partial

import numpy as np
import pytest

from chooser_plan import image as chooser_image
from chooser_plan import rule
from longterm import Ledger, LiveLearner
from longterm.errors import DatabaseError, InUseError, OutOfBudgetError, TokenError
from longterm.learners import AOGD
from longterm.money import Budget, Chooser, EntropicDual, ExcessHold, PrimalDual, ThompsonSampling
from longterm.problems import two_dimensional
from longterm.storage.database import Collected, Database
from longterm.storage.group_commit import LARGEST_GROUP
from longterm.storage.schema import INSERT_KEY, INSERT_ROUND, UPDATE_ACCOUNT, UPDATE_OBJECT
from timer_signals import Alarm

COSTS = [0.1, 0.2, 0.3]


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "service.db", durability="relaxed", holds=ExcessHold(share=0.1)) as made:
        made.add_account("all", 1000)
        made.add_account("team", 600, parent="all")
        yield made


@pytest.fixture
def written(monkeypatch):
    """The statements of each write, as they are executed."""
    found = []
    write = Database.write_if_current

    def note(self, statements):
        found.append([text for text, _ in statements])
        return write(self, statements)

    monkeypatch.setattr(Database, "write_if_current", note)
    return found


def chooser(tmp_path, name="chooser", **options):
    return Chooser.open(tmp_path / "service.db", rule(), name=name, durability="relaxed", **options)


def acts(made, count, **options):
    return [partial(made.act, [1.0, 0.1 * place], costs=COSTS, **options) for place in range(count)]


def kinds(answers):
    return [type(one).__name__ if isinstance(one, Exception) else one for one in answers]


def test_holds_share_one_transaction(ledger, written):
    keys = [f"key {place}" for place in range(10)]
    assert ledger.commit_group([partial(ledger.hold, "team", 50, key) for key in keys], keys) == [50] * 10
    assert len(written) == 1
    assert written[0].count(UPDATE_ACCOUNT) == 2  # the last state of each account
    assert ledger.balance("all").held == ledger.balance("team").held == 500
    assert ledger.commit_group([partial(ledger.settle, key, 20) for key in keys], keys) == [None] * 10
    assert ledger.balance("all") == (1000, 200, 0)


def test_acts_share_one_transaction_and_equal_single_ones(tmp_path, written):
    grouped, single = chooser(tmp_path), chooser(tmp_path, "single")
    written.clear()
    choices = grouped.commit_group(acts(grouped, 8))
    assert len(written) == 1
    assert written[0].count(UPDATE_OBJECT) == 1
    assert written[0].count(INSERT_ROUND) == 8
    alone = [act() for act in acts(single, 8)]
    assert [(one.number, one.action) for one in choices] == [(one.number, one.action) for one in alone]
    grouped.commit_group([partial(grouped.settle, str(one), 0.5, 0.1) for one in choices])
    for one in alone:
        single.settle(str(one), 0.5, 0.1)
    assert chooser_image(grouped) == chooser_image(single)
    with chooser(tmp_path) as again:
        assert chooser_image(again) == chooser_image(grouped)
    grouped.close(), single.close()


def test_more_calls_than_a_transaction_takes(ledger, written):
    keys = [f"key {place}" for place in range(2 * LARGEST_GROUP + 3)]
    held = ledger.commit_group([partial(ledger.hold, "team", 1, key) for key in keys], keys)
    assert held == [1] * len(keys)
    assert len(written) == 3


def test_one_key_in_one_group_counts_once(ledger, tmp_path, written):
    calls = [partial(ledger.hold, "team", 50, "same")] * 3 + [partial(ledger.hold, "team", 60, "same")]
    assert kinds(ledger.commit_group(calls, ["same"] * 4)) == [50, 50, 50, "InputError"]
    assert ledger.balance("team").held == 50
    with chooser(tmp_path) as made:
        written.clear()
        choices = made.commit_group(acts(made, 4, key="same"), ["same"] * 4)
        assert [one.number for one in choices] == [1] * 4
        assert [INSERT_KEY in statements for statements in written].count(True) == 1
        assert made.act([1.0, 0.0], costs=COSTS, key="same").number == 1


def test_a_hold_and_its_settlement_in_one_group(ledger):
    calls = [partial(ledger.hold, "team", 50, "a"), partial(ledger.settle, "a", 20), partial(ledger.release, "a")]
    assert kinds(ledger.commit_group(calls, ["a"] * 3)) == [50, None, "ClosedHoldError"]
    assert ledger.balance("all") == (1000, 20, 0)


def test_the_limit_holds_within_a_group(ledger):
    calls = [partial(ledger.hold, "team", amount, f"key {amount}") for amount in (500, 200, 100, 1)]
    assert kinds(ledger.commit_group(calls)) == [500, "OutOfBudgetError", 100, "OutOfBudgetError"]
    assert ledger.balance("team") == (600, 0, 600)


def test_a_call_that_fails_leaves_nothing_behind(ledger):
    """The state of a group's hold is written before the account turns out to overflow."""
    most, database = 2**61 - 1, ledger._replica.database
    for key in "abc":
        ledger.hold("team", 10, key, group="model")
    for key in "ab":
        ledger.settle(key, most, force=True)
    before = database.read("SELECT * FROM longterm_groups"), ledger.balance("all")
    calls = [partial(ledger.hold, "all", 0, "free"), partial(ledger.settle, "c", most, force=True), lambda: 1 / 0]
    assert kinds(ledger.commit_group(calls, ["free", "c", None])) == [0, "InputError", "ZeroDivisionError"]
    assert (database.read("SELECT * FROM longterm_groups"), ledger.balance("all")) == before
    assert [one.key for one in ledger.open_holds()] == ["c", "free"]
    ledger.settle("c", 1)


def test_errors_of_several_kinds_reach_their_callers(tmp_path):
    with chooser(tmp_path) as made:
        first = made.act([1.0, 0.5], costs=COSTS)
        settle = partial(made.settle, str(first), 0.5, 0.1)
        calls = [settle, settle, partial(made.settle, "nonsense", 0.5), partial(made.act, [1.0]), *acts(made, 1)]
        found = made.commit_group(calls)
        assert kinds(found[:4]) == [None, "AlreadyToldError", "UnknownTokenError", "InputError"]
        assert found[4].number == 2


def test_keys_that_nobody_can_use_harm_no_other_call(ledger, tmp_path):
    keys = ["good", "a\0b", "\udcff", "x" * 201, "", None, 7]
    calls = [partial(ledger.hold, "team", 1, key) for key in keys]
    assert kinds(ledger.commit_group(calls, keys)) == [1] + ["InputError"] * 6
    with chooser(tmp_path) as made:
        found = made.commit_group([partial(made.act, [1.0, 0.0], costs=COSTS, key=key) for key in keys], keys)
        assert [kinds([one])[0] for one in found[1:5]] == ["InputError"] * 4
        assert [found[0].number, found[5].number] == [1, 2]


def test_without_keys_and_without_calls(ledger):
    assert ledger.commit_group([]) == []
    assert ledger.commit_group([partial(ledger.balance, "team")] * 3) == [(600, 0, 0)] * 3


def test_an_object_in_memory_makes_them_one_by_one():
    live = LiveLearner(AOGD.for_problem(two_dimensional(), beta=0.5), two_dimensional())
    first, second, wrong = live.commit_group([live.ask, live.ask, partial(live.skip, "nonsense")])
    assert (first.number, second.number) == (1, 2)
    assert isinstance(wrong, TokenError)
    assert len(live.in_flight) == 2


def test_calls_that_need_the_whole_object_are_made_too(tmp_path):
    """A change of limits, and a correction with a key, cannot share a transaction with what comes before them."""
    with chooser(tmp_path) as made:
        first = made.act([1.0, 0.5], costs=COSTS)
        limit = {made.rule.budgets[0].name: {"limit": 7.0}}
        calls = [
            partial(made.settle, str(first), 0.5, 0.1),
            partial(made.correct, str(first), 0.2, correction="c"),
            partial(made.change, limit),
            partial(made.correct, str(first), 0.2, correction="c"),
            *acts(made, 2),
        ]
        assert kinds(made.commit_group(calls)[:4]) == [None] * 4
        figures = made.metrics()
        assert (figures["limit"], figures["open"]) == ({"money": 7.0}, 2)
        assert figures["spent"]["money"] == pytest.approx(0.2)


def test_a_group_that_another_process_crosses_is_made_again(tmp_path):
    with chooser(tmp_path) as one, chooser(tmp_path) as other, chooser(tmp_path, "twin") as twin:
        made = []

        def act(place):
            made.append(place)
            if len(made) == 2:
                other.act([1.0, 0.9], costs=COSTS)
            return one.act([1.0, 0.1 * place], costs=COSTS)

        choices = one.commit_group([partial(act, place) for place in range(3)])
        assert len(made) == 6
        assert [choice.number for choice in choices] == [2, 3, 4]
        twin.act([1.0, 0.9], costs=COSTS)
        for call in acts(twin, 3):
            call()
        assert chooser_image(one) == chooser_image(twin) == chooser_image(other)


@pytest.mark.parametrize("where", ["write", "commit", "commit under a lock"])
def test_a_database_that_fails_changes_nothing_here(tmp_path, monkeypatch, where):
    """All calls have the error. The next ones draw as if those had not been."""
    made, twin = chooser(tmp_path), chooser(tmp_path, "twin")
    for each in (made, twin):
        each.act([1.0, 0.5], costs=COSTS)
    execute = type(made._replica.database.engine).execute

    def fail(self, statement, arguments=()):
        if statement.startswith(UPDATE_OBJECT[:10] if where == "write" else "COMMIT"):
            raise DatabaseError(self.path, "unavailable", "the disk is gone", "Wait")
        return execute(self, statement, arguments)

    with monkeypatch.context() as patch:
        patch.setattr(type(made._replica.database.engine), "execute", fail)
        made._replica._locked_calls = 9 if where.endswith("lock") else 0
        assert kinds(made.commit_group(acts(made, 3))) == ["DatabaseError"] * 3
    assert made.commit_group(acts(made, 3))[0].number == 2
    for call in acts(twin, 3):
        call()
    assert chooser_image(made) == chooser_image(twin)
    made.close(), twin.close()


def test_a_callable_that_makes_several_calls_makes_each_once(ledger, tmp_path):
    """The second method needs a query that would not see what the first one has written."""

    def hold_and_look(key):
        ledger.hold("team", 10, key)
        return ledger.balance("team").held

    calls = [partial(ledger.hold, "team", 1, "first"), partial(hold_and_look, "a"), partial(hold_and_look, "b")]
    assert ledger.commit_group(calls, ["first", "a", "b"]) == [1, 11, 21]
    assert len(ledger.open_holds()) == 3
    with chooser(tmp_path) as made:

        def act_and_settle(place):
            choice = made.act([1.0, 0.5], costs=COSTS)
            made.settle(str(choice), 0.5, 0.1, position=("p", place))
            return choice.number

        assert made.commit_group([*acts(made, 1), partial(act_and_settle, 1), partial(act_and_settle, 2)])[1:] == [2, 3]
        assert list(made.pending) == [1]


def test_an_interrupt_while_a_group_is_undone(tmp_path):
    """The copy had changes that were never committed, and the version of other changes."""
    with chooser(tmp_path) as one, chooser(tmp_path) as other, chooser(tmp_path, "twin") as twin:
        choices = [(one.act([1.0, 0.5], costs=COSTS), twin.act([1.0, 0.5], costs=COSTS)) for _ in range(6)]
        copy = one._replica.copy
        reset, crossed = type(copy).reset, []

        def interrupted(self, mark):
            type(copy).reset = reset
            raise KeyboardInterrupt

        def cross():
            if not crossed:
                type(copy).reset = interrupted
                crossed.extend(other.skip(str(first)) for first, _ in choices[3:])
                other.act([1.0, 0.1], costs=COSTS)
            return one.act([1.0, 0.5], costs=COSTS)

        try:
            with pytest.raises(KeyboardInterrupt):
                one.commit_group([*(partial(one.settle, str(first), 0.5, 0.1) for first, _ in choices[:3]), cross])
        finally:
            type(copy).reset = reset
        for _, own in choices[3:]:
            twin.skip(str(own))
        twin.act([1.0, 0.1], costs=COSTS)
        assert list(one.pending) == list(other.pending) == [1, 2, 3, 7]
        assert chooser_image(one) == chooser_image(other) == chooser_image(twin)


class HandlerError(Exception):
    """What the handler of a signal raises."""


def test_a_signal_handler_that_raises_while_a_call_is_undone_ends_the_group(ledger, monkeypatch):
    """Otherwise the part that the call had collected would be written."""
    most = 2**61 - 1
    for key in "abc":
        ledger.hold("team", 10, key, group="model")
    for key in "ab":
        ledger.settle(key, most, force=True)
    before = ledger._replica.database.read("SELECT * FROM longterm_groups")

    def handle(self, mark):
        raise HandlerError

    calls = [partial(ledger.hold, "all", 0, "free"), partial(ledger.settle, "c", most, force=True)]
    with monkeypatch.context() as patch:
        patch.setattr(Collected, "undo", handle)
        with pytest.raises(HandlerError):
            ledger.commit_group(calls, ["free", "c"])
    assert ledger._replica.database.read("SELECT * FROM longterm_groups") == before
    assert kinds(ledger.commit_group(calls, ["free", "c"])) == [0, "InputError"]


def test_another_thread_waits_for_the_group(ledger):
    started, order = threading.Event(), []

    def slowly():
        started.set()
        thread.join(0.2)  # it waits for this group
        order.append("group")
        return ledger.hold("team", 1, "slow")

    def other():
        started.wait(10)
        ledger.hold("team", 1, "other")
        order.append("other")

    thread = threading.Thread(target=other)
    thread.start()
    assert ledger.commit_group([slowly, partial(ledger.hold, "team", 1, "next")], ["slow", "next"]) == [1, 1]
    thread.join()
    assert order == ["group", "other"]
    assert ledger.balance("team").held == 3


def test_a_call_inside_a_change_is_refused(tmp_path):
    """As a signal handler would make it."""
    with chooser(tmp_path) as made:
        inner = []

        def context():
            try:
                made.act([1.0, 0.0], costs=COSTS)
            except InUseError as error:
                inner.append(error)
            return [1.0, 0.5]

        class Context:
            def __array__(self, dtype=None, copy=None):
                return np.array(context(), dtype)

        calls = [partial(made.act, Context(), costs=COSTS)] * 2
        assert [choice.number for choice in made.commit_group(calls)] == [1, 2]
        assert len(inner) >= 2


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timer signals are POSIX")
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
def test_groups_that_are_interrupted_at_any_moment(tmp_path):
    """Every group has happened wholly, in its parts, or not at all, and the object is what the database holds."""
    dice, alarm, patience, hits = random.Random(3), Alarm(), 1e-3, 0
    long = PrimalDual(ThompsonSampling(3, 2), EntropicDual(0.2, step=0.05), Budget(1e4, 1.0), 10**6)
    made, single = (Chooser.open(tmp_path / "s.db", long, name=name, durability="relaxed") for name in ("a", "b"))
    with alarm.installed():
        while hits < 150:
            tokens = [str(one) for one in made.pending.values()][: dice.randrange(4)]
            settles = [partial(made.settle, token, 0.5, 0.1) for token in tokens]
            hit = alarm.interrupted(
                partial(made.commit_group, [*acts(made, 3), *settles]), dice.uniform(1e-6, patience)
            )
            patience *= 1.03 if hit else 0.97
            hits += hit
            for call in acts(single, 3)[: made.round - single.round]:  # 0 or 3 of them
                call()
            assert made.round == single.round
            done = [token for token in tokens if int(token.rpartition("-")[2]) not in made.pending]
            assert done in ([], tokens)
            for token in done:
                number = int(token.rpartition("-")[2])
                single.settle(next(str(one) for n, one in single.pending.items() if n == number), 0.5, 0.1)
            assert chooser_image(made) == chooser_image(single)
            if hit and dice.random() < 0.2:
                made.close()
                made = Chooser.open(tmp_path / "s.db", long, name="a", durability="relaxed")
                assert chooser_image(made) == chooser_image(single)
    made.close(), single.close()


def test_the_errors_are_those_of_single_calls(ledger):
    with pytest.raises(OutOfBudgetError, match="600 are available"):
        raise ledger.commit_group([partial(ledger.hold, "team", 601, "a"), partial(ledger.balance, "all")])[0]
