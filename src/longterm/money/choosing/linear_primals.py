"""Primals on a linear belief: Thompson sampling and optimism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.money.budgets import LARGEST_STORED
from longterm.money.choosing.beliefs import Forecast, LinearBelief, covariance_root, require_features
from longterm.money.choosing.duals import Setting
from longterm.money.choosing.primals import ActionOutcomes, ChoiceRequest, OpenChoice, Prediction, Primal
from longterm.money.choosing.recent import UNKNOWN, RecentRequests

SHARED_LEVEL = 1.0
"""The prior deviation of the level that all actions share: rewards are in [0, 1]."""
_ONE = np.ones(1)
SMALLEST_RATIO, LARGEST_RATIO = 0.1, 5.0
"""Expected costs are at least this part of the announced ones; paid costs count up to this multiple of them."""
VARIANCE, VARIANCE_WEIGHT, LEAST_VARIANCE = 0.2, 5.0, 0.1
"""The first guess of the variance of rewards (answers are right or wrong), its weight, the least multiple of noise²."""
MEMORY = 500.0
"""The number of outcomes that the variance of rewards remembers."""


class LinearState(NamedTuple):
    """The belief of a linear primal, the noise of rewards, and recent requests."""

    belief: LinearBelief
    squares: FloatArray
    """Sums of squared errors of each action's rewards in units of noise², and their numbers, shape (2, K)."""
    largest: FloatArray
    """The largest ratio of paid to announced costs of each action, shape (K,)."""
    recent: RecentRequests
    tried: FloatArray
    """The round of the last request with an outcome of each action, shape (K,); 0 before the first."""


@dataclass(frozen=True)
class _Linear(Primal[LinearState]):
    """The belief and its prior."""

    actions: int
    features: int
    shared_scale: float = 1.0
    prior_scale: float = 1.0
    noise: float = 0.45
    exploration: float = 0.0
    prior: LinearBelief | None = None
    level_scale: float | None = None
    drift: float = 0.0
    learn_costs: bool = False
    learn_noise: bool = False
    window: int = 0

    def __post_init__(self) -> None:
        validate.count("actions", self.actions)
        validate.count("features", self.features)
        validate.validate_fields(self, validate.non_negative_scalar, "shared_scale", "exploration", "drift")
        validate.validate_fields(self, validate.positive_scalar, "prior_scale", "noise")
        validate.validate_fields(self, validate.positive_scalar, "level_scale", optional=True)
        if self.window:
            validate.count("window", self.window)
        if self.drift and self.level_scale is None:
            raise InputError(
                "drift", "describes the drift of levels, but level_scale is 0", "Give level_scale=0.15, for example"
            )

    def init(self, setting: Setting) -> LinearState:
        outputs, length = 1 + setting.resources, self.features + (self.level_scale is not None)
        belief = self.prior
        if belief is None:
            own, shared = np.full(length, self.prior_scale**2), np.full(length, self.shared_scale**2)
            if self.level_scale is not None:
                own[-1], shared[-1] = self.level_scale**2, SHARED_LEVEL**2
            belief = LinearBelief.prior(self.actions, outputs, shared / self.noise**2, own / self.noise**2)
        expected = (outputs, self.actions, length)
        if belief.shape != expected:
            raise InputError(
                "prior",
                f"is a belief of shape {belief.shape}, but this problem needs shape {expected}",
                "Give a belief from a problem with the same actions, features and budgets",
            )
        recent = RecentRequests.empty(self.window, self.features + self.actions if self.window else 0)
        squares = np.tile(self._first_squares, self.actions)
        none = np.zeros(self.actions)
        return LinearState(belief._replace(round=np.int64(1)), squares, none, recent, none)

    @property
    def _first_squares(self) -> FloatArray:
        return np.array([[VARIANCE_WEIGHT * VARIANCE / self.noise**2], [VARIANCE_WEIGHT]])

    def extended(self, state: LinearState) -> LinearState:
        recent = state.recent.extended() if self.window else state.recent
        squares = np.concatenate([state.squares, self._first_squares], axis=1)
        largest, tried = np.append(state.largest, 0.0), np.append(state.tried, float(state.tried.max()))
        return LinearState(state.belief.extended(), squares, largest, recent, tried)

    def require_sound(self, state: LinearState) -> None:
        super().require_sound(state)
        if not (state.squares.min() > 0 and state.squares.max() < np.inf and 0 <= state.largest.min() < np.inf):
            raise ValueError("the noise of rewards is not positive, or a ratio of costs is negative")
        if not 0 <= state.tried.min() <= state.tried.max() < LARGEST_STORED:
            raise ValueError("an action was tried in a round that does not exist")
        answered = np.concatenate([state.recent.window[:, 0], state.recent.block[:, 0]])
        if np.any(answered % 1) or not UNKNOWN <= answered.min(initial=0) <= answered.max(initial=0) < self.actions:
            raise ValueError("a recent request was answered by an action that does not exist")

    def learn(self, state: LinearState, choice: OpenChoice, outcomes: ActionOutcomes, setting: Setting) -> LinearState:
        x, squares, largest = self._features(choice.context), state.squares, state.largest
        belief = state.belief.rescaled(x).drifted((self.drift / self.noise) ** 2, choice.round)
        seen, tried = outcomes.seen.nonzero()[0].tolist(), state.tried.copy()
        for action in seen:
            tried[action] = max(tried[action], choice.round)
            reward, costs, variance = float(outcomes.rewards[action]), outcomes.costs[action].tolist(), 1.0
            forecast = belief.at(x, action)
            if self.learn_costs:
                ratios = _ratios(costs, choice, action, setting)
                if ratios is None:
                    costs = forecast.mean[1:].tolist()
                else:
                    costs = [min(ratio, LARGEST_RATIO) - 1.0 for ratio in ratios]
                    if max(ratios) > largest[action]:
                        largest = largest.copy()
                        largest[action] = min(max(ratios), LARGEST_STORED / 2)  # an announced cost may be tiny
            if self.learn_noise:
                variance, squares = self._variance(squares, forecast, reward)
            belief = belief.after(forecast, np.array([reward, *costs]), variance)
        recent = state.recent
        if self.window and choice.counted is not None:
            answered = float(choice.action) if len(seen) == 1 else UNKNOWN
            recent = recent.added(answered, choice.context, choice.counted[:, 0] / setting.unit[0])
        return LinearState(belief, squares, largest, recent, tried)

    def _variance(self, squares: FloatArray, forecast: Forecast, reward: float) -> tuple[float, FloatArray]:
        """Return the variance of an action's rewards in units of noise², and the sums after one more error."""
        action = forecast.action
        total, weight = squares[:, action].tolist()
        variance = max(total / weight, LEAST_VARIANCE)
        # The residual before the update times that after it has the variance as its mean.
        error = (reward - float(forecast.mean[0])) / self.noise
        square = error**2 * variance / (variance + forecast.variance)
        squares, keep = squares.copy(), 1.0 - (weight >= MEMORY) / MEMORY
        squares[:, action] = keep * total + square, keep * weight + 1.0
        return variance, squares

    def predict_recent(self, state: LinearState, request: ChoiceRequest) -> Prediction:
        if not self.window or request.costs is None:
            what = "computes its price from the announced costs of recent requests, and there are none"
            raise InputError(
                "dual", what, "Make the primal with window=512, and pass costs= to act()", round=request.round
            )
        contexts, costs = state.recent.rows(request.context, request.costs[:, 0])
        return self.predict(state, contexts, costs[:, :, None])

    def predict(self, state: LinearState, contexts: FloatArray, costs: FloatArray | None) -> Prediction:
        """Return the expected outcomes for contexts (rows, d) and announced costs (rows, K, m)."""
        if self.level_scale is not None:
            contexts = np.concatenate([contexts, np.ones((len(contexts), 1))], axis=1)
        outcomes = (contexts / state.belief.scale) @ state.belief.mean.transpose(0, 2, 1)  # (outputs, rows, K)
        return Prediction(outcomes[0], self._costs(outcomes[1:].transpose(1, 2, 0), costs))

    def require_context(self, context: FloatArray, round: int) -> None:
        require_features(context, self.features, round)

    def _features(self, context: FloatArray) -> FloatArray:
        """Return the context, with a constant behind it if actions have levels."""
        return context if self.level_scale is None else np.concatenate((context, _ONE))

    def _costs(self, learned: FloatArray, announced: FloatArray | None) -> FloatArray:
        """Return expected costs (..., K, m) from the belief's outputs and the announced costs."""
        if announced is None:
            return learned
        if not self.learn_costs:
            return announced
        return np.asarray(announced * np.maximum(1.0 + learned, SMALLEST_RATIO))

    def _explored(self, probabilities: FloatArray, request: ChoiceRequest) -> FloatArray:
        """Return the probabilities mixed with a share `exploration`/√t of all allowed actions."""
        if not self.exploration:
            return probabilities
        share, allowed = min(1.0, self.exploration / np.sqrt(request.round)), request.allowed
        return np.asarray((1 - share) * probabilities + share * (allowed / allowed.sum()))


def _ratios(paid: list[float], choice: OpenChoice, action: int, setting: Setting) -> list[float] | None:
    """Return paid/announced of each budget, or None if a cost is unknown or 0."""
    if choice.counted is None:
        return None
    announced = (choice.counted[action] / setting.unit).tolist()
    if 0.0 in paid or not min(announced) > 0:
        return None
    return [abs(cost) / price for cost, price in zip(paid, announced, strict=True)]


@dataclass(frozen=True)
class ThompsonSampling(_Linear):
    r"""Try actions in proportion to the chance that they are best: the usual choice for a router.

    This is linear Thompson sampling. It plays the action that is best under weights drawn from the belief.

    The K mean rewards at x are drawn *jointly* from N(x·w, v² xᵀPx), with the covariance that the shared weights give
    them. `draws` samples are taken. p(a) is the share of samples in which a has the best payoff, and the action is
    drawn from p. That is the same law as one sample, and the probability given the samples is known exactly, as
    off-policy estimates need it. With probability `exploration`/√t any allowed action is played.

    Parameters
    ----------
    actions, features : int
        K and d.
    shared_scale, prior_scale : float
        The prior deviations s_0 of the weights that all actions share, and s_1 of the weights that each adds. Take a
        small `prior_scale` for few requests and many actions.
    noise : float
        The deviation of a reward about its mean; 0.45 for answers that are right or wrong.
    factor : float
        v. 1 is the belief's own spread, about 0.4 does better in practice, 0 is greedy.
    exploration : float
        The weight of forced exploration.
    draws : int
        The number of samples. They are common random numbers for all actions.
    prior : LinearBelief, optional
        A belief from another stream, or after labels, in place of the default prior.
    level_scale : float, optional
        The prior deviation of each action's level. If it is given, a constant is added to the features. All actions
        share a vague level, so that a new action is expected to be like the others.
    drift : float
        The deviation by which each level moves from one request to the next. Actions that are not played become
        uncertain again and are tried again.
    learn_costs : bool
        Take announced costs as a prior: paid/announced is learned with the same features, and expected costs are used
        in place of announced ones.
    learn_noise : bool
        Learn the deviation of each action's rewards; it begins at 0.45. `noise` then is the unit of the prior only.
    window : int
        The number of settled requests to remember, for `PlannedPrice`.
    widen : bool
        Draw with v = 1 where exploring costs no money that is needed: if all prices are 0, with probability u, the part
        of the money for the first t requests that is unspent, and only to prefer a more expensive action.

    Notes
    -----
    **Why some draws are exact.** With v < 1 a good action that begins badly may stay unplayed for about T requests with
    a probability of T^(−v²): narrow draws have linear regret in general (Phan, Abbasi-Yadkori and Domke 2019). Draws
    with v = 1 at a positive rate, and narrow ones otherwise, are enough for independent actions (Jin, Yang, Xiao and Xu
    2023). A lock-in of this kind leaves money unspent, because the better action costs more. Then a dual that plans
    with the belief has the price 0, and u stays positive. A rule whose money is needed keeps its narrow draws.

    No bound: no theorem that we know covers a factor below √d·ln T. The budget does not depend on it.
    """

    factor: float = 0.4
    draws: int = 32
    widen: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.validate_fields(self, validate.non_negative_scalar, "factor")
        validate.count("draws", self.draws)

    def weigh(self, state: LinearState, request: ChoiceRequest, rng: np.random.Generator) -> FloatArray:
        x = self._features(request.context)
        expected, spread = state.belief.rescaled(x).forecast(x)
        costs = self._costs(expected[1:].T, request.costs)
        payoff = np.where(request.allowed, expected[0] - costs @ request.prices, -np.inf)
        drawn = self.noise * (rng.standard_normal((self.draws, self.actions)) @ covariance_root(spread).T)
        best = (payoff + self.factor * drawn).argmax(axis=1)
        wins = np.bincount(best, minlength=self.actions)
        if self.widen and request.unspent > 0:
            exact, total = (payoff + drawn).argmax(axis=1), costs.sum(axis=1)
            preferred = np.where(total[exact] > total[best], exact, best)
            wins = (1 - request.unspent) * wins + request.unspent * np.bincount(preferred, minlength=self.actions)
        return self._explored(wins / self.draws, request)


@dataclass(frozen=True)
class LinearUCB(_Linear):
    r"""Try the action that could be best, given how uncertain each one is.

    It plays the largest payoff within the confidence bounds of the belief.

    Chu et al. (2011); Agrawal and Devanur (2016) with budgets.

    .. math::

        a_t = \arg\max_a\; x·w_{r,a} + β e_a − \sum_i λ_i (x·w_{i,a} − β e_a), \qquad
        e_a = \text{noise}\,\sqrt{x^T P_{aa} x}

    The width of the costs counts only if they are not announced.

    **Regret**, with probability 1 − δ, a ridge regression for each action (`shared_scale` = 0), ‖x‖ ≤ 1 and ‖w‖ ≤ s.
    With p = `prior_scale` the estimates are within β e of the truth for β = s/p + √(2 ln((m+1)K/δ) + d ln(1 +
    T p²/(d noise²))) · (1/2)/noise, since outcomes in [0, 1] are ½-sub-Gaussian. So

        E_P ≤ 2β(1 + M·[costs learned]) Σ e_t + δT·range,   Σ e_t ≤ noise √(2 K d T max(1, p²/noise²) ln(1 + T
        p²/(K d noise²))).

    The proof is in docs/proofs/decisions.md.

    Parameters
    ----------
    actions, features : int
        K and d.
    shared_scale, prior_scale : float
        The prior deviations of the weights that all actions share, and of the weights that each adds.
    noise : float
        The deviation of a reward about its mean.
    exploration : float
        The weight of forced exploration: with probability `exploration`/√t any allowed action is played.
    prior : LinearBelief, optional
        A belief from another stream, or after labels, in place of the default prior.
    level_scale, drift, learn_costs, learn_noise, window : float, bool, int
        As in `ThompsonSampling`.
    width : float
        β. The theorem's is `theory_width`; about 1 does better in practice.
    """

    width: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.validate_fields(self, validate.non_negative_scalar, "width")

    def weigh(self, state: LinearState, request: ChoiceRequest, rng: np.random.Generator) -> FloatArray:
        x = self._features(request.context)
        expected, spread = state.belief.rescaled(x).forecast(x)
        bonus = self.width * self.noise * np.sqrt(np.maximum(np.diagonal(spread), 0.0))
        # The lowest plausible cost if none is announced; the sign in σĉ turns a floor's the other way.
        costs = self._costs(expected[1:].T - bonus[:, None], request.costs)
        payoff = expected[0] + bonus - costs @ request.prices
        best = np.where(request.allowed, payoff, -np.inf).argmax()
        return self._explored(np.bincount([best], minlength=self.actions).astype(np.float64), request)

    def theory_width(self, setting: Setting, *, norm: float = 1.0, delta: float = 0.05) -> float:
        """Return the β of the theorem for weights of norm at most `norm`."""
        outcomes = (setting.resources + 1) * self.actions
        growth = self.features * np.log1p(setting.rounds * self.prior_scale**2 / (self.features * self.noise**2))
        return float(norm / self.prior_scale + 0.5 / self.noise * np.sqrt(2 * np.log(outcomes / delta) + growth))

    def regret(self, setting: Setting, *, known_costs: bool, norm: float = 1.0, delta: float = 0.05) -> float:
        if self.shared_scale or self.exploration:
            raise InputError(
                "shared_scale",
                "is above 0, or exploration is forced. The theorem covers neither",
                "Make the primal with shared_scale=0 and exploration=0",
            )
        if self.width < self.theory_width(setting, norm=norm, delta=delta) * (1 - 1e-12):
            raise InputError(
                "width", f"{self.width:g} is smaller than the theorem's width", "Use theory_width(setting)"
            )
        T, ratio = setting.rounds, self.prior_scale**2 / self.noise**2
        size = self.actions * self.features
        widths = self.noise * np.sqrt(2 * size * T * max(1.0, ratio) * np.log1p(T * ratio / size))
        factor = 1.0 if known_costs else 1.0 + setting.radius
        return float(2 * self.width * factor * widths + delta * T * setting.payoff_range)
