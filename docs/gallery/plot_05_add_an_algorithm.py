"""
Add an algorithm, and rank it among all
=======================================

Assumes the extra ``experiments``. A learner is a frozen dataclass with ``init``, ``ask``, ``update`` and ``report``. If the
class and ``build`` are in a file ``mine.py``, this command in the same folder ranks it among all learners:
``longterm arena --out arena --add mine:build``.
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
    """Step along the gradient of f where g ≤ 0, and along that of g elsewhere."""

    enclosing_set: Set
    step: float

    def init(self, batch_shape=(), *, xp=None, dtype=None):
        """Start at the centre of the set."""
        import numpy as np

        xp = np if xp is None else xp
        return State(xp.asarray(1), self.initial_x(batch_shape, xp, dtype))

    def ask(self, state):
        """Return the decision."""
        return state.x

    def update(self, state, feedback):
        """Return the state after a round."""
        broken = (feedback.constraint > 0)[..., None]
        slope = broken * feedback.constraint_gradient + (~broken) * feedback.loss_gradient
        return State(state.round + 1, self.enclosing_set.project(state.x - self.step * slope))

    def report(self, state):
        """Record nothing."""
        return {}


def build(problem, rounds):
    """Make the learner for a problem; the arena calls this."""
    constants = problem.constants
    return Switching(problem.enclosing_set, constants.diameter / (constants.gradient_bound * rounds**0.5))


learners()["switching"] = LearnerEntry("switching", build)  # an entry point of your package does this permanently
spec = arena_of(["switching", "aogd", "aftrl"], ["doubly_stochastic size=3"], rounds=256, sequences=2)
with tempfile.TemporaryDirectory() as folder:
    found = run_arena(spec, folder, backend=Backend(workers=1), out=io.StringIO())
standings = league(found, Preference())
for row in standings:
    print(row)
figure, axis = plt.subplots(figsize=(6, 2.2), layout="constrained")
axis.barh([row.learner for row in standings][::-1], [row.score for row in standings][::-1])
axis.set_xlabel("score, lower is better")

# %%
# Next: :doc:`/tutorials/own_algorithm`. ``longterm.testing`` has the checks that every learner of this library passes.
