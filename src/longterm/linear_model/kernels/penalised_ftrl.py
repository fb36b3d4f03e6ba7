"""Penalised FTRL for linear models, compiled: `learners.PenalisedFTRL`, and `learners.AdaptivePenalisedFTRL`.

x_t is A-FTRL's, with ν_t where that has Λ_t: the smallest ν ≥ 0 whose argmin has g ≤ 0, or W_t if that is smaller.

The root without sorting: let n, V₁, V₂ be count, sum and sum of squares of the |z_k| above a threshold. Taking just
those as the coordinates that are not 0, g = 0 at

    ν = 2C/(aκ + √(a²κ² + 2 l2 κ C)),   κ = n l1² + 2ρ l2,   C = [a l1 V₁ + (l2/2) V₂ − ρa²]₊.

For every threshold this is at most the true ν, and it is the true one for the threshold ν l1 (`docs/aftrl.md`). So
begin with the threshold of the round before, and go on with ν l1: after the first step thresholds only rise and sets
only shrink, until a set repeats. From one round to the next that is two or three passes.
"""

from __future__ import annotations

import math

import numpy as np

from longterm.linear_model.kernels.compile import helper
from longterm.linear_model.kernels.round import add_gradient, charge, leader_curvature, place_intercept, place_leader, shrink
from longterm.linear_model.kernels.rows import clear, dot_and_length, whole_row


@helper
def begin(memory):
    """Make w from z; before round 1 of constants given, W_1 = w_1."""
    p, s = memory.parameters[0], memory.scalars[0]
    if s.round == 1 and p.step > 0.0:
        s.multiplier_sum = p.weight_0
    shrink(memory.vector, s.multiplier * p.l1, memory.point)


@helper
def play_row(memory, rows, k, following, label, weight):
    """Play row k: whether it was played (else nothing was changed), and the margin from before it was learned."""
    p, s, z = memory.parameters[0], memory.scalars[0], memory.vector
    dot, length = dot_and_length(rows, k, memory.point)
    margin = s.scale * dot + s.intercept
    accepted, slope, _ = charge(p, s, margin, length, label, weight)
    if not accepted:
        return False, margin
    add_gradient(p, s, slope, length)
    s.multiplier_sum += next_weight(p, s)
    u = whole_row(rows, k, memory.row)
    above = add_and_count(z, u, slope, s.multiplier * p.l1)
    clear(rows, k, memory.row)
    curvature = leader_curvature(p, s)
    s.multiplier = min(least_weight(p, curvature, z, above), s.multiplier_sum)
    s.norm_1, s.norm_2 = shrink(z, s.multiplier * p.l1, memory.point)
    place_leader(p, s, memory.mixture, s.multiplier, s.norm_1, s.norm_2)
    place_intercept(p, s, memory.mixture, slope, label, weight)
    return True, margin


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
