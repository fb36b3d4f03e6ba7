"""A-OGD against pencil and paper, and against itself."""

import array_api_strict
import numpy as np
import pytest

from longterm import AOGD, InputError, observe, run
from longterm.learners.interface.feedback import Feedback
from longterm.problems import Problem, two_dimensional
from longterm.problems.constraints import Affine, Maximum
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball, Box, RowStochastic
from longterm.problems.streams import Replay
from longterm.theory.schedules import ConvexSchedule


def play(problem, learner, rounds):
    """x_1, λ_1, x_2, λ_2, …"""
    state, seen = learner.init(), []
    for parameters in rounds:
        seen.append((learner.ask(state), float(state.multiplier)))
        state = learner.tell(state, observe(problem, learner.ask(state), parameters))
    seen.append((learner.ask(state), float(state.multiplier)))
    return seen


def test_first_rounds_strongly_convex_by_hand():
    # σ = 1, G = 2, β = ½: θ_t = 24/√t, η_t = 1/t, μ_t = √t/(24 (t + 1)); g(x) = x_1 − ¼.
    problem = two_dimensional()
    learner = AOGD.for_problem(problem, steps="strongly convex", beta=0.5)
    targets = [[np.array(y)] for y in ([1.0, 0.0], [0.0, 1.0], [1.0, 0.0])]
    (x1, l1), (x2, l2), (x3, l3), (x4, l4) = play(problem, learner, targets)
    np.testing.assert_array_equal(x1, [0, 0])
    assert l1 == 0
    np.testing.assert_allclose(x2, [1, 0])  # 0 − 1 · (0 − y_1)
    assert l2 == 0  # [0 + μ_1 (−¼)]₊
    np.testing.assert_allclose(x3, [0.5, 0.5])  # (1, 0) − ½ ((1, 0) − (0, 1)) with λ_2 = 0
    assert l3 == pytest.approx(np.sqrt(2) / 72 * 0.75)  # μ_2 g(x_2)
    np.testing.assert_allclose(x4, [0.5 - (-0.5 + l3) / 3, 0.5 - 0.5 / 3])  # η_3 = ⅓, ∇g = (1, 0)
    assert l4 == pytest.approx(l3 + np.sqrt(3) / 96 * (0.25 - 24 / np.sqrt(3) * l3))


def test_first_rounds_convex_by_hand_with_projection_and_clipped_dual():
    # B = unit disc, f = ⟨c, x⟩, g = x_1 − ½: R = G = 1, β = ½, θ_t = 6/√t, η_t = 1/√t, μ_t = √t/(6 (t + 1)).
    problem = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.5]))
    costs = [[np.array(c)] for c in ([-1.0, 0.0], [0.0, -1.0], [1.0, 0.0])]
    (_, l1), (x2, l2), (x3, l3), (x4, l4) = play(problem, AOGD.for_problem(problem, beta=0.5), costs)
    np.testing.assert_allclose(x2, [1, 0])
    assert (l1, l2) == (0, 0)
    half = np.array([1.0, 1 / np.sqrt(2)])
    np.testing.assert_allclose(x3, half / np.linalg.norm(half))  # (1, 0) + (0, 1)/√2, pulled back to the disc
    assert l3 == pytest.approx(np.sqrt(2) / 18 * 0.5)
    np.testing.assert_allclose(x4, x3 - (1 + l3) / np.sqrt(3) * np.array([1.0, 0.0]))
    assert l4 == pytest.approx(l3 + np.sqrt(3) / 24 * (x3[0] - 0.5 - 6 / np.sqrt(3) * l3))


def test_both_steps_start_from_the_same_point():
    """With λ_{t+1} in the x-step, or x_{t+1} in the λ-step, these two would differ."""
    learner = AOGD(Ball(1, radius=10.0), ConvexSchedule(1.0, 1.0, 0.5))
    state = learner.init()._replace(multiplier=np.asarray(2.0), x=np.array([3.0]))
    told = Feedback(np.array([0.5]), np.asarray(0.25), np.array([1.0]))
    after = learner.update(state, told)
    theta, eta, mu = (float(step) for step in learner.schedule.at(state.round, state.x))
    assert float(after.x[0]) == pytest.approx(3.0 - eta * (0.5 + 2.0 * 1.0))
    assert float(after.multiplier) == pytest.approx(2.0 + mu * (0.25 - theta * 2.0))


def test_starts_at_the_centre_of_its_set():
    assert AOGD(RowStochastic(2, 4), ConvexSchedule(2.0, 1.0)).init().x.tolist() == [0.25] * 8


def test_a_vector_of_constraints_is_played_through_its_maximum():
    rng = np.random.default_rng(0)
    system = Affine(rng.standard_normal((5, 3)), rng.uniform(0, 0.2, 5))
    B = Ball(3)
    costs = Replay([rng.standard_normal((60, 3)) / 4])
    several, single = (Problem(B, Linear(3), g) for g in (system, Maximum([system], over=B)))
    one, other = (run(p, AOGD.for_problem(several), costs) for p in (several, single))
    np.testing.assert_allclose(one.state.x, other.state.x, atol=1e-14)
    np.testing.assert_allclose(one.signed_violation, other.signed_violation, atol=1e-13)


def test_table_1_uses_the_diameter_of_any_set():
    B = Box.cube(2, -1.0, 3.0)
    problem = Problem(B, Linear(2, 5.0), Affine([[1.0, 0.0]], [0.5]))
    learner = AOGD.for_problem(problem, beta=0.5)
    theta, eta, _ = learner.schedule.at(np.asarray(4), np.zeros(1))
    assert (float(theta), float(eta)) == (
        pytest.approx(3 * B.diameter * 5.0 / 2),
        pytest.approx(B.diameter / (2 * 5.0 * 2)),
    )


def test_strongly_convex_refuses_losses_that_are_not():
    with pytest.raises(InputError, match="not strongly convex"):
        AOGD.for_problem(Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.5])), steps="strongly convex")


def test_tell_under_strict_arrays():
    problem = two_dimensional()
    learner = AOGD.for_problem(problem, beta=np.array([0.4, 0.6]))
    ours, strict = learner.init(), learner.init(xp=array_api_strict)
    for target in np.random.default_rng(1).uniform(-0.5, 0.5, (20, 2)):
        ours = learner.tell(ours, observe(problem, ours.x, [target]))
        strict = learner.tell(strict, observe(problem, strict.x, [array_api_strict.asarray(target)]))
    np.testing.assert_allclose(np.asarray(strict.x), ours.x, atol=1e-14)
    np.testing.assert_allclose(np.asarray(strict.multiplier), ours.multiplier, atol=1e-14)
