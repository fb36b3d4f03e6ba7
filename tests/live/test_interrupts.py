"""An exception may come out of any instruction: whatever raised has changed nothing or everything, and life goes on."""

import linecache
import os
import random
import signal
import sys
from functools import partial

import numpy as np
import pytest

from live_files import load
from live_plan import PROBLEM, fresh, image, learner, next_call, position, start, step
from longterm import LiveLearner
from longterm.errors import InUseError
from timer_signals import Alarm, Interrupted

pytestmark = [
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timer signals are POSIX"),
    # A file that was being opened when the signal came is closed by the collector of garbage, which says so.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    """An interrupt does not lose what the system was given."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [300, pytest.param(1500, marks=pytest.mark.cross)])
@pytest.mark.parametrize("journaled", [True, False], ids=["journal", "no journal"])
def test_interrupted_thousands_of_times_and_saved_and_loaded_after_each(tmp_path, journaled, steps):
    """The mirror is a learner that nothing happens to. step() depends on nothing but the state.

    1,800 interrupts with a journal and as many without; a fifth of them in `make test`.
    """
    dice = random.Random(0)
    mirror = fresh()
    live = start(tmp_path, fsync=False) if journaled else fresh()
    hits = {"step": 0, "save": 0}
    patience = {"step": 1e-4, "save": 1e-3}  # about as long as a call takes here: half of the timers go off in one
    done = 0
    alarm = Alarm()
    with alarm.installed():
        while hits["step"] < steps or hits["save"] < steps // 5:
            before = position(mirror)
            saving = dice.random() < 0.2
            call = partial(live.save, tmp_path / "state") if saving else next_call(live)
            kind = "save" if saving else "step"
            hit = alarm.interrupted(call, dice.uniform(1e-6, patience[kind]))
            patience[kind] *= 1.03 if hit else 0.97
            while position(mirror) < position(live):
                step(mirror)
                done += 1
            assert position(mirror) - before <= (0 if saving else 1)
            assert image(live) == image(mirror)
            if hit:
                hits[kind] += 1
                if dice.random() < 0.5:  # what a finally does
                    live.save(tmp_path / "state")
                elif not (tmp_path / "state").exists():
                    continue
                if journaled:
                    live.close()
                    live = load(tmp_path)
                    assert image(live) == image(mirror)
                elif dice.random() < 0.5:
                    live.save(tmp_path / "state")
                    assert image(load(tmp_path, journal=None)) == image(mirror)
    live.close()
    assert done > steps // 3


class Trace:
    """Raises before the n-th line of the library that is run, and before each of the `more` lines after it.

    Not in what only computes, from its arguments, what a learner is in words: nothing is half-done there.

    Not at `with` and `try`, where a trace function is called and a signal handler never is: before __exit__, and at an
    instruction that does nothing and that no handler of exceptions covers.
    """

    def __init__(self, deadline, more):
        self.left, self.more = deadline, more

    def __call__(self, frame, event, argument):
        file = frame.f_code.co_filename
        if ("longterm/live" not in file and "longterm/storage" not in file) or file.endswith("specification.py"):
            return None
        if event == "line" and not linecache.getline(file, frame.f_lineno).lstrip().startswith(("with ", "try:")):
            self.left -= 1
            if self.left <= 0 and self.left > -1 - self.more:
                raise Interrupted
        return self


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "more"),
    [
        *((what, 0) for what in ("ask", "tell", "skip", "save")),
        *((what, 3) for what in ("tell", "save")),
        *(pytest.param(what, 0, marks=pytest.mark.slow) for what in ("checkpoint", "backup")),
        *(pytest.param(what, 3, marks=pytest.mark.cross) for what in ("ask", "skip", "checkpoint", "backup")),
        *(
            pytest.param(what, 1, marks=pytest.mark.cross)
            for what in ("ask", "tell", "skip", "save", "checkpoint", "backup")
        ),
    ],
)
def test_interrupted_before_every_line_of_a_call(tmp_path, what, more):
    """Also a second and a third time, while the first is being cleaned up."""

    def call(live):
        if what == "ask":
            live.ask()
        elif what == "tell":
            live.tell(live.in_flight[0], loss_parameters=[np.array([0.3, 0.2])])
        elif what == "skip":
            live.skip(live.in_flight[0])
        elif what == "checkpoint":
            live.checkpoint()
        elif what == "backup":
            live.backup(tmp_path / "copy")
        else:
            live.save(tmp_path / "state")

    images = [fresh(), fresh()]
    for one in images:
        one.ask()
        one.ask()
    call(images[1])
    (tmp_path / "state").unlink(missing_ok=True)
    allowed = [image(one) for one in images]
    tracer = sys.gettrace()
    for deadline in range(1, 10_000):
        for name in ("journal", "state"):
            (tmp_path / name).unlink(missing_ok=True)
        live = start(tmp_path, fsync=False)
        live.ask()
        live.ask()
        trace = Trace(deadline, more)
        try:
            sys.settrace(trace)
            call(live)
        except Interrupted:
            pass
        finally:
            sys.settrace(tracer)
        now = image_of_settled(live)
        assert now in allowed
        assert not list(tmp_path.glob("*.partial")) or more
        live.save(tmp_path / "state")
        live.ask()
        after = image(live)
        live.close()
        with load(tmp_path) as again:
            assert image(again) == after
        if trace.left > 0:
            break
    assert deadline > 20
    assert now == allowed[1]


def image_of_settled(live):
    """What the learner remembers, once something was read of it: that settles what was interrupted."""
    assert position(live) >= 2
    return image(live)


def test_a_signal_handler_that_calls_the_learner_is_refused_and_does_not_wait_for_itself():
    live = LiveLearner(learner(), PROBLEM)
    answers = []

    def handler(frame, event, argument):
        if frame.f_code.co_name == "apply":
            with pytest.raises(InUseError, match="signal handler"):
                live.save("nowhere")
            answers.append(True)

    try:
        sys.settrace(handler)
        token = live.ask()
    finally:
        sys.settrace(None)
    assert answers
    live.tell(token, loss_parameters=[np.zeros(2)])
