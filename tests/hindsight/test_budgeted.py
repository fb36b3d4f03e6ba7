"""The comparators of budgeted logistic regression against CVXPY and each other; the choice of ρ."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from longterm import AOGD, InputError, Problem, hindsight, run
from longterm.errors import LongtermError
from longterm.hindsight import choose_budget, logistic_rows, proximal_newton
from longterm.hindsight.gaps import elastic_net_gap, support_of_elastic_net
from longterm.hindsight.offline_logistic import least_log_loss
from longterm.problems import budgeted_logistic
from longterm.problems.constraints import ElasticNetBudget
from longterm.problems.sets import Ball
from longterm.problems.streams import Replay, ResampledRows


def table(n: int = 300, d: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, d)) * np.geomspace(2, 0.2, d)
    labels = np.where(features @ rng.standard_normal(d) + rng.standard_normal(n) > 0, 1.0, -1.0)
    return features, labels


def by_cvxpy(features: np.ndarray, labels: np.ndarray, weights: np.ndarray, budget: ElasticNetBudget):
    import cvxpy as cp

    x = cp.Variable(features.shape[1])
    size = budget.l1 * cp.norm1(x) + 0.5 * budget.l2 * cp.sum_squares(x)
    loss = weights @ cp.logistic(-cp.multiply(labels, features @ x))
    with warnings.catch_warnings():  # with one row or two it stops a little early
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        cp.Problem(cp.Minimize(loss), [size <= budget.budget]).solve(solver=cp.CLARABEL)
    return x.value, float(loss.value)


@given(
    st.integers(1, 7),
    st.floats(1e-3, 1e3),
    st.sampled_from([(1.0, 1.0), (0.3, 2.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1e-9)]),
)
def test_support_of_the_elastic_net_is_attained_and_never_passed(seed, budget, weights):
    l1, l2 = weights
    rng = np.random.default_rng(seed)
    c = rng.standard_normal((20, 6)) * rng.choice([0.01, 1.0, 100.0], size=(20, 6))
    claimed = support_of_elastic_net(c, budget, l1, l2)
    # Never passed by points of the set: random directions, stretched to the boundary.
    s = np.concatenate([rng.standard_normal((500, 6)) * rng.integers(0, 2, (500, 6)), c, np.eye(6), -np.eye(6)])
    size, square = l1 * np.abs(s).sum(-1), 0.5 * l2 * np.vecdot(s, s)
    stretch = np.divide(
        2 * budget, size + np.sqrt(size**2 + 4 * square * budget), where=size + square > 0, out=0 * size
    )
    assert np.all((stretch[:, None] * s) @ c.T <= claimed * (1 + 1e-9))
    # Attained by soft(c, l1 ν)/(l2 ν) with the ν that spends the whole budget, found here by a search.
    if l2 >= 0.1:
        for direction, value in zip(c, claimed, strict=True):
            a = np.abs(direction)

            def spent(log_nu, a=a):
                s = np.maximum(a - l1 * np.exp(log_nu), 0) / (l2 * np.exp(log_nu))
                return l1 * s.sum() + 0.5 * l2 * s @ s - budget

            nu = np.exp(brentq(spent, -40, np.log(a.max() / l1) if l1 else 40, xtol=1e-14))
            assert a @ np.maximum(a - l1 * nu, 0) / (l2 * nu) == pytest.approx(value, rel=1e-7)


def test_support_by_hand_and_of_zero():
    # c = (2, 1), l1 = l2 = 1, ρ = 4: one coordinate alone has ν² = 4/9, less than 1: both count, ν² = 5/10.
    nu = np.sqrt(0.5)
    s = (np.array([2.0, 1.0]) - nu) / nu
    assert np.abs(s).sum() + 0.5 * s @ s == pytest.approx(4.0)
    assert support_of_elastic_net(np.array([2.0, 1.0]), 4.0) == pytest.approx(s @ [2.0, 1.0])
    for l1, l2 in ((1.0, 1.0), (1.0, 0.0), (0.0, 1.0)):
        assert support_of_elastic_net(np.zeros(3), 4.0, l1, l2) == 0


@pytest.mark.parametrize(
    ("budget", "l1", "l2"), [(0.1, 1.0, 1.0), (2.0, 1.0, 1.0), (2.0, 0.5, 3.0), (1.5, 1.0, 0.0), (1.0, 0.0, 1.0)]
)
def test_every_round_of_every_sequence_agrees_with_cvxpy(budget, l1, l2):
    features, labels = table()
    problem, stream = budgeted_logistic(features, budget, l1=l1, l2=l2), ResampledRows(features, labels)
    rounds, seeds = [1, 2, 7, 40, 300], [3, 5]
    best = hindsight.best(problem, stream, rounds, seeds=seeds)
    assert best.x.shape == (5, 2, 8)
    assert best.loss.shape == best.gap.shape == (5, 2)
    assert best.seeds == (3, 5)
    assert np.all(best.gap <= 1e-6 * best.loss)
    assert problem.constraint.values(best.x).max() <= 1e-12 * budget
    for k, t in enumerate(rounds):
        for j, seed in enumerate(seeds):
            u, y = stream.draw(seed, 0, t).loss
            direct = problem.loss.value(best.x[k, j], u, y).sum()
            assert best.loss[k, j] == pytest.approx(direct, rel=1e-12)
            weights = np.bincount(stream.drawn(seed, 0, t), minlength=len(features)).astype(float)
            used = weights > 0
            x, loss = by_cvxpy(features[used], labels[used], weights[used], problem.constraint)
            assert best.loss[k, j] == pytest.approx(loss, rel=2e-6)
            gradient = problem.loss.gradient(best.x[k, j], u, y).sum(axis=0)
            assert best.gap[k, j] == pytest.approx(
                elastic_net_gap(best.x[k, j], gradient, budget, l1, l2), abs=1e-9 * t
            )
            if t == 300:
                np.testing.assert_allclose(best.x[k, j], x, atol=2e-3)


def test_a_sequence_alone_is_the_sequence_in_a_batch(monkeypatch):
    features, labels = table(2000, 5)
    problem, stream = budgeted_logistic(features, 1.0), ResampledRows(features, labels)
    monkeypatch.setattr("longterm.hindsight.logistic_rows.SEQUENCES_PER_SOLVE", 2)
    batch = hindsight.best(problem, stream, [10, 2000], seeds=[4, 8, 9], relative_gap=1e-12)
    for j, seed in enumerate((4, 8, 9)):
        single = hindsight.best(problem, stream, [10, 2000], seeds=seed, relative_gap=1e-12)
        assert single.x.shape == (2, 5)
        np.testing.assert_allclose(batch.x[:, j], single.x, atol=1e-6)
        np.testing.assert_allclose(batch.loss[:, j], single.loss, rtol=1e-11)


def test_a_poor_sample_of_the_curvature_grows(monkeypatch):
    features, labels = table(5000, 12)
    features[:20, 11] *= 500  # a feature whose curvature comes from a handful of rows
    monkeypatch.setattr(logistic_rows, "SAMPLE", 30)
    found = least_log_loss(features, labels, 3.0, relative_gap=1e-9)
    assert found.gap <= 1e-9 * found.loss
    monkeypatch.setattr(logistic_rows, "SAMPLE", 10**6)
    assert found.loss == pytest.approx(least_log_loss(features, labels, 3.0, relative_gap=1e-9).loss, rel=2e-9)


def test_separable_rows_and_a_budget_that_does_not_bind():
    features = np.array([[50.0, 0.0], [-50.0, 1.0], [40.0, -1.0]])
    found = least_log_loss(features, np.sign(features[:, 0]), 30.0)
    assert found.gap <= 1e-6 * found.loss
    assert found.slack < 1e-9
    features, labels = table(200, 3)
    found = least_log_loss(features, labels, 500.0, relative_gap=1e-9)
    free = least_log_loss(features, labels, 1000.0, relative_gap=1e-9)
    assert found.slack > 0.5
    np.testing.assert_allclose(found.x, free.x, atol=1e-3)


def test_out_of_steps_is_an_error_and_not_a_bad_comparator(monkeypatch):
    monkeypatch.setattr(proximal_newton, "MAX_STEPS", 1)
    with pytest.raises(LongtermError, match="certified gap is still"):
        least_log_loss(*table(), 2.0)


def test_regret_lies_in_the_certified_interval():
    features, labels = table()
    problem, stream = budgeted_logistic(features, 1.0), ResampledRows(features, labels)
    trace = run(problem, AOGD.for_problem(problem), stream, 300, seeds=range(2), record=[30, 300])
    rough = hindsight.best(problem, stream, [30, 300], seeds=range(2), relative_gap=1e-2)
    sharp = hindsight.best(problem, stream, [30, 300], seeds=range(2), relative_gap=1e-10)
    low, true = trace.regret(rough), trace.regret(sharp)
    assert np.all(low <= true + sharp.gap)
    assert np.all(true <= low + rough.gap)


def test_sparse_rows_are_the_same_rows():
    features, labels = table(400, 6)
    features[np.abs(features) < 0.5] = 0
    dense = least_log_loss(features, labels, 1.0, relative_gap=1e-10)
    sparse = least_log_loss(scipy.sparse.csr_array(features), labels, 1.0, relative_gap=1e-10)
    np.testing.assert_allclose(sparse.x, dense.x, atol=1e-7)


def test_mismatched_arguments_are_refused():
    features, labels = table()
    problem, stream = budgeted_logistic(features, 1.0), ResampledRows(features, labels)
    for arguments, match in (
        ((problem, ResampledRows(features[:, :5], labels), [3]), "5 features"),
        ((problem, ResampledRows(features, labels + 1), [3]), "label ±1"),
        ((problem, stream, [3, 2]), "does not increase"),
    ):
        with pytest.raises(InputError, match=match):
            hindsight.best(*arguments)
    for share, match in ((0.0, "not positive"), (1.0, "outside")):
        with pytest.raises(InputError, match=match):
            choose_budget(features, labels, share)
    with pytest.raises(InputError, match="one column"):
        choose_budget(features[:, :1], labels)
    features = features.copy()
    features[5, 3] = np.nan
    for rows in (features, scipy.sparse.csr_array(features)):
        with pytest.raises(InputError, match="NaN"):
            least_log_loss(rows, labels, 1.0)
    features[:, 2:] = 0
    with pytest.raises(InputError, match="no more than 2 of 8"):
        choose_budget(features, labels, 0.3)


def test_other_problems_use_another_solver():
    features, labels = table()
    problem, stream = budgeted_logistic(features, 2.0), ResampledRows(features, labels)
    narrow = Problem(Ball(8, radius=0.1), problem.loss, problem.constraint)
    replayed = Replay(stream.draw(0, 0, 40).loss)
    for asked, of in ((narrow, stream), (problem, replayed)):
        best = hindsight.best(asked, of, [3, 40])
        slow = hindsight.best(asked, of, [3, 40], method="cvxpy")
        assert best.solver == "CVXPY"
        np.testing.assert_allclose(best.loss, slow.loss, rtol=1e-6)
        assert best.relative_gap.max() <= 1e-6
    np.testing.assert_allclose(
        hindsight.best(problem, replayed, [3, 40]).loss, hindsight.best(problem, stream, [3, 40]).loss, rtol=2e-6
    )


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6])
def test_the_chosen_budget_has_the_wanted_share(share):
    features, labels = table(500, 10, seed=2)
    calls = []
    chosen = choose_budget(features, labels, share, progress=lambda done, total: calls.append(done))
    wanted = max(1, round(10 * share))
    assert chosen.count == wanted
    assert calls == list(range(1, len(chosen.path) + 1))
    assert chosen.slack < 1e-9
    assert all(step.gap <= 1e-8 * step.loss for step in chosen.path)
    assert [step.budget for step in chosen.path] == sorted(step.budget for step in chosen.path)
    # The middle of the stretch: as far (in proportion) from fewer as from more.
    fewer = max((step.budget for step in chosen.path if step.count < wanted), default=chosen.path[0].budget)
    more = min(step.budget for step in chosen.path if step.count > wanted)
    assert chosen.budget == pytest.approx(np.sqrt(fewer * more), rel=0.01)


def test_the_choice_does_not_depend_on_the_units_of_the_features():
    features, labels = table(300, 6)
    assert choose_budget(1e6 * features, labels, 0.5, l2=0.0).budget == pytest.approx(
        1e-6 * choose_budget(features, labels, 0.5, l2=0.0).budget, rel=0.02
    )


def test_separable_rows_with_badly_scaled_columns():
    """A least loss of 1e-16, of which no gap is a millionth: it is small beside the loss at 0."""
    rng = np.random.default_rng(15)
    features = np.column_stack([rng.integers(18, 80, 3), rng.poisson(3, 3), rng.gamma(2, 40, 3), np.eye(3)])
    found = least_log_loss(features, np.array([1.0, -1.0, -1.0]), 3.0)
    assert found.gap > 1e-6 * found.loss  # out of steps
    assert found.gap <= 1e-6 * max(found.loss, 1e-3 * 3 * np.log(2))
