"""On PostgreSQL a ledger's call reads first and writes with one statement, if nobody has written since."""

import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest
from tests.support.clocks import ManualClock

from longterm import Ledger
from longterm.errors import OutOfBudgetError
from longterm.money import ExcessHold
from longterm.money.ledger.accounts import Balance
from longterm.storage import schema as sql
from longterm.storage.database import Database
from longterm.storage.postgres import PostgresEngine
from postgres import server

pytest.importorskip("psycopg")


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with server(tmp_path_factory.mktemp("postgres")) as running:
        if running is None:
            pytest.skip("no PostgreSQL server can be started here")
        yield running.url


@pytest.fixture
def two(url):
    """One ledger, as two processes have it."""
    name = f"test {secrets.token_hex(8)}"
    with Ledger.open(url, name=name, durability="relaxed") as one, Ledger.open(url, name=name) as other:
        one.add_account("all", 1000)
        one.add_account("team", 100, parent="all")
        yield one, other


@pytest.fixture
def statements(monkeypatch):
    found = []
    execute = PostgresEngine.execute

    def noted(self, sql, arguments=()):
        found.append(sql)
        return execute(self, sql, arguments)

    monkeypatch.setattr(PostgresEngine, "execute", noted)
    return found


def test_a_call_needs_few_round_trips(two, statements):
    one, _ = two
    one.hold("team", 5, "a")
    del statements[:]
    one.hold("team", 5, "b")
    assert len(statements) <= 5, statements  # two accounts
    del statements[:]
    one.settle("b", 3)
    assert len(statements) <= 4, statements
    assert one.balance("all") == Balance(1000, 3, 5)


def between(monkeypatch, ledger, call):
    """Make a call of another process once, after the first query of the ledger's next call."""
    read = Database.read
    pending = [call]

    def interrupted(self, sql, *arguments):
        rows = read(self, sql, *arguments)
        if self is ledger._replica.database and pending:
            pending.pop()()
        return rows

    monkeypatch.setattr(Database, "read", interrupted)


WRITES = {
    "hold": lambda ledger: ledger.hold("team", 90, "other"),
    "settle": lambda ledger: ledger.settle("first", 95),
    "limit": lambda ledger: ledger.set_limit("team", 10),
    "period": lambda ledger: ledger.set_period("team", "day"),
    "reset": lambda ledger: ledger.reset("team", 95),
    "report": lambda ledger: ledger.report("first", 5),
    "release": lambda ledger: ledger.release("first"),
    "correct": lambda ledger: ledger.correct("settled", 60),
    "account": lambda ledger: ledger.add_account("new", 5, parent="team"),
    "lease": lambda ledger: ledger.lease("team", 80, 60.0),
}


@pytest.mark.parametrize("write", WRITES)
def test_every_call_that_writes_raises_the_version(two, write):
    one, _ = two
    one.hold("team", 4, "first")
    one.hold("team", 1, "settled")
    one.settle("settled", 1)

    def version():
        return one._replica.database.read(sql.READ_TOUCHED, one._replica.name)

    before = version()
    one._replica._locked_calls = 99  # a call that locks writes the version by itself
    WRITES[write](one)
    assert version() > before


@pytest.mark.parametrize("write", WRITES)
def test_a_call_that_another_process_overtakes_sees_what_it_wrote(two, write, monkeypatch):
    one, other = two
    one.hold("team", 10, "first")
    one.hold("team", 1, "settled")
    one.settle("settled", 1)
    between(monkeypatch, one, lambda: WRITES[write](other))
    with suppress(OutOfBudgetError):
        one.hold("team", 60, "second")
    found = one.balance("team")
    is_refused = write in ("hold", "settle", "limit", "reset", "lease", "correct")
    assert ("second" in {hold.key for hold in one.open_holds()}) != is_refused
    assert found.spent + found.held <= max(found.limit, 11 if write == "limit" else 105)
    assert one.balance("all").held == found.held


def test_a_refusal_is_that_of_one_moment(two, monkeypatch):
    one, other = two
    one.hold("team", 100, "first")
    between(monkeypatch, one, lambda: other.release("first"))
    assert one.hold("team", 100, "second") == 100


def test_processes_that_write_at_once_never_overspend(two, url):
    one, _ = two

    def spend(number):
        with Ledger.open(url, name=one._replica.name, durability="relaxed") as ledger:
            admitted = 0
            for request in range(30):
                with suppress(OutOfBudgetError):
                    admitted += ledger.hold("team", 1, f"{number} {request}")
                    if request % 3:
                        ledger.settle(f"{number} {request}", 1)
            return admitted

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(spend, range(4))) == 100
    balance = one.balance("team")
    assert balance.spent + balance.held == 100
    assert one.balance("all") == balance._replace(limit=1000)


def test_calibrated_holds_and_expiry_agree_with_sqlite(url, tmp_path):
    answers = []
    with ExitStack() as stack:
        for place in (url, tmp_path / "service.db"):
            clock = ManualClock()
            name = f"test {secrets.token_hex(8)}"
            options = {"holds": ExcessHold(share=0.1), "name": name, "durability": "relaxed", "clock": clock}
            ledger = stack.enter_context(Ledger.open(place, **options))
            ledger.add_account("team", 1000, reserve=500)
            found = []
            for number in range(40):
                with suppress(OutOfBudgetError):
                    found.append(ledger.hold("team", 50, str(number), group="g", seconds=1e6 if number % 5 else None))
                    if number % 3:
                        ledger.settle(str(number), 5 + number % 7)
            answers.append((found, ledger.balance("team")))
    assert answers[0] == answers[1]
