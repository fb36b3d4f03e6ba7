r"""Inverse gap weighting, the primal learner of LagrangeCBwLC.

Slivkins, Zhou, Sankararaman and Foster (JMLR 25, 2024) published it for contextual bandits with packing and covering
constraints. The weights are those of Foster and Rakhlin (2020).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.money.choosing.duals import Setting
from longterm.money.choosing.primals import ActionOutcomes, ChoiceRequest, OpenChoice, Primal
from longterm.money.choosing.regressors import Regressor


@dataclass(frozen=True)
class InverseGapWeighting(Primal[Any]):
    r"""Play each action more often the better it looks, and never give one up.

    .. math:: b = \arg\max L̂, \qquad p(a) = \frac{1}{K + γ(L̂(b) − L̂(a))}\ (a ≠ b), \qquad \text{the rest on } b

    with L̂(a) = r̂(a) − ⟨λ, ĉ(a)⟩. Announced costs are used as they are.

    **Regret.** E_P ≤ 2KT/γ + (γ/2) U_L against the best action *of each context*, U_L ≥ E Σ (L̂ − L)² at the played
    pairs: U where costs are announced, 2U(1 + mM²) where they are learned (proof in docs/proofs/decisions.md). The γ
    that balances it is 2√(KT/U_L). It explores far too much, so `multiple` times it is used.

    Parameters
    ----------
    actions : int
        K.
    regressor : Regressor
        The oracle.
    sharpness : float, optional
        γ; by default `multiple` times the theorem's.
    multiple : float
        1 is the theorem; about 20 is better in practice.
    """

    actions: int
    regressor: Regressor[Any]
    sharpness: float | None = None
    multiple: float = 20.0

    def __post_init__(self) -> None:
        validate.count("actions", self.actions)
        validate.validate_fields(self, validate.positive_scalar, "multiple")
        validate.validate_fields(self, validate.positive_scalar, "sharpness", optional=True)

    def fitted(self, setting: Setting) -> Self:
        if self.sharpness is not None:
            return self
        # For announced costs, the usual case; learned ones make γ too large by a constant factor.
        best = 2 * np.sqrt(self.actions * setting.rounds / self.regressor.energy(self.actions, setting.rounds))
        return replace(self, sharpness=float(self.multiple * best))

    def init(self, setting: Setting) -> Any:
        return self.regressor.init(self.actions, 1 + setting.resources)

    def weigh(self, state: Any, request: ChoiceRequest, rng: np.random.Generator) -> FloatArray:
        assert self.sharpness is not None
        predicted = self.regressor.predict(state, request.context)
        costs = predicted[1:].T if request.costs is None else request.costs
        payoff = np.where(request.allowed, predicted[0] - costs @ request.prices, -np.inf)
        best = int(payoff.argmax())
        chances = np.where(
            request.allowed, 1.0 / (request.allowed.sum() + self.sharpness * (payoff[best] - payoff)), 0.0
        )
        chances[best] = 0.0
        chances[best] = 1.0 - chances.sum()
        return chances

    def learn(self, state: Any, choice: OpenChoice, outcomes: ActionOutcomes, setting: Setting) -> Any:
        for action in np.flatnonzero(outcomes.seen).tolist():
            seen = np.concatenate([[outcomes.rewards[action]], outcomes.costs[action]])
            state = self.regressor.learn(state, choice.context, action, seen)
        return state

    def require_context(self, context: FloatArray, round: int) -> None:
        self.regressor.require_context(context, round)

    def regret(self, setting: Setting, *, known_costs: bool) -> float:
        gamma = self.fitted(setting).sharpness
        assert gamma is not None
        energy = self.regressor.energy(self.actions, setting.rounds)
        if not known_costs:
            energy *= 2 * (1 + setting.resources * setting.radius**2)
        return float(2 * self.actions * setting.rounds / gamma + gamma / 2 * energy)
