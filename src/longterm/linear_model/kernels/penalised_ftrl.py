"""Penalised FTRL for linear models as a kernel: `learners.MixedPenalisedFTRL`.

x_t is A-FTRL's with ν_t in place of Λ_t. All scales have one ν, which never falls: ν_{t+1} is the smallest ν ≥ ν_t
whose mixture has g ≤ 0, or W_{t+1} if that is smaller. With N₁ = Σ(|z_k| − νl1)₊, N₂ = Σ(|z_k| − νl1)₊² and
S = Σ p_k s_k it is the root of the decreasing function G(ν) = S l1 N₁ + ½ l2 S² N₂ − ρ. It is found with the set of
non-zero coordinates held fixed, until the set repeats.
With `max_features` ν also rises until no more |z_k| are above νl1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from longterm.linear_model.kernels.compile import helper, use
from longterm.linear_model.kernels.layout import RESIDUAL, WEIGHT_SCALES, WEIGHTS
from longterm.linear_model.kernels.mixture import place
from longterm.linear_model.kernels.round import (
    add_gradient,
    charge_scales,
    observe,
    place_intercept,
    place_leader,
    score,
)

MAX_PASSES, MAX_STEPS = 50, 100


def row_loop(digest: str) -> Callable[..., None]:
    """Return the function that learns rows by this rule and writes their margins, to be compiled with this digest."""

    def learn_rows(parameters, scalars, mixtures, z, u, means, factors, rows, labels, weights, margins):
        use(digest)
        p, s, d = parameters[0], scalars[0], len(z)
        mixture, residual = mixtures[WEIGHTS], mixtures[RESIDUAL]
        for i in range(len(rows)):
            threshold = s.multiplier * p.l1
            dot, length = score(z, threshold, u, means, factors, rows, i)
            if length > p.longest_row:
                return i
            margins[i], slope, _ = observe(p, s, dot, labels[i], weights[i])
            add_gradient(p, s, slope, length)
            s.multiplier_sum += next_weight(p, s)
            charge_scales(p, s, mixture, residual, dot, length, slope)
            for j in range(d):
                z[j] += slope * u[j]
            if s.reached == 0:
                _, s.norm_1, s.norm_2 = soft_sums(z, threshold)
                place_leader(p, s, mixture, s.multiplier, s.norm_2)
            s.multiplier = min(raised_weight(p, s, mixture, z), s.multiplier_sum)
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
    """Return w_{t+1} = weight_0 (t + 1)^{1+growth} M_t."""
    weight = p.weight_0 * (s.round + 1.0) ** (1.0 + p.growth) * s.longest_gradient
    if weight > 0.0:
        s.bound_sum += 1.0 / weight if s.bound_sum > 0.0 else (s.round + 1.0) / weight
    return weight


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
