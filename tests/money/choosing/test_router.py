"""The router: learned costs, drift, models that come and go, files, reports; the ceiling always."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_settings import examples
from longterm import InputError
from longterm._base.exact_sum import ExactSum
from longterm.errors import BrokenBoundWarning, DatabaseError
from longterm.money import (
    EXP3IX,
    Budget,
    Ceiling,
    Chooser,
    HedgeDual,
    PlannedPrice,
    PrimalDual,
    Router,
    ThompsonSampling,
)
from longterm.money.budgets import BudgetSet
from longterm.money.choosing.beliefs import LinearBelief
from longterm.money.choosing.primals import ChoiceRequest

MODELS = {"small": 1e-4, "large": 1e-2}


def simulate(router, rounds, reward, cost, seed=0):
    """Requests of one feature; returns models, rewards and costs."""
    rng = np.random.default_rng(seed)
    models, rewards, costs = [], [], []
    for t in range(rounds):
        x = rng.random()
        route = router.route([x])
        models.append(route.model)
        rewards.append(reward(t, route.model, x))
        costs.append(cost(t, route.model, x))
        router.settle(route, rewards[-1], costs[-1])
    return np.array(models), np.array(rewards), np.array(costs)


def usual_reward(t, model, x):
    return 0.9 if model == "large" else 1 - x


def usual_cost(t, model, x):
    return MODELS[model]


def test_the_money_goes_where_it_gains_most_and_never_above_the_ceiling():
    router = Router.for_models(MODELS, per_request=3e-3, features=1)
    models, rewards, costs = simulate(router, 1500, usual_reward, usual_cost)
    assert np.all(np.cumsum(costs) <= 3e-3 * np.arange(1, 1501) + 1e-12)
    assert costs.sum() > 0.9 * 3e-3 * 1500
    late = slice(700, None)
    assert rewards[late].mean() > 0.65  # at random in the same proportion: 0.62; the best: 0.71
    assert 0.2 < (models[late] == "large").mean() < 0.31


def test_costs_that_are_not_as_announced_are_learned():
    """The large model costs a third of its price: three times as many requests can go there."""
    router = Router.for_models(MODELS, per_request=2e-3, features=1)
    models, _, costs = simulate(router, 1200, usual_reward, lambda t, m, x: MODELS[m] / (3 if m == "large" else 1))
    assert (models[600:] == "large").mean() > 0.5
    assert costs.sum() <= 2e-3 * 1200
    primal, state = router.chooser.rule.primal, router.chooser.state.primal
    expected = primal.predict(state, np.array([[0.5]]), np.array([[[1.0], [1.0]]])).costs[0, :, 0]
    np.testing.assert_allclose(expected, [1.0, 1 / 3], rtol=0.25)


def test_a_silent_drop_is_noticed_and_a_recovery_too():
    router = Router.for_models(MODELS, per_request=5e-3, features=1)

    def reward(t, model, x):
        if model == "large":
            return 0.3 if 600 <= t < 1200 else 0.95
        return 0.6

    models, _, _ = simulate(router, 2400, reward, usual_cost)
    share = [(models[start : start + 300] == "large").mean() for start in (300, 900, 2100)]
    assert share[1] < 0.1 < 0.3 < min(share[0], share[2])


@pytest.mark.parametrize("seed", [0, 1])
def test_misleading_labels_do_not_lock_a_router_into_its_cheapest_model(seed):
    """The large model is better, ten labels say the opposite, and half of the requests could go there."""
    router, rng = Router.for_models(MODELS, per_request=5e-3, features=1, seed=seed), np.random.default_rng(seed)
    for number in range(10):
        router.teach([0.5], {"large": float(number % 5 == 0), "small": float(number % 5 < 3)})
    models = []
    for _ in range(600):
        route = router.route([0.5])
        models.append(route.model)
        router.settle(route, float(rng.random() < {"small": 0.6, "large": 0.9}[route.model]), MODELS[route.model])
    assert models[400:].count("large") > 60  # with narrow draws only: none


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_model_that_spends_a_part_of_the_money_does_not_lock_out_a_better_one(seed):
    """The medium model uses 40 % of the money, and the labels say that the large one, which fits, is worse."""
    prices = {"small": 1e-4, "medium": 2e-3, "large": 8e-3}
    router, rng = Router.for_models(prices, per_request=5e-3, features=1, seed=seed), np.random.default_rng(seed)
    for number in range(12):
        router.teach([0.5], {"large": float(number % 4 == 0), "medium": float(number % 4 > 0), "small": 0.0})
    models = []
    for _ in range(1500):
        route = router.route([0.5])
        models.append(route.model)
        chance = {"small": 0.1, "medium": 0.7, "large": 0.95}[route.model]
        router.settle(route, float(rng.random() < chance), prices[route.model])
    assert models[1200:].count("large") > 100  # half of the requests could go there


def spread_requests(unspent):
    """Yield a primal's probabilities, with and without exact draws, for beliefs after random outcomes."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        primals = [ThompsonSampling(3, 2, 1.0, 0.5, 0.3, factor=0.3, draws=64, widen=widen) for widen in (False, True)]
        rule = PrimalDual(primals[0], HedgeDual(), Budget(50.0, largest=1.0), horizon=100)
        state = rule.init().primal
        for action in range(3):
            belief = state.belief.updated(rng.random(2), action, rng.random(2))
            state = state._replace(belief=belief)
        costs, allowed = np.array([[0.2], [0.1], [0.9]]), np.array([True, True, seed % 2 == 0])
        request = ChoiceRequest(9, rng.random(2), costs, np.zeros(1), allowed, unspent)
        yield [primal.weigh(state, request, np.random.default_rng(seed)) for primal in primals]


def test_draws_are_exact_where_the_price_is_0_in_proportion_to_the_unspent_money():
    mixed = [[exact - narrow for narrow, exact in spread_requests(u)] for u in (0.25, 0.5, 1.0)]
    np.testing.assert_allclose(np.array(mixed[0]) * 4, mixed[2], atol=1e-12)
    np.testing.assert_allclose(np.array(mixed[1]) * 2, mixed[2], atol=1e-12)
    assert sum(np.abs(change).sum() > 0 for change in mixed[2]) > 10
    for change in mixed[2]:
        assert change[1] <= 0 <= change[2]  # away from the cheapest action, towards the most expensive one
        assert change.sum() == pytest.approx(0, abs=1e-12)
    for narrow, exact in spread_requests(0.0):
        np.testing.assert_array_equal(narrow, exact)


def test_money_that_has_a_price_does_not_count_as_unspent(monkeypatch):
    router, seen, weigh = Router.for_models(MODELS, per_request=3e-3, features=1), [], ThompsonSampling.weigh

    def spy(primal, state, request, rng):
        seen.append((float(request.prices[0]), request.unspent))
        return weigh(primal, state, request, rng)

    monkeypatch.setattr(ThompsonSampling, "weigh", spy)
    simulate(router, 300, usual_reward, usual_cost)
    assert all(unspent == 0 for price, unspent in seen if price > 0)
    assert 0 < sum(unspent > 0 for price, unspent in seen if price == 0) < 300


def test_a_router_without_a_ceiling_draws_narrowly():
    assert not Router.for_models(MODELS, least_quality=0.5, features=1).chooser.rule.primal.widen


@given(
    st.lists(st.tuples(st.floats(0.1, 1e6), st.floats(0, 10)), min_size=1, max_size=3),
    st.integers(1, 10**6),
)
def test_the_unspent_part_is_that_of_the_scarcest_cap(caps, requests):
    budgets = BudgetSet.of([Ceiling(limit, 10.0) for limit, _ in caps], None)
    spent = np.array([limit * requests * used for limit, used in caps])
    unspent = budgets.unspent(ExactSum.zeros((len(caps),)).add(spent), requests)
    assert unspent == pytest.approx(max(0.0, 1 - max(used for _, used in caps)), abs=1e-9)


def test_the_unspent_part_of_a_budget_is_beside_an_even_spender():
    whole = BudgetSet.of([Budget(100.0, 1.0), Budget(50.0, 1.0, kind="at least")], 1000)
    assert whole.unspent(ExactSum.zeros((2,)).add(np.array([10.0, 0.0])), 200) == pytest.approx(0.5)
    assert BudgetSet.of(Budget(50.0, 1.0, kind="at least"), 1000).unspent(ExactSum.zeros((1,)), 5) == 0.0


def test_a_change_of_prices_counts_at_once():
    router = Router.for_models(MODELS, per_request=1e-3, features=1)
    before, _, _ = simulate(router, 600, usual_reward, usual_cost)
    router.set_prices({"large": 2e-4})
    after, _, costs = simulate(router, 100, usual_reward, lambda t, m, x: 2e-4 if m == "large" else 1e-4)
    assert (before == "large").mean() < 0.12
    assert (after[30:] == "large").mean() > 0.5
    assert costs.mean() < 1e-3


def test_models_come_and_go():
    router = Router.for_models(MODELS, per_request=3e-3, features=1)
    simulate(router, 300, usual_reward, usual_cost)
    router.add_model("new", 2e-4)
    prices = MODELS | {"new": 2e-4}
    models, _, _ = simulate(
        router, 300, lambda t, m, x: 0.95 if m == "new" else usual_reward(t, m, x), lambda t, m, x: prices[m]
    )
    assert (models[100:] == "new").mean() > 0.7
    router.remove_model("new")
    models, _, _ = simulate(router, 100, usual_reward, usual_cost)
    assert "new" not in models
    assert router.models == ("small", "large")
    with pytest.raises(InputError, match="'new' is not in use"):
        router.route([0.5], models=["new"])
    router.add_model("new", 2e-4)  # what was learned of it is still known
    models, _, _ = simulate(
        router, 60, lambda t, m, x: 0.95 if m == "new" else usual_reward(t, m, x), lambda t, m, x: prices[m]
    )
    assert (models == "new").mean() > 0.7
    for name in ("small", "large"):
        router.remove_model(name)
    with pytest.raises(InputError, match="cannot be removed"):
        router.remove_model("new")


def test_a_new_action_is_expected_to_be_what_the_others_share():
    """The belief with an action that was never played is the belief of one more action with the same outcomes."""
    rng = np.random.default_rng(0)
    shared, own = np.array([2.0, 5.0]), np.array([0.3, 0.5])
    late, early = LinearBelief.prior(2, 1, shared, own), LinearBelief.prior(3, 1, shared, own)
    for _ in range(20):
        x, action, y = rng.standard_normal(2), int(rng.integers(2)), rng.standard_normal(1)
        late, early = late.updated(x, action, y), early.updated(x, action, y)
    late = late.extended()
    np.testing.assert_allclose(late.mean, early.mean, atol=1e-10)
    np.testing.assert_allclose(late.covariance, early.covariance, atol=1e-10)


def test_labels_are_a_warm_start():
    cold, warm = (Router.for_models(MODELS, per_request=3e-3, features=1) for _ in range(2))
    rng = np.random.default_rng(5)
    for x in rng.random(300).tolist():
        warm.teach([x], {"large": 0.9}, {"large": 1e-2})
        warm.teach([x], {"small": 1 - x})
    scores = [simulate(router, 150, usual_reward, usual_cost)[1].mean() for router in (cold, warm)]
    assert scores[1] > scores[0]
    assert warm.chooser.spent[0] <= 3e-3 * 150


def test_the_cheapest_models_that_keep_a_quality():
    router = Router.for_models(MODELS, least_quality=0.75, features=1)
    _, rewards, costs = simulate(router, 3000, usual_reward, usual_cost)
    assert 0.74 <= rewards[1000:].mean() <= 0.78
    # The best: the large model for x > 1 − √(0.5)…, about 37 % of the requests; all to it would cost 1e-2.
    assert costs[1000:].mean() < 0.55 * 1e-2


def test_a_service_goes_on_where_it_was(tmp_path):
    more = MODELS | {"new": 2e-4}
    options = {"per_request": 3e-3, "features": 1, "url": tmp_path / "router.db", "durability": "relaxed"}
    router = Router.for_models(MODELS, **options)
    simulate(router, 40, usual_reward, usual_cost)
    waiting = str(router.route([0.3]))
    router.add_model("new", 2e-4)
    simulate(router, 45, usual_reward, lambda t, m, x: more[m])
    router.remove_model("small")
    state = router.chooser.state
    router.chooser.close()
    again = Router.for_models(more, **options)
    assert again.models == ("large", "new")
    assert str(again.chooser.state) == str(state)
    again.settle(waiting, cost=1e-4)
    again.settle(waiting, reward=0.7)
    other = Router.for_models(more | {"newer": 1e-3}, **options)  # two processes with one ceiling
    assert other.models == ("large", "new", "newer")
    assert again.chooser.rule.actions == 3
    assert again.chooser.round == other.chooser.round
    assert again.chooser.rule.actions == 4
    for one in (again, other):
        one.chooser.close()


def test_a_bound_that_was_raised_survives_a_restart(tmp_path):
    options = {"per_request": 3e-3, "features": 1, "url": tmp_path / "router.db", "durability": "relaxed"}
    router = Router.for_models(MODELS, **options)
    with pytest.warns(BrokenBoundWarning):
        router.settle(router.route([0.5], models=["small"]), 0.5, 0.002)
    router.chooser.close()
    again = Router.for_models(MODELS | {"large": 2e-2}, **options)
    assert again.largest == {"small": pytest.approx(0.002), "large": pytest.approx(0.24)}
    again.chooser.close()


def test_a_long_request_does_not_raise_the_bound_of_others():
    """Announced as 20 times the price and paid so: no more than its expected cost."""
    router = Router.for_models(MODELS, per_request=3e-3, features=1, credit=1.0)
    router.settle(router.route([0.5], models="large", costs={"large": 0.2}), 0.5, 0.2)
    assert router.largest["large"] == pytest.approx(0.12)


def test_the_cheapest_model_answers_when_the_ceiling_is_broken():
    """One answer of the small model costs more than the bound of the large one: the small one is still cheaper."""
    router = Router.for_models(MODELS, per_request=3e-3, features=1, largest={"large": 0.05})
    with pytest.warns(BrokenBoundWarning):
        router.settle(router.route([0.5], models=["small"]), 0.5, 0.1)
    assert router.largest["small"] > router.largest["large"]
    assert {router.route([x]).model for x in np.linspace(0, 1, 20)} == {"small"}


def test_processes_learn_of_a_new_model_one_by_one(tmp_path):
    options = {"per_request": 3e-3, "features": 1, "url": tmp_path / "router.db", "durability": "relaxed"}
    one, two = (Router.for_models(MODELS, **options) for _ in range(2))
    prices = MODELS | {"new": 2e-4, "newer": 3e-4}
    one.add_model("new", 2e-4)
    models, _, _ = simulate(two, 20, usual_reward, usual_cost)  # it does not know the new model and does not use it
    assert "new" not in models
    two.teach([0.5], {"small": 0.5}, {"small": 1e-4})
    two.settle(str(one.route([0.5], models=["new"])), 0.9, 2e-4)
    assert two.report().models == ("small", "large", "new")
    two.add_model("new", 2e-4)
    two.add_model("newer", 3e-4)
    one.add_model("newer", 3e-4)
    for router in (one, two):
        assert router.models == ("small", "large", "new", "newer")
        assert router.chooser.rule.actions == 4
        simulate(router, 20, usual_reward, lambda t, m, x: prices[m])
    one.remove_model("new")
    assert two.models == ("small", "large", "newer")
    fewer = Router.for_models(MODELS, **options)
    assert fewer.route([0.5]).model in MODELS
    for router in (one, two, fewer):
        router.chooser.close()


def test_texts_outcomes_in_parts_reports_and_errors():
    router = Router.for_models(MODELS, per_request=3e-3)
    first = router.route("What is 2 + 2?")
    router.settle(first, reward=1.0)  # the cost is not settled by the announced one
    assert router.chooser.spent == [0.0]
    assert "no request has both" in str(router.report())
    router.settle(str(first), cost=1.5e-4)
    assert router.chooser.spent == [1.5e-4]
    router.skip(router.route("gone", models=["small"]))
    report = router.report()
    assert report.rewards.tolist() == [1.0]
    assert "ceiling 0.003 per request" in str(report)
    assert "no request" not in str(report)
    route = router.route("long", models=["small"], bounds={"small": 2e-4})
    with pytest.warns(BrokenBoundWarning):
        router.settle(route, 0.5, 3e-4)
    for arguments, says in (
        ({}, "per_request: is missing. Give per_request, in dollars, or least_quality"),
        ({"per_request": 3e-3, "least_quality": 0.5}, "per_request: is given beside least_quality"),
        ({"per_requst": 3e-3}, "per_requst: is not known (did you mean 'per_request'?)"),
    ):
        with pytest.raises(InputError, match=re.escape(says)):
            Router.for_models(MODELS, **arguments)
    with pytest.raises(InputError, match=r"'smal' is not in use.*small"):
        router.route("x", models=["smal"])
    assert repr(router).startswith("Router(small, large; Chooser(ThompsonSampling, 3 requests")


def test_alerts_say_that_money_piles_up_and_that_a_model_is_not_tried():
    router = Router.for_models(MODELS, per_request=3e-3, features=1)
    for _ in range(99):
        router.settle(router.route([0.5], models=["small"]), 0.5, 1e-4)
    assert router.report().alerts == ()
    for _ in range(1101):
        router.settle(router.route([0.5], models="small"), 0.5, 1e-4)
    health, report = router.health(), router.report()
    assert health.shares == {"small": 1.0, "large": 0.0}
    assert health.untried == {"small": 0, "large": 1200}
    assert health.unspent == pytest.approx(1 - 1e-4 / 3e-3)
    assert [(alert.kind, alert.model) for alert in report.alerts] == [("unspent", "small"), ("untried", "large")]
    assert "alert: 97% of the money is unspent while small answers 100%" in str(report)
    assert router.metrics()["alert"] == {"unspent": 1, "untried": 1, "bounds": 0}
    router.remove_model("large")
    assert router.report().alerts == ()  # nothing else could be bought


def test_a_router_that_spends_its_money_has_no_alerts():
    router = Router.for_models(MODELS, per_request=3e-3, features=1)
    simulate(router, 600, usual_reward, usual_cost)
    assert router.report().alerts == ()
    cheapest = Router.for_models(MODELS, least_quality=0.3, features=1)
    simulate(cheapest, 300, usual_reward, usual_cost)
    assert [alert.kind for alert in cheapest.report().alerts] == []


def test_every_process_sees_a_broken_bound(tmp_path):
    def opened():
        return Router.for_models(MODELS, per_request=3e-3, features=1, url=tmp_path / "a.db", largest={"small": 2e-4})

    first, second = opened(), opened()
    for _ in range(100):
        second.settle(second.route([0.5], models=["small"]), 0.5, 1e-4)
    assert first.metrics()["alert"]["bounds"] == 0
    with pytest.warns(BrokenBoundWarning):
        second.settle(second.route([0.5], models=["small"]), 0.5, 1e-3)
    for router in (first, second):
        assert router.metrics()["alert"]["bounds"] == 1
        assert router.health().excess == pytest.approx({"small": 5.0, "large": 0.0})
        router.set_prices({"small": 2e-4})
        assert router.health().excess["small"] == pytest.approx(5.0)
        router.close()


def test_the_figure_is_drawn(tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    router = Router.for_models(MODELS, per_request=3e-3, features=1)
    simulate(router, 30, usual_reward, usual_cost)
    assert router.report().figure(tmp_path / "report.png").stat().st_size > 1000


def test_a_stored_router_refuses_models_in_another_order(tmp_path):
    def opened(*names):
        return Router.for_models(dict.fromkeys(names, 1e-3), per_request=1e-2, features=1, url=tmp_path / "r.db")

    first = opened("small", "large")
    first.settle(first.route([1.0]), reward=0.5, cost=1e-3)
    with pytest.raises(InputError, match=r"action 0 is 'large' here and 'small' in the stored.*\['small', 'large'\]"):
        opened("large", "small")
    second = opened("small")  # it does not use the other one
    with pytest.raises(InputError, match="action 1 is 'new' here and 'large'"):
        second.add_model("new", 1e-3)
    assert second.names == ["small"]
    first.add_model("new", 1e-3)
    with pytest.raises(InputError, match="action 2 is 'other'"):
        opened("small", "large", "other", "fifth")
    assert first.route([1.0]).model in first.models
    assert first.chooser.rule.actions == 3  # a refused start adds nothing
    assert opened("small", "large", "new", "other").models == ("small", "large", "new", "other")
    assert second.route([1.0]).model == "small"


def test_actions_are_added_and_removed_in_a_stored_chooser_with_open_choices(tmp_path):
    primal = ThompsonSampling(2, 1, level_scale=0.2, learn_costs=True, window=16)
    rule = PrimalDual(primal, PlannedPrice(4), Ceiling(0.5, 1.0))
    made, twin = (Chooser.open(tmp_path / "s.db", rule, durability="relaxed") for _ in range(2))
    choices = [made.act([1.0], costs=[0.1, 0.2]) for _ in range(6)]
    made.settle(choices[1], reward=0.5, cost_follows=True)
    assert made.add_action() == 2
    choices.append(twin.act([1.0], costs=[0.1, 0.2, 0.05]))
    twin.remove_action(0)
    assert made.act([1.0], costs=[0.1, 0.2, 0.05]).probabilities[0] == 0
    made.close()
    twin.close()
    with Chooser.open(tmp_path / "s.db", rule, durability="relaxed") as again:
        assert (again.rule.actions, again.removed, len(again.pending)) == (3, (0,), 8)
        for choice in choices:
            again.settle(str(choice), **({"cost": 0.1} if choice is choices[1] else {"reward": 0.5, "cost": 0.1}))
        again.add_action(0)
        with pytest.raises(InputError, match="still in use or was never added"):
            again.add_action(0)
        with pytest.raises(InputError, match="cannot be removed"):
            again.remove_action(7)
    fixed = Chooser(PrimalDual(EXP3IX(2, step=0.1), HedgeDual(step=0.1), Ceiling(0.5, 1.0)))
    with pytest.raises(InputError, match="EXP3IX cannot change its number"):
        fixed.add_action()


requests = st.lists(
    st.tuples(st.floats(-3, 3), st.floats(0.01, 1), st.integers(0, 4), st.sampled_from(["", "price", "add", "remove"])),
    min_size=1,
    max_size=40,
)


@examples(40)
@given(requests=requests, credit=st.floats(0, 0.1))
def test_the_exact_bill_of_the_defaults_is_never_above_the_ceiling(requests, credit):
    """Costs up to their bounds, late outcomes, prices that change, models that come and go: the exact sum."""
    ceiling = 12.01 * MODELS["small"]  # above the bound of a model that is never removed, so that one always fits
    router = Router.for_models(MODELS, per_request=ceiling, credit=credit, features=1)
    due, spent = [], Fraction(0)
    for t, (x, share, late, event) in enumerate(requests, start=1):
        if event == "price":
            router.set_prices({"large": 1e-2 * share})
        elif event == "add" and "new" not in router.models:
            router.add_model("new", 1e-3 * share)
        elif event == "remove" and "new" in router.models:
            router.remove_model("new")
        route = router.route([x])
        cost = router.largest[route.model] * (share if t % 2 else 1.0)
        due.append((t + late, route, cost))
        for entry in [entry for entry in due if entry[0] <= t]:
            due.remove(entry)
            router.settle(entry[1], 0.5, entry[2])
            spent += Fraction(entry[2])
        held = sum((Fraction(entry[2]) for entry in due), Fraction(0))
        assert spent + held <= Fraction(ceiling) * t + Fraction(credit)


def test_a_bank_bounds_the_bill_of_every_window_and_must_hold_every_model():
    router = Router.for_models(MODELS, per_request=2e-3, bank=10.0, largest={"large": 1e-2}, features=1)
    _, _, idle = simulate(router, 200, lambda t, m, x: float(m == "small"), usual_cost)
    _, _, busy = simulate(router, 300, lambda t, m, x: float(m == "large"), usual_cost)
    bill = np.concatenate([[0.0], np.cumsum(np.concatenate([idle, busy]))])
    excess = bill - 2e-3 * np.arange(len(bill))
    assert (excess - np.minimum.accumulate(excess)).max() <= 10 * 2e-3 + 1e-12
    assert busy[100:].mean() > 0.95 * 2e-3
    with pytest.raises(InputError, match=r"of 'large' is 0\.12, but the bank saves only 0\.02"):
        Router.for_models(MODELS, per_request=2e-3, bank=10.0)
    with pytest.raises(InputError, match="larger bank"):
        router.add_model("new", 1e-3)
    assert router.models == ("small", "large")
    router.add_model("new", 1e-5)  # the cheapest always may answer


def test_a_cost_above_its_bound_raises_the_bound():
    router = Router.for_models(MODELS, per_request=3e-3, largest={"large": 0.05})
    assert router.largest == {"small": pytest.approx(12e-4), "large": 0.05}
    route = router.route("What is 2 + 2?", models=["small"])
    with pytest.warns(BrokenBoundWarning):
        router.settle(route, 1.0, 0.002)
    assert router.largest["small"] == pytest.approx(0.002)
    router.teach("labelled", {"small": 0.5}, {"small": 0.003})
    assert router.largest["small"] == pytest.approx(0.003)
    router.set_prices({"large": 2e-2})
    assert router.largest["large"] == pytest.approx(0.1)
    router.add_model("new", 1e-3)
    assert router.largest["new"] == pytest.approx(0.036)
    router.add_model("other", 1e-3, largest=5e-3)
    assert router.largest["other"] == 5e-3


def test_bad_names_and_numbers_change_nothing():
    router = Router.for_models(MODELS, per_request=3e-3)
    with pytest.raises(InputError, match=r"prices\['large'\]"):
        router.set_prices({"small": 1.0, "large": -1.0})
    with pytest.raises(InputError, match="'smal' is not in use"):
        router.set_prices({"large": 1.0, "smal": 1.0})
    assert router.prices == MODELS
    with pytest.raises(InputError, match="'lage' is not in use"):
        router.route("x", costs={"lage": 1e-3})
    with pytest.raises(InputError, match="'lage' is not in use"):
        router.teach("x", {"lage": 0.5})
    with pytest.raises(InputError, match="'lage' is not in use"):
        Router.for_models(MODELS, per_request=3e-3, largest={"lage": 1.0})
    with pytest.raises(InputError, match="no request with a cost is settled"):
        router.report().figure("never.png")
    for prompt in (None, b"text", 3, [{"role": "user"}]):
        with pytest.raises(InputError, match="not a text"):
            router.route(prompt)
    with pytest.raises(InputError, match="models: is empty"):
        router.route("x", models=[])
    with pytest.raises(InputError, match="models: is a list"):
        Router.for_models(["small"], per_request=3e-3)
    with pytest.raises(InputError, match="per_request"):
        Router.for_models(MODELS, per_request="0.003")
    with pytest.raises(InputError, match="features"):
        Router.for_models(MODELS, per_request=3e-3, features="words")
    assert router.chooser.round == 1


def test_labels_without_costs_teach_nothing_about_costs():
    router = Router.for_models(MODELS, per_request=3e-3, features=1)
    for _ in range(50):
        router.teach([0.5], {"large": 0.9, "small": 0.5}, {"large": 3e-2})
    primal, state = router.chooser.rule.primal, router.chooser.state.primal
    expected = primal.predict(state, np.array([[0.5]]), np.array([[[1.0], [1.0]]])).costs[0, :, 0]
    assert expected[1] == pytest.approx(3.0, rel=0.25)
    assert expected[0] < expected[1]


def test_the_noise_of_rewards_is_learned():
    """A model whose answers are right or wrong, and one that always has the same reward."""
    router = Router.for_models(MODELS, per_request=3e-3, features=1)
    rng = np.random.default_rng(2)
    for _ in range(300):
        router.teach([rng.random()], {"small": 0.6, "large": float(rng.random() < 0.6)})
    totals, weights = router.chooser.state.primal.squares
    small, large = totals / weights * 0.15**2
    assert small < 0.02  # the first guess, 0.2 for five requests, is nearly forgotten
    assert large == pytest.approx(0.24, rel=0.2)


def test_a_noisy_outcome_counts_less():
    """With one weight and a prior variance of 2, the gain is 2/(2 + variance)."""
    belief = LinearBelief.prior(1, 1, np.zeros(1), np.array([2.0]))
    for variance in (1.0, 4.0):
        updated = belief.updated(np.ones(1), 0, np.ones(1), variance)
        assert updated.mean.item() == pytest.approx(2 / (2 + variance))
        assert updated.covariance.item() == pytest.approx(2 * variance / (2 + variance))
    assert belief.at(np.array([3.0]), 0).variance == pytest.approx(18.0)


def test_a_router_closes_its_database(tmp_path):
    router = Router.for_models(MODELS, per_request=3e-3, url=tmp_path / "router.db")
    router.settle(router.route("What is 2 + 2?"), reward=1.0, cost=1e-4)
    router.close()
    with pytest.raises(DatabaseError, match="closed"):
        router.route("What is 2 + 3?")
    again = Router.for_models(MODELS, per_request=3e-3, url=tmp_path / "router.db")
    assert again.chooser.spent == [1e-4]
    again.close()
