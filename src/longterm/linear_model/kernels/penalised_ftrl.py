"""Penalised FTRL for linear models, compiled: `learners.PenalisedFTRL`, and `learners.AdaptivePenalisedFTRL`.

x_t is A-FTRL's, with ν_t where that has Λ_t: the smallest ν ≥ 0 whose argmin has g ≤ 0, or W_t if that is smaller.

The root without sorting: let n, V₁, V₂ be count, sum and sum of squares of the |z_k| above a threshold. Taking just
those as the coordinates that are not 0, g = 0 at

    ν = 2C/(aκ + √(a²κ² + 2 l2 κ C)),   κ = n l1² + 2ρ l2,   C = [a l1 V₁ + (l2/2) V₂ − ρa²]₊.

For every threshold this is at most the true ν, and it is the true one for the threshold ν l1 (`docs/aftrl.md`). So
begin with the threshold of the round before, and go on with ν l1: after the first step thresholds only rise and sets
only shrink, until a set repeats. From one round to the next that is two or three passes.

**A mixture of scales** has one ν for all of them, which never falls: the smallest ν ≥ ν_t whose mixture has g ≤ 0, or
W_{t+1}. So all leaders stay on one ray. With N₁ = Σ(|z_k| − νl1)₊, N₂ = Σ(|z_k| − νl1)₊² and S = Σ p_k s_k it is the
root of G(ν) = S l1 N₁ + ½ l2 S² N₂ − ρ, which falls. Most rounds begin with G ≤ 0, and need no search. Otherwise: with
the n coordinates that are not 0 at one ν held fixed, N₁ and N₂ are polynomials, and the root takes no pass over z; at
that root the true coordinates are counted, until they are those it was found with.

**At most so many features**: ν also rises until no more than `max_features` of the |z_k| are above νl1. That holds in
every round; ν is still a sum of known parts, so Theorem 2 of `docs/scales.md` holds with it.
"""

from __future__ import annotations

import math

import numpy as np

from longterm.linear_model.kernels.compile import helper
from longterm.linear_model.kernels.layout import ONE
from longterm.linear_model.kernels.mixture import place_scales
from longterm.linear_model.kernels.round import (
    add_gradient,
    add_loss,
    charge,
    leader_curvature,
    margin_of,
    next_offset,
    nonzeros,
    pay_scales_and_place_intercept,
    place_leader,
    place_offset,
    shrink,
)
from longterm.linear_model.kernels.rows import clear, dot_and_length, whole_row

MOST_PASSES, MOST_STEPS, FEW_PASSES = 50, 100, 4


@helper
def begin(memory, rows, first):
    """Make w from z; before round 1 of constants given, W_1 = w_1."""
    p, s = memory.parameters[0], memory.scalars[0]
    if s.round == 1 and p.step > 0.0:
        s.multiplier_sum = p.weight_0
    shrink(memory.vector, s.multiplier * p.l1, memory.point)
    return 0.0, 0.0


@helper
def play_row(memory, rows, k, following, ahead, label, weight):
    """Play row k: whether it was played (else nothing was changed), and the margin from before it was learned."""
    p, s, z = memory.parameters[0], memory.scalars[0], memory.vector
    dot, length = dot_and_length(rows, k, memory.point)
    offset, _ = next_offset(p, s, label, weight)
    margin = margin_of(p, s, dot)
    accepted, slope, _, parts = charge(p, s, margin, length, label, weight)
    if not accepted:
        return False, margin, ahead
    place_offset(p, s, label, weight, offset)
    add_gradient(p, s, slope, length)
    s.multiplier_sum += next_weight(p, s)
    pay_scales_and_place_intercept(p, s, memory.mixture, dot, length, slope)
    u = whole_row(rows, k, memory.row)
    if p.scales == ONE:
        above = add_and_count(z, u, slope, s.multiplier * p.l1)
        weight_in_force = least_weight(p, leader_curvature(p, s), z, above)
    else:
        add(z, u, slope)
        weight_in_force = raised_weight(p, s, memory.mixture, z)
    clear(rows, k, memory.row)
    s.multiplier = min(weight_in_force, s.multiplier_sum)
    if p.max_features > 0:
        s.multiplier = max(s.multiplier, weight_for_few(p, z, s.multiplier))
    s.norm_1, s.norm_2 = shrink(z, s.multiplier * p.l1, memory.point)
    place_leader(p, s, memory.mixture, s.multiplier, s.norm_1, s.norm_2, slope)
    add_loss(p, s, parts, weight)
    return True, margin, ahead


@helper
def next_weight(p, s):
    """w_{t+1} = weight_0 (t + 1)^{1+growth}; found online M_t times that, and the bound's Σ 1/w is added to."""
    weight = p.weight_0 * (s.round + 1.0) ** (1.0 + p.growth)
    if p.step == 0.0:
        weight *= s.longest_gradient
        if weight > 0.0:
            s.bound_sum += 1.0 / weight if s.bound_sum > 0.0 else (s.round + 1.0) / weight
    return weight


@helper
def least_weight(p, a, z, above):
    """The smallest ν ≥ 0 with g ≤ 0 at its argmin, from what is above any one threshold."""
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
    """The ν above, from (n, V₁, V₂)."""
    n, total, squares = above
    excess = a * p.l1 * total + 0.5 * p.l2 * squares - p.budget * a * a
    if excess <= 0.0:
        return 0.0
    kappa = n * p.l1 * p.l1 + 2.0 * p.budget * p.l2
    return 2.0 * excess / (a * kappa + math.sqrt(a * a * kappa * kappa + 2.0 * p.l2 * kappa * excess))


@helper
def raised_weight(p, s, mixture, z):
    """The smallest ν ≥ ν_t whose mixture has g ≤ 0, or W_{t+1}."""
    weight, size = s.multiplier, -1.0
    for _ in range(MOST_PASSES):
        n, norm_1, norm_2 = soft_sums(z, weight * p.l1)
        g = mixture_excess(p, s, mixture, weight, norm_1, norm_2)
        if (g <= 0.0 and weight == s.multiplier) or n == size or abs(g) <= 1e-14 * p.budget:
            break
        size = n
        weight = model_root(p, s, mixture, weight, g, n, norm_1, norm_2)
    return weight


@helper
def weight_for_few(p, z, weight):
    """The smallest ν from here on with at most max_features coordinates |z_k| > νl1: one of the |z_k|, over l1.

    As a rule one coordinate is too many, and the smallest of those above is the threshold. Else halve the interval.
    """
    threshold = weight * p.l1
    count, least, largest = above_and_least(z, threshold)
    for _ in range(FEW_PASSES):
        if count <= p.max_features:
            return weight
        weight = up_to(least, p.l1)
        count, least, largest = above_and_least(z, weight * p.l1)
    low, high = weight, up_to(largest, p.l1)
    while count > p.max_features:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return high
        here, least, _ = above_and_least(z, middle * p.l1)
        if here > p.max_features:
            low = up_to(least, p.l1)  # nothing changes below
            count = above_and_least(z, low * p.l1)[0]
        else:
            high = middle
    return low


@helper
def up_to(size, l1):
    """The smallest ν found with νl1 ≥ size: a rounding must not leave the coordinate alive."""
    weight = size / l1
    while weight * l1 < size:
        weight *= 1.0 + 2.0**-52
    return weight


@helper
def above_and_least(z, threshold):
    """How many |z_k| are above the threshold, the least of them, and the largest."""
    count = 0
    least = np.inf
    largest = 0.0
    for j in range(len(z)):
        size = abs(z[j])
        if size > threshold:
            count += 1
            least = min(least, size)
            largest = max(largest, size)
    return count, least, largest


@helper
def mixture_excess(p, s, mixture, weight, norm_1, norm_2):
    """The G above."""
    scale = min(place_scales(mixture, s, s.gradient_squares, weight * p.l2, norm_2), p.most_factor)
    return scale * (p.l1 * norm_1 + 0.5 * p.l2 * scale * norm_2) - p.budget


@helper
def model_root(p, s, mixture, weight, g, n, norm_1, norm_2):
    """The root of G in [ν_t, W_{t+1}] with these n coordinates held fixed: false position, by Illinois."""
    low, low_g, high, high_g = weight, g, s.multiplier_sum, -p.budget
    if g > 0.0:
        if n * p.l1 > 0.0:
            high = min(high, weight + norm_1 / (n * p.l1))  # where they would all be gone
        high_g = modelled(p, s, mixture, weight, high - weight, n, norm_1, norm_2)
        if high_g > 0.0:
            return high
    else:
        high, high_g, low = weight, g, s.multiplier
        low_g = modelled(p, s, mixture, weight, low - weight, n, norm_1, norm_2)
        if low_g <= 0.0:
            return low
    last = 0
    for _ in range(MOST_STEPS):
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
    """G at ν + rise, with the n coordinates of ν."""
    fall = rise * p.l1
    squares = max(norm_2 - fall * (2.0 * norm_1 - n * fall), 0.0)
    return mixture_excess(p, s, mixture, weight + rise, max(norm_1 - n * fall, 0.0), squares)


@helper
def soft_sums(z, threshold):
    """How many |z_k| are above the threshold, what they exceed it by in sum, and in sum of squares."""
    count = 0.0
    total = 0.0
    squares = 0.0
    for j in range(len(z)):
        more = max(abs(z[j]) - threshold, 0.0)
        count += 1.0 if more > 0.0 else 0.0
        total += more
        squares += more * more
    return count, total, squares


@helper
def add(z, u, slope):
    """Add slope · u to z."""
    for j in range(len(u)):
        z[j] += slope * np.float64(u[j])


@helper
def count_above(z, threshold):
    """Count, V₁ and V₂ above the threshold."""
    count = 0.0
    total = 0.0
    squares = 0.0
    for j in range(len(z)):
        above = 1.0 if abs(z[j]) > threshold else 0.0
        kept = above * abs(z[j])
        count += above
        total += kept
        squares += kept * kept
    return count, total, squares


@helper
def add_and_count(z, u, slope, threshold):
    """Add slope · u to z, then `count_above`, in one pass."""
    count = 0.0
    total = 0.0
    squares = 0.0
    for j in range(len(u)):
        z[j] += slope * np.float64(u[j])
        above = 1.0 if abs(z[j]) > threshold else 0.0
        kept = above * abs(z[j])
        count += above
        total += kept
        squares += kept * kept
    return count, total, squares


@helper
def active(memory):
    """How many coordinates of x_t are not 0."""
    return nonzeros(memory.point)
