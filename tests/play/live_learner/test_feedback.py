"""Feedback that a live learner cannot use is refused, and nothing has changed."""

import numpy as np
import pytest

from live_plan import image
from longterm import AOGD, Feedback, InputError, LiveLearner, observe
from longterm.errors import BrokenBoundError, BrokenBoundWarning, NonFiniteError
from longterm.learners import MahdaviOGD, ProjectedOGD
from longterm.problems import budgeted_logistic, doubly_stochastic, two_dimensional
from longterm.problems.sets import Ball
from longterm.theory.schedules import ConstantSchedule

PROBLEM = two_dimensional()
TARGET = [np.array([0.6, -0.3])]


def live(**options):
    return LiveLearner(AOGD.for_problem(PROBLEM, steps="strongly convex", beta=0.5), PROBLEM, **options)


GOOD = observe(PROBLEM, np.zeros(2), TARGET)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        ({}, "feedback"),
        ({"feedback": GOOD, "loss_parameters": TARGET}, "feedback"),
        ({"feedback": GOOD, "loss": lambda x: (0.0, x)}, "feedback"),
        ({"feedback": (1, 2, 3)}, "feedback"),
        ({"feedback": GOOD._replace(loss_gradient=np.array([np.nan, 0.0]))}, "loss_gradient"),
        ({"feedback": GOOD._replace(constraint_gradient=np.array([np.inf, 0.0]))}, "constraint_gradient"),
        ({"feedback": GOOD._replace(constraint=np.float64(np.nan))}, "constraint"),
        ({"feedback": GOOD._replace(loss=float("nan"))}, "loss"),
        ({"feedback": GOOD._replace(loss_gradient=np.zeros(3))}, "loss_gradient"),
        ({"feedback": GOOD._replace(loss_gradient=np.zeros(2, dtype=np.float32))}, "loss_gradient"),
        ({"feedback": GOOD._replace(loss_gradient=[0.0, 0.0])}, "loss_gradient"),
        ({"feedback": GOOD._replace(constraint="0")}, "constraint"),
        ({"feedback": GOOD._replace(loss_gradient=np.array([5.0, 0.0]))}, "loss_gradient"),
        ({"feedback": GOOD._replace(constraint=2.0)}, "constraint"),
        ({"loss": lambda x: (0.0, x)}, "constraint"),
        ({"constraint": lambda x: (0.0, x)}, "loss"),
        ({"loss": lambda x: 0.0, "constraint": lambda x: (0.0, x)}, "loss"),
        ({"loss": lambda x: (0.0, x), "constraint": lambda x: (0.0, list(x))}, "constraint_gradient"),
    ],
)
def test_bad_feedback_is_refused_and_the_token_stays_open(call, argument):
    learner = live()
    learner.tell(learner.ask(), loss_parameters=TARGET)
    token = learner.ask()
    before = image(learner)
    with pytest.raises(InputError) as refused:
        learner.tell(token, **call)
    assert refused.value.argument == argument
    assert refused.value.round == 2
    assert image(learner) == before
    learner.tell(token, loss_parameters=TARGET)


def test_an_error_in_a_function_of_the_user_changes_nothing():
    learner = live()
    token = learner.ask()
    before = image(learner)
    with pytest.raises(ZeroDivisionError):
        learner.tell(token, loss=lambda x: 1 / 0, constraint=lambda x: (0.0, x))
    assert image(learner) == before
    learner.tell(token, loss_parameters=TARGET)


def test_broken_bounds_may_be_waved_through():
    long = GOOD._replace(loss_gradient=np.array([5.0, 0.0]))
    learner = live(on_broken_bound="warn")
    with pytest.warns(BrokenBoundWarning, match="round 1") as warned:
        learner.tell(learner.ask(), long)
    assert warned[0].filename == __file__  # it points at the caller
    assert learner.state.told == 1
    with pytest.raises(NonFiniteError):
        learner.tell(learner.ask(), GOOD._replace(loss_gradient=np.array([np.nan, 0.0])))


def test_without_a_problem_the_learners_own_bound_is_what_is_checked():
    learner = LiveLearner(AOGD.for_problem(PROBLEM, steps="strongly convex", beta=0.5))
    learner.tell(learner.ask(), GOOD._replace(constraint=2.0))  # D is not known here
    with pytest.raises(BrokenBoundError):
        learner.tell(learner.ask(), GOOD._replace(loss_gradient=np.array([5.0, 0.0])))
    with pytest.raises(InputError, match="problem="):
        learner.tell(learner.in_flight[-1], loss_parameters=TARGET)


def test_an_update_that_overflows_is_refused():
    learner = LiveLearner(AOGD(Ball(2), ConstantSchedule(theta=1.0, eta=1e200, mu=0.1)))
    token = learner.ask()
    before = image(learner)
    with pytest.raises(NonFiniteError, match="not finite after this update"):
        learner.tell(token, Feedback(np.array([1e150, 0.0]), 0.0, np.zeros(2)))
    assert image(learner) == before


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"max_in_flight": 0}, "max_in_flight"),
        ({"max_in_flight": 2.5}, "max_in_flight"),
        ({"expire_after": -1}, "expire_after"),
        ({"expire_after": True}, "expire_after"),
        ({"on_broken_bound": "ignore"}, "on_broken_bound"),
    ],
)
def test_impossible_settings_are_refused(options, argument):
    with pytest.raises(InputError) as refused:
        live(**options)
    assert refused.value.argument == argument


def test_a_learner_for_another_problem_is_refused():
    with pytest.raises(InputError, match="dimension"):
        LiveLearner(AOGD(Ball(3), ConstantSchedule(theta=1.0, eta=0.1, mu=0.1)), PROBLEM)


def test_parameters_are_held_to_what_the_problem_asks_for():
    problem = two_dimensional()
    live = LiveLearner(AOGD.for_problem(problem), problem)
    token = live.ask()
    for parameters, argument in (
        ([np.array(0.5)], "target"),
        ([np.zeros(2), np.zeros(2)], "stream"),
        ([np.array(["a", "b"])], "target"),
    ):
        with pytest.raises(InputError) as refused:
            live.tell(token, loss_parameters=parameters)
        assert refused.value.argument == argument
    logistic = budgeted_logistic(np.eye(2), 1.0)
    live = LiveLearner(AOGD.for_problem(logistic), logistic)
    token = live.ask()
    with pytest.raises(InputError, match="label"):
        live.tell(token, loss_parameters=[np.array([1.0, 0.0]), 0])
    live.tell(token, loss_parameters=[np.array([1.0, 0.0]), 1])
    assert live.state.told == 1


def test_what_a_learner_needs_beyond_the_common_part_is_asked_for():
    problem = doubly_stochastic(2)
    live = LiveLearner(MahdaviOGD.for_problem(problem, horizon=1000, multipliers="each"), problem)
    token = live.ask()
    with pytest.raises(InputError, match="pullback"):
        live.tell(token, loss=lambda x: (0.0, 0 * x), constraint=lambda x: (0.0, 0 * x))
    live.tell(token, loss_parameters=[np.zeros(4)])


def test_a_bound_on_losses_alone_is_kept_without_a_problem():
    live = LiveLearner(ProjectedOGD.for_problem(two_dimensional()))
    with pytest.raises(BrokenBoundError, match="loss_gradient"):
        live.tell(live.ask(), Feedback(np.full(2, 1e6), 0.0, np.zeros(2)))
