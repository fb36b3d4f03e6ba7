"""Primals on a linear belief: Thompson sampling and optimism. Announced costs are used; others are learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.decisions.beliefs import LinearBelief, covariance_root, require_features
from longterm.decisions.duals import Setting
from longterm.decisions.primals import ActionOutcomes, OpenChoice, Primal, Request
from longterm.errors import InputError


@dataclass(frozen=True)
class _Linear(Primal[LinearBelief]):
    """The belief and its prior."""

    actions: int
    features: int
    shared_scale: float = 1.0
    prior_scale: float = 1.0
    noise: float = 0.45
    exploration: float = 0.0
    prior: LinearBelief | None = None

    def __post_init__(self) -> None:
        validate.count("actions", self.actions)
        validate.count("features", self.features)
        validate.validate_fields(self, validate.non_negative_scalar, "shared_scale", "exploration")
        validate.validate_fields(self, validate.positive_scalar, "prior_scale", "noise")

    def fitted(self, setting: Setting) -> Self:
        return self

    def init(self, setting: Setting) -> LinearBelief:
        expected = (1 + setting.resources, self.actions, self.features)
        if self.prior is None:
            scales = self.shared_scale, self.prior_scale, self.noise
            return LinearBelief.prior(self.actions, self.features, expected[0], *scales)
        if self.prior.mean.shape != expected:
            raise InputError(
                "prior",
                f"is a belief of shape {self.prior.mean.shape}, this problem needs {expected}",
                "Give a belief from a problem with the same actions, features and budgets",
            )
        return self.prior

    def learn(
        self, state: LinearBelief, choice: OpenChoice, outcomes: ActionOutcomes, setting: Setting
    ) -> LinearBelief:
        for action in np.flatnonzero(outcomes.seen).tolist():
            seen = np.concatenate([[outcomes.rewards[action]], outcomes.costs[action]])
            state = state.updated(choice.context, action, seen)
        return state

    def require_context(self, context: FloatArray, round: int) -> None:
        require_features(context, self.features, round)

    def _explored(self, probabilities: FloatArray, request: Request) -> FloatArray:
        """Return the probabilities mixed with a share `exploration`/√t of all allowed actions."""
        share, allowed = min(1.0, self.exploration / np.sqrt(request.round)), request.allowed
        return np.asarray((1 - share) * probabilities + share * (allowed / allowed.sum()))


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

    def weigh(self, state: LinearBelief, request: Request, rng: np.random.Generator) -> FloatArray:
        state = state.rescaled(request.context)
        expected = state.expected(request.context)
        costs = expected[1:].T if request.costs is None else request.costs
        payoff = np.where(request.allowed, expected[0] - costs @ request.prices, -np.inf)
        noise = rng.standard_normal((self.draws, self.actions))
        scale = self.factor * self.noise
        if scale > 0:
            payoff = payoff + scale * (noise @ covariance_root(state.spread(request.context)).T)
            wins = np.bincount(payoff.argmax(axis=1), minlength=self.actions) / self.draws
        else:
            wins = np.bincount([payoff.argmax()], minlength=self.actions).astype(np.float64)
        return self._explored(wins, request)


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
    width : float
        β. The theorem's is `theory_width`; about 1 does better in practice.
    """

    width: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.validate_fields(self, validate.non_negative_scalar, "width")

    def weigh(self, state: LinearBelief, request: Request, rng: np.random.Generator) -> FloatArray:
        state = state.rescaled(request.context)
        expected = state.expected(request.context)
        bonus = self.width * self.noise * state.widths(request.context)
        # The lowest plausible cost; the sign in σĉ turns a floor's the other way.
        costs = expected[1:].T - bonus[:, None] if request.costs is None else request.costs
        payoff = expected[0] + bonus - costs @ request.prices
        best = np.where(request.allowed, payoff, -np.inf).argmax()
        return self._explored(np.bincount([best], minlength=self.actions).astype(np.float64), request)

    def theory_width(self, setting: Setting, *, norm: float = 1.0, delta: float = 0.05) -> float:
        """Return the β of the theorem for weights of norm at most `norm`."""
        outcomes = (setting.resources + 1) * self.actions
        growth = self.features * np.log1p(setting.horizon * self.prior_scale**2 / (self.features * self.noise**2))
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
        T, ratio = setting.horizon, self.prior_scale**2 / self.noise**2
        size = self.actions * self.features
        widths = self.noise * np.sqrt(2 * size * T * max(1.0, ratio) * np.log1p(T * ratio / size))
        factor = 1.0 if known_costs else 1.0 + setting.radius
        return float(2 * self.width * factor * widths + delta * T * setting.payoff_range)
