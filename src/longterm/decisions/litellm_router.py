"""An adapter for LiteLLM's router: its custom routing strategy chooses by a `Chooser`, its callbacks settle the costs.

Needs the extra `litellm`. Rewards are yours to give, when you know them: `strategy.reward(response, 0.8)`.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.decisions.choice import rewards_of
from longterm.decisions.chooser import Chooser
from longterm.decisions.linear import WordHash
from longterm.errors import InputError, TokenError

try:
    from litellm.integrations.custom_logger import CustomLogger
    from litellm.types.router import CustomRoutingStrategyBase
except ImportError:
    raise ImportError("longterm.decisions.litellm_router needs LiteLLM: pip install 'longterm[litellm]'") from None

_LISTS = (
    "callbacks",
    "success_callback",
    "failure_callback",
    "_async_success_callback",
    "_async_failure_callback",
)
"""Where LiteLLM copies a callback to."""
MARK = "longterm_choice"
"""The key of a choice's text in a request's metadata."""
KEPT = 100_000
"""Calls of which no end was told, and answers without a reward, that are remembered."""


class BudgetExhaustedError(RuntimeError):
    """No deployment is affordable: the request is refused. (Not with a budget above the cheapest deployment.)"""


class BudgetStrategy(CustomRoutingStrategyBase, CustomLogger):  # type: ignore[misc]
    """Route requests under a budget.

    Parameters
    ----------
    router : litellm.Router
        Its deployments are the actions, in the order of its model list; `register()` puts this strategy in its place.
    chooser : Chooser
        With as many actions. Costs are in dollars.
    prices : sequence of (float, float)
        Of each deployment: dollars per token in and out.
    features : callable, optional
        From a text to the chooser's context; `WordHash()` by default.
    answer_tokens : float
        How many tokens an answer usually has.
    largest_answer : float
        How many it can have: what is held back until the cost is known, where a request has no `max_tokens`.
    tokens : callable, optional
        How many tokens a text has; characters / 3 by default, rather too many than too few, because money is held
        back by it.

    Notes
    -----
    The choice's text travels in the request's metadata, of each attempt its own: a retry is a new choice. A call that
    succeeded is charged LiteLLM's `response_cost`, or its token counts at `prices`; one that failed costs nothing and
    teaches nothing. Rewards that never come, and calls of which LiteLLM never tells the end (a stream that nobody
    reads), are forgotten with the chooser's `expire_after`; until then the money of such a call is held back. The
    budget is kept as `Chooser` says: as long as no call costs more than was held back for it, which is the prompt with
    its tools, and `n` answers of `max_tokens` (or `max_completion_tokens`). Pictures are not counted.
    """

    def __init__(
        self,
        router: Any,
        chooser: Chooser,
        prices: Sequence[tuple[float, float]],
        *,
        features: Callable[[str], FloatArray] | None = None,
        answer_tokens: float = 200.0,
        largest_answer: float = 4096.0,
        tokens: Callable[[str], float] = lambda text: len(text) / 3 + 8,
    ) -> None:
        super().__init__()
        self.router, self.chooser = router, chooser
        self.prices = validate.matrix("prices", prices)
        if self.prices.shape != (chooser.rule.actions, 2) or len(router.model_list) != chooser.rule.actions:
            raise InputError(
                "prices",
                f"have shape {self.prices.shape}, the router {len(router.model_list)} deployments",
                f"The chooser has {chooser.rule.actions} actions: give each a deployment and two prices",
            )
        self.features = WordHash() if features is None else features
        self.answer_tokens, self.largest_answer, self.tokens = answer_tokens, largest_answer, tokens
        self.name = f"longterm-{secrets.token_hex(8)}"  # LiteLLM takes callbacks with the same words in them for one
        self._open: OrderedDict[str, int] = OrderedDict()  # choices of calls under way, and their actions
        self._answered: OrderedDict[str, str] = OrderedDict()  # answers without a reward, and their choices
        self._early: OrderedDict[str, float] = OrderedDict()  # rewards of answers whose call is still under way
        self._lock = threading.Lock()

    def register(self) -> BudgetStrategy:
        """Become the router's strategy and a callback of LiteLLM."""
        import litellm

        self.router.set_custom_routing_strategy(self)
        # Not by LiteLLM's manager of callbacks: that takes a second strategy for the first.
        litellm.callbacks.append(self)
        return self

    def unregister(self) -> None:
        """Be told of no more calls."""
        import litellm

        for name in _LISTS:
            kept = getattr(litellm, name)
            kept[:] = [callback for callback in kept if callback is not self]

    # --- LiteLLM asks -----------------------------------------------------------------------------------------

    def get_available_deployment(
        self,
        model: str,
        messages: list[dict[str, str]] | None = None,
        input: str | list[Any] | None = None,
        specific_deployment: bool | None = False,
        request_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """The deployment that answers this request."""
        asked = {} if request_kwargs is None else request_kwargs
        text = _text(messages, input)
        count = self.tokens(text) + (self.tokens(str(asked["tools"])) if asked.get("tools") else 0.0)
        answers = float(asked.get("n") or 1)
        longest = max(float(asked.get(name) or 0) for name in ("max_tokens", "max_completion_tokens"))
        most = answers * (longest or self.largest_answer)
        usual = min(answers * self.answer_tokens, most)
        costs = count * self.prices[:, 0] + usual * self.prices[:, 1]
        bounds = count * self.prices[:, 0] + most * self.prices[:, 1]
        choice = self.chooser.act(self.features(text), costs=costs, bounds=bounds)
        if choice.action is None:
            raise BudgetExhaustedError(
                "no deployment is affordable; the budget is spent or held back for open requests"
            )
        # A copy, because attempts share the caller's: a failure told late must not be taken for the next attempt's.
        asked["metadata"] = dict(asked.get("metadata") or {}) | {MARK: str(choice)}
        with self._lock:
            _keep(self._open, str(choice), choice.action)
        return self.router.model_list[choice.action]

    async def async_get_available_deployment(
        self,
        model: str,
        messages: list[dict[str, str]] | None = None,
        input: str | list[Any] | None = None,
        specific_deployment: bool | None = False,
        request_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """The same, for asynchronous calls."""
        return self.get_available_deployment(model, messages, input, specific_deployment, request_kwargs)

    # --- LiteLLM tells ----------------------------------------------------------------------------------------

    def log_success_event(self, kwargs: Mapping[str, Any], response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Settle the cost, and the reward if it is here already."""
        choice, action = self._ended(kwargs)
        if choice is None:
            return
        cost = kwargs.get("response_cost")
        if not cost:
            usage = response_obj["usage"]
            cost = sum(
                (usage.get(name) or 0) * price
                for name, price in zip(("prompt_tokens", "completion_tokens"), self.prices[action], strict=True)
            )
        with suppress(TokenError):  # forgotten, because it took so long: then what was held back was counted
            self.chooser.settle(choice, cost=np.atleast_1d(float(cost)))
        answer = str(response_obj.get("id") or "")
        with self._lock:  # after the cost: a reward without one settles the cost that was announced
            self._open.pop(choice, None)
            reward = self._early.pop(answer, None)
            if reward is None and answer:
                _keep(self._answered, answer, choice)
        if reward is not None:
            with suppress(TokenError):
                self.chooser.settle(choice, reward)

    async def async_log_success_event(
        self, kwargs: Mapping[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Settle the cost."""
        self.log_success_event(kwargs, response_obj, start_time, end_time)

    def log_failure_event(self, kwargs: Mapping[str, Any], response_obj: Any, start_time: Any, end_time: Any) -> None:
        """A call that failed costs nothing; LiteLLM may ask again."""
        choice, _ = self._ended(kwargs)
        if choice is not None:
            with suppress(TokenError):
                self.chooser.settle(choice, cost=np.zeros(self.chooser.rule.game.resources))
                self.chooser.forget(choice)
            with self._lock:
                self._open.pop(choice, None)

    async def async_log_failure_event(
        self, kwargs: Mapping[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """A call that failed costs nothing."""
        self.log_failure_event(kwargs, response_obj, start_time, end_time)

    # --- you tell ---------------------------------------------------------------------------------------------

    def reward(self, response: Any, reward: float) -> None:
        """How good an answer was, in [0, 1]: by the response, or its id; also before LiteLLM has told its cost."""
        key = response if isinstance(response, str) else str(response["id"])
        rewards_of([reward], 1, None)
        with self._lock:
            choice = self._answered.pop(key, None)
            if choice is None:
                if not self._open or key in self._early:
                    raise InputError("response", f"{key} was not routed here, or has its reward", "Give each one once")
                _keep(self._early, key, float(reward))
                return
        self.chooser.settle(choice, reward)

    def _ended(self, kwargs: Mapping[str, Any]) -> tuple[str | None, int]:
        """The choice and action of a call that LiteLLM tells the end of; none, if it is not of ours or ended before."""
        metadata = (kwargs.get("litellm_params") or {}).get("metadata") or kwargs.get("metadata") or {}
        choice = str(metadata.get(MARK, ""))
        with self._lock:
            action = self._open.get(choice)
        return (None, -1) if action is None else (choice, action)


def _text(messages: list[dict[str, Any]] | None, given: str | list[Any] | None) -> str:
    """All that the model will read."""
    if messages is None:
        return given if isinstance(given, str) else " ".join(str(part) for part in given or ())
    parts: list[str] = []
    for message in messages:
        content = message.get("content") or ""
        if isinstance(content, str):
            parts.append(content)
        else:
            parts += [str(part.get("text", "")) for part in content if isinstance(part, dict)]
    return "\n".join(parts)


def _keep(kept: OrderedDict[str, Any], key: str, value: Any) -> None:
    """Remember it; the oldest go where there are too many."""
    kept[key] = value
    while len(kept) > KEPT:
        kept.popitem(last=False)
