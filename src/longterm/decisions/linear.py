"""Primals on a linear belief: Thompson sampling and optimism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.decisions.beliefs import LinearBelief, covariance_root, require_features
from longterm.decisions.duals import Setting
from longterm.decisions.primals import ActionOutcomes, OpenChoice, Prediction, Primal, Request
from longterm.decisions.recent import RecentRequests
from longterm.errors import InputError

SHARED_LEVEL = 1.0
"""The prior deviation of the level that all actions share: rewards are in [0, 1]."""
LARGEST_LOG_RATIO = 12.0
_ONE = np.ones(1)
LARGEST_RATIO, RATIO, RATIO_WEIGHT = 5.0, 1.1, 20.0
"""The largest ratio of realised to predicted costs that counts, the first guess of their mean, and its weight."""
VARIANCE, VARIANCE_WEIGHT, LEAST_VARIANCE = 0.2, 5.0, 0.1
"""The first guess of the variance of rewards (answers are right or wrong), its weight, the least multiple of noise²."""
MEMORY = 500.0
"""The number of terms that running means remember."""
NOISY = 1.5
"""Actions whose rewards deviate by more than this multiple of the noise are explored more, up to twice as much."""


class RunningMeans(NamedTuple):
    """Means of recent numbers, one for each place. Old numbers are forgotten after about 500."""

    total: FloatArray
    """The sums, shape (n,)."""
    weight: FloatArray
    """The numbers of terms, shape (n,)."""

    @classmethod
    def prior(cls, size: int, mean: float, weight: float) -> RunningMeans:
        """Return a first guess with the weight of so many terms."""
        return cls(np.full(size, mean * weight), np.full(size, weight))

    @property
    def mean(self) -> FloatArray:
        """The means."""
        return self.total / self.weight

    def updated(self, number: FloatArray | float, place: int | slice) -> RunningMeans:
        """Return the means after one more term at one place, or at all."""
        total, weight = self.total.copy(), self.weight.copy()
        keep = 1.0 - (weight[place] >= MEMORY) / MEMORY
        total[place], weight[place] = keep * total[place] + number, keep * weight[place] + 1.0
        return RunningMeans(total, weight)

    def extended(self, mean: float, weight: float) -> RunningMeans:
        """Return the means with one more place."""
        return RunningMeans(np.append(self.total, mean * weight), np.append(self.weight, weight))

    def require_sound(self) -> None:
        """Raise a ValueError unless means from storage can be used."""
        if not (self.total.min() > 0 and self.weight.min() > 0 and max(self.total.max(), self.weight.max()) < np.inf):
            raise ValueError("a running mean is not positive")


class LinearState(NamedTuple):
    """The belief of a linear primal, what corrects it, and recent requests."""

    belief: LinearBelief
    ratios: RunningMeans
    """Realised over predicted costs of each budget, which corrects for the skewness of costs."""
    variances: RunningMeans
    """The variance of each action's rewards about their predictions, in units of noise²."""
    recent: RecentRequests


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
            raise InputError("drift", "is that of the levels, and there are none", "Give level_scale=0.15, for example")

    def fitted(self, setting: Setting) -> Self:
        return self

    def init(self, setting: Setting) -> LinearState:
        outputs, length = 1 + setting.resources, self.features + (self.level_scale is not None)
        belief = self.prior
        if belief is None:
            own, shared = np.full(length, self.prior_scale**2), np.full(length, self.shared_scale**2)
            if self.level_scale is not None:
                own[-1], shared[-1] = self.level_scale**2, SHARED_LEVEL**2
            belief = LinearBelief.prior(self.actions, outputs, shared / self.noise**2, own / self.noise**2)
        expected = (outputs, self.actions, length)
        if belief.mean.shape != expected:
            raise InputError(
                "prior",
                f"is a belief of shape {belief.mean.shape}, this problem needs {expected}",
                "Give a belief from a problem with the same actions, features and budgets",
            )
        recent = RecentRequests.empty(self.window, self.features + self.actions if self.window else 0)
        ratios = RunningMeans.prior(setting.resources, RATIO, RATIO_WEIGHT)
        variances = RunningMeans.prior(self.actions, self._first_variance, VARIANCE_WEIGHT)
        return LinearState(belief._replace(round=np.int64(1)), ratios, variances, recent)

    @property
    def _first_variance(self) -> float:
        return VARIANCE / self.noise**2

    def extended(self, state: LinearState) -> LinearState:
        recent = state.recent.extended() if self.window else state.recent
        variances = state.variances.extended(self._first_variance, VARIANCE_WEIGHT)
        return state._replace(belief=state.belief.extended(), variances=variances, recent=recent)

    def learn(self, state: LinearState, choice: OpenChoice, outcomes: ActionOutcomes, setting: Setting) -> LinearState:
        x, ratios, variances = self._features(choice.context), state.ratios, state.variances
        belief = state.belief.rescaled(x).drifted((self.drift / self.noise) ** 2, choice.round)
        for action in outcomes.seen.nonzero()[0].tolist():
            costs = outcomes.costs[action]
            if self.learn_costs:
                announced = None if choice.counted is None else choice.counted[action] / setting.unit
                predicted = belief.mean[1:, action] @ (x / belief.scale)
                costs, ratio = _log_ratio(np.abs(costs), announced, predicted)
                if ratio is not None:
                    ratios = ratios.updated(np.minimum(ratio, LARGEST_RATIO), slice(None))
            variance = 1.0
            if self.learn_noise:
                # The residual before the update times that after it has the variance as its mean.
                variance = max(float(variances.total[action] / variances.weight[action]), LEAST_VARIANCE)
                error = float(outcomes.rewards[action] - belief.mean[0, action] @ (x / belief.scale)) / self.noise
                square = error**2 * variance / (variance + belief.variance(x, action))
                variances = variances.updated(square, action)
            numbers = np.concatenate((outcomes.rewards[action : action + 1], costs))
            belief = belief.updated(x, action, numbers, variance)
        recent = state.recent
        if self.window and choice.counted is not None:
            recent = recent.added(choice.context, choice.counted[:, 0] / setting.unit[0])
        return LinearState(belief, ratios, variances, recent)

    def predict_recent(self, state: LinearState, request: Request) -> Prediction:
        if not self.window or request.costs is None:
            what = "needs recent requests with announced costs"
            raise InputError("dual", what, "Give the primal window=512, and act() costs=", round=request.round)
        contexts, costs = state.recent.rows(request.context, request.costs[:, 0])
        return self.predict(state, contexts, costs[:, :, None])

    def predict(self, state: LinearState, contexts: FloatArray, costs: FloatArray | None) -> Prediction:
        """Return the expected outcomes for contexts (rows, d) and announced costs (rows, K, m)."""
        if self.level_scale is not None:
            contexts = np.concatenate([contexts, np.ones((len(contexts), 1))], axis=1)
        outcomes = (contexts / state.belief.scale) @ state.belief.mean.transpose(0, 2, 1)  # (outputs, rows, K)
        return Prediction(outcomes[0], self._costs(state, outcomes[1:].transpose(1, 2, 0), costs))

    def require_context(self, context: FloatArray, round: int) -> None:
        require_features(context, self.features, round)

    def _features(self, context: FloatArray) -> FloatArray:
        """Return the context, with a constant behind it if actions have levels."""
        return context if self.level_scale is None else np.concatenate((context, _ONE))

    def _costs(self, state: LinearState, learned: FloatArray, announced: FloatArray | None) -> FloatArray:
        """Return expected costs (..., K, m) from the belief's outputs and the announced costs."""
        if announced is None:
            return learned
        if not self.learn_costs:
            return announced
        return np.asarray(announced * np.exp(_clip(learned)) * state.ratios.mean)

    def _explored(self, probabilities: FloatArray, request: Request) -> FloatArray:
        """Return the probabilities mixed with a share `exploration`/√t of all allowed actions."""
        if not self.exploration:
            return probabilities
        share, allowed = min(1.0, self.exploration / np.sqrt(request.round)), request.allowed
        return np.asarray((1 - share) * probabilities + share * (allowed / allowed.sum()))


def _clip(logs: FloatArray) -> FloatArray:
    return np.minimum(np.maximum(logs, -LARGEST_LOG_RATIO), LARGEST_LOG_RATIO)


def _log_ratio(
    paid: FloatArray, announced: FloatArray | None, predicted: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    """Return ln(paid/announced) and paid/predicted, or the prediction and None if a cost is unknown or 0."""
    if announced is None or not min(*announced.tolist(), *paid.tolist()) > 0:
        return predicted, None
    logs = _clip(np.log(paid) - np.log(announced))
    return logs, np.exp(logs - _clip(predicted))


@dataclass(frozen=True)
class ThompsonSampling(_Linear):
    r"""Joint linear Thompson sampling: play the action that is best under weights drawn from the belief.

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
        Take announced costs as a prior: the logarithm of paid/announced is learned with the same features, and expected
        costs are used in place of announced ones.
    learn_noise : bool
        Learn the deviation of each action's rewards; it begins at 0.45. `noise` then is the unit of the prior only, and
        `factor` is up to twice as large for actions whose rewards deviate by more than 1.5 times `noise`.
    window : int
        The number of settled requests to remember, for `PlannedPrice`.

    Notes
    -----
    No bound: no theorem that we know covers a factor below √d·ln T. The budget does not depend on it.
    """

    factor: float = 0.4
    draws: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.validate_fields(self, validate.non_negative_scalar, "factor")
        validate.count("draws", self.draws)

    def weigh(self, state: LinearState, request: Request, rng: np.random.Generator) -> FloatArray:
        x = self._features(request.context)
        belief = state.belief.rescaled(x)
        expected = belief.expected(x)
        costs = self._costs(state, expected[1:].T, request.costs)
        payoff = np.where(request.allowed, expected[0] - costs @ request.prices, -np.inf)
        noise = rng.standard_normal((self.draws, self.actions))
        scale = self.factor * self.noise
        if scale > 0:
            draws = scale * (noise @ covariance_root(belief.spread(x)).T)
            payoff = payoff + (draws * self._caution(state) if self.learn_noise else draws)
            wins = np.bincount(payoff.argmax(axis=1), minlength=self.actions) / self.draws
        else:
            wins = np.bincount([payoff.argmax()], minlength=self.actions).astype(np.float64)
        return self._explored(wins, request)

    def _caution(self, state: LinearState) -> list[float]:
        """Return the multiples of the factor for each action: 2 for noisy rewards, which mislead easily, else 1."""
        means = zip(state.variances.total.tolist(), state.variances.weight.tolist(), strict=True)
        return [min(max(math.sqrt(total / weight) / NOISY, 1.0), 2.0) for total, weight in means]


@dataclass(frozen=True)
class LinearUCB(_Linear):
    r"""Optimism: play the largest payoff within the confidence bounds of the belief.

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

    *Proof.* On the event the payoff's optimism makes the regret of a round at most 2β(1+M)e_t. Then Cauchy–Schwarz and
    Σ min(e²/noise², 1)·… ≤ 2 ln det. The union is over K regressions of m + 1 outcomes. ∎

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
    level_scale, drift : float, optional
        As in `ThompsonSampling`.
    learn_costs, learn_noise : bool
        As in `ThompsonSampling`.
    window : int
        As in `ThompsonSampling`.
    width : float
        β. The theorem's is `theory_width`; about 1 does better in practice.
    """

    width: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.validate_fields(self, validate.non_negative_scalar, "width")

    def weigh(self, state: LinearState, request: Request, rng: np.random.Generator) -> FloatArray:
        x = self._features(request.context)
        belief = state.belief.rescaled(x)
        expected = belief.expected(x)
        bonus = self.width * self.noise * belief.widths(x)
        # The lowest plausible cost if none is announced; the sign in σĉ turns a floor's the other way.
        costs = self._costs(state, expected[1:].T - bonus[:, None], request.costs)
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
                "the theorem is for separate weights without forced exploration",
                "Take shared_scale=0, exploration=0",
            )
        if self.width < self.theory_width(setting, norm=norm, delta=delta) * (1 - 1e-12):
            raise InputError("width", f"{self.width:g} is below the theorem's", "Take theory_width(setting)")
        T, ratio = setting.rounds, self.prior_scale**2 / self.noise**2
        size = self.actions * self.features
        widths = self.noise * np.sqrt(2 * size * T * max(1.0, ratio) * np.log1p(T * ratio / size))
        factor = 1.0 if known_costs else 1.0 + setting.radius
        return float(2 * self.width * factor * widths + delta * T * setting.payoff_range)
