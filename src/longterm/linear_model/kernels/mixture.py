"""A mixture of scales in one leader, compiled: `learners.MixedAFTRL`, `learners.MixedPenalisedFTRL` (`docs/scales.md`).

Every scale R_k = R/4^k has its own leader, and all of them lie on one ray: x^k = s_k w with the same w. So a scale is
one number s_k, and the mixture x_t = (Σ_k p_k s_k) w costs O(K) numbers a round and no pass over the coordinates. Its
weights p are those of a multi-scale Hedge on ℓ_k = slope · s_k ⟨u, w⟩: with b = max_k |ℓ_k|/R_k, κ = min(1, m/b),

    Q_k ← Q_k − αR_k ln(1 − κℓ_k/(αR_k)),   α ← √(4m² + c²U),   p_k = π_k exp((ν − Q_k)/(αR_k)),  ν from Σ p_k = 1.

The intercept's residual is a second mixture of the same kind, with one coordinate. Both live in the columns ("lanes")
of one small array, and each step is a loop over all lanes without branches, which LLVM turns into vector instructions:
a logarithm and two exponentials for each of 16 lanes cost less than the passes over a row of fifty numbers. Hence also
the two functions below in place of `math.exp` and `math.log`, which are called lane by lane.
"""

from __future__ import annotations

import math

import numpy as np

from longterm.linear_model.kernels.compile import helper, precise

LANES, SCALES, RESIDUAL, IDLE = 16, 8, 9, 15
"""Lanes 0 … 7: scales of the weights, 8: the weights' zero expert; 9 … 13: scales of the residual, 14: its zero."""
RADIUS, INVERSE, PRIOR, LOSS, SHARE, FACTOR, RATE, BEFORE = range(8)
"""Rows of the array: R_k, 1/R_k, ln π_k, Q_k, p_k, s_k; then room for 1/(αR_k) and the exponent of the round before."""
ROWS = 8
RATIO = 4.0
"""From one scale to the next."""
PACE = 0.5
"""c: how much of √U is in α."""
POWER, RESIDUAL_POWER = 0.5, 2.0
"""Exponents of the priors. The residual is what the offset has left over, so large ones must be earned: with ½ the
intercept moves by 2.3 at the first of four positives in 2,000 rows, with 2 by 1.3, and no loss measured was worse."""
NEVER = -1e200
"""ln π of a lane that is not in use."""
LITTLE = 1 / 16
CLOSE, MOST_STEPS = 1e-4, 60
"""Steps to ν end where one moves no exponent by more than this. That one has third order: what is left is 1e-12."""

_MAGIC = 6755399441055744.0  # 1.5 · 2^52: adding it rounds to whole numbers, and leaves them in the last bits
_LOG2E, _LN2_HIGH, _LN2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
_LOWEST = -700.0


@precise
def exponential(x):
    """The exponential of x ≤ 0, in fewer than two units of the last place; below −700 that of −700."""
    x = x if x > _LOWEST else _LOWEST  # not max(): LLVM does not make vector instructions of Numba's
    shifted = x * _LOG2E + _MAGIC
    whole = shifted - _MAGIC
    r = (x - whole * _LN2_HIGH) - whole * _LN2_LOW
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * np.int64((np.float64(shifted).view(np.int64) + np.int64(1023)) << np.int64(52)).view(np.float64)


@precise
def minus_log_of_rest(h):
    """−ln(1 − h) for |h| ≤ ½: 2 artanh(h/(2 − h)), as a series whose terms fall by nine."""
    s = h / (2.0 - h)
    q = s * s
    p = 1.0 / 33.0
    p = p * q + 1.0 / 31.0
    p = p * q + 1.0 / 29.0
    p = p * q + 1.0 / 27.0
    p = p * q + 1.0 / 25.0
    p = p * q + 1.0 / 23.0
    p = p * q + 1.0 / 21.0
    p = p * q + 1.0 / 19.0
    p = p * q + 1.0 / 17.0
    p = p * q + 1.0 / 15.0
    p = p * q + 1.0 / 13.0
    p = p * q + 1.0 / 11.0
    p = p * q + 1.0 / 9.0
    p = p * q + 1.0 / 7.0
    p = p * q + 1.0 / 5.0
    p = p * q + 1.0 / 3.0
    p = p * q + 1.0
    return 2.0 * s * p


@precise
def minus_log_of_little(h):
    """The same for |h| ≤ 1/16, where six terms suffice."""
    s = h / (2.0 - h)
    q = s * s
    p = 1.0 / 11.0
    p = p * q + 1.0 / 9.0
    p = p * q + 1.0 / 7.0
    p = p * q + 1.0 / 5.0
    p = p * q + 1.0 / 3.0
    p = p * q + 1.0
    return 2.0 * s * p


@helper
def prefer(mixture, first, last, typical, power):
    """Priors π_k ∝ (R_k + r_0)^{−power} for these lanes; p = π."""
    total = 0.0
    for k in range(first, last):
        total += (mixture[RADIUS, k] + typical) ** -power
    for k in range(first, last):
        share = (mixture[RADIUS, k] + typical) ** -power / total
        mixture[PRIOR, k] = math.log(share)
        mixture[SHARE, k] = share


@helper
def begin_mixture(mixture, s, length):
    """The first row that is not 0 says what a typical size of x is: r_0 = 1/(4‖u‖)."""
    if s.first_length == 0.0 and length > 0.0:
        s.first_length = math.sqrt(length)
        prefer(mixture, 0, RESIDUAL, 0.25 / s.first_length, POWER)


@helper
def alpha(clip, squares):
    """α from m and U."""
    return math.sqrt(4.0 * clip * clip + PACE * PACE * squares)


@helper
def pay(mixture, s, along, residual_along):
    """Charge every scale for the round: ℓ_k = along · s_k on the weights' lanes, the residual's likewise; m and U.

    What the exponents were is left in BEFORE: `settle` begins from it.
    """
    worst = residual_worst = 0.0
    for k in range(LANES):
        ratio = mixture[FACTOR, k] * mixture[INVERSE, k]
        worst = max(worst, ratio if k < RESIDUAL else 0.0)
        residual_worst = max(residual_worst, 0.0 if k < RESIDUAL else ratio)
    b, residual_b = abs(along) * worst, abs(residual_along) * residual_worst
    kappa = s.clip / b if b > s.clip else 1.0
    residual_kappa = s.residual_clip / residual_b if residual_b > s.residual_clip else 1.0
    rate, residual_rate = alpha(s.clip, s.clipped_squares), alpha(s.residual_clip, s.residual_clipped_squares)
    inverse = 1.0 / rate if rate > 0.0 else 0.0
    residual_inverse = 1.0 / residual_rate if residual_rate > 0.0 else 0.0
    share, residual_share = kappa * along, residual_kappa * residual_along
    pivot, residual_pivot = s.pivot, s.residual_pivot
    for k in range(LANES):
        per_unit = (inverse if k < RESIDUAL else residual_inverse) * mixture[INVERSE, k]
        mixture[BEFORE, k] = ((pivot if k < RESIDUAL else residual_pivot) - mixture[LOSS, k]) * per_unit
        mixture[RATE, k] = (share if k < RESIDUAL else residual_share) * mixture[FACTOR, k] * per_unit  # h
    if kappa * b * inverse <= LITTLE and residual_kappa * residual_b * residual_inverse <= LITTLE:
        for k in range(LANES):
            unit = (rate if k < RESIDUAL else residual_rate) * mixture[RADIUS, k]
            mixture[LOSS, k] += unit * minus_log_of_little(mixture[RATE, k])
    else:
        for k in range(LANES):
            unit = (rate if k < RESIDUAL else residual_rate) * mixture[RADIUS, k]
            mixture[LOSS, k] += unit * minus_log_of_rest(mixture[RATE, k])
    s.clipped_squares += (kappa * b) ** 2
    s.residual_clipped_squares += (residual_kappa * residual_b) ** 2
    s.clip, s.residual_clip = max(s.clip, b), max(s.residual_clip, residual_b)


@helper
def settle(mixture, s):
    """The next p, both mixtures at once.

    ln Σ_k π_k exp((ν − Q_k)/(αR_k)) is convex in ν. Its root is at most min_k(Q_k + αR_k ln(1/π_k)), where one term is
    1 already; from a point above the root Newton's steps fall to it, from one below the first step rises above. They
    begin where the root would be if the sum were linear in what the round has changed: two evaluations suffice.
    """
    rate, residual_rate = alpha(s.clip, s.clipped_squares), alpha(s.residual_clip, s.residual_clipped_squares)
    inverse = 1.0 / rate if rate > 0.0 else 0.0
    residual_inverse = 1.0 / residual_rate if residual_rate > 0.0 else 0.0
    highest = residual_highest = np.inf
    moved = slope = residual_moved = residual_slope = 0.0
    for k in range(LANES):
        of_weights = k < RESIDUAL
        per_unit = (inverse if of_weights else residual_inverse) * mixture[INVERSE, k]
        limit = mixture[LOSS, k] - (rate if of_weights else residual_rate) * mixture[RADIUS, k] * mixture[PRIOR, k]
        one, other = mixture[SHARE, k], mixture[SHARE, k] * per_unit
        mixture[RATE, k] = per_unit
        to = one * mixture[BEFORE, k] + other * mixture[LOSS, k]
        highest = min(highest, limit if of_weights else np.inf)
        residual_highest = min(residual_highest, np.inf if of_weights else limit)
        moved += to if of_weights else 0.0
        residual_moved += 0.0 if of_weights else to
        slope += other if of_weights else 0.0
        residual_slope += 0.0 if of_weights else other
    pivot = min(moved / slope if slope > 0.0 else highest, highest)
    residual_pivot = min(
        residual_moved / residual_slope if residual_slope > 0.0 else residual_highest, residual_highest
    )
    steepest, residual_steepest = mixture[RATE, SCALES], mixture[RATE, IDLE - 1]
    change = residual_change = 0.0
    for _ in range(MOST_STEPS):
        for k in range(LANES):
            at = pivot if k < RESIDUAL else residual_pivot
            mixture[SHARE, k] = exponential(mixture[PRIOR, k] + (at - mixture[LOSS, k]) * mixture[RATE, k])
        total = slope = bend = residual_total = residual_slope = residual_bend = 0.0
        for k in range(LANES):
            share, steep = mixture[SHARE, k], mixture[SHARE, k] * mixture[RATE, k]
            total += share if k < RESIDUAL else 0.0
            residual_total += 0.0 if k < RESIDUAL else share
            slope += steep if k < RESIDUAL else 0.0
            residual_slope += 0.0 if k < RESIDUAL else steep
            bend += steep * mixture[RATE, k] if k < RESIDUAL else 0.0
            residual_bend += 0.0 if k < RESIDUAL else steep * mixture[RATE, k]
        change = step_to_one(total, slope, bend)
        residual_change = step_to_one(residual_total, residual_slope, residual_bend)
        if abs(change) * steepest <= CLOSE and abs(residual_change) * residual_steepest <= CLOSE:
            break
        pivot, residual_pivot = min(pivot - change, highest), min(residual_pivot - residual_change, residual_highest)
    for k in range(LANES):
        z = (change if k < RESIDUAL else residual_change) * mixture[RATE, k]
        mixture[SHARE, k] *= 1.0 - z * (1.0 - z * (0.5 - z * (1.0 / 6.0)))
    s.pivot, s.residual_pivot = pivot - change, residual_pivot - residual_change


@helper
def step_to_one(total, slope, bend):
    """By how much ν must fall for Σ p_k to be 1, from the sum and its two derivatives."""
    if slope == 0.0:
        return 0.0
    excess = (total - 1.0) / slope
    if abs(excess) * bend <= 0.02 * slope:  # close: Halley's step
        return excess * (1.0 + 0.5 * excess * bend / slope)
    return math.log(total) * total / slope  # Newton's, for the logarithm of the sum


@helper
def place_scales(mixture, curvature, pull, norm_2):
    """s_k = min(1/(√V/R_k + Λl2), R_k/‖w‖) for the weights' lanes, with √V given; they stay 0 while that is 0."""
    if curvature == 0.0:
        return
    shortest = 1.0 / math.sqrt(norm_2) if norm_2 > 0.0 else np.inf
    for k in range(SCALES):
        mixture[FACTOR, k] = min(1.0 / (curvature * mixture[INVERSE, k] + pull), mixture[RADIUS, k] * shortest)


@helper
def place_residual(mixture, slope_sum, squares):
    """The same for the residual's lanes: s_j = R_j min(1/√V_b, 1/|z_b|)."""
    size = max(math.sqrt(squares), abs(slope_sum))
    each = 1.0 / size if size > 0.0 else 0.0
    for k in range(RESIDUAL, IDLE - 1):
        mixture[FACTOR, k] = mixture[RADIUS, k] * each


@helper
def price(mixture, multiplier, l1_norm, half_squares, budget):
    """Reading A: every scale also pays λ_{t+1} g(x^k_{t+1}), the zero expert λ_{t+1} g(0)."""
    for k in range(RESIDUAL):
        factor = mixture[FACTOR, k]
        mixture[LOSS, k] += multiplier * (factor * (l1_norm + factor * half_squares) - budget)


@helper
def mixed(mixture, first, last):
    """Σ_k p_k s_k."""
    total = 0.0
    for k in range(first, last):
        total += mixture[SHARE, k] * mixture[FACTOR, k]
    return total
