"""Route prompts to language models under a dollar ceiling, or at a least quality, with sensible defaults.

    router = Router.for_models({"small": 3e-5, "large": 1.5e-2}, per_request=1e-3)
    route = router.route(prompt)                       # route.model answers
    router.settle(route, reward=0.9, cost=0.0123)      # when both are known, or one after the other

It is a `Chooser` with these slots: Thompson sampling on a linear belief with a level for each model, which drifts, and
with learned costs; `PlannedPrice` on the last 512 requests; a `Ceiling`. The bill after t requests is never above
per_request · t + credit, except for what the cheapest model costs where nothing else is affordable, as long as no
request costs more than its bound. docs/guides/decisions.md has the figures behind the defaults.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from longterm._base import validate
from longterm._base.messages import did_you_mean, shown
from longterm.errors import DatabaseError, InputError, TokenError, UnaffordableError
from longterm.money.budgets import LARGEST_STORED, Ceiling
from longterm.money.choosing.choice import Choice
from longterm.money.choosing.chooser import Chooser, for_known_actions
from longterm.money.choosing.linear_primals import ThompsonSampling
from longterm.money.choosing.planned_price import PlannedPrice
from longterm.money.choosing.primal_dual import PrimalDual
from longterm.money.choosing.router_report import RouterHealth, RouterReport
from longterm.money.choosing.text import WordHash
from longterm.storage.contents import read_definition
from longterm.storage.record import RecordEntry
from longterm.storage.stored_object import Metrics
from longterm.storage.tokens import is_storable

OPTIONS = (
    *("expire_after", "max_age", "max_in_flight", "remember", "holds", "account", "clock"),
    *("name", "durability", "follow"),
)
"""Arguments of the chooser that `Router.for_models` takes."""
SHARED_SCALE, PRIOR_SCALE, LEVEL_SCALE = 0.2, 0.03, 0.2
NOISE, FACTOR, DRIFT = 0.15, 0.3, 0.003
WINDOW, DRAWS = 512, 8
BOUND_RATIO = 12.0
"""The largest cost of a request, in units of its model's price, for the models that a router begins with."""
NEW_BOUND_RATIO = 36.0
"""The same for a model that is added later. A running router has money in the bank, so caution costs little."""
UNIT = 1e3
"""The unit of the rule, in ceilings."""
UNLIMITED = 1e6
"""Dollars per request: the ceiling of a router without one, and the price of a model that only other processes know."""
HIGHEST_PRICE = 1e9
"""Reward per dollar."""
HISTORY = 100_000
"""The number of settled requests that reports cover, and of requests that wait for their second part."""


@dataclass(frozen=True, eq=False)
class Route:
    """The model that answers a request. Keep it, or its text ``str(route)``, to settle it.

    Parameters
    ----------
    model : str
        The name of the model.
    choice : Choice
        The choice of the chooser, with its probabilities and prices.
    """

    model: str
    choice: Choice

    def __str__(self) -> str:
        return str(self.choice)


class Router:
    """Choose a language model for each prompt, and keep the mean cost below a ceiling.

    Make it with `Router.for_models`.

    Parameters
    ----------
    chooser : Chooser
        With one action for each model.
    models : mapping of str to float
        The price of each model: the expected cost of a request, in dollars.
    features : callable
        From a prompt to the chooser's context.
    largest : mapping of str to float, optional
        The largest cost of a request for some models, in dollars; by default 12 times the price.

    Examples
    --------
    >>> from longterm.money.choosing.router import Router
    >>> router = Router.for_models({"small": 1e-4, "large": 1e-2}, per_request=2e-3)
    >>> for t in range(200):
    ...     route = router.route("Prove the theorem of Sylow." if t % 2 else "What is the capital of France?")
    ...     right = route.model == "large" or t % 2 == 0
    ...     router.settle(route, reward=float(right), cost={"small": 1e-4, "large": 1e-2}[route.model])
    >>> bool(router.chooser.spent[0] <= 2e-3 * 200)
    True
    """

    def __init__(
        self,
        chooser: Chooser,
        models: Mapping[str, float],
        features: Callable[[Any], ArrayLike],
        *,
        largest: Mapping[str, float] | None = None,
    ) -> None:
        self.chooser, self.features = chooser, features
        self.prices = _require_positive("models", models)
        self.largest = {name: BOUND_RATIO * price for name, price in self.prices.items()}
        for name, cost in _require_positive("largest", {} if largest is None else largest).items():
            self._action(name)
            self.largest[name] = max(cost, self.prices[name])
        self._declared = dict(self.largest)
        self._parts: dict[int, tuple[float | None, float | None]] = {}
        self._settled: deque[tuple[int, float, float, float]] = deque(maxlen=HISTORY)

    @classmethod
    def for_models(
        cls,
        models: Mapping[str, float],
        *,
        per_request: float | None = None,
        least_quality: float | None = None,
        features: Callable[[Any], ArrayLike] | int | None = None,
        credit: float = 0.0,
        bank: float | None = None,
        largest: Mapping[str, float] | None = None,
        seed: int = 0,
        url: str | PathLike[str] | None = None,
        **options: Any,
    ) -> Router:
        """Make a router with default slots.

        Parameters
        ----------
        models : mapping of str to float
            The price of each model: the expected cost of a request, in dollars.
        per_request : float, optional
            The ceiling: the average cost of a request, in dollars.
        least_quality : float, optional
            Keep the average reward at least this high, as cheaply as possible, in place of a ceiling.
        features : callable or int, optional
            A function from a prompt to a vector, or the length of vectors that are given to `route` themselves. By
            default a hash of the words of a text.
        credit : float
            Money that may be spent ahead of the ceiling.
        bank : float, optional
            The most money that is saved, in requests: the bill of any n requests in a row is at most per_request · (n +
            bank) + credit. Every model but the cheapest needs its largest cost in it. By default all is saved.
        largest : mapping of str to float, optional
            The largest cost of a request for some models, in dollars: price per token times the most tokens. By default
            12 times the price. A cost above it raises it, with a BrokenBoundWarning.
        seed : int
            For the draws.
        url : path or str, optional
            The database of a service: a file for SQLite, or ``postgresql://…``. Processes that open it share the
            ceiling. Name the models in the same order in each, new ones last; another order is refused.
        **options
            Further arguments of the chooser: expire_after, max_age, max_in_flight; with a database name, durability,
            follow.
        """
        if not _require_positive("models", models):
            raise InputError(
                "models", "is empty", "Pass the expected cost of each model, such as {'small': 1e-4, 'large': 1e-2}"
            )
        for option in options:
            if option not in OPTIONS:
                what = f"is not known{did_you_mean(option, [*OPTIONS, 'per_request', 'features', 'largest'])}"
                raise InputError(option, what, f"Further arguments are {list(OPTIONS)}")
        if per_request is None and least_quality is None:
            raise InputError("per_request", "is missing", "Give per_request, in dollars, or least_quality")
        if per_request is not None and least_quality is not None:
            raise InputError("per_request", "is given beside least_quality", "Give one of them")
        if features is None:
            features = WordHash()
        encode, length = (_as_vector, features) if isinstance(features, int) else (features, _length(features))
        ceiling = UNLIMITED if per_request is None else validate.positive_scalar("per_request", per_request)
        primal = ThompsonSampling(
            len(models),
            length,
            SHARED_SCALE,
            PRIOR_SCALE,
            NOISE,
            level_scale=LEVEL_SCALE,
            drift=DRIFT,
            learn_costs=True,
            learn_noise=True,
            window=WINDOW,
            factor=FACTOR,
            draws=DRAWS,
            widen=least_quality is None,  # without a ceiling there is no unspent money
        )
        dual = PlannedPrice(least_reward=least_quality)
        # The unit depends neither on prices nor on a ceiling that was changed. Every request has bounds of its own.
        unit = UNIT * ceiling if url is None else _stored_unit(url, options.get("name", "chooser")) or UNIT * ceiling
        budget = Ceiling(ceiling, unit, credit, always_answer=True, bank=bank)
        rule = PrimalDual(primal, dual, budget, radius=HIGHEST_PRICE * unit)
        if url is None:
            chooser = Chooser(rule, seed=seed, **options)
        else:
            chooser = Chooser.open(url, rule, seed=seed, names=list(models), **options)
        router = cls(chooser, models, encode, largest=largest)
        for name in models:
            router._require_room(name, "largest", router.largest[name], ceiling=budget)
            router._raise_bound(name)  # by what was paid before a restart
        return router

    def __repr__(self) -> str:
        return f"Router({', '.join(self.models)}; {self.chooser!r})"

    @property
    def names(self) -> list[str]:
        """The names of all models, removed ones included, in the order in which they were added."""
        return list(self.prices)

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models in use."""
        removed = set(self.chooser.removed)
        return tuple(name for action, name in enumerate(self.names) if action not in removed)

    # --- the rounds -------------------------------------------------------------------------------------------

    def route(
        self,
        prompt: Any,
        *,
        models: str | Sequence[str] | None = None,
        costs: Mapping[str, float] | None = None,
        bounds: Mapping[str, float] | None = None,
        key: str | None = None,
    ) -> Route:
        """Return the model that answers a prompt.

        Parameters
        ----------
        prompt : str or array
            The prompt, as `features` takes it.
        models : str or sequence of str, optional
            The models that suit this request; by default all.
        costs : mapping of str to float, optional
            The expected cost of this request for some models, in place of their price.
        bounds : mapping of str to float, optional
            The largest cost of this request for some models.
        key : str, optional
            An idempotency key, as for `Chooser.act`.

        Raises
        ------
        UnaffordableError
            If the account of the router cannot pay for any of them.
        """
        expected, most = self._announced(costs, bounds)
        wanted = set(range(len(expected)))
        if models is not None:
            if not np.iterable(models):
                raise InputError("models", f"{models!r:.60} is not a list", "Give names of models")
            wanted = {self._action(name) for name in ([models] if isinstance(models, str) else models)}
            if not wanted:
                raise InputError(
                    "models",
                    "is empty, so no model may answer",
                    "Name at least one model, or leave the list out to allow all",
                )
        x = self.features(prompt)

        def act(others: int) -> Choice:
            allowed = None
            if others or models is not None:
                allowed = [action in wanted for action in range(len(expected) + others)]
            unknown = [UNLIMITED] * others
            return self.chooser.act(x, expected + unknown, most + unknown, allowed=allowed, key=key)

        choice = for_known_actions(self.chooser, len(self.prices), act)
        if choice.action is None:
            remedy = "Settle open requests, raise the limit of the account, or allow more models"
            raise UnaffordableError("models", "contains no model that is in use and affordable", remedy)
        return Route(self._name(choice.action), choice)

    def settle(
        self,
        route: Route | str,
        reward: float | None = None,
        cost: float | None = None,
        *,
        position: tuple[str, int] | None = None,
    ) -> None:
        """Report the reward in [0, 1], the cost in dollars, or both.

        Parameters
        ----------
        route : Route or str
            The route, or its text.
        reward, cost : float, optional
            Each counts once; the other may come later.
        position : (str, int), optional
            The partition of a queue and the number of the message there. A message counts once, however often the
            queue delivers it. Numbers must grow along a partition.
        """
        self.chooser.check_position(position)
        try:
            choice = self._choice(route)
        except TokenError:
            self.chooser.check_position(position)  # another process may have applied the message meanwhile
            raise
        reward = None if reward is None else validate.non_negative_scalar("reward", reward)
        cost = None if cost is None else validate.non_negative_scalar("cost", cost)
        self.chooser.settle(choice, reward, cost, cost_follows=cost is None, position=position)
        first = self._parts.pop(choice.number, (None, None))
        reward, cost = first[0] if reward is None else reward, first[1] if cost is None else cost
        if reward is None or cost is None:
            self._parts[choice.number] = reward, cost
            if len(self._parts) > HISTORY:  # another process may have reported the other part
                del self._parts[next(iter(self._parts))]
        elif choice.action is not None:
            self._settled.append((choice.action, reward, cost, float(choice.prices[0])))
            name = self._name(choice.action)
            if cost > self.largest.get(name, np.inf):
                self._raise_bound(name)

    def skip(self, route: Route | str) -> None:
        """Give up a route whose outcome will not come. The money held back for it counts as spent."""
        choice = self._choice(route)
        self.chooser.skip(choice)
        self._parts.pop(choice.number, None)

    def teach(
        self,
        prompt: Any,
        rewards: Mapping[str, float],
        costs: Mapping[str, float] | None = None,
        *,
        position: tuple[str, int] | None = None,
    ) -> None:
        """Learn the rewards, and perhaps the costs, of some models on a labelled prompt. No budget moves.

        Parameters
        ----------
        prompt : str or array
            The prompt, as `features` takes it.
        rewards : mapping of str to float
            In [0, 1], of the models that are labelled.
        costs : mapping of str to float, optional
            In dollars, of some of these models.
        position : (str, int), optional
            The partition of a queue and the number of the message there. A message counts once, however often the
            queue delivers it. Numbers must grow along a partition.
        """
        labels, paid = np.full(len(self.names), np.nan), np.zeros(len(self.names))
        known = _require_numbers("costs", costs)
        for name, reward in _require_numbers("rewards", rewards).items():
            labels[self._action(name)] = reward
        for name, cost in known.items():
            paid[self._action(name)] = cost
        x, prices = self.features(prompt), list(self.prices.values())

        def teach(others: int) -> None:
            unknown = [UNLIMITED] * others
            seen, spent = np.pad(labels, (0, others), constant_values=np.nan), np.pad(paid, (0, others))
            self.chooser.teach(x, seen, spent, announced=prices + unknown, position=position)

        for_known_actions(self.chooser, len(self.prices), teach)
        for name, cost in known.items():
            if cost > self.largest[name]:
                self._raise_bound(name)

    # --- models that come and go ------------------------------------------------------------------------------

    def add_model(self, name: str, price: float, *, largest: float | None = None) -> None:
        """Use one more model, or a removed one again. It is expected to be like the others, at its price.

        With a database, call it in every process, for new models in the same order. A process that has not does not
        use the model.

        Parameters
        ----------
        name : str
            Its name.
        price : float
            The expected cost of a request, in dollars.
        largest : float, optional
            The largest cost of a request; by default 36 times the price.
        """
        price = validate.positive_scalar("price", price)
        most = NEW_BOUND_RATIO * price if largest is None else validate.positive_scalar("largest", largest)
        if not is_storable(name):
            raise InputError("name", f"{shown(name)} is not the name of a model", "Give a text")
        if name in self.models:
            raise InputError("name", f"{name!r} already exists", "Change its price with set_prices()")
        self._require_room(name, "largest", max(most, price), price)
        if name in self.names:
            self.chooser.add_action(self.names.index(name))
        else:
            self.chooser.name_actions([*self.names, name])
        self.prices[name], self.largest[name] = price, max(most, price)
        self._declared[name] = self.largest[name]

    def remove_model(self, name: str) -> None:
        """Stop using a model, in every process. What was learned about it is kept."""
        action = self._action(name)
        if self.models == (name,):
            raise InputError("name", f"{name!r} is the last model and cannot be removed", "Add another model first")
        self.chooser.remove_action(action)

    def set_prices(self, prices: Mapping[str, float]) -> None:
        """Change the prices of models. Expected and largest costs change in proportion at once.

        Prices are announced by each process with its requests. They are not stored: after a restart, give the present
        ones to `for_models`.
        """
        given = _require_positive("prices", prices)
        for name in given:
            self._action(name)
        for name, price in given.items():
            self._require_room(name, "prices", self.largest[name] * price / self.prices[name], price)
        for name, price in given.items():
            self.largest[name] *= price / self.prices[name]
            self._declared[name] *= price / self.prices[name]
            self.prices[name] = price

    def change(
        self,
        *,
        per_request: float | None = None,
        credit: float | None = None,
        bank: float | None = None,
        least_quality: float | None = None,
        who: str = "",
        note: str = "",
    ) -> None:
        """Change the ceiling or the least quality, here and in all processes that use this router.

        A new `per_request` counts for the requests from now on. What was learned stays, and the price of money follows
        at the next plan.

        Parameters
        ----------
        per_request, credit, bank, least_quality : float, optional
            As for `for_models`. A `bank` of `math.inf` is none.
        who, note : str
            Who makes the change and why, for `record`.
        """
        given = {"per_request": per_request, "credit": credit, "bank": bank}
        fields: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if bank == math.inf:
            fields["bank"] = None
        if fields and not self._has_ceiling:
            raise InputError(
                next(iter(fields)), "can be changed only in a router with a ceiling", "Change least_quality"
            )
        if least_quality is not None and self._has_ceiling:
            raise InputError("least_quality", "can be changed only in a router without a ceiling", "Change per_request")
        models = self.models  # with them, limits that other processes have changed are read
        name = self.chooser.rule.budget_set.budgets[0].name
        new = {name: fields} if fields else {}
        (ceiling,) = self.chooser.rule.with_limits(new, None, least_quality).budget_set.budgets
        for model in models:
            self._require_room(model, "bank", self.largest[model], ceiling=ceiling)
        self.chooser.change(new, least_reward=least_quality, who=who, note=note)

    def record(self, *, since: float = 0.0, most: int = 1000) -> list[RecordEntry]:
        """Return what people have changed, the newest first; see `Chooser.record`."""
        return self.chooser.record(since=since, most=most)

    def close(self) -> None:
        """Close the database, if the router has one."""
        self.chooser.close()

    # --- reports ----------------------------------------------------------------------------------------------

    def last_position(self, partition: str) -> int:
        """Return the last position of a queue's partition that was applied; -1 before the first."""
        return self.chooser.last_position(partition)

    def report(self) -> RouterReport:
        """Return figures of requests with reward and cost settled here, and alerts about those of all processes."""
        rows = np.array(list(self._settled), dtype=np.float64).reshape(-1, 4)
        ceiling = self.chooser.rule.budget_set.budgets[0]
        per_request = ceiling.per_request if isinstance(ceiling, Ceiling) and self._has_ceiling else None
        actions = rows[:, 0].astype(np.int64)
        names = tuple(map(self._name, range(max(len(self.names), actions.max(initial=0) + 1))))
        alerts = self.health().alerts
        return RouterReport(names, actions, rows[:, 1], rows[:, 2], rows[:, 3], per_request, alerts)

    def health(self) -> RouterHealth:
        """Return figures of the requests of all processes: unspent money, shares of models, broken bounds."""
        chooser, prices, declared = self.chooser, self.prices, self._declared
        state, rule = chooser.state, chooser.rule
        requests, primal = state.round - 1, state.primal
        unspent = rule.budget_set.unspent(state.committed, requests, state.forfeited)
        shares = dict(zip(self.names, primal.recent.shares(rule.actions).tolist(), strict=False))
        since = dict(zip(self.names, (requests - primal.tried).tolist(), strict=False))
        ratios = dict(zip(self.names, primal.largest.tolist(), strict=False))
        return RouterHealth(
            requests,
            unspent if self._has_ceiling and requests else 0.0,
            {name: shares[name] for name in self.models},
            {name: max(since[name], 0.0) for name in self.models},
            {name: ratios[name] * prices[name] / declared[name] for name in self.models},
        )

    def metrics(self) -> Metrics:
        """Return the figures of the chooser, with shares of models, requests since the last one, and alerts.

        `alert` has the number of models for each kind of alert.
        """
        health = self.health()
        kinds = [alert.kind for alert in health.alerts]
        alerts = {kind: float(kinds.count(kind)) for kind in ("unspent", "untried", "bounds")}
        return self.chooser.metrics() | {"share": health.shares, "untried": health.untried, "alert": alerts}

    @property
    def _has_ceiling(self) -> bool:
        dual = self.chooser.rule.dual
        return not (isinstance(dual, PlannedPrice) and dual.least_reward is not None)

    def _action(self, name: str) -> int:
        """Return the index of a model in use."""
        if not isinstance(name, str) or name not in self.models:
            hint = did_you_mean(name, list(self.models))
            raise InputError("model", f"{name!r} is not in use{hint}", f"Choose from {list(self.models)}")
        return self.names.index(name)

    def _choice(self, route: Route | str) -> Choice:
        return route.choice if isinstance(route, Route) else self.chooser.find(route)

    def _name(self, action: int) -> str:
        """Return the name of a model, which only other processes may know; its index if it was stored without one."""
        if action < len(self.names):
            return self.names[action]
        stored = self.chooser.names
        return stored[action] if action < len(stored) else f"model {action}"

    def _require_room(
        self, name: str, argument: str, most: float, price: float | None = None, ceiling: Any = None
    ) -> None:
        """Raise an InputError if a cost is too large, or a bank too small for a model that is not the cheapest."""
        if not most <= LARGEST_STORED:
            raise InputError(argument, f"of {name!r} is {most:g}", "Give costs in a larger unit of money")
        if ceiling is None:
            ceiling = self.chooser.rule.budget_set.budgets[0]
        if not isinstance(ceiling, Ceiling) or ceiling.bank is None:
            return
        depth = ceiling.credit + ceiling.bank * ceiling.per_request
        if most > depth and (self.prices[name] if price is None else price) > min(self.prices.values()):
            what = f"of {name!r} is {most:g}, but the bank saves only {depth:g}, so it could never answer"
            raise InputError(argument, what, "Give a larger bank, or the largest cost that is possible")

    def _raise_bound(self, name: str) -> None:
        """Raise the bound of a model to the largest ratio of paid to expected costs that any process has seen."""
        ratio = float(self.chooser.state.primal.largest[self.names.index(name)])
        self.largest[name] = max(self.largest[name], ratio * self.prices[name])

    def _announced(
        self, costs: Mapping[str, float] | None, bounds: Mapping[str, float] | None
    ) -> tuple[list[float], list[float]]:
        """Return the expected and the largest cost of a request for each model."""
        if costs is None and bounds is None:
            return list(self.prices.values()), list(self.largest.values())
        given, limits = _require_numbers("costs", costs), _require_numbers("bounds", bounds)
        for name in (*given, *limits):
            self._action(name)
        expected, most = self.prices | given, self.largest | limits
        return list(expected.values()), [max(most[name], cost) for name, cost in expected.items()]


def _stored_unit(url: str | PathLike[str], name: str) -> float | None:
    """Return the unit of a stored router; None if there is none, or opening it will say what is wrong."""
    try:
        _, stored = read_definition(url, name)
        return float(stored["rule"]["budgets"][0]["largest"])
    except (DatabaseError, InputError, LookupError, TypeError, ValueError):
        return None


def _require_positive(argument: str, numbers: Mapping[str, float]) -> dict[str, float]:
    return _require_numbers(argument, numbers, validate.positive_scalar)


def _require_numbers(
    argument: str,
    numbers: Mapping[str, float] | None,
    check: Callable[[str, Any], float] = validate.non_negative_scalar,
) -> dict[str, float]:
    """Return numbers by the names of models, or raise an InputError."""
    if numbers is None:
        return {}
    if not isinstance(numbers, Mapping) or not all(is_storable(name) for name in numbers):
        what = f"is a {type(numbers).__name__}, not a mapping from names of models"
        raise InputError(argument, what, "Pass a mapping such as {'small': 1e-4, 'large': 1e-2}")
    return {name: check(f"{argument}[{name!r}]", number) for name, number in numbers.items()}


def _as_vector(prompt: ArrayLike) -> ArrayLike:
    return prompt


def _length(features: Callable[[Any], ArrayLike]) -> int:
    """Return the number of features of an encoder."""
    if not callable(features):
        raise InputError(
            "features", f"{features!r:.60} is not a function", "Give a function of a prompt, or the number of features"
        )
    known = getattr(features, "features", None)
    return int(known) if isinstance(known, int) else len(np.asarray(features("")))
