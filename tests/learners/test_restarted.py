"""Restarts: stretch by stretch the learner itself, and what they are for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import AOGD, Feedback, Fleet, InputError, Problem, observe, run
from longterm.bounds import penalised_ftrl, restarted, theorem_1
from longterm.constraints import L1Budget
from longterm.errors import BrokenBoundError
from longterm.learners import AFTRL, PenalisedFTRL, ProjectedOGD, Restarted
from longterm.losses import Linear
from longterm.problems import two_dimensional
from longterm.sets import Ball
from longterm.streams import RandomCosts, Replay
from opponents import KINDS, play_linear

PROBLEM = Problem(Ball(3), Linear(3), L1Budget(3, budget=1.0))
COSTS = RandomCosts(3).draw(0, 0, 100).loss[0]


@pytest.mark.parametrize("make", [AFTRL.tuned, PenalisedFTRL.tuned, AOGD.convex])
def test_every_stretch_is_a_run_of_its_own(make):
    learner = make(PROBLEM)
    whole = run(PROBLEM, Restarted(learner, every=40), Replay([COSTS]), record=range(1, 101))
    assert whole.last_round == 100
    losses = np.diff(whole.cumulative_loss, prepend=0)
    for start in (0, 40, 80):
        stretch = Replay([COSTS[start : start + 40]])
        alone = run(PROBLEM, learner, stretch, record=range(1, min(40, 100 - start) + 1))
        np.testing.assert_allclose(losses[start : start + 40], np.diff(alone.cumulative_loss, prepend=0), atol=1e-12)
        np.testing.assert_allclose(whole.eta[start : start + 40], alone.eta)
    np.testing.assert_array_equal(whole.state.x, alone.state.x)


def test_in_a_fleet_everybody_starts_anew_in_his_own_round():
    learner = Restarted(AFTRL.for_problem(PROBLEM), every=7)
    fleet, rng = Fleet(learner, 3), np.random.default_rng(0)
    played = [[], [], []]
    for cost in COSTS[:60]:
        who = np.flatnonzero(rng.random(3) < 0.6)
        told = observe(PROBLEM, fleet.ask(who), [np.tile(cost, (len(who), 1))])
        fleet.tell(told, who)
        for k in who:
            played[k].append(cost)
    for k in range(3):
        alone = run(PROBLEM, learner, Replay([np.array(played[k])]))
        np.testing.assert_allclose(fleet.state.x[k], alone.state.x, atol=1e-12)
        assert fleet.rounds[k] == len(played[k]) + 1


@given(kind=KINDS, seed=st.integers(0, 10**6), T=st.integers(1, 150), every=st.integers(1, 60))
def test_the_bound_holds_against_the_best_of_every_stretch(kind, seed, T, every):
    inner = PenalisedFTRL.for_problem(PROBLEM, w_0=0.01)
    game = play_linear(PROBLEM, Restarted(inner, every), kind, T, seed)
    best = -sum(np.abs(game.costs[start : start + every].sum(axis=0)).max() for start in range(0, T, every))
    bound = restarted(lambda n: penalised_ftrl(inner, PROBLEM.constants, n), every, T)
    assert game.loss - best <= float(bound.regret) * (1 + 1e-9)
    assert np.maximum(game.values, 0).sum() <= float(bound.violation) * (1 + 1e-9)


def test_the_bound_adds_up_by_hand():
    def theorem(n):
        return theorem_1(PROBLEM.constants, n, np.array([0.3, 0.6]))

    total = restarted(theorem, 40, [30, 80, 100])
    assert total.regret.shape == (3, 2)
    np.testing.assert_allclose(total.regret[0], theorem(30).regret)
    np.testing.assert_allclose(total.violation[1], 2 * theorem(40).violation)
    np.testing.assert_allclose(total.regret[2], 2 * theorem(40).regret + theorem(20).regret)


def test_aftrl_never_forgets_and_restarts_help():
    turned = Replay([np.repeat([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], 1000, axis=0)])
    learner = AFTRL.for_problem(PROBLEM)
    going_on = run(PROBLEM, learner, turned, record=[1000, 1500, 2000])
    anew = run(PROBLEM, Restarted(learner, every=500), turned, record=[1000, 1500, 2000])
    # 500 rounds after the turn the one still stands at the wrong end; the other is at the right one.
    assert going_on.cumulative_loss[1] - going_on.cumulative_loss[0] > 300
    assert anew.cumulative_loss[1] - anew.cumulative_loss[0] < -300


@pytest.mark.parametrize("every", [0, 2.5, True])
def test_bad_stretches_are_refused(every):
    with pytest.raises(InputError) as refused:
        Restarted(AFTRL.for_problem(PROBLEM), every)
    assert refused.value.argument == "every"


def test_the_inner_learner_checks_the_problem():
    other = Problem(Ball(3), Linear(3), L1Budget(3, budget=0.5))
    with pytest.raises(InputError, match="another constraint"):
        run(other, Restarted(AFTRL.for_problem(PROBLEM), 10), Replay([COSTS]))


def test_what_the_learner_was_made_for_is_kept():
    learner = Restarted(ProjectedOGD.for_problem(two_dimensional()), every=3)  # made for ‖∇f‖ ≤ 2, and for no G of g
    with pytest.raises(BrokenBoundError, match="loss_gradient"):
        learner.tell(learner.init(), Feedback(np.full(2, 1e6), np.asarray(0.0), np.zeros(2)))


def test_it_needs_what_its_learner_needs():
    assert Restarted(AFTRL.for_problem(PROBLEM), every=10).needs == AFTRL.needs
    assert Restarted(AOGD.for_problem(PROBLEM), every=10).needs == frozenset()
