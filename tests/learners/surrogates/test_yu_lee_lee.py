"""Yu, Lee and Lee: by hand, the inequality behind its bounds, constraints of an adversary and of chance, slopes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import InputError, Problem, observe, run
from longterm.learners import YuLeeLee
from longterm.learners.surrogates.inner import AdaGradNorm
from longterm.learners.surrogates.queue_rates import Published, Sharp
from longterm.learners.surrogates.yu_lee_lee import QueuePrice
from longterm.problems import two_dimensional
from longterm.problems.constraints import Affine, L2Budget, VaryingAffine
from longterm.problems.losses import Linear, SquaredDistance
from longterm.problems.sets import Ball, Box
from longterm.problems.streams import RandomCosts, Replay
from longterm.problems.streams.costs import SwitchingCosts
from opponents import KINDS, best_in_box, play_linear, regret_in_a_ball, slope

seeds, horizons = st.integers(0, 10**6), st.integers(1, 200)
RATES = st.sampled_from(["published", "sharp"])


def violation_of(bound, hard):
    """The bound on what the form is about."""
    return bound["hard_violation" if hard else "signed_violation"]


def test_first_rounds_by_hand():
    problem = two_dimensional()  # Δ = 2, G = 2, D = 5/4: γ_1 = γ_2 = 1/(24ΔG) = 1/96
    learner, right = YuLeeLee.for_problem(problem, rates="published"), [np.array([1.0, 0.0])]
    state = learner.tell(learner.init(), observe(problem, np.zeros(2), right))
    # w_1 = 1/96, d_1 = (−1 + 1/96, 0), η_1 = 2/√(2(1 + ‖d_1‖²)); g(x_1) = −¼; 12 γ_1 D² = 25/128; (Ψ_1 − Ψ_0)/w_1 = 16.
    d = 95 / 96
    x = 2 * d / np.sqrt(2 * (1 + d**2))
    np.testing.assert_allclose(state.x, [x, 0.0])
    assert float(state.queue[0]) == pytest.approx(-0.25 - 25 / 128 - 16)
    w_1, w_2 = 1 / 96, np.exp(float(state.queue[0]) / 96) / 96
    after = learner.tell(state, observe(problem, state.x, right))
    allowed = 25 / 128 + 16 * (np.sqrt(w_1**2 + w_2**2) - w_1) / w_2
    assert float(after.queue[0]) == pytest.approx(float(state.queue[0]) + x - 0.25 - allowed)
    d_2 = x - 1 + w_2
    np.testing.assert_allclose(after.x, [x - 2 * d_2 / np.sqrt(2 * (1 + d**2 + d_2**2)), 0.0])


def test_strongly_convex_steps_and_the_hard_form_by_hand():
    problem = two_dimensional()
    learner, right = (
        YuLeeLee.for_problem(problem, steps="strongly convex", hard=True, rates="published"),
        [np.array([1.0, 0.0])],
    )
    state = learner.tell(learner.init(), observe(problem, np.zeros(2), right))
    # g(x_1) < 0 is told as 0 with gradient 0; η_1 = 1/(1 + (2·2/2)/96).
    x = 1 / (1 + 2 / 96)
    np.testing.assert_allclose(state.x, [x, 0.0])
    assert float(state.queue[0]) == pytest.approx(-25 / 128 - 16)
    after = learner.tell(state, observe(problem, state.x, right))
    w_1, w_2 = 1 / 96, np.exp(float(state.queue[0]) / 96) / 96
    eta = 1 / (2 + 2 * np.sqrt(w_1**2 + w_2**2))
    np.testing.assert_allclose(after.x, [x - eta * (x - 1 + w_2), 0.0])


def test_the_conditions_of_the_rates():
    for rates in (Published(3.0, 2.0, 0.7), Sharp(3.0, 2.0, 0.7), Sharp(0.01, 2.0, 0.7), Published(0.01, 1.0, 0.7)):
        t = np.arange(1.0, 10_000.0)
        gamma, D, steep = rates.gamma(t), 0.7, rates.diameter * rates.gradient_bound
        assert np.all(np.diff(gamma) <= 0)
        u = gamma[0] * D
        rho, A = (np.exp(u) - 1 - u) / u**2, D * (1 + rates.allowance * u)
        assert rates.allowance * D**2 >= rho * A**2
        assert 2 * rho * gamma[0] * (2 * A + 4 * steep) <= 1
        assert np.all(np.cumsum(gamma) <= rates.total(t) * (1 + 1e-12))


def potential(learner, T, queue):
    """Φ_T(Q_{T+1})."""
    return np.expm1(float(learner.price.rates.gamma(np.asarray(float(T)))) * queue)


@given(kind=KINDS, seed=seeds, T=horizons, hard=st.booleans(), rates=RATES, size=st.sampled_from([1e-3, 0.03, 1.0]))
def test_regret_plus_potential_is_bounded(kind, seed, T, hard, rates, size):
    """Stronger than the theorem: Σ Δf_t + Φ_T(Q_{T+1}) ≤ C. Small problems make the queue speak early."""
    rng = np.random.default_rng(seed)
    row = rng.standard_normal((1, 3))
    offset = -0.3 * np.abs(row).sum(axis=1) * size
    problem = Problem(Box.cube(3, -size, size), Linear(3, size), Affine(row, offset))
    learner = YuLeeLee.for_problem(problem, rates=rates, hard=hard)
    game = play_linear(problem, learner, kind, T, seed)
    regret = game.loss - best_in_box(*(np.full(3, s) for s in (-size, size)), row, offset, game.costs.sum(axis=0))
    bound = learner.bound(problem, T)
    assert regret + potential(learner, T, float(game.state.queue[0])) <= float(bound["regret"]) - 1 + 1e-9
    told = np.maximum(game.values, 0) if hard else game.values
    assert told.sum() <= float(violation_of(bound, hard))


@given(
    seed=seeds, T=horizons, hard=st.booleans(), rates=RATES, strongly=st.booleans(), size=st.sampled_from([0.03, 1.0])
)
def test_constraints_of_an_adversary(seed, T, hard, rates, strongly, size):
    rng = np.random.default_rng(seed)
    B, normals = Ball(2, size), rng.standard_normal((T, 1, 2))
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    comparator = rng.uniform(-0.5, 0.5, 2) * size
    offsets = normals @ comparator  # the comparator lies on every boundary
    loss = SquaredDistance(2, targets=B) if strongly else Linear(2)
    problem = Problem(B, loss, VaryingAffine(2, 1, row_norm=1.0, limit_bound=size))
    given = B.sample(rng, T) if strongly else SwitchingCosts(2).draw(seed, 0, T).loss[0]
    steps = "strongly convex" if strongly else "convex"
    learner = YuLeeLee.for_problem(problem, steps=steps, rates=rates, hard=hard)
    trace = run(problem, learner, Replay([given], [normals, offsets]))
    bound = learner.bound(problem, T)
    regret = float(trace.cumulative_loss[-1]) - float(problem.loss.value_and_gradient(comparator, given)[0].sum())
    assert regret + potential(learner, T, float(trace.state.queue[0])) <= float(bound["regret"]) - 1 + 1e-9
    violation = trace.hard_violation if hard else trace.signed_violation
    assert float(violation[-1]) <= float(violation_of(bound, hard))


# f = −x on [−1, 1] pulls to 1; feasible below −½.
PULL = {"record": [8000, 16_000, 32_000], "progress": None, "engine": "jax"}
COSTS = np.full((32_000, 1), -1.0)


@pytest.mark.slow
def test_violation_grows_like_the_root_under_a_fixed_constraint():
    pytest.importorskip("jax")
    problem = Problem(Box.cube(1, -1.0, 1.0), Linear(1), Affine([[1.0]], [-0.5]))
    signed, hard = (
        run(problem, YuLeeLee.for_problem(problem, hard=hard), Replay([COSTS]), **PULL) for hard in (False, True)
    )
    bound = YuLeeLee.for_problem(problem).bound(problem, signed.rounds)
    for violation in (signed.signed_violation, hard.hard_violation):
        assert 0.35 <= slope(signed.rounds, violation) <= 0.6
        assert np.all(violation <= bound["signed_violation"])
    assert slope(signed.rounds, signed.hard_violation) > 0.8  # the signed form swings about the boundary
    published = run(problem, YuLeeLee.for_problem(problem, hard=True, rates="published"), Replay([COSTS]), **PULL)
    assert np.all(published.hard_violation > 2 * hard.hard_violation)  # what the published rates cost


@pytest.mark.slow
def test_regret_grows_like_the_root():
    problem = Problem(Ball(2), Linear(2), L2Budget(2, budget=1.0))  # nothing to gain by breaking it
    rounds = [250, 1000, 4000]
    found = regret_in_a_ball(problem, lambda T: YuLeeLee.for_problem(problem, hard=True, rates="sharp"), rounds)
    bound = YuLeeLee.for_problem(problem, hard=True).bound(problem, rounds)
    assert np.all(found <= bound["regret"])
    assert 0.35 <= slope(rounds, found) <= 0.65


@pytest.mark.slow
def test_constraints_of_chance_are_met_on_average():
    """g_t = x + ½ ± ½: no point above −1 is feasible in every round, −½ is on average."""
    pytest.importorskip("jax")
    problem = Problem(Box.cube(1, -1.0, 1.0), Linear(1), VaryingAffine(1, 1, 1.0, 1.0))
    learner = YuLeeLee.for_problem(problem, rates="sharp")
    signs = np.where(np.random.default_rng(0).random((32_000, 1)) < 0.5, -1.0, 0.0)
    trace = run(problem, learner, Replay([COSTS], [np.ones((32_000, 1, 1)), signs]), **PULL)
    bound = learner.bound(problem, trace.rounds)
    regret = trace.cumulative_loss - 0.5 * trace.rounds  # against −½
    assert np.all(regret <= bound["regret"])
    assert 0.35 <= slope(trace.rounds, trace.signed_violation) <= 0.6
    assert np.all(trace.signed_violation <= bound["signed_violation"])
    hard = run(
        problem,
        YuLeeLee.for_problem(problem, hard=True, rates="sharp"),
        Replay([COSTS], [np.ones((32_000, 1, 1)), signs]),
        **PULL,
    )
    assert hard.state.x[0] < -0.8  # it must please every round, and goes where that is possible


@pytest.mark.slow
def test_constraints_that_switch():
    """|x| ≤ ⅕ as two constraints in turn, in phases, under costs that pull outwards: slopes near ½."""
    pytest.importorskip("jax")
    problem = Problem(Box.cube(1, -1.0, 1.0), Linear(1), VaryingAffine(1, 1, 1.0, 0.2))
    side = np.where(np.arange(32_000) // 500 % 2 == 0, 1.0, -1.0)
    stream = Replay([-side[:, None]], [side[:, None, None], np.full((32_000, 1), 0.2)])
    learner = YuLeeLee.for_problem(problem, hard=True, rates="sharp")
    trace = run(problem, learner, stream, **PULL)
    bound = learner.bound(problem, trace.rounds)
    assert np.all(trace.hard_violation <= bound["hard_violation"])
    assert slope(trace.rounds, trace.hard_violation) <= 0.65


def test_the_sharp_rates_beat_the_published_ones_on_paper():
    problem = Problem(Ball(3), Linear(3), Affine([[1.0, 0.0, 0.0]], [0.5]))
    T = np.array([10**4, 10**8])
    published, sharp = (
        YuLeeLee.for_problem(problem, rates=rates).bound(problem, T)["signed_violation"]
        for rates in ("published", "sharp")
    )
    assert np.all(sharp < published / 3)
    # √(T ln T) against √T ln T
    assert sharp[1] / sharp[0] == pytest.approx(100 * np.sqrt(2), rel=0.15)
    assert published[1] / published[0] == pytest.approx(100 * 1.7, rel=0.15)


def test_a_grid_of_bounds_and_bad_input():
    problem = two_dimensional()
    grid = YuLeeLee(AdaGradNorm(problem.enclosing_set, 1.0), QueuePrice(Sharp(2.0, np.array([2.0, 3.0]), 1.25)))
    trace = run(problem, grid, Replay([np.tile([0.8, 0.6], (50, 1))]))
    assert trace.multiplier.shape[1:] == (2,)
    assert grid.bound(problem, [10, 50])["regret"].shape == (2, 2)
    for made in (lambda: Sharp(2.0, -1.0, 1.0), lambda: AdaGradNorm(problem.enclosing_set, -1.0)):
        with pytest.raises(InputError):
            made()
    for refused in ({"rates": "fast"}, {"steps": "fast"}):
        with pytest.raises(InputError, match="'fast' is not known"):
            YuLeeLee.for_problem(problem, **refused)
    linear = Problem(Ball(2), Linear(2), problem.constraint)
    with pytest.raises(InputError, match="not strongly convex"):
        YuLeeLee.for_problem(linear, steps="strongly convex", rates="published")
    with pytest.raises(InputError, match="σ = 1"):
        run(linear, YuLeeLee.for_problem(problem, steps="strongly convex", rates="published"), RandomCosts(2), 5)


def test_the_formula():
    problem = Problem(Box.cube(1, -1.0, 1.0), Linear(1), Affine([[1.0]], [-0.5]))  # Δ = 2, G = 1, D = 3/2, F = 2
    bound = YuLeeLee.for_problem(problem, rates="published").bound(problem, 10_000)
    # 1/γ_1 = 48, 1/γ_T = 1800; P = 400 + √2.
    C = 400 + np.sqrt(2) + np.log(1800 / 48) / np.e
    E = 1 + C + 20_000
    assert float(bound["regret"]) == pytest.approx(C + 1)
    rest = 12 * 2.25 * 2 * 10_000 / 1800 + 8 + 4 * np.sqrt(20_000 * np.log(10_000 * E))
    assert float(bound["signed_violation"]) == pytest.approx(1800 * np.log(E) + rest)
