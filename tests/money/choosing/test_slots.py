"""Duals and primals alone: worked by hand, within their sets, below their regret bounds."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_settings import examples
from longterm import InputError
from longterm.money import (
    EXP3IX,
    Budget,
    EntropicDual,
    EuclideanDual,
    ExponentialWeights,
    HedgeDual,
    InverseGapWeighting,
    LinearUCB,
    RidgeRegressor,
    TableRegressor,
    ThompsonSampling,
)
from longterm.money.choosing.beliefs import LinearBelief
from longterm.money.choosing.duals import Setting
from longterm.money.choosing.primals import ActionOutcomes, ChoiceRequest, OpenChoice
from longterm.money.prices import project_corner


def setting(horizon=400, resources=1, radius=4.0, rate=0.25):
    return Setting(np.ones(resources), horizon, radius, rate, -radius, 1 + radius)


def duals():
    return {"hedge": HedgeDual(), "euclidean": EuclideanDual(), "entropic": EntropicDual(start=0.5)}


# --- duals ----------------------------------------------------------------------------------------------------


def test_hedge_dual_by_hand():
    dual, g = HedgeDual(step=0.5), setting(resources=2)
    state = dual.update(dual.init(g), np.array([0.6, -0.2]), g)
    weights = np.exp([0.3, -0.1])
    np.testing.assert_allclose(dual.prices(state, g), 4.0 * weights / (1 + weights.sum()))
    np.testing.assert_allclose(dual.prices(dual.init(g), g), [4 / 3, 4 / 3])


def test_euclidean_dual_by_hand():
    dual, g = EuclideanDual(step=2.0), setting()
    state = dual.update(dual.init(g), np.array([0.75]), g)
    assert dual.prices(state, g) == pytest.approx([1.5])
    assert dual.update(state, np.array([-0.9]), g) == pytest.approx([0.0])
    assert dual.update(dual.update(state, np.array([0.75]), g), np.array([0.75]), g) == pytest.approx([4.0])


def test_entropic_dual_by_hand():
    dual, g = EntropicDual(start=0.5, step=0.1), setting()
    state = dual.update(dual.init(g), np.array([0.75]), g)
    assert dual.prices(state, g) == pytest.approx([0.5 * np.exp(0.1 * 0.75 / 0.25)])
    units = Setting(np.array([10.0]), 400, 4.0, 0.25, -4.0, 5.0)  # a price of 0.05 for a unit of money is 0.5 for ten
    assert EntropicDual(start=0.05).prices(EntropicDual(start=0.05).init(units), units) == pytest.approx([0.5])


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=5), st.floats(0.1, 4))
def test_projection_onto_the_corner(point, radius):
    point = np.array(point)
    near = project_corner(point, radius)
    assert np.all(near >= 0)
    assert near.sum() <= radius * (1 + 1e-12)
    others = [np.zeros_like(point), *(radius * np.eye(len(point))), np.full(len(point), radius / len(point))]
    for other in others:  # the angle at a projection is obtuse
        assert (point - near) @ (other - near) <= 1e-9


@pytest.mark.parametrize("name", list(duals()))
@pytest.mark.parametrize("kind", ["random", "one way", "alternating", "reacting"])
@pytest.mark.parametrize("resources", [1, 3])
def test_dual_regret_is_below_its_bound_after_every_round(name, kind, resources):
    g = setting(resources=resources)
    dual = duals()[name].fitted(g)
    rng = np.random.default_rng(7)
    state, total, earned, worst = dual.init(g), np.zeros(resources), 0.0, -np.inf
    for t in range(g.horizon):
        prices = dual.prices(state, g)
        assert np.all(prices >= 0)
        assert prices.sum() <= g.radius * (1 + 1e-12)  # what the primal's payoffs rest on
        cost = {
            "random": rng.random(resources),
            "one way": np.ones(resources),
            "alternating": np.full(resources, t % 2),
            "reacting": (prices < g.radius / 4).astype(float),
        }[kind]
        gradient = cost - g.rate
        earned += prices @ gradient
        total += gradient
        state = dual.update(state, gradient, g)
        worst = max(worst, g.radius * max(total.max(), 0.0) - earned)
    assert worst <= dual.regret(g)
    assert dual.regret(g) < g.radius * g.horizon  # and the bound says something


def test_late_gradients_cost_what_the_bound_says():
    g, late = setting(), 20
    for dual in (HedgeDual().fitted(g), EuclideanDual().fitted(g)):
        state, total, earned, queue = dual.init(g), 0.0, 0.0, []
        for t in range(g.horizon):
            price = dual.prices(state, g)
            gradient = np.array([1.0 if (t // late) % 2 == 0 else 0.0]) - g.rate  # the delay's worst friend
            earned, total = earned + float(price @ gradient), total + float(gradient[0])
            queue.append(gradient)
            if len(queue) > late:
                state = dual.update(state, queue.pop(0), g)
        assert g.radius * max(total, 0.0) - earned <= dual.regret(g, total_delay=late * g.horizon)


def test_no_theorem_for_long_entropic_steps():
    with pytest.raises(InputError, match="no theorem covers it"):
        EntropicDual(start=0.1, step=0.5).regret(setting())


# --- primals without a context --------------------------------------------------------------------------------


def request(prices=(0.0,), costs=None, context=(), actions=2, round=1):
    return ChoiceRequest(round, np.array(context, float), costs, np.array(prices, float), np.ones(actions, dtype=bool))


def opened(action, probability, prices=(0.0,), context=(), actions=2):
    chances = np.where(np.arange(actions) == action, probability, (1 - probability) / max(actions - 1, 1))
    allowed, zero = np.ones(actions, dtype=bool), np.zeros(1)
    return OpenChoice(
        1, np.array(context, float), np.array(prices, float), allowed, action, chances, zero, None, zero, zero
    )


def outcomes(action, reward, cost, actions=2, full=False):
    seen = np.ones(actions, dtype=bool) if full else np.arange(actions) == action
    rewards = np.asarray(reward, float) if full else np.where(seen, reward, 0.0)
    costs = np.asarray(cost, float)[:, None] if full else np.where(seen, cost, 0.0)[:, None]
    return ActionOutcomes(seen, rewards, costs)


def test_hedge_by_hand():
    rng, g = np.random.default_rng(0), setting()  # payoffs in [−4, 1]
    hedge = ExponentialWeights(2, step=0.5)
    told = outcomes(0, [0.0, 1.0], [0.0, 0.25], full=True)
    state = hedge.learn(hedge.init(g), opened(0, 0.5, [2.0]), told, g)
    np.testing.assert_allclose(state.losses, [1 / 5, (1 - 0.5) / 5])  # payoffs 0 and 1 − 2/4
    p = hedge.weigh(state, request(), rng)
    np.testing.assert_allclose(p, np.exp([-0.1, -0.05]) / np.exp([-0.1, -0.05]).sum())
    with pytest.raises(InputError, match="ExponentialWeights learns from the rewards"):
        hedge.learn(state, opened(0, 0.5), outcomes(0, 1.0, 0.0), g)


def test_exp3ix_by_hand():
    g, primal = setting(), EXP3IX(2, step=0.2)
    state = primal.learn(primal.init(g), opened(1, 0.5, [2.0]), outcomes(1, 1.0, 0.25), g)
    np.testing.assert_allclose(state.losses, [0.0, ((1 - 0.5) / 5) / (0.5 + 0.1)])


def test_what_is_not_allowed_has_no_probability():
    rng, g = np.random.default_rng(0), setting()
    r = request(costs=np.zeros((3, 1)), context=[1.0], actions=3)._replace(allowed=np.array([True, False, True]))
    for primal in (
        ExponentialWeights(3),
        EXP3IX(3),
        ThompsonSampling(3, 1, exploration=1.0),
        LinearUCB(3, 1),
        InverseGapWeighting(3, RidgeRegressor(1)),
    ):
        fitted = primal.fitted(g)
        p = fitted.weigh(fitted.init(g), r, rng)
        assert p[1] == 0
        assert p.sum() == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [1000, pytest.param(3000, marks=pytest.mark.cross)])
@pytest.mark.parametrize("kind", ["random", "switch", "reacting"])
def test_primal_regret_is_below_its_bound(kind, horizon):
    """On payoffs in the whole range, an adversary that punishes the likely action included."""
    g = setting(horizon=horizon)
    for primal, full in ((ExponentialWeights(3), True), (EXP3IX(3), False)):
        fitted, regrets = primal.fitted(g), []
        for seed in range(4):
            rng = np.random.default_rng(seed)
            state, sums, earned = fitted.init(g), np.zeros(3), 0.0
            for t in range(g.horizon):
                p = fitted.weigh(state, request(actions=3), rng)
                payoff = {
                    "random": np.where(rng.random(3) < [0.5, 0.55, 0.45], 1.0, -4.0),
                    "switch": np.array([1.0, -1.0, -4.0] if t < horizon / 2 else [-4.0, 1.0, 1.0]),
                    "reacting": np.where(np.arange(3) == p.argmax(), -4.0, 1.0),
                }[kind]
                # prices 1, costs make the payoff: r − c
                rewards, costs = np.maximum(payoff, 0.0), np.maximum(-payoff, 0.0)
                action = int(rng.choice(3, p=p / p.sum()))
                sums, earned = sums + payoff, earned + payoff[action]
                told = outcomes(action, rewards, costs, 3, full=True)
                if not full:
                    told = outcomes(action, rewards[action], costs[action], 3)
                state = fitted.learn(state, opened(action, p[action], [1.0], actions=3), told, g)
            regrets.append(sums.max() - earned)
        # The bound is on the expectation: four runs and their spread.
        spread = 3 * np.std(regrets) / 2
        assert np.mean(regrets) - spread <= fitted.regret(g, known_costs=True)


# --- beliefs and linear primals -------------------------------------------------------------------------------


def test_a_belief_is_the_posterior_that_a_textbook_computes():
    rng = np.random.default_rng(3)
    K, d, shared, prior_scale, noise = 3, 4, 0.7, 0.5, 0.3
    belief, rows, told = (
        LinearBelief.prior(K, 1, np.full(d, (shared / noise) ** 2), np.full(d, (prior_scale / noise) ** 2)),
        [],
        [],
    )
    for _ in range(30):
        x, a, y = rng.standard_normal(d), int(rng.integers(K)), rng.standard_normal()
        belief = belief.updated(x, a, np.array([y]))
        rows.append(np.kron(np.eye(K)[a], x))
        told.append(y)
    A, prior = np.array(rows), np.kron(np.full((K, K), shared**2) + prior_scale**2 * np.eye(K), np.eye(d))
    covariance = np.linalg.inv(np.linalg.inv(prior) + A.T @ A / noise**2)
    mean = covariance @ A.T @ np.array(told) / noise**2
    np.testing.assert_allclose(belief.mean.ravel(), mean, atol=1e-10)
    np.testing.assert_allclose(belief.covariance * noise**2, covariance, atol=1e-10)
    x = rng.standard_normal(d)
    full = np.kron(np.eye(K), x)
    np.testing.assert_allclose(belief.spread(x) * noise**2, full @ covariance @ full.T, atol=1e-10)


def test_thompson_sampling_plays_an_action_as_often_as_it_is_best_in_the_belief():
    rng, g = np.random.default_rng(5), setting()
    primal = ThompsonSampling(2, 1, shared_scale=0.5, prior_scale=1.0, noise=1.0, factor=1.0, draws=64)
    state = primal.init(g)
    belief = state.belief.updated(np.ones(1), 0, np.array([0.8, 0.0]))
    state = state._replace(belief=belief)
    r = request([0.5], np.array([[0.0], [1.0]]), [1.0])
    share = np.mean([primal.weigh(state, r, rng) for _ in range(800)], axis=0)
    gap = belief.mean[0, 0, 0] - belief.mean[0, 1, 0] + 0.5
    spread = belief.covariance[0, 0] + belief.covariance[1, 1] - 2 * belief.covariance[0, 1]
    from scipy.stats import norm

    assert share[0] == pytest.approx(norm.cdf(gap / np.sqrt(spread)), abs=0.01)


def test_forced_exploration_is_part_of_the_probabilities():
    rng, g = np.random.default_rng(5), setting()
    primal = ThompsonSampling(4, 1, factor=0.0, exploration=1.0)
    p = primal.weigh(primal.init(g), request([0.0], np.zeros((4, 1)), [1.0], 4, round=25), rng)
    np.testing.assert_allclose(np.sort(p), [0.05, 0.05, 0.05, 0.85])


def test_linear_ucb_by_hand():
    g = setting()
    primal = LinearUCB(2, 1, shared_scale=0.0, prior_scale=1.0, noise=1.0, width=2.0)
    state = primal.init(g)
    for _ in range(3):
        state = state._replace(belief=state.belief.updated(np.ones(1), 0, np.array([0.8, 0.0])))
    # action 0: 0.6 + 2 · √(1/4) = 1.6; action 1: 0 + 2 = 2, less 0.5 for its cost: 1.5
    rng = np.random.default_rng(0)
    assert primal.weigh(state, request([0.5], np.array([[0.0], [1.0]]), [1.0]), rng).tolist() == [1.0, 0.0]
    assert primal.weigh(state, request([0.3], np.array([[0.0], [1.0]]), [1.0]), rng).tolist() == [0.0, 1.0]
    # costs learned: the least they can be, 0 − 2·½ and 0 − 2·1, counts as a gain: 1.6 + 0.5 against 2 + 1
    assert primal.weigh(state, request([0.5], None, [1.0]), rng).tolist() == [0.0, 1.0]


def test_inverse_gap_weighting_by_hand():
    g, primal = setting(), InverseGapWeighting(3, TableRegressor(2), sharpness=10.0)
    state = primal.init(g)
    for reward, action in ((1.0, 0), (1.0, 0), (0.0, 1)):
        state = primal.regressor.learn(state, np.array([1.0]), action, np.array([reward, 0.0]))
    p = primal.weigh(state, request([0.5], np.array([[1.0], [0.0], [0.0]]), [1.0], 3), np.random.default_rng(0))
    # payoffs: 2/4 − 0.5 = 0; 0; 0: all equal
    np.testing.assert_allclose(p, [1 / 3, 1 / 3, 1 / 3])
    p = primal.weigh(state, request([0.0], np.zeros((3, 1)), [1.0], 3), np.random.default_rng(0))
    np.testing.assert_allclose(p, [1 - 2 / 8, 1 / 8, 1 / 8])


def test_inverse_gap_weighting_keeps_its_inequality():
    """Σ p (L(a*) − L(a)) ≤ 2K/γ + (γ/2) Σ p e², for any estimate and truth: the lemma of its docstring."""
    rng, g = np.random.default_rng(11), setting()
    for _ in range(300):
        K, gamma = int(rng.integers(2, 6)), float(10 ** rng.uniform(-1, 3))
        estimate, truth = rng.random(K), rng.random(K)
        if rng.random() < 0.5:
            truth = np.clip(estimate + rng.normal(0, 0.1, K), 0, 1)
        primal = InverseGapWeighting(K, TableRegressor(1), sharpness=gamma)
        state = primal.init(g)
        state = state._replace(sums=np.stack([2 * estimate, 0 * estimate])[:, :, None])
        p = primal.weigh(state, request([0.0], np.zeros((K, 1)), [0.0], K), rng)
        assert p @ (truth.max() - truth) <= 2 * K / gamma + gamma / 2 * (p @ (estimate - truth) ** 2) + 1e-12


def test_regressors_stay_below_their_energy():
    rng = np.random.default_rng(2)
    T, K, d = 2000, 2, 3
    w = rng.uniform(-0.4, 0.4, (K, d))
    ridge, table = RidgeRegressor(d), TableRegressor(4)
    cells = rng.random((K, 4))
    state, other, error, off = ridge.init(K, 1), table.init(K, 1), 0.0, 0.0
    for t in range(T):
        x = rng.standard_normal(d)
        x /= np.linalg.norm(x)
        a, cell = t % K, np.array([float(rng.integers(4))])
        mean, average = 0.5 + x @ w[a] / 2, cells[a, int(cell[0])]
        error += (ridge.predict(state, x)[0, a] - (mean - 0.5)) ** 2
        off += (table.predict(other, cell)[0, a] - average) ** 2
        state = ridge.learn(state, x, a, np.array([float(rng.random() < mean) - 0.5]))
        other = table.learn(other, cell, a, np.array([float(rng.random() < average)]))
    assert error <= ridge.energy(K, T)
    assert off <= table.energy(K, T)
    assert table.energy(K, T) < 0.05 * T


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: ExponentialWeights(0), "actions"),
        (lambda: EXP3IX(2, step=-1.0), "step"),
        (lambda: ThompsonSampling(2, 0), "features"),
        (lambda: ThompsonSampling(2, 1, prior_scale=0.0), "prior_scale"),
        (lambda: ThompsonSampling(2, 1, factor=-0.1), "factor"),
        (lambda: LinearUCB(2, 1, width=-1.0), "width"),
        (lambda: EntropicDual(start=0.0), "start"),
        (lambda: HedgeDual(step=0.0), "step"),
        (lambda: Budget(1.0, largest=1.0, kind="about"), "kind"),
        (lambda: Budget(-1.0, largest=1.0), "limit"),
        (lambda: RidgeRegressor(2, ridge=0.0), "ridge"),
    ],
)
def test_bad_hyper_parameters_are_refused(make, argument):
    with pytest.raises(InputError, match=argument):
        make()


@examples(20)
@given(st.integers(0, 10_000))
def test_a_belief_does_not_depend_on_the_order_of_outcomes(seed):
    rng = np.random.default_rng(seed)
    told = [(rng.standard_normal(2), int(rng.integers(2)), rng.random(1)) for _ in range(4)]
    ends = []
    for order in itertools.islice(itertools.permutations(told), 6):
        belief = LinearBelief.prior(2, 1, np.full(2, 6.25), np.full(2, 1.5625))
        for x, a, y in order:
            belief = belief.updated(x, a, y)
        ends.append(belief)
    for other in ends[1:]:
        np.testing.assert_allclose(other.mean, ends[0].mean, atol=1e-10)
        np.testing.assert_allclose(other.covariance, ends[0].covariance, atol=1e-9)
