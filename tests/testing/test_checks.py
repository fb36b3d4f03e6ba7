"""The checks of `longterm.testing` fail for learners with a fault."""

from dataclasses import dataclass

import numpy as np
import pytest

from longterm import AOGD, InputError
from longterm.problems import doubly_stochastic
from longterm.problems.streams import RandomPermutations
from longterm.testing.checks import (
    batch_row_equals_single,
    check_learner,
    is_pure,
    keeps_dtype,
    refuses_bad_feedback,
    split_equals_whole,
)

PROBLEM, STREAM = doubly_stochastic(2), RandomPermutations(2)


def test_a_sound_learner_passes():
    check_learner(PROBLEM, AOGD.for_problem(PROBLEM), STREAM)


@dataclass(frozen=True, eq=False)
class RefusesAll(AOGD):
    def tell(self, state, feedback):
        raise InputError("loss_gradient", "is refused", "Nothing helps", round=1)


@dataclass(frozen=True, eq=False)
class AcceptsAll(AOGD):
    def tell(self, state, feedback):
        return state


@dataclass(frozen=True, eq=False)
class Widens(AOGD):
    def update(self, state, feedback):
        state = super().update(state, feedback)
        return state._replace(x=state.x.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Mixes(AOGD):
    def update(self, state, feedback):
        state = super().update(state, feedback)
        return state._replace(x=state.x + 1e-6 * state.x.mean(axis=0))


@dataclass(frozen=True, eq=False)
class Remembers(AOGD):
    def update(self, state, feedback):
        object.__setattr__(self, "calls", getattr(self, "calls", 0) + 1)
        state = super().update(state, feedback)
        return state._replace(x=state.x * (1 - 1e-6 * self.calls))


@dataclass(frozen=True, eq=False)
class Mutates(AOGD):
    def update(self, state, feedback):
        state.x[...] += 1e-3
        return super().update(state, feedback)


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (RefusesAll, refuses_bad_feedback),
        (AcceptsAll, refuses_bad_feedback),
        (Widens, keeps_dtype),
        (Mixes, batch_row_equals_single),
        (Remembers, split_equals_whole),
        (Mutates, is_pure),
    ],
)
def test_a_faulty_learner_fails(kind, check):
    sound = AOGD.for_problem(PROBLEM)
    faulty = kind(sound.enclosing_set, sound.schedule)
    with pytest.raises((AssertionError, InputError, ValueError)):
        check(PROBLEM, faulty, STREAM)
