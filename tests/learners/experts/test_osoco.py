"""OSOCO: first rounds by hand, safety under adversaries and noise, its bounds, and what it needs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import InputError, Problem, observe, run
from longterm.learners import OSOCO
from longterm.problems.constraints import Affine, L2Budget, VaryingAffine
from longterm.problems.losses import Linear, SquaredDistance
from longterm.problems.sets import Ball, Box, Product, Simplex
from longterm.problems.streams import RandomCosts
from opponents import best_in_box


def test_first_rounds_by_hand():
    """On [−1, 1] with x ≤ ½ and costs −1 both experts lead to the same decision, whichever is drawn."""
    problem = Problem(Box([-1.0], [1.0]), Linear(1), Affine([[1.0]], [0.5]))
    learner = OSOCO.for_problem(problem)  # S = L = 1, ρ = 0: β = 1, V_1 = 1, and A is known to lie in [−1, 1]
    state, seen = learner.init(), []
    for _ in range(8):
        seen.append(float(learner.ask(state)[0]))
        state = learner.tell(state, observe(problem, learner.ask(state), [np.array([-1.0])]))
    # Steps of 2 take the experts to 1 and, with x ≤ ½ in its set, to ½. Both are scaled to ½: x + |x| ≤ ½ · 2.
    assert seen[:6] == pytest.approx([0.0, 0.5, 0.5, 0.5, 0.5, 0.5])
    # After round 6 V = 2.25 is above 2: a phase begins with Â = 1.25/2.25 and V^{−½} = 1/1.5, at 0.
    assert seen[6:] == pytest.approx([0.0, 0.5 / (5 / 9 + 2 / 3)])
    assert float(learner.report(state)["beta"]) == 1.0


def played(problem, learner, rounds, seed, noise=0.0, kind="adaptive"):
    """Play costs that may look at the decision, and show the values with noise of two signs. Return also max g."""
    rng, constraint, d = np.random.default_rng(seed), problem.constraint, problem.dimension
    state, total, loss, largest = learner.init(), np.zeros(d), 0.0, -np.inf
    push = constraint.matrix[0] / np.linalg.norm(constraint.matrix[0])
    for t in range(rounds):
        x, cost = learner.ask(state), rng.standard_normal(d)
        if kind == "adaptive":  # towards the constraint that is nearest
            cost = -constraint.matrix[np.argmax(constraint.matrix @ x - constraint.limit)]
        elif kind == "phases":
            cost = push if (4 * t // rounds) % 2 else -push
        cost = cost / np.linalg.norm(cost)
        told = observe(problem, x, [cost])
        total, loss = total + cost, loss + float(told.loss)
        largest = max(largest, float(told.constraint))
        noisy = told.constraint_values + noise * rng.choice([-1.0, 1.0], constraint.count)
        state = learner.tell(state, told._replace(constraint_values=noisy))
    return loss, total, largest


def random_problem(seed, d=2, ball=False):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((2, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) * rng.uniform(1, 2)
    centre = 0.2 * rng.standard_normal(d) / d
    B = Ball(d, 1.0, centre) if ball else Box(centre - 1, centre + 1)
    return Problem(B, Linear(d), Affine(rows, rng.uniform(0.05, 0.6, 2)))


@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 2),
    ball=st.booleans(),
    T=st.integers(1, 25),
    kind=st.sampled_from(["adaptive", "phases", "random"]),
    margin=st.sampled_from([0.0, 0.04]),
)
def test_exact_values_are_never_violated_whatever_the_costs(seed, d, ball, T, kind, margin):
    problem = random_problem(seed, d, ball)
    learner = OSOCO.for_problem(problem, seed=seed, margin=margin)
    _, _, largest = played(problem, learner, T, seed, kind=kind)
    assert largest <= -margin + 1e-12


@pytest.mark.slow
def test_noisy_values_are_not_violated_and_are_learned():
    """With δ = 0.01 none of four runs violates, and on the line the limit is found from noisy values alone."""
    for seed in range(4):
        problem = random_problem(seed, d=1)
        assert played(problem, OSOCO.for_problem(problem, noise=0.1, seed=seed), 80, seed, noise=0.1)[2] <= 0
    line, rng = Problem(Box([-1.0], [1.0]), Linear(1), Affine([[0.4]], [0.2])), np.random.default_rng(0)
    learner = OSOCO(line.enclosing_set, (0.2,), row_norm=1.0, gradient_bound=1.0, noise=0.02)
    state, decisions = learner.init(), []
    for _ in range(300):
        decisions.append(float(learner.ask(state)[0]))
        told = observe(line, learner.ask(state), [np.array([-1.0])])
        noisy = told.constraint_values + 0.02 * rng.choice([-1.0, 1.0], 1)
        state = learner.tell(state, told._replace(constraint_values=noisy))
    assert decisions[1] == pytest.approx(0.2 / (1 + 0.02 * np.sqrt(2 * np.log(100))))  # b/β, while A may be 1
    assert 0.28 <= max(decisions[-20:]) <= 0.5


def test_too_small_a_noise_bound_can_violate():
    """Told that noise of ±2 is none, the learner trusts what it sees: the promise is worth its hypothesis."""
    worst = []
    for seed in range(6):
        problem = random_problem(seed, d=1)
        worst.append(played(problem, OSOCO.for_problem(problem, seed=seed), 60, seed, noise=2.0)[2])
    assert max(worst) > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["phases", "random"])
def test_the_regret_stays_under_the_bound(kind):
    problem = Problem(Box.cube(2, -1.0, 1.0), Linear(2), Affine([[0.6, 0.8], [1.0, 0.0]], [0.4, 0.3]))
    for noise in (0.0, 0.1):
        learner = OSOCO.for_problem(problem, noise=noise)
        loss, total, largest = played(problem, learner, 150, 3, noise, kind)
        best = best_in_box(-np.ones(2), np.ones(2), problem.constraint.matrix, problem.constraint.limit, total)
        assert largest <= 0
        assert loss - best <= float(learner.bound(problem, 150)["regret"])
        assert loss - best <= 0.5 * 150  # the bound is above that


def test_the_bound_by_hand():
    problem = Problem(Box([-1.0], [1.0]), Linear(1), Affine([[1.0]], [0.5]))
    learner = OSOCO.for_problem(problem, noise=0.25, delta=0.1, margin=0.1)
    logarithm, chance = np.log(101), np.log(10)
    phases, beta = 1 + logarithm / np.log(2), 0.25 * np.sqrt(logarithm + 2 * chance) + 1
    descent = (1.5 + np.sqrt(np.log(2))) * np.sqrt(100 * phases) + phases * (4 / 3 * np.log(2) + 2)
    by_hand = 2 * (descent + np.sqrt(50 * chance)) + 4 * beta / 0.4 * np.sqrt(100 * logarithm) + 0.1 * 100 / 0.5
    bound = learner.bound(problem, 100)
    assert float(bound["regret"]) == pytest.approx(by_hand)
    assert float(bound["hard_violation"]) == 0
    curved = Problem(problem.enclosing_set, SquaredDistance(1), problem.constraint)
    assert "linear losses" in OSOCO.for_problem(curved).bound(curved, 100).reason
    noisy = Problem(problem.enclosing_set, Linear(1), VaryingAffine(1, 1, 1.0, 2.0))
    assert "noisy" in OSOCO.for_problem(noisy, limit=[0.5], noise=0.25).bound(noisy, 100).reason


def test_the_steps_of_the_article_weigh_experts_with_linear_regret():
    """p ∝ p exp(−ζ_t f_t) with ζ_t of order 1/√t: what a first phase of n rounds built, it takes 3n rounds to undo."""
    n = 500
    zeta = np.sqrt(4 * np.log(2)) / np.sqrt(np.arange(1, 4 * n + 1))
    losses = np.where(np.arange(4 * n)[:, None] < n, [0.0, 1.0], [1.0, 0.0])
    scores = np.concatenate([np.zeros((1, 2)), -np.cumsum(zeta[:, None] * losses, axis=0)])[:-1]
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    assert (weights * losses).sum() - losses.sum(axis=0).min() > 0.45 * 4 * n


def test_a_noisy_problem_runs_and_a_batch_is_its_rows():
    problem = Problem(Ball(2), Linear(2), VaryingAffine(2, 1, 1.0, 2.0))
    learner = OSOCO.for_problem(problem, limit=[0.5], noise=0.1)
    rng = np.random.default_rng(0)
    state = learner.init((3,))
    single = learner.init()
    for _ in range(5):
        x, cost = learner.ask(state), rng.standard_normal((3, 2)) / 4
        limits = 0.5 - 0.1 * rng.choice([-1.0, 1.0], (3, 1))
        matrix = np.tile([[0.6, 0.8]], (3, 1, 1))
        state = learner.tell(state, observe(problem, x, [cost], [matrix, limits]))
        told = observe(problem, learner.ask(single), [cost[1]], [matrix[1], limits[1]])
        single = learner.tell(single, told)
    np.testing.assert_allclose(state.x[1], single.x, atol=1e-12)


def test_bad_input():
    box = Box.cube(2, -1.0, 1.0)
    good = Problem(box, Linear(2), Affine([[1.0, 0.0]], [0.5]))
    for call, argument in (
        (lambda: OSOCO.for_problem(Problem(box, Linear(2), Affine([[1.0, 0.0]], [0.0]))), "limit"),
        (lambda: OSOCO.for_problem(good, margin=0.5), "limit"),
        (lambda: OSOCO.for_problem(good, limit=[0.5, 0.5]), "limit"),
        (lambda: OSOCO.for_problem(good, noise=-1.0), "noise"),
        (lambda: OSOCO.for_problem(good, delta=1.0), "delta"),
        (lambda: OSOCO.for_problem(good, seed=-1), "seed"),
        (lambda: OSOCO.for_problem(Problem(box, Linear(2), L2Budget(2, budget=0.5))), "learner"),
        (lambda: OSOCO.for_problem(Problem(Simplex(2), Linear(2), Affine([[1.0, 0.0]], [0.5]))), "enclosing_set"),
        (
            lambda: OSOCO.for_problem(
                Problem(Product([Ball(1), Box([-1.0], [1.0])]), Linear(2), Affine([[1.0, 0.0]], [0.5]))
            ),
            "enclosing_set",
        ),
    ):
        with pytest.raises(InputError) as refused:
            call()
        assert refused.value.argument == argument
    learner = OSOCO.for_problem(good)
    two = Problem(box, Linear(2), Affine(np.eye(2), [0.5, 0.5]))
    with pytest.raises(InputError, match="1 constraints"):
        run(two, learner, RandomCosts(2), 3)
    state = learner.init()
    told = observe(good, state.x, [np.zeros(2)])._replace(constraint_values=None)
    with pytest.raises(InputError, match="constraint_values"):
        learner.tell(state, told)
