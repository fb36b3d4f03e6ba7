"""A ledger agrees with an exact model after every call of several replicas, and never overspends."""

import pytest

import ledger_model
from longterm.money.ledger.accounts import Account
from longterm.money.ledger.ledger_rows import LedgerRows
from memory_files import tmp_path as tmp_path
from postgres import server
from replica_model import DisagreementError


@pytest.mark.parametrize("seed", range(6))
def test_every_answer_is_that_of_the_model(tmp_path, seed):
    ledger_model.search(str(tmp_path / "s.db"), seed, 120)


@pytest.mark.parametrize("seed", range(4))
def test_leased_and_shared_objects_never_overspend(tmp_path, seed):
    assert ledger_model.honest(str(tmp_path / "s.db"), seed, 150) > 100


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ledger_model.search, ledger_model.honest])
def test_the_same_on_postgresql(kind, tmp_path_factory):
    pytest.importorskip("psycopg")
    with server(tmp_path_factory.mktemp("postgres")) as running:
        if running is None:
            pytest.skip("no PostgreSQL server can be started here")
        for seed in range(2):
            kind(running.url, 100 + seed, 80)


def expires_leases(monkeypatch):
    """As it was: a lease that has ended comes back, less what was reported."""
    expired = "SELECT key, account, amount, largest, asked, answer, grouped, spent, status, lease, opened, expires, "
    expired += "closed, who FROM longterm_holds WHERE ledger = ? AND status = 0 AND expires <= ? LIMIT 1000"
    monkeypatch.setattr("longterm.storage.schema.READ_EXPIRED", expired)


def never_expires(monkeypatch):
    """As it was: whether a hold has expired depends on other traffic."""
    calls = [0]
    expire = LedgerRows.expire

    def lazily(self, database, now):
        calls[0] += 1
        if calls[0] % 3 == 0:
            expire(self, database, now)

    monkeypatch.setattr(LedgerRows, "expire", lazily)


def room_ignores_parents(monkeypatch):
    chain = LedgerRows.chain
    monkeypatch.setattr(LedgerRows, "chain", lambda self, *given: chain(self, *given)[:1])


def loses_parts_of_units(monkeypatch):
    """What is replenished beyond whole units is lost."""
    at = Account.at
    monkeypatch.setattr(Account, "at", lambda self, now: at(self, now)._replace(part=0))


@pytest.mark.parametrize("mutant", [expires_leases, never_expires, room_ignores_parents, loses_parts_of_units])
def test_the_search_finds_faults(tmp_path, monkeypatch, mutant):
    mutant(monkeypatch)
    found = 0
    for seed in range(60):
        for kind in (ledger_model.search, ledger_model.honest):
            try:
                kind(str(tmp_path / f"{seed}.db"), seed, 100)
            except DisagreementError:
                found += 1
        if found:
            return
    pytest.fail("the search finds nothing")
