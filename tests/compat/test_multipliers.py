"""Multipliers: first updates by hand, convergence on problems with known multipliers, one definition for all."""

import numpy as np
import pytest

from longterm.compat import multipliers as rules
from longterm.errors import InputError
from longterm.learners.ftrl.multiplier import Multiplier

RULES = [
    rules.Adaptive(),
    rules.ascent(0.1),
    rules.optimistic(0.1),
    rules.ProportionalIntegral(0.1, gain=5.0, smoothing=0.9),
    rules.Regularised(0.05),
    rules.Entropic(0.2, start=0.5),
]


def play(rule, values, equality=False):
    """Return the multipliers after each of these violations of one constraint, in floats."""
    state, found = rules.init(0.0, rule, equality), []
    for value in values:
        state = rules.update(rule, state, float(value))
        found.append(state.multiplier)
    return found


def test_gradient_ascent_by_hand():
    assert play(rules.ascent(0.5), [1.0, 2.0, -5.0, 1.0]) == [0.5, 1.5, 0.0, 0.5]
    assert play(rules.ascent(0.5), [1.0, -5.0], equality=True) == [0.5, -2.0]


def test_optimistic_ascent_by_hand():
    """λ + η(2g_t − g_{t−1}); the first update has no previous violation."""
    np.testing.assert_allclose(play(rules.optimistic(0.5), [1.0, 3.0, 2.0]), [0.5, 0.5 + 2.5, 3.0 + 0.5])


def test_proportional_integral_by_hand():
    """ν = ½, κ = 2: ξ = 1, 2, so the second move is η(3 + 2(2 − 1)) = 0.5."""
    found = play(rules.ProportionalIntegral(0.1, gain=2.0, smoothing=0.5), [1.0, 3.0])
    np.testing.assert_allclose(found, [0.1, 0.6])


def test_entropic_by_hand():
    np.testing.assert_allclose(play(rules.Entropic(2.0, start=0.1), [0.5, -1.0]), [0.1 * np.e, 0.1 / np.e])


def test_regularised_ascent_is_that_of_the_learners():
    given, found = np.random.default_rng(0).normal(size=20), []
    learner = Multiplier(theta_0=0.3, beta=0.5)
    dual = learner.start(1, np.zeros(1))
    for t, value in enumerate(given, start=1):
        dual = learner.ascend(dual, np.asarray(t), np.array([value]))
        found.append(float(dual.multiplier[0]))
    np.testing.assert_allclose(play(rules.Regularised(0.3, 0.5), given), found, rtol=1e-12)


def test_adaptive_by_hand():
    """The step grows by 2 % while the violation lasts, and shrinks by 1 − 0.75/2 at the first change of sign."""
    rule = rules.Adaptive()
    state = rules.update(rule, rules.init(0.0, rule), 2.0)
    assert state.step == pytest.approx(0.001 * 1.02)
    assert state.multiplier == pytest.approx(0.001 * 1.02 * 2.0 / 2.0**2)
    state = rules.update(rule, state, -38.0)  # ξ = 1.8 − 3.8 = −2
    assert state.step == pytest.approx(0.001 * 1.02 * 0.625)
    assert (state.size, state.flips, state.age, state.longest) == (38.0, 1.0, 0.0, 1.0)
    assert state.multiplier == 0.0  # 38 λ = 2 · 0.00051 + step · (−38 − 40)/38 < 0
    state = rules.update(rule, state._replace(multiplier=1.0), 76.0)  # ξ = −1.8 + 7.6 = 5.8
    step = 0.001 * 1.02 * 0.625 * 0.75
    assert state.multiplier == pytest.approx((38.0 * 1.0 + step * (76.0 + 78.0) / 76.0) / 76.0)


@pytest.mark.parametrize(("last", "grows"), [(1e-5, False), (0.1, True)])
@pytest.mark.parametrize("equality", [False, True])
def test_rounding_errors_do_not_count_as_a_lasting_violation(last, grows, equality):
    rule, steps = rules.Adaptive(), []
    state = rules.init(0.0, rule, equality)
    for value in [1.0, -1.0, 1.0, *[last] * 2000]:
        state = rules.update(rule, state, value)
        steps.append(state.step)
    assert (steps[-1] > steps[100]) == grows


def test_first_violations_that_are_tiny_leave_a_moderate_multiplier():
    given = np.minimum(1e-9 * 1.3 ** np.arange(100.0), 1.0)
    assert play(rules.Adaptive(), given)[-1] < 1.0


@pytest.mark.parametrize("unit", [1e-3, 100.0])
def test_the_default_does_not_depend_on_the_unit_of_a_constraint(unit):
    given = np.random.default_rng(4).normal(0.3, 1.0, size=200)
    scaled = unit * np.array(play(rules.Adaptive(), unit * given))
    np.testing.assert_allclose(scaled, play(rules.Adaptive(), given), rtol=1e-9)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_floats_and_arrays_take_the_same_steps(rule):
    given = np.random.default_rng(1).normal(0.3, 1.0, size=(40, 3))
    state = rules.init(np.zeros(3), rule)
    columns = [play(rule, given[:, j]) for j in range(3)]
    for t, row in enumerate(given):
        state = rules.update(rule, state, row)
        np.testing.assert_allclose(state.multiplier, [column[t] for column in columns], rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_the_default_finds_the_multiplier_in_any_unit(scale, noise):
    """Minimise scale·(x − 2)² with x ≤ 1 by gradient descent: λ = 2·scale."""
    rng, rule, x, tail = np.random.default_rng(2), rules.Adaptive(), 0.0, []
    state = rules.init(0.0, rule)
    for t in range(6000):
        value = x - 1.0 + noise * rng.normal()
        x -= 0.05 / scale * (2.0 * scale * (x - 2.0) + state.multiplier)
        state = rules.update(rule, state, value)
        if t >= 5000:
            tail.append((x, state.multiplier / scale))
    np.testing.assert_allclose(np.mean(tail, axis=0), [1.0, 2.0], atol=0.1)


def test_a_constraint_that_cannot_hold_stays_finite():
    assert np.isfinite(play(rules.Adaptive(), np.ones(20_000))[-1])


def test_a_constraint_that_always_holds_has_no_multiplier():
    assert max(play(rules.Adaptive(), -np.ones(50))) == 0.0


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: rules.ascent(0.0), "step"),
        (lambda: rules.ProportionalIntegral(0.1, smoothing=1.0), "smoothing"),
        (lambda: rules.Regularised(-1.0), "theta_0"),
        (lambda: rules.ascent(float("nan")), "step"),
        (lambda: rules.ProportionalIntegral(0.1, gain=-1.0), "gain"),
        (lambda: rules.ProportionalIntegral(0.1, smoothing="0.9"), "smoothing"),
        (lambda: rules.Regularised(1.0, beta=1.0), "beta"),
        (lambda: rules.constraint_kinds(0, rules.Adaptive(), False), "constraints"),
        (lambda: rules.constraint_kinds(2.0, rules.Adaptive(), False), "constraints"),
        (lambda: rules.constraint_kinds(2, rules.ascent, False), "rule"),
        (lambda: rules.constraint_kinds(2, rules.Entropic(0.1), True), "rule"),
        (lambda: rules.constraint_kinds(3, rules.Adaptive(), [True, False]), "equality"),
        (lambda: rules.constraint_kinds(2, rules.Adaptive(), [1, 0]), "equality"),
    ],
)
def test_wrong_arguments_are_refused(make, match):
    with pytest.raises(InputError, match=match):
        make()


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_compiled_jax_takes_the_same_steps(rule):
    jax = pytest.importorskip("jax")
    from longterm.compat.optax import multipliers

    given = np.random.default_rng(3).normal(0.3, 1.0, size=(30, 2)).astype(np.float32)
    duals, plain = multipliers(2, rule), rules.init(np.zeros(2, dtype=np.float32), rule)
    state, update = duals.init(), jax.jit(duals.update)
    for row in given:
        state = update(jax.numpy.asarray(row), state)
        plain = rules.update(rule, plain, row)
    assert state.multiplier.dtype == np.float32
    np.testing.assert_allclose(state.multiplier, plain.multiplier, rtol=1e-3, atol=1e-6)


def test_jax_multipliers_per_sample():
    jax = pytest.importorskip("jax")
    from longterm.compat.optax import multipliers

    duals = multipliers(4, rules.ascent(1.0), equality=[False, True, False, False])
    state = duals.update(jax.numpy.array([2.0, -3.0]), duals.init(), jax.numpy.array([2, 1]))
    np.testing.assert_allclose(state.multiplier, [0.0, -3.0, 2.0, 0.0])
    assert float(duals.penalty(state, jax.numpy.array([1.0, 1.0]), jax.numpy.array([1, 2]))) == -1.0
    gradient = jax.grad(lambda v: duals.penalty(state, v))(jax.numpy.ones(4))
    np.testing.assert_allclose(gradient, state.multiplier)
    for bad in (jax.numpy.ones(3), jax.numpy.array([1, 2, 3, 4]), 0.5, [0.5] * 4):
        with pytest.raises(InputError, match="violations"):
            duals.update(bad, state)
        with pytest.raises(InputError, match="violations"):
            duals.penalty(state, bad)
    with pytest.raises(InputError, match="bfloat16"):
        duals.init(jax.numpy.bfloat16)


def test_a_loop_with_an_optimiser_of_optax():
    """min ‖x − a‖² with ‖x‖² ≤ 1 for a = (3, 4): x = a/5 and λ = 4."""
    jax, optax = pytest.importorskip("jax"), pytest.importorskip("optax")
    from longterm.compat.optax import multipliers

    a, optimiser, duals = np.array([3.0, 4.0]), optax.adam(0.02), multipliers(1)

    def loss(x, dual):
        violations = (x**2).sum()[None] - 1
        return ((x - a) ** 2).sum() + duals.penalty(dual, violations), violations

    @jax.jit
    def step(x, primal, dual):
        gradient, violations = jax.grad(loss, has_aux=True)(x, dual)
        updates, primal = optimiser.update(gradient, primal)
        return optax.apply_updates(x, updates), primal, duals.update(violations, dual)

    x = jax.numpy.zeros(2)
    primal, dual = optimiser.init(x), duals.init()
    for _ in range(3000):
        x, primal, dual = step(x, primal, dual)
    np.testing.assert_allclose(x, a / 5, atol=0.02)
    assert float(dual.multiplier[0]) == pytest.approx(4.0, abs=0.2)
