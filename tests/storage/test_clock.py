"""The time of stored objects."""

import math
from dataclasses import replace

import pytest

from clocks import ManualClock
from longterm.errors import DatabaseError, ExpiredTokenError, InputError
from longterm.learners import AOGD
from longterm.play import LiveLearner
from longterm.problems import two_dimensional
from longterm.storage import Clock

DAY = 86_400.0
PROBLEM = two_dimensional()
LEARNER = AOGD.for_problem(PROBLEM, steps="strongly convex", beta=0.5)


def test_a_deadline_is_over_at_the_earlier_of_both_times():
    clock = ManualClock()
    deadline = clock.deadline(60.0)
    clock.advance(59.0)
    assert not clock.is_over(deadline)
    clock.step(-3600.0)  # the wall clock is set back: the monotonic one ends it
    clock.advance(1.0)
    assert clock.is_over(deadline)
    deadline = clock.deadline(60.0)
    clock.step(60.0)  # a suspended machine
    assert clock.is_over(deadline)


@pytest.mark.parametrize("jump", [0.0, -1.0, math.nan, "day"])
def test_the_largest_jump_is_a_length(jump):
    with pytest.raises(InputError, match="largest_jump"):
        Clock(jump)


def test_a_clock_far_ahead_of_the_last_time_stored_is_refused(tmp_path):
    url, clock = tmp_path / "live.db", ManualClock()
    live = LiveLearner.open(url, LEARNER, PROBLEM, max_age=DAY, clock=clock)
    token = live.ask()
    ahead = ManualClock(times=[clock.wall() + 365 * DAY, 5.0])
    with pytest.raises(DatabaseError, match=r"365\.0 days ahead.*largest_jump"):
        LiveLearner.open(url, LEARNER, PROBLEM, max_age=DAY, clock=ahead)
    clock.step(365 * DAY)  # the clock of a process that runs
    with pytest.raises(DatabaseError, match=r"365\.0 days ahead"):
        live.ask()
    clock.step(-365 * DAY)
    assert live.in_flight == (token,)
    with LiveLearner.open(url, LEARNER, PROBLEM, max_age=DAY, clock=replace(ahead, largest_jump=math.inf)) as forced:
        forced.ask()
        with pytest.raises(ExpiredTokenError):
            forced.skip(token)


def test_an_object_that_was_idle_for_long_goes_on(tmp_path):
    clock = ManualClock()
    with LiveLearner.open(tmp_path / "live.db", LEARNER, PROBLEM, clock=clock) as live:
        live.ask()
        clock.advance(100 * DAY)
        live.ask()
        assert live.state.asked == 2
