"""LiteLLM's router with the budget strategy, offline, on its own mock responses."""

import asyncio
import os
import time

import numpy as np
import pytest

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # no look at the network for prices

from longterm import InputError
from longterm.money import Budget, Chooser, EntropicDual, PrimalDual, ThompsonSampling, WordHash

pytestmark = pytest.mark.filterwarnings("ignore")  # LiteLLM's own

PRICES = [(1e-6, 1e-6), (30e-6, 60e-6)]


@pytest.fixture
def strategy():
    litellm = pytest.importorskip("litellm.router", reason="needs the extra `litellm`")
    from longterm.compat.litellm_router import BudgetStrategy

    models = [
        {
            "model_name": "any",
            "litellm_params": {"model": f"openai/{name}", "api_key": "none"},
            "model_info": {"id": name},
        }
        for name in ("small", "large")
    ]
    router = litellm.Router(model_list=models, num_retries=0)
    features = WordHash(8)
    budget = Budget(0.05, 0.02, above_cheapest=True)
    rule = PrimalDual(
        ThompsonSampling(2, features.features, exploration=1.0), EntropicDual(50.0, step=0.02), budget, 100, replan=True
    )
    chooser = Chooser(rule, seed=1)
    made = BudgetStrategy(router, chooser, PRICES, features=features, answer_tokens=20, largest_answer=60).register()
    yield made
    made.unregister()


def settled(made, count):
    """LiteLLM's callbacks run in threads of their own."""
    for _ in range(200):
        if len(made._answered) >= count:
            return
        time.sleep(0.05)
    raise AssertionError(f"{len(made._answered)} of {count} costs were settled")


def test_costs_are_settled_by_callbacks_and_rewards_by_you(strategy):
    models = set()
    responses = []
    for t in range(12):
        response = strategy.router.completion(
            model="any", messages=[{"role": "user", "content": f"What is {t} + {t}?"}], mock_response=f"It is {2 * t}."
        )
        models.add(response.model)
        responses.append(response)
    settled(strategy, 12)
    assert all(pending is not None for pending in strategy.chooser.pending.values())
    assert float(strategy.chooser.committed[0]) == pytest.approx(float(strategy.chooser.spent[0]))
    before = strategy.chooser.state.primal.belief.mean.copy()
    for response in responses:
        strategy.reward(response, 1.0)
    assert not strategy.chooser.pending
    assert not np.array_equal(strategy.chooser.state.primal.belief.mean, before)
    assert strategy.chooser.spent[0] <= 0.05
    with pytest.raises(InputError, match="was not routed here"):
        strategy.reward(responses[0], 1.0)


def test_a_call_that_fails_costs_nothing(strategy):
    litellm = pytest.importorskip("litellm")
    with pytest.raises(litellm.RateLimitError):
        strategy.router.completion(
            model="any",
            messages=[{"role": "user", "content": "Hello"}],
            mock_response="litellm.RateLimitError",
        )
    for _ in range(100):
        if not strategy.chooser.pending:
            break
        time.sleep(0.05)
    assert not strategy.chooser.pending
    assert strategy.chooser.spent[0] == 0.0
    assert strategy.chooser.round == 2


def test_the_budget_is_held_to_the_end(strategy):
    import asyncio

    async def many():
        for t in range(40):
            await strategy.router.acompletion(
                model="any",
                messages=[{"role": "user", "content": "word " * 100}],
                mock_response="answer " * 10,
                max_tokens=50,
            )
            assert strategy.chooser.committed[0] <= 0.05, t
        await asyncio.sleep(0.5)

    asyncio.run(many())
    assert strategy.chooser.round == 41


def test_deployments_and_prices_must_fit(strategy):
    from longterm.compat.litellm_router import BudgetStrategy

    with pytest.raises(InputError, match="prices"):
        BudgetStrategy(strategy.router, strategy.chooser, PRICES[:1])


def ask(made, **more):
    return made.router.completion(model="any", messages=[{"role": "user", "content": "Hello"}], **more)


def test_every_attempt_of_a_retried_call_is_released(strategy):
    litellm = pytest.importorskip("litellm")
    strategy.router.num_retries, strategy.router.retry_after = 2, 0
    with pytest.raises(litellm.InternalServerError):
        ask(strategy, mock_response="litellm.InternalServerError", metadata={"user": "me"})
    assert strategy.chooser.round == 4
    assert not strategy.chooser.pending
    assert strategy.chooser.committed[0] == 0.0


def test_attempts_do_not_share_their_mark(strategy):
    """A failure that is told after the next attempt has begun is of the first."""
    from longterm.compat.litellm_router import METADATA_KEY

    shared = {"user": "me"}
    attempts = [{"metadata": shared}, {"metadata": shared}]
    for kwargs in attempts:
        strategy.get_available_deployment("any", [{"role": "user", "content": "Hello"}], request_kwargs=kwargs)
    strategy.log_failure_event({"litellm_params": attempts[0]}, None, None, None)
    assert list(strategy.chooser.pending) == [2]
    strategy.log_success_event(
        {"litellm_params": attempts[1], "response_cost": 0.001}, {"id": "a", "usage": {}}, None, None
    )
    strategy.log_success_event(
        {"litellm_params": attempts[1], "response_cost": 0.001}, {"id": "a", "usage": {}}, None, None
    )
    assert strategy.chooser.committed[0] == pytest.approx(float(strategy.chooser.spent[0]))
    assert METADATA_KEY not in shared
    strategy.reward("a", 1.0)
    assert not strategy.chooser.pending


def test_each_strategy_is_told_of_its_own_calls(strategy):
    from longterm.compat.litellm_router import BudgetStrategy

    litellm = pytest.importorskip("litellm")
    router = litellm.Router(model_list=strategy.router.model_list, num_retries=0)
    other = BudgetStrategy(router, Chooser(strategy.chooser.rule, seed=2), PRICES, features=WordHash(8)).register()
    try:
        for _ in range(3):
            ask(strategy, mock_response="x")
        for _ in range(2):
            ask(other, mock_response="x")
        settled(strategy, 3)
        settled(other, 2)
        assert [len(made.chooser.pending) for made in (strategy, other)] == [3, 2]
    finally:
        other.unregister()


def test_a_reward_may_come_before_the_cost_is_told(strategy):
    kwargs = {}
    strategy.get_available_deployment("any", [{"role": "user", "content": "Hello"}], request_kwargs=kwargs)
    strategy.reward("answer", 1.0)
    with pytest.raises(InputError, match="its reward was given before"):
        strategy.reward("answer", 1.0)
    with pytest.raises(InputError, match="reward"):
        strategy.reward("another", 2.0)
    assert len(strategy.chooser.pending) == 1
    strategy.log_success_event(
        {"litellm_params": kwargs, "response_cost": 0.004}, {"id": "answer", "usage": {}}, None, None
    )
    assert not strategy.chooser.pending


@pytest.mark.parametrize("asked", [{"n": 3, "max_tokens": 50}, {"max_completion_tokens": 150}, {"max_tokens": 150}])
def test_what_is_held_back_covers_every_answer(strategy, asked):
    prompt = strategy.tokens("Hello")
    while not strategy.chooser.committed[0]:
        strategy.get_available_deployment("any", [{"role": "user", "content": "Hello"}], request_kwargs=dict(asked))
    assert strategy.chooser.committed[0] >= 150 * 60e-6 - (prompt + 60) * 1e-6


def test_a_stream_is_settled_when_it_was_read(strategy):
    (answer,) = {chunk.id for chunk in ask(strategy, mock_response="one two three", stream=True)}
    settled(strategy, 1)
    strategy.reward(answer, 1.0)
    assert not strategy.chooser.pending


def test_a_request_that_is_under_way_when_it_is_installed_is_settled(strategy):
    """LiteLLM prepares its lists of callbacks when a request begins; the proxy's first requests began before."""
    strategy.unregister()

    async def ask():
        message = [{"role": "user", "content": "Hello"}]
        call = strategy.router.acompletion(model="any", messages=message, mock_response="Hello.", mock_delay=0.5)
        task = asyncio.create_task(call)
        await asyncio.sleep(0.2)
        assert strategy.chooser.pending
        strategy.register()
        await task
        await asyncio.to_thread(settled, strategy, 1)

    asyncio.run(ask())
