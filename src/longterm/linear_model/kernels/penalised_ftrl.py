"""Penalised FTRL for linear models as a kernel: the rule of `learners.PenalisedFTRL` and its adaptive variants.

x_t is A-FTRL's with ν_t in place of Λ_t: the smallest ν ≥ 0 whose argmin has g ≤ 0, or W_t if that is smaller.

**The root without sorting.** Let n, V₁, V₂ be the count, sum and sum of squares of the |z_k| above a threshold. If just
those coordinates are non-zero, g = 0 at

    ν = 2C/(aκ + √(a²κ² + 2 l2 κ C)),   κ = n l1² + 2ρ l2,   C = [a l1 V₁ + (l2/2) V₂ − ρa²]₊.

For every threshold this is at most the true ν, with equality for the threshold ν l1 (`docs/proofs/aftrl.md`). So the
iteration begins with the threshold of the round before and continues with ν l1. After the first step thresholds only
rise and sets only shrink, until a set repeats, which takes two or three passes.

**A mixture of scales** has one ν for all scales, which never falls: the smallest ν ≥ ν_t whose mixture has g ≤ 0, or
W_{t+1}. With N₁ = Σ(|z_k| − νl1)₊, N₂ = Σ(|z_k| − νl1)₊² and S = Σ p_k s_k it is the root of the decreasing function
G(ν) = S l1 N₁ + ½ l2 S² N₂ − ρ. It is found with the set of non-zero coordinates held fixed, until the set repeats.
With `max_features` ν also rises until no more |z_k| are above νl1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from longterm.linear_model.kernels.compile import helper, use
from longterm.linear_model.kernels.layout import ONE, RESIDUAL, WEIGHT_SCALES, WEIGHTS
from longterm.linear_model.kernels.mixture import place
from longterm.linear_model.kernels.round import (
    add_gradient,
    charge_scales,
    clip,
    leader_curvature,
    observe,
    place_intercept,
    place_leader,
)

MAX_PASSES, MAX_STEPS = 50, 100


def row_loop(digest: str) -> Callable[..., None]:
    """Return the function that learns rows by this rule and writes their margins, to be compiled with this digest."""

    def learn_rows(parameters, scalars, mixtures, z, u, means, factors, rows, labels, weights, margins):
        use(digest)
        p, s, d = parameters[0], scalars[0], len(z)
        mixture, residual = mixtures[WEIGHTS], mixtures[RESIDUAL]
        if s.round == 1 and p.step > 0.0:
            s.multiplier_sum = p.weight_0
        for i in range(len(rows)):
            threshold = s.multiplier * p.l1
            dot = length = 0.0
            for j in range(d):
                u[j] = (np.float64(rows[i, j]) - means[j]) * factors[j]
                dot += u[j] * (clip(z[j], threshold) - z[j])
                length += u[j] * u[j]
            if length > p.longest_row:
                return i
            margins[i], slope, _ = observe(p, s, dot, labels[i], weights[i])
            add_gradient(p, s, slope, length)
            s.multiplier_sum += next_weight(p, s)
            charge_scales(p, s, mixture, residual, dot, length, slope)
            for j in range(d):
                z[j] += slope * u[j]
            if p.scales == ONE:
                weight = least_weight(p, leader_curvature(p, s), z, threshold)
            else:
                weight = raised_weight(p, s, mixture, z)
            s.multiplier = min(weight, s.multiplier_sum)
            if p.max_features > 0:
                s.multiplier = max(s.multiplier, weight_for_few(p, z, s.multiplier))
            _, s.norm_1, s.norm_2 = soft_sums(z, s.multiplier * p.l1)
            place_leader(p, s, mixture, s.multiplier, s.norm_2)
            place_intercept(p, s, residual, slope, labels[i], weights[i])
            s.round += 1
        return len(rows)

    return learn_rows


@helper
def next_weight(p, s):
    """Return w_{t+1} = weight_0 (t + 1)^{1+growth}, times M_t where constants are found online."""
    weight = p.weight_0 * (s.round + 1.0) ** (1.0 + p.growth)
    if p.step == 0.0:
        weight *= s.longest_gradient
        if weight > 0.0:
            s.bound_sum += 1.0 / weight if s.bound_sum > 0.0 else (s.round + 1.0) / weight
    return weight


@helper
def least_weight(p, a, z, threshold):
    """Return the smallest ν ≥ 0 with g ≤ 0 at its argmin, from any threshold to begin with."""
    above = count_above(z, threshold)
    weight, size = root(p, a, above), above[0]
    above = count_above(z, weight * p.l1)
    if above[0] == size:  # the first threshold had the right set
        return weight
    size = len(z) + 1.0
    while above[0] < size:
        weight, size = root(p, a, above), above[0]
        above = count_above(z, weight * p.l1)
    return weight


@helper
def root(p, a, above):
    """Return the ν of the formula above, from (n, V₁, V₂)."""
    n, total, squares = above
    excess = a * p.l1 * total + 0.5 * p.l2 * squares - p.budget * a * a
    if excess <= 0.0:
        return 0.0
    kappa = n * p.l1 * p.l1 + 2.0 * p.budget * p.l2
    return 2.0 * excess / (a * kappa + math.sqrt(a * a * kappa * kappa + 2.0 * p.l2 * kappa * excess))


@helper
def raised_weight(p, s, mixture, z):
    """Return the smallest ν ≥ ν_t whose mixture has g ≤ 0, or W_{t+1}."""
    weight, size = s.multiplier, -1.0
    for _ in range(MAX_PASSES):
        n, norm_1, norm_2 = soft_sums(z, weight * p.l1)
        g = mixture_excess(p, s, mixture, weight, norm_1, norm_2)
        if (g <= 0.0 and weight == s.multiplier) or n == size or abs(g) <= 1e-14 * p.budget:
            break
        size = n
        weight = model_root(p, s, mixture, weight, g, n, norm_1, norm_2)
    return weight


@helper
def mixture_excess(p, s, mixture, weight, norm_1, norm_2):
    """Return G at this weight, from N₁ and N₂."""
    factor = place(mixture, WEIGHT_SCALES, s.gradient_squares, weight * p.l2, norm_2)
    factor = min(factor, p.factor_bound)
    return factor * (p.l1 * norm_1 + 0.5 * p.l2 * factor * norm_2) - p.budget


@helper
def model_root(p, s, mixture, weight, g, n, norm_1, norm_2):
    """Return the root of G in [ν_t, W_{t+1}] with these n coordinates held fixed, by the Illinois method."""
    low, low_g, high, high_g = weight, g, s.multiplier_sum, -p.budget
    if g > 0.0:
        if n * p.l1 > 0.0:
            high = min(high, weight + norm_1 / (n * p.l1))  # where all of them are 0
        high_g = modelled(p, s, mixture, weight, high - weight, n, norm_1, norm_2)
        if high_g > 0.0:
            return high
    else:
        high, high_g, low = weight, g, s.multiplier
        low_g = modelled(p, s, mixture, weight, low - weight, n, norm_1, norm_2)
        if low_g <= 0.0:
            return low
    last = 0
    for _ in range(MAX_STEPS):
        middle = (low * high_g - high * low_g) / (high_g - low_g)
        if not low < middle < high:
            break
        value = modelled(p, s, mixture, weight, middle - weight, n, norm_1, norm_2)
        if value > 0.0:
            low, low_g = middle, value
            high_g = 0.5 * high_g if last == 1 else high_g
            last = 1
        else:
            high, high_g = middle, value
            low_g = 0.5 * low_g if last == -1 else low_g
            last = -1
        if abs(value) <= 1e-15 * p.budget or high - low <= 1e-15 * high:
            break
    return high if abs(high_g) < abs(low_g) else low


@helper
def modelled(p, s, mixture, weight, rise, n, norm_1, norm_2):
    """Return G at ν + rise with the n coordinates of ν held fixed."""
    fall = rise * p.l1
    squares = max(norm_2 - fall * (2.0 * norm_1 - n * fall), 0.0)
    return mixture_excess(p, s, mixture, weight + rise, max(norm_1 - n * fall, 0.0), squares)


@helper
def weight_for_few(p, z, weight):
    """Return the smallest ν ≥ `weight` with at most max_features coordinates |z_k| > νl1, by bisection."""
    count, low, high = above_and_range(z, weight * p.l1)
    if count <= p.max_features:
        return weight
    while count > p.max_features + 1:  # the threshold is in [low, high), two of the |z_k|
        middle = 0.5 * (low + high)
        above, least, _ = above_and_range(z, middle)
        if above > p.max_features:
            count, low = above, least
        elif middle < high and low < middle:
            high = middle
        else:
            return weight_reaching(high, p.l1)
    return weight_reaching(low, p.l1)


@helper
def weight_reaching(size, l1):
    """Return the smallest ν with νl1 ≥ size, in floating-point numbers."""
    weight = size / l1
    while weight * l1 < size:
        weight *= 1.0 + 2.0**-52
    return weight


@helper
def above_and_range(z, threshold):
    """Return how many |z_k| are above the threshold, the least of them, and the largest."""
    count = 0
    least, largest = np.inf, 0.0
    for j in range(len(z)):
        size = abs(z[j])
        if size > threshold:
            count += 1
            least = min(least, size)
            largest = max(largest, size)
    return count, least, largest


@helper
def soft_sums(z, threshold):
    """Return n, N₁ and N₂: count, sum and sum of squares of the positive |z_k| − threshold."""
    count = total = squares = 0.0
    for j in range(len(z)):
        more = max(abs(z[j]) - threshold, 0.0)
        count += 1.0 if more > 0.0 else 0.0
        total += more
        squares += more * more
    return count, total, squares


@helper
def count_above(z, threshold):
    """Return n, V₁ and V₂: count, sum and sum of squares of the |z_k| above the threshold."""
    count = total = squares = 0.0
    for j in range(len(z)):
        above = 1.0 if abs(z[j]) > threshold else 0.0
        size = above * abs(z[j])
        count += above
        total += size
        squares += size * size
    return count, total, squares
