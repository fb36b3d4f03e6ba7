"""Quadratic-penalty OGD: by hand, a vector form that oscillates for ever, and bounds that beat A-OGD's theorem."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact_sums import exact_theorem_1
from longterm import AOGD, InputError, Problem, observe, run
from longterm.errors import AssumptionWarning
from longterm.learners import QuadraticPenaltyOGD
from longterm.learners.saddle_point.multiplier_rules import OnePerConstraint
from longterm.problems import two_dimensional
from longterm.problems.constraints import Affine, L2Budget, VaryingAffine
from longterm.problems.losses import Linear, SquaredDistance
from longterm.problems.named.adversarial import late_reversal
from longterm.problems.sets import Ball, Box
from longterm.problems.streams import Replay
from longterm.problems.streams.costs import LateReversal
from longterm.theory.schedules import PenaltySchedule
from opponents import KINDS, best_in_box, cut_problem, play_cut, play_linear, slope

seeds = st.integers(0, 10**6)
sizes = st.floats(0.01, 100.0)


def test_first_rounds_by_hand():
    # σ = 1, G_g = 1, g = x_1 − ¼, c = 2: η_t = 1/t, θ_t = 2/t, so a violation v is answered by η_t v/θ_t = v/2.
    problem = two_dimensional()
    learner = QuadraticPenaltyOGD.for_problem(problem, steps="strongly convex")
    state, played = learner.init(), []
    for target in ([1.0, 0.0], [0.0, 1.0], [1.0, 0.0]):
        played.append(learner.ask(state))
        state = learner.tell(state, observe(problem, learner.ask(state), [np.array(target)]))
    np.testing.assert_array_equal(played[0], [0, 0])
    np.testing.assert_allclose(played[1], [1, 0])  # g(x_1) = −¼ is not charged
    np.testing.assert_allclose(played[2], [0.5 - 0.375, 0.5])  # half-way to (0, 1), and ¾/2 back
    np.testing.assert_allclose(learner.ask(state), [0.125 + 0.875 / 3, 1 / 3])  # g = −⅛: η_3 = ⅓ towards (1, 0)
    assert {name: float(value) for name, value in learner.report(state).items()} == {"theta": 0.5, "eta": 0.25}


def test_a_penalty_for_each_constraint_by_hand():
    # g_1 = x_1 − ¼, g_2 = 2x_2 on [−1, 1]²: σ_max(A)² = 4, c = 2, β = ½; Δ/(2G_f) = √2, θ_t = 8η_t.
    problem = Problem(Box.cube(2, -1.0, 1.0), Linear(2), Affine([[1.0, 0.0], [0.0, 2.0]], [0.25, 0.0]))
    learner = QuadraticPenaltyOGD.for_problem(problem, beta=0.5, penalties="each")
    state = learner.init()._replace(x=np.array([0.75, 0.5]))
    after = learner.tell(state, observe(problem, state.x, [np.array([0.6, 0.0])]))
    np.testing.assert_allclose(after.x, [0.75 - 0.6 * 2**0.5 - 0.5 / 8, 0.5 - 1.0 * 2 / 8])


def test_it_is_gradient_descent_on_the_penalised_loss():
    problem = Problem(Ball(3, radius=2.0), SquaredDistance(3, targets=Ball(3)), L2Budget(3, budget=0.5))
    learner = QuadraticPenaltyOGD.for_problem(problem, factor=3.0)
    rng = np.random.default_rng(0)
    x, target = rng.uniform(-1, 1, 3), rng.uniform(-0.5, 0.5, 3)
    theta, eta, _ = learner.schedule.at(np.asarray(5), x)

    def penalised(y):
        return float(np.sum((y - target) ** 2) / 2 + max(np.linalg.norm(y) - 0.5, 0.0) ** 2 / (2 * theta))

    numerical = [(penalised(x + 1e-6 * e) - penalised(x - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    state = learner.init()._replace(round=np.asarray(5), x=x)
    after = learner.update(state, observe(problem, x, [target]))
    np.testing.assert_allclose(after.x, x - eta * np.array(numerical), atol=1e-8)


# --- the vector form needs the curvature of all constraints together ------------------------------------------


def sixteen_copies(T):
    """x ≤ 0 and −x ≤ 0, eight times each, on [−1, 1]: one push, then nothing to do but come back."""
    matrix = np.repeat([[1.0], [-1.0]], 8, axis=0)
    problem = Problem(Box.cube(1, -1.0, 1.0), Linear(1), Affine(matrix, np.zeros(16)))
    return problem, Replay([np.concatenate([[[1.0]], np.zeros((T - 1, 1))])])


@pytest.mark.slow
def test_with_the_curvature_of_one_constraint_it_oscillates_for_ever():
    """θ_t = 4G²η_t and sixteen gradients of length 1: x_{t+1} = x_t − η_t · 8x_t/(4η_t) = −x_t."""
    T = 5000
    problem, stream = sixteen_copies(T)
    schedule = PenaltySchedule(step=1.0, decay=2 / 3, curvature=1.0, factor=4.0)
    learner = QuadraticPenaltyOGD(problem.enclosing_set, schedule, OnePerConstraint(16))
    with pytest.warns(AssumptionWarning, match=r"L = 1\.0 is below 16"):
        trace = run(problem, learner, stream)
    assert "L = 1.0 is below 16" in learner.bound(problem, T).reason
    assert abs(float(trace.state.x[0])) == pytest.approx(1.0)
    assert float(trace.hard_violation[-1]) == pytest.approx(T - 1)
    R = G = 1.0  # the bound as the notes have it for one constraint, with F = 2RG
    regret = 2 * R * G * T ** (2 / 3) + 3 * R * G * T ** (1 / 3) - 1.5 * R * G
    assert float(trace.hard_violation[-1]) > np.sqrt(48 * R * G * T ** (1 / 3) * (regret + 2 * R * G * T))


def test_with_that_of_all_of_them_it_comes_back():
    problem, stream = sixteen_copies(1000)
    learner = QuadraticPenaltyOGD.for_problem(problem, penalties="each")
    assert learner.schedule.curvature == pytest.approx(16.0)
    trace = run(problem, learner, stream)
    assert float(trace.hard_violation[-1]) <= 4.0 + 1e-6  # each step takes a quarter of what is left
    assert abs(float(trace.state.x[0])) < 1e-9


def test_with_four_times_the_curvature_each_step_takes_an_eighth():
    problem, stream = sixteen_copies(100)
    trace = run(
        problem, QuadraticPenaltyOGD.for_problem(problem, penalties="each", factor=4.0), stream, record=[50, 100]
    )
    assert float(trace.hard_violation[-1]) == pytest.approx(8.0, abs=1e-4)  # 1 + ⅞ + (⅞)² + …


def test_a_violation_below_rounding_is_not_charged():
    """The gradient of a maximum is that of some g_j within 1e-9 D of it, and may point the wrong way there."""
    problem = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0], [-1.0, 0.0]], [0.0, 0.0]))
    learner = QuadraticPenaltyOGD.for_problem(problem)
    state = learner.init()._replace(x=np.array([-4e-10, 0.0]))
    told = observe(problem, state.x, [np.zeros(2)])
    assert (float(told.constraint), float(told.constraint_gradient[0])) == (4e-10, 1.0)
    np.testing.assert_array_equal(learner.update(state, told).x, state.x)


# --- the bounds ------------------------------------------------------------------------------------------------


@given(
    beta=st.floats(0.05, 0.95), T=st.integers(1, 3000), G=sizes, share=st.floats(0.01, 1.0), D=sizes, F=sizes, R=sizes
)
def test_its_theorem_beats_that_of_aogd(beta, T, G, share, D, F, R):
    """Both lines are smaller, and the second is for the *hard* violation, of which A-OGD's theorem says nothing."""
    declared = {
        "loss_gradient_bound": G,
        "constraint_gradient_bound": share * G,
        "constraint_bound": D,
        "loss_range": F,
    }
    problem = Problem(Ball(1, R), Linear(1), Affine([[1.0]], [0.5]), declared=declared)
    ours = QuadraticPenaltyOGD.for_problem(problem, beta=beta).bound(problem, T)
    theirs = exact_theorem_1(problem.constants, T, beta)
    assert float(ours["regret"]) < float(theirs.regret)
    assert float(ours["hard_violation"]) < float(theirs.violation)


def test_its_strongly_convex_theorem_is_logarithmic():
    problem = two_dimensional()
    learner = QuadraticPenaltyOGD.for_problem(problem, steps="strongly convex")
    T = np.array([10, 1000, 100_000])
    ours = learner.bound(problem, T)
    theirs = AOGD.for_problem(problem, steps="strongly convex").bound(problem, T)
    harmonic = [np.sum(1 / np.arange(1, t + 1)) for t in T]
    np.testing.assert_allclose(ours["regret"], 4 * np.array(harmonic))  # G_f²/σ = 4, δ_η = U_η = 0
    np.testing.assert_allclose(
        ours["hard_violation"], np.sqrt(2 * 2 * np.array(harmonic) * (ours["regret"] + 2 * T))
    )  # F = 2
    assert np.all(ours["regret"] < theirs["regret"])


def test_the_closed_form_on_a_ball():
    problem = Problem(Ball(2, radius=2.0), Linear(2, 3.0), Affine([[0.6, 0.8]], [0.5]))
    beta, T, RG = 0.6, 2000, 6.0
    closed = 2 * RG * T**beta + RG * T ** (1 - beta) / (1 - beta) - 1.5 * RG
    exact = QuadraticPenaltyOGD.for_problem(problem, beta=beta).bound(problem, T)
    assert 0.99 * closed < float(exact["regret"]) <= closed
    root = np.sqrt(4 * (1 / 3) * 2 * T ** (1 - beta) * (closed + 12 * T) / (1 - beta))
    assert 0.97 * root < float(exact["hard_violation"]) <= root


def test_factor_two_is_the_best():
    problem, T = two_dimensional(), 1000
    grid = np.array([1.2, 1.6, 1.9, 2.0, 2.1, 3.0, 4.0])
    bound = QuadraticPenaltyOGD.for_problem(problem, factor=grid).bound(problem, T)
    assert grid[np.argmin(bound["hard_violation"])] == 2.0
    assert np.ptp(bound["regret"]) < 1e-9


def polytope(seed, d=4, m=3):
    rng = np.random.default_rng(seed)
    B = Box(rng.uniform(-2, -0.5, d), rng.uniform(0.5, 2, d))
    rows = rng.standard_normal((m, d))
    inside = B.sample(rng, 3).mean(axis=0)
    return Problem(B, Linear(d, 2.0), Affine(rows, rows @ inside + rng.uniform(0, 0.1, m)))


@given(
    kind=KINDS,
    seed=seeds,
    T=st.integers(1, 150),
    beta=st.floats(0.05, 0.95),
    factor=st.floats(1.05, 8.0),
    penalties=st.sampled_from(["one", "each"]),
)
def test_regret_and_hard_violation_stay_under_the_bound(kind, seed, T, beta, factor, penalties):
    problem = polytope(seed)
    g, B = problem.constraint, problem.enclosing_set
    learner = QuadraticPenaltyOGD.for_problem(problem, beta=beta, factor=factor, penalties=penalties)
    game = play_linear(problem, learner, kind, T, seed)
    regret = game.loss - best_in_box(B.lower, B.upper, g.matrix, g.limit, game.costs.sum(axis=0))
    bound = learner.bound(problem, T)
    broken = np.maximum(game.values, 0.0)
    charged = np.linalg.norm(broken, axis=1) if penalties == "each" else broken.max(axis=1)
    assert regret <= float(bound["regret"]) * (1 + 1e-9)
    assert charged.sum() <= float(bound["hard_violation"]) * (1 + 1e-9)
    assert (charged**2).sum() <= float(bound["squared_violation"]) * (1 + 1e-9)
    # The whole inequality of the proof, in which nothing is given away:
    theta = learner.schedule.at(np.arange(1, T + 1), np.zeros(1)).theta
    assert regret + (1 - 1 / factor) * (charged**2 / theta).sum() <= float(bound["regret"]) * (1 + 1e-9)


@given(seed=seeds, T=st.integers(1, 200), kind=st.sampled_from(["random", "alternating", "same"]))
def test_strongly_convex_losses(seed, T, kind):
    rng = np.random.default_rng(seed)
    problem = Problem(Ball(2, radius=1.5), SquaredDistance(2, targets=Ball(2, radius=1.5)), L2Budget(2, budget=0.4))
    targets = rng.standard_normal((T, 2))
    targets *= 1.5 / np.linalg.norm(targets, axis=1, keepdims=True)
    if kind != "random":
        targets = targets[:1] * (-1.0) ** (np.arange(T)[:, None] * (kind == "alternating"))
    learner = QuadraticPenaltyOGD.for_problem(problem, steps="strongly convex")
    trace = run(problem, learner, Replay([targets]))
    best = Ball(2, radius=0.4).project(targets.mean(axis=0))
    regret = float(trace.cumulative_loss[-1]) - float(np.sum((best - targets) ** 2) / 2)
    bound = learner.bound(problem, T)
    assert regret <= float(bound["regret"]) * (1 + 1e-9)
    assert float(trace.hard_violation[-1]) <= float(bound["hard_violation"]) * (1 + 1e-9)
    assert float(trace.squared_violation[-1]) <= float(bound["squared_violation"]) * (1 + 1e-9)


@given(seed=seeds, penalties=st.sampled_from(["one", "each"]))
def test_constraints_may_change_against_a_point_feasible_in_every_round(seed, penalties):
    rng = np.random.default_rng(seed)
    T, d = 150, 3
    rows = rng.standard_normal((T, 2, d))
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    comparator = rng.uniform(-0.5, 0.5, d)
    costs = rng.uniform(-0.5, 0.5, (T, d))
    problem = Problem(Ball(d), Linear(d), VaryingAffine(d, 2, row_norm=1.0, limit_bound=1.0))
    learner = QuadraticPenaltyOGD.for_problem(problem, beta=0.5, penalties=penalties)
    trace = run(problem, learner, Replay([costs], [rows, rows @ comparator]))
    bound = learner.bound(problem, T)
    assert float(trace.cumulative_loss[-1]) - float((costs @ comparator).sum()) <= float(bound["regret"])
    assert float(trace.hard_violation[-1]) <= float(bound["hard_violation"])


def test_the_regret_bound_is_nearly_attained():
    problem, stream = late_reversal(), LateReversal(1000, 2 / 3)
    learner = QuadraticPenaltyOGD.for_problem(problem)
    trace = run(problem, learner, stream)
    regret = float(trace.cumulative_loss[-1]) + abs(float(stream.draw(0, 0, 1000).loss[0].sum()))
    assert 0.75 < regret / float(learner.bound(problem, 1000)["regret"]) <= 1


def test_the_squared_violation_is_of_the_order_it_should_be():
    T = np.array([10**3, 10**5])
    problem = two_dimensional()
    for learner, exponent in (
        (QuadraticPenaltyOGD.for_problem(problem, beta=0.75), 0.25),
        (QuadraticPenaltyOGD.for_problem(problem, beta=0.5), 0.5),
    ):
        assert slope(T, learner.bound(problem, T)["squared_violation"]) == pytest.approx(exponent, abs=0.06)
    strongly = QuadraticPenaltyOGD.for_problem(problem, steps="strongly convex").bound(problem, T)["squared_violation"]
    # (c/(c−1)) c L F/σ per e-fold of T
    assert strongly[1] - strongly[0] == pytest.approx(2 * 4 * np.log(100), rel=0.02)


@pytest.mark.slow
def test_hard_violation_grows_like_the_square_root_against_an_adversary():
    """β = ½, where the theorem allows T^{3/4}: in practice it is √T, and a third of A-OGD's."""
    problem, horizons = cut_problem(), (500, 8000)
    ours = [play_cut(QuadraticPenaltyOGD.for_problem(problem, beta=0.5), T).hard for T in horizons]
    theirs = play_cut(AOGD.for_problem(problem, beta=0.5), horizons[-1]).hard
    assert slope(horizons, ours) == pytest.approx(0.5, abs=0.05)
    assert ours[-1] < 0.4 * theirs


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda p: QuadraticPenaltyOGD.for_problem(p, factor=1.0), "factor"),
        (lambda p: QuadraticPenaltyOGD.for_problem(p, factor=np.array([2.0, 0.5])), "factor"),
        (lambda p: QuadraticPenaltyOGD.for_problem(p, beta=1.0), "beta"),
        (lambda p: PenaltySchedule(1.0, -0.5, 1.0), "decay"),
        (lambda p: PenaltySchedule(1.0, 0.5, 0.0), "curvature"),
        (lambda p: PenaltySchedule(1.0, 1.0, 1.0, strong_convexity=-1.0), "strong_convexity"),
        (lambda p: QuadraticPenaltyOGD.for_problem(p, steps="fast"), "steps"),
        (lambda p: QuadraticPenaltyOGD.for_problem(cut_problem(), steps="strongly convex"), "problem"),
        (
            lambda p: run(
                cut_problem(),
                QuadraticPenaltyOGD.for_problem(p, steps="strongly convex"),
                Replay([np.zeros((3, 2))]),
                3,
            ),
            "learner",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(call, argument):
    with pytest.raises(InputError) as refused:
        call(two_dimensional())
    assert refused.value.argument == argument


def test_strongly_convex_steps_are_refused_where_the_losses_are_flat():
    flat = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.25]))
    with pytest.raises(InputError, match="made for losses with σ = 1, but those of 'problem' have 0"):
        run(
            flat,
            QuadraticPenaltyOGD.for_problem(two_dimensional(), steps="strongly convex"),
            Replay([np.zeros((3, 2))]),
        )
