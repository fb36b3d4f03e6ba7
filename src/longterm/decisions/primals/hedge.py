r"""Rules without a context: Hedge (all outcomes seen) and EXP3-IX (only that of the action played).

Both work on losses in [0, 1],  ℓ_t(a) = (top − payoff_t(a)) / width,  with the prices of round t.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.decisions.duals import Game
from longterm.decisions.primals.base import Lesson, Primal, Request, actions_of, normalised, payoffs
from longterm.errors import InputError


class LossState(NamedTuple):
    """The (estimated) losses so far, shape (K,)."""

    losses: FloatArray


@dataclass(frozen=True)
class Hedge(Primal[LossState]):
    r"""Exponential weights, where the outcome of every action is seen.

    .. math:: p(a) ∝ e^{-η L(a)}, \qquad L(a) = \sum_t ℓ_t(a)

    Regret ≤ width · (ln K/η + ηT/8) = width · √(T ln K/2) with the default η = √(8 ln K/T).

    Parameters
    ----------
    actions : int
        K.
    step : float, optional
        η.

    Examples
    --------
    >>> from longterm.decisions import Budget, Chooser, Hedge, HedgeDual, PrimalDual
    >>> rule = PrimalDual(Hedge(2), HedgeDual(), Budget(50.0, largest=1.0), horizon=100)
    >>> chooser = Chooser(rule, seed=1)
    >>> choice = chooser.act()
    >>> chooser.settle(choice, rewards=[0.0, 1.0], costs=[0.0, 1.0])
    >>> choice.probabilities
    array([0.5, 0.5])
    """

    actions: int
    step: float | None = None

    def __post_init__(self) -> None:
        _check(self)

    def fitted(self, game: Game) -> Self:
        return self if self.step else replace(self, step=float(np.sqrt(8 * np.log(self.actions) / game.horizon)))

    def init(self, game: Game) -> LossState:
        return LossState(np.zeros(self.actions))

    def weigh(self, state: LossState, request: Request, rng: np.random.Generator) -> FloatArray:
        return _exponential(self.step, state, request)

    def learn(self, state: LossState, request: Request, lesson: Lesson, game: Game) -> LossState:
        if not lesson.seen.all():
            raise InputError(
                "rewards", "of all actions are needed by Hedge", "Give rewards= and costs=, or take EXP3IX"
            )
        return LossState(state.losses + _losses(request, lesson, game))

    def regret(self, game: Game, *, known_costs: bool) -> float:
        step = self.fitted(game).step
        assert step is not None
        return float(game.width * (np.log(self.actions) / step + step * game.horizon / 8))


@dataclass(frozen=True)
class EXP3IX(Primal[LossState]):
    r"""Exponential weights with implicit exploration, where only the action played is seen (Neu, 2015).

    .. math:: p(a) ∝ e^{-η L̂(a)}, \qquad L̂(a) \mathrel{+}= \frac{ℓ_t(a) 1\{a = a_t\}}{p_t(a) + η/2}

    Expected regret ≤ width · (ln K/η + ηKT) = 2 width · √(KT ln K) with the default η = √(ln K/(KT)).

    *Proof.* Hedge's inequality gives Σ_t⟨p_t, ℓ̂_t⟩ − ℓ̂_t(a*) ≤ ln K/η + (η/2) Σ_t Σ_a p_t(a) ℓ̂_t(a)². With γ = η/2,
    ⟨p_t, ℓ̂_t⟩ = ℓ_t(a_t) − γ Σ_a ℓ̂_t(a), and p ℓ̂² ≤ ℓ̂. So Σ ℓ_t(a_t) − ℓ̂_t(a*) ≤ ln K/η + η Σ_t Σ_a ℓ̂_t(a),
    and E ℓ̂ ≤ ℓ ≤ 1. ∎ (Against an adversary that reacts, too: the comparator is fixed.) Where outcomes of several
    actions happen to be seen, each is used with its own probability of having been seen, the one it was drawn with
    for the action and 1 for the others.

    Parameters
    ----------
    actions : int
        K.
    step : float, optional
        η.
    """

    actions: int
    step: float | None = None

    def __post_init__(self) -> None:
        _check(self)

    def fitted(self, game: Game) -> Self:
        if self.step:
            return self
        return replace(self, step=float(np.sqrt(np.log(self.actions) / (self.actions * game.horizon))))

    def init(self, game: Game) -> LossState:
        return LossState(np.zeros(self.actions))

    def weigh(self, state: LossState, request: Request, rng: np.random.Generator) -> FloatArray:
        return _exponential(self.step, state, request)

    def learn(self, state: LossState, request: Request, lesson: Lesson, game: Game) -> LossState:
        assert self.step is not None
        chance = np.where(lesson.seen, 1.0, np.inf)  # all seen: nothing was left to chance
        if lesson.seen.sum() == 1:
            chance[lesson.action] = lesson.probability + self.step / 2
        return LossState(state.losses + _losses(request, lesson, game) / chance)

    def regret(self, game: Game, *, known_costs: bool) -> float:
        step = self.fitted(game).step
        assert step is not None
        return float(game.width * (np.log(self.actions) / step + step * self.actions * game.horizon))


@dataclass(frozen=True)
class FixedMixture(Primal[LossState]):
    """Always the same probabilities: a random mix, the best fixed mix of hindsight, or a policy to log with.

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
        validate.remember(self, shares=tuple(shares.tolist()))

    @property
    def actions(self) -> int:  # type: ignore[override]
        return len(self.shares)

    def fitted(self, game: Game) -> Self:
        return self

    def init(self, game: Game) -> LossState:
        return LossState(np.zeros(self.actions))

    def weigh(self, state: LossState, request: Request, rng: np.random.Generator) -> FloatArray:
        return normalised(np.asarray(self.shares), request.allowed)

    def learn(self, state: LossState, request: Request, lesson: Lesson, game: Game) -> LossState:
        return state


def _exponential(step: float | None, state: LossState, request: Request) -> FloatArray:
    assert step is not None
    scores = np.where(request.allowed, -step * state.losses, -np.inf)
    return normalised(np.exp(scores - scores.max()), request.allowed)


def _losses(request: Request, lesson: Lesson, game: Game) -> FloatArray:
    return np.where(lesson.seen, (game.lowest + game.width - payoffs(request, lesson)) / game.width, 0.0)


def _check(primal: Hedge | EXP3IX) -> None:
    actions_of(primal)
    if primal.step is not None:
        validate.remember(primal, step=validate.positive_scalar("step", primal.step))
