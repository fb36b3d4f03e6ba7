"""A process may die at any moment: nothing acknowledged is lost, and nothing happens that did not."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import live_plan
from live_plan import image, position, start, step, undisturbed
from longterm.errors import JournalError
from longterm.live import journal
from longterm.storage import files

STEPS = 23


class Died(BaseException):
    """The process is dead."""


class Dying:
    """The os module, for a process that dies in the n-th of these calls: half-way through a write, else before it.

    After its death nothing it tries has any effect, so no clean-up in the library can hide what a real death leaves.
    """

    def __init__(self, deadline: int, part: float) -> None:
        self.left = deadline
        self.part = part

    def __getattr__(self, name):
        return getattr(os, name)

    def _alive(self) -> None:
        self.left -= 1
        if self.left <= 0:
            raise Died

    def write(self, descriptor, data):
        if self.left == 1:
            os.write(descriptor, data[: int(self.part * len(data))])
        self._alive()
        return os.write(descriptor, data)

    def fsync(self, descriptor):
        self._alive()  # what a dead process wrote is in the system's memory, forced to the disk or not

    def replace(self, source, target):
        self._alive()
        os.replace(source, target)  # noqa: PTH105

    def ftruncate(self, descriptor, length):
        self._alive()
        os.ftruncate(descriptor, length)


def run_on(monkeypatch, system):
    """Let the library call this in the place of the os module."""
    monkeypatch.setattr(files, "os", system)
    monkeypatch.setattr(journal, "os", system)
    return system


def live_until_death(folder: Path) -> int:
    """What was acknowledged when death came; STEPS when it did not."""
    acknowledged = 0
    live = None
    try:
        live = start(folder)
        acknowledged = position(live)
        while acknowledged < STEPS:
            step(live)
            acknowledged = position(live)
            if acknowledged % live_plan.SAVE_EVERY == 0:
                live.save(folder / "state")
    except Died:
        pass
    finally:
        if live is not None:
            with contextlib.suppress(Died):
                live.close()
    return acknowledged


@pytest.mark.slow
@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
def test_death_in_any_call_to_the_system_leaves_a_learner_that_goes_on(tmp_path, monkeypatch, part):
    expected = undisturbed(STEPS)
    deadline, deaths = 0, 0
    while True:
        deadline += 1
        folder = tmp_path / str(deadline)
        folder.mkdir()
        dying = run_on(monkeypatch, Dying(deadline, part))
        acknowledged = live_until_death(folder)
        if dying.left > 0:
            break
        deaths += 1
        run_on(monkeypatch, Dying(10**9, part))
        with start(folder) as live:
            found = position(live)
            assert acknowledged <= found <= acknowledged + 1
            assert image(live) == expected[found]
        assert live_until_death(folder) == STEPS
        with start(folder) as live:
            assert image(live) == expected[STEPS]
    assert deaths > 2 * STEPS


@pytest.mark.slow
@pytest.mark.parametrize("kills", [60, pytest.param(200, marks=pytest.mark.cross)])
def test_killed_hundreds_of_times_at_random_moments(tmp_path, kills):
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, live_plan.__file__, str(tmp_path), str(kills), "1"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{kills} kills")


# --- a disk that fails, and a process that lives on ---------------------------------------------------------


class Full(Dying):
    """A disk that is full for one write, or will not confirm it; the process lives on."""

    def __init__(self, call: str) -> None:
        super().__init__(10**9, 0.5)
        self.call = call
        self.full = False

    def write(self, descriptor, data):
        if self.full and self.call == "write":
            os.write(descriptor, data[: len(data) // 2])
            raise OSError(28, "No space left on device")
        return os.write(descriptor, data)

    def fsync(self, descriptor):
        if self.full and self.call == "fsync":
            raise OSError(5, "Input/output error")


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_call_that_could_not_be_written_down_did_not_happen(tmp_path, monkeypatch, call):
    disk = run_on(monkeypatch, Full(call))
    with start(tmp_path) as live:
        for _ in range(STEPS):
            before = image(live)
            disk.full = True
            with pytest.raises(OSError, match=r"No space|Input/output"):
                step(live)
            with pytest.raises(OSError, match=r"No space|Input/output"):
                live.save(tmp_path / "state")
            assert image(live) == before
            disk.full = False
            step(live)
    with start(tmp_path) as live:
        assert image(live) == undisturbed(STEPS)[-1]


def test_a_closed_learner_says_so(tmp_path):
    with start(tmp_path) as live:
        step(live)
    for call in (lambda: step(live), lambda: live.save(tmp_path / "state")):
        with pytest.raises(JournalError) as refused:
            call()
        assert refused.value.reason == "closed"
    assert not (tmp_path / "state").exists()
