"""An adapter for LiteLLM's router: a `Chooser` as custom routing strategy, with callbacks that settle the costs.

Needs the extra `litellm`. Report rewards when they are known: `strategy.reward(response, 0.8)`. With a `Ledger`, all
workers of a proxy share one budget; examples/litellm has the files for LiteLLM's proxy.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm._base.extras import missing_extra
from longterm.errors import InputError, OutOfBudgetError, TokenError
from longterm.money import Ledger
from longterm.money.choosing.choice import Choice, require_rewards
from longterm.money.choosing.chooser import Chooser
from longterm.money.choosing.text import WordHash
from longterm.money.ledger.accounts import to_units
from longterm.storage import Token

try:
    import litellm
    from litellm.integrations.custom_logger import CustomLogger
    from litellm.types.router import CustomRoutingStrategyBase
except ImportError:
    raise missing_extra("longterm.compat.litellm_router needs LiteLLM", "litellm") from None

_LISTS = (
    "callbacks",
    "success_callback",
    "failure_callback",
    "_async_success_callback",
    "_async_failure_callback",
)
"""The lists into which LiteLLM copies a callback."""
PRICE_NAMES = ("input_cost_per_token", "output_cost_per_token")
METADATA_KEY = "longterm_choice"
"""The key of a choice's text in a request's metadata."""
LARGEST_EXCESS = 1.01
"""A cost above this multiple of the tokens at their prices is worth a warning: holds may be too small."""
MAX_TRACKED = 100_000
"""The largest number of unfinished calls, and of answers without a reward, that are tracked."""


LOG = logging.getLogger("longterm.litellm")
PAYMENT_REQUIRED = 402
"""The status of a request without money. SDKs repeat 429 and 5xx by themselves, and this one not."""


class BudgetExhaustedError(litellm.BudgetExceededError):  # type: ignore[misc]
    """No deployment is affordable: the money is spent, or held back for open requests.

    It is LiteLLM's own budget error. The proxy answers with its `status_code`.

    Parameters
    ----------
    spent, limit : float
        In dollars; 0 where they are not known.
    status : int
        The status that the proxy answers with.
    """

    def __init__(self, spent: float = 0.0, limit: float = 0.0, status: int = PAYMENT_REQUIRED) -> None:
        message = "no deployment is affordable: the budget is spent, or held back for open requests"
        super().__init__(spent, limit, message=message)
        self.status_code = status
        self.type = "budget_exceeded"


class BudgetStrategy(CustomRoutingStrategyBase, CustomLogger):  # type: ignore[misc]
    """A routing strategy that keeps a budget.

    Parameters
    ----------
    router : litellm.Router
        Its deployments are the actions, in the order of its model list. `register()` installs this strategy.
    chooser : Chooser
        With as many actions. Costs are in dollars.
    prices : sequence of (float, float), optional
        Dollars per input and output token of each deployment; by default those of LiteLLM: of the deployment's
        settings, or of its price table.
    features : callable, optional
        From a text to the chooser's context; `WordHash()` by default.
    answer_tokens : float
        The usual number of tokens of an answer.
    largest_answer : float
        The largest number of tokens of an answer, for requests without `max_tokens`. Its cost is held back until the
        real cost is known.
    tokens : callable, optional
        Counts the tokens of a text; characters / 3 + 8 by default, which is rather too many.
    ledger : Ledger, optional
        Where the money is. Every process of a proxy opens the same ledger, and so they share its limits.
    account : str or callable
        The account of a request: a name, or a function from the request's metadata to a name.
    units : float
        Units of the ledger in a dollar; 1e8 for a ledger in microcents.
    hold_seconds : float
        A hold expires after this time. Give more than the longest call takes. A call that ends later still counts.
    across_groups : bool
        True: any deployment may answer, whatever model a request names. By default a request for a model group is
        answered by a deployment of that group.
    status : int
        The status of HTTP with which the proxy answers when no deployment is affordable.

    Notes
    -----
    With a ledger, a request is admitted iff spent + Σ open holds + its hold ≤ limit, in one transaction for all
    processes. The final spend is at most limit + Σ (cost − hold)₊ over the requests open at the last admission. A
    process that is killed holds money for `hold_seconds` at most. Costs are whole units, so sums have no rounding
    error. With ``Ledger.open(holds=ExcessHold())`` holds are estimates by deployment in place of the worst case.

    The text of the choice travels in the metadata of each attempt; a retry is a new choice. A call that succeeds is
    charged LiteLLM's `response_cost`, or its token counts at `prices`. A call that fails costs nothing and teaches
    nothing. Rewards that never come, and calls whose end LiteLLM never reports (a stream that is not read to its end),
    are skipped by the chooser's `expire_after`; until then their money is held back. The budget is kept if no call
    costs more than the money held back for it: the prompt with its tools, and `n` answers of `max_tokens` (or
    `max_completion_tokens`). Images are not counted.
    """

    def __init__(
        self,
        router: Any,
        chooser: Chooser,
        prices: Sequence[tuple[float, float]] | None = None,
        *,
        features: Callable[[str], FloatArray] | None = None,
        answer_tokens: float = 200.0,
        largest_answer: float = 4096.0,
        tokens: Callable[[str], float] = lambda text: len(text) / 3 + 8,
        ledger: Ledger | None = None,
        account: str | Callable[[Mapping[str, Any]], str] = "",
        units: float = 1e8,
        hold_seconds: float = 600.0,
        across_groups: bool = False,
        status: int = PAYMENT_REQUIRED,
    ) -> None:
        super().__init__()
        self.router, self.chooser = router, chooser
        self.across_groups, self.status = across_groups, status
        self.prices = validate.matrix("prices", deployment_prices(router) if prices is None else prices)
        if self.prices.shape != (chooser.rule.actions, 2) or len(router.model_list) != chooser.rule.actions:
            raise InputError(
                "prices",
                f"have shape {self.prices.shape}, and the router has {len(router.model_list)} deployments",
                f"Give one deployment and two prices for each of the chooser's {chooser.rule.actions} actions",
            )
        self.ledger, self.account, self.hold_seconds = ledger, account, hold_seconds
        self.units = validate.positive_scalar("units", units)
        self.features = WordHash() if features is None else features
        self.answer_tokens, self.largest_answer, self.tokens = answer_tokens, largest_answer, tokens
        self.name = f"longterm-{secrets.token_hex(8)}"  # LiteLLM merges callbacks with equal names
        self._open: OrderedDict[str, int] = OrderedDict()  # actions of unfinished calls, by the text of their choice
        self._answered: OrderedDict[str, str] = OrderedDict()  # choices of answers without a reward, by response id
        self._early: OrderedDict[str, float] = OrderedDict()  # rewards of unfinished calls, by response id
        self._lock = threading.Lock()

    def register(self) -> BudgetStrategy:
        """Install this object as the router's strategy and as a callback of LiteLLM."""
        self.router.set_custom_routing_strategy(self)
        # Its callback manager would drop a second strategy as a duplicate. It copies `callbacks` into the other lists
        # at the next request only, so the end of requests that are being prepared now would not be reported.
        for name in _LISTS:
            getattr(litellm, name).append(self)
        return self

    def unregister(self) -> None:
        """Remove the callback from LiteLLM."""
        for name in _LISTS:
            callbacks = getattr(litellm, name)
            callbacks[:] = [callback for callback in callbacks if callback is not self]

    # --- called by LiteLLM -------------------------------------------------------------------------------------

    def get_available_deployment(
        self,
        model: str,
        messages: list[dict[str, str]] | None = None,
        input: str | list[Any] | None = None,
        specific_deployment: bool | None = False,
        request_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Return the deployment that answers this request, of the group that it names."""
        kwargs = {} if request_kwargs is None else request_kwargs
        suitable = self._suitable(model)
        text = _text(messages, input)
        count = self.tokens(text) + (self.tokens(str(kwargs["tools"])) if kwargs.get("tools") else 0.0)
        answers = float(kwargs.get("n") or 1)
        longest = max(float(kwargs.get(name) or 0) for name in ("max_tokens", "max_completion_tokens"))
        most = answers * (longest or self.largest_answer)
        usual = min(answers * self.answer_tokens, most)
        costs = count * self.prices[:, 0] + usual * self.prices[:, 1]
        bounds = count * self.prices[:, 0] + most * self.prices[:, 1]
        metadata = dict(kwargs.get("metadata") or {})
        choice = self._admitted(self.features(text), costs, bounds, metadata, suitable)
        # A copy: attempts share the caller's metadata, and a late failure must not count for the next attempt.
        kwargs["metadata"] = metadata | {METADATA_KEY: str(choice)}
        with self._lock:
            _track(self._open, str(choice), choice.action)
        return self.router.model_list[choice.action]

    def _suitable(self, model: str) -> NDArray[np.bool_]:
        """Return which deployments may answer a request for this model group, alias or wildcard."""
        deployments = self.router.model_list
        if self.across_groups:
            return np.ones(len(deployments), dtype=np.bool_)
        found = {one["model_info"]["id"] for one in self.router.get_model_list(model_name=model) or ()}
        suitable = np.array([one["model_info"]["id"] in found for one in deployments], dtype=np.bool_)
        if not suitable.any():
            names = sorted({one["model_name"] for one in deployments})
            message = f"there is no model group {model!r}. Choose from {names}."
            raise litellm.BadRequestError(message, model=model, llm_provider="")
        return suitable

    def _admitted(
        self,
        context: FloatArray,
        costs: FloatArray,
        bounds: FloatArray,
        metadata: Mapping[str, Any],
        suitable: NDArray[np.bool_],
    ) -> Choice:
        """Return a choice whose money is held. Deployments that the account cannot pay for are left out."""
        allowed = suitable.copy()
        while allowed.any():
            choice = self.chooser.act(context, costs=costs, bounds=bounds, allowed=allowed)
            if choice.action is None:
                break
            if self.ledger is None:
                return choice
            account = self.account(metadata) if callable(self.account) else self.account
            amount, group = to_units("bounds", bounds[choice.action], self.units), str(choice.action)
            who = str(metadata.get("user_api_key_alias") or "")[:200]
            try:
                self.ledger.hold(account, amount, str(choice), group=group, seconds=self.hold_seconds, who=who)
            except OutOfBudgetError:
                self._give_back(str(choice))
                allowed[choice.action] = False
                continue
            except BaseException:
                self._give_back(str(choice))
                raise
            return choice
        raise BudgetExhaustedError(status=self.status)

    def _give_back(self, choice: str) -> None:
        """Close a choice that costs nothing and teaches nothing."""
        with suppress(TokenError):
            self.chooser.settle(choice, cost=np.zeros(self.chooser.rule.setting.resources))
            self.chooser.skip(choice)

    async def async_get_available_deployment(
        self,
        model: str,
        messages: list[dict[str, str]] | None = None,
        input: str | list[Any] | None = None,
        specific_deployment: bool | None = False,
        request_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Return the deployment that answers this request."""
        # In a thread: the event loop must not wait for the database.
        given = model, messages, input, specific_deployment, request_kwargs
        return await asyncio.to_thread(self.get_available_deployment, *given)

    def log_success_event(self, kwargs: Mapping[str, Any], response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Settle the cost, and the reward if it is known already."""
        choice, action = self._finished(kwargs)
        if choice is None:
            return
        cost = self._cost(action, kwargs.get("response_cost"), response_obj)
        if self.ledger is not None:  # first, since it is the money; an expired hold can be settled, too
            with suppress(InputError):  # settled already
                self.ledger.settle(choice, to_units("cost", cost, self.units), force=True)
        with suppress(TokenError):  # expired: the money held back was counted
            self.chooser.settle(choice, cost=np.atleast_1d(cost))
        answer = str(response_obj.get("id") or "")
        with self._lock:  # after the cost: a reward alone would settle the announced cost
            self._open.pop(choice, None)
            reward = self._early.pop(answer, None)
            if reward is None and answer:
                _track(self._answered, answer, choice)
        if reward is not None:
            with suppress(TokenError):
                self.chooser.settle(choice, reward)

    async def async_log_success_event(
        self, kwargs: Mapping[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Settle the cost."""
        await asyncio.to_thread(self.log_success_event, kwargs, response_obj, start_time, end_time)

    def log_failure_event(self, kwargs: Mapping[str, Any], response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Settle a cost of 0 and skip the choice."""
        choice, _ = self._finished(kwargs)
        if choice is not None:
            if self.ledger is not None:
                with suppress(InputError):
                    self.ledger.release(choice)
            self._give_back(choice)
            with self._lock:
                self._open.pop(choice, None)

    async def async_log_failure_event(
        self, kwargs: Mapping[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Settle a cost of 0 and skip the choice."""
        await asyncio.to_thread(self.log_failure_event, kwargs, response_obj, start_time, end_time)

    async def async_post_call_failure_deployment_hook(
        self, request_data: Mapping[str, Any], exception: Exception, call_type: Any, *args: Any, **kwargs: Any
    ) -> None:
        """Settle a cost of 0 and skip the choice of one attempt.

        Of a request that the proxy has tried several times, LiteLLM logs one failure only.
        """
        await asyncio.to_thread(self.log_failure_event, request_data, None, None, None)

    def _cost(self, action: int, stated: Any, response: Any) -> float:
        """Return the cost that LiteLLM states, or that of the tokens it reports. Warn if the first is the larger."""
        usage = response["usage"] or {}
        counts = [float(usage.get(name) or 0) for name in ("prompt_tokens", "completion_tokens")]
        by_tokens = float(np.dot(counts, self.prices[action]))
        if not stated:
            return by_tokens
        if float(stated) > LARGEST_EXCESS * by_tokens:
            text = (
                "deployment %d cost %g dollars, and %g by its tokens and prices: correct the prices, which bound holds"
            )
            LOG.warning(text, action, float(stated), by_tokens)
        return float(stated)

    # --- called by you -----------------------------------------------------------------------------------------

    def reward(self, response: Any, reward: float) -> None:
        """Report the reward of a response, or of its id, in [0, 1]; also before LiteLLM has reported its cost.

        In a process other than the one that answered, give the text of the choice, ``metadata["longterm_choice"]``.
        """
        key = response if isinstance(response, str) else str(response["id"])
        require_rewards([reward], 1, None)
        if Token.is_text(key):
            self.chooser.settle(key, reward, cost_follows=True)
            return
        with self._lock:
            choice = self._answered.pop(key, None)
            if choice is None:
                if not self._open or key in self._early:
                    raise InputError(
                        "response",
                        f"{key} was not routed here, or its reward was given before",
                        "Give the reward of a response once",
                    )
                _track(self._early, key, float(reward))
                return
        self.chooser.settle(choice, reward)

    def _finished(self, kwargs: Mapping[str, Any]) -> tuple[str | None, int]:
        """Return the choice and action of a finished call, or (None, −1) if it is not ours or ended before."""
        metadata = (kwargs.get("litellm_params") or {}).get("metadata") or kwargs.get("metadata") or {}
        choice = str(metadata.get(METADATA_KEY, ""))
        with self._lock:
            action = self._open.get(choice)
        return (None, -1) if action is None else (choice, action)


def deployment_prices(router: Any) -> list[tuple[float, float]]:
    """Return the dollars per input and output token of a LiteLLM router's deployments.

    Parameters
    ----------
    router : litellm.Router
        Prices in a deployment's `model_info` or `litellm_params` come before LiteLLM's price table.

    Returns
    -------
    list of (float, float)

    Raises
    ------
    InputError
        If LiteLLM knows no price of a deployment.
    """
    found = []
    for one in router.model_list:
        params = one["litellm_params"]
        given = {**params, **{key: value for key, value in one.get("model_info", {}).items() if value is not None}}
        pair = [given.get(name) for name in PRICE_NAMES]
        if None in pair:
            try:
                listed = litellm.get_model_info(given.get("base_model") or params["model"])
            except Exception:  # LiteLLM raises a bare Exception for a model that it does not know
                what = f"LiteLLM has no price of {params['model']!r}"
                remedy = f"Give {' and '.join(PRICE_NAMES)} in its litellm_params"
                raise InputError("prices", what, remedy) from None
            pair = [listed[name] if value is None else value for name, value in zip(PRICE_NAMES, pair, strict=True)]
        found.append((float(pair[0] or 0.0), float(pair[1] or 0.0)))
    return found


def _text(messages: list[dict[str, Any]] | None, given: str | list[Any] | None) -> str:
    """Return the text that the model will read."""
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


def _track(items: OrderedDict[str, Any], key: str, value: Any) -> None:
    """Add an item, and remove the oldest while there are too many."""
    items[key] = value
    while len(items) > MAX_TRACKED:
        items.popitem(last=False)
