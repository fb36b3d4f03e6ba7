"""A small experiment for tests, learners that fail, and executors."""

import io
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from longterm import AOGD, Problem, run
from longterm.catalogue.scenarios import Scenario
from longterm.errors import DataError
from longterm.lab import Backend, run_experiment
from longterm.lab.experiments.spec_tables import spec_of
from longterm.problems import doubly_stochastic
from longterm.problems.constraints import Affine
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball
from longterm.problems.streams import RandomPermutations, Replay

TABLE = {
    "name": "small",
    "rounds": 60,
    "seeds": 3,
    "record": 10,
    "engine": "numpy",
    "problem": {"name": "doubly_stochastic", "size": 3},
    "learners": [{"learner": "aogd", "beta": [0.5, 0.75]}, {"learner": "mirror_prox"}],
}
SMALL = spec_of(TABLE)
HERE = Backend(workers=1)
"""All jobs in this process."""


def quietly(spec, folder, backend=HERE):
    return run_experiment(spec, folder, backend=backend, out=io.StringIO())


def files(folder):
    """Return the files that must not differ between two runs, by name."""
    every = (path for path in folder.rglob("*") if path.is_file() and path.name != "timings.json")
    return {str(path.relative_to(folder)): path.read_bytes() for path in every}


def lose_the_worker(problem, rounds):
    """Build a learner after killing the process once."""
    marker = Path(os.environ["LOSE_ONCE"])
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return AOGD.for_problem(problem)


def fixed_rounds():
    """Return a problem whose rounds are the same for every seed."""
    stream = Replay([np.random.default_rng(0).uniform(-0.5, 0.5, (60, 2))])
    return Scenario(Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.5])), stream, length=60)


class LeavesTheSet(AOGD):
    """A-OGD that plays far outside of its set."""

    def ask(self, state):
        return super().ask(state) + 1e3


def leave_the_set(problem, rounds):
    """Build a learner whose gradients exceed every bound."""
    return LeavesTheSet.for_problem(problem)


class Stops(AOGD):
    """A-OGD that stops on the sequence of seed 1, in round 30."""

    def update(self, state, feedback):
        if np.max(state.round) == 30:
            learner = AOGD.for_problem(doubly_stochastic(3))
            x = run(doubly_stochastic(3), learner, RandomPermutations(3), 29, seeds=1, progress=None).state.x
            if np.any(np.isclose(state.x, x, atol=1e-9).all(axis=-1)):
                raise ValueError("enough")
        return super().update(state, feedback)


def stop_on_the_second_sequence(problem, rounds):
    return Stops.for_problem(problem)


def refuse(problem, rounds):
    raise DataError("mine.csv", "is empty", "Fill it", line=3)


def lose_every_worker(problem, rounds):
    """Build a learner by killing the process, each time."""
    os.kill(os.getpid(), signal.SIGKILL)


def threads():
    return ThreadPoolExecutor(2)


def no_executor():
    return "an address"
