"""Constrained experts: first rounds by hand, the bounds under adversaries, and what they need."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import InputError, Problem, observe, run
from longterm.errors import AssumptionWarning
from longterm.learners import ConstrainedExperts
from longterm.problems.constraints import Affine, VaryingAffine
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball, Simplex
from longterm.problems.streams import RandomCosts, Replay
from longterm.testing import find_worst_cases


def test_first_rounds_by_hand():
    # ΔG_f = √2 · 1/√2 = 1, D = 1, λ = 0.1. g = p_1: the first expert is never feasible.
    problem = Problem(Simplex(2), Linear(2, 0.5**0.5), Affine([[1.0, 0.0]], [0.0]))
    learner = ConstrainedExperts(problem.enclosing_set, 0.1, 1.0, 1.0)
    state, cost = learner.init(), np.array([0.0, 0.5])
    state = learner.tell(state, observe(problem, state.x, [cost]))
    # Q_1 = ½, losses (w, ½) with w = 0.1 e^{0.05}. AdaHedge's gap is Γ = ½(½ − w), so α = ln 2/Γ and e^{−α·2Γ} = ¼.
    assert float(state.queue) == 0.5
    np.testing.assert_allclose(state.x, [0.8, 0.2])
    state = learner.tell(state, observe(problem, state.x, [cost]))
    assert float(state.queue) == pytest.approx(1.3)
    first, second = 0.1 * np.exp(0.05), 0.1 * np.exp(0.13)
    rate = np.log(2) / (0.5 * (0.5 - first))
    mixed = 0.8 * second + 0.2 * 0.5 + np.log(0.8 * np.exp(-rate * second) + 0.2 * np.exp(-rate * 0.5)) / rate
    rate = np.log(2) / (0.5 * (0.5 - first) + mixed)
    powers = np.exp(-rate * np.array([first + second, 1.0]))
    np.testing.assert_allclose(state.x, powers / powers.sum())
    assert float(learner.report(state)["multiplier"]) == pytest.approx(0.1 * np.exp(0.13))


def test_the_trade_off_by_hand():
    problem = Problem(Simplex(3, total=2.0), Linear(3), Affine([[1.0, 0.0, 0.0]], [0.0]))
    A, B = 16 / 3 * np.log(3) + 2, 2 * np.sqrt(np.log(3))
    learner = ConstrainedExperts.for_problem(problem, horizon=10_000, beta=np.array([0.0, 0.5, 1.0]))
    np.testing.assert_allclose(learner.rate, [2e-4 / B**2, 0.02 / B**2, 1 / (4 * A)])
    bound = learner.bound(problem, 10_000)
    E = 1 + A + 100 * B + np.array([1.0, 100.0, 10_000 * B**2 / (8 * A)])
    scale = 2 * 2**0.5  # Δ of the simplex, with G_f = 1
    np.testing.assert_allclose(bound["regret"], scale * E)
    np.testing.assert_allclose(bound["hard_violation"], 2 / learner.rate * np.log(4 * (E + 10_000)))


def against_experts(learner, problem, rounds, seed, kind):
    """Play costs and violations of an adversary, with a set of experts that are always feasible."""
    rng, N = np.random.default_rng(seed), problem.dimension
    feasible = np.arange(N) < rng.integers(1, N)
    state, regret, hard, losses = learner.init(), 0.0, 0.0, np.zeros(N)
    for t in range(rounds):
        p = learner.ask(state)
        cost, violation = rng.uniform(-1, 1, N), rng.random(N)
        if kind == "tempting":  # infeasible experts cost less
            cost = np.where(feasible, 1.0, -1.0)
        elif kind == "adaptive":  # charges for the leader, and lets it violate if it can
            leader = np.arange(N) == p.argmax()
            cost, violation = np.where(leader, 1.0, -1.0), np.where(leader, 1.0, 0.0)
        elif kind == "late":  # no violation until half of the rounds
            cost, violation = np.where(feasible, 1.0, -1.0), violation * (t > rounds // 2)
        violation = np.where(feasible, 0.0, violation)
        cost = cost / np.linalg.norm(cost)
        told = observe(problem, p, [cost], [violation[None] / 2, np.zeros(1)])  # rows of length at most 1
        regret, losses, hard = regret + cost @ p, losses + cost, hard + max(float(told.constraint), 0.0)
        state = learner.tell(state, told)
    return regret - losses[feasible].min(), hard


@given(
    seed=st.integers(0, 10**6),
    T=st.integers(1, 300),
    N=st.integers(2, 4),
    beta=st.floats(0, 1),
    kind=st.sampled_from(["random", "tempting", "adaptive", "late"]),
)
def test_the_bounds_hold_against_feasible_experts(seed, T, N, beta, kind):
    problem = Problem(Simplex(N), Linear(N), VaryingAffine(N, 1, row_norm=1.0, limit_bound=0.0))
    learner = ConstrainedExperts.for_problem(problem, horizon=T, beta=beta, spanned=True)
    regret, hard = against_experts(learner, problem, T, seed, kind)
    bound = learner.bound(problem, T)
    assert regret <= float(bound["regret"])
    assert hard <= float(bound["hard_violation"])


@pytest.mark.slow
@pytest.mark.cross
def test_a_larger_beta_violates_less():
    """The rule violates until its price works, about 1/λ. From β = 0.57 on λ is 1/(4A), whatever β."""
    problem, T = Problem(Simplex(3), Linear(3), VaryingAffine(3, 1, row_norm=1.0, limit_bound=0.0)), 8000
    learners = [ConstrainedExperts.for_problem(problem, horizon=T, beta=b, spanned=True) for b in (0.5, 0.6)]
    hard = [against_experts(learner, problem, T, 0, "tempting")[1] for learner in learners]
    assert hard[0] > 2 * hard[1]
    bounds = [float(learner.bound(problem, T)["hard_violation"]) for learner in learners]
    assert all(0.05 * bound <= found <= bound for found, bound in zip(hard, bounds, strict=True))


@pytest.mark.slow
def test_an_evolved_adversary_does_not_break_the_bounds():
    problem = Problem(Simplex(3), Linear(3), Affine([[0.6, 0.0, 0.8]], [0.0]))
    learner = ConstrainedExperts.for_problem(problem, horizon=16, beta=0.8)
    found = find_worst_cases(problem, learner, 16, generations=6)
    assert set(found) == {"regret", "hard_violation"}
    assert all(case.ratio <= 1 for case in found.values())


def test_a_mixture_may_be_feasible_where_no_expert_is():
    problem = Problem(Simplex(2), Linear(2), Affine([[1.0, -1.0], [-1.0, 1.0]], [0.0, 0.0]))  # p_1 = p_2
    learner = ConstrainedExperts.for_problem(problem, horizon=100)
    assert not learner.spanned
    assert "mixture" in learner.bound(problem, 100).reason
    face = Problem(Simplex(2), Linear(2), Affine([[1.0, 0.0]], [0.0]))
    assert ConstrainedExperts.for_problem(face, horizon=100).spanned
    changing = Problem(Simplex(2), Linear(2), VaryingAffine(2, 1, 1.0, 0.0))
    assert not ConstrainedExperts.for_problem(changing, horizon=100).spanned


def test_no_feasible_expert_and_no_overflow():
    problem = Problem(Simplex(2), Linear(2), VaryingAffine(2, 1, row_norm=2.0, limit_bound=0.0))
    learner = ConstrainedExperts.for_problem(problem, horizon=2000, beta=1.0)
    rounds = [np.ones((2000, 1, 2)), np.zeros((2000, 1))]
    trace = run(problem, learner, Replay([np.zeros((2000, 2))], rounds))
    assert float(trace.hard_violation[-1]) == pytest.approx(2000)
    assert np.all(np.isfinite(trace.state.memory))


def test_bad_input():
    ball = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.5]))
    simplex = Problem(Simplex(2), Linear(2), Affine([[1.0, 0.0]], [0.0]))
    for call, argument in (
        (lambda: ConstrainedExperts.for_problem(ball, horizon=10), "learner"),
        (lambda: ConstrainedExperts(ball.enclosing_set, 0.1, 1.0, 1.0), "enclosing_set"),
        (lambda: ConstrainedExperts.for_problem(simplex, horizon=0), "horizon"),
        (lambda: ConstrainedExperts.for_problem(simplex, horizon=10, beta=1.5), "beta"),
        (lambda: ConstrainedExperts(simplex.enclosing_set, -0.1, 1.0, 1.0), "rate"),
    ):
        with pytest.raises(InputError) as refused:
            call()
        assert refused.value.argument == argument
    fast = ConstrainedExperts(simplex.enclosing_set, 1.0, 1.0, 1.0, spanned=True)
    with pytest.warns(AssumptionWarning, match="λ ≤ 1/"):
        run(simplex, fast, RandomCosts(2), 5)
    assert not fast.bound(simplex, 5)
    state = fast.init()
    told = observe(simplex, state.x, [np.zeros(2)])._replace(constraint_at=None)
    with pytest.raises(InputError, match="constraint_at"):
        fast.tell(state, told)
