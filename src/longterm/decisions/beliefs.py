r"""Linear beliefs: what the outcomes of K actions are expected to be, given the features of a request.

Outcome o of action a is ⟨x, w_{o,a}⟩ + noise, with w_{o,a} = shared + own_a a priori: covariance s_0² + s_1² 1{a =
b} between actions, features independent. In units of the noise's deviation the posterior is, after (x, a, y),

    q = 1 + xᵀ P_{aa} x,    W += P_{·a} x (y − ⟨x, w_a⟩)/q,    P −= (P_{·a} x)(P_{·a} x)ᵀ/q,

a rank-one step of (Kd)² multiplications. s_0 = 0 is a ridge regression for each action. All outcomes share P.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dger

from longterm._arrays import FloatArray


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
