"""A service whose next call depends on nothing but its state, undisturbed or killed at random moments.

Run as a program it is the kill test:

    python tests/support/live_plan.py FOLDER KILLS SEED
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np

from longterm import AOGD, LiveLearner
from longterm.problems import two_dimensional
from longterm.storage.packing import pack, state_arrays

PROBLEM = two_dimensional()
LIMITS = {"max_in_flight": 6, "expire_after": 9}


@cache
def learner() -> AOGD:
    return AOGD.for_problem(PROBLEM, steps="strongly convex", beta=0.5)


def fresh(**options) -> LiveLearner:
    return LiveLearner(learner(), PROBLEM, **{**LIMITS, **options})


def start(folder: Path, **options) -> LiveLearner:
    """Start a service."""
    options = {"durability": "relaxed", **LIMITS, **options}
    return LiveLearner.open(folder / "service.db", learner(), PROBLEM, **options)


def position(live: LiveLearner) -> int:
    """Return the number of calls that took effect."""
    state = live.state
    return state.asked + state.told + state.skipped


def next_call(live: LiveLearner) -> Callable[[], object]:
    """Return the next call, which depends on nothing but the state."""
    rng = np.random.default_rng(position(live))
    tokens = live.in_flight
    choice = rng.random()
    if not tokens or (choice < 0.5 and len(tokens) < 6):
        return live.ask
    token = tokens[rng.integers(len(tokens))]
    if choice > 0.95:
        return partial(live.skip, token)
    target = np.random.default_rng(token.number).uniform(-0.7, 0.7, 2)
    return partial(live.tell, token, loss_parameters=[target])


def step(live: LiveLearner) -> None:
    """Make the next call."""
    next_call(live)()


def image(live: LiveLearner) -> bytes:
    """Return the whole state as bytes, except for epochs and times."""
    _ = live.state
    copy = live._replica.copy
    state, sums, counters = copy.state
    arrays = {**state_arrays(state), **{name: np.asarray(value) for name, value in sums._asdict().items()}}
    arrays |= {f"open.{number}": found.content for number, found in copy.open.items()}
    return pack({"counters": counters, "asked": copy.asked}, arrays)


def undisturbed(steps: int) -> list[bytes]:
    """Return the images after 0, 1, …, `steps` calls."""
    live = fresh()
    images = [image(live)]
    for _ in range(steps):
        step(live)
        images.append(image(live))
    return images


def serve(folder: Path, until: int, acknowledge) -> None:
    """Start, say where we stand, and go on; acknowledge each call once it has returned."""
    with start(folder) as live:
        acknowledge(position(live))
        while position(live) < until:
            step(live)
            acknowledge(position(live))


def process(folder: Path, until: int, patience: tuple[int, float] | None) -> list[int]:
    """Run one process and return what it acknowledged, the first being where it started.

    With patience (n, seconds) it is killed that many seconds after its n-th acknowledgement.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(read)
            serve(folder, until, lambda done: os.write(write, f"{done}\n".encode()))
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as pipe:
        heard: list[int] = []
        if patience is not None:
            heard += [int(pipe.readline()) for _ in range(patience[0])]
            time.sleep(patience[1])
            os.kill(child, signal.SIGKILL)
        heard += [int(line) for line in pipe]
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) if patience is not None else status == 0, "the service failed by itself"
    return heard


def main(folder: Path, kills: int, seed: int) -> None:
    dice = random.Random(seed)
    undisturbed(20)  # everything is imported and warm before the first child is born
    acknowledged = written = 0
    for _ in range(kills):
        heard = process(folder, 10**9, (dice.randrange(8), dice.uniform(0.0, 0.03)))
        if heard:
            assert acknowledged <= heard[0] <= acknowledged + 1, "an acknowledged call was lost, or one was made up"
            assert heard == list(range(heard[0], heard[-1] + 1))
            written += heard[0] > acknowledged
            acknowledged = heard[-1]
    end = acknowledged + 20
    process(folder, end, None)
    with start(folder) as live:
        assert position(live) == end
        assert image(live) == undisturbed(end)[-1], "the end is not that of an undisturbed service"
    sys.stdout.write(f"{kills} kills in {end} calls: {written} between a commit and its acknowledgement\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
