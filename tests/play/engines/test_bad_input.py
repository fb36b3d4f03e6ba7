"""Bad input: an exception that names argument, round and remedy; the state as it was; the next good call works."""

from dataclasses import dataclass

import array_api_strict
import numpy as np
import pytest

from longterm import AOGD, InputError, Problem, compare, run
from longterm._base import validate
from longterm.errors import BrokenBoundError, BrokenBoundWarning, NonFiniteError, StreamEndedError
from longterm.learners.interface.feedback import Feedback
from longterm.problems import budgeted_logistic, two_dimensional
from longterm.problems.constraints import Affine, CustomConstraint
from longterm.problems.losses import CustomLoss, Linear, Logistic
from longterm.problems.named.adversarial import late_reversal
from longterm.problems.sets import Ball
from longterm.problems.streams import FromIterable, RandomCosts, RandomPermutations, Replay, ResampledRows
from longterm.theory.schedules import ConvexSchedule, StronglyConvexSchedule

PROBLEM = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.5]))
LEARNER = AOGD.for_problem(PROBLEM)


PLAYED = run(PROBLEM, LEARNER, RandomCosts(2), 5, seeds=range(3))


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


def test_tell_can_warn_of_a_broken_bound_and_continue():
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
    problem = Problem(Ball(2), Logistic(2, feature_norm=1.0), Affine([[1.0, 0.0]], [0.5]))
    with pytest.raises(NonFiniteError, match="at index"):
        run(problem, AOGD.for_problem(problem), rows, 100, seeds=range(5))


def test_a_broken_bound_stops_the_run_or_is_recorded():
    stream = Replay([costs_with(20, [3.0, 4.0])])
    with pytest.raises(BrokenBoundError, match="has size 5, above the declared bound 1") as stopped:
        run(PROBLEM, LEARNER, stream)
    assert (stopped.value.argument, stopped.value.round) == ("loss_gradient", 20)
    trace = run(PROBLEM, LEARNER, stream, on_broken_bound="warn")
    assert trace.last_round == 50
    assert list(trace.warnings) == ["loss_gradient"]
    assert "loss_gradient in round 20" in trace.warnings["loss_gradient"]


def test_a_learner_made_for_a_smaller_G_stops_too():
    careful = AOGD(Ball(2), ConvexSchedule(2.0, 0.5))
    with pytest.raises(BrokenBoundError):
        run(PROBLEM, careful, RandomCosts(2), 10)


def test_a_learner_that_leaves_the_set_is_told_to_project():
    @dataclass(frozen=True, eq=False)
    class Wandering(AOGD):
        def ask(self, state):
            return super().ask(state) + 5.0

    problem = two_dimensional()
    wandering = Wandering(problem.enclosing_set, ConvexSchedule(2.0, 0.5))
    with pytest.raises(BrokenBoundError, match=r"x in round 1: lies outside of the enclosing set.*Project it"):
        run(problem, wandering, RandomCosts(2), 10)


@pytest.mark.parametrize("parameters", [["c"], {"c": 2}, {2: ()}, "c"])
def test_parameters_that_are_not_shapes_by_name_are_refused(parameters):
    with pytest.raises(InputError, match=r"parameters: .* shape of each parameter by name"):
        CustomLoss(2, lambda x, c: x[..., 0], lambda x, c: x, 1.0, 1.0, parameters=parameters)
    with pytest.raises(InputError, match=r"parameters: .* shape of each parameter by name"):
        CustomConstraint(2, lambda x, c: x[..., 0], lambda x, c: x, 1.0, value_bound=1.0, parameters=parameters)


def test_a_replay_of_a_bare_array_is_refused():
    with pytest.raises(InputError, match=r"stream: has a number in place of an array.*Replay\(\[losses\]"):
        Replay(np.zeros(50), np.zeros(50))


def test_a_constraint_above_its_value_bound_stops():
    g = CustomConstraint(2, lambda x: x[..., 0] - 0.5, lambda x: x * 0 + [1.0, 0.0], 1.0, value_bound=0.1)
    problem = Problem(Ball(2), Linear(2), g)
    with pytest.raises(BrokenBoundError, match=r"constraint in round 1: has size 0\.5"):
        run(problem, AOGD.for_problem(problem), RandomCosts(2), 10)


def test_in_a_comparison_every_trace_survives_and_resumes():
    bad, good = Replay([costs_with(33, np.nan)]), Replay([costs_with(33, [1.0, 0.0])])
    learners = {"a": LEARNER, "b": AOGD.for_problem(PROBLEM, beta=0.4)}
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
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), 10.0), InputError, "rounds"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), "ten"), InputError, "rounds"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), float("nan")), InputError, "rounds"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), 10, seeds=-1), InputError, "seeds"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), 10, seeds=[1.5, 2]), InputError, "seeds"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), 10, seeds=None), InputError, "seeds"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), 10, record=10), InputError, "record"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), 10, record=[1.5]), InputError, "record"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), 10, dtype=int), InputError, "dtype"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), 10, dtype=complex), InputError, "dtype"),
        (lambda: compare(PROBLEM, {}, RandomCosts(2), 10), InputError, "learners"),
        (lambda: compare(PROBLEM, {"a": LEARNER}, RandomCosts(2), 10, resume={}), InputError, "resume"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), 10, resume=PLAYED), InputError, "resume"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), 10, seeds=[0, 1], resume=PLAYED), InputError, "resume"),
        (lambda: run(PROBLEM, LEARNER, RandomCosts(2), 3, seeds=range(3), resume=PLAYED), InputError, "resume"),
        (lambda: run(PROBLEM, AOGD(Ball(2, radius=50.0), LEARNER.schedule), RandomCosts(2), 10), InputError, "learner"),
        (
            lambda: run(PROBLEM, AOGD(Ball(2), StronglyConvexSchedule(1.0, 1.0)), RandomCosts(2), 9),
            InputError,
            "learner",
        ),
        (lambda: Problem("a", Linear(2), PROBLEM.constraint), InputError, "enclosing_set"),
        (lambda: Problem(Ball(2), Linear(2), PROBLEM.constraint, declared={"radius": 0.0}), InputError, "radius"),
        (lambda: late_reversal(-1.0), InputError, "radius"),
        (lambda: budgeted_logistic([["a", "b"]], 1.0), InputError, "features"),
        (lambda: budgeted_logistic(np.array([[1.0, np.nan]]), 1.0), InputError, "features"),
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
        (lambda: AOGD.for_problem(PROBLEM, beta=1.0), InputError, "beta"),
    ],
)
def test_impossible_runs_are_refused_with_a_message(call, error, argument):
    with pytest.raises(error) as refused:
        call()
    assert refused.value.argument == argument
    assert refused.value.remedy


def test_the_error_names_a_user_function_with_invalid_values():
    broken = CustomLoss(2, lambda x, c: x[..., 0] * np.nan, lambda x, c: c, 1.0, 1.0, parameters={"c": (2,)})
    problem = Problem(Ball(2), broken, PROBLEM.constraint)
    with pytest.raises(NonFiniteError) as stopped:
        run(problem, AOGD.for_problem(problem), RandomCosts(2), 10)
    assert (stopped.value.argument, stopped.value.round) == ("loss", 1)


def test_the_error_names_a_user_function_of_the_wrong_shape():
    flat = CustomLoss(2, lambda x, c: np.sum(x * c), lambda x, c: c, 1.0, 1.0, parameters={"c": (2,)})
    problem = Problem(Ball(2), flat, PROBLEM.constraint)
    with pytest.raises(InputError) as stopped:
        run(problem, AOGD.for_problem(problem), RandomCosts(2), 10, seeds=range(3))
    assert stopped.value.argument == "loss"
    narrow = CustomLoss(
        2, lambda x, c: np.sum(x * c, axis=-1), lambda x, c: c[..., :1], 1.0, 1.0, parameters={"c": (2,)}
    )
    problem = Problem(Ball(2), narrow, PROBLEM.constraint)
    with pytest.raises(InputError) as stopped:
        run(problem, AOGD.for_problem(problem), RandomCosts(2), 10)
    assert stopped.value.argument == "loss_gradient"


def test_two_dimensional_targets_outside_the_disc_break_its_G():
    problem = two_dimensional()
    with pytest.raises(BrokenBoundError):
        run(problem, AOGD.for_problem(problem), Replay([np.array([[5.0, 0.0]])]))


def test_a_gradient_too_long_to_square_is_refused_without_a_numpy_warning():
    with pytest.raises(BrokenBoundError):
        LEARNER.tell(LEARNER.init(), feedback(loss_gradient=np.array([1e200, 0.0])))


def test_tell_under_strict_arrays_takes_numbers_and_refuses_other_libraries():
    state = LEARNER.init(xp=array_api_strict)
    good = {name: array_api_strict.asarray(np.asarray(v)) for name, v in feedback()._asdict().items() if v is not None}
    assert int(LEARNER.tell(state, Feedback(**{**good, "constraint": 0.1, "loss": 0.0})).round) == 2
    with pytest.raises(InputError, match="the state's library"):
        LEARNER.tell(state, Feedback(**{**good, "loss_gradient": np.zeros(2)}))


def test_labels_must_be_plus_or_minus_one():
    problem = budgeted_logistic(np.eye(2), 1.0)
    stream = Replay([np.ones((9, 2)) / 2, np.array([1, -1, 1, 1, 0, 1, 1, 1, 1])])
    with pytest.raises(InputError, match="2 \\* label") as refused:
        run(problem, AOGD.for_problem(problem), stream)
    assert (refused.value.argument, refused.value.round) == ("label", 5)


def test_integer_features_do_not_overflow():
    problem = budgeted_logistic(np.array([[200, 100], [255, 255]], dtype=np.uint8), 1.0)
    assert problem.constants.loss_gradient_bound == pytest.approx(255 * 2**0.5)


def test_every_exception_of_a_run_has_its_trace():
    def rounds():
        yield from ((np.array([0.5, 0.5]),) for _ in range(20))
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError) as stopped:
        run(PROBLEM, LEARNER, FromIterable(rounds()), 100)
    assert stopped.value.trace.last_round == 20

    def divides(x, c):
        return 1 / 0 if c[0] == 0.6 else np.sum(x * c, axis=-1)

    broken = CustomLoss(2, divides, lambda x, c: c, 1.0, 1.0, parameters={"c": (2,)})
    problem = Problem(Ball(2), broken, PROBLEM.constraint)
    with pytest.raises(ZeroDivisionError) as stopped:
        run(problem, LEARNER, Replay([costs_with(7, [0.6, 0.8])]))
    assert stopped.value.trace.last_round == 6


def test_a_stopped_iterable_loses_no_round():
    costs = costs_with(33, np.nan)
    stream = FromIterable((c,) for c in costs)
    with pytest.raises(NonFiniteError) as stopped:
        run(PROBLEM, LEARNER, stream, 50)
    with pytest.raises(NonFiniteError) as again:  # round 33 is still the next one
        run(PROBLEM, LEARNER, stream, 50, resume=stopped.value.trace)
    assert again.value.round == 33


def test_losses_without_parameters_can_be_run():
    f = CustomLoss(2, lambda x: np.sum(x**2, axis=-1), lambda x: 2 * x, 2.0, 1.0)
    problem = Problem(Ball(2), f, PROBLEM.constraint)
    one = run(problem, AOGD.for_problem(problem), FromIterable([()] * 30))
    other = run(problem, AOGD.for_problem(problem), Replay([], rounds=30))
    assert one.last_round == other.last_round == 30
    np.testing.assert_array_equal(one.cumulative_loss, other.cumulative_loss)


def test_an_infinite_loss_is_refused():
    f = CustomLoss(2, lambda x, c: x[..., 0] * 0 + np.inf, lambda x, c: c, 1.0, 1.0, parameters={"c": (2,)})
    problem = Problem(Ball(2), f, PROBLEM.constraint)
    with pytest.raises(NonFiniteError, match="loss in round 1"):
        run(problem, AOGD.for_problem(problem), RandomCosts(2), 10)


def test_a_constraint_gradient_above_its_own_bound_stops_even_under_a_larger_G():
    g = CustomConstraint(2, lambda x: x[..., 0] - 0.5, lambda x: x * 0 + [1.0, 0.0], 0.5, value_bound=2.0)
    problem = Problem(Ball(2), Linear(2, 3.0), g)
    with pytest.raises(BrokenBoundError) as stopped:
        run(problem, AOGD.for_problem(problem), RandomCosts(2, 3.0), 10)
    assert stopped.value.argument == "constraint_gradient"


def test_every_broken_bound_is_recorded_once_with_its_first_round_however_the_run_is_split():
    costs = RandomCosts(2).draw(0, 0, 80).loss[0].copy()
    costs[[4, 60]] *= 7
    stream = Replay([costs])
    g = CustomConstraint(2, lambda x: x[..., 0] - 0.5, lambda x: x * 0 + [1.0, 0.0], 0.5, value_bound=0.1)
    problem = Problem(Ball(2), Linear(2), g)
    learner = AOGD.for_problem(problem)
    whole = run(problem, learner, stream, on_broken_bound="warn")
    assert set(whole.warnings) == {"loss_gradient", "constraint_gradient", "constraint"}
    assert "round 5" in whole.warnings["loss_gradient"]
    assert "round 1:" in whole.warnings["constraint_gradient"]
    part = run(problem, learner, stream, 50, on_broken_bound="warn")
    assert run(problem, learner, stream, 80, on_broken_bound="warn", resume=part).warnings == whole.warnings


def test_an_interval_error_speaks_of_beta_only_for_beta() -> None:
    with pytest.raises(InputError, match="Table 1"):
        validate.trade_off("beta", 1.5)
    with pytest.raises(InputError, match="loss_parameter above 0 and below 1") as caught:
        validate.open_unit_interval("loss_parameter", 1.5)
    assert "Table 1" not in str(caught.value)
