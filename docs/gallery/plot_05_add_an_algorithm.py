"""
Add an algorithm, and rank it among all
=======================================

Assumes the extra ``experiments``. A learner is a frozen dataclass with ``init``, ``ask``, ``update`` and ``report``. On the
command line, with the class and ``build`` in a file ``mine.py`` of the same folder: ``longterm arena --out arena --add mine:build``.
"""

import io
import tempfile
from dataclasses import dataclass
from typing import NamedTuple

import matplotlib.pyplot as plt

from longterm import Learner
from longterm.catalogue.entries import LearnerEntry
from longterm.catalogue.lookup import learners
from longterm.lab import Backend
from longterm.lab.arena import Preference, arena_of, league, run_arena
from longterm.problems.sets import Set


class State(NamedTuple):
    """The round, and the decision."""

    round: object
    x: object


@dataclass(frozen=True, eq=False)
class Switching(Learner):
    """A gradient step on f where g ≤ 0, on g where it is not."""

    enclosing_set: Set
    step: float

    def init(self, batch_shape=(), *, xp=None, dtype=None):
        """X starts at the centre."""
        import numpy as np

        xp = np if xp is None else xp
        return State(xp.asarray(1), self.initial_x(batch_shape, xp, dtype))

    def ask(self, state):
        """The decision."""
        return state.x

    def update(self, state, feedback):
        """The rule."""
        broken = (feedback.constraint > 0)[..., None]
        slope = broken * feedback.constraint_gradient + (~broken) * feedback.loss_gradient
        return State(state.round + 1, self.enclosing_set.project(state.x - self.step * slope))

    def report(self, state):
        """Nothing to keep."""
        return {}


def build(problem, rounds):
    """What the arena calls."""
    constants = problem.constants
    return Switching(problem.enclosing_set, constants.diameter / (constants.gradient_bound * rounds**0.5))


learners()["switching"] = LearnerEntry("switching", build)  # an entry point of your package does this for good
spec = arena_of(["switching", "aogd", "aftrl"], ["doubly_stochastic size=3"], rounds=256, sequences=2)
with tempfile.TemporaryDirectory() as folder:
    found = run_arena(spec, folder, backend=Backend(workers=1), out=io.StringIO())
standings = league(found, Preference())
for row in standings:
    print(row)
figure, axis = plt.subplots(figsize=(6, 2.2), layout="constrained")
axis.barh([row.learner for row in standings][::-1], [row.score for row in standings][::-1])
axis.set_xlabel("score: less is better")

# %%
# Next: :doc:`/tutorials/own_algorithm`; ``longterm.testing`` puts a learner through the project's own checks.
