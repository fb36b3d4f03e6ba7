"""The same objects in PostgreSQL. A server comes with `pgserver`, or LONGTERM_TEST_POSTGRES names one by URL."""

import multiprocessing
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

import postgres
from chooser_plan import image as chooser_image
from chooser_plan import next_call as next_chooser_call
from chooser_plan import rule
from live_plan import LIMITS, PROBLEM, image, learner, step, undisturbed
from longterm import Ledger, LiveLearner
from longterm.errors import AlreadyToldError, DatabaseError, InputError, RepeatedPositionError
from longterm.money import (
    Budget,
    Chooser,
    DualMirrorDescent,
    EntropicDual,
    LivePacer,
    PrimalDual,
    SharedAccount,
    ThompsonSampling,
)
from longterm.money.ledger.accounts import Balance

pytest.importorskip("psycopg")
TARGET = [np.array([0.3, -0.2])]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with postgres.server(tmp_path_factory.mktemp("postgres")) as running:
        if running is None:
            pytest.skip("no server can be started here")
        yield running.url


@pytest.fixture
def name():
    return f"test {secrets.token_hex(8)}"


def start(url, name, **options):
    return LiveLearner.open(url, learner(), PROBLEM, name=name, **{"durability": "relaxed", **LIMITS, **options})


def test_rounds_of_a_group_are_stored_though_another_process_writes_between_their_statements(server, name):
    """Rows that named the old version were left out, though their rounds had been acknowledged."""
    with start(server, name) as one, start(server, name) as other:
        token, engine, crossed = other.ask(), one._replica.database.engine, []
        assert len(one.in_flight) == 1  # its copy is up to date
        execute = engine.execute

        def execute_and_cross(statement, arguments=()):
            cursor = execute(statement, arguments)
            if "INSERT INTO longterm_rounds" in statement and not crossed:
                crossed.append(other.tell(token, loss_parameters=TARGET))
            return cursor

        engine.execute = execute_and_cross
        try:
            tokens = one.commit_group([one.ask] * 4)
        finally:
            del engine.execute
        assert crossed == [None]
        for each in tokens:
            other.tell(each, loss_parameters=TARGET)
        assert other.in_flight == ()


@pytest.mark.slow
def test_replicas_that_take_turns_are_one_learner(server, name):
    expected = undisturbed(150)
    with start(server, name) as one, start(server, name) as other:
        for done in range(150):
            live = (one, other)[np.random.default_rng(done).integers(2)]
            step(live)
            assert image(live) == expected[done + 1]
    with start(server, name, durability="commit") as again:
        assert image(again) == expected[150]


@pytest.mark.slow
def test_keys_tokens_and_errors(server, name):
    with start(server, name) as one, start(server, name) as other:
        first = one.ask(key="a")
        assert other.ask(key="a") == first
        other.tell(str(first), loss_parameters=TARGET)
        with pytest.raises(AlreadyToldError):
            one.tell(first, loss_parameters=TARGET)
        with pytest.raises(InputError, match="pg_dump"):
            one.backup("copy.db")
    with pytest.raises(DatabaseError, match="unavailable"):
        start("postgresql://127.0.0.1:1/none?connect_timeout=1", name)


@pytest.mark.slow
def test_a_chooser(server, name):
    mirror = Chooser(rule(), seed=3)
    with (
        Chooser.open(server, rule(), name=name, seed=3, durability="relaxed") as one,
        Chooser.open(server, rule(), name=name) as other,
    ):
        for t in range(120):
            next_chooser_call((one, other)[t % 3 == 0])()
            next_chooser_call(mirror)()
        assert chooser_image(one) == chooser_image(other) == chooser_image(mirror)


@pytest.mark.slow
def test_a_broken_connection_is_opened_again(server, name):
    import psycopg

    with start(server, name) as live:
        live.ask()
        with psycopg.connect(server, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                "AND backend_type = 'client backend'"
            )
        with pytest.raises(DatabaseError, match="call again"):
            live.ask()
        assert live.state.asked == 1
        live.ask()
        assert live.state.asked == 2


def work(url, name, count, answers):
    told = []
    with start(url, name, max_in_flight=100, expire_after=10**6) as live:
        for _ in range(count):
            token = live.ask()
            live.tell(token, loss_parameters=TARGET)
            told.append(token.number)
    answers.put(told)


@pytest.mark.slow
def test_several_processes_lose_nothing(server, name):
    count, workers = 50, 3
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    running = [context.Process(target=work, args=(server, name, count, answers)) for _ in range(workers)]
    for one in running:
        one.start()
    told = sorted(number for _ in running for number in answers.get(timeout=120))
    for one in running:
        one.join()
    assert told == list(range(1, workers * count + 1))
    with start(server, name) as live:
        assert (live.state.told, live.state.round) == (workers * count, workers * count + 1)


def _spend(url, number):
    """Make requests of a chooser whose money is in an account that it shares."""
    rule = PrimalDual(ThompsonSampling(2, 1), EntropicDual(0.2), Budget(1000.0, 1.0), 2000)
    account = SharedAccount("team", units=100, ledger="shared")
    with Chooser.open(url, rule, name=f"spender {number % 2}", account=account, durability="relaxed") as chooser:
        for _ in range(20):
            choice = chooser.act([1.0], costs=[0.1, 0.1], bounds=[0.2, 0.2])
            if choice.action is not None:
                chooser.settle(choice, 1.0, 0.1)


def test_choosers_of_several_processes_share_an_account(server):
    with Ledger.open(server, unit="cent", name="shared", durability="relaxed") as ledger:
        ledger.add_account("all", 1000)
        ledger.add_account("team", 300, parent="all")
        context = multiprocessing.get_context("spawn")
        workers = [context.Process(target=_spend, args=(server, number)) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert [worker.exitcode for worker in workers] == [0] * 4
        spent = ledger.balance("team").spent
        assert 200 < spent <= 300  # 80 requests would cost 800
        assert ledger.balance("all") == Balance(1000, spent, 0)


@pytest.mark.slow
def test_processes_that_start_together_make_the_tables_once(server):
    import psycopg

    def begin(url):
        together.wait()
        with start(url, "learner") as live:
            return live.ask().number

    together = threading.Barrier(4)
    for schema in (f"test_{secrets.token_hex(8)}" for _ in range(5)):
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
        url = f"{server}{'&' if '?' in server else '?'}options=-csearch_path%3D{schema}"
        with ThreadPoolExecutor(4) as pool:
            assert sorted(pool.map(begin, [url] * 4)) == [1, 2, 3, 4]


@pytest.mark.slow
def test_the_record_of_two_replicas_has_each_change_once(server, name):
    rule = DualMirrorDescent(budget=100.0, horizon=10, step=0.1, start=0.5)
    with LivePacer.open(server, rule, name=name) as one, LivePacer.open(server, rule, name=name) as other:

        def change(number):
            pacer = (one, other)[number % 2]
            pacer.reset(float(number), who="ann")
            pacer.change(budget=200.0 + number)

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(change, range(20)))
        found = one.record()
        assert sorted(entry.new for entry in found if entry.what == "reset") == [float(n) for n in range(20)]
        assert sorted(entry.new for entry in found if entry.what == "budget") == [200.0 + n for n in range(20)]
        assert other.record() == found


def test_two_consumers_that_overlap_apply_each_message_once(server, name):
    """As in a rebalance: both read all partitions. A message of any age is refused afterwards."""
    messages = [(f"orders-{partition}", number) for number in range(12) for partition in range(3)]
    with Ledger.open(server, name=f"{name} ledger") as ledger:
        ledger.add_account("team", 10**6)

    def consume(_):
        applied = 0
        with start(server, name) as live, Ledger.open(server, name=f"{name} ledger") as ledger:
            for partition, number in messages:
                key = f"{partition} {number}"
                try:
                    live.tell(live.ask(key), loss_parameters=TARGET, position=(partition, number))
                    applied += 1
                except RepeatedPositionError:
                    pass
                with suppress(RepeatedPositionError):
                    ledger.hold("team", 100, key=key)
                    ledger.settle(key, 60, position=(partition, number))
        return applied

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(consume, range(2))) == len(messages)
    assert consume(None) == 0
    with start(server, name) as live, Ledger.open(server, name=f"{name} ledger") as ledger:
        assert live.state.told == len(messages)
        assert ledger.balance("team") == Balance(10**6, 60 * len(messages), 0)
        assert {ledger.last_position(partition) for partition, _ in messages} == {11}
        with pytest.raises(RepeatedPositionError):
            live.tell(live.ask("late"), loss_parameters=TARGET, position=("orders-1", 3))
