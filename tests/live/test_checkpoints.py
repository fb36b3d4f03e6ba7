"""Journals stay short by themselves, backups leave them alone, and a full disk costs nothing that was acknowledged."""

import errno
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from live_files import load
from live_plan import PROBLEM, fresh, image, learner, position, start, step, undisturbed
from longterm import InputError, LiveLearner
from longterm.errors import JournalError
from longterm.live import journal as journals
from longterm.live.checkpoints import LongJournalWarning
from longterm.storage import files

TARGET = [np.array([0.3, -0.2])]


def opened(folder, **options):
    options = {"fsync": False, "max_in_flight": 6, "expire_after": 9} | options
    return LiveLearner.open(folder / "state", learner(), PROBLEM, journal=folder / "journal", **options)


def steps(live, count):
    for _ in range(count):
        step(live)


def settled(live):
    """The learner, once nothing is written in the background."""
    if live._recorded.checkpoints.thread is not None:
        live._recorded.checkpoints.thread.join()
    return live


# --- checkpoints --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_journal_does_not_grow_for_ever(tmp_path):
    sizes = []
    with opened(tmp_path, checkpoint_after=50) as live:
        for _ in range(1000):
            step(settled(live))
            sizes.append((tmp_path / "journal").stat().st_size)
        last = settled(live)._recorded.journal.start.sequence
        assert last > 900
    assert max(sizes) < 12_000
    with opened(tmp_path) as live:
        assert image(live) == undisturbed(1000)[-1]
        step(live)
    assert [path.name for path in tmp_path.iterdir()] == ["journal"]


def test_by_bytes_too(tmp_path):
    with opened(tmp_path, checkpoint_after=(10**9, 4000)) as live:
        for _ in range(300):
            step(settled(live))
        assert settled(live)._recorded.journal.start.sequence > 200
    with opened(tmp_path) as live:
        assert image(live) == undisturbed(300)[-1]


def test_checkpoints_beside_threads_that_ask_and_tell(tmp_path):
    with LiveLearner(learner(), PROBLEM, journal=tmp_path / "journal", fsync=False, checkpoint_after=40) as live:

        def work():
            for _ in range(400):
                live.tell(live.ask(), loss_parameters=TARGET)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        settled(live)
        assert live._recorded.journal.start.sequence > 0
        assert live.state.told == 1200
    with LiveLearner(learner(), PROBLEM, journal=tmp_path / "journal", fsync=False) as again:
        assert image(again) == image(live)


def test_a_checkpoint_by_hand(tmp_path):
    with opened(tmp_path) as live:
        for _ in range(100):
            step(live)
        long = (tmp_path / "journal").stat().st_size
        live.checkpoint()
        assert (tmp_path / "journal").stat().st_size < long / 2
        live.checkpoint()  # twice is once
        step(live)
    with opened(tmp_path) as live:
        assert image(live) == undisturbed(101)[-1]
    fresh().checkpoint()  # without a journal there is nothing to do


def test_a_snapshot_taken_before_the_checkpoint_still_fits(tmp_path):
    """Saved, and killed before the new journal; come up, and the old journal was shortened: the snapshot fits."""
    with start(tmp_path, fsync=False) as live:
        for _ in range(12):
            step(live)
        old = (tmp_path / "journal").read_bytes()
        live.save(tmp_path / "state")
    (tmp_path / "journal").write_bytes(old)
    for _ in range(3):
        with load(tmp_path) as live:
            step(live)
            live.checkpoint()
    with load(tmp_path) as live:
        assert image(live) == undisturbed(15)[-1]


def test_a_shortened_journal_of_another_past_is_refused(tmp_path):
    with start(tmp_path, fsync=False) as live:
        for _ in range(12):
            step(live)
        live.backup(tmp_path / "state")
    (tmp_path / "journal").unlink()
    with fresh(journal=tmp_path / "journal", fsync=False) as other:
        for _ in range(10):
            other.skip(other.ask())
        other.checkpoint()
    with pytest.raises(JournalError, match="its past is not that of the snapshot"):
        load(tmp_path)


def test_a_journal_that_nothing_shortens_is_warned_of_once(tmp_path, monkeypatch):
    monkeypatch.setattr("longterm.live.checkpoints.CHECKPOINT_AFTER", (10, 10**9))
    with opened(tmp_path, checkpoint_after=None) as live:
        with pytest.warns(LongJournalWarning, match="nothing shortens it") as seen:
            steps(live, 100)
        assert len(seen) == 1


@pytest.mark.parametrize("nonsense", [0, -1, 1.5, True, "often", (1,), (1, 0), (1, 2, 3)])
def test_what_checkpoint_after_cannot_be(nonsense):
    with pytest.raises(InputError, match="checkpoint_after"):
        fresh(checkpoint_after=nonsense)


def test_what_a_dead_writer_left_is_removed(tmp_path):
    (tmp_path / "journal.0123abcd.partial").write_bytes(b"half a journal")
    (tmp_path / "journal.mine.partial").write_bytes(b"something else")
    with opened(tmp_path):
        assert sorted(path.name for path in tmp_path.glob("*.partial")) == ["journal.mine.partial"]


# --- backups, and whose snapshot it is ----------------------------------------------------------------------


@pytest.mark.parametrize("call", ["backup", "save"])
def test_a_backup_leaves_the_source_alone(tmp_path, call):
    with start(tmp_path, fsync=False) as live:
        for _ in range(10):
            step(live)
        live.save(tmp_path / "state")
        step(live)
        before = (tmp_path / "journal").read_bytes(), (tmp_path / "state").read_bytes()
        getattr(live, call)(tmp_path / "copy")
        assert ((tmp_path / "journal").read_bytes(), (tmp_path / "state").read_bytes()) == before
        step(live)
    with start(tmp_path, fsync=False) as live:
        assert image(live) == undisturbed(12)[-1]
    options = {"learner": learner(), "problem": PROBLEM, "fsync": False}
    assert image(LiveLearner.load(tmp_path / "copy", **options)) == undisturbed(11)[-1]
    with LiveLearner.load(tmp_path / "copy", journal=tmp_path / "journal", **options) as live:
        assert image(live) == undisturbed(12)[-1]  # its own life's journal goes on from it
        live.checkpoint()
    with LiveLearner.load(tmp_path / "copy", journal=tmp_path / "journal", **options) as live:
        assert image(live) == undisturbed(12)[-1]
    with LiveLearner.load(tmp_path / "copy", journal=tmp_path / "new", **options) as live:
        step(live)
    with LiveLearner.load(tmp_path / "copy", journal=tmp_path / "new", **options) as live:
        assert image(live) == undisturbed(12)[-1]


def test_the_journals_own_snapshot_is_no_backup(tmp_path):
    with start(tmp_path, fsync=False) as live:
        live.save(tmp_path / "state")
        with pytest.raises(InputError, match="own snapshot"):
            live.backup(tmp_path / "." / "state")
        with pytest.raises(InputError, match="is the journal"):
            live.backup(tmp_path / "journal")


def test_a_learner_without_the_journal_does_not_replace_its_snapshot(tmp_path):
    with start(tmp_path, fsync=False) as live:
        step(live)
        live.save(tmp_path / "state")
        step(live)
        other = load(tmp_path, journal=None)
        step(other)
        for _ in range(2):
            with pytest.raises(JournalError, match="is writing it"):
                other.save(tmp_path / "state")
        step(live)
    with pytest.raises(InputError, match="with a journal"):  # nobody has it open now, but it is still the journal's
        other.save(tmp_path / "state")
    with pytest.raises(InputError, match="with a journal"):
        other.backup(tmp_path / "state")
    other.save(tmp_path / "elsewhere")
    with start(tmp_path, fsync=False) as live:
        assert image(live) == undisturbed(3)[-1]


def test_coming_up_is_one_step(tmp_path):
    """Whether there is a snapshot is asked with the lock in hand, so that two first starts cannot cross."""
    with opened(tmp_path) as live:
        step(live)
        with pytest.raises(JournalError, match="is writing it"):
            opened(tmp_path)
        live.save(tmp_path / "state")
        step(live)
    with opened(tmp_path) as live:
        assert image(live) == undisturbed(2)[-1]


FIRST_START = """
import sys
from pathlib import Path
from live_plan import PROBLEM, learner, position, step
from longterm import LiveLearner
from longterm.errors import JournalError
folder, done = Path(sys.argv[1]), 0
while done < 20:
    try:
        live = LiveLearner.open(folder / "state", learner(), PROBLEM, journal=folder / "journal", fsync=False,
                                max_in_flight=6, expire_after=9, checkpoint_after=7)
    except JournalError as error:
        assert error.reason == "in use", error
        continue
    with live:
        step(live)
        done += 1
        print(position(live), flush=True)
        if done % 3 == 0:
            live.save(folder / "state")
"""


@pytest.mark.slow
def test_processes_that_start_for_the_first_time_at_once(tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", FIRST_START, str(tmp_path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(3)]
    heard = sorted(int(line) for process in processes for line in process.communicate()[0].split())
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert heard == list(range(1, 61))
    with opened(tmp_path) as live:
        assert image(live) == undisturbed(60)[-1]


# --- a full disk --------------------------------------------------------------------------------------------


class Disk:
    """The os module of a disk with room for so many bytes, which a write may fill half-way."""

    def __init__(self, room):
        self.room = room

    def __getattr__(self, name):
        return getattr(os, name)

    def write(self, descriptor, data):
        if self.room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        some = bytes(data)[: self.room]
        self.room -= len(some)
        return os.write(descriptor, some)


@pytest.fixture
def disk(monkeypatch):
    disk = Disk(10**9)
    monkeypatch.setattr(files, "os", disk)
    monkeypatch.setattr(journals, "os", disk)
    return disk


@pytest.mark.slow
def test_nothing_is_left_behind_and_the_learner_goes_on(tmp_path, disk):
    mirror = fresh()
    with opened(tmp_path) as live:
        for room in range(0, 400, 3):
            for call in (
                lambda: step(live),
                lambda: live.save(tmp_path / "state"),
                live.checkpoint,
                lambda: live.backup(tmp_path / "copy"),
            ):
                disk.room, before = room, image(live)
                try:
                    call()
                except OSError as error:
                    assert error.errno == errno.ENOSPC  # noqa: PT017
                    assert image(live) == before
                disk.room = 10**9
                while position(mirror) < position(live):
                    step(mirror)
                assert image(live) == image(mirror)
            assert not list(tmp_path.glob("*.partial"))
            assert live.state.asked == mirror.state.asked
            step(live)
    with opened(tmp_path) as live:
        assert image(live) == undisturbed(position(live))[-1]
    assert {path.name for path in tmp_path.iterdir()} <= {"journal", "state", "copy"}


def test_the_error_says_what_to_do(tmp_path, disk):
    with opened(tmp_path) as live:
        disk.room = 10
        with pytest.raises(OSError, match="No space") as refused:
            live.ask()
        assert "Make room on the disk and call again" in refused.value.__notes__[0]
        disk.room = 10**9
        live.ask()


@pytest.mark.filterwarnings("ignore::longterm.live.checkpoints.LongJournalWarning")
def test_a_checkpoint_that_finds_no_room_costs_no_request(tmp_path, disk):
    with opened(tmp_path, checkpoint_after=20) as live:
        for _ in range(200):
            disk.room = 300  # a record fits, a base does not
            step(live)
            disk.room = 300
            settled(live)
        assert live._recorded.journal.start.sequence == 0
        disk.room = 10**9
        for _ in range(40):
            step(settled(live))
        assert settled(live)._recorded.journal.start.sequence > 0
    with opened(tmp_path) as live:
        assert image(live) == undisturbed(240)[-1]
    assert not list(tmp_path.glob("*.partial"))


SMALL_FILES = """
import resource, signal, sys
from pathlib import Path
from live_plan import PROBLEM, learner, position, step
from longterm import LiveLearner
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder = Path(sys.argv[1])
live = LiveLearner.open(folder / "state", learner(), PROBLEM, journal=folder / "journal", fsync=False,
                        max_in_flight=6, expire_after=9, checkpoint_after=None)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
refused = 0
for _ in range(200):
    try:
        step(live)
    except OSError as error:
        refused += 1
        assert live.state.asked > 0
        if refused % 3 == 0:
            live.checkpoint()
print(position(live), refused, flush=True)
"""


@pytest.mark.slow
def test_files_that_may_not_grow(tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", SMALL_FILES, str(tmp_path)], capture_output=True, text=True, check=True, env=environment
    )
    end, refused = map(int, done.stdout.split())
    assert refused > 0
    assert end + refused == 200
    with opened(tmp_path) as live:
        assert image(live) == undisturbed(end)[-1]


def test_a_save_cut_short_after_a_checkpoint_is_still_known_after_the_next_one(tmp_path, monkeypatch):
    """The snapshot was put in place, the journal not begun afresh; the checkpoint before was at the same place."""
    with start(tmp_path) as live:
        step(live)
        live.checkpoint()
        monkeypatch.setattr(journals.Journal, "rotate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            live.save(tmp_path / "state")
        monkeypatch.undo()
    for rounds in (2, 3):
        with start(tmp_path) as live:
            step(live)
            live.checkpoint()
            assert image(live) == undisturbed(rounds)[-1]
    with start(tmp_path) as live:
        assert image(live) == undisturbed(3)[-1]


def interrupted(*_):
    raise KeyboardInterrupt
