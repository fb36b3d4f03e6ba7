"""A round of a mixture of scales, compiled: what the scales owe for it, and where their leaders are then.

As a rule p stays as it is: scales pay at the end of a block of rounds (`mixture`), and in between the leader follows
what they owe to first order. While Λl2 = 0 every s_k is R_k times one number, and no lane is looked at.
"""

from __future__ import annotations

import math

from longterm.learners._scale_mixture import LONGEST_BLOCK, SCALES
from longterm.linear_model.kernels.compile import helper
from longterm.linear_model.kernels.mixture import (
    FACTOR,
    INVERSE,
    LOSS,
    OWED,
    RADIUS,
    RESIDUAL,
    SQUARES,
    owe,
    place,
    place_within,
)

LEAST_SQUARES = 1e-300
"""While Σ of the squared slopes is not above this, there is no residual."""


@helper
def owe_round(mixture, s, along, residual_along):
    """Scales owe ℓ_k = along · s_k for the round, the residual's likewise, until the block ends: b of both, and whether
    it ends now. A loss larger than any before is cut off at that one, and ends the block.
    """
    lost, residual_lost = along * s.factor, residual_along * s.residual_factor
    b, residual_b = abs(lost), abs(residual_lost)
    kept, residual_kept = cut(lost, s.clip), cut(residual_lost, s.residual_clip)
    s.owed += kept
    s.owed_squares += kept * kept
    s.residual_owed += residual_kept
    s.residual_owed_squares += residual_kept * residual_kept
    most = abs(s.owed)
    if mixture[FACTOR, 0] > 0.0:
        most = owe(mixture.ctypes.data, along if b <= s.clip else along * (s.clip / b))
    much = most > s.patience or abs(s.residual_owed) > s.residual_patience
    return b, residual_b, much or b > s.clip or residual_b > s.residual_clip or s.round & (LONGEST_BLOCK - 1) == 0


@helper
def cut(value, bound):
    """The nearest number in [−bound, bound]."""
    return min(max(value, -bound), bound)


@helper
def place_scales(mixture, s, squares, pull, norm_2):
    """s_k = min(1/(√V/R_k + Λl2), R_k/‖w‖) for the weights' scales, with V = `squares`, Λl2 = `pull`; the leader's s.

    That is Σ p_k s_k, tilted by what is owed, at most s_0; 0 while V is.
    """
    if squares == 0.0:
        return 0.0
    if pull == 0.0:
        if mixture[FACTOR, 0] > 0.0:
            forget_lanes(mixture)
        s.factor = 1.0 / math.sqrt(max(squares, norm_2))
        return min(s.mean_radius * (1.0 + s.tilt * s.owed), mixture[RADIUS, 0]) * s.factor
    if mixture[FACTOR, 0] == 0.0:
        spread_over_lanes(mixture, s)
    curvature = math.sqrt(squares)
    longest = curvature + mixture[RADIUS, SCALES - 1] * pull
    if norm_2 <= longest * longest:  # the smallest scale's leader lies in its ball, so all do: nothing waits for ‖w‖
        mean = place(mixture.ctypes.data, curvature, pull)
    else:
        mean = place_within(mixture.ctypes.data, curvature, pull, 1.0 / math.sqrt(norm_2))
    s.factor = mixture[FACTOR, SCALES - 1] * mixture[INVERSE, SCALES - 1]
    return min(mean * (1.0 + s.tilt * s.owed), mixture[FACTOR, 0])


@helper
def spread_over_lanes(mixture, s):
    """Scales are alike no longer: what they owe is now known lane by lane."""
    for k in range(SCALES):
        mixture[OWED, k] = mixture[RADIUS, k] * s.owed
        mixture[SQUARES, k] = mixture[RADIUS, k] * mixture[RADIUS, k] * s.owed_squares


@helper
def forget_lanes(mixture):
    """Scales are alike after all: a weight was tried on the way, and is not the one in force."""
    for k in range(SCALES):
        mixture[FACTOR, k] = mixture[OWED, k] = mixture[SQUARES, k] = 0.0


@helper
def place_residual(mixture, s):
    """The same for the residual's: s_j = R_j min(1/√V_b, 1/|z_b|). 0 while slopes have no squares."""
    squares = max(s.intercept_squares, s.intercept_slope * s.intercept_slope)
    s.residual_factor = 1.0 / math.sqrt(squares) if squares > LEAST_SQUARES else 0.0
    mean = s.residual_mean_radius * (1.0 + s.residual_tilt * s.residual_owed)
    return min(mean, mixture[RADIUS, RESIDUAL]) * s.residual_factor


@helper
def price(mixture, s, multiplier, l1_norm, half_squares, budget):
    """Reading A: every scale also pays λ_{t+1} g(x^k_{t+1}), the zero expert λ_{t+1} g(0)."""
    for k in range(RESIDUAL):
        factor = s.factor * mixture[RADIUS, k] if mixture[FACTOR, 0] == 0.0 and k < SCALES else mixture[FACTOR, k]
        mixture[LOSS, k] += multiplier * (factor * (l1_norm + factor * half_squares) - budget)
