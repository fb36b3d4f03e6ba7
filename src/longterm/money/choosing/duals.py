"""Dual learners: the price λ of each budget, moved by the spending beyond the plan.

Every dual keeps 0 ≤ λ and ‖λ‖₁ ≤ M. Its gradient is g_t = σ(ĉ_t − ρ_t), at most 1 in absolute value. Its regret is
max_λ Σ ⟨λ − λ_t, g_t⟩ over {λ ≥ 0, ‖λ‖₁ ≤ M}. `regret` bounds it after every round up to T. The steps themselves are
in `longterm.money.prices`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.money.budgets import positive_scalar_in_range
from longterm.money.prices import entropic_step, hedge_prices, project_corner, scale_to_radius


class Setting(NamedTuple):
    """The constants of a problem that primal and dual learners need."""

    unit: FloatArray
    """One unit of the rules in the units of each budget, shape (m,)."""
    horizon: int | None
    """T, the number of requests expected; None if it is open."""
    radius: float
    """M, the largest price."""
    rate: float
    """ρ, the average cost that a request may have."""
    lowest_payoff: float
    """The smallest possible payoff r − ⟨λ, σĉ⟩."""
    payoff_range: float
    """The largest payoff less the smallest."""

    @property
    def resources(self) -> int:
        """m, the number of budgets."""
        return len(self.unit)

    @property
    def rounds(self) -> int:
        """T, or an InputError if it is open."""
        if self.horizon is None:
            raise InputError(
                "horizon",
                "is missing, but the step size and the bound depend on it",
                "Give horizon=, or give the step size",
            )
        return self.horizon


class TunedStep(ABC):
    """A learner with a step size that is set for the problem unless it is given."""

    step: float | None

    def __post_init__(self) -> None:
        validate.validate_fields(self, positive_scalar_in_range, "step", optional=True)

    @abstractmethod
    def default_step(self, setting: Setting) -> float:
        """Return the step size that minimises the bound."""

    def step_in(self, setting: Setting) -> float:
        """Return the given step size, or the default."""
        return self.default_step(setting) if self.step is None else self.step

    def fitted(self, setting: Setting) -> Self:
        """Return the same learner with its step size set for this problem."""
        given: Any = self
        return self if self.step is not None else replace(given, step=self.default_step(setting))


class Situation(NamedTuple):
    """The information that a dual may plan with, in units of the rules."""

    round: int
    bounds: FloatArray
    """The largest costs, shape (K, m)."""
    left: FloatArray
    """The money left now, shape (m,)."""
    target: FloatArray
    """The planned cost of this request, shape (m,)."""
    in_use: NDArray[np.bool_]
    """The actions that have not been removed, shape (K,)."""
    is_ceiling: bool
    """True if the budget is open-ended."""
    recent: Callable[[], Any]
    """Returns a `Prediction` for recent requests, with the present one last."""


class Dual(ABC):
    """A learner of prices: pure functions on an array of m numbers."""

    @abstractmethod
    def fitted(self, setting: Setting) -> Self:
        """Return the same dual with its step size set for this problem."""

    def init(self, setting: Setting) -> FloatArray:
        """Return the state before the first request."""
        return np.zeros(setting.resources)

    def prices(self, state: FloatArray, setting: Setting) -> FloatArray:
        """Return λ, shape (m,), in reward per unit of the rules."""
        return state

    def clipped(self, state: Any, setting: Setting) -> Any:
        """Return a state whose prices are at most the largest price, which a change of limits may have lowered."""
        return scale_to_radius(state, setting.radius) if float(state.sum()) > 0 else state

    def plans_in(self, round: int) -> bool:
        """Return True if the dual plans before it prices this request."""
        return False

    def plan(self, state: Any, situation: Situation, setting: Setting) -> Any:
        """Return the state after planning."""
        return state

    def reward(self, state: Any, reward: float) -> Any:
        """Return the state after the reward of an action; for duals with a target for rewards."""
        return state

    def require_sound(self, state: Any) -> None:
        """Raise a ValueError unless a state from a file can be used."""
        return

    @abstractmethod
    def update(self, state: FloatArray, gradient: FloatArray, setting: Setting) -> FloatArray:
        """Return the state after g_t = σ(ĉ_t − ρ_t)."""

    @abstractmethod
    def regret(self, setting: Setting, total_delay: float = 0.0) -> float:
        """Return a bound on the regret after any number of rounds up to T.

        `total_delay` is Σ τ_t, where the gradient of round t came τ_t rounds late.
        """


@dataclass(frozen=True)
class HedgeDual(TunedStep, Dual):
    r"""Raise the price of a budget by factors, with a bound on the regret.

    This is entropic mirror descent over M·Δ_{m+1}. The last coordinate is slack, so all prices may be near 0.

    .. math:: λ_i = M \frac{e^{s_i}}{1 + \sum_j e^{s_j}}, \qquad s_i = ε \sum_t g_{t,i}

    Regret ≤ M (ln(m+1)/ε + ε w² T/8) by Hoeffding's lemma, with w the width of (g, 0): 1 for caps or floors alone, 2
    for both. The default ε = √(8 ln(m+1)/T)/w gives M w √(T ln(m+1)/2). Late gradients add 2 ε w² M Σ τ_t.

    Parameters
    ----------
    step : float, optional
        ε.
    """

    step: float | None = None

    def default_step(self, setting: Setting) -> float:
        return float(np.sqrt(8 * np.log(setting.resources + 1) / setting.rounds) / _gradient_width(setting))

    def prices(self, state: FloatArray, setting: Setting) -> FloatArray:
        return hedge_prices(self.step_in(setting) * state, setting.radius)

    def clipped(self, state: Any, setting: Setting) -> Any:
        return state  # sums of gradients, not prices

    def update(self, state: FloatArray, gradient: FloatArray, setting: Setting) -> FloatArray:
        return state + gradient

    def regret(self, setting: Setting, total_delay: float = 0.0) -> float:
        step, width = self.step_in(setting), _gradient_width(setting)
        steps = step * width**2 * (setting.rounds / 8 + 2 * total_delay)
        return float(setting.radius * (np.log(setting.resources + 1) / step + steps))


@dataclass(frozen=True)
class EuclideanDual(TunedStep, Dual):
    r"""Raise the price of a budget in equal steps, with a bound on the regret.

    These are projected gradient steps on {λ ≥ 0, ‖λ‖₁ ≤ M}, from λ = 0.

    .. math:: λ_{t+1} = Π(λ_t + γ g_t)

    Regret ≤ M²/(2γ) + γ m T/2, because ‖g‖² ≤ m. The default γ = M/√(mT) gives M√(mT). Late gradients add
    2 γ m Σ τ_t.

    Parameters
    ----------
    step : float, optional
        γ.
    """

    step: float | None = None

    def default_step(self, setting: Setting) -> float:
        return float(setting.radius / np.sqrt(setting.resources * setting.rounds))

    def update(self, state: FloatArray, gradient: FloatArray, setting: Setting) -> FloatArray:
        return project_corner(state + self.step_in(setting) * gradient, setting.radius)

    def regret(self, setting: Setting, total_delay: float = 0.0) -> float:
        step = self.step_in(setting)
        steps = step * setting.resources * (setting.rounds / 2 + 2 * total_delay)
        return setting.radius**2 / (2 * step) + steps


@dataclass(frozen=True)
class EntropicDual(TunedStep, Dual):
    r"""Raise the price of a budget by factors from a first price: the usual choice for a router or a bidder.

    .. math:: λ_{t+1,i} = \min(1, M/\|u\|_1)\, u_i, \qquad u_i = λ_{t,i} e^{ε g_{t,i}/ρ}

    It needs a first price. Before the cap ln λ is a sum, so the order in which late costs arrive does not matter. With
    y = εg/ρ ≤ 1, e^y ≤ 1 + y + y² gives for every λ with ‖λ‖₁ ≤ M

        Σ ⟨λ − λ_t, g_t⟩ ≤ (ρ/ε) [M ln(M/λ_1) − M]₊ + (ρ/ε) ‖λ_1‖₁ + (ε/ρ) M T,

    so the theorem needs ε ≤ ρ. Longer steps work well in practice and have no theorem.

    Parameters
    ----------
    start : float
        λ_1, in reward per unit of the budget's money (of each budget's, where there are several).
    step : float, optional
        ε, per unit of ĉ/ρ. The default is ρ · √(max(ln(M/λ_1), 1)/T), at most ρ.
    """

    start: float
    step: float | None = None

    def __post_init__(self) -> None:
        validate.validate_fields(self, positive_scalar_in_range, "start")
        super().__post_init__()

    def default_step(self, setting: Setting) -> float:
        spread = max(float(np.log(setting.radius / self.init(setting).min())), 1.0)
        return float(setting.rate * min(1.0, np.sqrt(spread / setting.rounds)))

    def init(self, setting: Setting) -> FloatArray:
        return scale_to_radius(self.start * setting.unit, setting.radius)

    def update(self, state: FloatArray, gradient: FloatArray, setting: Setting) -> FloatArray:
        move = self.step_in(setting) / setting.rate * gradient
        return scale_to_radius(entropic_step(state, move, self.init(setting)), setting.radius)

    def regret(self, setting: Setting, total_delay: float = 0.0) -> float:
        step = self.step_in(setting)
        if step > setting.rate * (1 + 1e-12):
            raise InputError(
                "step",
                f"{step:g} is above ρ = {setting.rate:g}, and no theorem covers it",
                "Leave step= out to use the theorem's step, or use HedgeDual",
            )
        if total_delay:
            raise InputError(
                "total_delay", "is not covered by the theorem of EntropicDual", "Use HedgeDual or EuclideanDual"
            )
        M, first, eta = setting.radius, self.init(setting), step / setting.rate
        distance = max(M * np.log(M / first.min()) - M, 0.0) + first.sum()
        return float(distance / eta + eta * M * setting.rounds)


def _gradient_width(setting: Setting) -> float:
    """Return the width of the numbers g_1 … g_m and 0: 2 where caps and floors are mixed, else 1."""
    return 1.0 if setting.payoff_range <= 1 + setting.radius * (1 + 1e-12) else 2.0
