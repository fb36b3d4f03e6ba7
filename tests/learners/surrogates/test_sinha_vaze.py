"""Sinha and Vaze: by hand, the article's own scaling, the slot, the bounds, and a step that is printed too long."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import InputError, Problem, observe, run
from longterm.learners import SinhaVaze
from longterm.learners.surrogates.inner import AdaGradNorm, StronglyConvexOGD
from longterm.learners.surrogates.sinha_vaze import ExponentialPrice
from longterm.problems import two_dimensional
from longterm.problems.constraints import Affine, L2Budget, VaryingAffine
from longterm.problems.losses import Linear, SquaredDistance
from longterm.problems.sets import Ball, Box
from longterm.problems.streams import Replay
from opponents import KINDS, best_in_box, cut_problem, play_cut, play_linear, slope

seeds = st.integers(0, 10**6)


def test_first_rounds_by_hand():
    # B = [−1, 1], f' = −1, g = x − ½, T = 4: ω = ¼, Δ = 2, 2GΔ = 4, η_t = √2/√(Σ d²).
    problem = Problem(Box.cube(1, -1.0, 1.0), Linear(1), Affine([[1.0]], [0.5]))
    learner = SinhaVaze.for_problem(problem, horizon=4)
    state = learner.init()
    state = learner.tell(state, observe(problem, state.x, [np.array([-1.0])]))
    assert (float(state.x[0]), float(state.queue), float(state.memory)) == (1.0, 0.0, 1.0)  # √2, clipped
    state = learner.tell(state, observe(problem, state.x, [np.array([1.0])]))
    weight = 0.25 * np.exp(0.25 * 0.5 / 4)  # Q(2) = ½ is in the price of round 2 itself
    assert float(state.queue) == 0.5
    assert float(state.memory) == pytest.approx(1 + (1 + weight) ** 2)
    assert float(state.x[0]) == pytest.approx(1 - 2**0.5 * (1 + weight) / np.sqrt(1 + (1 + weight) ** 2))
    before = float(state.x[0])
    state = learner.tell(state, observe(problem, state.x, [np.array([0.0])]))
    assert before < 0.5
    assert float(state.x[0]) == before  # g < 0: neither term pushes
    assert float(learner.report(state)["multiplier"]) == pytest.approx(weight)


def test_strongly_convex_by_hand():
    # T = 1: V = 8, w = Q/4; σ = 1, steps 1/t.
    problem = two_dimensional()
    learner = SinhaVaze.for_problem(problem, horizon=1, steps="strongly convex")
    state = learner.init()
    for _ in range(2):
        state = learner.tell(state, observe(problem, state.x, [np.array([1.0, 0.0])]))
    np.testing.assert_allclose(state.x, [1 - 0.5 * 0.75 / 4, 0.0])
    state = learner.tell(state, observe(problem, state.x, [np.array([1.0, 0.0])]))
    Q = 0.75 + 0.65625
    np.testing.assert_allclose(state.x, [0.90625 + (0.09375 - Q / 4) / 3, 0.0])


def test_the_articles_scaling_gives_the_same_points():
    """f/(2GΔ), [g]₊/(2GΔ), Φ' = ω exp(ωQ), one G: what the article prints, line by line."""
    rng = np.random.default_rng(0)
    problem = Problem(Ball(3), Linear(3), Affine([[1.0, 0.0, 0.0], [0.0, 0.6, 0.8]], [0.1, -0.2]))
    T, G, wide = 60, 1.0, 2.0
    learner = SinhaVaze.for_problem(problem, horizon=T)
    state, x, Q, squares, omega = learner.init(), np.zeros(3), 0.0, 0.0, 1 / (2 * 60**0.5)
    for cost in rng.uniform(-0.5, 0.5, (T, 3)):
        told = observe(problem, x, [cost])
        np.testing.assert_allclose(learner.ask(state), x, atol=1e-12)
        state = learner.tell(state, observe(problem, learner.ask(state), [cost]))
        g = float(told.constraint)
        Q += max(g, 0.0) / (2 * G * wide)
        d = (cost + omega * np.exp(omega * Q) * (g > 0) * told.constraint_gradient) / (2 * G * wide)
        squares += d @ d
        x = problem.enclosing_set.project(x - 2**0.5 * wide / (2 * np.sqrt(squares)) * d)


def test_scaling_a_constraint_changes_nothing():
    costs = np.random.default_rng(0).uniform(-0.5, 0.5, (100, 2))
    plain, scaled = (Problem(Ball(2), Linear(2), Affine([[0.6 * s, 0.8 * s]], [-0.3 * s])) for s in (1.0, 50.0))
    one, two = (run(p, SinhaVaze.for_problem(p, horizon=100), Replay([costs])) for p in (plain, scaled))
    np.testing.assert_allclose(two.state.x, one.state.x, atol=1e-9)
    np.testing.assert_allclose(two.hard_violation, 50 * one.hard_violation, rtol=1e-7)


# --- the slot -------------------------------------------------------------------------------------------------


@given(seed=seeds, T=st.integers(1, 150), spread=st.floats(0.0, 4.0))
def test_inner_learners_keep_their_promise(seed, T, spread):
    """Gradients of any length, for or against where the learner stands: regret ≤ √2 Δ √(Σ ‖d‖²)."""
    rng = np.random.default_rng(seed)
    box = Box(rng.uniform(-2, -0.5, 3), rng.uniform(0.5, 2, 3))
    rule, x = AdaGradNorm(box), box.centre
    memory, total, gradients = rule.memory(x), 0.0, []
    for t in range(T):
        d = rng.standard_normal(3) * np.exp(spread * rng.standard_normal())
        d = d if rng.random() < 0.5 else x * np.abs(d)
        gradients.append(d)
        total += float(d @ x)
        x, memory = rule.step(x, memory, d, np.asarray(t + 1))
    d = np.array(gradients)
    regret = total + float(box.support(-d.sum(axis=0)))
    assert regret <= 2**0.5 * box.diameter * np.sqrt((d**2).sum()) * (1 + 1e-9)


def test_nothing_seen_nothing_done():
    rule, x = AdaGradNorm(Box.cube(2, -1.0, 1.0)), np.array([0.3, -0.2])
    after, memory = rule.step(x, rule.memory(x), np.zeros(2), np.asarray(1))
    np.testing.assert_array_equal(after, x)
    assert not np.any(memory)


@given(kind=KINDS, seed=seeds, T=st.integers(1, 150))
def test_regret_and_hard_violation_stay_under_the_bound(kind, seed, T):
    rng = np.random.default_rng(seed)
    B = Box(rng.uniform(-2, -0.5, 3), rng.uniform(0.5, 2, 3))
    rows = rng.standard_normal((2, 3)) * rng.uniform(0.1, 5)
    inside = B.sample(rng, 3).mean(axis=0)
    problem = Problem(B, Linear(3, 2.0), Affine(rows, rows @ inside))
    learner = SinhaVaze.for_problem(problem, horizon=T)
    game = play_linear(problem, learner, kind, T, seed)
    regret = game.loss - best_in_box(B.lower, B.upper, rows, rows @ inside, game.costs.sum(axis=0))
    hard = float(np.maximum(game.values.max(axis=1), 0.0).sum())
    bound = learner.bound(problem, T)
    assert regret <= float(bound["regret"]) * (1 + 1e-9)
    assert hard <= float(bound["hard_violation"]) * (1 + 1e-9)
    # The article's own two lines are looser.
    c = problem.constants
    assert float(bound["regret"]) <= 2 * c.loss_gradient_bound * c.diameter * (np.sqrt(T) + 1)
    article = 4 * c.constraint_gradient_bound * c.diameter * np.log(2 * (1 + 2 * T)) * np.sqrt(T)
    assert float(bound["hard_violation"]) <= article
    # What the proof says before anything is given away: Regret/s_f + Φ(Q) − Φ(0) ≤ √T (1 + ω Φ'/ω)
    price, omega = learner.price, 1 / (2 * np.sqrt(T))
    phi = np.exp(omega * hard / price.constraint_scale)
    assert regret / price.loss_scale + phi - 1 <= np.sqrt(T) * (1 + omega * phi) * (1 + 1e-9)


@given(seed=seeds, T=st.integers(2, 150))
def test_the_bound_holds_in_every_round(seed, T):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((T, 1, 2))
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    comparator, costs = rng.uniform(-0.5, 0.5, 2), rng.uniform(-0.7, 0.7, (T, 2))
    problem = Problem(Ball(2), Linear(2), VaryingAffine(2, 1, row_norm=1.0, limit_bound=1.0))
    learner = SinhaVaze.for_problem(problem, horizon=T)
    trace = run(problem, learner, Replay([costs], [rows, rows @ comparator]), record=range(1, T + 1))
    bound = learner.bound(problem, trace.rounds)
    regret = trace.cumulative_loss - np.cumsum(costs @ comparator)
    assert np.all(regret <= bound["regret"])
    assert np.all(trace.hard_violation <= bound["hard_violation"])


@pytest.mark.slow
def test_hard_violation_grows_like_the_square_root_against_an_adversary():
    """The exponent is ½ and a logarithm, 4GΔ√T ln(2√T): 0.58 between these horizons, where the formula has 0.59."""
    problem, horizons = cut_problem(), (4000, 32_000)
    games = [play_cut(SinhaVaze.for_problem(problem, horizon=T), T) for T in horizons]
    formula = [np.sqrt(T) * np.log(2 * np.sqrt(T)) for T in horizons]
    assert slope(horizons, [game.hard for game in games]) == pytest.approx(slope(horizons, formula), abs=0.03)
    assert slope(horizons, formula) < 0.6
    for game, T in zip(games, horizons, strict=True):
        bound = SinhaVaze.for_problem(problem, horizon=T).bound(problem, T)
        assert game.regret <= float(bound["regret"])
        assert game.hard <= float(bound["hard_violation"])


@pytest.mark.slow
def test_regret_grows_like_the_square_root_where_nothing_is_to_be_learnt():
    """Costs of mean 0 and half-spaces x_k ≤ ½ that change in ever longer phases; the best point is known: a corner."""
    problem, horizons, S = cut_problem(), (1000, 16_000), 64
    regrets = []
    for T in horizons:
        costs = np.random.default_rng(0).uniform(-1, 1, (T, S, 2)) / 2**0.5
        rows = np.eye(2)[np.frexp(np.arange(1, T + 1))[1] % 2]
        learner = SinhaVaze.for_problem(problem, horizon=T)
        state, loss = learner.init((S,)), np.zeros(S)
        for t in range(T):
            told = observe(problem, state.x, [costs[t]], [np.tile(rows[t], (S, 1, 1)), np.full((S, 1), 0.5)])
            loss, state = loss + told.loss, learner.update(state, told)
        total = costs.sum(axis=0)
        regrets.append(float(np.mean(loss - np.where(total > 0, -total, 0.5 * total).sum(axis=-1))))
    assert slope(horizons, regrets) == pytest.approx(0.5, abs=0.06)


# --- strongly convex --------------------------------------------------------------------------------------------


@given(seed=seeds, T=st.integers(1, 200), kind=st.sampled_from(["random", "alternating", "same"]))
def test_strongly_convex_losses(seed, T, kind):
    rng = np.random.default_rng(seed)
    problem = Problem(Ball(2, radius=1.5), SquaredDistance(2, targets=Ball(2, radius=1.5)), L2Budget(2, budget=0.4))
    targets = rng.standard_normal((T, 2))
    targets *= 1.5 / np.linalg.norm(targets, axis=1, keepdims=True)
    if kind != "random":
        targets = targets[:1] * (-1.0) ** (np.arange(T)[:, None] * (kind == "alternating"))
    learner = SinhaVaze.for_problem(problem, horizon=T, steps="strongly convex")
    trace = run(problem, learner, Replay([targets]))
    best = Ball(2, radius=0.4).project(targets.mean(axis=0))
    regret = float(trace.cumulative_loss[-1]) - float(np.sum((best - targets) ** 2) / 2)
    bound = learner.bound(problem, T)
    assert regret <= float(bound["regret"]) * (1 + 1e-9)
    assert float(trace.hard_violation[-1]) <= float(bound["hard_violation"]) * (1 + 1e-9)


def alternating(learner, T):
    """Regret on f_t = ½(x ∓ 1)², against the mean target 0."""
    problem = Problem(
        Box.cube(1, -1.0, 1.0), SquaredDistance(1, targets=Box.cube(1, -1.0, 1.0)), Affine([[1.0]], [0.25])
    )
    targets = np.resize([1.0, -1.0], T)[:, None]
    trace = run(problem, learner(problem, T), Replay([targets]))
    return float(trace.cumulative_loss[-1]) - T / 2, problem


@pytest.mark.parametrize("T", [100, 1000])
def test_steps_for_the_strong_convexity_of_the_losses_alone_break_the_bound(T):
    """Read as printed, with H_s that of f_s instead of that of the charge V f_s + …, steps are V times too long."""

    def as_printed(problem, T):
        good = SinhaVaze.for_problem(problem, horizon=T, steps="strongly convex")
        V = 8 * (1 + np.log(T))  # 8G_g² ln(Te)/σ
        return SinhaVaze(StronglyConvexOGD(problem.enclosing_set, 1 / V), good.price)

    printed, problem = alternating(as_printed, T)
    meant, _ = alternating(lambda p, T: SinhaVaze.for_problem(p, horizon=T, steps="strongly convex"), T)
    bound = SinhaVaze.for_problem(problem, horizon=T, steps="strongly convex").bound(problem, T)
    assert "no bound is known" in as_printed(problem, T).bound(problem, T).reason
    assert meant <= float(bound["regret"]) < printed
    assert printed > 5 * float(bound["regret"])


# --- the formulas, and what is refused ----------------------------------------------------------------------------


def test_the_bounds_by_hand():
    # The unit disc, G_f = 2, G_g = 1, Δ = 2, F = 2, T = 100: ω = 1/20, s_f = 8, s_g = 4.
    problem = two_dimensional()
    bound = SinhaVaze.for_problem(problem, horizon=100).bound(problem, [25, 100])
    np.testing.assert_allclose(bound["regret"], [8 * 5 * 1.05, 8 * 10 * 1.05])
    np.testing.assert_allclose(
        bound["hard_violation"], [80 * np.log((6 + 50 / 8) / 0.75), 80 * np.log((11 + 25) / 0.5)]
    )
    strongly = SinhaVaze.for_problem(problem, horizon=100, steps="strongly convex").bound(problem, 100)
    P = 4 * (1 + np.log(100))
    assert float(strongly["regret"]) == pytest.approx(P)
    assert float(strongly["hard_violation"]) == pytest.approx(np.sqrt(16 * (1 + np.log(100)) * (P + 200)))


def test_a_run_that_no_theorem_covers_does_not_overflow():
    price = ExponentialPrice(1.0, 1.0, 1.0)
    for dtype in (np.float32, np.float64):
        assert np.isfinite(price.weight(np.asarray(1e30, dtype=dtype)))


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda p: SinhaVaze.for_problem(p, horizon=0), "horizon"),
        (lambda p: SinhaVaze.for_problem(p, horizon=9, steps="best"), "steps"),
        (lambda p: SinhaVaze.for_problem(cut_problem(), horizon=9, steps="strongly convex"), "problem"),
        (lambda p: SinhaVaze.for_problem(p, horizon=9).bound(p, 10), "rounds"),
    ],
)
def test_what_makes_no_sense_is_refused(call, argument):
    with pytest.raises(InputError) as refused:
        call(two_dimensional())
    assert refused.value.argument == argument


def test_a_price_with_steps_of_another_kind_has_no_theorem():
    problem = two_dimensional()
    convex, strongly = (
        SinhaVaze.for_problem(problem, horizon=9, steps=steps) for steps in ("convex", "strongly convex")
    )

    class LongerSteps(AdaGradNorm):
        """A user's own inner learner."""

    own = LongerSteps(problem.enclosing_set)
    for inner, price in ((convex.inner, strongly.price), (strongly.inner, convex.price), (own, convex.price)):
        assert "no bound is known" in SinhaVaze(inner, price).bound(problem, 9).reason


def test_strongly_convex_steps_are_refused_where_the_losses_are_flat():
    flat = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.25]))
    with pytest.raises(InputError, match="made for losses with σ = 1, but those of 'problem' have 0"):
        run(
            flat,
            SinhaVaze.for_problem(two_dimensional(), horizon=9, steps="strongly convex"),
            Replay([np.zeros((3, 2))]),
        )
