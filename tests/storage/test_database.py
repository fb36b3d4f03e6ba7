"""The database: files that are moved, foreign, damaged, read-only or shared."""

import os
import sqlite3
import stat
import subprocess
import sys

import numpy as np
import pytest

from clocks import ManualClock
from live_plan import PROBLEM, learner, start
from longterm import Ledger, LiveLearner
from longterm.calibration import LiveIntervals
from longterm.errors import DatabaseError, ExpiredTokenError, InputError
from longterm.money import DualMirrorDescent, LivePacer, SharedAccount
from longterm.storage import sqlite
from longterm.storage.contents import describe
from longterm.storage.database import Database

TARGET = [np.array([0.3, -0.2])]


def reason(call):
    with pytest.raises(DatabaseError) as refused:
        call()
    assert str(refused.value).endswith(".")
    return refused.value.reason


@pytest.mark.skipif(os.name == "nt", reason="Windows does not move open files")
@pytest.mark.parametrize("how", ["renamed", "deleted", "replaced"])
def test_a_file_that_is_moved_under_a_learner_is_noticed(tmp_path, monkeypatch, how):
    monkeypatch.setattr(sqlite, "MOVED_SECONDS", 0.0)
    path = tmp_path / "service.db"
    with start(tmp_path) as live:
        token = live.ask()
        if how == "renamed":
            path.rename(tmp_path / "service.db.1")
        elif how == "deleted":
            path.unlink()
        else:
            start(tmp_path, name="other").backup(tmp_path / "new.db")
            (tmp_path / "new.db").replace(path)
        assert reason(lambda: live.tell(token, loss_parameters=TARGET)) == "moved"
        assert reason(live.ask) == "moved"
        if how == "renamed":
            (tmp_path / "service.db.1").rename(path)
            live.tell(token, loss_parameters=TARGET)


@pytest.mark.parametrize(
    "content",
    [b"x", b"SQLite format 3\0", b"SQLite format 3\0" + bytes(4096), os.urandom(5000)],
    ids=["short", "magic", "empty", "noise"],
)
def test_foreign_files(tmp_path, content):
    (tmp_path / "service.db").write_bytes(content)
    assert reason(lambda: start(tmp_path)) in ("foreign", "corrupted")
    assert (tmp_path / "service.db").read_bytes() == content


def test_another_programs_database_is_refused(tmp_path):
    connection = sqlite3.connect(tmp_path / "service.db")
    connection.execute("CREATE TABLE users (name TEXT)")
    connection.commit()
    connection.close()
    assert reason(lambda: start(tmp_path)) == "foreign"


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER t AFTER UPDATE ON longterm_objects BEGIN DELETE FROM longterm_rounds; END",
        "CREATE VIEW v AS SELECT * FROM longterm_objects",
        "DROP TABLE longterm_parts",
        "ALTER TABLE longterm_objects ADD COLUMN more TEXT",
    ],
)
def test_a_changed_schema_is_refused(tmp_path, sql):
    start(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "service.db")
    connection.execute(sql)
    connection.commit()
    connection.close()
    assert reason(lambda: start(tmp_path)) == "foreign"


def test_another_version_is_refused(tmp_path):
    start(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "service.db")
    connection.execute("UPDATE longterm_schema SET version = 2")
    connection.commit()
    connection.close()
    assert reason(lambda: start(tmp_path)) == "another version"


def test_folders_and_missing_folders(tmp_path):
    (tmp_path / "service.db").mkdir()
    assert reason(lambda: start(tmp_path)) == "foreign"
    assert reason(lambda: start(tmp_path / "none")) == "missing"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_file_is_named(tmp_path):
    start(tmp_path).close()
    (tmp_path / "service.db").chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        assert reason(lambda: start(tmp_path)) in ("read-only", "missing")
    finally:
        tmp_path.chmod(0o755)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_modes_of_files_are_kept(tmp_path):
    path = tmp_path / "service.db"
    path.touch(mode=0o600)
    path.chmod(0o600)
    with start(tmp_path) as live:
        live.ask()
        live.backup(tmp_path / "copy.db")
        for found in tmp_path.iterdir():
            assert stat.S_IMODE(found.stat().st_mode) == 0o600, found


def test_a_backup_is_whole_and_the_original_goes_on(tmp_path):
    with start(tmp_path) as live:
        first = live.ask()
        live.backup(tmp_path / "copy.db")
        live.tell(first, loss_parameters=TARGET)
        for path in (tmp_path / "service.db", tmp_path):
            with pytest.raises(InputError, match="path"):
                live.backup(path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "service.db"]
    with LiveLearner.open(tmp_path / "copy.db", learner(), PROBLEM) as copy:
        assert (copy.state.asked, copy.state.told) == (1, 0)
        copy.tell(first, loss_parameters=TARGET)
    with pytest.raises(InputError, match="no database"):
        LiveLearner(learner(), PROBLEM).backup(tmp_path / "other.db")


def test_a_backup_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def fails(partial, path):
        assert partial.stat().st_size > 0
        raise KeyboardInterrupt

    with start(tmp_path) as live:
        live.backup(tmp_path / "copy.db")
        before = (tmp_path / "copy.db").read_bytes()
        live.ask()
        monkeypatch.setattr(sqlite, "replace_file", fails)
        with pytest.raises(KeyboardInterrupt):
            live.backup(tmp_path / "copy.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "service.db"]
    assert (tmp_path / "copy.db").read_bytes() == before


def test_a_copy_that_is_up_to_date_is_not_read_again(tmp_path, monkeypatch):
    with Ledger.open(tmp_path / "service.db") as ledger:
        ledger.add_account("a", 10**6)
        account, rule = SharedAccount("a", units=1), DualMirrorDescent(budget=30.0, horizon=100, step=0.1, start=0.5)
        with LivePacer.open(tmp_path / "service.db", rule, account=account) as one:
            one.settle(one.bid(0.5), 0.1)
            read, restore = [], one._replica.copy.restore
            monkeypatch.setattr(one._replica.copy, "restore", lambda *given: read.append(given) or restore(*given))
            for _ in range(5):
                one.settle(one.bid(0.5), 0.1)
            assert not read
            with LivePacer.open(tmp_path / "service.db", rule, account=account) as other:
                other.settle(other.bid(0.5), 0.1)
                assert one.spent == other.spent
            assert len(read) == 1


def test_rounds_that_a_restored_database_does_not_know_are_forgotten(tmp_path):
    """PostgreSQL is restored under a running process, which may find fewer rounds than it knows."""
    with start(tmp_path) as live:
        for _ in range(3):
            live.tell(live.ask(), loss_parameters=TARGET)
        kept, lost = live.ask(), live.ask()
        connection = sqlite3.connect(tmp_path / "service.db")
        connection.execute("DELETE FROM longterm_rounds WHERE number = ?", (lost.number,))
        connection.execute("UPDATE longterm_objects SET version = version + 1")
        connection.commit()
        connection.close()
        assert live.in_flight == (kept,)
        with start(tmp_path) as other:
            fresh = other.ask()
        assert fresh.number == lost.number
        assert live.in_flight == (kept, fresh)


def test_a_database_that_stays_locked_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    with start(tmp_path) as live:
        other = sqlite3.connect(tmp_path / "service.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert reason(live.ask) == "busy"
        other.execute("COMMIT")
        other.close()
        live.ask()
        assert live.state.asked == 1


def test_arguments(tmp_path):
    with pytest.raises(InputError, match="durability"):
        start(tmp_path, durability="never")
    with pytest.raises(InputError, match="name"):
        start(tmp_path, name="a\nb")


@pytest.mark.parametrize("durability", ["commit", "relaxed"])
def test_durability_is_what_sqlite_was_told(tmp_path, durability):
    database = Database(tmp_path / "d.db", durability)
    assert database.read("PRAGMA synchronous") == [({"commit": 2, "relaxed": 1}[durability],)]
    assert database.read("PRAGMA journal_mode") == [("wal",)]
    database.close()


def test_a_password_is_not_shown():
    assert "secret" not in str(Database("postgresql://me:secret@host/db").path)
    assert str(Database("postgresql://me:secret@host/db").path) == "postgresql://me@host/db"


def test_psycopg_is_optional():
    code = "import sys; sys.modules['psycopg'] = None; from longterm.storage.database import Database\n"
    code += "try: Database('postgresql://host/db').engine.connection\nexcept ImportError as e: print(e)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "longterm[postgres]" in done.stdout


def test_the_contents_are_described_without_the_learners(tmp_path):
    from longterm import Ledger
    from longterm.money import EXP3IX, Budget, Chooser, HedgeDual, PrimalDual

    with start(tmp_path) as live:
        live.tell(live.ask(), loss_parameters=TARGET)
        live.ask()
    rule = PrimalDual(EXP3IX(2), HedgeDual(), Budget(10.0, 1.0), 10)
    with Chooser.open(tmp_path / "service.db", rule) as chooser:
        chooser.settle(chooser.act(costs=[0.5, 0.5]), reward=1.0)
        chooser.act(costs=[0.25, 0.25])
    with Ledger.open(tmp_path / "service.db") as ledger:
        ledger.add_account("a", 100)
        ledger.hold("a", 30, "one")
    found = {one.name: one for one in describe(tmp_path / "service.db")}
    assert [(one.kind, one.rounds, one.open) for one in found.values()] == [
        ("chooser", 2, 1),
        ("live learner", 2, 1),
        ("ledger", 0, 1),
    ]
    assert (found["chooser"].spent, found["chooser"].held) == ({"": 0.5}, {"": 0.25})
    assert (found["ledger"].spent, found["ledger"].held) == ({"a": 0}, {"a": 30})
    with pytest.raises(DatabaseError, match="no such file"):
        describe(tmp_path / "none.db")


def test_the_command_state_show(tmp_path, capsys):
    pytest.importorskip("tyro")
    from longterm.cli import main

    with start(tmp_path) as live:
        live.ask()
    assert main(["state", "show", str(tmp_path / "service.db")]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["name", "kind", "rounds", "open"]
    assert row.split()[:5] == ["learner", "live", "learner", "1", "1"]


def test_the_command_state_show_names_the_accounts(tmp_path, capsys):
    pytest.importorskip("tyro")
    from longterm import Ledger
    from longterm.cli import main

    with Ledger.open(tmp_path / "service.db") as ledger:
        ledger.add_account("firm", 100)
        ledger.add_account("team", 50, parent="firm")
        ledger.hold("team", 30, "one")
        ledger.settle("one", 20)
    assert main(["state", "show", str(tmp_path / "service.db")]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["firm", "100", "20", "0"] in rows
    assert ["team", "50", "20", "0", "firm"] in rows


def test_another_definition_is_refused_by_the_name_of_the_object(tmp_path):
    from longterm import Ledger

    Ledger.open(tmp_path / "service.db", name="money", unit="cent").close()
    with pytest.raises(DatabaseError, match=r"unit was 'cent', is 'dollar'"):
        Ledger.open(tmp_path / "service.db", name="money", unit="dollar")


def test_a_database_with_a_pacer_and_intervals_is_described(tmp_path):
    path = tmp_path / "service.db"
    rule = DualMirrorDescent(budget=10.0, horizon=2, step=0.1, start=0.5, mirror="euclidean")
    with LivePacer.open(path, rule) as pacer, LiveIntervals.open(path) as intervals:
        pacer.settle(pacer.bid(4.0), paid=2.0)
        bid = pacer.bid(4.0)
        intervals.ask(3.0)
    found = describe(path)
    assert [(one.kind, one.open) for one in found] == [("live intervals", 1), ("live pacer", 1)]
    assert (found[0].spent, found[1].spent, found[1].held) == (None, {"": 2.0}, {"": bid.amount})


def test_rounds_that_are_too_old_are_closed_by_whatever_comes_first(tmp_path):
    clock = ManualClock()
    with (
        LiveLearner.open(tmp_path / "service.db", learner(), PROBLEM, max_age=100.0, clock=clock) as one,
        LiveLearner.open(tmp_path / "service.db", learner(), PROBLEM, max_age=100.0, clock=clock) as other,
    ):
        tokens = [one.ask() for _ in range(40)]
        other.ask()
        clock.advance(101.0)
        with pytest.raises(ExpiredTokenError):
            other.tell(tokens[0], loss_parameters=[np.array([0.3, -0.2])])
        assert describe(tmp_path / "service.db")[0].open == 0  # the call that was refused has closed them
        last = one.ask()
        clock.advance(101.0)
        assert other.metrics()["open"] == 0
        assert (one.state.expired, other.state.expired, one.state.in_flight) == (42, 42, 0)
        with pytest.raises(ExpiredTokenError):
            one.skip(last)


def test_a_round_opened_by_a_fast_clock_does_not_keep_later_ones_from_expiring(tmp_path):
    clock = ManualClock()
    ahead = ManualClock(times=[clock.wall() + 86_400.0, 5.0])
    with (
        LiveLearner.open(tmp_path / "service.db", learner(), PROBLEM, max_age=60.0, clock=clock) as one,
        LiveLearner.open(tmp_path / "service.db", learner(), PROBLEM, max_age=60.0, clock=ahead) as fast,
    ):
        early = fast.ask()
        one.ask()
        clock.advance(61.0)
        assert one.in_flight == (early,)


def test_a_damaged_round_with_a_key_is_refused(tmp_path):
    with start(tmp_path) as live:
        live.tell(live.ask(key="a"), loss_parameters=TARGET)
        with sqlite3.connect(tmp_path / "service.db") as connection:
            connection.execute("UPDATE longterm_keys SET content = x'00'")
        connection.close()
        assert reason(lambda: live.ask(key="a")) == "corrupted"
        assert live.ask().number == 2


@pytest.mark.parametrize("content", [b"x", bytes(1), b"x" * 511, bytes(600), b"x" * 5000])
def test_a_file_that_is_no_database_is_left_alone(tmp_path, content):
    path = tmp_path / "service.db"
    path.write_bytes(content)
    assert reason(lambda: start(tmp_path)) == "foreign"
    assert path.read_bytes() == content


def test_a_second_connection_of_a_process_keeps_the_locks_of_the_first(tmp_path):
    """Without them, another process that closes its connection deletes the log that this one writes to."""
    path = tmp_path / "service.db"
    code = "import sys; from longterm.storage.contents import describe; print(describe(sys.argv[1])[0].rounds)"

    def seen_by_another():
        return int(subprocess.run([sys.executable, "-c", code, path], check=True, capture_output=True).stdout)

    with start(tmp_path) as live:
        live.ask()
        describe(path)
        assert seen_by_another() == 1
        live.ask()
        assert seen_by_another() == 2
