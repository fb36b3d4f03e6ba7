"""Engines differ in speed only."""

import subprocess
import sys

import numpy as np
import pytest

from longterm import AOGD, InputError, Problem, compare, run
from longterm.errors import BrokenBoundError, NonFiniteError
from longterm.problems import doubly_stochastic
from longterm.problems.constraints import Affine, CustomConstraint, VaryingAffine
from longterm.problems.losses import CustomLoss, Linear
from longterm.problems.sets import Ball
from longterm.problems.streams import FromIterable, RandomCosts, RandomPermutations, Replay
from longterm.testing.checks import assert_same_trace, engines_agree
from zoo import crossed, games

pytest.importorskip("jax", reason="the compiled engine needs the extra `jax`")
import jax

GAMES = games()
PROBLEM = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.5]))
LEARNER = AOGD.for_problem(PROBLEM)


def assert_same(one, other, atol):
    assert_same_trace(one, other, atol, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("game", crossed(GAMES, problems=1))
def test_engines_agree_on_every_learner_and_problem(game):
    problem, stream, learner = GAMES[game]
    engines_agree(problem, learner, stream)


@pytest.mark.slow
def test_a_split_run_equals_the_whole_bit_for_bit():
    problem, stream = doubly_stochastic(4), RandomPermutations(4)
    learner = AOGD.for_problem(problem)
    whole = run(problem, learner, stream, 6000, engine="jax", record=[10, 6000])
    part = run(problem, learner, stream, 4500, engine="jax", record=[10])
    joined = run(problem, learner, stream, 6000, engine="jax", resume=part, record=[10, 6000])
    assert whole.cumulative_loss[-1] == joined.cumulative_loss[-1]
    for mine, theirs in zip(joined.state, whole.state, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.slow
def test_a_run_may_change_engines_when_resumed():
    problem, stream = doubly_stochastic(3), RandomPermutations(3)
    learner = AOGD.for_problem(problem)
    whole = run(problem, learner, stream, 400)
    for first, second in (("numpy", "jax"), ("jax", "numpy")):
        part = run(problem, learner, stream, 150, engine=first)
        joined = run(problem, learner, stream, 400, engine=second, resume=part)
        assert joined.cumulative_loss[-1] == pytest.approx(whole.cumulative_loss[-1], abs=1e-9)


@pytest.mark.slow
def test_grids_iterables_and_comparisons():
    costs = RandomCosts(2).draw(0, 0, 700).loss[0]
    learners = {"grid": AOGD.for_problem(PROBLEM, beta=np.array([0.3, 0.6])), "one": LEARNER}
    reference = compare(PROBLEM, learners, FromIterable((c,) for c in costs), 700)
    compiled = compare(PROBLEM, learners, FromIterable((c,) for c in costs), 700, engine="jax")
    for name in learners:
        assert_same(compiled[name], reference[name], atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtypes_are_kept_without_touching_the_global_flag(dtype):
    before = jax.config.jax_enable_x64
    trace = run(PROBLEM, LEARNER, RandomCosts(2), 100, engine="jax", dtype=dtype)
    assert trace.state.x.dtype == trace.state.multiplier.dtype == dtype
    assert trace.cumulative_loss.dtype == trace.sums.loss.dtype == np.float64
    reference = run(PROBLEM, LEARNER, RandomCosts(2), 100, dtype=dtype)
    np.testing.assert_allclose(
        trace.cumulative_loss, reference.cumulative_loss, atol=1e-3 if dtype == np.float32 else 1e-9
    )
    assert jax.config.jax_enable_x64 == before
    assert jax.numpy.ones(1).dtype == (np.float64 if before else np.float32)


def costs_with(t, value, rounds=5000):
    costs = RandomCosts(2).draw(0, 0, rounds).loss[0].copy()
    costs[t - 1] = value
    return Replay([costs])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "t"),
    [
        *((np.nan, t) for t in (1, 2, 33, 4096, 4097, 5000)),
        *((value, t) for value in (np.inf, 3.0) for t in (2, 4097)),
        *(pytest.param(v, t, marks=pytest.mark.cross) for v in (np.inf, 3.0) for t in (1, 33, 4096, 5000)),
    ],
)
def test_the_first_bad_round_stops_both_engines_equally(t, value):
    stopped = {}
    for engine in ("numpy", "jax"):
        with pytest.raises((NonFiniteError, BrokenBoundError)) as found:
            run(PROBLEM, LEARNER, costs_with(t, value), engine=engine)
        stopped[engine] = found.value
    ours, theirs = stopped["jax"], stopped["numpy"]
    assert (type(ours), ours.round, ours.argument, str(ours)) == (type(theirs), t, theirs.argument, str(theirs))
    assert ours.trace.last_round == t - 1
    if t > 1:
        assert_same(ours.trace, theirs.trace, atol=1e-9)
    resumed = run(PROBLEM, LEARNER, costs_with(t, [1.0, 0.0]), engine="jax", resume=ours.trace)
    assert resumed.last_round == 5000


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """Sixteen rounds at a time, the last of them masked, and random streams drawn by the engine."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")


@pytest.mark.slow
def test_the_gpu_loop_gives_the_same_trace(as_on_a_gpu):
    kept = [1, 2, 3, 16, 17, 40, 300, 513, 600]
    problem, stream = doubly_stochastic(3), RandomPermutations(3)
    learner, options = AOGD.for_problem(problem), {"seeds": range(3), "record": kept}
    ours, theirs = (run(problem, learner, stream, 600, engine=engine, **options) for engine in ("jax", "numpy"))
    assert ours.rounds.tolist() == kept
    assert_same(ours, theirs, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("t", [1, 17, 60, 300])
def test_a_bad_round_stops_the_gpu_loop_equally(as_on_a_gpu, t):
    with pytest.raises(NonFiniteError) as found:
        run(PROBLEM, LEARNER, costs_with(t, np.nan, 300), engine="jax")
    with pytest.raises(NonFiniteError) as expected:
        run(PROBLEM, LEARNER, costs_with(t, np.nan, 300))
    assert str(found.value) == str(expected.value)
    assert found.value.trace.last_round == t - 1
    if t > 1:
        assert_same(found.value.trace, expected.value.trace, atol=1e-9)


@pytest.mark.slow
def test_broken_bounds_are_recorded_equally():
    g = CustomConstraint(2, lambda x: 3 * x[..., 0] - 0.5, lambda x: 0 * x + np.asarray([3.0, 0.0]), 2.9, 0.4)
    problem = Problem(Ball(2), Linear(2), g)
    notes = {}
    for engine in ("numpy", "jax"):
        stream = costs_with(40, [3.0, 4.0], 60)
        learner = AOGD.for_problem(problem)
        notes[engine] = run(problem, learner, stream, engine=engine, on_broken_bound="warn").warnings
    assert notes["jax"] == notes["numpy"]
    assert len(notes["jax"]) == 3


def branching(x, c):
    return x[..., 0] * c[..., 0] if x[..., 0] > 0 else 0 * x[..., 0]


@pytest.mark.parametrize(
    "loss",
    [
        CustomLoss(2, branching, lambda x, c: c, 1.0, 1.0, parameters={"c": (2,)}),
        CustomLoss(2, lambda x, c: np.linalg.norm(x) + 0 * c[..., 0], lambda x, c: c, 1.0, 1.0, parameters={"c": (2,)}),
        CustomLoss(2, lambda x, c: float(x[0]), lambda x, c: c, 1.0, 1.0, parameters={"c": (2,)}),
    ],
)
def test_functions_that_cannot_be_traced_are_refused_before_round_1(loss):
    problem = Problem(Ball(2), loss, PROBLEM.constraint)
    with pytest.raises(InputError, match="cannot be compiled") as refused:
        run(problem, AOGD.for_problem(problem), RandomCosts(2), 10, engine="jax")
    assert refused.value.argument == "engine"
    assert refused.value.trace.last_round == 0


def test_the_error_names_functions_of_the_wrong_shape():
    flat = CustomLoss(2, lambda x, c: (x * c).sum(), lambda x, c: c, 1.0, 1.0, parameters={"c": (2,)})
    problem = Problem(Ball(2), flat, PROBLEM.constraint)
    with pytest.raises(InputError) as refused:
        run(problem, AOGD.for_problem(problem), RandomCosts(2), 10, seeds=range(3), engine="jax")
    assert refused.value.argument == "loss"


@pytest.mark.slow
def test_progress_between_blocks():
    seen = []
    run(PROBLEM, LEARNER, RandomCosts(2), 9000, engine="jax", progress=lambda done, total: seen.append(done))
    assert len(seen) >= 2
    assert seen[-1] == 9000


@pytest.mark.slow
def test_varying_constraints():
    rng = np.random.default_rng(0)
    normals = rng.standard_normal((200, 1, 2))
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    problem = Problem(Ball(2), Linear(2), VaryingAffine(2, 1, 1.0, 1.0))
    stream = Replay([RandomCosts(2).draw(0, 0, 200).loss[0]], [normals, rng.uniform(0, 1, (200, 1))])
    traces = [run(problem, AOGD.for_problem(problem), stream, engine=e) for e in ("numpy", "jax")]
    assert_same(*traces, atol=1e-9)


@pytest.mark.slow
def test_a_missing_extra_is_named():
    code = (
        "import sys; sys.modules['jax'] = None\n"
        "import longterm\nfrom longterm.problems.streams import RandomPermutations\n"
        "p = longterm.problems.doubly_stochastic(2)\n"
        "try: longterm.run(p, longterm.AOGD.for_problem(p), RandomPermutations(2), 5, engine='jax')\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "longterm[jax]" in done.stdout


@pytest.mark.slow
def test_broken_bounds_before_the_round_that_stops_a_run_are_noted_by_both_engines():
    costs = RandomCosts(2).draw(0, 0, 60).loss[0].copy()
    costs[2] *= 5
    costs[5] = np.nan
    notes = []
    for engine in ("numpy", "jax"):
        with pytest.raises(NonFiniteError) as stopped:
            run(PROBLEM, LEARNER, Replay([costs]), engine=engine, record=[50], on_broken_bound="warn")
        notes.append(stopped.value.trace.warnings)
    assert notes[0] == notes[1]
    assert "round 3" in notes[0]["loss_gradient"]


@pytest.mark.parametrize("function", [lambda x, c: (x - c)[abs(x - c) >= 0].sum(), lambda x, c: x.flags])
def test_masks_and_attributes_that_cannot_be_traced_are_refused(function):
    problem = Problem(
        Ball(2), CustomLoss(2, function, lambda x, c: c, 1.0, 1.0, parameters={"c": (2,)}), PROBLEM.constraint
    )
    with pytest.raises(InputError, match="cannot be compiled"):
        run(problem, AOGD.for_problem(problem), RandomCosts(2), 10, engine="jax")
