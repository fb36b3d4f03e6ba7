"""Bad input: an exception that names argument, round and remedy; the state as it was; the next good call works."""

import numpy as np
import pytest

from longterm import (
    AOGD,
    BrokenBoundError,
    BrokenBoundWarning,
    InputError,
    NonFiniteError,
    Problem,
    StreamEndedError,
    compare,
    run,
    two_dimensional,
)
from longterm.constraints import Affine, CustomConstraint
from longterm.feedback import Feedback
from longterm.losses import CustomLoss, Linear
from longterm.sets import Ball
from longterm.streams import FromIterable, RandomCosts, RandomPermutations, Replay, ResampledRows

PROBLEM = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.5]))
LEARNER = AOGD.convex(PROBLEM)


def feedback(**changed):
    good = {
        "loss_gradient": np.array([0.5, 0.5]),
        "constraint": np.asarray(0.1),
        "constraint_gradient": np.array([1.0, 0.0]),
        "loss": np.asarray(0.0),
    }
    return Feedback(**{**good, **changed})


@pytest.mark.parametrize(
    ("changed", "error", "argument"),
    [
        ({"loss_gradient": np.array([np.nan, 0.0])}, NonFiniteError, "loss_gradient"),
        ({"loss_gradient": np.array([np.inf, 0.0])}, NonFiniteError, "loss_gradient"),
        ({"constraint_gradient": np.array([0.0, -np.inf])}, NonFiniteError, "constraint_gradient"),
        ({"constraint": np.asarray(np.nan)}, NonFiniteError, "constraint"),
        ({"constraint": float("inf")}, NonFiniteError, "constraint"),
        ({"loss": np.asarray(np.nan)}, NonFiniteError, "loss"),
        ({"loss_gradient": np.array([3.0, 0.0])}, BrokenBoundError, "loss_gradient"),
        ({"constraint_gradient": np.array([0.0, 1.1])}, BrokenBoundError, "constraint_gradient"),
        ({"loss_gradient": np.zeros(3)}, InputError, "loss_gradient"),
        ({"loss_gradient": np.zeros((1, 2))}, InputError, "loss_gradient"),
        ({"constraint": np.zeros(2)}, InputError, "constraint"),
        ({"loss_gradient": np.zeros(2, dtype=np.float32)}, InputError, "loss_gradient"),
        ({"loss_gradient": np.zeros(2, dtype=np.int64)}, InputError, "loss_gradient"),
        ({"loss_gradient": np.zeros(2, dtype=complex)}, InputError, "loss_gradient"),
        ({"loss_gradient": np.array(["a", "b"])}, InputError, "loss_gradient"),
        ({"loss_gradient": [0.0, 0.0]}, InputError, "loss_gradient"),
        ({"constraint_gradient": None}, InputError, "constraint_gradient"),
    ],
)
def test_tell_refuses_and_the_next_good_call_works(changed, error, argument):
    state = LEARNER.tell(LEARNER.init(), feedback())
    before = [np.array(field) for field in state]
    with pytest.raises(error) as refused:
        LEARNER.tell(state, feedback(**changed))
    assert (refused.value.argument, refused.value.round) == (argument, 2)
    assert refused.value.remedy
    assert f"{argument} in round 2" in str(refused.value)
    for kept, field in zip(before, state, strict=True):
        np.testing.assert_array_equal(kept, field)
    assert int(LEARNER.tell(state, feedback()).round) == 3


def test_tell_can_warn_of_a_broken_bound_and_go_on():
    with pytest.warns(BrokenBoundWarning, match="has size 3"):
        state = LEARNER.tell(LEARNER.init(), feedback(loss_gradient=np.array([3.0, 0.0])), on_broken_bound="warn")
    assert int(state.round) == 2


def test_a_gradient_at_its_bound_is_not_above_it():
    third = np.array([np.cos(1.0), np.sin(1.0)])  # unit length, up to rounding
    assert int(LEARNER.tell(LEARNER.init(), feedback(loss_gradient=third * (1 + 1e-12))).round) == 2


def costs_with(t, value):
    costs = RandomCosts(2).draw(0, 0, 50).loss[0].copy()
    costs[t - 1] = value
    return costs


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_run_stops_before_the_bad_round_and_can_be_resumed(value):
    with pytest.raises(NonFiniteError) as stopped:
        run(PROBLEM, LEARNER, Replay([costs_with(33, value)]))
    assert stopped.value.round == 33
    trace = stopped.value.trace
    assert trace.last_round == 32
    good = Replay([costs_with(33, [0.6, 0.8])])
    resumed = run(PROBLEM, LEARNER, good, resume=trace)
    assert resumed.cumulative_loss[-1] == run(PROBLEM, LEARNER, good).cumulative_loss[-1]


def test_one_bad_row_of_a_batch_is_named():
    rows = ResampledRows(np.array([[1.0, 0.0], [0.0, np.nan]]), np.array([1.0, -1.0]))
    from longterm.losses import Logistic

    problem = Problem(Ball(2), Logistic(2, feature_norm=1.0), Affine([[1.0, 0.0]], [0.5]))
    with pytest.raises(NonFiniteError, match="at index"):
        run(problem, AOGD.convex(problem), rows, 100, seeds=range(5))


def test_a_broken_bound_stops_the_run_or_is_recorded():
    stream = Replay([costs_with(20, [3.0, 4.0])])
    with pytest.raises(BrokenBoundError, match="has size 5, above the declared bound 1") as stopped:
        run(PROBLEM, LEARNER, stream)
    assert (stopped.value.argument, stopped.value.round) == ("loss_gradient", 20)
    trace = run(PROBLEM, LEARNER, stream, on_broken_bound="warn")
    assert trace.last_round == 50
    (note,) = trace.warnings
    assert "loss_gradient in round 20" in note


def test_a_learner_made_for_a_smaller_G_stops_too():
    from longterm.schedules import ConvexSchedule

    careful = AOGD(Ball(2), ConvexSchedule(2.0, 0.5))
    with pytest.raises(BrokenBoundError):
        run(PROBLEM, careful, RandomCosts(2), 10)


def test_a_constraint_above_its_declared_bound_stops():
    g = CustomConstraint(2, lambda x: x[..., 0] - 0.5, lambda x: x * 0 + [1.0, 0.0], 1.0, declared_bound=0.1)
    problem = Problem(Ball(2), Linear(2), g)
    with pytest.raises(BrokenBoundError, match=r"constraint in round 1: has size 0\.5"):
        run(problem, AOGD.convex(problem), RandomCosts(2), 10)


def test_in_a_comparison_every_trace_survives_and_resumes():
    bad, good = Replay([costs_with(33, np.nan)]), Replay([costs_with(33, [1.0, 0.0])])
    learners = {"a": LEARNER, "b": AOGD.convex(PROBLEM, 0.4)}
    with pytest.raises(NonFiniteError) as stopped:
        compare(PROBLEM, learners, bad)
    assert set(stopped.value.trace) == {"a", "b"}
    resumed = compare(PROBLEM, learners, good, resume=stopped.value.trace)
    whole = compare(PROBLEM, learners, good)
    for name in learners:
        assert resumed[name].cumulative_loss[-1] == whole[name].cumulative_loss[-1]


@pytest.mark.parametrize(
    ("call", "error", "argument"),
    [
        (lambda: run(PROBLEM, LEARNER, FromIterable([])), StreamEndedError, "stream"),
        (lambda: run(PROBLEM, LEARNER, Replay([np.zeros((0, 2))])), InputError, "stream"),
        (lambda: run(PROBLEM, LEARNER, Replay([])), InputError, "stream"),
        (lambda: run(PROBLEM, LEARNER, Replay([np.zeros((5, 2)), np.zeros(4)])), InputError, "stream"),
        (lambda: run(PROBLEM, LEARNER, FromIterable([(np.zeros(2),), (np.zeros(3),)])), InputError, "stream"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2)), InputError, "rounds"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), 0), InputError, "rounds"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), 2.5), InputError, "rounds"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(3), 10), InputError, "cost"),
        (lambda: run(PROBLEM, LEARNER, RandomPermutations(2), 10), InputError, "cost"),
        (lambda: run(PROBLEM, LEARNER, Replay([np.array([["a", "b"]])])), InputError, "cost"),
        (lambda: run(PROBLEM, LEARNER, Replay([np.zeros((3, 2), dtype=complex)])), InputError, "cost"),
        (lambda: run(PROBLEM, LEARNER, Replay([np.zeros((3, 2)), np.zeros(3)])), InputError, "stream"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), 10, seeds=[]), InputError, "seeds"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), 10, record=[]), InputError, "record"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), 10, record=[0]), InputError, "record"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), 10, engine="fortran"), InputError, "engine"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), 10, on_broken_bound="ignore"), InputError, "on_broken_bound"),
        (lambda: run(PROBLEM, AOGD(Ball(3), LEARNER.schedule), RandomCosts(2), 10), InputError, "learner"),
        (lambda: Problem(Ball(2), Linear(3), PROBLEM.constraint), InputError, "dimension"),
        (lambda: Problem(Ball(2), Linear(2), PROBLEM.constraint, declared={"G": 2.0}), InputError, "declared"),
        (lambda: AOGD.convex(PROBLEM, beta=1.0), InputError, "beta"),
    ],
)
def test_impossible_runs_are_refused_in_words(call, error, argument):
    with pytest.raises(error) as refused:
        call()
    assert refused.value.argument == argument
    assert refused.value.remedy


def test_a_users_function_that_returns_nonsense_is_named():
    broken = CustomLoss(2, lambda x, c: x[..., 0] * np.nan, lambda x, c: c, 1.0, 1.0, parameters={"c": (2,)})
    problem = Problem(Ball(2), broken, PROBLEM.constraint)
    with pytest.raises(NonFiniteError) as stopped:
        run(problem, AOGD.convex(problem), RandomCosts(2), 10)
    assert (stopped.value.argument, stopped.value.round) == ("loss", 1)


def test_a_users_function_of_the_wrong_shape_is_named():
    flat = CustomLoss(2, lambda x, c: np.sum(x * c), lambda x, c: c, 1.0, 1.0, parameters={"c": (2,)})
    problem = Problem(Ball(2), flat, PROBLEM.constraint)
    with pytest.raises(InputError) as stopped:
        run(problem, AOGD.convex(problem), RandomCosts(2), 10, seeds=range(3))
    assert stopped.value.argument == "loss"
    narrow = CustomLoss(
        2, lambda x, c: np.sum(x * c, axis=-1), lambda x, c: c[..., :1], 1.0, 1.0, parameters={"c": (2,)}
    )
    problem = Problem(Ball(2), narrow, PROBLEM.constraint)
    with pytest.raises(InputError) as stopped:
        run(problem, AOGD.convex(problem), RandomCosts(2), 10)
    assert stopped.value.argument == "loss_gradient"


def test_two_dimensional_targets_outside_the_disc_break_its_G():
    problem = two_dimensional()
    with pytest.raises(BrokenBoundError):
        run(problem, AOGD.convex(problem), Replay([np.array([[5.0, 0.0]])]))
