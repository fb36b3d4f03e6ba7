"""A mixture of scales in one leader, compiled: `learners.MixedAFTRL`, `learners.MixedPenalisedFTRL` (`docs/scales.md`).

Every scale R_k = R/4^k has its own leader, and all of them lie on one ray: x^k = s_k w with the same w. So a scale is
one number s_k, and the mixture x_t = (Σ_k p_k s_k) w costs O(K) numbers a round and no pass over the coordinates. Its
weights p are those of a multi-scale Hedge on ℓ_k = slope · s_k ⟨u, w⟩. Scales owe what rounds cost (`owe_round`), and
pay at the end of a block of rounds; L_k is what a scale owes, B_k the sum of its squares, h_k = L_k/(αR_k):

    Q_k ← Q_k + αR_k(−ln(1 − h_k) − ½(h_k² − B_k/(αR_k)²)),   p_k = π_k exp((ν − Q_k)/(αR_k)),  ν from Σ p_k = 1.

In between, as a rule, p stays as it is, and the leader follows what they owe to first order. While Λl2 = 0 every s_k is
R_k times one number, and no lane is looked at.

The intercept's residual is a second mixture of the same kind, with one coordinate. Both live in the columns ("lanes")
of one small array, and the end of a block is done on vectors of sixteen (`vectors`): a long chain of operations, each
of which waits for the one before.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import float64, types
from numba.extending import intrinsic

from longterm.learners.multi_scale_hedge import BLOCK_TOLERANCE, LONGEST_BLOCK, PACE, RATIO, SCALES
from longterm.linear_model.kernels.compile import helper, in_order
from longterm.linear_model.kernels.functions import logarithm
from longterm.linear_model.kernels.vectors import Lanes

RESIDUAL, IDLE = 9, 15
"""Lanes 0 … 7: scales of the weights, 8: the weights' zero expert; 9 … 13: scales of the residual, 14: its zero."""
RADIUS, INVERSE, PRIOR, LOSS, SHARE, FACTOR, OWED, SQUARES = range(8)
"""Rows of the array: R_k, 1/R_k, ln π_k, Q_k, p_k, s_k, L_k, B_k."""
ROWS = 8
STEEPNESS = [RATIO**k for k in (*range(8), 7, *range(5), 4)] + [0.0]
"""How much faster than that of the largest scale the exponent of each lane moves with ν."""
MOVING = [1.0] * SCALES + [0.0] + [1.0] * (IDLE - 1 - RESIDUAL) + [0.0, 0.0]
"""1 for the lanes of scales, 0 for experts at 0."""
LEAST_SQUARES = 1e-300
"""While Σ of the squared slopes is not above this, there is no residual."""
POWER, RESIDUAL_POWER = 0.5, 2.0
"""Exponents of the priors. The residual is what the offset has left over, so large ones must be earned: with ½ the
intercept moves by 2.3 at the first of four positives in 2,000 rows, with 2 by 1.3, and no loss measured was worse."""
RESIDUAL_PATIENCE = 0.3
"""Twice that of the weights' scales: a third of the blocks ended for the residual's sake, and no loss measured was
larger for it (`benchmarks/scale_blocks.py`)."""
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


def _owe(context, address, along):
    """Add along · s_k to L_k and its square to B_k, for every scale of the weights; max_k |L_k|/R_k."""

    def generate(context, builder, signature, arguments):
        address, along = arguments
        lost = Lanes.load(builder, address, FACTOR, SCALES) * Lanes.spread(builder, along, SCALES)
        owed = lost + Lanes.load(builder, address, OWED, SCALES)
        owed.store(address, OWED)
        (lost * lost + Lanes.load(builder, address, SQUARES, SCALES)).store(address, SQUARES)
        relative = owed * Lanes.load(builder, address, INVERSE, SCALES)
        return relative.at_least(relative * -1.0).largest()

    return float64(address, float64), generate


def _pay_with(minus_log_of_rest):
    """The code that charges every scale αR_k(−ln(1 − h_k) − ½(h_k² − B_k/(αR_k)²)), h_k = L_k/(αR_k).

    Where all scales are alike, `owed` and `squares` are L_k/R_k and B_k/R_k². Σ p_k times the exponents from before.
    """

    def typed(context, address, owed, owed_2, squares, squares_2, inverse, inverse_2, rate, rate_2, pivot, pivot_2):
        def generate(context, builder, signature, arguments):
            address, *numbers = arguments
            pairs = zip(numbers[::2], numbers[1::2], strict=True)
            owed, squares, inverse, rate, pivot = (_both(builder, *pair) for pair in pairs)
            radius, loss = Lanes.load(builder, address, RADIUS), Lanes.load(builder, address, LOSS)
            per_unit, moving = Lanes.load(builder, address, INVERSE) * inverse, radius * MOVING
            h = (moving * owed + Lanes.load(builder, address, OWED)) * per_unit
            apart = (moving * moving * squares + Lanes.load(builder, address, SQUARES)) * (per_unit * per_unit)
            y = minus_log_of_rest(h) - (h * h - apart) * 0.5
            (radius * rate * y + loss).store(address, LOSS)
            before = (pivot - loss) * per_unit
            sums = (Lanes.load(builder, address, SHARE) * before).parted_totals(RESIDUAL)
            return _numbers(context, builder, list(sums))

        return types.UniTuple(float64, 2)(address, *[float64] * 10), generate

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
    """Σ p_k Q_k/(αR_k) and Σ p_k/(αR_k): what the ν takes that would be right, were sums linear in the change."""

    def generate(context, builder, signature, arguments):
        address, inverse, inverse_2 = arguments
        per_unit = Lanes.load(builder, address, INVERSE) * _both(builder, inverse, inverse_2)
        slope = Lanes.load(builder, address, SHARE) * per_unit
        moved = slope * Lanes.load(builder, address, LOSS)
        return _numbers(context, builder, [*moved.parted_totals(RESIDUAL), *slope.parted_totals(RESIDUAL)])

    return types.UniTuple(float64, 4)(address, float64, float64), generate


def _evaluate(context, address, pivot, pivot_2, inverse, inverse_2):
    """Write p_k for these ν. Σ p_k c_k^i, i = 0 … 3, for the steepnesses c_k; of each the weights' first."""

    def generate(context, builder, signature, arguments):
        address, pivot, pivot_2, inverse, inverse_2 = arguments
        over = _both(builder, pivot, pivot_2) - Lanes.load(builder, address, LOSS)
        per_unit = Lanes.load(builder, address, INVERSE) * _both(builder, inverse, inverse_2)
        share = (over * per_unit + Lanes.load(builder, address, PRIOR)).exponential()
        share.store(address, SHARE)
        sums = share.parted_totals(RESIDUAL)
        for power in (1, 2, 3):
            sums += (share * [c**power for c in STEEPNESS]).parted_totals(RESIDUAL)
        return _numbers(context, builder, list(sums))

    return types.UniTuple(float64, 8)(address, *[float64] * 4), generate


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


def _lean(context, address, alike):
    """Σ p_kS_k, Σ p_kS_k/R_k, Σ p_k/R_k and Σ p_kS_k²/R_k of both mixtures; S_k is s_k, or R_k where all are alike."""

    def generate(context, builder, signature, arguments):
        address, alike = arguments
        one = ir.Constant(ir.DoubleType(), 1.0)
        size = Lanes.load(builder, address, RADIUS) * MOVING * _both(builder, alike, one)
        size = size + Lanes.load(builder, address, FACTOR)
        share, inverse = Lanes.load(builder, address, SHARE), Lanes.load(builder, address, INVERSE)
        mean, steep = share * size, share * inverse
        sums = [*mean.parted_totals(RESIDUAL), *(mean * inverse).parted_totals(RESIDUAL)]
        sums += [*steep.parted_totals(RESIDUAL), *(mean * size * inverse).parted_totals(RESIDUAL)]
        return _numbers(context, builder, sums)

    return types.UniTuple(float64, 8)(address, float64), generate


owe: Any = intrinsic(_owe)
guess: Any = intrinsic(_guess)
evaluate: Any = intrinsic(_evaluate)
move: Any = intrinsic(_move)
place: Any = intrinsic(_place)
place_within: Any = intrinsic(_place_within)
lean: Any = intrinsic(_lean)


# --- a round --------------------------------------------------------------------------------------------------


@in_order
def prefer(mixture, first, last, typical, power):
    """Priors π_k ∝ (R_k + r_0)^{−power} for these lanes, the last that of the expert at 0; p = π. The new Σ p_k R_k."""
    total = 0.0
    for k in range(first, last):
        total += (mixture[RADIUS, k] + typical) ** -power
    mean = 0.0
    for k in range(first, last):
        share = (mixture[RADIUS, k] + typical) ** -power / total
        mixture[PRIOR, k] = math.log(share)
        mixture[SHARE, k] = share
        mean += share * mixture[RADIUS, k] if k < last - 1 else 0.0
    return mean


@in_order
def begin_mixture(mixture, s, length):
    """The first row that is not 0 says what a typical size of x is: r_0 = 1/(4‖u‖)."""
    if s.first_length == 0.0 and length > 0.0:
        s.first_length = math.sqrt(length)
        s.mean_radius = prefer(mixture, 0, RESIDUAL, 0.25 / s.first_length, POWER)


@helper
def alpha(clip, squares):
    """α from m and U."""
    return math.sqrt(4.0 * clip * clip + PACE * PACE * squares)


@helper
def pay(mixture, s, b, residual_b):
    """Charge every scale for the block, of whose last round b is; m and U; ν, were the sum linear in the change."""
    rate, residual_rate = alpha(s.clip, s.clipped_squares), alpha(s.residual_clip, s.residual_clipped_squares)
    inverse = 1.0 / rate if rate > 0.0 else 0.0
    residual_inverse = 1.0 / residual_rate if residual_rate > 0.0 else 0.0
    address, owed, squares, most = mixture.ctypes.data, s.owed, s.owed_squares, abs(s.owed)
    if mixture[FACTOR, 0] > 0.0:  # scales are not alike
        owed = squares = 0.0
        for k in range(SCALES):
            most = max(most, abs(mixture[OWED, k] * mixture[INVERSE, k]))
    if most * inverse <= LITTLE and abs(s.residual_owed) * residual_inverse <= LITTLE:
        before, residual_before = _pay_little(
            address, owed, s.residual_owed, squares, s.residual_owed_squares,
            inverse, residual_inverse, rate, residual_rate, s.pivot, s.residual_pivot,
        )  # fmt: skip
    else:
        before, residual_before = _pay(
            address, owed, s.residual_owed, squares, s.residual_owed_squares,
            inverse, residual_inverse, rate, residual_rate, s.pivot, s.residual_pivot,
        )  # fmt: skip
    s.clipped_squares += s.owed_squares
    s.residual_clipped_squares += s.residual_owed_squares
    s.clip, s.residual_clip = max(s.clip, b), max(s.residual_clip, residual_b)
    s.owed = s.residual_owed = s.owed_squares = s.residual_owed_squares = 0.0
    for k in range(SCALES):
        mixture[OWED, k] = mixture[SQUARES, k] = 0.0
    rate, residual_rate = alpha(s.clip, s.clipped_squares), alpha(s.residual_clip, s.residual_clipped_squares)
    inverse = 1.0 / rate if rate > 0.0 else 0.0
    residual_inverse = 1.0 / residual_rate if residual_rate > 0.0 else 0.0
    moved, residual_moved, slope, residual_slope = guess(address, inverse, residual_inverse)
    if slope > 0.0:
        s.pivot = (before + moved) / slope
    if residual_slope > 0.0:
        s.residual_pivot = (residual_before + residual_moved) / residual_slope


@helper
def settle(mixture, s):
    """The next p, both mixtures at once.

    ln Σ_k π_k exp((ν − Q_k)/(αR_k)) is convex in ν. Steps begin where the root would be if the sum were linear in what
    the round has changed, and as a rule end there. Where they do not: the root is at most min_k(Q_k + αR_k ln(1/π_k)),
    where one term is 1 already; from a point above it Newton's steps fall to it, from one below the first step rises.
    """
    address, pivot, residual_pivot = mixture.ctypes.data, s.pivot, s.residual_pivot
    rate, residual_rate = alpha(s.clip, s.clipped_squares), alpha(s.residual_clip, s.residual_clipped_squares)
    inverse = 1.0 / rate if rate > 0.0 else 0.0
    residual_inverse = 1.0 / residual_rate if residual_rate > 0.0 else 0.0
    unit, residual_unit = rate * mixture[RADIUS, 0], residual_rate * mixture[RADIUS, RESIDUAL]
    highest = residual_highest = np.inf
    change = residual_change = 0.0
    for step in range(MOST_STEPS):
        sums = evaluate(address, pivot, residual_pivot, inverse, residual_inverse)
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
    s.patience = patience(s, rate, s.clip, BLOCK_TOLERANCE)
    s.residual_patience = patience(s, residual_rate, s.residual_clip, RESIDUAL_PATIENCE)
    alike = mixture[FACTOR, 0] == 0.0
    sums = lean(address, 1.0 if alike else 0.0)
    s.mean_radius, s.residual_mean_radius = sums[0] if alike else 0.0, sums[1]
    s.tilt = tilt(sums[0], sums[2], sums[4], sums[6]) * inverse
    if not alike:
        s.tilt /= s.factor
    s.residual_tilt = tilt(sums[1], sums[3], sums[5], sums[7]) * residual_inverse


@helper
def patience(s, rate, clip, most):
    """How much scales may owe: no exponent is to move by more than `most`, nor h to come to more than ½."""
    return s.waits * max(min(most * rate, 0.5 * rate - clip), 0.0)


@helper
def tilt(mean, first, steepness, second):
    """The derivative of ln Σ p_kS_k, were every −Q_k/(αR_k) to move by S_k/R_k: never above 0 (Cauchy and Schwarz)."""
    return min((first * first / steepness - second) / mean, 0.0) if mean > 0.0 else 0.0


@helper
def step_to_one(total, slope, bend, third):
    """By how much ν must fall for Σ p_k to be 1: the d with total − slope d + ½ bend d² − third d³/6 … = 1."""
    inverse = 1.0 / slope
    excess, curve = (total - 1.0) * inverse, 0.5 * bend * inverse
    if abs(excess) * curve <= 0.01:  # close: the inverse of that series
        return excess * (1.0 + excess * (curve + excess * (2.0 * curve * curve - third * inverse * (1.0 / 6.0))))
    return logarithm(total) * total * inverse  # Newton's, for the logarithm of the sum


# --- a round ------------------------------------------------------------------------------------------------


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
        s.factor = 1.0 / math.sqrt(squares)
        if norm_2 > squares:  # a branch, which can be guessed: a maximum would wait for ‖w‖
            s.factor = 1.0 / math.sqrt(norm_2)
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
