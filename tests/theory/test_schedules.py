import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import AOGD, InputError
from longterm.errors import ScheduleError
from longterm.problems.sets import Ball
from longterm.theory.conditions import check_conditions
from longterm.theory.schedules import ConstantSchedule, ConvexSchedule, CustomSchedule, StronglyConvexSchedule
from longterm.theory.step_sums import CHUNK, power_sum, step_sums

X = np.zeros(1)
positive = st.floats(1e-3, 1e3)
beta_in_range = st.floats(0.01, 0.99)


def at(schedule, t):
    return [float(step) for step in schedule.at(np.asarray(t), X)]


def test_table_1_convex():
    R, G, beta, t = 1.5, 2.0, 0.75, 16
    assert at(ConvexSchedule(2 * R, G, beta), t) == pytest.approx(
        [6 * R * G / 8, R / (G * 8), 1 / (6 * R * G / 8 * 17)]
    )


def test_table_1_strongly_convex():
    G, sigma, beta, t = 2.0, 0.5, 0.75, 16
    assert at(StronglyConvexSchedule(G, sigma, beta), t) == pytest.approx(
        [6 * G**2 / (sigma * 8), 1 / (sigma * 16), 1 / (6 * G**2 / (sigma * 8) * 17)]
    )


def test_a_grid_of_beta_is_one_schedule():
    grid = np.array([0.25, 0.5, 0.75])
    together = ConvexSchedule(2.0, 1.0, grid).at(np.asarray(9), X)
    for k, beta in enumerate(grid):
        assert [float(step[k]) for step in together] == at(ConvexSchedule(2.0, 1.0, float(beta)), 9)
    assert ConvexSchedule(2.0, 1.0, grid).with_trailing_axes(2).batch_shape == (3, 1, 1)


def test_float32_schedules_stay_float32():
    x = np.zeros(1, dtype=np.float32)
    for schedule in (ConvexSchedule(2.0, 1.0, np.array([0.5, 0.6])), StronglyConvexSchedule(1.0, 1.0, 0.5)):
        assert all(step.dtype == np.float32 for step in schedule.at(np.asarray(3), x))


@given(diameter=positive, G=positive, beta=beta_in_range)
def test_table_1_convex_meets_its_conditions(diameter, G, beta):
    allowed = 2 * G / diameter * 500**beta
    assert check_conditions(ConvexSchedule(diameter, G, beta), 500, growth_allowed=allowed).hold


@given(G=positive, sigma=positive, beta=beta_in_range)
def test_table_1_strongly_convex_meets_its_conditions(G, sigma, beta):
    schedule = StronglyConvexSchedule(G, sigma, beta)
    # 1/η_t − 1/η_{t−1} − σ is 0, up to the rounding of 500 σ.
    assert check_conditions(schedule, 500, strong_convexity=sigma, growth_allowed=1e-9 * sigma).hold


def test_c2_holds_with_equality_in_round_2_and_fails_just_beyond():
    theta, eta, mu = at(ConvexSchedule(2.0, 1.0, 0.5), 2)
    assert eta + mu * theta**2 - theta / 2 == pytest.approx(0, abs=1e-15)
    bigger = CustomSchedule(
        theta=lambda t: 6 / t**0.5,
        eta=lambda t: 1.001 / t**0.5,
        mu=lambda t: t**0.5 / (6 * (t + 1)),
        gradient_bound=1.0,
    )
    failed = check_conditions(bigger, 100)
    assert (failed.c1.holds, failed.c2.holds, failed.c3.holds) == (True, False, True)
    assert failed.c2.failing_round == 2
    assert failed.c2.excess == pytest.approx(0.001 / 2**0.5)


def test_c1_names_the_first_round_that_fails_across_chunks():
    late = CHUNK + 5
    schedule = CustomSchedule(
        theta=lambda t: 1 + 0 * t,
        eta=lambda t: 0.01 + 0 * t,
        mu=lambda t: 1 / (t + 1 + 3.0 * (t >= late)),
        gradient_bound=1.0,
    )
    failed = check_conditions(schedule, CHUNK + 10)
    assert failed.c1.failing_round == late
    assert failed.c1.excess == pytest.approx(3.0)
    assert f"round {late}" in str(failed.c1)
    with pytest.raises(ScheduleError, match="C1"):
        failed.require()


def test_c3_is_summed_across_chunks():
    schedule = ConvexSchedule(2.0, 1.0, 0.5)  # U_η = √T − 1
    T = 2 * CHUNK
    assert check_conditions(schedule, T, growth_allowed=T**0.5).c3.holds
    failed = check_conditions(schedule, T, growth_allowed=(T - 10) ** 0.5 - 1 + 1e-6).c3
    assert failed.failing_round == T - 9


@pytest.mark.parametrize("excess", [1e-8, 1e-3])
def test_small_excesses_are_not_taken_for_rounding(excess):
    steep = CustomSchedule(
        theta=lambda t: 1.0, eta=lambda t: 0.01, mu=lambda t: 1 / (1 + t * (1 + excess)), gradient_bound=1.0
    )
    assert check_conditions(steep, 5).c1.failing_round == 2
    long = CustomSchedule(
        theta=lambda t: 6 / t**0.5,
        eta=lambda t: (1 + excess) / t**0.5,
        mu=lambda t: t**0.5 / (6 * (t + 1)),
        gradient_bound=1.0,
    )
    assert check_conditions(long, 5).c2.failing_round == 2


def test_hyper_parameters_are_not_shared_with_the_caller():
    beta = np.array([0.5, 0.6])
    schedule = ConvexSchedule(2.0, 1.0, beta)
    beta[0] = 5.0
    assert schedule.beta.tolist() == [0.5, 0.6]


def test_c3_sums_positive_parts_only():
    zigzag = CustomSchedule(
        theta=lambda t: 100 + 0 * t,
        eta=lambda t: 1 / (2 + (t % 2)),
        mu=lambda t: 1 / (400 * (t + 1)),
        gradient_bound=1.0,
    )
    # 1/η goes 3, 2, 3, 2, 3: the brackets sum to 0, their positive parts to 2.
    assert float(step_sums(zigzag, 5).growth) == pytest.approx(2.0)
    failed = check_conditions(zigzag, 5, growth_allowed=1.5)
    assert (failed.c3.failing_round, failed.c3.excess) == (5, pytest.approx(0.5))


def test_a_step_that_is_not_positive_is_named():
    for eta in (lambda t: 4 - t, lambda t: np.where(t < 4, 1.0, np.nan), lambda t: 1 / np.abs(t - 4)):
        with pytest.raises(ScheduleError) as refused:
            CustomSchedule(theta=lambda t: 1.0, eta=eta, mu=lambda t: 1 / (t + 1))
        assert (refused.value.argument, refused.value.round) == ("eta", 4)


def test_custom_steps_may_be_constants():
    own = CustomSchedule(theta=lambda t: 1.0, eta=lambda t: 0.1, mu=lambda t: 0.2, gradient_bound=1.0)
    x = np.zeros(1, dtype=np.float32)
    assert [step.dtype for step in own.at(np.asarray(3), x)] == [np.float32] * 3
    assert check_conditions(own, 10).c2.holds  # 0.1 · 1² + 0.2 · 1² − 1/2 < 0


def test_a_penalty_of_zero_is_legal_and_fails_c2():
    failed = check_conditions(ConstantSchedule(theta=0.0, eta=0.1, mu=0.1), 10, gradient_bound=2.0)
    assert (failed.c2.failing_round, failed.c2.excess) == (2, pytest.approx(0.4))


def test_sums_at_many_horizons_equal_sums_at_each():
    schedule = ConvexSchedule(2.0, np.array([1.0, 3.0]), 0.6)
    horizons = [1, 2, 10, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 7]
    together = step_sums(schedule, horizons)
    for k, T in enumerate(horizons):
        t = np.arange(1, T + 1)[:, None]
        eta, theta = 1 / (np.array([1.0, 3.0]) * t**0.6), 6 * np.array([1.0, 3.0]) / t**0.6
        np.testing.assert_allclose(together.eta[k], eta.sum(0), rtol=1e-12)
        np.testing.assert_allclose(together.theta[k], theta.sum(0), rtol=1e-12)
        np.testing.assert_allclose(together.mu[k], (1 / (theta * (t + 1))).sum(0), rtol=1e-12)
        np.testing.assert_allclose(together.growth[k], np.array([1.0, 3.0]) * (T**0.6 - 1), rtol=1e-9, atol=1e-9)
        single = step_sums(schedule, T)
        np.testing.assert_allclose(single.mu, together.mu[k], rtol=1e-14)


@pytest.mark.parametrize("beta", [0.0, 1.0, -0.5, 1.5, float("nan"), "half", [0.5, 1.0]])
def test_beta_outside_the_open_interval(beta):
    for make in (lambda: ConvexSchedule(2.0, 1.0, beta), lambda: StronglyConvexSchedule(1.0, 1.0, beta)):
        with pytest.raises(InputError) as refused:
            make()
        assert refused.value.argument == "beta"


@given(T=st.integers(1, 3000), s=st.floats(0, 3) | st.sampled_from([1.0, np.nextafter(1, 0), np.nextafter(1, 2)]))
def test_sums_of_powers_are_no_smaller_than_the_exact_ones(T, s):
    exact = (np.arange(1.0, T + 1) ** -s).sum()
    assert exact <= float(power_sum(T, s)) * (1 + 1e-12)
    assert float(power_sum(T, s)) <= exact + 1  # the integral is at most the sum without its last term


def test_sums_of_no_term_are_those_of_one():
    """The bound of a fresh state is one after no round."""
    assert [float(power_sum(T, s)) for T in (0, 1) for s in (0.5, 1.0, 2.0)] == [1.0] * 6


def test_sums_of_powers_near_one():
    """(T^{1−s} − 1)/(1 − s) would give 7.0 at s = nextafter(1, 0), below the sum itself."""
    near = [float(power_sum(1000, s)) for s in (np.nextafter(1, 0), 1 - 1e-9, 1.0, np.nextafter(1, 2))]
    assert near == pytest.approx([1 + np.log(1000)] * 4, rel=1e-7)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: ConvexSchedule(0.0, 1.0), "diameter"),
        (lambda: ConvexSchedule(1.0, -1.0), "gradient_bound"),
        (lambda: StronglyConvexSchedule(1.0, 0.0), "strong_convexity"),
        (lambda: ConstantSchedule(theta=1.0, eta=0.0, mu=1.0), "eta"),
        (lambda: check_conditions(ConstantSchedule(theta=1.0, eta=1.0, mu=1.0), 10), "gradient_bound"),
        (lambda: step_sums(ConvexSchedule(1.0, 1.0), [3, 0]), "rounds"),
        (lambda: step_sums(ConvexSchedule(1.0, 1.0), 2.5), "rounds"),
        (lambda: check_conditions(ConvexSchedule(1.0, 1.0), 0), "horizon"),
        (lambda: ConvexSchedule("1", 1.0), "diameter"),
        (lambda: ConvexSchedule(1.0, 1 + 0j), "gradient_bound"),
        (lambda: ConvexSchedule(1.0, 1.0, []), "beta"),
        (lambda: ConstantSchedule(theta=1.0, eta=1.0, mu=1.0, gradient_bound=float("nan")), "gradient_bound"),
    ],
)
def test_impossible_schedules_are_refused(make, argument):
    with pytest.raises(InputError) as refused:
        make()
    assert refused.value.argument == argument


def test_other_arrays_at_the_same_paths():
    learner = AOGD(Ball(2), ConvexSchedule(np.array([1.0, 2.0]), 1.0, np.array([0.4, 0.6])))
    other = learner.with_hyper_arrays({"schedule.diameter": np.array([3.0]), "schedule.beta": np.array([0.5])})
    assert {path: array.tolist() for path, array in other.hyper_arrays().items()} == {
        "schedule.diameter": [3.0],
        "schedule.beta": [0.5],
    }
    assert learner.schedule.beta.tolist() == [0.4, 0.6]
    with pytest.raises(KeyError, match="steps"):
        learner.with_hyper_arrays({"steps": np.array([3.0])})
