r"""Several budgets at once: dual mirror descent over m resources, plain or with a taste for how they are spent.

A request offers actions with rewards f(a) and consumptions b(a) ∈ R^m. With prices μ,

    x̃_t = argmax_a f(a) − μ·b(a);     play it if it fits into what is left of every budget, else nothing;
    μ_{t+1} = [μ_t − η (a_t − b(x̃_t))]      (with x̃_t even when nothing was played; on μ ≥ 0 where there is no taste)

`a_t` is ρ, or with a concave taste R for the mean consumption, argmax_{0≤a≤ρ} R(a) + μ_t·a: the gradient of the
dual of max Σ f + T·R(Σ b/T). Budgets are scaled to ρ_j = 1 inside. (Balseiro, Lu and Mirrokni 2020, 2021;
re-derived.)

**Theorem** (no taste, i.i.d., f ≤ f̄, b_j ≤ b̄ρ_j with b̄ ≥ 1, μ_1 = 0): T·opt − E reward ≤ f̄b̄ + f̄²/(2η) + ηTm
b̄²/2; the default η = f̄/(b̄√(mT)) gives f̄b̄(1 + √(mT)). *Proof.* Let τ be the last round in which everything
fits. Given the past E f(x̃_t) = D(μ_t) − μ_t·E(ρ − b), and D ≥ opt. The steps give Σ_{t≤τ} (μ_t − μ)·(ρ − b_t) ≤
‖μ‖²/(2η) + ηTmb̄²/2 for every μ ≥ 0. If τ < T some j has Σ_{t≤τ} b_j > T − b̄ (units of ρ_j): take μ = f̄e_j, then
Σ μ·(ρ − b) ≤ f̄(τ − T + b̄), and (T − τ)f̄ is what the rest could bring. Else μ = 0. ∎
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.errors import InputError


class SeveralState(NamedTuple):
    """Prices and what is left, shape (m,), in units of the even rate ρ_j."""

    round: int
    prices: FloatArray
    remaining: FloatArray


@dataclass(frozen=True, eq=False)
class SeveralBudgets:
    """Accept, reject or choose among offers under several budgets.

    Parameters
    ----------
    budgets : array, shape (m,)
        Totals; never exceeded.
    horizon : int
        T.
    largest_reward : float
        f̄.
    largest_use : array, shape (m,)
        What one action can use of each budget.
    step : float, optional
        η, by default the theorem's.
    taste : {"none", "even", "fair"}
        "even": R = −(weight/2) Σ_j (a_j − aim_j)², near `aim` (in units of ρ_j); "fair": R = weight · min_j a_j, so
        that no budget lags behind.
    weight : float
        Of the taste, in reward per request.
    aim : float
        For "even": the share of each budget to be near to.

    Examples
    --------
    >>> from longterm.pacing import SeveralBudgets
    >>> pacer = SeveralBudgets([2.0, 8.0], horizon=4, largest_reward=1.0, largest_use=[1.0, 4.0])
    >>> state = pacer.init()
    >>> action, state = pacer.act(state, [0.9, 0.5], [[1.0, 4.0], [0.0, 2.0]])
    >>> action, pacer.prices(state)
    (0, array([0.35355339, 0.08838835]))
    """

    budgets: FloatArray
    horizon: int
    largest_reward: float
    largest_use: FloatArray
    step: float | None = None
    taste: Literal["none", "even", "fair"] = "none"
    weight: float = 0.0
    aim: float = 1.0

    def __post_init__(self) -> None:
        budgets = validate.vector("budgets", self.budgets)
        use = validate.vector("largest_use", self.largest_use, len(budgets))
        if np.any(budgets <= 0) or np.any(use <= 0):
            raise InputError("budgets", "and largest_use must be above 0", "Leave out a budget of nothing")
        if self.taste not in ("none", "even", "fair"):
            raise InputError("taste", f"{self.taste!r} is not known", "Choose 'none', 'even' or 'fair'")
        if self.taste != "none":
            validate.positive_scalar("weight", self.weight)
        validate.count("horizon", self.horizon)
        validate.set_frozen(self, budgets=budgets, largest_use=use)
        validate.validate_fields(self, validate.positive_scalar, "largest_reward")
        if self.step is None:
            usual = self.largest_reward / (self._reach * np.sqrt(len(budgets) * self.horizon))
            validate.set_frozen(self, step=float(usual))
        validate.validate_fields(self, validate.positive_scalar, "step")

    @property
    def _reach(self) -> float:
        """b̄ ≥ 1, in units of the even rates."""
        return max(float((self.largest_use / self.budgets).max()) * self.horizon, 1.0)

    def init(self) -> SeveralState:
        """Before the first request."""
        return SeveralState(1, np.zeros(len(self.budgets)), np.full(len(self.budgets), float(self.horizon)))

    def prices(self, state: SeveralState) -> FloatArray:
        """μ in reward per unit of each budget."""
        return np.asarray(state.prices * self.horizon / self.budgets)

    def act(self, state: SeveralState, rewards: ArrayLike, uses: ArrayLike) -> tuple[int | None, SeveralState]:
        """Choose among offers, rewards (K,) and uses (K, m); None: nothing, which is always possible.

        Uses are known, so this settles too.
        """
        f = validate.vector("rewards", rewards)
        b = validate.matrix("uses", uses) * (self.horizon / self.budgets)
        if b.shape != (len(f), len(self.budgets)) or np.any(b < 0):
            raise InputError(
                "uses", f"have shape {b.shape}, or are negative", "Give actions × budgets", round=state.round
            )
        payoff = f - b @ state.prices
        wanted = int(payoff.argmax()) if payoff.max() > 0 else -1
        use = b[wanted] if wanted >= 0 else np.zeros(len(self.budgets))
        fits = wanted >= 0 and bool(np.all(use <= state.remaining))
        assert self.step is not None
        moved = state.prices - self.step * (self._aimed(state.prices) - use)
        if self.taste == "none":
            moved = np.maximum(moved, 0.0)
        elif self.taste == "fair":  # below −weight in all, the taste would be worth more than it is
            moved = _not_below(moved, -self.weight)
        remaining = state.remaining - use if fits else state.remaining
        return (wanted if fits else None), SeveralState(state.round + 1, moved, remaining)

    def _aimed(self, prices: FloatArray) -> FloatArray:
        """Argmax over 0 ≤ a ≤ 1 of R(a) + μ·a, in units of the even rates."""
        if self.taste == "even":
            return np.clip(self.aim + prices / self.weight, 0.0, 1.0)
        if self.taste == "fair":
            negative = np.minimum(prices, 0.0).sum()
            return np.where(prices >= 0, 1.0, 1.0 if self.weight + negative >= 0 else 0.0)
        return np.ones(len(prices))

    def bound(self) -> float:
        """The theorem's regret, without a taste."""
        if self.taste != "none":
            raise InputError("taste", "has no bound", "Take taste='none'")
        assert self.step is not None
        f, reach, m, T = self.largest_reward, self._reach, len(self.budgets), self.horizon
        return float(f * reach + f**2 / (2 * self.step) + self.step * T * m * reach**2 / 2)


def _not_below(prices: FloatArray, floor: float) -> FloatArray:
    """The nearest prices whose negative parts add up to no less than `floor`."""
    negative = -np.minimum(prices, 0.0)
    if negative.sum() <= -floor:
        return prices
    ordered = np.sort(negative)[::-1]
    excess = (np.cumsum(ordered) + floor) / np.arange(1, len(ordered) + 1)
    kept = np.maximum(negative - excess[np.flatnonzero(ordered > excess)[-1]], 0.0)
    return np.asarray(np.where(prices < 0, -kept, prices))
