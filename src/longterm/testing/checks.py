"""Checks of a learner on a problem and a stream.

Each check raises AssertionError if the learner fails. The library's own learners pass all of them. With pytest:

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_learner(check):
        check(problem, learner, stream)

Streams must have at least 120 rounds. Checks that need a missing package (array-api-strict, JAX) are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from longterm._base.states import state_leaves
from longterm.errors import InputError
from longterm.learners import Learner
from longterm.learners.interface.feedback import observe
from longterm.play import run
from longterm.play.engines.trace import Trace
from longterm.problems import Problem
from longterm.problems.streams import Stream

Check = Callable[[Problem, Learner[Any], Stream], None]
COLUMNS = (
    "rounds",
    "cumulative_loss",
    "signed_violation",
    "hard_violation",
    "squared_violation",
    "largest_violation",
    "per_constraint_violation",
)
"""The columns of a trace that are compared."""
TOLERANCE = 1e-9
"""The difference allowed between engines, and between a batch and a single run."""


def assert_same_trace(one: Trace, other: Trace, atol: float = 0.0, rtol: float = 0.0) -> None:
    """Assert that the sums, reports and last states of two runs are equal.

    `rtol` is for reports and states, whose unit is any: a sum of squared gradients may be 10⁵.
    """
    for column in COLUMNS:
        np.testing.assert_allclose(getattr(one, column), getattr(other, column), rtol=0, atol=atol, err_msg=column)
    assert set(one.reports) == set(other.reports)
    for name in one.reports:
        values = one.reports[name], other.reports[name]
        np.testing.assert_allclose(*values, rtol=rtol, atol=atol, err_msg=name)
    for first, second in zip(state_leaves(one.state).values(), state_leaves(other.state).values(), strict=True):
        np.testing.assert_allclose(np.asarray(first), np.asarray(second), rtol=rtol, atol=atol)


def split_equals_whole(problem: Problem, learner: Learner[Any], stream: Stream) -> None:
    """Assert that a resumed run equals a whole run bit for bit."""
    record = [1, 7, 64, 65, 100, 120]
    whole = run(problem, learner, stream, 120, record=record)
    part = run(problem, learner, stream, 77, record=record[:4])
    assert part.last_round == part.rounds[-1] == 77  # recorded here, and dropped from the resumed run
    assert_same_trace(run(problem, learner, stream, 120, record=record, resume=part), whole)
    again = run(problem, learner, stream, 60, resume=run(problem, learner, stream, 37))
    assert_same_trace(again, run(problem, learner, stream, 60))


def batch_row_equals_single(problem: Problem, learner: Learner[Any], stream: Stream) -> None:
    """Assert that one row of a batch equals the single run."""
    batch = run(problem, learner, stream, 100, seeds=range(4))
    for k in (0, 3):
        single = run(problem, learner, stream, 100, seeds=k)
        for column in COLUMNS[1:]:
            np.testing.assert_allclose(
                getattr(batch, column)[:, k], getattr(single, column), rtol=0, atol=TOLERANCE, err_msg=column
            )
        decisions = learner.ask(batch.state)[k], learner.ask(single.state)
        np.testing.assert_allclose(*decisions, rtol=0, atol=TOLERANCE, err_msg="x")


def keeps_dtype(problem: Problem, learner: Learner[Any], stream: Stream) -> None:
    """Assert that a float32 state stays float32, sums are float64, and the first losses are nearly those of float64.

    Later rounds are not compared: where a rule is discontinuous, rounding decides between two valid trajectories.
    """
    trace = run(problem, learner, stream, 40, dtype=np.float32)
    found = {np.asarray(field).dtype.name for field in state_leaves(trace.state).values()}
    assert found == {"int64", "float32"}, f"the state has {sorted(found)}, but was created in float32"
    assert trace.sums.loss.dtype == trace.cumulative_loss.dtype == np.float64
    double = run(problem, learner, stream, 40)
    np.testing.assert_allclose(trace.cumulative_loss[:3], double.cumulative_loss[:3], rtol=1e-3, atol=1e-3)


def is_pure(problem: Problem, learner: Learner[Any], stream: Stream) -> None:
    """Assert that `ask` and `tell` change no argument, and that the new state shares no memory with the feedback."""
    state, block = learner.init(), stream.draw(0, 0, 5)
    for i in range(5):
        before = [np.array(field) for field in state_leaves(state).values()]
        x = learner.ask(state)
        feedback = observe(problem, x, [a[i] for a in block.loss], [a[i] for a in block.constraint])
        after = learner.tell(state, feedback)
        np.testing.assert_array_equal(learner.ask(state), x)
        for old, field in zip(before, state_leaves(state).values(), strict=True):
            np.testing.assert_array_equal(old, field)
        fields = state_leaves(after).values()
        assert not any(np.shares_memory(np.asarray(field), feedback.loss_gradient) for field in fields)
        state = after


def refuses_bad_feedback(problem: Problem, learner: Learner[Any], stream: Stream) -> None:
    """Assert that bad feedback raises InputError and leaves the state unchanged, and that good feedback is accepted."""
    state, block = learner.init(), stream.draw(0, 0, 1)
    good = observe(problem, learner.ask(state), [a[0] for a in block.loss], [a[0] for a in block.constraint])
    before = [np.array(field) for field in state_leaves(state).values()]
    gradient = np.asarray(good.loss_gradient)
    for bad in (np.full_like(gradient, np.nan), gradient[..., :-1], gradient.astype(np.float32)):
        try:
            learner.tell(state, good._replace(loss_gradient=bad))
        except InputError as refused:
            found = refused.argument, refused.round, bool(refused.remedy)
            assert found == ("loss_gradient", 1, True), found
        else:
            given = f"{bad.dtype} {bad.shape} holding {bad.flat[0]}"
            raise AssertionError(f"a loss_gradient of {given} did not raise an error")
        for old, field in zip(before, state_leaves(state).values(), strict=True):
            np.testing.assert_array_equal(old, field)
    learner.tell(state, good)


def strict_arrays_agree(problem: Problem, learner: Learner[Any], stream: Stream) -> None:
    """Assert that array-api-strict gives the same run, so that the rule uses the Array API standard only."""
    if find_spec("array_api_strict") is None:
        return
    numpy_run = run(problem, learner, stream, 40, seeds=range(2))
    strict_run = run(problem, learner, stream, 40, seeds=range(2), xp=import_module("array_api_strict"))
    assert_same_trace(strict_run, numpy_run, atol=1e-10)


def engines_agree(problem: Problem, learner: Learner[Any], stream: Stream) -> None:
    """Assert that the JAX engine gives the same run, in three parts that start from the same states."""
    if find_spec("jax") is None:
        return
    reference: Trace | None = None
    for last in (40, 80, 120):  # from the same state each time: small differences may grow from round to round
        options: dict[str, Any] = {"seeds": range(2), "record": [last - 39, last - 20, last], "resume": reference}
        compiled = run(problem, learner, stream, last, engine="jax", **options)
        reference = run(problem, learner, stream, last, **options)
        assert_same_trace(compiled, reference, atol=TOLERANCE, rtol=TOLERANCE)
        assert all(isinstance(field, (np.ndarray, np.generic)) for field in state_leaves(compiled.state).values())


CHECKS: tuple[Check, ...] = (
    split_equals_whole,
    batch_row_equals_single,
    keeps_dtype,
    is_pure,
    refuses_bad_feedback,
    strict_arrays_agree,
    engines_agree,
)
"""All checks."""


def check_learner(problem: Problem, learner: Learner[Any], stream: Stream) -> None:
    """Run all checks.

    Parameters
    ----------
    problem : Problem
        The problem.
    learner : Learner
        The learner to check.
    stream : Stream
        At least 120 rounds.

    Examples
    --------
    >>> from longterm import AOGD
    >>> from longterm.problems import doubly_stochastic
    >>> from longterm.problems.streams import RandomPermutations
    >>> from longterm.testing.checks import check_learner
    >>> problem = doubly_stochastic(2)
    >>> check_learner(problem, AOGD.for_problem(problem), RandomPermutations(2))
    """
    for check in CHECKS:
        check(problem, learner, stream)
