"""The doubling trick: epochs that double, steps that follow, bounds that add up."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import AOGD, InputError, Problem, run
from longterm.bounds import doubling_restarts, drift_plus_penalty, sinha_vaze, yu_neely
from longterm.constraints import Affine
from longterm.learners import DoublingRestarts, DriftPlusPenalty, Need, SinhaVaze, YuNeely
from longterm.losses import Linear
from longterm.problems import two_dimensional
from longterm.sets import Box
from longterm.streams import RandomCosts, Replay, SwitchingCosts
from opponents import KINDS, best_in_box, cut_problem, play_cut, play_linear, slope

PROBLEM = Problem(Box.cube(2, -1.0, 1.0), Linear(2), Affine([[0.6, 0.8], [1.0, 0.0]], [-0.2, -0.1]))
MAKERS = {
    "Yu–Neely": YuNeely.published,
    "Yu–Neely, tuned": YuNeely.tuned,
    "drift plus penalty": DriftPlusPenalty.neely_yu,
    "Sinha–Vaze": SinhaVaze.convex,
}
each_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@given(first=st.integers(1, 50), rounds=st.integers(1, 10**7))
def test_lengths_and_rounds_by_counting(first, rounds):
    learner = DoublingRestarts(SinhaVaze.for_problem(PROBLEM, horizon=1), first_epoch=first)
    start, length = learner.epochs(rounds)[-1]
    assert start <= rounds < start + length
    t = np.asarray([rounds, start, start + length - 1, start + length])
    assert learner.length_of(t).tolist() == [length, length, length, 2 * length]
    assert learner.own_round(t).tolist() == [rounds - start + 1, 1, length, 1]


@each_maker
def test_every_epoch_is_a_run_of_its_own(make):
    costs = RandomCosts(2).draw(3, 0, 70).loss[0]
    learner = DoublingRestarts(make(PROBLEM, 7), first_epoch=10)
    trace = run(PROBLEM, learner, Replay([costs]), record=[10, 30, 70])
    sums = []
    for begin, end in itertools.pairwise((0, 10, 30, 70)):
        alone = run(PROBLEM, make(PROBLEM, end - begin), Replay([costs[begin:end]]))
        sums.append(alone.per_constraint_violation[-1])
    np.testing.assert_allclose(trace.per_constraint_violation, np.cumsum(sums, axis=0), atol=1e-10)


@each_maker
def test_steps_for_another_horizon_are_those_made_for_it(make):
    other, right = make(PROBLEM, 50).for_horizon(np.asarray(800.0)), make(PROBLEM, 800)
    for name in ("horizon", "gamma", "alpha", "V"):
        if hasattr(right, name):
            assert float(getattr(other, name)) == pytest.approx(float(getattr(right, name)))


@given(kind=KINDS, seed=st.integers(0, 10**6), T=st.integers(1, 150), rule=st.sampled_from(sorted(MAKERS)))
def test_bounds_add_up(kind, seed, T, rule):
    learner = DoublingRestarts(MAKERS[rule](PROBLEM, 1), first_epoch=4)
    game = play_linear(PROBLEM, learner, kind, T, seed)
    g, facts = PROBLEM.constraint, PROBLEM.constants
    theorem = {"drift plus penalty": drift_plus_penalty, "Sinha–Vaze": sinha_vaze}.get(rule, yu_neely)
    bound = doubling_restarts(lambda one, n: theorem(one, facts, n), learner, T)
    regret = game.loss - best_in_box(-np.ones(2), np.ones(2), g.matrix, g.offset, game.costs.sum(axis=0))
    hard = np.maximum(game.values.max(axis=1), 0.0).sum()
    violation = hard if rule == "Sinha–Vaze" else game.values.sum(axis=0).max()
    assert regret <= float(bound.regret) * (1 + 1e-9)
    assert violation <= float(bound.violation) * (1 + 1e-9)


def test_without_a_horizon_the_violation_of_yu_and_neely_grows_like_its_logarithm():
    slack = 0.5
    learner = DoublingRestarts(YuNeely.for_problem(PROBLEM, horizon=1))
    bounds = doubling_restarts(
        lambda one, n: yu_neely(one, PROBLEM.constants, n, slack=slack), learner, [2**10 - 1, 2**15 - 1, 2**20 - 1]
    )
    first, second = np.diff(bounds.violation)
    assert second == pytest.approx(first, rel=0.02)  # as much again for every five doublings
    assert slope([2**10, 2**20], bounds.regret[[0, -1]]) == pytest.approx(0.5, abs=0.01)
    ratio = float(bounds.regret[-1]) / float(
        yu_neely(YuNeely.for_problem(PROBLEM, horizon=2**20), PROBLEM.constants, 2**20).regret
    )
    assert ratio == pytest.approx(1 / (2**0.5 - 1), rel=0.01)  # at the end of an epoch; 3.4 at the worst moment
    trace = run(PROBLEM, learner, SwitchingCosts(2), 2**12 - 1, record=[2**10 - 1, 2**12 - 1])
    assert np.all(trace.long_term_violation <= bounds.violation[:2])


def test_against_an_adversary_without_a_horizon():
    problem, T = cut_problem(), 1792
    learner = DoublingRestarts(SinhaVaze.for_problem(problem, horizon=1), first_epoch=256)
    bound = doubling_restarts(lambda one, n: sinha_vaze(one, problem.constants, n), learner, T)
    game = play_cut(learner, T)
    assert game.regret <= float(bound.regret)
    assert game.hard <= float(bound.violation)


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
