"""The doubling trick: epochs that double, steps that follow, bounds that add up."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import AOGD, InputError, Problem, run
from longterm.learners import DoublingRestarts, DriftPlusPenalty, NoViolationAOGD, SinhaVaze, YuNeely
from longterm.learners.interface.needs import Need
from longterm.problems import two_dimensional
from longterm.problems.constraints import Affine
from longterm.problems.losses import Linear
from longterm.problems.sets import Box
from longterm.problems.streams import RandomCosts, Replay
from longterm.problems.streams.costs import SwitchingCosts
from opponents import KINDS, best_in_box, cut_problem, play_cut, play_linear, slope

PROBLEM = Problem(Box.cube(2, -1.0, 1.0), Linear(2), Affine([[0.6, 0.8], [1.0, 0.0]], [-0.2, -0.1]))
MAKERS = {
    "Yu–Neely": lambda T: YuNeely.for_problem(PROBLEM, horizon=T, preset="published"),
    "Yu–Neely, tuned": lambda T: YuNeely.for_problem(PROBLEM, horizon=T),
    "drift plus penalty": lambda T: DriftPlusPenalty.for_problem(PROBLEM, horizon=T, preset="neely-yu"),
    "Sinha–Vaze": lambda T: SinhaVaze.for_problem(PROBLEM, horizon=T),
    "A-OGD without violation": lambda T: NoViolationAOGD.for_problem(PROBLEM, horizon=T, margin="theorem"),
}
MEASURES = {"Sinha–Vaze": "hard_violation", "A-OGD without violation": "signed_violation"}
each_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
unproven = pytest.mark.filterwarnings("ignore::longterm.errors.AssumptionWarning")  # epochs shorter than c_0


@given(first=st.integers(1, 50), rounds=st.integers(1, 10**7))
def test_lengths_and_rounds_by_counting(first, rounds):
    learner = DoublingRestarts(SinhaVaze.for_problem(PROBLEM, horizon=1), first_epoch=first)
    start, length = learner.epochs(rounds)[-1]
    assert start <= rounds < start + length
    t = np.asarray([rounds, start, start + length - 1, start + length])
    assert learner.length_of(t).tolist() == [length, length, length, 2 * length]
    assert learner.round_within(t).tolist() == [rounds - start + 1, 1, length, 1]


@unproven
@each_maker
def test_every_epoch_is_a_run_of_its_own(make):
    costs = RandomCosts(2).draw(3, 0, 70).loss[0]
    learner = DoublingRestarts(make(7), first_epoch=10)
    trace = run(PROBLEM, learner, Replay([costs]), record=[10, 30, 70])
    sums = []
    for begin, end in itertools.pairwise((0, 10, 30, 70)):
        alone = run(PROBLEM, make(end - begin), Replay([costs[begin:end]]))
        sums.append(alone.per_constraint_violation[-1])
    np.testing.assert_allclose(trace.per_constraint_violation, np.cumsum(sums, axis=0), atol=1e-10)


@each_maker
def test_steps_for_another_horizon_are_those_made_for_it(make):
    other, right = make(50).for_horizon(np.asarray(800.0)), make(800)
    for name in ("horizon", "gamma", "alpha", "V"):
        if hasattr(right, name):
            assert float(getattr(other, name)) == pytest.approx(float(getattr(right, name)))


@given(kind=KINDS, seed=st.integers(0, 10**6), T=st.integers(1, 150), rule=st.sampled_from(sorted(MAKERS)))
def test_bounds_add_up(kind, seed, T, rule):
    learner = DoublingRestarts(MAKERS[rule](1), first_epoch=4)
    game = play_linear(PROBLEM, learner, kind, T, seed)
    g, bound = PROBLEM.constraint, learner.bound(PROBLEM, T)
    regret = game.loss - best_in_box(-np.ones(2), np.ones(2), g.matrix, g.limit, game.costs.sum(axis=0))
    worst = game.values.max(axis=1)
    seen = {
        "hard_violation": np.maximum(worst, 0.0).sum(),
        "signed_violation": worst.sum(),
        "long_term_violation": game.values.sum(axis=0).max(),
    }
    measure = MEASURES.get(rule, "long_term_violation")
    assert set(bound) == {"regret", measure}
    assert regret <= float(bound["regret"]) * (1 + 1e-9)
    assert seen[measure] <= float(bound[measure]) + 1e-9 * abs(float(bound[measure]))


@pytest.mark.slow
def test_without_a_horizon_the_violation_of_yu_and_neely_grows_like_its_logarithm():
    assert PROBLEM.slater_point is not None
    learner = DoublingRestarts(YuNeely.for_problem(PROBLEM, horizon=1))
    bounds = learner.bound(PROBLEM, [2**10 - 1, 2**15 - 1, 2**20 - 1])
    first, second = np.diff(bounds["long_term_violation"])
    assert second == pytest.approx(first, rel=0.02)  # as much again for every five doublings
    assert slope([2**10, 2**20], bounds["regret"][[0, -1]]) == pytest.approx(0.5, abs=0.01)
    known = YuNeely.for_problem(PROBLEM, horizon=2**20).bound(PROBLEM, 2**20)
    ratio = float(bounds["regret"][-1]) / float(known["regret"])
    assert ratio == pytest.approx(1 / (2**0.5 - 1), rel=0.01)  # at the end of an epoch; 3.4 at the worst moment
    trace = run(PROBLEM, learner, SwitchingCosts(2), 2**12 - 1, record=[2**10 - 1, 2**12 - 1])
    assert np.all(trace.long_term_violation <= bounds["long_term_violation"][:2])


@pytest.mark.slow
def test_against_an_adversary_without_a_horizon():
    problem, T = cut_problem(), 1792
    learner = DoublingRestarts(SinhaVaze.for_problem(problem, horizon=1), first_epoch=256)
    bound, game = learner.bound(problem, T), play_cut(learner, T)
    assert game.regret <= float(bound["regret"])
    assert game.hard <= float(bound["hard_violation"])


def test_three_times_the_regret_from_the_end_of_the_first_epoch_on():
    """c√T √2/(√2 − 1) needs T ≥ N: N = 10⁴ and T = 200 have a regret of 100.5, and the formula says 72.4."""
    problem = Problem(Box.cube(1, -1.0, 1.0), Linear(1), Affine([[1.0]], [0.5]))
    c, N = 1.5, 10_000  # c = (3/2) r G_f
    learner = DoublingRestarts(YuNeely.for_problem(problem, horizon=1), first_epoch=N)
    rounds = np.array([200, N, N + 1, 3 * N, 3 * N + 1, 10 * N])
    bound, claim = learner.bound(problem, rounds)["regret"], c * np.sqrt(rounds) * 2**0.5 / (2**0.5 - 1)
    assert bound[0] > claim[0]
    assert np.all(bound[1:] <= claim[1:])
    trace = run(problem, learner, Replay([np.ones((200, 1))]))
    assert claim[0] < float(trace.cumulative_loss[-1]) + 200 <= bound[0]


def test_it_is_made_by_the_name_of_a_learner():
    learner = DoublingRestarts.for_problem(PROBLEM, of="no_violation_aogd", beta=0.8)
    c_0 = NoViolationAOGD.for_problem(PROBLEM, horizon=1, margin="theorem", beta=0.8).needed_horizon
    assert learner.first_epoch == int(np.ceil(c_0))
    assert DoublingRestarts.for_problem(PROBLEM, of="no_violation_aogd", first_epoch=7).first_epoch == 7
    plain = DoublingRestarts.for_problem(PROBLEM, of="sinha_vaze")
    assert (type(plain.learner), plain.first_epoch) == (SinhaVaze, 16)
    for name, what in (("aogd", "no steps that depend on a horizon"), ("nobody", "no learner is called")):
        with pytest.raises(InputError, match=what):
            DoublingRestarts.for_problem(PROBLEM, of=name)


def test_a_grid_of_horizonless_learners():
    grid = DriftPlusPenalty.for_problem(
        cut_problem(), horizon=100, preset="liakopoulos", window=2, V=np.array([10.0, 20.0])
    )
    learner = DoublingRestarts(grid, first_epoch=5)
    rows, offsets = np.tile([[[1.0, 0.0]]], (40, 1, 1)), np.full((40, 1), 0.1)
    costs = np.full((40, 2), -0.5)
    trace = run(cut_problem(), learner, Replay([costs], [rows, offsets]))
    for k, V in enumerate((10.0, 20.0)):
        single = DriftPlusPenalty.for_problem(cut_problem(), horizon=100, preset="liakopoulos", window=2, V=V)
        alone = run(cut_problem(), DoublingRestarts(single, first_epoch=5), Replay([costs], [rows, offsets]))
        np.testing.assert_allclose(trace.state.x[k], alone.state.x, atol=1e-12)
    assert float(np.ptp(trace.state.queue)) > 0


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: DoublingRestarts(AOGD.for_problem(two_dimensional())), "learner"),
        (lambda: DoublingRestarts(SinhaVaze.for_problem(two_dimensional(), horizon=1), first_epoch=0), "first_epoch"),
    ],
)
def test_what_makes_no_sense_is_refused(call, argument):
    with pytest.raises(InputError) as refused:
        call()
    assert refused.value.argument == argument


def test_what_the_learner_inside_needs_is_asked_for():
    assert DoublingRestarts(SinhaVaze.for_problem(PROBLEM, horizon=1)).needs == frozenset()
    assert DoublingRestarts(YuNeely.for_problem(PROBLEM, horizon=1)).needs == {Need.FIXED_CONSTRAINT, Need.PROX}
    with pytest.raises(InputError, match="same constraint in every round"):
        run(cut_problem(), DoublingRestarts(YuNeely.for_problem(PROBLEM, horizon=1)), Replay([np.zeros((3, 2))]))


def test_a_first_epoch_that_cannot_be_counted_is_refused():
    options = {"of": "no_violation_aogd", "margin": "theorem", "beta": 0.05}
    with pytest.raises(InputError, match=r"first_epoch.*at most 2\*\*53"):
        DoublingRestarts.for_problem(PROBLEM, **options)
    assert DoublingRestarts.for_problem(PROBLEM, first_epoch=8, **options).first_epoch == 8
