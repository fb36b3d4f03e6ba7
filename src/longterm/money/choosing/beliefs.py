"""Gaussian beliefs about linear outcomes of actions.

Outcome o of action a is ⟨x, w_{o,a}⟩ + noise. A priori w_{o,a} = shared + own_a: the covariance between actions a and b
is s_0² + s_1² 1{a = b}, and features are independent. In units of the noise's variance the posterior after (x, a, y) is

    q = 1 + xᵀ P_{aa} x,    W += P_{·a} x (y − ⟨x, w_a⟩)/q,    P −= (P_{·a} x)(P_{·a} x)ᵀ/q,

a rank-one step of (Kd)² multiplications. s_0 = 0 is a ridge regression for each action. All outcomes share P.

**Large features.** A feature above `LARGEST_FEATURE` is divided by a power of two that brings it below, and the prior
refers to the divided feature. Without that, a time stamp beside a constant makes P singular in floating point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dpotrf

from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.money.budgets import LARGEST_STORED

LARGEST_FEATURE = 64.0
DRIFT_ROUNDS = 16


class LinearBelief(NamedTuple):
    """The posterior of the weights.

    Parameters
    ----------
    mean : array, shape (outputs, K, d)
        Of the weights of scaled features, for each outcome and action.
    covariance : array, shape (Kd, Kd)
        P, in units of the noise's variance; the same for every outcome.
    scale : array, shape (d,)
        Powers of two by which features are divided.
    shared, own : array, shape (d,)
        The prior variances s_0² and s_1² of each feature's weights, in units of the noise's variance.
    round : int
        The round up to which drift has been added.
    """

    mean: FloatArray
    covariance: FloatArray
    scale: FloatArray
    shared: FloatArray
    own: FloatArray
    round: np.int64 = np.int64(1)

    @classmethod
    def prior(cls, actions: int, outputs: int, shared: FloatArray, own: FloatArray) -> LinearBelief:
        """Return the belief before any outcome, from the prior variances of each feature."""
        features = len(shared)
        zero = np.zeros((outputs, actions, features))
        return cls(zero, _by_feature(actions, shared, own), np.ones(features), shared, own)

    def require_sound(self) -> None:
        """Raise a ValueError unless a belief from a file can be used."""
        P = self.covariance
        largest = np.abs(P).max()
        if not (largest < LARGEST_STORED and np.abs(self.mean).max() < LARGEST_STORED):
            raise ValueError("a belief holds a number that no outcome leads to")
        if np.abs(P - P.T).max() > 1e-9 * largest or np.linalg.eigvalsh(P)[0] < -1e-6 * largest:
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
        outputs, actions, _ = self.mean.shape
        # The inverse of s_0² 11ᵀ + s_1² I is I/s_1² − s_0²/(s_1² (s_1² + K s_0²)) 11ᵀ.
        pooled = -self.shared / (self.own * (self.own + actions * self.shared))
        prior = _by_feature(actions, pooled, 1 / self.own)
        smaller = np.tile(1 / ratio, actions)
        information = np.linalg.inv(self.covariance)
        sums = self.mean.reshape(outputs, -1) @ information * smaller
        covariance = np.linalg.inv(prior + (information - prior) * np.outer(smaller, smaller))
        covariance = (covariance + covariance.T) / 2
        mean = (sums @ covariance).reshape(self.mean.shape)
        return self._replace(mean=mean, covariance=covariance, scale=self.scale * ratio)

    def drifted(self, variance: float, round: int) -> LinearBelief:
        """Return the belief in a later round if the own weight of the last feature of each action is a random walk.

        It gains `variance` in each round, up to its prior variance. The gain is added every `DRIFT_ROUNDS` rounds.
        """
        if variance == 0 or round < self.round + DRIFT_ROUNDS:
            return self
        _, actions, features = self.mean.shape
        last = np.arange(actions) * features + features - 1
        covariance = self.covariance.copy()
        level = covariance[last, last]
        most = np.maximum(level, self.shared[-1] + self.own[-1])
        covariance[last, last] = np.minimum(level + variance * float(round - self.round), most)
        return self._replace(covariance=covariance, round=np.int64(round))

    def extended(self) -> LinearBelief:
        """Return the belief with one more action, of which only the shared weights are known.

        Given the others' weights, a weight of the new action has the mean c Σ_a w_a with c = s_0²/(s_1² + K s_0²).
        """
        actions = self.mean.shape[1]
        c = self.shared / (self.own + actions * self.shared)
        rows = np.tile(np.diag(c), actions)  # (d, Kd): the new weights as a function of the others
        between = rows @ self.covariance
        rest = np.diag(self.shared + self.own - actions * c * self.shared)
        block = rest + between @ rows.T
        covariance = np.block([[self.covariance, between.T], [between, (block + block.T) / 2]])
        mean = np.concatenate([self.mean, (c * self.mean.sum(axis=1))[:, None]], axis=1)
        return self._replace(mean=mean, covariance=covariance)

    def expected(self, x: FloatArray) -> FloatArray:
        """Return the mean outcomes at x, shape (outputs, K)."""
        return self.mean @ (x / self.scale)

    def spread(self, x: FloatArray) -> FloatArray:
        """Return the covariance of the K mean outcomes at x, in units of the noise's variance, shape (K, K)."""
        _, actions, features = self.mean.shape
        x = x / self.scale
        half = self.covariance.reshape(-1, features) @ x  # (K d K,)
        return x @ half.reshape(actions, features, actions)

    def widths(self, x: FloatArray) -> FloatArray:
        """Return the deviations of the K mean outcomes at x, in units of the noise's deviation."""
        return np.sqrt(np.maximum(np.diagonal(self.spread(x)), 0.0))

    def variance(self, x: FloatArray, action: int) -> float:
        """Return the variance of one action's mean outcome at x, in units of the noise's variance."""
        features = self.mean.shape[2]
        part, x = slice(action * features, (action + 1) * features), x / self.scale
        return float(x @ self.covariance[part, part] @ x)

    def updated(self, x: FloatArray, action: int, outcomes: FloatArray, variance: float = 1.0) -> LinearBelief:
        """Return the belief after outcomes (outputs,) of one action at x with this multiple of the noise's variance."""
        belief = self.rescaled(x)
        outputs, actions, features = belief.mean.shape
        x, start = x / belief.scale, action * features
        direction = belief.covariance[:, start : start + features] @ x
        scale = variance + float(x @ direction[start : start + features])
        error = outcomes - belief.mean[:, action] @ x
        step = (error / scale)[:, None] * direction
        return belief._replace(
            mean=belief.mean + step.reshape(outputs, actions, features),
            # dger makes one copy and one pass. P is symmetric, so its transpose is P.
            covariance=np.asarray(dger(-1.0 / scale, direction, direction, a=belief.covariance.T).T),
        )


def _by_feature(actions: int, shared: FloatArray, own: FloatArray) -> FloatArray:
    """Return the (Kd, Kd) matrix with shared_f + own_f 1{a = b} between the weights of feature f."""
    pooled = np.kron(np.ones((actions, actions)), np.diag(shared))
    return np.asarray(pooled + np.kron(np.eye(actions), np.diag(own)), dtype=np.float64)


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
            f"has shape {context.shape}, this rule was made for ({features},)",
            "Give the features of the request, one number each",
            round=round,
        )
