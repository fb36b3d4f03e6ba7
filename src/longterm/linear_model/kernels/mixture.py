"""A mixture of scales in one leader, compiled: `learners.MixedAFTRL`, `learners.MixedPenalisedFTRL` (`docs/scales.md`).

Every scale R_k = R/4^k has its own leader, and all of them lie on one ray: x^k = s_k w with the same w. So a scale is
one number s_k, and the mixture x_t = (Σ_k p_k s_k) w costs O(K) numbers a round and no pass over the coordinates. Its
weights p are those of a multi-scale Hedge on ℓ_k = slope · s_k ⟨u, w⟩: with b = max_k |ℓ_k|/R_k, κ = min(1, m/b),

    Q_k ← Q_k − αR_k ln(1 − κℓ_k/(αR_k)),   α ← √(4m² + c²U),   p_k = π_k exp((ν − Q_k)/(αR_k)),  ν from Σ p_k = 1.

The intercept's residual is a second mixture of the same kind, with one coordinate. Both live in the columns ("lanes")
of one small array, and a round is done on vectors of sixteen (`vectors`). It is a long chain of operations, each of
which waits for the one before. The pass over the coordinates needs none of it and comes first where the rule allows:
the other way round A-FTRL's round on 22 features took 300 ns in place of 260.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import float64, types
from numba.extending import intrinsic

from longterm.linear_model.kernels.compile import helper, in_order
from longterm.linear_model.kernels.functions import logarithm
from longterm.linear_model.kernels.vectors import Lanes

SCALES, RESIDUAL, IDLE = 8, 9, 15
"""Lanes 0 … 7: scales of the weights, 8: the weights' zero expert; 9 … 13: scales of the residual, 14: its zero."""
RADIUS, INVERSE, PRIOR, LOSS, SHARE, FACTOR, RATE, BEFORE = range(8)
"""Rows of the array: R_k, 1/R_k, ln π_k, Q_k, p_k, s_k; then room for 1/(αR_k) and the exponent of the round before."""
ROWS = 8
RATIO = 4.0
"""From one scale to the next."""
STEEPNESS = [RATIO**k for k in (*range(8), 7, *range(5), 4)] + [0.0]
"""How much faster than that of the largest scale the exponent of each lane moves with ν."""
PACE = 0.5
"""c: how much of √U is in α."""
POWER, RESIDUAL_POWER = 0.5, 2.0
"""Exponents of the priors. The residual is what the offset has left over, so large ones must be earned: with ½ the
intercept moves by 2.3 at the first of four positives in 2,000 rows, with 2 by 1.3, and no loss measured was worse."""
NEVER = -1e200
"""ln π of a lane that is not in use."""
LITTLE = 1 / 16
CLOSE, MOST_STEPS = 1e-12, 60
"""Steps to ν end where Σ p_k z_k⁴ ≤ CLOSE, z_k by how much the step moves exponent k: 1e-3 where one scale has it all.
That step has fourth order: what is left is 1e-12 of the shares. Scales that have none to speak of do not count."""


# --- what is done on vectors ------------------------------------------------------------------------------------


def _both(builder, of_weights, of_residual):
    """One number in the weights' lanes, another in the residual's."""
    return Lanes.parted(builder, of_weights, of_residual, RESIDUAL)


def _numbers(context, builder, values):
    return context.make_tuple(builder, types.UniTuple(float64, len(values)), values)


def _pay_with(minus_log_of_rest):
    """The code that charges every scale −αR_k ln(1 − h_k), h_k = share · s_k/(αR_k)."""

    def typed(context, address, share, share_2, inverse, inverse_2, rate, rate_2, pivot, pivot_2):
        def generate(context, builder, signature, arguments):
            address, share, share_2, inverse, inverse_2, rate, rate_2, pivot, pivot_2 = arguments
            per_unit = Lanes.load(builder, address, INVERSE) * _both(builder, inverse, inverse_2)
            loss = Lanes.load(builder, address, LOSS)
            ((_both(builder, pivot, pivot_2) - loss) * per_unit).store(address, BEFORE)
            h = Lanes.load(builder, address, FACTOR) * _both(builder, share, share_2) * per_unit
            unit = Lanes.load(builder, address, RADIUS) * _both(builder, rate, rate_2)
            (unit * minus_log_of_rest(h) + loss).store(address, LOSS)
            return context.get_dummy_value()

        return types.none(address, *[float64] * 8), generate

    return intrinsic(typed)


def _minus_log_of_little(h: Lanes) -> Lanes:
    """−ln(1 − h) for |h| ≤ 1/16."""
    return h * h.series([1.0 / i for i in range(1, 14)])


def _minus_log_of_rest(h: Lanes) -> Lanes:
    """−ln(1 − h) for |h| ≤ ½: 2 artanh(h/(2 − h)), as a series whose terms fall by nine."""
    ratio = h / (h * -1.0 + 2.0)
    return ratio * (ratio * ratio).series([2.0 / i for i in range(1, 35, 2)])


_pay_little: Any = _pay_with(_minus_log_of_little)
_pay: Any = _pay_with(_minus_log_of_rest)


def _guess(context, address, inverse, inverse_2):
    """Write 1/(αR_k). Numerators and denominators of the ν that would be right, were the sums linear in the change."""

    def generate(context, builder, signature, arguments):
        address, inverse, inverse_2 = arguments
        per_unit = Lanes.load(builder, address, INVERSE) * _both(builder, inverse, inverse_2)
        per_unit.store(address, RATE)
        one = Lanes.load(builder, address, SHARE)
        other = one * per_unit
        moved = one * Lanes.load(builder, address, BEFORE) + other * Lanes.load(builder, address, LOSS)
        return _numbers(context, builder, [*moved.parted_totals(RESIDUAL), *other.parted_totals(RESIDUAL)])

    return types.UniTuple(float64, 4)(address, float64, float64), generate


def _evaluate(context, address, pivot, pivot_2):
    """Write p_k for these ν. Σ p_k c_k^i, i = 0 … 3, for the steepnesses c_k; of each the weights' first."""

    def generate(context, builder, signature, arguments):
        address, pivot, pivot_2 = arguments
        over = _both(builder, pivot, pivot_2) - Lanes.load(builder, address, LOSS)
        share = (over * Lanes.load(builder, address, RATE) + Lanes.load(builder, address, PRIOR)).exponential()
        share.store(address, SHARE)
        sums = share.parted_totals(RESIDUAL)
        for power in (1, 2, 3):
            sums += (share * [c**power for c in STEEPNESS]).parted_totals(RESIDUAL)
        return _numbers(context, builder, list(sums))

    return types.UniTuple(float64, 8)(address, float64, float64), generate


def _move(context, address, change, change_2):
    """Multiply p_k by exp(−z_k), z_k = change · c_k, which must be small where p_k is not: Σ p_k z_k⁴ says whether."""

    def generate(context, builder, signature, arguments):
        address, change, change_2 = arguments
        z = (_both(builder, change, change_2) * STEEPNESS).at_least(-1.0).at_most(1.0)
        share = Lanes.load(builder, address, SHARE)
        (share * z.series([1.0, -1.0, 1.0 / 2.0, -1.0 / 6.0, 1.0 / 24.0])).store(address, SHARE)
        return (share * (z * z) * (z * z)).total()

    return float64(address, float64, float64), generate


def _placed(builder, address, curvature, pull, shortest=None):
    """The code that writes s_k = min(1/(√V/R_k + Λl2), R_k/‖w‖) of the weights' scales; Σ p_k s_k."""
    row = {name: Lanes.load(builder, address, name, SCALES) for name in (INVERSE, RADIUS, SHARE)}
    curvature, pull = (Lanes.spread(builder, number, SCALES) for number in (curvature, pull))
    factor = (row[INVERSE] * curvature + pull).inverse()
    if shortest is not None:
        factor = factor.at_most(row[RADIUS] * Lanes.spread(builder, shortest, SCALES))
    factor.store(address, FACTOR)
    return (row[SHARE] * factor).total()


def _place(context, address, curvature, pull):
    """Where all leaders lie in their balls."""

    def generate(context, builder, signature, arguments):
        return _placed(builder, *arguments)

    return float64(address, float64, float64), generate


def _place_within(context, address, curvature, pull, shortest):
    """Where some may not; `shortest` is 1/‖w‖."""

    def generate(context, builder, signature, arguments):
        return _placed(builder, *arguments)

    return float64(address, float64, float64, float64), generate


def _place_residual(context, address, each):
    """The same for the residual's scales: s_j = each · R_j."""

    def generate(context, builder, signature, arguments):
        address, each = arguments
        used = [0.0] + [1.0] * (IDLE - 1 - RESIDUAL) + [0.0, 0.0]
        radii = Lanes.load(builder, address, RADIUS, SCALES, SCALES)
        factor = radii * used * Lanes.spread(builder, each, SCALES)
        factor.store(address, FACTOR, SCALES)
        return (Lanes.load(builder, address, SHARE, SCALES, SCALES) * factor).total()

    return float64(address, float64), generate


guess: Any = intrinsic(_guess)
evaluate: Any = intrinsic(_evaluate)
move: Any = intrinsic(_move)
place: Any = intrinsic(_place)
place_within: Any = intrinsic(_place_within)
place_each: Any = intrinsic(_place_residual)


# --- a round --------------------------------------------------------------------------------------------------


@in_order
def prefer(mixture, first, last, typical, power):
    """Priors π_k ∝ (R_k + r_0)^{−power} for these lanes; p = π."""
    total = 0.0
    for k in range(first, last):
        total += (mixture[RADIUS, k] + typical) ** -power
    for k in range(first, last):
        share = (mixture[RADIUS, k] + typical) ** -power / total
        mixture[PRIOR, k] = math.log(share)
        mixture[SHARE, k] = share


@in_order
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

    s_k/R_k is largest for the smallest scale, and the same for all of the residual's. What the exponents were is left
    in BEFORE: `settle` begins from it.
    """
    b = abs(along) * (mixture[FACTOR, SCALES - 1] * mixture[INVERSE, SCALES - 1])
    residual_b = abs(residual_along) * (mixture[FACTOR, RESIDUAL] * mixture[INVERSE, RESIDUAL])
    kappa = s.clip / b if b > s.clip else 1.0
    residual_kappa = s.residual_clip / residual_b if residual_b > s.residual_clip else 1.0
    rate, residual_rate = alpha(s.clip, s.clipped_squares), alpha(s.residual_clip, s.residual_clipped_squares)
    inverse = 1.0 / rate if rate > 0.0 else 0.0
    residual_inverse = 1.0 / residual_rate if residual_rate > 0.0 else 0.0
    paid, residual_paid = kappa * b, residual_kappa * residual_b
    address, share, residual_share = mixture.ctypes.data, kappa * along, residual_kappa * residual_along
    pivot, residual_pivot = s.pivot, s.residual_pivot
    if paid * inverse <= LITTLE and residual_paid * residual_inverse <= LITTLE:
        _pay_little(
            address, share, residual_share, inverse, residual_inverse, rate, residual_rate, pivot, residual_pivot
        )
    else:
        _pay(address, share, residual_share, inverse, residual_inverse, rate, residual_rate, pivot, residual_pivot)
    s.clipped_squares += paid * paid
    s.residual_clipped_squares += residual_paid * residual_paid
    s.clip, s.residual_clip = max(s.clip, b), max(s.residual_clip, residual_b)


@helper
def settle(mixture, s):
    """The next p, both mixtures at once.

    ln Σ_k π_k exp((ν − Q_k)/(αR_k)) is convex in ν. Steps begin where the root would be if the sum were linear in what
    the round has changed, and as a rule end there. Where they do not: the root is at most min_k(Q_k + αR_k ln(1/π_k)),
    where one term is 1 already; from a point above it Newton's steps fall to it, from one below the first step rises.
    """
    address = mixture.ctypes.data
    rate, residual_rate = alpha(s.clip, s.clipped_squares), alpha(s.residual_clip, s.residual_clipped_squares)
    inverse = 1.0 / rate if rate > 0.0 else 0.0
    residual_inverse = 1.0 / residual_rate if residual_rate > 0.0 else 0.0
    moved, residual_moved, slope, residual_slope = guess(address, inverse, residual_inverse)
    pivot = moved / slope if slope > 0.0 else s.pivot
    residual_pivot = residual_moved / residual_slope if residual_slope > 0.0 else s.residual_pivot
    unit, residual_unit = rate * mixture[RADIUS, 0], residual_rate * mixture[RADIUS, RESIDUAL]
    highest = residual_highest = np.inf
    change = residual_change = 0.0
    for step in range(MOST_STEPS):
        sums = evaluate(address, pivot, residual_pivot)
        change = step_to_one(sums[0], sums[2], sums[4], sums[6]) if rate > 0.0 else 0.0
        residual_change = step_to_one(sums[1], sums[3], sums[5], sums[7]) if residual_rate > 0.0 else 0.0
        if move(address, change, residual_change) <= CLOSE:
            break
        if step == 0:
            for k in range(IDLE):
                limit = mixture[LOSS, k] - (rate if k < RESIDUAL else residual_rate) * (
                    mixture[RADIUS, k] * mixture[PRIOR, k]
                )
                highest = min(highest, limit if k < RESIDUAL else np.inf)
                residual_highest = min(residual_highest, np.inf if k < RESIDUAL else limit)
        pivot = min(pivot - change * unit, highest)
        residual_pivot = min(residual_pivot - residual_change * residual_unit, residual_highest)
    s.pivot, s.residual_pivot = pivot - change * unit, residual_pivot - residual_change * residual_unit


@helper
def step_to_one(total, slope, bend, third):
    """By how much ν must fall for Σ p_k to be 1: the d with total − slope d + ½ bend d² − third d³/6 … = 1."""
    inverse = 1.0 / slope
    excess, curve = (total - 1.0) * inverse, 0.5 * bend * inverse
    if abs(excess) * curve <= 0.01:  # close: the inverse of that series
        return excess * (1.0 + excess * (curve + excess * (2.0 * curve * curve - third * inverse * (1.0 / 6.0))))
    return logarithm(total) * total * inverse  # Newton's, for the logarithm of the sum


@helper
def place_scales(mixture, curvature, pull, norm_2):
    """s_k = min(1/(√V/R_k + Λl2), R_k/‖w‖) for the weights' lanes, with √V given; Σ p_k s_k. 0 while √V is.

    Where the smallest scale's leader lies in its ball, all of them do: then nothing waits for ‖w‖.
    """
    if curvature == 0.0:
        return 0.0
    longest = curvature + mixture[RADIUS, SCALES - 1] * pull
    if norm_2 <= longest * longest:
        return place(mixture.ctypes.data, curvature, pull)
    return place_within(mixture.ctypes.data, curvature, pull, 1.0 / math.sqrt(norm_2))


@helper
def place_residual(mixture, slope_sum, squares):
    """The same for the residual's lanes: s_j = R_j min(1/√V_b, 1/|z_b|); Σ p_j s_j. 0 while slopes have no squares."""
    size = max(math.sqrt(squares), abs(slope_sum))
    return place_each(mixture.ctypes.data, 1.0 / size if size > 1e-160 else 0.0)


@helper
def price(mixture, multiplier, l1_norm, half_squares, budget):
    """Reading A: every scale also pays λ_{t+1} g(x^k_{t+1}), the zero expert λ_{t+1} g(0)."""
    for k in range(RESIDUAL):
        factor = mixture[FACTOR, k]
        mixture[LOSS, k] += multiplier * (factor * (l1_norm + factor * half_squares) - budget)
