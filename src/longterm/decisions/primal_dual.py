r"""The template: a primal learner, a dual learner, a radius, and whether to stop when the money is gone.

Round t, after the request is seen:

    λ_t from the dual;  p_t from the primal, for payoffs r(a) − ⟨λ_t, σĉ(a)⟩, over what is affordable;  a_t ~ p_t;
    the primal learns its payoff *at λ_t*;  the dual is told σ(ĉ_t(a_t) − ρ).

**Why** (Castiglioni, Celli and Kroer 2022; Slivkins et al. 2024; re-derived in docs/decisions.md). Let E_P and E_D
be the regrets of the two, valid after every round, rewards in [0, 1], caps only, some action free of cost and M =
1/ρ. Let τ be the last round in which everything is affordable. Then

    i.i.d. requests:       E reward ≥ T·opt − (1/ρ + E_P + E_D),          opt = the best mixture (or policy) that
    keeps the budget on average, any fixed sequence:    E reward ≥ ρ·(reward of any fixed mixture) − (1/ρ + E_P +
    E_D).

*Proof.* Primal: Σ_{t≤τ} r_t(a_t) ≥ Σ_{t≤τ} [r_t(ξ) − ⟨λ_t, ĉ_t(ξ) − ρ⟩] + Σ_{t≤τ} ⟨λ_t, ĉ_t(a_t) − ρ⟩ − E_P for
each ξ. Dual: the second sum is at least max_λ ⟨λ, Σ_{t≤τ} (ĉ_t − ρ)⟩ − E_D. If τ < T some budget has less than 1
left, so λ = e_i/ρ gives at least (ρT − 1 − ρτ)/ρ = T − τ − 1/ρ; if τ = T take λ = 0. i.i.d.: ξ = the optimal
mixture has E ĉ(ξ) ≤ ρ, and (r_t, c_t) is independent of λ_t and of {t ≤ τ}: the first sum is at least E[τ]·opt in
expectation, and opt ≤ 1 pays for T − τ. Any sequence: mix ξ with the free action, ρ and 1 − ρ: then ĉ ≤ ρ in every
round, the first sum is at least ρ Σ_{t≤τ} r_t(ξ), and T − τ ≥ ρ Σ_{t>τ} r_t(ξ). ∎ No concentration is needed for
expectations.

Without stopping, with floors, or without a free action: M = 2/s with s the Slater margin (`slater`), and by the
same lines, in expectation, reward ≥ T·opt − E and violation of each budget ≤ s·E in units of the rules, E = E_P +
E_D. (E V is bounded where E[max_i [Σ]₊] is; the dual's comparator is the vertex of the worst budget.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.decisions.duals import Books, Budget, Dual, Game, Ledger, affordable
from longterm.decisions.primals import Lesson, Primal, Request
from longterm.errors import InputError


class State(NamedTuple):
    """Everything the rule remembers."""

    round: int
    """t, the request about to come, from 1."""
    primal: Any
    dual: FloatArray
    committed: Ledger
    """Spent, and held back for what is open."""
    spent: Ledger
    """What settled requests cost, in the units of the budgets."""


class Open(NamedTuple):
    """A request that was answered and is not settled: what its outcome will need."""

    request: Request
    action: int
    """−1: refused."""
    probabilities: FloatArray
    target: FloatArray
    """ρ_t, in units of the rules."""
    costs: FloatArray | None
    """What was announced, counted as the budgets count, shape (K, m)."""
    bound: FloatArray
    """What is held back, shape (m,)."""
    base: FloatArray
    """What the cheapest action costs, where only what is above it counts; else 0. Shape (m,)."""


class Bound(NamedTuple):
    """A theorem in numbers.

    Parameters
    ----------
    regret : float
        How far the expected reward may be below the benchmark times `share`.
    violation : float
        How far the expected total may be beyond the limit of a budget, in units of the rules (0: never).
    share : float
        1 for i.i.d. requests; ρ for any sequence.
    """

    regret: float
    violation: float
    share: float


@dataclass(frozen=True)
class PrimalDual:
    """Choose actions under budgets, by a primal and a dual learner.

    Parameters
    ----------
    primal : Primal
        Learns which actions are worth their price.
    dual : Dual
        Learns the prices.
    budgets : Budget or sequence of Budget
        Caps and floors on Σ c.
    horizon : int
        T, how many requests are expected. Prices and plans are made for it; more may come.
    stop : bool
        Keep the caps by construction: an action is offered only if what is spent, plus the most that the open
        requests and this one can cost, is within every cap. Where nothing is affordable the request is refused.
        Without: averages only.
    replan : bool
        Take ρ_t = what is left / requests left, instead of ρ. Follows the money to the end; no theorem.
    radius : float, optional
        M, the largest price, in reward per unit of the rules. By default 1/ρ with `stop`, else 2/`slater`.
    slater : float, optional
        s: some mixture of actions keeps every budget with s to spare per request, in units of the rules. By default
        ρ, which a free action gives caps.

    Examples
    --------
    >>> from longterm.decisions import EXP3IX, Budget, HedgeDual, PrimalDual
    >>> rule = PrimalDual(EXP3IX(3), HedgeDual(), Budget(500.0, largest=1.0), horizon=1000)
    >>> round(rule.bound().regret)
    384
    """

    primal: Primal[Any]
    dual: Dual
    budgets: Budget | Sequence[Budget]
    horizon: int
    stop: bool = True
    replan: bool = False
    radius: float | None = None
    slater: float | None = None

    def __post_init__(self) -> None:
        validate.set_frozen(self, budgets=Books.of(self.budgets, self.horizon).budgets)
        if self.books.rate > 1:
            raise InputError(
                "budgets",
                f"no sequence of {self.horizon} requests can reach the limit of any of them",
                "Leave out a budget that cannot bind, or check its limit and largest cost",
            )
        validate.validate_fields(self, validate.positive_scalar, "radius", "slater", optional=True)
        if np.any(self.books.sign < 0) and not self.stop and self.slater is None and self.radius is None:
            raise InputError(
                "slater", "is not given, and there are floors", "Say by how much they can be met, per request"
            )
        validate.set_frozen(self, primal=self.primal.fitted(self.game), dual=self.dual.fitted(self.game))

    @cached_property
    def books(self) -> Books:
        """The budgets and their units."""
        return Books.of(self.budgets, self.horizon)

    @cached_property
    def game(self) -> Game:
        """What the slots know."""
        books = self.books
        floors = bool(np.any(books.sign < 0))
        usual = (1 if self.stop and not floors else 2) / self._margin
        radius = usual if self.radius is None else self.radius
        low, high = (-radius if np.any(books.sign > 0) else 0.0), (1 + radius if floors else 1.0)
        return Game(books.unit, books.horizon, radius, books.rate, low, high - low)

    @property
    def _margin(self) -> float:
        """s, the Slater margin: a free action gives caps ρ."""
        return self.books.rate if self.slater is None else self.slater

    @property
    def actions(self) -> int:
        """K, the number of actions."""
        return self.primal.actions

    def init(self) -> State:
        """The state before the first request."""
        m = self.game.resources
        return State(1, self.primal.init(self.game), self.dual.init(self.game), Ledger.empty(m), Ledger.empty(m))

    def require_sound(self, state: State) -> None:
        """ValueError unless a state can be played on; for what a file says."""
        self.primal.require_sound(state.primal)
        prices = self.dual.prices(state.dual, self.game)
        if not (prices.min() >= 0 and prices.max() <= self.game.radius * (1 + 1e-9)):
            raise ValueError("a price is below 0 or above its largest")
        if not max(np.abs(state.committed.value).max(), np.abs(state.spent.value).max()) < 1e100:
            raise ValueError("more was spent than there is")

    def prices(self, state: State) -> FloatArray:
        """λ in reward per unit of each budget's own money, shape (m,)."""
        return self.dual.prices(state.dual, self.game) / self.game.unit

    # --- the rounds -------------------------------------------------------------------------------------------

    def act(
        self,
        state: State,
        context: FloatArray,
        costs: FloatArray | None,
        bounds: FloatArray | None,
        rng: np.random.Generator,
        drawn: tuple[int, FloatArray] | None = None,
    ) -> tuple[State, Open]:
        """Draw an action for a request. `costs` and `bounds` have shape (K, m), in the units of the budgets.

        `drawn` is for replays: the action and probabilities that a journal recorded. The generator moves all the same.
        """
        books, game, t = self.books, self.game, state.round
        base = np.zeros(game.resources)
        if books.above_cheapest.any():
            if costs is None:
                raise InputError(
                    "costs", "are not announced, and a budget counts above the cheapest", "Give costs=", round=t
                )
            # The promise is about what is spent above the cheapest *possible* answer, so bounds count from there too.
            base = np.where(books.above_cheapest, costs.min(axis=0), 0.0)
            costs = costs - base
            bounds = None if bounds is None else np.where(costs > 0, bounds - base, costs)
        most = costs if bounds is None else bounds
        if most is None:
            most = np.broadcast_to(books.largest, (self.actions, game.resources))
        committed = state.committed.value
        allowed = affordable(books, state.committed, most) if self.stop else np.ones(self.actions, dtype=np.bool_)
        settled = np.where(books.sign > 0, committed, state.spent.value)  # open requests promise a floor nothing
        left = np.maximum(books.limit - settled, 0.0) / game.unit
        target = left / max(self.horizon - t + 1, 1) if self.replan else np.full(game.resources, game.rate)
        prices = self.dual.prices(state.dual, game)
        signed = None if costs is None else books.sign * costs / game.unit
        request = Request(t, context, signed, prices, allowed)
        if not allowed.any():
            nothing = np.zeros(game.resources)
            opened = Open(request, -1, np.zeros(self.actions), target, costs, nothing, base)
            state = state._replace(dual=self.dual.update(state.dual, books.sign * (0.0 - target), game))
            return state._replace(round=t + 1), opened
        chances = self.primal.weigh(state.primal, request, rng)
        draw = rng.random() * chances.sum()
        action = min(int(np.searchsorted(np.cumsum(chances), draw, side="right")), int(np.flatnonzero(chances)[-1]))
        if drawn is not None:
            action, chances = drawn
        bound = np.where(books.sign > 0, most[action], 0.0)
        opened = Open(request, action, chances, target, costs, bound, base)
        return state._replace(round=t + 1, committed=state.committed.add(bound)), opened

    def charge(self, state: State, opened: Open, cost: FloatArray) -> State:
        """The cost (m,) of the action played is known, as the budgets count: the ledger and the prices move."""
        books = self.books
        committed = state.committed.add(np.where(books.sign > 0, cost, 0.0)).add(-opened.bound)
        gradient = books.sign * (cost / self.game.unit - opened.target)
        return state._replace(
            committed=committed,
            spent=state.spent.add(cost),
            dual=self.dual.update(state.dual, gradient, self.game),
        )

    def learn(self, state: State, opened: Open, seen: Any, rewards: FloatArray, costs: FloatArray) -> State:
        """The outcomes of the seen actions are known, (K,) and (K, m): the primal learns."""
        signed = self.books.sign * costs / self.game.unit
        lesson = Lesson(opened.action, float(opened.probabilities[opened.action]), seen, rewards, signed)
        return state._replace(primal=self.primal.learn(state.primal, opened.request, lesson, self.game))

    # --- what is promised -------------------------------------------------------------------------------------

    def bound(
        self, sequence: Literal["iid", "any"] = "iid", *, known_costs: bool = True, total_delay: float = 0.0
    ) -> Bound:
        """The theorem of this module, in numbers, for rewards in [0, 1].

        Parameters
        ----------
        sequence : {"iid", "any"}
            Independent and identically distributed requests, or any sequence fixed in advance (caps with a free
            action only).
        known_costs : bool
            Whether costs are announced with the request.
        total_delay : float
            Σ τ_t, how many rounds late costs were in all.
        """
        if self.replan:
            raise InputError("replan", "has no theorem", "Make the rule with replan=False to have one")
        regrets = self.primal.regret(self.game, known_costs=known_costs) + self.dual.regret(self.game, total_delay)
        rate, radius, caps = self.game.rate, self.game.radius, bool(np.all(self.books.sign > 0))
        if self.stop and caps:
            if radius < (1 - 1e-12) / rate:
                raise InputError("radius", f"{radius:g} is below 1/ρ = {1 / rate:g}", "Leave it out")
            return Bound(1 / rate * max(1.0, radius * rate) + regrets, 0.0, 1.0 if sequence == "iid" else rate)
        if sequence == "any":
            raise InputError("sequence", "'any' has a theorem only with stop=True and caps", "Ask for 'iid'")
        margin = radius - 1 / self._margin
        if margin <= 0:
            raise InputError("radius", f"{radius:g} is not above 1/s = {1 / self._margin:g}", "Leave it out")
        if self.stop:
            raise InputError(
                "stop", "with floors there is no theorem: refusing may break them", "Make the rule with stop=False"
            )
        return Bound(regrets, regrets / margin, 1.0)
