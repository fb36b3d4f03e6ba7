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

from longterm.learners._scale_mixture import PACE, SCALES, STEPS
from longterm.linear_model.kernels.compile import compiled, helper, keep_under, readonly, sources

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
)
"""The single numbers of `MixedAFTRLState` in the order of the kernel's array; c, ‖w‖₁ and ‖w‖₂² follow."""
ROUND, MULTIPLIER, MULTIPLIER_SUM, SQUARE_SUM, LARGEST, THETA_SUM, FIRST, CLIP, HEDGE_SQUARES, CLIP_COST = range(10)
FACTOR, ONE_NORM, SQUARED_NORM = 10, 11, 12
ROOM = 13
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
def share(numbers, radii, log_priors, losses, shares):
    """P by Newton's steps, until they end."""
    alpha = rate(numbers)
    if alpha <= 0.0:
        for k in range(SCALES + 1):
            shares[k] = math.exp(log_priors[k])
        return
    pivot = np.inf
    for k in range(SCALES + 1):
        pivot = min(pivot, losses[k] - alpha * radii[k] * log_priors[k])
    for step in range(STEPS + 1):
        total, slope = 0.0, 0.0
        for k in range(SCALES + 1):
            unit = alpha * radii[k]
            shares[k] = math.exp(log_priors[k] + (pivot - losses[k]) / unit)
            total += shares[k]
            slope += shares[k] / unit
        change = math.log(total) * total / slope
        if step == STEPS or abs(total - 1.0) < 1e-15:
            return
        pivot -= change


@helper
def mix(numbers, factors, shares):
    """The c of x = cw."""
    factor = 0.0
    for k in range(SCALES + 1):
        factor += shares[k] * factors[k]
    numbers[FACTOR] = factor


@helper
def pay(numbers, radii, losses, shares, factors, product):
    """The experts lose ⟨gradient, w⟩ s_k."""
    b, spread = 0.0, 0.0
    for k in range(SCALES + 1):
        b = max(b, abs(product * factors[k]) / radii[k])
        spread += shares[k] * radii[k]
    clip, alpha = numbers[CLIP], rate(numbers)
    kappa = clip / b if b > clip else 1.0
    if alpha > 0.0:
        for k in range(SCALES + 1):
            unit = alpha * radii[k]
            losses[k] -= unit * math.log1p(-kappa * product * factors[k] / unit)
    numbers[HEDGE_SQUARES] += (kappa * b) ** 2
    numbers[CLIP] = max(clip, b)
    numbers[CLIP_COST] += (numbers[CLIP] - clip) * spread


@helper
def size_of(numbers, constants):
    """The g(x) of x = cw."""
    c = numbers[FACTOR]
    of_squares = 0.5 * constants[L2] * c * c * numbers[SQUARED_NORM]
    return constants[L1] * c * numbers[ONE_NORM] + of_squares - constants[BUDGET]


@helper
def advance(pull, u, columns, features, z, numbers, losses, shares, factors, constants, radii, log_priors):
    """One round of the learner, told pull ⊗ u."""
    g, threshold = size_of(numbers, constants), numbers[MULTIPLIER_SUM] * constants[L1]
    product, long, pulled = 0.0, 0.0, 0.0
    for j in range(len(u)):
        long += u[j] * u[j]
    for k in range(len(pull)):
        pulled += pull[k] * pull[k]
        for j in range(len(u)):
            product += pull[k] * u[j] * soft(z[k * features + columns[j]], threshold)
    pay(numbers, radii, losses, shares, factors, product)
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
    share(numbers, radii, log_priors, losses, shares)
    mix(numbers, factors, shares)


@helper
def write(z, numbers, constants, x):
    """The decision."""
    threshold = numbers[MULTIPLIER_SUM] * constants[L1]
    for i in range(len(z)):
        x[i] = numbers[FACTOR] * soft(z[i], threshold)


@cache
def softmax_rounds() -> Any:
    """Called with CSR rows, labels and weights, then both learners; they are changed in place.

    A learner is z, numbers, losses, shares, x, constants, radii and log_priors; then come the classes' weights, the
    sums (loss, signed, hard and squared violation, the heaviest row) and the sums of weights and intercepts.
    """
    digest = sources()

    def play(
        data, columns, indptr, labels, weights, features, intercepts,
        z, numbers, losses, shares, x, constants, radii, log_priors,
        z_2, numbers_2, losses_2, shares_2, x_2, constants_2, radii_2, log_priors_2,
        counts, sums, total, intercept_total,
    ):  # fmt: skip
        keep_under(digest)
        classes = len(counts)
        factors, factors_2 = np.empty(SCALES + 1), np.empty(SCALES + 1)
        place(z, numbers, constants, radii, factors)
        place(z_2, numbers_2, constants_2, radii_2, factors_2)
        mix(numbers, factors, shares)
        mix(numbers_2, factors_2, shares_2)
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
            advance(pull, u, own, features, z, numbers, losses, shares, factors, constants, radii, log_priors)
            if intercepts:
                advance(
                    pull, one, first, 1,
                    z_2, numbers_2, losses_2, shares_2, factors_2, constants_2, radii_2, log_priors_2,
                )  # fmt: skip
                counts[label] += weight
                sums[4] = max(sums[4], weight)
        write(z, numbers, constants, x)
        write(z_2, numbers_2, constants_2, x_2)

    array, numbers, whole = float64[::1], readonly(float64), readonly(int64)
    learner = (array, array, array, array, array, numbers, numbers, numbers)
    rows = (numbers, whole, whole, numbers, numbers, int64, int64)
    return compiled(play, (*rows, *learner, *learner, array, array, array, array))
