r"""Inverse gap weighting over any regressor (Foster and Rakhlin 2020; with budgets Slivkins et al., JMLR 25, 2024)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.decisions.duals import Game
from longterm.decisions.primals.base import Lesson, Primal, Request, actions_of
from longterm.decisions.regressors import Regressor


@dataclass(frozen=True)
class InverseGapWeighting(Primal[Any]):
    r"""The better an action looks, the likelier; none is ever given up.

    .. math:: b = \arg\max L̂, \qquad p(a) = \frac{1}{K + γ(L̂(b) − L̂(a))}\ (a ≠ b), \qquad \text{the rest on } b

    with L̂(a) = r̂(a) − ⟨λ, ĉ(a)⟩; announced costs are used as they are.

    **Regret.** E_P ≤ 2KT/γ + (γ/2) U_L against the best action *of each context*, U_L ≥ E Σ (L̂ − L)² at the played
    pairs: U where costs are announced, 2U(1 + mM²) where they are learned. *Proof.* With gaps δ(a) = L̂(b) − L̂(a)
    and errors e(a) = L̂(a) − L(a), L(a*) − L(a) = δ(a) + e(a) − e(a*) − δ(a*). Σ p δ ≤ (K−1)/γ; Σ p e ≤ (γ/4) Σ p
    e² + 1/γ; and −e(a*) ≤ (γ/4) p(a*) e(a*)² + 1/(γ p(a*)), where 1/p(a*) ≤ K + γδ(a*), which takes up −δ(a*) and
    leaves K/γ. (If a* = b, p(b) ≥ 1/K.) Add: 2K/γ + (γ/2) Σ p e². ∎ The γ that balances it is 2√(KT/U_L), and it
    explores far too much: `multiple` times it is used, and `regret` says what that costs in theory. The theorem's γ
    in the paper lacks a factor, and the quoted bound a √K; this is re-derived.

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
        actions_of(self)
        validate.remember(self, multiple=validate.positive_scalar("multiple", self.multiple))
        if self.sharpness is not None:
            validate.remember(self, sharpness=validate.positive_scalar("sharpness", self.sharpness))

    def fitted(self, game: Game) -> Self:
        if self.sharpness is not None:
            return self
        # Announced costs are the usual case; learned ones only make γ too large by a constant factor of the rates.
        best = 2 * np.sqrt(self.actions * game.horizon / self.regressor.energy(self.actions, game.horizon))
        return replace(self, sharpness=float(self.multiple * best))

    def init(self, game: Game) -> Any:
        return self.regressor.init(self.actions, 1 + game.resources)

    def weigh(self, state: Any, request: Request, rng: np.random.Generator) -> FloatArray:
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

    def learn(self, state: Any, request: Request, lesson: Lesson, game: Game) -> Any:
        for action in np.flatnonzero(lesson.seen).tolist():
            outcomes = np.concatenate([[lesson.rewards[action]], lesson.costs[action]])
            state = self.regressor.learn(state, request.context, action, outcomes)
        return state

    def check(self, context: FloatArray, round: int) -> None:
        self.regressor.check(context, round)

    def regret(self, game: Game, *, known_costs: bool) -> float:
        gamma = self.fitted(game).sharpness
        assert gamma is not None
        energy = self.regressor.energy(self.actions, game.horizon)
        if not known_costs:
            energy *= 2 * (1 + game.resources * game.radius**2)
        return float(2 * self.actions * game.horizon / gamma + gamma / 2 * energy)
