"""The loop: every learner on every problem of the zoo, whole and split, alone and in a batch."""

import itertools

import numpy as np
import pytest

from longterm import AOGD, InputError, Problem, compare, observe, run
from longterm.errors import StreamEndedError
from longterm.play.engines.recorder import log_spaced_rounds
from longterm.problems import doubly_stochastic
from longterm.problems.constraints import Affine
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball
from longterm.problems.streams import FromIterable, RandomCosts, RandomPermutations, Replay
from longterm.testing.checks import CHECKS, assert_same_trace, engines_agree
from zoo import crossed, games, problems

GAMES = games()
each_game = pytest.mark.parametrize("game", crossed(GAMES))


def playable(game):
    problem, stream, learner = GAMES[game]
    if game.startswith("maximum"):  # its stream is meant for targets, not costs: both are unit vectors
        assert problem.loss.parameters
    return problem, stream, learner


@each_game
@pytest.mark.parametrize("check", [c for c in CHECKS if c is not engines_agree], ids=lambda check: check.__name__)
def test_common_requirements_of_every_learner(game, check):
    """`test_engines.py` has the compiled engine."""
    problem, stream, learner = playable(game)
    check(problem, learner, stream)


def test_sums_by_hand():
    """The trace's totals, recomputed from the played points."""
    problem, stream = problems()["adversary on a box"]
    learner = AOGD.for_problem(problem)
    trace = run(problem, learner, stream, 50, record=range(1, 51), seeds=3)
    state, losses, values = learner.init(), [], []
    costs = stream.draw(3, 0, 50).loss[0]
    for cost in costs:
        told = observe(problem, state.x, [cost])
        losses.append(told.loss)
        values.append(told.constraint_values)
        np.testing.assert_allclose(trace.multiplier[len(losses) - 1], state.multiplier)
        state = learner.tell(state, told)
    values = np.array(values)
    worst = values.max(axis=1)
    np.testing.assert_allclose(trace.cumulative_loss, np.cumsum(losses))
    np.testing.assert_allclose(trace.signed_violation, np.cumsum(worst))
    np.testing.assert_allclose(trace.hard_violation, np.cumsum(np.maximum(worst, 0)))
    np.testing.assert_allclose(trace.squared_violation, np.cumsum(np.maximum(worst, 0) ** 2))
    np.testing.assert_allclose(trace.largest_violation, np.maximum.accumulate(worst))
    np.testing.assert_allclose(trace.per_constraint_violation, np.cumsum(values, axis=0))
    np.testing.assert_allclose(trace.long_term_violation, np.cumsum(values, axis=0).max(axis=1))
    t = np.arange(1, 51)
    np.testing.assert_allclose(trace.theta, 3 * problem.constants.diameter * 2**0.5 / t ** (2 / 3))
    np.testing.assert_allclose(trace.mu * trace.theta, 1 / (t + 1))


def test_a_grid_of_beta_times_seeds():
    problem, stream = doubly_stochastic(3), RandomPermutations(3)
    grid = np.array([0.3, 0.5, 0.9])
    together = run(problem, AOGD.for_problem(problem, beta=grid), stream, 80, seeds=range(2))
    assert together.cumulative_loss.shape[1:] == (3, 2)
    for i, beta in enumerate(grid.tolist()):
        for j in range(2):
            alone = run(problem, AOGD.for_problem(problem, beta=beta), stream, 80, seeds=j)
            np.testing.assert_allclose(together.cumulative_loss[:, i, j], alone.cumulative_loss, rtol=0, atol=1e-9)
            np.testing.assert_allclose(together.theta[:, i, j], alone.theta, rtol=1e-12)


def test_all_learners_of_a_comparison_see_the_same_rounds():
    problem, _ = problems()["adversary on a box"]
    rng = np.random.default_rng(0)
    once = FromIterable((c / 3,) for c in rng.standard_normal((300, 3)).clip(-1, 1))
    same = AOGD.for_problem(problem)
    traces = compare(problem, {"a": same, "b": same, "c": AOGD.for_problem(problem, beta=0.4)}, once, 300)
    np.testing.assert_array_equal(traces["a"].cumulative_loss, traces["b"].cumulative_loss)
    assert not np.array_equal(traces["a"].cumulative_loss, traces["c"].cumulative_loss)


def test_log_spaced_rounds_thin_out():
    rounds = [t for t, _ in zip(log_spaced_rounds(), range(120), strict=False)]
    assert rounds[:10] == list(range(1, 11))
    assert all(b > a for a, b in itertools.pairwise(rounds))
    in_a_decade = [t for t in rounds if 1000 <= t < 10_000]
    assert len(in_a_decade) == 20


def test_the_last_round_is_always_recorded():
    problem, stream = problems()["adversary on a box"]
    assert run(problem, AOGD.for_problem(problem), stream, 97).rounds[-1] == 97
    assert run(problem, AOGD.for_problem(problem), stream, 97, record=[5]).rounds.tolist() == [5, 97]


def test_a_finite_stream_is_run_to_its_end():
    problem, stream = problems()["two-dimensional"]
    assert run(problem, AOGD.for_problem(problem), stream).last_round == 300


@pytest.mark.slow
def test_progress_is_reported_between_blocks():
    problem = doubly_stochastic(2)
    seen = []
    run(
        problem,
        AOGD.for_problem(problem),
        RandomPermutations(2),
        9000,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert len(seen) >= 2
    assert seen[-1] == (9000, 9000)


def test_blocks_do_not_change_the_numbers(monkeypatch):
    problem, stream = doubly_stochastic(3), RandomPermutations(3)
    usual = run(problem, AOGD.for_problem(problem), stream, 300, seeds=range(2))
    monkeypatch.setattr("longterm.problems.streams.base.BLOCK_BYTES", 1)
    assert_same_trace(run(problem, AOGD.for_problem(problem), stream, 300, seeds=range(2)), usual)


def test_same_seed_same_bytes_and_other_seed_other_bytes():
    problem, stream = doubly_stochastic(3), RandomPermutations(3)
    one, two, other = (run(problem, AOGD.for_problem(problem), stream, 100, seeds=s).cumulative_loss for s in (5, 5, 6))
    assert one.tobytes() == two.tobytes() != other.tobytes()


def test_a_stream_that_ends_early_has_a_trace_that_can_be_resumed():
    problem = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.5]))
    costs = RandomCosts(2).draw(0, 0, 100).loss[0]
    with pytest.raises(StreamEndedError, match="ended after round 40") as ended:
        run(problem, AOGD.for_problem(problem), Replay([costs[:40]]), 100)
    assert ended.value.trace.last_round == 40
    whole = run(problem, AOGD.for_problem(problem), Replay([costs]), 100)
    rest = run(problem, AOGD.for_problem(problem), Replay([costs]), 100, resume=ended.value.trace)
    assert rest.cumulative_loss[-1] == whole.cumulative_loss[-1]


def test_an_iterable_is_resumed_at_its_next_item():
    problem = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.5]))
    costs = RandomCosts(2).draw(0, 0, 700).loss[0]
    whole = run(problem, AOGD.for_problem(problem), Replay([costs]), 700)
    stream = FromIterable((c,) for c in costs)
    part = run(problem, AOGD.for_problem(problem), stream, 300)
    with pytest.raises(InputError, match="resume"):
        run(problem, AOGD.for_problem(problem), stream, 300)
    rest = run(problem, AOGD.for_problem(problem), stream, 700, resume=part)
    assert rest.cumulative_loss[-1] == whole.cumulative_loss[-1]


def test_the_last_row_reports_the_last_round():
    problem, stream = problems()["adversary on a box"]
    learner = AOGD.for_problem(problem)
    every = run(problem, learner, stream, 97, record=range(1, 98))
    last = run(problem, learner, stream, 97, record=[5])
    for name in every.reports:
        assert last.reports[name][-1] == every.reports[name][-1]
    assert every.eta[-1] != every.eta[-2]


def test_ties_are_broken_by_index_within_a_share_of_D():
    for scale in (1.0, 1e6):
        g = Affine(scale * np.eye(2), np.zeros(2))
        problem = Problem(Ball(2), Linear(2), g, declared={"constraint_gradient_bound": scale})
        near, apart = np.array([0.3, 0.3 + 1e-10]), np.array([0.3, 0.3 + 1e-7])
        for x, row in ((near, [1.0, 0.0]), (apart, [0.0, 1.0])):
            told = observe(problem, x, [np.zeros(2)])
            np.testing.assert_allclose(told.constraint_gradient / scale, row)
            assert told.constraint == scale * x[1]
    single = observe(problem, np.array([0.3, 0.3 + 1e-6], dtype=np.float32), [np.zeros(2, dtype=np.float32)])
    np.testing.assert_allclose(single.constraint_gradient / scale, [1.0, 0.0])  # float32 cannot tell them apart
