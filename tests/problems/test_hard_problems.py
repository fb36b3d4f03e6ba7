"""The harder problems: constants by hand, and the properties that make them hard."""

import numpy as np
import pytest
from scipy.optimize import linprog

from longterm import InputError, challenge, find_slater_point, hindsight
from longterm.catalogue import scenarios
from longterm.hindsight.proximal_newton import ElasticNetBall, ElasticNetSlab
from longterm.problems import (
    EveryRound,
    InExpectation,
    OnAverage,
    budgeted_logistic,
    fair_logistic,
    job_scheduling,
    noisy_doubly_stochastic,
    online_linear_program,
    power_allocation,
    routing,
)
from longterm.problems.constraints import Affine, ElasticNetBudget
from longterm.problems.losses.priced_utility import PricedUtility
from longterm.problems.named.adversarial import random_half_spaces, switching_constraints
from longterm.problems.named.network import SMALL_NETWORK, Network
from longterm.problems.named.servers import mean_of_arrivals
from longterm.problems.sets import Box
from longterm.problems.streams import ResampledRows, Windows
from longterm.problems.streams.costs import SwitchingConstraints
from longterm.problems.streams.points import NoisyPermutations
from longterm.problems.streams.resources import DriftingCosts, EdgeLatencies, JobsAndPrices


def test_noisy_targets_leave_the_polytope_for_good():
    stream = NoisyPermutations(5, noise=0.4, hidden=0.3)
    problem = noisy_doubly_stochastic(5, noise=0.4)
    targets = stream.draw(2, 0, 6000).loss[0]
    mean = targets.mean(axis=0)
    assert problem.constraint.values(mean).max() > 0.05
    best = hindsight.best(problem, stream, [6000], seeds=2)
    assert np.linalg.norm(best.x[0] - mean) > 0.1
    noise = targets - (targets.reshape(-1, 5, 5) == targets.reshape(-1, 5, 5).max(axis=2, keepdims=True)).reshape(
        targets.shape
    )
    assert 0.35 < np.abs(noise).max() <= 0.4
    # The constants are attained: the worst target has entries 1 + ν and −ν, and the farthest x is opposite to it.
    worst = np.where(np.eye(5).ravel() > 0, 1.4, -0.4)
    farthest = problem.enclosing_set.extreme_point(-worst)
    near = problem.enclosing_set.extreme_point(worst)
    c = problem.constants
    assert np.linalg.norm(farthest - worst) == pytest.approx(c.loss_gradient_bound)
    assert np.ptp(problem.loss.value(np.stack([farthest, near]), worst)) == pytest.approx(c.loss_range)


def test_squared_distances_to_far_targets_have_an_exact_range():
    for radius in (0.3, 1.0, 2.5):
        problem = noisy_doubly_stochastic(1, noise=radius)  # B = [−1, 1], targets up to 1 + radius
        assert problem.constants.loss_range == pytest.approx(0.5 * ((2 + radius) ** 2 - radius**2))


def test_the_costs_of_yu_and_neely():
    stream = DriftingCosts(2, 5000)
    costs = stream.draw(4, 0, 5000).loss[0]
    assert stream.length == 5000
    largest = 5000**0.1 + 2
    assert 0.9 * largest < np.abs(costs).max() <= largest
    t = np.arange(1, 5001)
    below = (t <= 1500) | ((t >= 2000) & (t <= 3500)) | (t >= 4000)
    assert costs[below].mean() == pytest.approx(-0.5, abs=0.1)
    assert costs[~below].mean() == pytest.approx(0.5, abs=0.1)
    noise, level = (stream.expand(stream.drawn(4, 0, 5000)).loss[k] for k in (0, 1))
    signs = costs - t[:, None] ** 0.1 * noise - np.where(below[:, None], level, 1 + level)
    np.testing.assert_allclose(np.abs(signs), 1)
    assert abs(signs[:, 0].sum()) < 1e-9  # as many of either sign
    np.testing.assert_allclose(signs[:, 0], signs[:, 1])


def test_an_instance_of_the_online_linear_program():
    problem = online_linear_program(5000, instance=7)
    g, c = problem.constraint, problem.constants
    assert g.matrix.shape == (3, 2)
    assert g.matrix.min() >= 0
    assert g.matrix.max() <= 1
    assert g.limit.min() >= 0
    assert g.limit.max() <= 2
    assert not np.array_equal(g.matrix, online_linear_program(5000, instance=8).constraint.matrix)
    corner = np.full(2, 5000**0.1 + 2)
    assert np.linalg.norm(corner) == pytest.approx(c.loss_gradient_bound)
    assert 2 * corner.sum() == pytest.approx(c.loss_range)
    assert -g.values(-np.ones(2)).min() == pytest.approx(c.constraint_bound)
    with pytest.raises(InputError, match="instance"):
        online_linear_program(instance=-1)


def test_the_facts_of_priced_utilities_are_attained():
    f = PricedUtility([1.0, 2.0], [2.0, 1.0], [3.0, 4.0], prices=(0.1, 1.5))
    B = Box([0.0, 0.0], [3.0, 4.0])
    grid = np.stack(np.meshgrid(np.linspace(0, 3, 301), np.linspace(0, 4, 401)), axis=-1).reshape(-1, 2)
    ranges, sizes = [], []
    for price in (0.1, 0.8, 1.5):
        values, gradients = f.value_and_gradient(grid, price)
        ranges.append(np.ptp(values))
        sizes.append(np.linalg.norm(gradients, axis=1).max())
        assert challenge(f, B, parameters=[price]) == []
    assert max(sizes) == pytest.approx(f.gradient_bound(B), rel=1e-12)
    assert max(ranges) == pytest.approx(f.value_range(B), rel=1e-4)
    assert f.strong_convexity == pytest.approx(min(4 / 49, 2 / 25))
    too_convex = PricedUtility([1.0, 2.0], [2.0, 1.0], [2.0, 2.0], prices=(0.1, 1.5))  # made for smaller caps
    with pytest.raises(InputError, match="caps"):
        too_convex.gradient_bound(B)
    for wrong in ({"prices": (2.0, 1.0)}, {"gains": [1.0]}, {"weights": [0.0, 1.0]}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            PricedUtility(**{"weights": [1.0, 1.0], "gains": [1.0, 1.0], "caps": [1.0, 1.0], "prices": (0, 1)} | wrong)


def test_power_by_hand():
    problem = power_allocation([0.2, 3.0], devices=2)  # w = (1, 2), a = (2, 1), x ≤ 2 each, 2.8 together
    for prices, x in (
        ([0.2], [2.8 / 3 * 1, 2.8 / 3 * 2]),  # the level: (1 + 2)/p − ½ − 1 = 2.8, so x = (1, 2)/p − (½, 1)
        ([3.0], [0.0, 0.0]),  # no first unit is worth more than 2
        ([1.0], [0.5, 1.0]),
    ):
        series = np.array(prices)
        best = hindsight.best(problem, Windows(series), [1])
        np.testing.assert_allclose(best.x[0], x, atol=1e-12)
        assert best.gap[0] <= 1e-12
    free = hindsight.best(power_allocation([0.0, 0.0], devices=1), Windows(np.zeros(3)), [3])
    np.testing.assert_allclose(free.x, [[1.4]])
    for prices in ([], [-1.0], [np.nan]):
        with pytest.raises(InputError, match="prices"):
            power_allocation(prices)


def test_the_seed_selects_the_start_of_a_window():
    series = Windows(np.arange(100.0), 2 * np.arange(100.0))
    price, twice = series.draw(5, 0, 250).loss
    np.testing.assert_array_equal(np.diff(price) % 100, 1)
    np.testing.assert_array_equal(twice, 2 * price)
    assert series.draw(0, 0, 1).loss[0] == 0
    assert len({float(series.draw(seed, 0, 1).loss[0][0]) for seed in range(20)}) > 10
    with pytest.raises(InputError, match="rows"):
        Windows(np.zeros(3), np.zeros(4))


def test_a_network_by_hand():
    net = Network({(0, 1): 1.0, (1, 3): 1.0, (0, 2): 0.5, (2, 3): 0.5, (1, 2): 0.3}, demands={(0, 3): 1.0, (1, 2): 0.2})
    assert net.paths == (((0, 1), (1, 3)), ((0, 1), (1, 2), (2, 3)), ((0, 2), (2, 3)), ((1, 2),))
    assert net.counts == (3, 1)
    problem = routing(net)
    np.testing.assert_allclose(problem.enclosing_set.centre, [1 / 3, 1 / 3, 1 / 3, 0.2])
    np.testing.assert_allclose(
        problem.constraint.values(np.array([0.5, 0.25, 0.25, 0.2])), [-0.25, -0.5, -0.25, 0.0, 0.15]
    )
    assert problem.constants.loss_range == 2  # two edges that the other path has not
    with pytest.raises(InputError, match="no path goes from 3 to 0"):
        Network({(0, 3): 1.0}, demands={(3, 0): 1.0})


def test_the_range_of_routing_is_the_largest_over_all_latencies():
    problem, P = routing(), SMALL_NETWORK.incidence
    B, found = problem.enclosing_set, 0.0
    corners = np.array(np.meshgrid(*[[0.0, 1.0]] * len(P))).reshape(len(P), -1).T
    costs = corners @ P
    found = (B.support(costs) + B.support(-costs)).max()
    assert problem.constants.loss_range == pytest.approx(found)
    assert np.linalg.norm(costs, axis=1).max() == pytest.approx(problem.constants.loss_gradient_bound)


@pytest.mark.slow
def test_the_quickest_paths_overload_edges():
    problem, stream = routing(), EdgeLatencies(SMALL_NETWORK.incidence)
    assert find_slater_point(problem.constraint, problem.enclosing_set).epsilon > 0.05
    overloaded = 0
    for seed in range(5):
        total = stream.draw(seed, 0, 2000).loss[0].sum(axis=0)
        quickest = problem.enclosing_set.extreme_point(-total)
        overloaded += problem.constraint.values(quickest).max() > 0.1
        # A path's cost is the sum of its edges' latencies, each in [0, 1].
        costs = stream.draw(seed, 0, 300).loss[0]
        edges = np.linalg.lstsq(SMALL_NETWORK.incidence.T, costs.T, rcond=None)[0]
        np.testing.assert_allclose(SMALL_NETWORK.incidence.T @ edges, costs.T, atol=1e-12)
        assert np.all(costs <= SMALL_NETWORK.incidence.sum(axis=0))
    assert overloaded == 5


RNG = np.random.default_rng(5)
ROWS = np.column_stack([RNG.integers(0, 2, (300, 5)), np.ones(300)]).astype(float)
SENSITIVE = (ROWS[:, 0] + RNG.integers(0, 2, 300) > 1).astype(float)
LABELS = np.sign(2 * ROWS[:, 0] - ROWS[:, 1] - 0.5 + RNG.standard_normal(300))


def test_fairness_binds_and_costs():
    problem, stream = fair_logistic(ROWS, SENSITIVE, 1.5, 0.01), ResampledRows(ROWS, LABELS)
    normal = problem.constraint.parts[1].matrix[0]
    np.testing.assert_allclose(normal, np.cov(SENSITIVE, ROWS.T, bias=True)[0, 1:], atol=1e-12)
    plain = hindsight.best(budgeted_logistic(ROWS, 1.5), stream, [300], progress=None)
    fair = hindsight.best(problem, stream, [300], progress=None)
    assert abs(plain.x[0] @ normal) > 0.03
    assert abs(fair.x[0] @ normal) == pytest.approx(0.01, abs=1e-9)
    assert fair.loss[0] > plain.loss[0] + 1
    loose = fair_logistic(ROWS, SENSITIVE, 1.5, limit=10.0)
    same = hindsight.best(loose, stream, [300], progress=None)
    np.testing.assert_allclose(same.loss, plain.loss, rtol=2e-6)
    for wrong in (np.zeros(300), np.ones(7)):
        with pytest.raises(InputError, match="sensitive"):
            fair_logistic(ROWS, wrong, 1.5, 0.1)
    with pytest.raises(InputError, match="limit"):
        fair_logistic(ROWS, SENSITIVE, 1.5, 0.0)


def test_the_slab_of_an_elastic_net_ball():
    rng = np.random.default_rng(3)
    region = ElasticNetSlab(ElasticNetBudget(6, 1.3, l1=0.8, l2=1.2), rng.standard_normal(6), limit=0.2)
    w = 2 * rng.standard_normal((40, 6))
    near = region.project(w)
    assert np.abs(near @ region.normal).max() <= 0.2 * (1 + 1e-12)
    assert region.budget.values(near).max() <= 1e-12
    # Π is the one point z with ⟨w − z, s − z⟩ ≤ 0 for all s in the set: what the gap bounds, for the gradient z − w.
    assert region.gap(near, near - w).max() <= 1e-9
    assert np.any(np.abs(ElasticNetBall(region.budget).project(w) @ region.normal) > 0.3)
    inside = 0.1 * near
    np.testing.assert_array_equal(region.project(inside), inside)
    # The bound on ⟨gradient, x − s⟩ holds for the points of the set, and is nearly attained.
    gradient = rng.standard_normal((40, 6))
    gaps = region.gap(near, gradient)
    many = region.project(2 * rng.standard_normal((3000, 6)))
    reached = (np.vecdot(gradient, near)[:, None] - gradient @ many.T).max(axis=1)
    assert np.all(reached <= gaps + 1e-12)
    far = region.project(-1e7 * gradient)
    assert np.all(np.vecdot(gradient, near - far) >= gaps - 1e-5)


def test_constraints_switch_at_powers_of_two_and_costs_pull_across():
    pool = random_half_spaces(4, 3, instance=2)
    stream = SwitchingConstraints(pool, norm=2.0)
    block = stream.draw(6, 0, 64)
    rows, offsets = block.constraint[0][:, 0], block.constraint[1][:, 0]
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)
    changes = 1 + np.flatnonzero(np.any(np.diff(rows, axis=0) != 0, axis=1)) + 1
    np.testing.assert_array_equal(changes, [2, 4, 8, 16, 32, 64])
    for row, offset in zip(rows, offsets, strict=True):
        (k,) = np.flatnonzero(np.all(pool.matrix == row, axis=1))
        assert pool.limit[k] == offset
    np.testing.assert_allclose(np.linalg.norm(block.loss[0], axis=1), 2)
    assert np.all(np.vecdot(block.loss[0], rows) < 0)
    problem = switching_constraints(pool)
    worst = np.abs(pool.matrix).sum(axis=1) + pool.limit
    assert problem.constants.constraint_bound == pytest.approx(worst.max())
    assert -problem.constraint.values(np.zeros(4), rows[0][None], offsets[:1]).max() > 0.1 - 1e-12
    with pytest.raises(InputError, match="row of zeros"):
        SwitchingConstraints(Affine([[0.0, 0.0]], [1.0]))


def test_the_comparators_of_switching_constraints_are_nested():
    scenario = scenarios.switching_constraints()
    problem, stream = scenario.problem, scenario.stream
    every = hindsight.best(problem, stream, [1000], seeds=range(4))
    average = hindsight.best(problem, stream, [1000], seeds=range(4), benchmark=OnAverage())
    assert np.all(average.loss < every.loss - 10)
    for seed in range(4):
        matrix, offset = stream.draw(seed, 0, 1000).constraint
        assert (np.vecdot(matrix, every.x[0, seed]) - offset).max() <= 1e-9
        assert (np.vecdot(matrix, average.x[0, seed]) - offset).max() > 0.1  # it breaks some, to gain elsewhere


def test_jobs_arrive_as_stated_and_comparators_differ():
    stream, problem = JobsAndPrices(np.linspace(0.5, 1.5, 12)), job_scheduling(12)
    block = stream.draw(3, 0, 6000)
    jobs = -block.constraint[1][:, 0]
    assert jobs.mean() == pytest.approx(6, abs=0.1)
    assert jobs.var() == pytest.approx(3, abs=0.2)
    assert block.loss[0].min() >= 0
    assert block.loss[0].max() <= 1
    np.testing.assert_array_equal(block.loss[0][:, 0], block.loss[0][:, 3])  # the same zone
    mean = mean_of_arrivals(12)
    best = {
        name: hindsight.best(problem, stream, [6000], seeds=3, benchmark=b).loss[0]
        for name, b in (("every", EveryRound()), ("average", OnAverage()), ("expected", InExpectation(mean)))
    }
    assert best["average"] == pytest.approx(best["expected"], rel=0.03)
    assert best["every"] > 1.5 * best["expected"]
    # The constants are attained: all jobs arrive and nobody works, or none arrive and all do.
    c, rows = problem.constants, -np.linspace(0.5, 1.5, 12)[None]
    assert problem.constraint.values(np.zeros(12), rows, [-12.0])[0] == c.constraint_bound
    assert problem.constraint.values(np.ones(12), rows, [0.0])[0] == pytest.approx(-c.constraint_bound)
    assert np.linalg.norm(rows) == pytest.approx(c.constraint_gradient_bound)
    assert problem.loss.value(np.ones(12), np.ones(12)) == pytest.approx(c.loss_range)
    by_hand = linprog(block.loss[0].sum(axis=0), A_ub=-np.linspace(0.5, 1.5, 12)[None], b_ub=[-6.0], bounds=(0, 1))
    assert best["expected"] == pytest.approx(by_hand.fun)


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        (lambda: NoisyPermutations(3, hidden=1.5), "hidden"),
        (lambda: NoisyPermutations(3, noise=-0.1), "noise"),
        (lambda: DriftingCosts(2, 0), "rounds"),
        (lambda: JobsAndPrices([1.0, 0.0]), "speeds"),
        (lambda: job_scheduling(1), "servers"),
        (lambda: random_half_spaces(2, 0), "count"),
        (lambda: EdgeLatencies([1.0]), "incidence"),
    ],
)
def test_impossible_problems_are_refused(wrong, argument):
    with pytest.raises(InputError) as refused:
        wrong()
    assert refused.value.argument == argument
