"""A-FTRL with a mixture of scales for a softmax model, compiled: `learners.MixedAFTRL` on K·d weights, twice.

Once for the weights, once for the intercepts' residual, which is the same with one feature that is 1. The decision is
x = cw, w = −soft(z, Λl1), c = Σ p_k s_k: a round changes z where the row is not 0, and then passes over all of z for
‖w‖₁ and ‖w‖₂, and once more for the sum of decisions.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numba import float64, int64

from longterm.learners._scale_mixture import LONGEST_BLOCK, PACE, PATIENCE, SCALES, STEPS
from longterm.linear_model.kernels.compile import compiled, helper, keep_under, sources
from longterm.storage.compiled import readonly

NUMBERS = (
    "round",
    "multiplier",
    "multiplier_sum",
    "square_sum",
    "largest_gradient",
    "theta_sum",
    "first_gradient",
    "hedge_clip",
    "hedge_squares",
    "hedge_clip_cost",
    "hedge_correction",
    "hedge_waiting",
    "hedge_tilt",
    "hedge_waits",
)
"""The single numbers of `MixedAFTRLState` in the order of the kernel's array; c, ‖w‖₁ and ‖w‖₂² follow."""
ROUND, MULTIPLIER, MULTIPLIER_SUM, SQUARE_SUM, LARGEST, THETA_SUM, FIRST, CLIP, HEDGE_SQUARES, CLIP_COST = range(10)
CORRECTION, WAITING, TILT, WAITS = range(10, 14)
FACTOR, ONE_NORM, SQUARED_NORM = 14, 15, 16
ROOM = 17
LANES = ("hedge_losses", "shares", "hedge_owed", "hedge_owed_squares")
"""What there is of every scale, row by row."""
LOSS, SHARE, OWED, SQUARES = range(4)
BUDGET, L1, L2, DUAL_SCALE, BETA = range(5)


@helper
def soft(z, threshold):
    """One number of w."""
    return max(-z - threshold, 0.0) - max(z - threshold, 0.0)


@helper
def rate(numbers):
    """α = √(4m² + c²U)."""
    return math.sqrt(4.0 * numbers[CLIP] ** 2 + PACE**2 * numbers[HEDGE_SQUARES])


@helper
def place(z, numbers, constants, radii, factors):
    """‖w‖₁, ‖w‖₂² and s_k from z, Λ and V."""
    threshold = numbers[MULTIPLIER_SUM] * constants[L1]
    total, squares = 0.0, 0.0
    for i in range(len(z)):
        size = max(abs(z[i]) - threshold, 0.0)
        total += size
        squares += size * size
    numbers[ONE_NORM], numbers[SQUARED_NORM] = total, squares
    root, length = math.sqrt(numbers[SQUARE_SUM]), math.sqrt(squares)
    for k in range(SCALES):
        factor = 0.0
        if root > 0.0:
            factor = 1.0 / (root / radii[k] + numbers[MULTIPLIER_SUM] * constants[L2])
            if length > 0.0:
                factor = min(factor, radii[k] / length)
        factors[k] = factor
    factors[SCALES] = 0.0


@helper
def settle(numbers, radii, log_priors, lanes, factors):
    """P by Newton's steps, until they end; and τ."""
    alpha = rate(numbers)
    if alpha <= 0.0:
        for k in range(SCALES + 1):
            lanes[SHARE, k] = math.exp(log_priors[k])
        return
    pivot = np.inf
    for k in range(SCALES + 1):
        pivot = min(pivot, lanes[LOSS, k] - alpha * radii[k] * log_priors[k])
    for step in range(STEPS + 1):
        total, slope = 0.0, 0.0
        for k in range(SCALES + 1):
            unit = alpha * radii[k]
            lanes[SHARE, k] = math.exp(log_priors[k] + (pivot - lanes[LOSS, k]) / unit)
            total += lanes[SHARE, k]
            slope += lanes[SHARE, k] / unit
        change = math.log(total) * total / slope
        if step == STEPS or abs(total - 1.0) < 1e-15:
            break
        pivot -= change
    mean, first, steepness, second, steepest = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(SCALES + 1):
        p, each = lanes[SHARE, k], factors[k] / radii[k]
        mean += p * factors[k]
        first += p * each
        steepness += p / radii[k]
        second += p * factors[k] * each
        steepest = max(steepest, each)
    unit = alpha * mean * steepest
    numbers[TILT] = min(first * first / steepness - second, 0.0) / unit if unit > 0.0 else 0.0


@helper
def mean_of(lanes, factors):
    """Σ p_k s_k."""
    mean = 0.0
    for k in range(SCALES + 1):
        mean += lanes[SHARE, k] * factors[k]
    return mean


@helper
def mix(numbers, radii, factors, lanes):
    """The c of x = cw."""
    tilted = 1.0 + numbers[TILT] * lanes[OWED, SCALES - 1] / radii[SCALES - 1]
    numbers[FACTOR] = min(mean_of(lanes, factors) * tilted, factors[0])


@helper
def owe(numbers, radii, lanes, factors, product):
    """The experts lose ⟨gradient, w⟩ s_k: b, and whether a block ends."""
    b, spread, clip, alpha = 0.0, 0.0, numbers[CLIP], rate(numbers)
    for k in range(SCALES + 1):
        b = max(b, abs(product * factors[k]) / radii[k])
        spread += lanes[SHARE, k] * radii[k]
    kappa, most = clip / b if b > clip else 1.0, 0.0
    numbers[CLIP_COST] += max(b - clip, 0.0) * spread
    numbers[WAITING] += product * (numbers[FACTOR] - mean_of(lanes, factors))
    for k in range(SCALES + 1):
        lost = kappa * product * factors[k]
        lanes[OWED, k] += lost
        lanes[SQUARES, k] += lost * lost
        most = max(most, abs(lanes[OWED, k]) / radii[k])
    patience = numbers[WAITS] * max(min(PATIENCE * alpha, alpha / 2 - clip), 0.0)
    return b, most > patience or b > clip or int(numbers[ROUND]) % LONGEST_BLOCK == 0


@helper
def pay(numbers, radii, lanes, b):
    """They pay what they owe; b is of the last round."""
    alpha, most, squares = rate(numbers), 0.0, 0.0
    for k in range(SCALES + 1):
        unit = alpha * radii[k]
        most = max(most, abs(lanes[OWED, k]) / radii[k])
        squares = max(squares, lanes[SQUARES, k] / radii[k] ** 2)
        if alpha > 0.0:
            h = lanes[OWED, k] / unit
            excess = (h * h - lanes[SQUARES, k] / unit**2) / 2
            lanes[LOSS, k] += unit * (-math.log1p(-h) - excess)
            numbers[WAITING] += lanes[SHARE, k] * unit * (1 - h) * math.expm1(excess)
        lanes[OWED, k] = lanes[SQUARES, k] = 0.0
    if alpha > 0.0:
        numbers[CORRECTION] += (0.273 * most * most + squares / 2) / alpha
    numbers[HEDGE_SQUARES] += squares
    numbers[CLIP] = max(numbers[CLIP], b)


@helper
def size_of(numbers, constants):
    """The g(x) of x = cw."""
    c = numbers[FACTOR]
    of_squares = 0.5 * constants[L2] * c * c * numbers[SQUARED_NORM]
    return constants[L1] * c * numbers[ONE_NORM] + of_squares - constants[BUDGET]


@helper
def advance(pull, u, columns, features, z, numbers, lanes, factors, constants, radii, log_priors):
    """One round of the learner, told pull ⊗ u."""
    g, threshold = size_of(numbers, constants), numbers[MULTIPLIER_SUM] * constants[L1]
    product, long, pulled = 0.0, 0.0, 0.0
    for j in range(len(u)):
        long += u[j] * u[j]
    for k in range(len(pull)):
        pulled += pull[k] * pull[k]
        for j in range(len(u)):
            product += pull[k] * u[j] * soft(z[k * features + columns[j]], threshold)
    b, ends = owe(numbers, radii, lanes, factors, product)
    if ends:
        pay(numbers, radii, lanes, b)
        settle(numbers, radii, log_priors, lanes, factors)
    square, t = pulled * long, numbers[ROUND]
    numbers[SQUARE_SUM] += square
    numbers[LARGEST] = max(numbers[LARGEST], math.sqrt(square))
    if numbers[LARGEST] > 0.0:
        theta = constants[DUAL_SCALE] / (numbers[LARGEST] * t ** constants[BETA])
        mu = 1.0 / (theta * (t + 1.0))
        numbers[MULTIPLIER] = max(numbers[MULTIPLIER] + mu * (g - theta * numbers[MULTIPLIER]), 0.0)
        numbers[THETA_SUM] += theta if numbers[THETA_SUM] > 0.0 else 1.0 / mu
        if numbers[FIRST] == 0.0:
            numbers[FIRST] = t
    numbers[MULTIPLIER_SUM] += numbers[MULTIPLIER]
    numbers[ROUND] = t + 1.0
    for k in range(len(pull)):
        for j in range(len(u)):
            z[k * features + columns[j]] += pull[k] * u[j]
    place(z, numbers, constants, radii, factors)
    mix(numbers, radii, factors, lanes)


@helper
def write(z, numbers, constants, x):
    """The decision."""
    threshold = numbers[MULTIPLIER_SUM] * constants[L1]
    for i in range(len(z)):
        x[i] = numbers[FACTOR] * soft(z[i], threshold)


@cache
def softmax_rounds() -> Any:
    """Called with CSR rows, labels and weights, then both learners; they are changed in place.

    A learner is z, numbers, lanes, x, constants, radii and log_priors; then come the classes' weights, the
    sums (loss, signed, hard and squared violation, the heaviest row) and the sums of weights and intercepts.
    """
    digest = sources()

    def play(
        data, columns, indptr, labels, weights, features, intercepts,
        z, numbers, lanes, x, constants, radii, log_priors,
        z_2, numbers_2, lanes_2, x_2, constants_2, radii_2, log_priors_2,
        counts, sums, total, intercept_total,
    ):  # fmt: skip
        keep_under(digest)
        classes = len(counts)
        factors, factors_2 = np.empty(SCALES + 1), np.empty(SCALES + 1)
        place(z, numbers, constants, radii, factors)
        place(z_2, numbers_2, constants_2, radii_2, factors_2)
        mix(numbers, radii, factors, lanes)
        mix(numbers_2, radii_2, factors_2, lanes_2)
        pull, b = np.empty(classes), np.zeros(classes)
        one, first = np.ones(1), np.zeros(1, np.int64)
        for i in range(len(labels)):
            u, own, weight = data[indptr[i] : indptr[i + 1]], columns[indptr[i] : indptr[i + 1]], weights[i]
            label, threshold, c = int(labels[i]), numbers[MULTIPLIER_SUM] * constants[L1], numbers[FACTOR]
            if sums[4] > 0.0:
                everything = counts.sum() + 0.5 * classes * sums[4]
                for k in range(classes):
                    residual = numbers_2[FACTOR] * soft(z_2[k], 0.0)
                    b[k] = math.log((counts[k] + 0.5 * sums[4]) / everything) + residual
            highest = -np.inf
            for k in range(classes):
                score = 0.0
                for j in range(len(u)):
                    score += u[j] * soft(z[k * features + own[j]], threshold)
                pull[k] = c * score + b[k]
                highest = max(highest, pull[k])
            said, norm = pull[label] - highest, 0.0
            for k in range(classes):
                pull[k] = math.exp(pull[k] - highest)
                norm += pull[k]
            for k in range(classes):
                pull[k] = weight * (pull[k] / norm - (1.0 if k == label else 0.0))
            g = size_of(numbers, constants)
            over = max(g, 0.0)
            sums[0] += weight * (math.log(norm) - said)
            sums[1] += g
            sums[2] += over
            sums[3] += over * over
            for n in range(len(z)):
                total[n] += c * soft(z[n], threshold)
            for k in range(classes):
                intercept_total[k] += b[k]
            advance(pull, u, own, features, z, numbers, lanes, factors, constants, radii, log_priors)
            if intercepts:
                advance(pull, one, first, 1, z_2, numbers_2, lanes_2, factors_2, constants_2, radii_2, log_priors_2)
                counts[label] += weight
                sums[4] = max(sums[4], weight)
        write(z, numbers, constants, x)
        write(z_2, numbers_2, constants_2, x_2)

    array, numbers, whole = float64[::1], readonly(float64), readonly(int64)
    learner = (array, array, float64[:, ::1], array, numbers, numbers, numbers)
    rows = (numbers, whole, whole, numbers, numbers, int64, int64)
    return compiled(play, (*rows, *learner, *learner, array, array, array, array))
