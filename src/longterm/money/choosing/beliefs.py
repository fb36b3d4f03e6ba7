"""Gaussian beliefs about linear outcomes of actions.

Outcome o of action a is ⟨x, w_{o,a}⟩ + noise. A priori w_{o,a} = u_o + v_{o,a}: all actions share the weights u, and v
belongs to one action. Features are independent, with variances s_0² of u and s_1² of v, in units of the noise's
variance. All outcomes share the covariances.

**Structure.** Given u, what is known of one action says nothing about another. So the posterior is, exactly,

    w_a | u ~ N(h_a + G_a u, C_a) independently,    u ~ N(μ, S),

with h = 0, G_a = I, C_a = diag(s_1²), μ = 0, S = diag(s_0²) a priori. After an outcome y of action a at x, with a
noise of variance σ², let k = C_a x, z = G_aᵀ x, q = σ² + xᵀk, r = q + zᵀSz and e = y − ⟨x, h_a⟩. Then

    C_a −= kkᵀ/q,   G_a −= kzᵀ/q,   h_a += k e/q,      S −= (Sz)(Sz)ᵀ/r,   μ += Sz (e − ⟨z, μ⟩)/r.

These are the Kalman filter's equations for w_a given u, and for u with the noise q. One outcome costs about 3d²
multiplications and touches no other action. The mean of w_a is h_a + G_a μ, and the covariance of w_a and w_b is
G_a S G_bᵀ + C_a 1{a = b}. If s_0 = 0 this is a ridge regression for each action.

**Large features.** A feature above `LARGEST_FEATURE` is divided by a power of two that brings it below, and the prior
refers to the divided feature. Without that, a time stamp beside a constant makes C singular in floating point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf

from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.money.budgets import LARGEST_STORED

LARGEST_FEATURE = 64.0
DRIFT_ROUNDS = 16
LEAST_SHARE = 1e-12
"""A shared variance of 0 counts as this part of the own one where its inverse is needed."""


class Forecast(NamedTuple):
    """The outcomes of one action at one context, as a belief expects them."""

    action: int
    own: FloatArray
    """xᵀ(C_a, G_a, h_a), shape (2d + outputs,)."""
    shared: FloatArray
    """zᵀ(S, μ), shape (d + outputs,)."""
    mean: FloatArray
    """Shape (outputs,)."""
    own_variance: float
    """xᵀ C_a x."""
    variance: float
    """The variance of the mean outcome, in units of the noise's variance."""


class LinearBelief(NamedTuple):
    """The posterior of the weights.

    Parameters
    ----------
    actions : array, shape (K, d, 2d + outputs)
        (C_a, G_a, h_a) side by side for each action, for scaled features.
    common : array, shape (d, d + outputs)
        (S, μ) side by side.
    scale : array, shape (d,)
        Powers of two by which features are divided.
    shared, own : array, shape (d,)
        The prior variances s_0² and s_1² of each feature's weights, in units of the noise's variance.
    round : int
        The round up to which drift has been added.
    """

    actions: FloatArray
    common: FloatArray
    scale: FloatArray
    shared: FloatArray
    own: FloatArray
    round: np.int64 = np.int64(1)

    @classmethod
    def prior(cls, actions: int, outputs: int, shared: FloatArray, own: FloatArray) -> LinearBelief:
        """Return the belief before any outcome, from the prior variances of each feature."""
        features = len(shared)
        common = np.hstack([np.diag(shared), np.zeros((features, outputs))])
        return cls(np.tile(_unseen(own, outputs), (actions, 1, 1)), common, np.ones(features), shared, own)

    @property
    def shape(self) -> tuple[int, int, int]:
        """The numbers of outcomes, actions and features."""
        return self.actions.shape[2] - 2 * len(self.scale), len(self.actions), len(self.scale)

    @property
    def mean(self) -> FloatArray:
        """The mean weights of scaled features, shape (outputs, K, d)."""
        d = len(self.scale)
        means = self.actions[:, :, 2 * d :] + self.actions[:, :, d : 2 * d] @ self.common[:, d:]
        return np.asarray(means.transpose(2, 0, 1))

    @property
    def covariance(self) -> FloatArray:
        """The covariance of all weights, shape (Kd, Kd): large, and needed by no rule."""
        _, actions, d = self.shape
        gains = self.actions[:, :, d : 2 * d].reshape(-1, d)
        whole = gains @ self.common[:, :d] @ gains.T
        for a in range(actions):
            whole[a * d : (a + 1) * d, a * d : (a + 1) * d] += self.actions[a, :, :d]
        return np.asarray(whole)

    def require_sound(self) -> None:
        """Raise a ValueError unless a belief from a file can be used."""
        if not max(np.abs(self.actions).max(), np.abs(self.common).max()) < LARGEST_STORED:
            raise ValueError("a belief holds a number that no outcome can produce")
        d = len(self.scale)
        for covariance in (*self.actions[:, :, :d], self.common[:, :d]):
            largest = np.abs(covariance).max()
            unequal = np.abs(covariance - covariance.T).max()
            if unequal > 1e-9 * largest or np.linalg.eigvalsh(covariance)[0] < -1e-6 * largest:
                raise ValueError("the covariance of a belief is not positive semidefinite")
        if self.scale.min() < 1 or np.any(np.frexp(self.scale)[0] != 0.5):
            raise ValueError("the scale of a feature is not a power of two")
        if self.shared.min() < 0 or self.own.min() <= 0 or max(self.shared.max(), self.own.max()) > LARGEST_STORED:
            raise ValueError("a prior variance is out of range")

    def rescaled(self, x: FloatArray) -> LinearBelief:
        """Return the belief with scales that suit the features x: the same object unless one is too large.

        The information of past outcomes is converted to the new scales. The prior stays the same in the new ones.
        """
        scaled = x / self.scale
        if scaled @ scaled <= LARGEST_FEATURE**2 or np.abs(scaled).max() <= LARGEST_FEATURE:
            return self
        ratio = 2.0 ** np.maximum(np.ceil(np.log2(np.maximum(np.abs(x), 1.0) / (LARGEST_FEATURE * self.scale))), 0.0)
        smaller = 1 / ratio
        both = np.outer(smaller, smaller)
        d, count = len(x), len(self.actions)
        shared = np.diag(1 / np.maximum(self.shared, LEAST_SHARE * self.own))
        own = np.diag(1 / self.own)
        # The density of all w and u is an exponential of a quadratic form with these blocks, and linear terms.
        inverse = np.linalg.inv(self.actions[:, :, :d])
        cross = inverse @ self.actions[:, :, d : 2 * d]
        linear = inverse @ self.actions[:, :, 2 * d :]
        gains = self.actions[:, :, d : 2 * d].transpose(0, 2, 1)
        common = np.linalg.inv(_at_least(self.common[:, :d], LEAST_SHARE * self.own))
        rest = common @ self.common[:, d:] - (gains @ linear).sum(axis=0)
        form = common + (gains @ cross).sum(axis=0)
        # What the prior gave stays. What outcomes added is divided by the ratios.
        inverse, cross = own + (inverse - own) * both, own + (cross - own) * both
        form = shared + count * own + (form - shared - count * own) * both
        covariance = np.linalg.inv(inverse)
        covariance = (covariance + covariance.transpose(0, 2, 1)) / 2
        linear, rest = linear * smaller[:, None], rest * smaller[:, None]
        gain, level = covariance @ cross, covariance @ linear
        wide = np.linalg.inv(form - (cross.transpose(0, 2, 1) @ gain).sum(axis=0))
        wide = (wide + wide.T) / 2
        middle = wide @ (rest + (cross.transpose(0, 2, 1) @ level).sum(axis=0))
        return self._replace(
            actions=np.concatenate([covariance, gain, level], axis=2),
            common=np.hstack([wide, middle]),
            scale=self.scale * ratio,
        )

    def drifted(self, variance: float, round: int) -> LinearBelief:
        """Return the belief in a later round if the own weight of the last feature of each action is a random walk.

        It gains `variance` in each round, up to its prior variance. The gain is added every `DRIFT_ROUNDS` rounds.
        """
        if variance == 0 or round < self.round + DRIFT_ROUNDS:
            return self
        last = len(self.scale) - 1
        actions = self.actions.copy()
        level = actions[:, last, last]
        most = np.maximum(level, self.shared[-1] + self.own[-1])
        actions[:, last, last] = np.minimum(level + variance * float(round - self.round), most)
        return self._replace(actions=actions, round=np.int64(round))

    def extended(self) -> LinearBelief:
        """Return the belief with one more action, of which only the shared weights are known."""
        new = _unseen(self.own, self.shape[0])
        return self._replace(actions=np.concatenate([self.actions, new[None]]))

    def expected(self, x: FloatArray) -> FloatArray:
        """Return the mean outcomes at x, shape (outputs, K)."""
        return self.forecast(x)[0]

    def spread(self, x: FloatArray) -> FloatArray:
        """Return the covariance of the K mean outcomes at x, in units of the noise's variance, shape (K, K)."""
        return self.forecast(x)[1]

    def forecast(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean outcomes at x, shape (outputs, K), and their covariance, shape (K, K)."""
        d = len(self.scale)
        x = x / self.scale
        rows = x @ self.actions
        z = rows[:, d : 2 * d]
        behind = z @ self.common
        spread = behind[:, :d] @ z.T
        spread.flat[:: len(spread) + 1] += rows[:, :d] @ x
        return np.asarray((rows[:, 2 * d :] + behind[:, d:]).T), np.asarray(spread)

    def widths(self, x: FloatArray) -> FloatArray:
        """Return the deviations of the K mean outcomes at x, in units of the noise's deviation."""
        return np.sqrt(np.maximum(np.diagonal(self.spread(x)), 0.0))

    def at(self, x: FloatArray, action: int) -> Forecast:
        """Return what is expected of one action at x, whose scales suit the belief."""
        d = len(self.scale)
        x = x / self.scale
        own = x @ self.actions[action]
        z = own[d : 2 * d]
        shared = z @ self.common
        variance = float(own[:d] @ x)
        return Forecast(action, own, shared, own[2 * d :] + shared[d:], variance, variance + float(shared[:d] @ z))

    def updated(self, x: FloatArray, action: int, outcomes: FloatArray, variance: float = 1.0) -> LinearBelief:
        """Return the belief after outcomes (outputs,) of one action at x with this multiple of the noise's variance."""
        belief = self.rescaled(x)
        return belief.after(belief.at(x, action), outcomes, variance)

    def after(self, forecast: Forecast, outcomes: FloatArray, variance: float = 1.0) -> LinearBelief:
        """Return the belief after the outcomes (outputs,) that a forecast of `at` was about."""
        action, own, shared, mean, own_variance, both = forecast
        d = len(self.scale)
        given = own.copy()
        given[2 * d :] -= outcomes
        actions = self.actions.copy()
        actions[action] -= np.multiply.outer(own[:d] / (variance + own_variance), given)
        behind = shared.copy()
        behind[d:] = mean - outcomes
        common = self.common - np.multiply.outer(shared[:d] / (variance + both), behind)
        return self._replace(actions=actions, common=common)


def _unseen(own: FloatArray, outputs: int) -> FloatArray:
    """Return (C, G, h) of an action before any outcome."""
    features = len(own)
    return np.asarray(np.hstack([np.diag(own), np.eye(features), np.zeros((features, outputs))]))


def _at_least(covariance: FloatArray, variances: FloatArray) -> FloatArray:
    """Return a covariance that can be inverted."""
    return np.asarray(covariance + np.diag(np.where(np.diagonal(covariance) > 0, 0.0, variances)))


def covariance_root(spread: FloatArray) -> FloatArray:
    """Return a square root of a covariance matrix that may be singular, or slightly indefinite by rounding."""
    shifted = spread.copy()
    shifted.flat[:: len(shifted) + 1] += 1e-12 * (1.0 + float(shifted.trace()))
    root, status = dpotrf(shifted, lower=1, clean=1)
    if status == 0:
        return np.asarray(root, dtype=np.float64)
    values, vectors = np.linalg.eigh(shifted)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)), dtype=np.float64)


def require_features(context: FloatArray, features: int, round: int) -> None:
    """Raise an InputError unless the context has this many features."""
    if context.shape != (features,):
        raise InputError(
            "context",
            f"has shape {context.shape}, but this rule was made for shape ({features},)",
            "Give one number for each feature of the request",
            round=round,
        )
