"""An exception may be raised at any instruction: the call has happened or not, and the learner goes on."""

import linecache
import random
import signal
import sys
from typing import ClassVar

import numpy as np
import pytest

from live_plan import PROBLEM, fresh, image, learner, next_call, position, start, step
from longterm import LiveLearner
from longterm.errors import InUseError
from longterm.storage.sqlite import SQLiteEngine
from timer_signals import Alarm, Interrupted

pytestmark = [
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timer signals are POSIX"),
    pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
]


@pytest.mark.slow
@pytest.mark.parametrize("steps", [300, pytest.param(1500, marks=pytest.mark.cross)])
@pytest.mark.parametrize("stored", [True, False], ids=["database", "memory"])
def test_interrupted_by_signals_hundreds_of_times(tmp_path, stored, steps):
    """Compare with a learner that is not interrupted. The next call depends on nothing but the state."""
    dice = random.Random(0)
    mirror = fresh()
    live = start(tmp_path) if stored else fresh()
    hits = done = 0
    patience = 1e-4  # about the time of a call: half of the timers go off in one
    alarm = Alarm()
    with alarm.installed():
        while hits < steps:
            before = position(mirror)
            hit = alarm.interrupted(next_call(live), dice.uniform(1e-6, patience))
            patience *= 1.03 if hit else 0.97
            while position(mirror) < position(live):
                step(mirror)
                done += 1
            assert position(mirror) - before <= 1
            assert image(live) == image(mirror)
            if hit:
                hits += 1
                if stored and dice.random() < 0.3:
                    live.close()
                    live = start(tmp_path)
                    assert image(live) == image(mirror)
    live.close()
    assert done > steps // 3


FOLDERS = ["storage", "play/live_learner"]
"""The folders that a call of a live learner crosses, without those that only compute."""


class Trace:
    """A trace function that raises before the n-th line of the library that is run, and before `more` lines after it.

    It does not raise at `with` and `try`, where a trace function is called and a signal handler never is, nor in the
    modules that only compute.
    """

    reached: ClassVar[set[str]] = set()
    """The folders in which an interrupt was raised, by all of them."""

    def __init__(self, deadline, more):
        self.left, self.more = deadline, more

    def __call__(self, frame, event, argument):
        file = frame.f_code.co_filename
        folder = next((one for one in FOLDERS if f"longterm/{one}/" in file), None)
        if folder is None or file.endswith("specification.py"):
            return None
        if event == "line" and not linecache.getline(file, frame.f_lineno).lstrip().startswith(("with ", "try:")):
            self.left -= 1
            if self.left <= 0 and self.left > -1 - self.more:
                self.reached.add(folder)
                raise Interrupted
        return self


@pytest.mark.slow
@pytest.mark.parametrize("stored", [True, False], ids=["database", "memory"])
@pytest.mark.parametrize(
    ("what", "more"),
    [
        *((what, 0) for what in ("ask", "tell", "skip")),
        ("tell", 3),
        *(pytest.param(what, more, marks=pytest.mark.cross) for what in ("ask", "tell", "skip") for more in (1, 3)),
    ],
)
def test_interrupted_before_every_line_of_a_call(tmp_path, what, more, stored):
    """Interrupt also a second and a third time, while the first interrupt is being handled."""

    def call(live):
        if what == "ask":
            live.ask()
        elif what == "tell":
            live.tell(live.in_flight[0], loss_parameters=[np.array([0.3, 0.2])])
        else:
            live.skip(live.in_flight[0])

    images = [fresh(), fresh()]
    for one in images:
        one.ask()
        one.ask()
    call(images[1])
    allowed = [image(one) for one in images]
    tracer = sys.gettrace()
    for deadline in range(1, 10_000):
        folder = tmp_path / str(deadline)
        folder.mkdir()
        live = start(folder) if stored else fresh()
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
        now = image(live)
        assert now in allowed
        live.ask()
        after = image(live)
        live.close()
        if stored:
            with start(folder) as again:
                assert image(again) == after
        if trace.left > 0:
            break
    assert deadline > 20
    assert now == allowed[1]
    assert Trace.reached == set(FOLDERS)


def test_a_signal_handler_that_calls_the_learner_is_refused_and_does_not_wait_for_itself():
    live = LiveLearner(learner(), PROBLEM)
    answers = []

    def handler(frame, event, argument):
        if frame.f_code.co_name == "apply":
            with pytest.raises(InUseError, match="signal handler"):
                live.ask()
            answers.append(True)

    try:
        sys.settrace(handler)
        token = live.ask()
    finally:
        sys.settrace(None)
    assert answers
    live.tell(token, loss_parameters=[np.zeros(2)])


@pytest.mark.parametrize("call", ["state", "ask", "tell"])
def test_interrupted_right_after_a_statement_while_another_replica_writes(tmp_path, call, monkeypatch):
    """No transaction stays open, which would keep the other out, or swallow the next write."""
    execute = SQLiteEngine.execute
    for statement in range(1, 100):
        (tmp_path / str(statement)).mkdir()
        live, other = (start(tmp_path / str(statement)) for _ in range(2))
        live.ask()
        token = other.ask()
        left = statement

        def interrupted(engine, *arguments, mine=live._replica.database.engine):
            nonlocal left
            done = execute(engine, *arguments)
            left -= engine is mine
            if left == 0 and engine is mine:
                raise Interrupted
            return done

        monkeypatch.setattr(SQLiteEngine, "execute", interrupted)
        try:
            if call == "tell":
                live.tell(str(token), loss_parameters=[np.zeros(2)])
            elif call == "ask":
                live.ask()
            else:
                assert live.state.asked == 2
        except Interrupted:
            pass
        monkeypatch.setattr(SQLiteEngine, "execute", execute)
        assert not live._replica.database.engine.connection.in_transaction
        other.skip(other.ask())
        live.ask()
        assert image(live) == image(other)
        live.close()
        other.close()
        if left > 0:
            break
    assert statement > 3
