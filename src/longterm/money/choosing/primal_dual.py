r"""The template: a primal learner, a dual learner, a radius, and whether to stop when the money is gone.

Round t, after the request is seen:

    λ_t from the dual;  p_t from the primal, for payoffs r(a) − ⟨λ_t, σĉ(a)⟩, over the affordable actions;  a_t ~ p_t;
    the primal learns its payoff *at λ_t*;  the dual gets σ(ĉ_t(a_t) − ρ).

`PrimalDual.bound` evaluates the theorem of docs/proofs/decisions.md, which has the proof (Castiglioni, Celli and Kroer
2022; Slivkins et al. 2024). With regrets E_P and E_D of the two, caps only, a free action and M = 1/ρ, the expected
reward is at least T·opt − (1/ρ + E_P + E_D) for i.i.d. requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm._base.exact_sum import ExactSum
from longterm._base.messages import shown
from longterm.errors import InputError, NonFiniteError
from longterm.money.budgets import LARGEST_STORED, Budget, BudgetSet, Ceiling, positive_scalar_in_range
from longterm.money.choosing.duals import Dual, Setting, Situation
from longterm.money.choosing.primals import ActionOutcomes, ChoiceRequest, OpenChoice, Primal

LIMITS = ("limit", "per_request", "credit", "bank")
"""The arguments of budgets and ceilings that may change while a rule is used."""


class RuleState(NamedTuple):
    """The state of a rule."""

    round: int
    """t, the next request, from 1."""
    primal: Any
    dual: Any
    committed: ExactSum
    """Money spent, and held back for open requests."""
    spent: ExactSum
    """The cost of settled requests, in the units of the budgets."""
    total: FloatArray
    """The same without the corrections to a lower cost. It never falls."""
    forfeited: FloatArray
    """Money that the limits of ceilings leave out, shape (m,): savings given up, the past of a changed ceiling."""


class DecisionBound(NamedTuple):
    """The theorem in numbers.

    Parameters
    ----------
    regret : float
        The largest shortfall of the expected reward from `share` times the benchmark.
    violation : float
        The largest expected excess over the limit of a budget, in units of the rules; 0 if caps are kept always.
    share : float
        1 for i.i.d. requests; ρ for any sequence.
    """

    regret: float
    violation: float
    share: float


@dataclass(frozen=True)
class PrimalDual:
    """Choose actions under budgets: a primal learns how good they are, a dual sets the price of money.

    Parameters
    ----------
    primal : Primal
        Learns which actions are worth their price.
    dual : Dual
        Learns the prices.
    budgets : Budget, Ceiling or sequence of them
        Caps and floors on Σ c.
    horizon : int, optional
        T, the number of requests expected. Prices and plans are made for it; more may come. It may be left out if all
        budgets are ceilings.
    stop : bool
        Keep the caps by construction. An action is allowed only if the money spent, plus the largest cost of the open
        requests and of this one, is within every cap. A request for which nothing is affordable is refused. With
        False, the budgets hold on average only.
    replan : bool
        Use ρ_t = money left / requests left instead of ρ. It uses all the money and has no theorem.
    radius : float, optional
        M, the largest price, in reward per unit of the rules. By default 1/ρ with `stop`, else 2/`slater`.
    slater : float, optional
        s: some mixture of actions keeps every budget with s to spare per request, in units of the rules. By default
        ρ, which a free action gives caps.
    unit : sequence of float, optional
        One unit of the rules in the money of each budget. By default all budgets are equally tight. A rule whose limits
        are changed keeps its units, in which prices and beliefs are stored.

    Examples
    --------
    >>> from longterm.money.budgets import Budget
    >>> from longterm.money.choosing.duals import HedgeDual
    >>> from longterm.money.choosing.exponential_weights import EXP3IX
    >>> from longterm.money.choosing.primal_dual import PrimalDual
    >>> rule = PrimalDual(EXP3IX(3), HedgeDual(), Budget(500.0, largest=1.0), horizon=1000)
    >>> round(rule.bound().regret)
    384
    """

    primal: Primal[Any]
    dual: Dual
    budgets: Budget | Ceiling | Sequence[Budget | Ceiling]
    horizon: int | None = None
    stop: bool = True
    replan: bool = False
    radius: float | None = None
    slater: float | None = None
    unit: Sequence[float] | None = None

    def __post_init__(self) -> None:
        found = BudgetSet.of(self.budgets, self.horizon, self.unit)
        validate.set_frozen(self, budgets=found.budgets, unit=found.given_unit)
        if self.budget_set.rate > 1:
            raise InputError(
                "budgets",
                f"no sequence of {self.horizon} requests can reach the limit of any of them",
                "Leave out a budget that cannot bind, or check its limit and largest cost",
            )
        validate.validate_fields(self, positive_scalar_in_range, "radius", "slater", optional=True)
        if np.any(self.budget_set.sign < 0) and not self.stop and self.slater is None and self.radius is None:
            raise InputError(
                "slater",
                "is missing, and floors need it",
                "Give the margin per request by which all floors can be met at once",
            )
        _ = self._fitted_primal, self._fitted_dual  # they raise if they do not suit the budgets

    @cached_property
    def _fitted_primal(self) -> Primal[Any]:
        """The primal with its step size set for these budgets."""
        return self.primal.fitted(self.setting)

    @cached_property
    def _fitted_dual(self) -> Dual:
        return self.dual.fitted(self.setting)

    @cached_property
    def budget_set(self) -> BudgetSet:
        """The budgets and their units."""
        return BudgetSet.of(self.budgets, self.horizon, self.unit)

    @cached_property
    def setting(self) -> Setting:
        """The constants that primal and dual use."""
        budgets = self.budget_set
        has_floors = bool(np.any(budgets.sign < 0))
        default = (1 if self.stop and not has_floors else 2) / self._margin
        radius = default if self.radius is None else self.radius
        low, high = (-radius if np.any(budgets.is_cap) else 0.0), (1 + radius if has_floors else 1.0)
        return Setting(budgets.unit, budgets.horizon, radius, budgets.rate, low, high - low)

    @cached_property
    def _even_target(self) -> FloatArray:
        return self.budget_set.rates

    @cached_property
    def _all_actions(self) -> NDArray[np.bool_]:
        return np.ones(self.actions, dtype=np.bool_)

    @property
    def _margin(self) -> float:
        """The Slater margin s."""
        return self.budget_set.rate if self.slater is None else self.slater

    @property
    def actions(self) -> int:
        """K, the number of actions."""
        return self.primal.actions

    def init(self) -> RuleState:
        """Return the state before the first request."""
        empty = ExactSum.zeros((self.setting.resources,))
        primal, dual = self._fitted_primal.init(self.setting), self._fitted_dual.init(self.setting)
        return RuleState(1, primal, dual, empty, empty, empty.total, empty.total)

    def require_sound(self, state: RuleState) -> None:
        """Raise a ValueError unless a state from a file can be used."""
        self._fitted_primal.require_sound(state.primal)
        self._fitted_dual.require_sound(state.dual)
        prices = self._fitted_dual.prices(state.dual, self.setting)
        if not (prices.min() >= 0 and prices.max() <= self.setting.radius * (1 + 1e-9)):
            raise ValueError("a price is below 0 or above the largest price")
        for amounts in (state.spent.value, state.total):
            if not (amounts.min() >= 0 and amounts.max() <= LARGEST_STORED):
                raise ValueError("the money spent is out of range")
        if not np.abs(state.forfeited).max() < LARGEST_STORED:
            raise ValueError("the money given up is out of range")

    def prices(self, state: RuleState) -> FloatArray:
        """Return λ in reward per unit of each budget's own money, shape (m,)."""
        return self._fitted_dual.prices(state.dual, self.setting) / self.setting.unit

    # --- the rounds -------------------------------------------------------------------------------------------

    def act(
        self,
        state: RuleState,
        context: FloatArray,
        costs: FloatArray | None,
        bounds: FloatArray | None,
        rng: np.random.Generator,
        *,
        allowed: NDArray[np.bool_] | None = None,
        in_use: NDArray[np.bool_] | None = None,
    ) -> tuple[RuleState, OpenChoice]:
        """Draw an action for a request. `costs` and `bounds` have shape (K, m), in the units of the budgets.

        `allowed` is a mask (K,) of the actions that suit the request, `in_use` of those that have not been removed.
        """
        budgets, setting, t = self.budget_set, self.setting, state.round
        counted, most, base = self._counted_request(costs, bounds, t)
        forfeited = budgets.forfeited(state.forfeited, state.spent, t)
        limit = budgets.limit(t) - forfeited if budgets.has_ceiling else budgets.limit(t)
        in_use = self._all_actions if in_use is None else in_use
        suitable = in_use if allowed is None else in_use & allowed
        playable = suitable
        if self.stop:
            playable = suitable & budgets.affordable(state.committed, most, limit)
            if budgets.always_answers and True not in playable.tolist() and suitable.any():
                expected = (most if counted is None else counted) / setting.unit
                playable = np.arange(self.actions) == np.where(suitable, expected.max(axis=1), np.inf).argmin()
        scaled = None if counted is None else budgets.sign * counted / setting.unit
        dual, target = state.dual, self._target(state, limit)
        if self._fitted_dual.plans_in(t):
            request = ChoiceRequest(t, context, scaled, self._fitted_dual.prices(dual, setting), playable)
            recent, left = partial(self._fitted_primal.predict_recent, state.primal, request), self._left(state, limit)
            situation = Situation(t, most / setting.unit, left, target, in_use, budgets.has_ceiling, recent)
            dual = self._fitted_dual.plan(dual, situation, setting)
        prices = self._fitted_dual.prices(dual, setting)
        if True not in playable.tolist():
            none, nothing = np.zeros(self.actions), np.zeros(setting.resources)
            refused = OpenChoice(t, context, prices, playable, -1, none, target, counted, nothing, base)
            gradient = budgets.sign * (0.0 - target)
            dual = self._fitted_dual.update(dual, gradient, setting)
            return state._replace(round=t + 1, dual=dual, forfeited=forfeited), refused
        # Only primals whose exploration is free at a price of 0 read it.
        unspent = 0.0 if prices.any() else budgets.unspent(state.committed, t, forfeited)
        chances = self._chances(state, ChoiceRequest(t, context, scaled, prices, playable, unspent), rng)
        action = _draw(chances.tolist(), rng.random())
        bound = most[action] if budgets.has_caps_only else np.where(budgets.is_cap, most[action], 0.0)
        opened = OpenChoice(t, context, prices, playable, action, chances, target, counted, bound, base)
        committed = state.committed.add(bound)
        return RuleState(t + 1, state.primal, dual, committed, state.spent, state.total, forfeited), opened

    def _counted_request(
        self, costs: FloatArray | None, bounds: FloatArray | None, round: int
    ) -> tuple[FloatArray | None, FloatArray, FloatArray]:
        """Return announced costs and largest costs as the budgets count, (K, m), and the cost they count from, (m,)."""
        budgets, m = self.budget_set, self.setting.resources
        base = np.zeros(m)
        if budgets.counts_above:
            if costs is None:
                raise InputError(
                    "costs",
                    "are missing, but a budget counts only what exceeds the cheapest action",
                    "Pass costs= with the cost of each action",
                    round=round,
                )
            # The cap is on the money above the cheapest *possible* answer, so bounds count from there too.
            base = np.where(budgets.above_cheapest, costs.min(axis=0), 0.0)
            costs = costs - base
            bounds = None if bounds is None else np.where(costs > 0, bounds - base, costs)
        return costs, self.largest_costs(costs, bounds), base

    def largest_costs(self, costs: FloatArray | None, bounds: FloatArray | None) -> FloatArray:
        """Return the bounds (K, m) of a request: those given, else the announced costs, else those of the budgets."""
        if bounds is not None:
            return bounds
        return np.tile(self.budget_set.largest, (self.actions, 1)) if costs is None else costs

    def _left(self, state: RuleState, limit: FloatArray) -> FloatArray:
        """Return the money left in units of the rules, shape (m,)."""
        # Money held back counts for caps only: an open request promises nothing to a floor.
        used = state.committed.value
        if not self.budget_set.has_caps_only:
            used = np.where(self.budget_set.is_cap, used, state.spent.value)
        return np.asarray((limit - used) / self.setting.unit)

    def _target(self, state: RuleState, limit: FloatArray) -> FloatArray:
        """Return ρ_t, the planned cost of this request, in units of the rules, shape (m,)."""
        if not self.replan or self.horizon is None:
            return self._even_target
        return np.asarray(np.maximum(self._left(state, limit), 0.0) / max(self.horizon - state.round + 1, 1))

    def _chances(self, state: RuleState, request: ChoiceRequest, rng: np.random.Generator) -> FloatArray:
        """Return the primal's probabilities, 0 for every action that is not allowed."""
        chances = np.where(request.allowed, self._fitted_primal.weigh(state.primal, request, rng), 0.0)
        numbers = chances.tolist()
        if not (0 < sum(numbers) < np.inf and min(numbers) >= 0):
            raise NonFiniteError(
                "probabilities",
                f"of {type(self.primal).__name__} are {chances.tolist()}",
                "Scale the context to moderate numbers. The state is unchanged",
                round=request.round,
            )
        return chances

    def counted(self, opened: OpenChoice, costs: FloatArray) -> FloatArray:
        """Return costs (K, m) as the budgets count: above the announced cost of the cheapest action, where they do.

        The cheapest action itself counts 0 even if it costs more. It is played where nothing else is affordable, so no
        cap could be kept otherwise.
        """
        above = np.maximum(costs - opened.base, 0.0)
        if opened.counted is None:
            return above
        return np.where(self.budget_set.above_cheapest & (opened.counted == 0), 0.0, above)

    def counted_paid(self, opened: OpenChoice, paid: FloatArray) -> FloatArray:
        """Return the cost (m,) of the action as the budgets count."""
        if not self.budget_set.counts_above:
            return paid
        return np.asarray(self.counted(opened, np.broadcast_to(paid, (self.actions, len(paid))))[opened.action])

    def charge(self, state: RuleState, opened: OpenChoice, paid: FloatArray) -> RuleState:
        """Return the state after the cost (m,) of the action, as the budgets count: ledgers and prices move."""
        budgets = self.budget_set
        gradient = budgets.sign * (paid / self.setting.unit - opened.target)
        capped = paid if budgets.has_caps_only else np.where(budgets.is_cap, paid, 0.0)
        return RuleState(
            state.round,
            state.primal,
            self._fitted_dual.update(state.dual, gradient, self.setting),
            state.committed.add(capped).add(-opened.bound),
            state.spent.add(paid),
            state.total + paid,
            state.forfeited,
        )

    def correct(self, state: RuleState, before: FloatArray, after: FloatArray) -> RuleState:
        """Return the state after the cost (m,) of a closed choice has changed. Prices and beliefs stay."""
        is_cap = self.budget_set.is_cap
        return state._replace(
            committed=state.committed.replaced(np.where(is_cap, before, 0.0), np.where(is_cap, after, 0.0)),
            spent=state.spent.replaced(before, after),
            total=state.total + np.maximum(after - before, 0.0),
        )

    def learn(self, state: RuleState, opened: OpenChoice, outcomes: ActionOutcomes) -> RuleState:
        """Return the state after outcomes with costs as the budgets count: the primal learns."""
        costs = self.budget_set.sign * outcomes.costs / self.setting.unit
        scaled = ActionOutcomes(outcomes.seen, outcomes.rewards, costs)
        return state._replace(primal=self._fitted_primal.learn(state.primal, opened, scaled, self.setting))

    def reward(self, state: RuleState, reward: float) -> RuleState:
        """Return the state after the reward of an action: a dual with a target for rewards moves."""
        dual = self._fitted_dual.reward(state.dual, reward)
        return state if dual is state.dual else state._replace(dual=dual)

    def with_actions(self, actions: int) -> PrimalDual:
        """Return the same rule for another number of actions."""
        primal: Any = self.primal
        if actions == self.actions:
            return self
        changes = {"actions": actions} | ({"prior": None} if hasattr(primal, "prior") else {})
        return replace(self, primal=replace(primal, **changes))

    @property
    def limits(self) -> dict[str, Any]:
        """The limits that may change while the rule is used. Those of a budget begin with its name."""
        least_reward = getattr(self.dual, "least_reward", None)
        if least_reward is not None:  # the ceiling is out of reach
            return {"least_reward": least_reward}
        found = {
            f"{b.name}.{name}": getattr(b, name) for b in self.budget_set.budgets for name in LIMITS if hasattr(b, name)
        }
        return found if self.horizon is None else found | {"horizon": self.horizon}

    def with_limits(
        self, budgets: Mapping[str, Mapping[str, Any]], horizon: int | None = None, least_reward: float | None = None
    ) -> PrimalDual:
        """Return the rule with other limits, in the same units. `budgets` has new fields of budgets by name."""
        known: Any = self.budgets
        names = [budget.name for budget in known]
        if not isinstance(budgets, Mapping) or not all(isinstance(fields, Mapping) for fields in budgets.values()):
            what, remedy = f"{shown(budgets)} is not a mapping", "Give new numbers by name, by the name of a budget"
            raise InputError("budgets", what, remedy)
        for name, fields in budgets.items():
            if names.count(name) != 1:
                raise InputError("budgets", f"{name!r} is not the name of one budget", f"The names are {names}")
            choices = [field for field in LIMITS if hasattr(known[names.index(name)], field)]
            for field in fields:
                if field not in choices:
                    raise InputError(field, f"of the budget {name!r} cannot be changed", f"Choose from {choices}")
        dual: Any = self.dual
        if least_reward is not None:
            if getattr(dual, "least_reward", None) is None:
                raise InputError("least_reward", "is not used by this rule", "Change the limit of a budget")
            dual = replace(dual, least_reward=least_reward)
        changed = [replace(budget, **budgets.get(budget.name, {})) for budget in known]
        if horizon is not None and self.horizon is None:
            raise InputError("horizon", "is not used by this rule", "Change the limits of its ceilings")
        unit = self.unit if len(known) == 1 else self.budget_set.unit.tolist()
        horizon = self.horizon if horizon is None else horizon
        return replace(self, dual=dual, budgets=changed, horizon=horizon, unit=unit)

    def adapted(self, state: RuleState, before: PrimalDual) -> RuleState:
        """Return the state of a rule that had other limits until now. What was spent counts, and prices stay."""
        shift = self.budget_set.withheld(before.budget_set, state.round - 1)
        dual = self._fitted_dual.clipped(state.dual, self.setting)
        return state._replace(dual=dual, forfeited=state.forfeited + shift)

    def extended(self, state: RuleState) -> RuleState:
        """Return the state with one more action."""
        return state._replace(primal=self._fitted_primal.extended(state.primal))

    @property
    def is_extendable(self) -> bool:
        """True if actions can be added at run time."""
        return type(self.primal).extended is not Primal.extended

    # --- guarantees -------------------------------------------------------------------------------------------

    def bound(
        self, sequence: Literal["iid", "any"] = "iid", *, known_costs: bool = True, total_delay: float = 0.0
    ) -> DecisionBound:
        """Evaluate the theorem for rewards in [0, 1].

        Parameters
        ----------
        sequence : {"iid", "any"}
            Independent and identically distributed requests, or any sequence fixed in advance (caps with a free
            action only).
        known_costs : bool
            True if costs are announced with the request.
        total_delay : float
            Σ τ_t, the total number of rounds by which costs were late.
        """
        if self.budget_set.has_ceiling:
            raise InputError(
                "budgets", "contain a Ceiling, for which no theorem on rewards is known", "Use a Budget with a horizon"
            )
        if self.replan:
            raise InputError("replan", "is True, for which no theorem is known", "Make the rule with replan=False")
        setting = self.setting
        regrets = self._fitted_primal.regret(setting, known_costs=known_costs) + self._fitted_dual.regret(
            setting, total_delay
        )
        rate, radius = setting.rate, setting.radius
        if self.stop and np.all(self.budget_set.is_cap):
            if radius < (1 - 1e-12) / rate:
                raise InputError(
                    "radius",
                    f"{radius:g} is smaller than 1/ρ = {1 / rate:g}, which the theorem needs",
                    "Leave radius= out to use the theorem's radius",
                )
            return DecisionBound(1 / rate * max(1.0, radius * rate) + regrets, 0.0, 1.0 if sequence == "iid" else rate)
        if sequence == "any":
            raise InputError(
                "sequence", "is 'any', for which the theorem needs stop=True and caps only", "Ask for sequence='iid'"
            )
        margin = radius - 1 / self._margin
        if margin <= 0:
            raise InputError(
                "radius",
                f"{radius:g} is not above 1/s = {1 / self._margin:g}, which the theorem needs",
                "Leave radius= out to use the theorem's radius",
            )
        if self.stop:
            raise InputError(
                "stop",
                "is True and there are floors. Refusing requests may break a floor, so no theorem covers this",
                "Make the rule with stop=False",
            )
        return DecisionBound(regrets, regrets / margin, 1.0)


def _draw(chances: list[float], uniform: float) -> int:
    """Return an index drawn with these probabilities, which need not sum to 1, from a uniform number in [0, 1)."""
    rest = uniform * sum(chances)
    for index, chance in enumerate(chances):
        if rest < chance:
            return index
        rest -= chance
    return int(np.argmax(chances))  # by rounding
