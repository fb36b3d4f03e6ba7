r"""Rules on linear beliefs: Thompson sampling and optimism.

Where costs are announced they are used; where not, they are learned with the same features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.decisions.beliefs import LinearBelief
from longterm.decisions.duals import Game
from longterm.decisions.primals.base import Lesson, Primal, Request, actions_of, require_features, with_look
from longterm.errors import InputError


@dataclass(frozen=True)
class _Linear(Primal[LinearBelief]):
    """What both rules share: the belief and its prior."""

    actions: int
    features: int
    shared: float = 1.0
    own: float = 1.0
    noise: float = 0.45
    look: float = 0.0
    carried: LinearBelief | None = None

    def __post_init__(self) -> None:
        actions_of(self)
        validate.count("features", self.features)
        validate.remember(
            self,
            shared=validate.non_negative_scalar("shared", self.shared),
            own=validate.positive_scalar("own", self.own),
            noise=validate.positive_scalar("noise", self.noise),
            look=validate.non_negative_scalar("look", self.look),
        )

    def fitted(self, game: Game) -> Self:
        return self

    def init(self, game: Game) -> LinearBelief:
        outputs = 1 + game.resources
        if self.carried is None:
            return LinearBelief.prior(self.actions, self.features, outputs, self.shared, self.own, self.noise)
        expected = (outputs, self.actions, self.features)
        if self.carried.mean.shape != expected:
            raise InputError(
                "carried",
                f"is a belief of shape {self.carried.mean.shape}, this game needs {expected}",
                "Carry a belief over from a game with the same actions, features and budgets",
            )
        return self.carried

    def learn(self, state: LinearBelief, request: Request, lesson: Lesson, game: Game) -> LinearBelief:
        for action in np.flatnonzero(lesson.seen).tolist():
            outcomes = np.concatenate([[lesson.rewards[action]], lesson.costs[action]])
            state = state.updated(request.context, action, outcomes)
        return state

    def check(self, context: FloatArray, round: int) -> None:
        require_features(context, self.features, round)

    def _looked(self, probabilities: FloatArray, request: Request) -> FloatArray:
        return with_look(probabilities, min(1.0, self.look / np.sqrt(request.round)), request.allowed)


@dataclass(frozen=True)
class ThompsonSampling(_Linear):
    r"""Joint linear Thompson sampling: play what is best in a world drawn from the belief.

    The K mean rewards at x are drawn *jointly*, with the covariance that the shared weights give them: N(x·w, v²
    xᵀPx). `draws` worlds are drawn, p(a) is the share of them in which a has the best payoff, and the action is
    drawn from p: the same law as one world, and the probability given the worlds is known exactly, which is what
    weighing a log needs. With probability `look`/√t any action is played.

    Parameters
    ----------
    actions, features : int
        K and d.
    shared, own : float
        The prior deviations s_0 of the weights that all actions share, and s_1 of what each adds. Few requests and
        many actions: small `own`.
    noise : float
        The deviation of a reward about its mean; 0.45 for answers that are right or wrong.
    factor : float
        v; 1 is the belief's own spread, about 0.4 does better in practice, 0 is greedy.
    look : float
        The forced look's weight.
    draws : int
        How many worlds. They are common random numbers for all actions.
    carried : LinearBelief, optional
        A belief from another stream, or after labels, instead of the prior.

    Notes
    -----
    No bound: a factor below √d·ln T is not covered by any theorem that we know. The budget does not depend on it.
    """

    factor: float = 0.4
    draws: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.remember(self, factor=validate.non_negative_scalar("factor", self.factor))
        validate.count("draws", self.draws)

    def weigh(self, state: LinearBelief, request: Request, rng: np.random.Generator) -> FloatArray:
        expected = state.expected(request.context)
        costs = expected[1:].T if request.costs is None else request.costs
        payoff = np.where(request.allowed, expected[0] - costs @ request.prices, -np.inf)
        noise = rng.standard_normal((self.draws, self.actions))
        scale = self.factor * self.noise
        if scale > 0:
            payoff = payoff + scale * (noise @ _root(state.spread(request.context)).T)
            wins = np.bincount(payoff.argmax(axis=1), minlength=self.actions) / self.draws
        else:
            wins = np.bincount([payoff.argmax()], minlength=self.actions).astype(np.float64)
        return self._looked(wins, request)


@dataclass(frozen=True)
class LinearUCB(_Linear):
    r"""Optimism: the largest payoff that the belief holds possible (Chu et al. 2011; Agrawal and Devanur 2016 with
    budgets).

    .. math::

        a_t = \arg\max_a\; x·w_{r,a} + β e_a − \sum_i λ_i (x·w_{i,a} − β e_a), \qquad
        e_a = \text{noise}\,\sqrt{x^T P_{aa} x}

    the costs' width only where they are not announced.

    Regret, with probability 1 − δ, ridge for each action (`shared` = 0), ‖x‖ ≤ 1 and ‖w‖ ≤ s: the estimates are within
    β e of the truth for β = s/own + √(2 ln((m+1)K/δ) + d ln(1 + T own²/(d noise²))) · (1/2)/noise (outcomes in [0,
    1] are ½-sub-Gaussian), so

        E_P ≤ 2β(1 + M·[costs learned]) Σ e_t + δTwidth,   Σ e_t ≤ noise √(2 K d T max(1, own²/noise²) ln(1 + T
        own²/(K d noise²))).

    *Proof.* On the event the payoff's optimism makes the regret of a round at most 2β(1+M)e_t; Cauchy–Schwarz and Σ
    min(e²/noise², 1)·… ≤ 2 ln det. The union is over K regressions of m + 1 outcomes. ∎

    Parameters
    ----------
    actions, features : int
        K and d.
    shared, own : float
        The prior deviations of the weights that all actions share, and of what each adds.
    noise : float
        The deviation of a reward about its mean.
    look : float
        The forced look's weight: with probability `look`/√t any action is played.
    carried : LinearBelief, optional
        A belief from another stream, or after labels, instead of the prior.
    width : float
        β. The theorem's is `theory_width`; about 1 does better in practice.
    """

    width: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.remember(self, width=validate.non_negative_scalar("width", self.width))

    def weigh(self, state: LinearBelief, request: Request, rng: np.random.Generator) -> FloatArray:
        expected = state.expected(request.context)
        hope = self.width * self.noise * state.widths(request.context)
        payoff = expected[0] + hope
        if request.costs is None:
            # The least the cost can be; a floor's prices push the other way by the sign in σĉ.
            payoff = payoff - (expected[1:].T - hope[:, None]) @ request.prices
        else:
            payoff = payoff - request.costs @ request.prices
        best = np.where(request.allowed, payoff, -np.inf).argmax()
        return self._looked(np.bincount([best], minlength=self.actions).astype(np.float64), request)

    def theory_width(self, game: Game, *, norm: float = 1.0, delta: float = 0.05) -> float:
        """The β of the theorem, for weights of norm at most `norm`."""
        outcomes = (game.resources + 1) * self.actions
        growth = self.features * np.log1p(game.horizon * self.own**2 / (self.features * self.noise**2))
        return float(norm / self.own + 0.5 / self.noise * np.sqrt(2 * np.log(outcomes / delta) + growth))

    def regret(self, game: Game, *, known_costs: bool, norm: float = 1.0, delta: float = 0.05) -> float:
        if self.shared or self.look:
            raise InputError("shared", "the theorem is for separate weights without a look", "Take shared=0, look=0")
        if self.width < self.theory_width(game, norm=norm, delta=delta) * (1 - 1e-12):
            raise InputError("width", f"{self.width:g} is below the theorem's", "Take theory_width(game)")
        ratio = self.own**2 / self.noise**2
        kd = self.actions * self.features
        widths = self.noise * np.sqrt(2 * kd * game.horizon * max(1.0, ratio) * np.log1p(game.horizon * ratio / kd))
        factor = 1.0 if known_costs else 1.0 + game.radius
        return float(2 * self.width * factor * widths + delta * game.horizon * game.width)


def _root(spread: FloatArray) -> FloatArray:
    """A square root of a covariance that may be singular by rounding."""
    tiny = 1e-12 * (1.0 + float(np.trace(spread)))
    return np.asarray(np.linalg.cholesky((spread + spread.T) / 2 + tiny * np.eye(len(spread))), dtype=np.float64)
