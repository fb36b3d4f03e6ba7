"""Fleets whose feedback is in arrays of JAX: the same numbers, the same refusals, nothing copied to the host."""

from __future__ import annotations

import numpy as np
import pytest

from longterm import AOGD, Feedback, Fleet
from longterm.errors import BrokenBoundError, BrokenBoundWarning, InputError, NonFiniteError
from longterm.problems.sets import Ball
from longterm.theory.schedules import ConvexSchedule

jax = pytest.importorskip("jax")
SIZE, D = 12, 3


def fleets(dtype=np.float32, **options):
    learner = AOGD(Ball(D), ConvexSchedule(2.0, 4.0, beta=np.linspace(0.5, 0.8, SIZE)))
    made = [Fleet(learner, SIZE, dtype=dtype, engine=engine, **options) for engine in ("jax", "numpy")]
    return made[0], made[1]


def told(rng, count, dtype=np.float32, scale=1.0):
    arrays = rng.uniform(-scale, scale, (count, D)), rng.uniform(-scale, scale, count), rng.uniform(-1, 1, (count, D))
    return Feedback(*(array.astype(dtype) for array in arrays))


def on_device(feedback):
    with jax.enable_x64(True):
        return Feedback(*(jax.numpy.asarray(array) for array in feedback[:3]))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_as_numpy(dtype):
    rng = np.random.default_rng(0)
    device, reference = fleets(dtype)
    for rows in (None, [3, 1, 7], None, np.arange(SIZE)[::-1].copy(), rng.random(SIZE) < 0.5):
        count = SIZE if rows is None else int(np.sum(rows)) if np.asarray(rows).dtype == bool else len(rows)
        feedback = told(rng, count, dtype)
        device.tell(
            on_device(feedback), rows if rows is None or np.asarray(rows).dtype == bool else jax.numpy.asarray(rows)
        )
        reference.tell(feedback, rows)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(device.ask(), reference.ask(), atol=tolerance)
    np.testing.assert_array_equal(device.rounds, reference.rounds)
    np.testing.assert_allclose(device.signed_violation, reference.signed_violation, atol=1e-6)
    x = device.ask(jax.numpy.asarray([2, 5]), on_device=True)
    assert isinstance(x, jax.Array)
    np.testing.assert_array_equal(np.asarray(x), device.ask([2, 5]))
    np.testing.assert_array_equal(np.asarray(device.ask(on_device=True)), device.ask())


@pytest.mark.slow
def test_a_decision_kept_is_not_overwritten():
    device, _ = fleets()
    before = device.ask(on_device=True)
    device.tell(on_device(told(np.random.default_rng(0), SIZE)))
    device.tell(on_device(told(np.random.default_rng(1), 2)), jax.numpy.asarray([0, 1]))
    np.testing.assert_array_equal(np.asarray(before), np.zeros((SIZE, D)))


@pytest.mark.slow
@pytest.mark.parametrize("few", [False, True])
def test_all_or_none(few):
    rng = np.random.default_rng(0)
    device, reference = fleets()
    rows = [4, 2, 9] if few else None
    count = 3 if few else SIZE
    good = told(rng, count)
    device.tell(on_device(good), rows)
    before, totals = device.ask(), device.hard_violation
    bad = good.loss_gradient.copy()
    bad[1, 0] = np.nan
    with pytest.raises(NonFiniteError, match="learner 2" if few else "learner 1"):
        device.tell(on_device(good._replace(loss_gradient=bad)), jax.numpy.asarray(rows) if few else None)
    bad[1, 0] = 1e3
    with pytest.raises(BrokenBoundError, match="above the declared bound"):
        device.tell(on_device(good._replace(loss_gradient=bad)), rows)
    np.testing.assert_array_equal(device.ask(), before)
    np.testing.assert_array_equal(device.hard_violation, totals)
    device.tell(on_device(good), rows)
    assert not np.array_equal(device.ask(), before)
    assert reference.rounds[0] == 1


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "what"), [([1, 1], "twice"), ([0, SIZE], "outside"), ([-1, 2], "outside")])
def test_numbers_on_the_device_are_checked(rows, what):
    device, _ = fleets()
    with pytest.raises(InputError, match=what):
        device.tell(on_device(told(np.random.default_rng(0), 2)), jax.numpy.asarray(rows))
    np.testing.assert_array_equal(device.rounds, np.ones(SIZE))


def test_shapes_and_dtypes_are_checked():
    device, reference = fleets()
    with pytest.raises(InputError, match="shape"):
        device.tell(on_device(told(np.random.default_rng(0), 5)))
    with pytest.raises(InputError, match="dtype"):
        device.tell(on_device(told(np.random.default_rng(0), SIZE, np.float64)))
    with pytest.raises(InputError, match="on_device"):
        reference.ask(on_device=True)


@pytest.mark.slow
def test_broken_bounds_with_a_warning():
    device, _ = fleets(on_broken_bound="warn")
    with pytest.warns(BrokenBoundWarning, match="learner"):
        device.tell(on_device(told(np.random.default_rng(0), SIZE, scale=100.0)))
    np.testing.assert_array_equal(device.rounds, np.full(SIZE, 2))


@pytest.mark.slow
@pytest.mark.parametrize("few", [False, True])
def test_calls_that_do_not_wait(few):
    """All or none as before; the refusal comes later, in the same words, and later calls are taken."""
    rng = np.random.default_rng(0)
    device, reference = fleets()
    rows = jax.numpy.asarray([4, 2, 9]) if few else None
    rounds = [told(rng, 3 if few else SIZE) for _ in range(8)]
    for one in rounds:
        device.tell(on_device(one), rows, wait=False)
        reference.tell(one, None if rows is None else np.asarray(rows))
    np.testing.assert_allclose(device.ask(), reference.ask(), atol=1e-5)
    np.testing.assert_allclose(device.hard_violation, reference.hard_violation, atol=1e-6)
    bad = rounds[0].loss_gradient.copy()
    bad[1, 0] = np.nan
    device.tell(on_device(rounds[0]._replace(loss_gradient=bad)), rows, wait=False)
    device.tell(on_device(rounds[1]), rows, wait=False)
    with pytest.raises(NonFiniteError, match="learner 2" if few else "learner 1"):
        device.check()
    device.check()
    reference.tell(rounds[1], None if rows is None else np.asarray(rows))
    np.testing.assert_allclose(device.ask(), reference.ask(), atol=1e-5)
    np.testing.assert_array_equal(device.rounds, reference.rounds)


def test_waiting_is_needed_to_warn():
    device, _ = fleets(on_broken_bound="warn")
    with pytest.raises(InputError, match="wait"):
        device.tell(on_device(told(np.random.default_rng(0), SIZE)), wait=False)


def test_a_refused_call_that_nobody_waited_for_is_left_out_of_what_is_read_and_of_what_came_after():
    rng = np.random.default_rng(1)
    device, mirror = fleets()[0], fleets()[0]
    good = [on_device(told(rng, SIZE)) for _ in range(3)]
    bad = good[1]._replace(constraint=good[1].constraint.at[2].set(np.nan))
    for feedback in (good[0], bad, good[1], good[2]):
        device.tell(feedback, wait=False)
    for feedback in good:
        mirror.tell(feedback)
    for mine, theirs in zip(device.state, mirror.state, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(device.signed_violation, mirror.signed_violation)
    with pytest.raises(NonFiniteError, match="learner 2"):
        device.check()
    device.check()


@pytest.mark.slow
@pytest.mark.parametrize(("max_unread", "share"), [(1, 0.3), (5, 0.3), (16, 0.9)])
def test_many_sent_calls_some_of_them_refused(max_unread, share, monkeypatch):
    """Outcomes are read late, several at once: each refusal is raised once, and no accepted call is lost."""
    monkeypatch.setattr("longterm.play.fleet.jax_rows.MAX_UNREAD", max_unread)
    rng = np.random.default_rng(max_unread)
    device, mirror = fleets()[0], fleets()[0]
    sent = refused = heard = 0
    while sent < 150:
        few = int(rng.random() < share) * (3 + (rng.random() < 0.1))
        rows = jax.numpy.asarray(rng.permutation(SIZE)[:few]) if few else None
        feedback = on_device(told(rng, few or SIZE))
        bad = rng.random() < 0.1
        if bad:
            feedback = feedback._replace(constraint=feedback.constraint.at[1].set(np.nan))
            refused += 1
        else:
            mirror.tell(feedback, rows)
        while True:
            try:
                device.tell(feedback, rows, wait=False)
            except NonFiniteError:
                heard += 1
            else:
                break
        sent += 1
    while heard < refused:
        with pytest.raises(NonFiniteError):
            device.check()
        heard += 1
    device.check()
    np.testing.assert_array_equal(device.rounds, mirror.rounds)
    for mine, theirs in zip(device.state, mirror.state, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(device.signed_violation, mirror.signed_violation)
