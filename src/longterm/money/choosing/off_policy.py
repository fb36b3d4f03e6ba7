"""Estimate from a log what another policy would have earned."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from longterm._base import validate
from longterm.errors import InputError


class OffPolicyEstimate(NamedTuple):
    """The estimated reward per request of another policy.

    Parameters
    ----------
    value : float
        Self-normalised: Σ w r / Σ w.
    unbiased : float
        Σ w r / T; of higher variance.
    deviation : float
        The standard error of `value`.
    effective : float
        (Σ w)²/Σ w², the effective sample size.
    """

    value: float
    unbiased: float
    deviation: float
    effective: float


def off_policy(
    actions: ArrayLike, probabilities: ArrayLike, rewards: ArrayLike, policy: ArrayLike
) -> OffPolicyEstimate:
    """Weigh a log by w_t = π(a_t | x_t) / p_t.

    Parameters
    ----------
    actions, probabilities, rewards : arrays, shape (T,)
        The actions, their probabilities and their rewards. A `Choice` has the first two.
    policy : array, shape (T, K)
        The other policy's probabilities. A log carries no information about actions it could not have chosen: give
        the logging rule some `exploration`.

    Returns
    -------
    OffPolicyEstimate
        The estimates, and their standard error.

    Examples
    --------
    >>> from longterm.money.choosing.off_policy import off_policy
    >>> off_policy([0, 1, 1, 0], [0.5, 0.5, 0.5, 0.5], [0.0, 1.0, 1.0, 0.0], [[0.0, 1.0]] * 4).value
    1.0
    """
    a, p = np.asarray(actions, dtype=np.int64), validate.vector("probabilities", probabilities)
    r, other = validate.vector("rewards", rewards, len(p)), validate.matrix("policy", policy)
    if np.any(p <= 0) or a.shape != p.shape or len(other) != len(p):
        raise InputError(
            "probabilities",
            "does not have the length of actions and policy, or contains a number that is not above 0",
            "Give T numbers above 0 for T logged requests",
        )
    if np.any(a < 0) or np.any(a >= other.shape[1]):
        raise InputError(
            "actions",
            f"contain an index outside of the {other.shape[1]} actions of the policy",
            "Leave refused requests (−1) out and number the actions from 0",
        )
    weights = other[np.arange(len(a)), a] / p
    total = float(weights.sum())
    if total <= 0:
        raise InputError(
            "policy",
            "never chooses an action that the log chose, so its value cannot be estimated",
            "Record the log with some exploration",
        )
    value = float(weights @ r) / total
    return OffPolicyEstimate(
        value,
        float(weights @ r) / len(a),
        float(np.sqrt(np.sum((weights * (r - value)) ** 2))) / total,
        total**2 / float(weights @ weights),
    )
