"""A-FTRL on sparse rows, held to the reference learner and to the dense layout."""

import math

import numpy as np
import pytest

from linear_learners import learner_with, put, require_sound, sparse_rows, trace_of
from longterm import Problem, observe
from longterm.learners import AFTRL
from longterm.learners.ftrl.ftrl_scales import GivenScale
from longterm.learners.ftrl.multiplier import Multiplier
from longterm.linear_model.kernels.layout import FIELDS, Parameters
from longterm.problems.constraints import ElasticNetBudget
from longterm.problems.losses import Hinge, LeastSquares, Logistic


def drawn_state(rng, d, parameters):
    """z and scalars, with the cases that hurt: on the threshold, a hair above it, all dead, in the ball, tiny, huge."""
    scale = 10.0 ** rng.uniform(-8, 8)
    z = scale * rng.standard_normal(d) * (rng.random(d) < rng.choice([0.0, 0.2, 1.0]))
    threshold = scale * rng.choice([0.0, 0.3, 1.0, 5.0]) * rng.random()
    multiplier_sum = threshold / parameters.l1 if parameters.l1 else threshold
    threshold = multiplier_sum * parameters.l1
    edge = rng.random(d)
    near = np.array([threshold, np.nextafter(threshold, np.inf), threshold * (1 + 1e-12), -threshold])
    z = np.where(edge < 0.3, rng.choice(near, d), z)
    t = int(10 ** rng.uniform(0, 7))
    squares = float(np.vdot(z, z)) * rng.uniform(1 / t, 10) + 1e-300
    w = np.maximum(np.abs(z) - threshold, 0.0)
    state = {"round": t, "multiplier": multiplier_sum * rng.random(), "multiplier_sum": multiplier_sum}
    state |= {"norm_1": math.fsum(w), "norm_2": math.fsum(w * w)}
    if parameters.step == 0:
        state |= {"gradient_squares": squares, "longest_gradient": math.sqrt(squares / t)}
    bound = parameters.intercept_bound
    curvature = (
        math.sqrt(t) / parameters.step if parameters.step else math.sqrt(squares) / math.hypot(parameters.radius, bound)
    )
    slope = scale * rng.standard_normal()
    state |= {"intercept_slope": slope, "intercept": np.clip(-slope / curvature, -bound, bound)}
    length, free = math.sqrt(state["norm_2"]), 1 / (curvature + multiplier_sum * parameters.l2)
    return z, state | {"scale": parameters.radius / length if length * free > parameters.radius else free}


def drawn_row(rng, d):
    """Column numbers, values, and the row as a dense one."""
    chosen = np.sort(rng.choice(d, rng.integers(0, d + 1), replace=False))
    values = rng.standard_normal(len(chosen)) * rng.choice([1.0, 1e-3, 1e3])
    u = np.zeros(d)
    u[chosen] = values
    return chosen, values, u


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "kind"), [(0, Logistic), (1, Hinge), (3, LeastSquares)])
@pytest.mark.parametrize(("l1", "l2"), [(1.0, 1.0), (0.3, 0.0), (0.0, 2.0)])
def test_one_round_is_the_reference_learners(loss, kind, l1, l2):
    rng = np.random.default_rng([loss, int(10 * l1)])
    for _ in range(400):
        d = int(rng.integers(1, 9))
        g = ElasticNetBudget(d, 10.0 ** rng.uniform(-2, 2), l1=l1, l2=l2)
        B = g.enclosing_ball()
        step, theta_0 = 10.0 ** rng.uniform(-3, 3, 2)
        f = kind(d, 1e9) if kind is not LeastSquares else kind(d, 1e9, 1e9)
        problem = Problem(B, f, g)
        learner = AFTRL(g.prox(B), GivenScale(step), Multiplier(theta_0))
        given = Parameters(g.budget, l1, l2, B.radius, loss=loss, step=step, theta_0=theta_0)
        z, state = drawn_state(rng, d, given)
        ours = put(learner_with("a-ftrl", given, d, sparse=True), z, **state)
        multiplier_sum = np.array([state["multiplier_sum"]])
        start = learner.init()
        reference = start._replace(
            round=np.asarray(state["round"]),
            x=learner.prox.argmin(z, multiplier_sum, np.sqrt(state["round"]) / step),
            gradient_sum=z.copy(),
            weight=multiplier_sum,
            dual=start.dual._replace(multiplier=np.array([state["multiplier"]])),
        )
        assert np.allclose(ours.weights, reference.x, rtol=1e-10, atol=1e-10 * B.radius)
        (columns, values, u), y = drawn_row(rng, d), float(rng.choice([-1.0, 1.0]))
        seen = observe(problem, reference.x, [u, np.asarray(y)])
        wanted = learner.update(reference, seen)
        margin = ours.step(columns, values, y)
        require_sound(ours)
        g_scale = g.budget + abs(float(seen.constraint))
        assert ours.signed_violation == pytest.approx(float(seen.constraint), abs=1e-10 * g_scale)
        assert ours.cumulative_loss == pytest.approx(float(seen.loss), rel=1e-10, abs=1e-10)
        assert ours.multiplier == pytest.approx(wanted.multiplier[0], rel=1e-10, abs=1e-10 * g_scale)
        assert np.allclose(ours._state.z, wanted.gradient_sum, rtol=1e-10, atol=1e-300)
        assert np.allclose(ours.weights, wanted.x, rtol=1e-10, atol=1e-10 * B.radius)
        assert margin == pytest.approx(u @ reference.x, rel=1e-9, abs=1e-9 * B.radius)


@pytest.mark.slow
@pytest.mark.parametrize("loss", range(6))
@pytest.mark.parametrize("online", [False, True])
def test_one_round_is_the_dense_learners(loss, online):
    rng = np.random.default_rng([7, loss, online])
    for _ in range(300):
        d = int(rng.integers(1, 40))
        l1, l2 = [(1.0, 1.0), (0.5, 0.0), (0.0, 1.0)][rng.integers(3)]
        g = ElasticNetBudget(d, 10.0 ** rng.uniform(-2, 2), l1=l1, l2=l2)
        theta_0, step = 10.0 ** rng.uniform(-3, 3), 0.0 if online else 10.0 ** rng.uniform(-3, 3)
        given = Parameters(
            g.budget,
            l1,
            l2,
            g.enclosing_ball().radius,
            intercept_bound=float(rng.choice([0.0, 2.0])),
            loss=loss,
            loss_parameter=0.3,
            step=step,
            theta_0=theta_0,
        )
        z, state = drawn_state(rng, d, given)
        ours, theirs = (put(learner_with("a-ftrl", given, d, sparse=of), z, **state) for of in (True, False))
        (columns, values, u), y, weight = drawn_row(rng, d), rng.choice([-1.0, 1.0]), rng.uniform(0, 2)
        theirs.step_dense(u, y, weight)
        ours.step(columns, values, y, weight)
        require_sound(ours)
        assert np.allclose(ours.weights, theirs.weights, rtol=1e-10, atol=1e-10 * given.radius)
        assert ours.intercept == pytest.approx(theirs.intercept, rel=1e-10, abs=1e-10)
        assert ours.rounds == theirs.rounds
        names = [field.name for field in FIELDS]
        for name in names[names.index("loss_sum") : names.index("scale")]:
            mine, their = ours._state.number(name), theirs._state.number(name)
            assert np.allclose(mine, their, rtol=1e-9, atol=1e-10 * g.budget), name
        if l1 * ours._state.number("multiplier_sum") > 0:  # without a threshold z = 5e-324 is active, and its x is 0
            assert ours.nonzeros == np.count_nonzero(ours.weights)


@pytest.mark.slow
@pytest.mark.parametrize("loss", [0, 1, 3])
def test_whole_runs_are_the_reference_learners(loss):
    rng = np.random.default_rng(loss)
    n, d = 3000, 60
    rows = sparse_rows(rng, n, d, 0.1)
    X = rows.toarray()
    labels = np.sign(X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(n))
    g = ElasticNetBudget(d, 0.2)
    B = g.enclosing_ball()
    norm = float(np.linalg.norm(X, axis=1).max())
    problem = Problem(B, [Logistic(d, norm), Hinge(d, norm), None, LeastSquares(d, norm, 1.0)][loss], g)
    learner = AFTRL.for_problem(problem, theta_0=problem.constants.constraint_bound)
    given = Parameters(0.2, 1.0, 1.0, B.radius, loss=loss, step=learner.scale.step, theta_0=learner.dual.theta_0)
    ours, traced = (learner_with("a-ftrl", given, d, sparse=True) for _ in range(2))
    margins, trace = ours.learn(rows, labels), trace_of(traced, rows, labels)
    state, sums, nonzeros = learner.init(), np.zeros(2), []
    for t in range(n):
        x = learner.ask(state)
        seen = observe(problem, x, [X[t], labels[t]])
        sums += seen.loss, seen.constraint
        nonzeros.append(np.count_nonzero(x))
        assert (trace["loss"][t], trace["signed_violation"][t]) == pytest.approx(tuple(sums), rel=1e-9, abs=1e-9)
        assert trace["multiplier"][t] == pytest.approx(state.multiplier[0], rel=1e-8, abs=1e-9)
        assert margins[t] == pytest.approx(X[t] @ x, abs=1e-8)
        state = learner.update(state, seen)
    assert np.array_equal(trace["nonzeros"], nonzeros)
    assert np.allclose(ours.weights, state.x, atol=1e-9)
    assert 0 < np.count_nonzero(state.x) < d
    require_sound(ours)
