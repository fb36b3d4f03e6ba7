"""One process at a time writes a journal. The processes here are real."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import live_fork
from live_plan import fresh, image, start, step, undisturbed
from longterm.errors import JournalError, SnapshotError
from longterm.live import journal
from longterm.storage import files
from longterm.storage import lock as locks
from longterm.storage.lock import FileLock, NoLockWarning

LOCKS = {"journal.lock", "state.lock"} if sys.platform == "win32" else set()
"""What a clean close leaves behind."""
SUPPORT = Path(__file__).parents[1] / "support"
HOLD = """
import sys, time
from pathlib import Path
from live_plan import start, step
live = start(Path(sys.argv[1]))
for _ in range(7):
    step(live)
    live.save(Path(sys.argv[1]) / "state")
print("ready", flush=True)
sys.stdin.readline()
live.close()
"""
TAKE_TURNS = """
import sys, time
from pathlib import Path
from live_plan import SAVE_EVERY, position, start, step
from longterm.errors import JournalError
folder, steps = Path(sys.argv[1]), int(sys.argv[2])
while steps:
    try:
        live = start(folder, fsync=False)
    except JournalError as error:
        assert error.reason == "in use", error
        time.sleep(0.001)
        continue
    step(live)
    print(position(live), flush=True)
    if position(live) % SAVE_EVERY == 0:
        live.save(folder / "state")
    live.close()
    steps -= 1
"""


def python(code, *arguments):
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(SUPPORT), *sys.path]),
        "OPENBLAS_NUM_THREADS": "1",
    }
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


@pytest.fixture
def holder(tmp_path):
    """A process that has the journal open, and has saved since it opened it."""
    process = python(HOLD, tmp_path)
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_a_second_process_is_refused_at_once_and_told_who_has_it(tmp_path, holder, monkeypatch):
    """The holder lets go when it is told to, so who waits for the lock waits for ever; nor does anybody sleep."""
    before = [(tmp_path / name).read_bytes() for name in ("state", "journal")]
    with monkeypatch.context() as patched:
        patched.setattr(time, "sleep", lambda seconds: pytest.fail(f"it sleeps for {seconds} s"))
        with pytest.raises(JournalError, match=f"process {holder.pid} is writing it") as refused:
            start(tmp_path)
    assert refused.value.reason == "in use"
    assert [(tmp_path / name).read_bytes() for name in ("state", "journal")] == before
    holder.communicate("\n")  # it closes, and the way is free
    with start(tmp_path) as live:
        assert image(live) == undisturbed(7)[-1]
    assert {path.name for path in tmp_path.iterdir()} - LOCKS == {"journal", "state"}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX")
def test_the_lock_dies_with_its_process(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with start(tmp_path) as live:
        assert image(live) == undisturbed(7)[-1]
        step(live)


def test_two_learners_of_one_process(tmp_path):
    with start(tmp_path) as live:
        step(live)
        for _ in range(2):
            with pytest.raises(JournalError, match="this very process is writing it"):
                start(tmp_path)
        (tmp_path / "again").symlink_to(tmp_path / "journal")
        with pytest.raises(JournalError, match="is writing it"):
            FileLock(tmp_path / "again").acquire()
        step(live)
    with start(tmp_path) as live:
        assert image(live) == undisturbed(2)[-1]


@pytest.mark.slow
def test_processes_that_fight_over_a_journal_lose_nothing(tmp_path):
    with start(tmp_path, fsync=False) as live:
        live.save(tmp_path / "state")
    processes = [python(TAKE_TURNS, tmp_path, 25) for _ in range(4)]
    acknowledged = sorted(int(line) for process in processes for line in process.communicate()[0].split())
    assert [process.returncode for process in processes] == [0] * 4
    assert acknowledged == list(range(1, 101))
    with start(tmp_path) as live:
        assert image(live) == undisturbed(100)[-1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX")
@pytest.mark.parametrize("name", ["journal", "again"])
def test_the_file_itself_is_locked(tmp_path, name):
    """Under another name, and where somebody took the file of the lock for a dead one's; after a checkpoint, too."""
    with start(tmp_path) as live:
        for _ in range(2):
            step(live)
            (tmp_path / "journal.lock").unlink(missing_ok=True)
            if name == "again":
                (tmp_path / name).unlink(missing_ok=True)
                (tmp_path / name).hardlink_to(tmp_path / "journal")
            with pytest.raises(JournalError, match="in use"):
                fresh(journal=tmp_path / name)
            live.checkpoint()
        step(live)
    with start(tmp_path) as live:
        assert image(live) == undisturbed(3)[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows deletes no file that is open")
@pytest.mark.parametrize("harm", ["deleted", "shortened", "lengthened"])
def test_a_journal_that_something_else_changed_takes_no_more(tmp_path, harm):
    path = tmp_path / "journal"
    with start(tmp_path, fsync=False) as live:
        step(live)
        before = image(live)
        if harm == "deleted":
            path.unlink()
            time.sleep(2 * journal.LOOK_EVERY)
        else:
            size = path.stat().st_size + (-1 if harm == "shortened" else 1)
            os.truncate(path, size)
        with pytest.raises(JournalError, match="not as this learner left it"):
            step(live)
        assert image(live) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX")
def test_links_stay_links_and_folders_may_change(tmp_path, monkeypatch):
    for folder in ("real", "elsewhere"):
        (tmp_path / folder).mkdir()
    for name in ("state", "journal"):
        (tmp_path / name).symlink_to(tmp_path / "real" / name)
    monkeypatch.chdir(tmp_path)
    with start(Path()) as live:
        step(live)
        live.save(tmp_path / "state")
        monkeypatch.chdir(tmp_path / "elsewhere")
        step(live)
        live.checkpoint()
        live.save(tmp_path / "real" / "state")  # the journal's own, by another name
        step(live)
        for folder in (tmp_path, tmp_path / "real"):
            with pytest.raises(JournalError, match="this very process is writing it"):
                start(folder)
    assert all((tmp_path / name).is_symlink() for name in ("state", "journal"))
    assert list((tmp_path / "elsewhere").iterdir()) == []
    with start(tmp_path / "real") as live:
        assert image(live) == undisturbed(3)[-1]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX")
@pytest.mark.parametrize("make", [os.mkdir, getattr(os, "mkfifo", None)])
def test_what_is_no_file_is_neither_waited_for_nor_read(tmp_path, make):
    for name in ("state", "journal"):
        make(tmp_path / name)
        with pytest.raises(SnapshotError, match="a folder or a device"):
            start(tmp_path)
        (tmp_path / name).rename(tmp_path / "aside")


# --- fork ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("scenario", live_fork.SCENARIOS)
def test_forked(tmp_path, scenario):
    """In a process of its own: one that has used JAX must not fork."""
    done = python(f"import live_fork; live_fork.{scenario}(live_fork.Path({str(tmp_path)!r}))")
    done.communicate()
    assert done.returncode == 0


# --- other systems ------------------------------------------------------------------------------------------


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    def refused(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks.fcntl, "flock", refused)
    with pytest.warns(NoLockWarning, match="has no locks"), start(tmp_path) as live:
        step(live)


class Windows:
    """The os module of a system that renames nothing over an open file."""

    name = "nt"

    def __getattr__(self, name):
        return getattr(os, name)


@pytest.mark.parametrize("fails", [False, True])
def test_a_save_where_open_files_cannot_be_replaced(tmp_path, monkeypatch, fails):
    with start(tmp_path) as live:
        replace = journal.write_atomically

        def replaced(path, data):
            assert live._recorded.journal._now.file.closed
            if fails:
                raise PermissionError
            replace(path, data)

        step(live)
        monkeypatch.setattr(journal, "os", Windows())
        monkeypatch.setattr(journal, "write_atomically", replaced)
        if fails:
            with pytest.raises(PermissionError):
                live.save(tmp_path / "state")
        else:
            live.save(tmp_path / "state")
        step(live)
    with start(tmp_path) as live:
        assert image(live) == undisturbed(2)[-1]


class Bytes:
    """The msvcrt module: ranges of bytes, of whole files here, each locked by one open file at a time."""

    LK_NBLCK = 2

    def __init__(self, refused):
        self._refused, self._held = refused, {}

    def locking(self, descriptor, mode, count):
        assert (mode, count) == (self.LK_NBLCK, 1)
        file = os.fstat(descriptor)
        assert os.lseek(descriptor, 0, os.SEEK_CUR) > file.st_size  # what is locked cannot be read: not the holder
        holder = self._held.get(file.st_ino)
        if holder not in (None, descriptor) and self._is_open(holder, file):  # its own number: closed, and given again
            raise OSError(self._refused, "locked")
        self._held[file.st_ino] = descriptor

    @staticmethod
    def _is_open(descriptor, file):
        try:
            return os.path.samestat(os.fstat(descriptor), file)
        except OSError:
            return False


@pytest.mark.parametrize("refused", [errno.EACCES, errno.EDEADLK, 0])
def test_as_windows_locks(tmp_path, monkeypatch, refused):
    """The branch of that system, on this one. (It was run there, too: `docs/what_survives.md`.)"""
    monkeypatch.setattr(locks, "msvcrt", Bytes(refused), raising=False)
    monkeypatch.setattr(locks.sys, "platform", "win32")
    one, other = FileLock(tmp_path / "journal").acquire(), FileLock(tmp_path / "journal")
    with pytest.raises(JournalError, match="this very process is writing it"):
        other.acquire()
    (tmp_path / "journal").touch()
    one.claim()
    assert one._itself is None  # nothing is renamed over an open file
    one.release()
    assert (tmp_path / "journal.lock").exists()  # another may have it open: it stays
    other.acquire()
    with pytest.raises(JournalError, match="this very process is writing it"):
        one.acquire()
    other.release()


@pytest.mark.parametrize("tries", [3, files.ATTEMPTS])
def test_windows_renames_once_nobody_has_the_file_open(tmp_path, monkeypatch, tries):
    class Busy(Windows):
        def replace(self, source, path):
            self.tried = getattr(self, "tried", 0) + 1
            if self.tried < tries or tries == files.ATTEMPTS:
                raise PermissionError(errno.EACCES, "Access denied")
            os.replace(source, path)  # noqa: PTH105

    (tmp_path / "new").write_bytes(b"new")
    monkeypatch.setattr(files, "os", Busy())
    monkeypatch.setattr(files.time, "sleep", lambda seconds: None)
    if tries == files.ATTEMPTS:
        with pytest.raises(PermissionError):
            files.replace_file(tmp_path / "new", tmp_path / "old")
        assert files.os.tried == tries
    else:
        files.replace_file(tmp_path / "new", tmp_path / "old")
        assert (tmp_path / "old").read_bytes() == b"new"


def test_the_holder_is_named_even_if_it_says_nothing(tmp_path):
    one, other = FileLock(tmp_path / "journal").acquire(), FileLock(tmp_path / "journal")
    (tmp_path / "journal.lock").write_bytes(b"")
    with pytest.raises(JournalError, match="another process is writing it"):
        other.acquire()
    (tmp_path / "journal.lock").write_bytes(b"12 elsewhere")
    with pytest.raises(JournalError, match="process 12 on elsewhere is writing it"):
        other.acquire()
    one.release()
    other.acquire().release()
    assert {path.name for path in tmp_path.iterdir()} - LOCKS == set()
