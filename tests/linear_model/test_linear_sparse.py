"""A-FTRL on sparse rows, held to the reference learner and to the dense kernel."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from longterm import Problem, observe
from longterm.constraints import ElasticNetBudget
from longterm.learners import AFTRL
from longterm.linear_model import _layout as at
from longterm.linear_model import play as dense
from longterm.linear_model import sparse
from longterm.linear_model._layout import Parameters, State
from longterm.linear_model.sparse import SparseState
from longterm.losses import Hinge, LeastSquares, Logistic
from longterm.theory.schedules import DecoupledSchedule
from sparse_learners import matrix, require_sound


def drawn_state(rng, d, parameters):
    """A dense state, with the cases that hurt: on the threshold, a hair above it, all dead, in the ball, tiny, huge."""
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
    state = State.start(d)
    state.round[0], state.vector[:] = t, z
    w = np.maximum(np.abs(z) - threshold, 0.0)
    numbers = state.numbers
    numbers[at.MULTIPLIER], numbers[at.MULTIPLIER_SUM] = multiplier_sum * rng.random(), multiplier_sum
    numbers[at.NORM_1], numbers[at.NORM_2] = math.fsum(w), math.fsum(w * w)
    if parameters.step == 0:
        numbers[at.SQUARES], numbers[at.LARGEST] = squares, math.sqrt(squares / t)
    curvature = (
        math.sqrt(t) / parameters.step
        if parameters.step
        else math.sqrt(squares) / math.hypot(parameters.radius, parameters.intercept_bound)
    )
    numbers[at.INTERCEPT_SLOPE] = scale * rng.standard_normal()
    bound = parameters.intercept_bound
    numbers[at.INTERCEPT] = np.clip(-numbers[at.INTERCEPT_SLOPE] / curvature, -bound, bound)
    length = math.sqrt(numbers[at.NORM_2])
    free = 1 / (curvature + multiplier_sum * parameters.l2)
    numbers[at.SCALE] = parameters.radius / length if length * free > parameters.radius else free
    return state


def drawn_row(rng, d, scale=1.0):
    chosen = np.sort(rng.choice(d, rng.integers(0, d + 1), replace=False)).astype(np.int32)
    values = scale * rng.standard_normal(len(chosen)) * rng.choice([1.0, 1e-3, 1e3])
    return values, chosen, np.array([0, len(chosen)], dtype=np.int32)


def dense_row(row, d):
    u = np.zeros(d)
    u[row[1]] = row[0]
    return u


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
        learner = AFTRL(g.prox(B), DecoupledSchedule(step, theta_0))
        given = Parameters(g.budget, l1, l2, B.radius, loss=loss, step=step, theta_0=theta_0)
        p = given.as_array()
        state = drawn_state(rng, d, given)
        ours = SparseState.of(p, state)
        x = sparse.decision(p, ours)[0]
        row, y = drawn_row(rng, d), float(rng.choice([-1.0, 1.0]))
        numbers = state.numbers
        reference = learner.init()._replace(
            round=np.asarray(state.round[0]),
            x=learner.prox.argmin(
                state.vector, numbers[at.MULTIPLIER_SUM : at.MULTIPLIER_SUM + 1], np.sqrt(state.round[0]) / step
            ),
            multiplier=numbers[at.MULTIPLIER : at.MULTIPLIER + 1].copy(),
            gradient_sum=state.vector.copy(),
            multiplier_sum=numbers[at.MULTIPLIER_SUM : at.MULTIPLIER_SUM + 1].copy(),
        )
        assert np.allclose(x, reference.x, rtol=1e-10, atol=1e-10 * B.radius)
        told = observe(problem, reference.x, [dense_row(row, d), np.asarray(y)])
        wanted = learner.update(reference, told)
        played = sparse.play(p, ours, row, np.array([y]), margins=True)
        require_sound(p, ours)
        g_scale = g.budget + abs(float(told.constraint))
        assert ours.numbers[at.SIGNED] == pytest.approx(float(told.constraint), abs=1e-10 * g_scale)
        assert ours.numbers[at.LOSS_SUM] == pytest.approx(float(told.loss), rel=1e-10, abs=1e-10)
        assert ours.numbers[at.MULTIPLIER] == pytest.approx(wanted.multiplier[0], rel=1e-10, abs=1e-10 * g_scale)
        assert np.allclose(ours.vector, wanted.gradient_sum, rtol=1e-10, atol=1e-300)
        assert np.allclose(sparse.decision(p, ours)[0], wanted.x, rtol=1e-10, atol=1e-10 * B.radius)
        assert played.margins[0] == pytest.approx(dense_row(row, d) @ reference.x, rel=1e-9, abs=1e-9 * B.radius)


@pytest.mark.parametrize("loss", range(6))
@pytest.mark.parametrize("online", [False, True])
def test_one_round_is_the_dense_kernels(loss, online):
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
        p = given.as_array()
        theirs = drawn_state(rng, d, given)
        ours = SparseState.of(p, theirs)
        row, y, weight = drawn_row(rng, d), np.array([rng.choice([-1.0, 1.0])]), rng.uniform(0, 2, 1)
        dense.play("aftrl", p, theirs, dense_row(row, d)[None], y, weights=weight)
        sparse.play(p, ours, row, y, weights=weight)
        require_sound(p, ours)
        x, b = dense.decision("aftrl", p, theirs)
        x_, b_ = sparse.decision(p, ours)
        assert np.allclose(x_, x, rtol=1e-10, atol=1e-10 * given.radius)
        assert b_ == pytest.approx(b, rel=1e-10, abs=1e-10)
        assert ours.round[0] == theirs.round[0]
        assert np.allclose(ours.numbers[: at.SCALE], theirs.numbers[: at.SCALE], rtol=1e-9, atol=1e-10 * g.budget)
        assert np.array_equal(sparse.nonzeros(p, ours)[0], np.flatnonzero(x_))
        assert np.array_equal(sparse.nonzeros(p, ours)[1], x_[x_ != 0])


@pytest.mark.parametrize("loss", [0, 1, 3])
def test_whole_games_are_the_reference_learners(loss):
    rng = np.random.default_rng(loss)
    n, d = 3000, 60
    rows = matrix(rng, n, d, 0.1)
    X = csr_array(rows, shape=(n, d)).toarray()
    labels = np.sign(X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(n))
    g = ElasticNetBudget(d, 0.2)
    B = g.enclosing_ball()
    norm = float(np.linalg.norm(X, axis=1).max())
    problem = Problem(B, [Logistic(d, norm), Hinge(d, norm), None, LeastSquares(d, norm, 1.0)][loss], g)
    learner = AFTRL.for_problem(problem, theta_0=problem.constants.constraint_bound)
    steps = learner.schedule
    p = Parameters(0.2, 1.0, 1.0, B.radius, loss=loss, step=steps.step, theta_0=steps.theta_0).as_array()
    ours, state, sums, zeros = SparseState.start(d), learner.init(), np.zeros(2), []
    played = sparse.play(p, ours, rows, labels, record=np.arange(1, n + 1), margins=True)
    for t in range(n):
        x = learner.ask(state)
        told = observe(problem, x, [X[t], labels[t]])
        sums += told.loss, told.constraint
        zeros.append(np.count_nonzero(x))
        assert played.trace[t, :2] == pytest.approx(sums, rel=1e-9, abs=1e-9)
        assert played.trace[t, 5] == pytest.approx(state.multiplier[0], rel=1e-8, abs=1e-9)
        assert played.margins[t] == pytest.approx(X[t] @ x, abs=1e-8)
        state = learner.update(state, told)
    assert np.array_equal(played.trace[:, 4], zeros)
    assert np.allclose(sparse.decision(p, ours)[0], state.x, atol=1e-9)
    assert 0 < np.count_nonzero(state.x) < d
    require_sound(p, ours)
