"""Backups: written while a service runs, restored after it has stopped, whatever lies beside the database."""

import os
import shutil
import signal
import sqlite3

import pytest

from longterm import Ledger
from longterm.cli import parse
from longterm.errors import DatabaseError, InputError
from longterm.storage import backup, restore
from longterm.storage.database import Database


def spend(ledger, start, end):
    for number in range(start, end):
        ledger.hold("a", 1, str(number))
        ledger.settle(str(number), 1)


def made(path, requests=20):
    ledger = Ledger.open(path, durability="relaxed")
    ledger.add_account("a", 10**6)
    spend(ledger, 0, requests)
    return ledger


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("how", ["python", "command"])
def test_a_backup_is_restored_after_a_kill(tmp_path, how, capsys):
    """The log of the killed process lies beside the file. It must not be replayed into the backup."""
    database, copy = tmp_path / "service.db", tmp_path / "copy.db"
    child = os.fork()
    if child == 0:
        try:
            ledger = made(database)
            parse(["state", "backup", str(database), str(copy)]).run() if how == "command" else backup(database, copy)
            spend(ledger, 20, 100)
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert (tmp_path / "service.db-wal").stat().st_size > 0
    if how == "command":
        parse(["state", "restore", str(copy), str(database)]).run()
        assert "restored from" in capsys.readouterr().out
    else:
        restore(copy, database)
    with Ledger.open(database) as ledger:
        assert ledger.balance("a").spent == 20
        spend(ledger, 20, 25)
    with Ledger.open(database) as ledger:
        assert ledger.balance("a").spent == 25


def test_a_database_in_use_is_not_replaced(tmp_path):
    database, copy = tmp_path / "service.db", tmp_path / "copy.db"
    with made(database) as ledger:
        backup(database, copy)
        spend(ledger, 20, 25)
        with pytest.raises(DatabaseError, match="Stop the services"):
            restore(copy, database)
        assert ledger.balance("a").spent == 25
        spend(ledger, 25, 30)
    restore(copy, database)
    with Ledger.open(database) as ledger:
        assert ledger.balance("a").spent == 20


@pytest.mark.parametrize("damage", ["missing", "cut", "overwritten", "empty"])
def test_a_damaged_database_is_replaced(tmp_path, damage):
    database, copy, log = tmp_path / "service.db", tmp_path / "copy.db", tmp_path / "service.db-wal"
    with made(database) as ledger:
        backup(database, copy)
        spend(ledger, 20, 25)
        old = log.read_bytes()
    content = database.read_bytes()
    database.unlink()
    if damage != "missing":
        database.write_bytes({"cut": content[:5000], "overwritten": b"x" * 9000, "empty": b""}[damage])
    log.write_bytes(b"an old log" if damage == "cut" else old)
    if damage == "cut":
        with pytest.raises(DatabaseError, match=f"longterm state restore FILE {database}"):
            Ledger.open(database)
    restore(copy, database)
    with Ledger.open(database) as ledger:
        assert ledger.balance("a").spent == 20


def test_what_is_not_a_backup_is_refused(tmp_path):
    database, copy = tmp_path / "service.db", tmp_path / "copy.db"
    with made(database):
        shutil.copy(database, tmp_path / "half.db")
        shutil.copy(tmp_path / "service.db-wal", tmp_path / "half.db-wal")
        backup(database, copy)
    (tmp_path / "text.db").write_text("no database" * 100)
    (tmp_path / "cut.db").write_bytes(copy.read_bytes()[:-4096])
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE mine (x)")
    other.close()
    before = database.read_bytes()
    for name in ("none.db", "half.db", "text.db", "cut.db", "other.db"):
        with pytest.raises(DatabaseError):
            restore(tmp_path / name, database)
    with pytest.raises(InputError, match="itself"):
        restore(database, database)
    assert database.read_bytes() == before
    for call, remedy in ((backup, "pg_dump"), (lambda path, url: restore(url, path), "pg_restore")):
        with pytest.raises(InputError, match=remedy):
            call("postgresql://localhost/x", copy)
    with pytest.raises(DatabaseError, match="no such file"):
        backup(tmp_path / "none.db", tmp_path / "new.db")
    assert not (tmp_path / "none.db").exists()


def test_tables_of_sqlite_itself_are_no_reason_to_refuse(tmp_path):
    made(tmp_path / "service.db").close()
    connection = sqlite3.connect(tmp_path / "service.db")
    connection.execute("ANALYZE")
    connection.commit()
    connection.close()
    with Ledger.open(tmp_path / "service.db") as ledger:
        spend(ledger, 20, 21)
    backup(tmp_path / "service.db", tmp_path / "copy.db")
    restore(tmp_path / "copy.db", tmp_path / "service.db")
    connection = sqlite3.connect(tmp_path / "service.db")
    connection.execute("CREATE TRIGGER sqlite AFTER INSERT ON longterm_holds BEGIN DELETE FROM longterm_holds; END")
    connection.commit()
    connection.close()
    with pytest.raises(DatabaseError, match="not those of longterm"):
        Ledger.open(tmp_path / "service.db")


@pytest.mark.parametrize("url", [b"a.db", None, 5, "", "a\0b", "\ud800.db", "mysql://localhost/x", ["a.db"]])
def test_what_is_no_path_and_no_url(url):
    with pytest.raises(InputError, match="url"):
        Ledger.open(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:SECRET@127.0.0.1:1/x",
        "postgresql://127.0.0.1:1/x?user=u&password=SECRET",
        "postgresql://127.0.0.1:1/x?PASSWORD=SECRET&sslpassword=SECRET",
        "postgres://user:SE@SECRET@127.0.0.1:1/x",
    ],
)
def test_messages_name_no_password(url):
    assert "SECRET" not in str(Database(url).path)
    assert "127.0.0.1:1/x" in str(Database(url).path)


def test_a_backup_into_a_missing_folder_names_the_folder(tmp_path):
    made(tmp_path / "service.db").close()
    with pytest.raises(InputError, match=r"^path: .*/none is not a folder"):
        backup(tmp_path / "service.db", tmp_path / "none" / "copy.db")
