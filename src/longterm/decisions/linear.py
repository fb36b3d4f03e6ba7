"""Linear beliefs of what actions bring, given the features of a request, and the rules on them.

Outcome o of action a is ⟨x, w_{o,a}⟩ + noise, with w_{o,a} = shared + own_a a priori: covariance s_0² + s_1² 1{a =
b} between actions, features independent. In units of the noise's deviation the posterior is, after (x, a, y),

    q = 1 + xᵀ P_{aa} x,    W += P_{·a} x (y − ⟨x, w_a⟩)/q,    P −= (P_{·a} x)(P_{·a} x)ᵀ/q,

a rank-one step of (Kd)² multiplications. s_0 = 0 is a ridge regression for each action. All outcomes share P. Where
costs are announced they are used; where not, they are learned with the same features.

Features may be those of a text (`WordHash`), small and fast: a signed hash of its words and a few counts. No training,
no vocabulary, no dependency.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.linalg.blas import dger

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.decisions.duals import Game
from longterm.decisions.primals import Lesson, Primal, Request, require_features
from longterm.errors import InputError

_WORD = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")
SURFACE = 13
"""How many surface features there are; the first is constant."""


@dataclass(frozen=True)
class WordHash:
    """A text as `SURFACE` + `size` numbers.

    Each distinct word (or digit string, or sign) adds ±1 to one of `size` places, both by its CRC-32; the sum is
    scaled to norm 1. Before it stand surface features: a constant, length, shares of digits, capitals and signs,
    lines, mean word length, marks of questions, gaps, formulas and money, short and long. Only the first `limit`
    characters are read.

    Parameters
    ----------
    size : int
        Places for words.
    limit : int
        Characters read: what keeps a decision below a millisecond for any text.
    constant : float
        The constant feature. A linear belief lets actions differ in level by `constant` times its `own`: make it
        large and `own` small where actions are better or worse more than they are good at different things.

    Examples
    --------
    >>> from longterm.decisions import WordHash
    >>> WordHash(8)("What is 2 + 2?").shape
    (21,)
    """

    size: int = 32
    limit: int = 4000
    constant: float = 1.0

    def __post_init__(self) -> None:
        validate.count("size", self.size)
        validate.count("limit", self.limit)
        validate.validate_fields(self, validate.positive_scalar, "constant")

    @property
    def features(self) -> int:
        """The length of the vector."""
        return SURFACE + self.size

    def __call__(self, text: str) -> FloatArray:
        """The features of one text."""
        whole = len(text)
        text = text[: self.limit]
        words = _WORD.findall(text.lower())
        hashes = np.array([zlib.crc32(word.encode("utf-8", "replace")) for word in set(words)], dtype=np.int64)
        sums = np.bincount((hashes >> 1) % self.size, weights=2.0 * (hashes & 1) - 1.0, minlength=self.size)
        places = np.asarray(sums, dtype=np.float64)
        norm = float(np.sqrt(places @ places))
        if norm > 0:
            places = places / norm
        length = max(len(text), 1)
        codes = np.frombuffer(text.encode("ascii", "replace"), dtype=np.uint8)
        digits = int(np.count_nonzero((codes >= 48) & (codes <= 57)))
        capitals = int(np.count_nonzero((codes >= 65) & (codes <= 90)))
        letters = int(np.count_nonzero((codes >= 97) & (codes <= 122)))
        blanks = int(np.count_nonzero((codes == 32) | ((codes >= 9) & (codes <= 13))))
        signs = len(codes) - digits - capitals - letters - blanks
        mean = min(sum(map(len, words)) / len(words), 20.0) if words else 4.0
        surface = [
            self.constant,
            np.log1p(whole) / 8 - 0.7,
            digits / length * 4,
            capitals / length * 4,
            signs / length * 4,
            min(text.count("\n") / 10, 3.0),
            mean / 5 - 0.8,
            float("?" in text),
            float("_" in text),
            float("=" in text or "+" in text or "^" in text),
            float("$" in text),
            float(whole < 150),
            float(whole > 600),
        ]
        return np.concatenate([surface, places])


class LinearBelief(NamedTuple):
    """What is believed of the weights.

    Parameters
    ----------
    mean : array, shape (outputs, K, d)
        Of the weights, for each outcome and action.
    covariance : array, shape (Kd, Kd)
        P, in units of the noise's variance; the same for every outcome.
    """

    mean: FloatArray
    covariance: FloatArray

    @classmethod
    def prior(cls, actions: int, features: int, outputs: int, shared: float, own: float, noise: float) -> LinearBelief:
        """Before anything was seen."""
        between = np.full((actions, actions), shared**2) + own**2 * np.eye(actions)
        return cls(
            np.zeros((outputs, actions, features)),
            np.asarray(np.kron(between / noise**2, np.eye(features)), dtype=np.float64),
        )

    def require_sound(self) -> None:
        """ValueError unless the covariance is one; for what a file says."""
        P = self.covariance
        largest = np.abs(P).max()
        if not (largest < 1e100 and np.abs(self.mean).max() < 1e100):
            raise ValueError("a belief holds a number that no lesson leads to")
        if np.abs(P - P.T).max() > 1e-9 * largest or np.linalg.eigvalsh(P)[0] < -1e-9 * largest:
            raise ValueError("the covariance of a belief is none")

    def expected(self, x: FloatArray) -> FloatArray:
        """The mean outcomes, shape (outputs, K)."""
        return self.mean @ x

    def spread(self, x: FloatArray) -> FloatArray:
        """The covariance of the K mean outcomes at x, in units of the noise's variance, shape (K, K)."""
        _, actions, features = self.mean.shape
        half = self.covariance.reshape(-1, features) @ x  # (K d K,)
        return x @ half.reshape(actions, features, actions)

    def widths(self, x: FloatArray) -> FloatArray:
        """The deviations of the K mean outcomes, in units of the noise's."""
        return np.sqrt(np.maximum(np.diagonal(self.spread(x)), 0.0))

    def updated(self, x: FloatArray, action: int, outcomes: FloatArray) -> LinearBelief:
        """The belief after outcomes (outputs,) of one action."""
        outputs, actions, features = self.mean.shape
        start = action * features
        direction = self.covariance[:, start : start + features] @ x
        scale = 1.0 + float(x @ direction[start : start + features])
        error = outcomes - self.mean[:, action] @ x
        step = (error / scale)[:, None] * direction
        return LinearBelief(
            self.mean + step.reshape(outputs, actions, features),
            # One copy and one pass, three times faster than two temporaries; symmetric, so its transpose is itself.
            np.asarray(dger(-1.0 / scale, direction, direction, a=self.covariance.T).T),
        )


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
        validate.count("actions", self.actions)
        validate.count("features", self.features)
        validate.validate_fields(self, validate.non_negative_scalar, "shared", "look")
        validate.validate_fields(self, validate.positive_scalar, "own", "noise")

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
        """With a probability that falls as 1/√t, any allowed action."""
        share, allowed = min(1.0, self.look / np.sqrt(request.round)), request.allowed
        return np.asarray((1 - share) * probabilities + share * (allowed / allowed.sum()))


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
        validate.validate_fields(self, validate.non_negative_scalar, "factor")
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
        validate.validate_fields(self, validate.non_negative_scalar, "width")

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
