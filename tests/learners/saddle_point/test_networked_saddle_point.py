"""Agents on a graph: by hand, against the rule as it reached us, bounds, and agreement."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import InputError, Problem, hindsight, observe, run
from longterm.learners import NetworkedSaddlePoint
from longterm.learners.interface.needs import Need
from longterm.learners.saddle_point.networked_saddle_point import holding_multiplier
from longterm.problems import consensus
from longterm.problems.constraints import Affine, Consensus, VaryingAffine
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball, Box, Product
from longterm.problems.streams import NoisyTargets, Replay
from opponents import KINDS, play_linear

SEGMENT = Box.cube(1, -1.0, 1.0)
GRAPHS = {
    "pair": (2, [(0, 1)]),
    "path": (4, [(0, 1), (2, 1), (2, 3)]),
    "ring": (5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]),
    "star": (5, [(0, k) for k in range(1, 5)]),
    "complete": (4, [(i, j) for i in range(4) for j in range(i)]),
}
graphs = st.sampled_from(sorted(GRAPHS))


def common(x, size):
    """The nearest point at which all agents agree: their mean."""
    means = x.reshape(*x.shape[:-1], -1, size).mean(axis=-2)
    return np.tile(means, x.shape[-1] // size)


def test_first_rounds_by_hand():
    # Two agents on a segment, targets −1 and 1, η = ½, μ = 1, Λ = [−¾, ¾].
    problem = consensus(2, [(0, 1)], SEGMENT)
    learner = NetworkedSaddlePoint(problem.enclosing_set, problem.constraint, Ball(1, 0.75), eta=0.5, mu=1.0)
    state, seen = learner.init(), []
    for _ in range(3):
        state = learner.tell(state, observe(problem, learner.ask(state), [np.array([-1.0, 1.0])]))
        seen.append([*state.x, *state.multiplier])
    # x = (−½, ½), λ = 0; x = (−½ − ½·½, …) = (−¾, ¾), λ = −1 cut to −¾;
    # x_1 = −¾ − ½(¼ − ¾) = −½, x_2 = ¾ − ½(−¼ + ¾) = ½, λ = −¾ − 3/2 cut to −¾.
    np.testing.assert_allclose(seen, [[-0.5, 0.5, 0.0], [-0.75, 0.75, -0.75], [-0.5, 0.5, -0.75]])


@given(name=graphs, seed=st.integers(0, 10**6), size=st.integers(1, 3))
def test_both_steps_follow_the_gradients_of_the_lagrangian(name, seed, size):
    n, edges = GRAPHS[name]
    rng = np.random.default_rng(seed)
    g = Consensus(n, size, edges)
    x, multiplier = rng.standard_normal((n, size)), rng.standard_normal((len(edges), size))
    by_hand, pull = np.zeros((len(edges), size)), np.zeros((n, size))
    for e, (i, j) in enumerate(edges):
        by_hand[e] = x[i] - x[j]
        pull[i] += multiplier[e]
        pull[j] -= multiplier[e]
    np.testing.assert_allclose(g.differences(x.ravel()), by_hand.ravel())
    np.testing.assert_allclose(g.adjoint(multiplier.ravel()), pull.ravel(), atol=1e-14)
    singular = np.linalg.svd(np.vstack([g.differences(e) for e in np.eye(n * size)]), compute_uv=False)
    np.testing.assert_allclose(g.singular_values, [singular[0], singular[singular > 1e-9].min()])


def test_the_rule_as_it_reached_us_holds_two_multipliers_per_edge_and_steps_twice_as_far():
    """x_i ← Π(x_i − ε(∇f_i + Σ_j (λ_ij − λ_ji))), λ_ij ← Π_Λ(λ_ij + ε(x_i − x_j)), for both directions of each edge."""
    n, edges = GRAPHS["ring"]
    problem, step, reach = consensus(n, edges, SEGMENT), 0.1, 0.3
    targets = np.random.default_rng(0).uniform(-1, 1, (200, n))
    learner = NetworkedSaddlePoint(problem.enclosing_set, problem.constraint, Ball(1, 2 * reach), eta=step, mu=2 * step)
    x, pair = np.zeros(n), {(i, j): 0.0 for a, b in edges for i, j in ((a, b), (b, a))}
    for t, y in enumerate(targets):
        pulls = [sum(pair[i, j] - pair[j, i] for a, j in pair if a == i) for i in range(n)]
        new = np.clip(x - step * (x - y + pulls), -1, 1)
        pair = {(i, j): np.clip(v + step * (x[i] - x[j]), -reach, reach) for (i, j), v in pair.items()}
        x = new
        ours = run(problem, learner, Replay([targets]), t + 1).state if t in (0, 1, 50, 199) else None
        if ours is not None:
            np.testing.assert_allclose(ours.x, x, atol=1e-12)
            np.testing.assert_allclose(ours.multiplier, [pair[e] - pair[e[::-1]] for e in edges], atol=1e-12)


@given(name=graphs, seed=st.integers(0, 10**6))
def test_the_holding_multiplier_is_an_exact_penalty(name, seed):
    """Σ F_i(x_i) ≥ Σ F_i(u) − w Σ_e ‖x_i − x_j‖ at the best u, for linear F_i: tried at random points."""
    n, edges = GRAPHS[name]
    rng = np.random.default_rng(seed)
    g, slopes = Consensus(n, 1, edges), rng.standard_normal(n)
    w = holding_multiplier(g, float(np.linalg.norm(slopes)))
    points = np.concatenate([rng.uniform(-1, 1, (200, n)), np.sign(rng.standard_normal((200, n)))])
    best = -abs(slopes.sum())
    assert np.all(points @ slopes >= best - w * np.abs(g.differences(points)).sum(axis=-1) - 1e-12)


@given(name=graphs, kind=KINDS, seed=st.integers(0, 10**6), T=st.integers(1, 150), size=st.integers(1, 2))
def test_regret_and_disagreement_stay_under_the_bound(name, kind, seed, T, size):
    n, edges = GRAPHS[name]
    each = Box.cube(size, -1.0, 1.0)
    problem = Problem(Product([each] * n), Linear(n * size), Consensus(n, size, edges))
    learner = NetworkedSaddlePoint.for_problem(problem, horizon=T)
    game = play_linear(problem, learner, kind, T, seed)
    best = -np.abs(game.costs.sum(axis=0).reshape(n, size).sum(axis=0)).sum()
    bound = learner.bound(problem, T)
    assert game.loss - best <= float(bound["regret"]) * (1 + 1e-9)
    assert game.values.sum(axis=0).max() <= float(bound["long_term_violation"]) * (1 + 1e-9)
    if kind == "same":  # one law: the agents' means must come together
        apart = np.linalg.norm(game.values[:, : len(edges) * size].mean(axis=0).reshape(-1, size), axis=-1).sum()
        assert apart <= float(learner.mean_disagreement(problem, T)) * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_agents_with_different_targets_agree_on_the_mean_of_all(name):
    n, edges = GRAPHS[name]
    problem, T = consensus(n, edges, SEGMENT), 4000
    means = np.linspace(-0.7, 0.5, n)
    learner, stream = NetworkedSaddlePoint.for_problem(problem, horizon=T), NoisyTargets(means, spread=0.3)
    trace = run(problem, learner, stream, T, seeds=range(5))
    apart = np.abs(trace.per_constraint_violation[-1][:, : len(edges)]).sum(axis=-1) / T
    assert apart.mean() <= float(learner.mean_disagreement(problem, T))
    assert apart.mean() < 0.2 * np.abs(problem.constraint.differences(means)).sum()
    np.testing.assert_allclose(trace.state.x, np.full((5, n), means.mean()), atol=0.15)
    best = hindsight.best(problem, stream, trace.rounds, seeds=range(5))
    assert np.all(trace.regret(best)[-1] <= float(learner.bound(problem, T)["regret"]))


@pytest.mark.slow
def test_single_rounds_may_stay_apart_while_the_means_agree():
    """Linear losses damp nothing: two agents pulled apart swing for ever, and only their means come together."""
    apart, mean = [], []
    for T in (500, 4000):
        problem = Problem(Product([SEGMENT] * 2), Linear(2, 2.0), Consensus(2, 1, [(0, 1)]))
        trace = run(
            problem, NetworkedSaddlePoint.for_problem(problem, horizon=T), Replay([np.tile([1.0, -1.0], (T, 1))])
        )
        apart.append(float(trace.hard_violation[-1]) / T)
        mean.append(float(trace.long_term_violation[-1]) / T)
    assert apart[1] > 0.7 * apart[0] > 0.1
    assert max(mean) < 0.05 * min(apart)


@pytest.mark.parametrize(
    ("agents", "edges"),
    [(3, [(0, 1)]), (3, [(0, 1), (1, 3)]), (2, [(0, 0)]), (1, []), (4, [(0, 1), (2, 3)]), (2, [(-1, 0)])],
)
def test_graphs_that_cannot_agree_are_refused(agents, edges):
    with pytest.raises(InputError) as refused:
        consensus(agents, edges, SEGMENT)
    assert refused.value.argument == "edges"


def test_other_problems_are_refused_in_words():
    ring = consensus(3, [(0, 1), (1, 2), (2, 0)], SEGMENT)
    learner = NetworkedSaddlePoint.for_problem(ring, horizon=10)
    path = consensus(3, [(0, 1), (1, 2)], SEGMENT)
    with pytest.raises(InputError, match="was made for the edges"):
        run(path, learner, NoisyTargets(np.zeros(3), 0.1), 5)
    changing = Problem(ring.enclosing_set, ring.loss, VaryingAffine(3, 1, 1.0, 1.0))
    with pytest.raises(InputError, match=Need.FIXED_CONSTRAINT.value):
        run(changing, learner, Replay([np.zeros((3, 3))], [np.ones((3, 1, 3)), np.ones((3, 1))]))
    with pytest.raises(InputError, match=r"longterm\.consensus"):
        NetworkedSaddlePoint.for_problem(Problem(Ball(2), Linear(2), Affine([[1.0, -1.0]], [0.0])), horizon=10)


def test_sets_and_multipliers_must_fit():
    ring = consensus(3, [(0, 1), (1, 2), (2, 0)], SEGMENT)
    different = Product([SEGMENT, SEGMENT, Box.cube(1, -2.0, 2.0)])
    with pytest.raises(InputError, match="copies of one set"):
        NetworkedSaddlePoint(different, ring.constraint, Ball(1, 1.0), 0.1, 0.1)
    with pytest.raises(InputError, match="ball about 0"):
        NetworkedSaddlePoint(ring.enclosing_set, ring.constraint, Ball(2, 1.0), 0.1, 0.1)
    weak = NetworkedSaddlePoint(ring.enclosing_set, ring.constraint, Ball(1, 0.01), 0.1, 0.1)
    with pytest.raises(InputError, match="too small to enforce"):
        weak.mean_disagreement(ring, 10)
    for name in ("eta", "mu"):
        with pytest.raises(InputError) as refused:
            NetworkedSaddlePoint(ring.enclosing_set, ring.constraint, Ball(1, 1.0), **{"eta": 0.1, "mu": 0.1, name: 0})
        assert refused.value.argument == name


def test_a_grid_of_steps_is_one_learner():
    ring = consensus(3, [(0, 1), (1, 2), (2, 0)], SEGMENT)
    eta = np.array([0.05, 0.1])
    grid = NetworkedSaddlePoint(ring.enclosing_set, ring.constraint, Ball(1, 1.0), eta, 2 * eta)
    trace = run(ring, grid, NoisyTargets(np.array([-0.5, 0.0, 0.4]), 0.1), 50, seeds=range(3))
    assert trace.state.x.shape == (2, 3, 3)
    assert grid.bound(ring, [10, 50])["regret"].shape == (2, 2)
