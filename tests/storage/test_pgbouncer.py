"""Stored objects behind pgbouncer in transaction mode, where two statements of a session may reach two servers.

Needs Debian's pgbouncer and a PostgreSQL server of this machine.
"""

import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from longterm.errors import DatabaseError, OutOfBudgetError
from longterm.money import Budget, Chooser, EuclideanDual, Ledger, PrimalDual, ThompsonSampling
from longterm.storage.database import Database
from postgres import server
from servers import free_port

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = [pytest.mark.cross, pytest.mark.skipif(PROGRAM is None, reason="needs pgbouncer")]
ROLE = "service"
RULE = PrimalDual(ThompsonSampling(2, 1), EuclideanDual(), Budget(1000.0, largest=1.0), horizon=10_000)


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    """The addresses of one database: behind pgbouncer with two connections, and direct."""
    with server() as running:
        if running is None or running.restart is None:
            pytest.skip("no PostgreSQL server of our own can be started here")
        direct = urlsplit(running.url)
        host = parse_qs(direct.query).get("host", [direct.hostname])[0]
        with psycopg.connect(running.url, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {ROLE} LOGIN")
            connection.execute(f"CREATE DATABASE {ROLE} OWNER {ROLE}")
        folder, port = tmp_path_factory.mktemp("pgbouncer"), free_port()
        for parent in (folder, *list(folder.parents)[:2]):
            parent.chmod(0o755)
        (folder / "log").touch(mode=0o666)
        (folder / "log").chmod(0o666)
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\n{ROLE} = host={host} port={direct.port or 5432} user={ROLE}\n[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
            f"pool_mode = transaction\ndefault_pool_size = 2\nlogfile = {folder / 'log'}\n"
        )
        user = ["-u", Path(host).owner()] if os.geteuid() == 0 else []  # the socket's folder is the server's own
        process = subprocess.Popen([PROGRAM, "-q", *user, str(folder / "pgbouncer.ini")])
        pooled = f"postgresql://{ROLE}@127.0.0.1:{port}/{ROLE}"
        try:
            deadline = time.monotonic() + 20
            while True:
                try:
                    psycopg.connect(pooled).close()
                    break
                except psycopg.OperationalError:
                    assert process.poll() is None, (folder / "log").read_text()
                    assert time.monotonic() < deadline, (folder / "log").read_text()
                    time.sleep(0.1)
            yield pooled, running.url.replace("/postgres?", f"/{ROLE}?", 1)
        finally:
            process.terminate()
            process.wait()


def test_without_settings_of_the_role_it_says_what_to_run(addresses):
    pooled, direct = addresses
    with pytest.raises(DatabaseError, match=r"ALTER ROLE CURRENT_USER SET lock_timeout = '30s'") as caught:
        Ledger.open(pooled)
    with psycopg.connect(pooled, autocommit=True) as connection:
        connection.execute(caught.value.remedy.partition(": ")[2])
    renew(direct)
    Ledger.open(pooled).close()
    with pytest.raises(DatabaseError, match="SET synchronous_commit = 'off'"):
        Ledger.open(pooled, durability="relaxed")


def renew(direct):
    """End the server's connections, as RECONNECT of pgbouncer's console does. New ones have the settings."""
    with psycopg.connect(direct, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s AND pid <> pg_backend_pid()",
            (ROLE,),
        )
    time.sleep(0.2)


def test_objects_of_many_threads_share_two_connections(addresses):
    """Every call is prepared many times over. Sums are exact, and nothing of a session stays behind."""
    pooled, direct = addresses
    with psycopg.connect(direct, autocommit=True) as connection:
        connection.execute(f"ALTER ROLE {ROLE} SET lock_timeout = '30s'")
    renew(direct)
    with Ledger.open(pooled) as ledger:
        ledger.add_account("team", 100)
    Chooser.open(pooled, RULE).close()

    def work(thread):
        with Ledger.open(pooled) as ledger, Chooser.open(pooled, RULE) as chooser:
            for number in range(25):
                key = f"{thread} {number}"
                with suppress(OutOfBudgetError):
                    ledger.hold("team", 2, key)
                    ledger.settle(key, 1)
                choice = chooser.act([1.0], costs=[0.5, 0.25])
                chooser.settle(str(choice), 1.0, [0.5, 0.25][choice.action])

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))
    with Ledger.open(pooled) as ledger, Chooser.open(pooled, RULE) as chooser:
        balance = ledger.balance("team")
        assert (balance.held, balance.spent) in {(0, 99), (0, 100)}
        assert (chooser.metrics()["requests"], chooser.metrics()["open"]) == (150, 0)
    with psycopg.connect(direct, autocommit=True) as connection:
        used = connection.execute("SELECT COUNT(*) FROM pg_stat_activity WHERE usename = %s", (ROLE,)).fetchone()
    assert used[0] <= 2


def test_a_lock_is_given_up_in_time(addresses):
    pooled, _ = addresses
    database = Database(pooled, "commit")
    assert database.read("SELECT current_setting('lock_timeout')") == [("30s",)]
    database.close()
