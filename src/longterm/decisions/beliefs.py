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

from longterm._arrays import FloatArray
from longterm.decisions.budgets import LARGEST_STORED
from longterm.errors import InputError

LARGEST_FEATURE = 64.0


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
    precision : array, shape (K, K)
        The prior precision of one feature's weights, in units of the noise's.
    """

    mean: FloatArray
    covariance: FloatArray
    scale: FloatArray
    precision: FloatArray

    @classmethod
    def prior(
        cls, actions: int, features: int, outputs: int, shared_scale: float, prior_scale: float, noise: float
    ) -> LinearBelief:
        """Return the belief before any outcome; `prior_scale` is s_1, the deviation of each action's own weights."""
        between = (np.full((actions, actions), shared_scale**2) + prior_scale**2 * np.eye(actions)) / noise**2
        return cls(
            np.zeros((outputs, actions, features)),
            np.asarray(np.kron(between, np.eye(features)), dtype=np.float64),
            np.ones(features),
            np.asarray(np.linalg.inv(between), dtype=np.float64),
        )

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

    def rescaled(self, x: FloatArray) -> LinearBelief:
        """Return the belief with scales that suit the features x: the same object unless one is too large.

        The information of past outcomes is converted to the new scales. The prior stays the same in the new ones.
        """
        if np.abs(x / self.scale).max() <= LARGEST_FEATURE:
            return self
        ratio = 2.0 ** np.maximum(np.ceil(np.log2(np.maximum(np.abs(x), 1.0) / (LARGEST_FEATURE * self.scale))), 0.0)
        outputs, actions, features = self.mean.shape
        prior = np.kron(self.precision, np.eye(features))
        smaller = np.tile(1 / ratio, actions)
        information = np.linalg.inv(self.covariance)
        sums = self.mean.reshape(outputs, -1) @ information * smaller
        covariance = np.linalg.inv(prior + (information - prior) * np.outer(smaller, smaller))
        covariance = (covariance + covariance.T) / 2
        mean = (sums @ covariance).reshape(self.mean.shape)
        return LinearBelief(mean, covariance, self.scale * ratio, self.precision)

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

    def updated(self, x: FloatArray, action: int, outcomes: FloatArray) -> LinearBelief:
        """Return the belief after outcomes (outputs,) of one action at x."""
        belief = self.rescaled(x)
        outputs, actions, features = belief.mean.shape
        x, start = x / belief.scale, action * features
        direction = belief.covariance[:, start : start + features] @ x
        scale = 1.0 + float(x @ direction[start : start + features])
        error = outcomes - belief.mean[:, action] @ x
        step = (error / scale)[:, None] * direction
        return belief._replace(
            mean=belief.mean + step.reshape(outputs, actions, features),
            # dger makes one copy and one pass. P is symmetric, so its transpose is P.
            covariance=np.asarray(dger(-1.0 / scale, direction, direction, a=belief.covariance.T).T),
        )


def covariance_root(spread: FloatArray) -> FloatArray:
    """Return a square root of a covariance matrix that may be singular, or slightly indefinite by rounding."""
    even = (spread + spread.T) / 2
    try:
        tiny = 1e-12 * (1.0 + float(np.trace(even)))
        return np.asarray(np.linalg.cholesky(even + tiny * np.eye(len(even))), dtype=np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(even)
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
