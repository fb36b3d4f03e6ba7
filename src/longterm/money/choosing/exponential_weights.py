r"""Primals without a context: exponential weights for full and for bandit feedback, and a fixed mixture.

They work on losses in [0, 1], ℓ_t(a) = (highest payoff − payoff_t(a)) / payoff range, with the prices of round t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.money.choosing.duals import Setting, TunedStep
from longterm.money.choosing.primals import ActionOutcomes, ChoiceRequest, OpenChoice, Primal, normalise


class LossState(NamedTuple):
    """The sum of the (estimated) losses, shape (K,)."""

    losses: FloatArray


class _Exponential(TunedStep, Primal[LossState]):
    """A primal with weights e^{−ηL}."""

    def __post_init__(self) -> None:
        validate.count("actions", self.actions)
        super().__post_init__()

    def init(self, setting: Setting) -> LossState:
        return LossState(np.zeros(self.actions))

    def weigh(self, state: LossState, request: ChoiceRequest, rng: np.random.Generator) -> FloatArray:
        assert self.step is not None
        scores = np.where(request.allowed, -self.step * state.losses, -np.inf)
        return normalise(np.exp(scores - scores.max()), request.allowed)


@dataclass(frozen=True)
class ExponentialWeights(_Exponential):
    r"""Learn which action is best when the outcome of every action is seen (Hedge).

    .. math:: p(a) ∝ e^{-η L(a)}, \qquad L(a) = \sum_t ℓ_t(a)

    Regret ≤ range · (ln K/η + ηT/8) = range · √(T ln K/2) with the default η = √(8 ln K/T).

    Parameters
    ----------
    actions : int
        K.
    step : float, optional
        η.

    Examples
    --------
    >>> from longterm.money.budgets import Budget
    >>> from longterm.money.choosing.chooser import Chooser
    >>> from longterm.money.choosing.duals import HedgeDual
    >>> from longterm.money.choosing.exponential_weights import ExponentialWeights
    >>> from longterm.money.choosing.primal_dual import PrimalDual
    >>> rule = PrimalDual(ExponentialWeights(2), HedgeDual(), Budget(50.0, largest=1.0), horizon=100)
    >>> chooser = Chooser(rule, seed=1)
    >>> choice = chooser.act()
    >>> chooser.settle(choice, rewards=[0.0, 1.0], costs=[0.0, 1.0])
    >>> choice.probabilities
    array([0.5, 0.5])
    """

    actions: int
    step: float | None = None

    def default_step(self, setting: Setting) -> float:
        return float(np.sqrt(8 * np.log(self.actions) / setting.rounds))

    def learn(self, state: LossState, choice: OpenChoice, outcomes: ActionOutcomes, setting: Setting) -> LossState:
        if not outcomes.seen.all():
            raise InputError(
                "rewards",
                "are missing. ExponentialWeights learns from the rewards of all actions",
                "Give rewards= and costs=, or use EXP3IX, which learns from the chosen action",
            )
        return LossState(state.losses + _losses(choice, outcomes, setting))

    def regret(self, setting: Setting, *, known_costs: bool) -> float:
        step = self.step_in(setting)
        return float(setting.payoff_range * (np.log(self.actions) / step + step * setting.rounds / 8))


@dataclass(frozen=True)
class EXP3IX(_Exponential):
    r"""Learn from the played action alone, on any sequence of rewards, without a context.

    Exponential weights with implicit exploration (Neu, 2015).

    .. math:: p(a) ∝ e^{-η L̂(a)}, \qquad L̂(a) \mathrel{+}= \frac{ℓ_t(a) 1\{a = a_t\}}{p_t(a) + η/2}

    Expected regret ≤ range · (ln K/η + ηKT) = 2 range · √(KT ln K) with the default η = √(ln K/(KT)).

    The proof is in docs/proofs/decisions.md. If several outcomes are seen, each is used as it is.

    Parameters
    ----------
    actions : int
        K.
    step : float, optional
        η.
    """

    actions: int
    step: float | None = None

    def default_step(self, setting: Setting) -> float:
        return float(np.sqrt(np.log(self.actions) / (self.actions * setting.rounds)))

    def learn(self, state: LossState, choice: OpenChoice, outcomes: ActionOutcomes, setting: Setting) -> LossState:
        chance = np.ones(self.actions)
        if outcomes.seen.sum() == 1:
            chance[choice.action] = choice.probability + self.step_in(setting) / 2
        return LossState(state.losses + _losses(choice, outcomes, setting) / chance)

    def regret(self, setting: Setting, *, known_costs: bool) -> float:
        step = self.step_in(setting)
        return float(setting.payoff_range * (np.log(self.actions) / step + step * self.actions * setting.rounds))


@dataclass(frozen=True)
class FixedMixture(Primal[LossState]):
    """Draw actions with constant probabilities, for comparison or to write a log.

    Parameters
    ----------
    shares : tuple of float
        The probabilities, one for each action.
    """

    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        shares = validate.vector("shares", self.shares)
        if np.any(shares < 0) or abs(shares.sum() - 1) > 1e-9:
            raise InputError("shares", f"{self.shares!r} are not probabilities", "Give numbers ≥ 0 that add up to 1")
        validate.set_frozen(self, shares=tuple(shares.tolist()))

    @property
    def actions(self) -> int:  # type: ignore[override]
        return len(self.shares)

    def init(self, setting: Setting) -> LossState:
        return LossState(np.zeros(self.actions))

    def weigh(self, state: LossState, request: ChoiceRequest, rng: np.random.Generator) -> FloatArray:
        return normalise(np.asarray(self.shares), request.allowed)

    def learn(self, state: LossState, choice: OpenChoice, outcomes: ActionOutcomes, setting: Setting) -> LossState:
        return state


def _losses(choice: OpenChoice, outcomes: ActionOutcomes, setting: Setting) -> FloatArray:
    payoffs = outcomes.rewards - outcomes.costs @ choice.prices
    highest = setting.lowest_payoff + setting.payoff_range
    return np.where(outcomes.seen, (highest - payoffs) / setting.payoff_range, 0.0)
