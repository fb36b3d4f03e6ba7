r"""Several budgets at once: dual mirror descent over m resources, plain or with a regulariser of their use.

A request offers actions with rewards f(a) and consumptions b(a) ∈ R^m. With prices μ,

    x̃_t = argmax_a f(a) − μ·b(a);     play it if it fits into the rest of every budget, else nothing;
    μ_{t+1} = [μ_t − η (a_t − b(x̃_t))]      (with x̃_t even if nothing was played; on μ ≥ 0 without a regulariser)

`a_t` is ρ, or with a concave regulariser R of the mean consumption, argmax_{0≤a≤ρ} R(a) + μ_t·a: the gradient of the
dual of max Σ f + T·R(Σ b/T). Budgets are scaled to ρ_j = 1. (Balseiro, Lu and Mirrokni 2020, 2021; derived again.)

**Theorem** (no regulariser, i.i.d., f ≤ f̄, b_j ≤ b̄ρ_j with b̄ ≥ 1, μ_1 = 0): T·opt − E reward ≤ f̄b̄ + f̄²/(2η) + ηTm
b̄²/2; the default η = f̄/(b̄√(mT)) gives f̄b̄(1 + √(mT)). The proof is in
docs/proofs/pacing.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.decisions.budgets import Ledger
from longterm.decisions.prices import project_corner
from longterm.errors import InputError


class SeveralState(NamedTuple):
    """The round, the prices (m,) in units of the even rates, and the consumption of each budget."""

    round: int
    prices: FloatArray
    spent: Ledger


class OfferChoice(NamedTuple):
    """The decision on one request.

    Parameters
    ----------
    action : int or None
        The offer to take; None: nothing.
    used : array, shape (m,)
        The consumption of the action.
    wanted : array, shape (m,)
        The consumption of the best action, also if it did not fit. The prices move by it.
    """

    action: int | None
    used: FloatArray
    wanted: FloatArray


@dataclass(frozen=True, eq=False)
class SeveralBudgets:
    """A rule that accepts, rejects or chooses among offers under several budgets.

    Parameters
    ----------
    budgets : array, shape (m,)
        Totals; never exceeded.
    horizon : int
        T.
    largest_reward : float
        f̄.
    largest_use : array, shape (m,)
        The largest consumption of one action.
    step : float, optional
        η, by default the theorem's.
    regulariser : {"none", "even", "fair"}
        "even": R = −(weight/2) Σ_j (a_j − aim_j)², which keeps the use near `aim` (in units of ρ_j). "fair": R =
        weight · min_j a_j, which raises the least used budget.
    weight : float
        The weight of the regulariser, in reward per request.
    aim : float
        For "even": the share of each budget to be used.

    Examples
    --------
    >>> from longterm.pacing import SeveralBudgets
    >>> pacer = SeveralBudgets([2.0, 8.0], horizon=4, largest_reward=1.0, largest_use=[1.0, 4.0])
    >>> state = pacer.init()
    >>> choice = pacer.act(state, [0.9, 0.5], [[1.0, 4.0], [0.0, 2.0]])
    >>> choice.action, pacer.prices(pacer.settle(state, choice))
    (0, array([0.35355339, 0.08838835]))
    """

    budgets: FloatArray
    horizon: int
    largest_reward: float
    largest_use: FloatArray
    step: float | None = None
    regulariser: Literal["none", "even", "fair"] = "none"
    weight: float = 0.0
    aim: float = 1.0

    def __post_init__(self) -> None:
        budgets = validate.vector("budgets", self.budgets)
        use = validate.vector("largest_use", self.largest_use, len(budgets))
        if np.any(budgets <= 0) or np.any(use <= 0):
            raise InputError("budgets", "and largest_use must be above 0", "Leave out a budget of nothing")
        if self.regulariser not in ("none", "even", "fair"):
            raise InputError("regulariser", f"{self.regulariser!r} is not known", "Choose 'none', 'even' or 'fair'")
        if self.regulariser != "none":
            validate.positive_scalar("weight", self.weight)
        validate.count("horizon", self.horizon)
        validate.set_frozen(self, budgets=budgets, largest_use=use)
        validate.validate_fields(self, validate.positive_scalar, "largest_reward")
        if self.step is None:
            default = self.largest_reward / (self._reach * np.sqrt(len(budgets) * self.horizon))
            validate.set_frozen(self, step=float(default))
        validate.validate_fields(self, validate.positive_scalar, "step")

    @property
    def _reach(self) -> float:
        """b̄ ≥ 1, in units of the even rates."""
        return max(float((self.largest_use / self.budgets).max()) * self.horizon, 1.0)

    def init(self) -> SeveralState:
        """Return the state before the first request."""
        m = len(self.budgets)
        return SeveralState(1, np.zeros(m), Ledger.zeros((m,)))

    def prices(self, state: SeveralState) -> FloatArray:
        """Return μ in reward per unit of each budget."""
        return np.asarray(state.prices * self.horizon / self.budgets)

    def act(self, state: SeveralState, rewards: ArrayLike, uses: ArrayLike) -> OfferChoice:
        """Choose among offers with rewards (K,) and uses (K, m), or none of them."""
        f, b = validate.vector("rewards", rewards), validate.matrix("uses", uses)
        if b.shape != (len(f), len(self.budgets)) or np.any(b < 0):
            raise InputError(
                "uses", f"have shape {b.shape}, or are negative", "Give actions × budgets", round=state.round
            )
        payoff = f - b @ self.prices(state)
        best, nothing = int(payoff.argmax()), np.zeros(len(self.budgets))
        if payoff[best] <= 0:
            return OfferChoice(None, nothing, nothing)
        fits = np.all(b[best] <= state.spent.remaining(self.budgets))
        return OfferChoice(best, b[best], b[best]) if fits else OfferChoice(None, nothing, b[best])

    def settle(self, state: SeveralState, choice: OfferChoice) -> SeveralState:
        """Return the state after a decision."""
        assert self.step is not None
        excess = choice.wanted * (self.horizon / self.budgets) - self._target(state.prices)
        moved = state.prices + self.step * excess
        if self.regulariser == "none":
            moved = np.maximum(moved, 0.0)
        elif self.regulariser == "fair":  # prices below −weight in total cannot be optimal
            moved = np.where(moved < 0, -project_corner(-np.minimum(moved, 0.0), self.weight), moved)
        return SeveralState(state.round + 1, moved, state.spent.add(choice.used))

    def _target(self, prices: FloatArray) -> FloatArray:
        """Return argmax over 0 ≤ a ≤ 1 of R(a) + μ·a, in units of the even rates."""
        if self.regulariser == "even":
            return np.clip(self.aim + prices / self.weight, 0.0, 1.0)
        if self.regulariser == "fair":
            negative = np.minimum(prices, 0.0).sum()
            return np.where(prices >= 0, 1.0, 1.0 if self.weight + negative >= 0 else 0.0)
        return np.ones(len(prices))

    def bound(self) -> float:
        """Return the theorem's regret, which holds without a regulariser."""
        if self.regulariser != "none":
            raise InputError("regulariser", "has no bound", "Take regulariser='none'")
        assert self.step is not None
        f, reach, m, T = self.largest_reward, self._reach, len(self.budgets), self.horizon
        return float(f * reach + f**2 / (2 * self.step) + self.step * T * m * reach**2 / 2)
