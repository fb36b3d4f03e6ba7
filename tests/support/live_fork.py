"""A live learner in a process that forks: what the child may do, and what becomes of the lock."""

import os
import signal
import time
from pathlib import Path

from live_plan import image, position, start, step, undisturbed
from longterm.errors import JournalError

SCENARIOS = (
    "a_child_reads_and_does_not_write",
    "a_child_that_outlives_its_parent_does_not_keep_the_lock",
    "a_lock_that_another_thread_had_does_not_hang_the_child",
)


def in_a_child(work) -> tuple[str, int]:
    """What `work` returned in a forked child, and the child's number."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, f"{work()}\n".encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        return pipe.readline().strip(), child


def reason(call) -> str:
    """Why it was refused."""
    try:
        call()
    except JournalError as error:
        return error.reason
    return "it was not refused"


def a_child_reads_and_does_not_write(folder: Path) -> None:
    def work():
        answers = [position(live), reason(lambda: step(live)), reason(lambda: live.save(folder / "state"))]
        live.close()
        return answers

    with start(folder) as live:
        for _ in range(3):
            step(live)
        answer, child = in_a_child(work)
        os.waitpid(child, 0)
        assert answer == "[3, 'in use', 'in use']", answer
        assert reason(lambda: start(folder)) == "in use"  # the child's end did not free it
        step(live)
        live.save(folder / "state")
        step(live)
    with start(folder) as live:
        assert image(live) == undisturbed(5)[-1]


def a_child_that_outlives_its_parent_does_not_keep_the_lock(folder: Path) -> None:
    def parent():
        live = start(folder)
        step(live)
        grandchild = os.fork()
        if grandchild == 0:
            time.sleep(60)
            os._exit(0)
        return grandchild

    grandchild, child = in_a_child(parent)
    os.waitpid(child, 0)
    try:
        deadline = time.monotonic() + 20  # the grandchild may not have run yet
        while reason(lambda: start(folder).close()) == "in use" and time.monotonic() < deadline:
            time.sleep(0.01)
        with start(folder) as live:
            assert image(live) == undisturbed(1)[-1]
    finally:
        os.kill(int(grandchild), signal.SIGKILL)


def a_lock_that_another_thread_had_does_not_hang_the_child(folder: Path) -> None:
    with start(folder) as live, live._lock:  # as if a thread were in the middle of a call
        answer, child = in_a_child(lambda: position(live))
        os.waitpid(child, 0)
    assert answer == "0", answer
