"""A-OGD with a step for each coordinate: by hand, its bound, and where it pays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import AOGD, InputError, Problem, observe, run
from longterm.learners import DiagonalAdaGradAOGD
from longterm.learners.ftrl.multiplier import Multiplier
from longterm.problems import two_dimensional
from longterm.problems.constraints import Affine, VaryingAffine
from longterm.problems.losses import Linear
from longterm.problems.sets import Box
from longterm.problems.streams import Replay
from longterm.problems.streams.costs import SwitchingCosts
from opponents import KINDS, best_in_box, play_linear

seeds, horizons, betas = st.integers(0, 10**6), st.integers(1, 150), st.floats(0.05, 0.95)
THETA = st.sampled_from([1e-3, 0.1, 1.0, 30.0])


def test_first_rounds_by_hand():
    problem = Problem(Box([-1.0, -2.0, 0.0], [1.0, 2.0, 0.0]), Linear(3, 5.0), Affine([[-1.0, 0.0, 0.0]], [-0.5]))
    learner = DiagonalAdaGradAOGD(problem.enclosing_set, Multiplier(theta_0=2.0, beta=0.5))
    state = learner.tell(learner.init(), observe(problem, np.zeros(3), [np.array([3.0, 0.0, 1.0])]))
    # η_1 = (2, 4, 0)/(√2 |d|): the first coordinate moves by √2, clipped at −1; the second saw nothing.
    np.testing.assert_allclose(state.x, [-1.0, 0.0, 0.0])
    # g(x_1) = ½, θ_1 = 2, μ_1 = ¼: λ_2 = ⅛.
    assert float(state.multiplier[0]) == pytest.approx(0.125)
    after = learner.tell(state, observe(problem, state.x, [np.array([1.0, 4.0, 0.0])]))
    # d_2 = (1 − ⅛, 4, 0): up to the sign of d, steps 2 · 0.875/√(2 (9 + 0.875²)) and 4/√2, clipped.
    np.testing.assert_allclose(after.x, [-1.0, -2.0, 0.0])
    np.testing.assert_allclose(after.square_sum, [9 + 0.875**2, 16.0, 1.0])
    # g(x_2) = 1.5, θ_2 = √2, μ_2 = 1/(3√2): λ_3 = ⅛ + (1.5 − √2/8)/(3√2).
    assert float(after.multiplier[0]) == pytest.approx(0.125 + (1.5 - np.sqrt(2) / 8) / (3 * np.sqrt(2)))
    back = learner.tell(after, observe(problem, after.x, [np.array([-1.0, -4.0, 0.0])]))
    pull = -1 - float(after.multiplier[0])
    eta = 2 / np.sqrt(2 * (9 + 0.875**2 + pull**2))
    np.testing.assert_allclose(back.x, [-1 - eta * pull, -2 + 4 * 4 / np.sqrt(2 * 32), 0.0])


@given(kind=KINDS, seed=seeds, T=horizons, beta=betas, theta=THETA)
def test_bounds(kind, seed, T, beta, theta):
    rng = np.random.default_rng(seed)
    lower, upper = -rng.uniform(0.1, 2, 3), rng.uniform(0.1, 2, 3)
    row = rng.standard_normal((1, 3))
    offset = row @ rng.uniform(lower, upper)
    problem = Problem(Box(lower, upper), Linear(3, 2.0), Affine(row, offset))
    learner = DiagonalAdaGradAOGD(problem.enclosing_set, Multiplier(theta, beta))
    game = play_linear(problem, learner, kind, T, seed)
    bound = learner.bound(problem, T)
    regret = game.loss - best_in_box(lower, upper, row, offset, game.costs.sum(axis=0))
    assert regret <= float(bound["regret"]) * (1 + 1e-9)
    assert game.values.sum() <= float(bound["signed_violation"]) * (1 + 1e-9)
    # What the bound is made of: √2 Σ_k Δ_k √S_k for the primal side, with what really happened.
    squares = np.asarray(game.state.square_sum)
    primal = np.sqrt(2) * ((upper - lower) * np.sqrt(squares)).sum()
    assert primal <= np.sqrt(2) * problem.constants.diameter * np.sqrt(squares.sum()) * (1 + 1e-12)
    drawn = (problem.constants.constraint_bound**2 / theta * np.arange(1.0, T + 1) ** (beta - 1)).sum()
    assert regret <= primal + drawn + 1e-9


@given(seed=seeds, T=horizons, beta=betas, theta=THETA)
def test_constraints_that_change(seed, T, beta, theta):
    rng = np.random.default_rng(seed)
    normals = rng.standard_normal((T, 2, 3))
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    comparator = rng.uniform(-0.5, 0.5, 3)
    costs = SwitchingCosts(3).draw(seed, 0, T).loss[0]
    problem = Problem(Box.cube(3, -1.0, 1.0), Linear(3), VaryingAffine(3, 2, 1.0, 1.0))
    learner = DiagonalAdaGradAOGD(problem.enclosing_set, Multiplier(theta, beta))
    trace = run(problem, learner, Replay([costs], [normals, normals @ comparator]))
    bound = learner.bound(problem, T)
    assert float(trace.cumulative_loss[-1]) - float((costs @ comparator).sum()) <= float(bound["regret"])
    assert float(trace.signed_violation[-1]) <= float(bound["signed_violation"])


@pytest.mark.slow
def test_rare_coordinates_keep_long_steps():
    """One loud coordinate, nine that are heard once in a hundred rounds: A-OGD's one step is too short for those."""
    d, T = 10, 4000
    rng = np.random.default_rng(0)
    costs = np.zeros((T, d))
    costs[:, 0] = np.where(rng.random(T) < 0.5, -1.0, 1.0)
    for k in range(1, d):
        costs[k * 10 :: 100] = 0.0
        costs[k * 10 :: 100, k] = 0.1
    problem = Problem(Box.cube(d, -1.0, 1.0), Linear(d), Affine([[1.0] + [0.0] * (d - 1)], [0.0]))
    losses = {}
    for learner in (DiagonalAdaGradAOGD.for_problem(problem), AOGD.for_problem(problem)):
        losses[type(learner)] = float(run(problem, learner, Replay([costs])).cumulative_loss[-1])
    assert losses[DiagonalAdaGradAOGD] < losses[AOGD] - 10


def test_the_formula():
    problem = Problem(Box.cube(1, -1.0, 1.0), Linear(1), Affine([[1.0]], [-0.5]))  # Δ = 2, G = 1, D = 3/2, F = 2
    learner = DiagonalAdaGradAOGD(problem.enclosing_set, Multiplier(3.0, 0.5))
    long = learner.bound(problem, 10_000)
    pull = 4 / (3 / 100 * 9999 / (2 * 10_001))  # m_T at t = T
    regret = 2.25 / 3 * (1 + (100 - 1) / 0.5) + 400 + pull
    assert float(long["regret"]) == pytest.approx(regret)
    weight = 3 * (1 + (100 - 1) / 0.5 + 1)
    assert float(long["signed_violation"]) == pytest.approx(np.sqrt(2 * weight * (regret + 20_000)))
    short = learner.bound(problem, 3)  # m_T at t = 2
    at_two, at_three = (3 / np.sqrt(t) * (t - 1) / (2 * (t + 1)) for t in (2, 3))
    assert at_two < at_three
    assert float(short["regret"]) == pytest.approx(0.75 * (1 + (np.sqrt(3) - 1) / 0.5) + 4 * np.sqrt(3) + 4 / at_two)
    assert learner.bound(problem, [1, 2])["regret"].shape == (2,)


def test_bad_input_is_refused():
    problem = two_dimensional()
    with pytest.raises(InputError, match="Ball") as refused:
        DiagonalAdaGradAOGD.for_problem(problem)
    assert refused.value.argument == "enclosing_set"
    for changed in ({"theta_0": 0.0}, {"beta": 1.0}):
        with pytest.raises(InputError):
            Multiplier(**{"theta_0": 1.0, **changed})
