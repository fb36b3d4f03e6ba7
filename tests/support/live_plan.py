"""A service's life as a function of where it stands: what the crash tests do, undisturbed or not.

Run as a program it is the kill test: it lets a child process live that life and kills it at random moments.

    python tests/live_plan.py FOLDER KILLS SEED
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
from longterm.storage.packing import pack

PROBLEM = two_dimensional()
SAVE_EVERY = 5


@cache
def learner() -> AOGD:
    return AOGD.for_problem(PROBLEM, steps="strongly convex", beta=0.5)


def fresh(**options) -> LiveLearner:
    return LiveLearner(learner(), PROBLEM, max_in_flight=6, expire_after=9, **options)


def start(folder: Path, *, fsync: bool = True) -> LiveLearner:
    """What a service does when it comes up."""
    snapshot, journal = folder / "state", folder / "journal"
    if snapshot.exists():
        return LiveLearner.load(snapshot, learner(), PROBLEM, journal=journal, fsync=fsync)
    return fresh(journal=journal, fsync=fsync)


def position(live: LiveLearner) -> int:
    """How many things have happened: the plan goes on from there."""
    state = live.state
    return state.asked + state.told + state.skipped


def next_call(live: LiveLearner) -> Callable[[], object]:
    """The next thing to happen, which depends on nothing but the state."""
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
    """Let the next thing happen."""
    next_call(live)()


def image(live: LiveLearner) -> bytes:
    """Everything the learner remembers, to the bit."""
    return pack(live._recorded.memory.metadata(), live._recorded.memory.arrays())


def undisturbed(steps: int) -> list[bytes]:
    """The images after 0, 1, …, `steps` things."""
    live = fresh()
    images = [image(live)]
    for _ in range(steps):
        step(live)
        images.append(image(live))
    return images


def live_on(folder: Path, until: int, acknowledge) -> None:
    """Come up, say where we stand, and go on: save now and then, and acknowledge each thing once it is done."""
    with start(folder) as live:
        acknowledge(position(live))
        while position(live) < until:
            step(live)
            acknowledge(position(live))
            if position(live) % SAVE_EVERY == 0:
                live.save(folder / "state")


def life(folder: Path, until: int, patience: tuple[int, float] | None) -> list[int]:
    """One process; what it acknowledged, the first being where it came up.

    With patience (n, seconds) it is killed that many seconds after its n-th acknowledgement.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(read)
            live_on(folder, until, lambda done: os.write(write, f"{done}\n".encode()))
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
    acknowledged = written = halves = 0
    for _ in range(kills):
        heard = life(folder, 10**9, (dice.randrange(8), dice.uniform(0.0, 0.03)))
        if heard:
            assert acknowledged <= heard[0] <= acknowledged + 1, "an acknowledged thing was lost, or one was made up"
            assert heard == list(range(heard[0], heard[-1] + 1))
            written += heard[0] > acknowledged
            acknowledged = heard[-1]
        for half in folder.glob("*.partial"):
            halves += 1
            half.unlink()
    end = acknowledged + 20
    life(folder, end, None)
    with start(folder) as live:
        assert position(live) == end
        assert image(live) == undisturbed(end)[-1], "the end is not that of an undisturbed life"
    told = f"{kills} kills in {end} things: {halves} during a save, {written} between a write and its acknowledgement"
    sys.stdout.write(told + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
