"""Restarts: stretch by stretch the learner itself, and what they are for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import AOGD, Feedback, Fleet, InputError, Problem, observe, run
from longterm.errors import BrokenBoundError
from longterm.learners import AFTRL, PenalisedFTRL, ProjectedOGD, Restarted
from longterm.problems import two_dimensional
from longterm.problems.constraints import L1Budget
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball
from longterm.problems.streams import RandomCosts, Replay
from longterm.theory.schedules import ConstantSchedule
from opponents import KINDS, play_linear

PROBLEM = Problem(Ball(3), Linear(3), L1Budget(3, budget=1.0))
COSTS = RandomCosts(3).draw(0, 0, 100).loss[0]


@pytest.mark.parametrize("kind", [AFTRL, PenalisedFTRL, AOGD])
def test_every_stretch_is_a_run_of_its_own(kind):
    learner = kind.for_problem(PROBLEM)
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
    learner = Restarted(inner, every)
    game = play_linear(PROBLEM, learner, kind, T, seed)
    best = -sum(np.abs(game.costs[start : start + every].sum(axis=0)).max() for start in range(0, T, every))
    bound = learner.bound(PROBLEM, T)
    assert game.loss - best <= float(bound["regret"]) * (1 + 1e-9)
    assert np.maximum(game.values, 0).sum() <= float(bound["hard_violation"]) * (1 + 1e-9)


def test_the_bound_adds_up_by_hand():
    inner = AOGD.for_problem(PROBLEM, beta=np.array([0.3, 0.6]))
    total, one = Restarted(inner, every=40).bound(PROBLEM, [30, 80, 100]), inner.bound(PROBLEM, [20, 30, 40])
    assert set(total) == {"regret", "signed_violation"}
    assert total["regret"].shape == (3, 2)
    np.testing.assert_allclose(total["regret"][0], one["regret"][1])
    np.testing.assert_allclose(total["signed_violation"][1], 2 * one["signed_violation"][2])
    np.testing.assert_allclose(total["regret"][2], 2 * one["regret"][2] + one["regret"][0])


def test_every_measure_of_the_learner_inside_is_added_up():
    problem = two_dimensional()
    for name, measures in (("online_adm", 3), ("projected_ogd", 2), ("mahdavi_ogd", 2)):
        learner = Restarted.for_problem(problem, of=name, every=30)
        bound, one = learner.bound(problem, 90), learner.learner.bound(problem, 30)
        assert len(bound) == measures
        for measure in one:
            assert float(bound[measure]) == pytest.approx(3 * float(one[measure]))


def test_a_learner_without_a_theorem_has_none_in_stretches():
    problem = two_dimensional()
    odd = AOGD(problem.enclosing_set, ConstantSchedule(theta=1.0, eta=1.0, mu=0.1))
    bound = Restarted(odd, every=10).bound(problem, 100)
    assert not bound
    assert "C2" in bound.reason


def test_it_is_made_by_the_name_of_a_learner():
    problem = two_dimensional()
    plain, known = Restarted.for_problem(problem), Restarted.for_problem(problem, of="mirror_prox", every=64)
    assert (type(plain.learner), plain.every) == (AOGD, 500)
    assert known.learner.schedule.eta == pytest.approx(64 ** (-1 / 3))  # the stretch is its horizon
    tilted = Restarted.for_problem(problem, of="aogd", beta=0.6, steps="strongly convex")
    assert (tilted.learner.schedule.beta, tilted.strong_convexity) == (0.6, 1.0)
    with pytest.raises(InputError, match=r"no learner is called 'aodg'.*'aogd'"):
        Restarted.for_problem(problem, of="aodg")


@pytest.mark.slow
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
