"""Penalised FTRL for linear models, compiled: `longterm.PenalisedFTRL`, and `longterm.AdaptivePenalisedFTRL`.

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

from longterm.linear_model import _layout as at
from longterm.linear_model._compile import helper
from longterm.linear_model._lanes import Lanes, lanes
from longterm.linear_model._losses import value_and_slope
from longterm.linear_model._round import (
    constraint_value,
    first_to_record,
    leader_curvature,
    leader_intercept,
    nonzeros,
    pack,
    shrink,
    unpack,
    within_ball,
)
from longterm.linear_model._rows import AHEAD, clear, dot_and_length, fetch, number_of_rows, whole_row


@lanes(writes=1, sums=3)
def add_and_count(z: Lanes, u: Lanes, slope: Lanes, threshold: Lanes) -> tuple[Lanes, ...]:
    """Add slope · u to z; n, V₁ and V₂ above the threshold."""
    z = z + slope * u
    above = abs(z).beyond(threshold)
    kept = above * z
    return z, above, abs(kept), kept * kept


@lanes(writes=0, sums=3)
def count_above(z: Lanes, threshold: Lanes) -> tuple[Lanes, ...]:
    """Count, V₁ and V₂ above the threshold."""
    above = abs(z).beyond(threshold)
    kept = above * z
    return above, abs(kept), kept * kept


@helper
def root(p, a, found):
    """The ν above, from (n, V₁, V₂)."""
    n, total, squares = found
    l1, l2, budget = p[at.L1], p[at.L2], p[at.BUDGET]
    excess = a * l1 * total + 0.5 * l2 * squares - budget * a * a
    if excess <= 0.0:
        return 0.0
    kappa = n * l1 * l1 + 2.0 * budget * l2
    return 2.0 * excess / (a * kappa + math.sqrt(a * a * kappa * kappa + 2.0 * l2 * kappa * excess))


@helper
def least_weight(p, a, z, found):
    """The smallest ν ≥ 0 with g ≤ 0 at its argmin, from what is above any one threshold."""
    weight, size = root(p, a, found), found[0]
    found = count_above(z, weight * p[at.L1])
    if found[0] == size:  # the first threshold had the right set
        return weight
    size = len(z) + 1.0
    while found[0] < size:
        weight, size = root(p, a, found), found[0]
        found = count_above(z, weight * p[at.L1])
    return weight


def play(rows, order, labels, weights, p, round, z, numbers, record, trace, margins):
    """Play rows[order] (all, where order is empty) up to the first that must be refused; how many were played."""
    (loss_sum, signed, hard, squared, multiplier, weight_sum, squares, largest) = unpack(numbers)[:8]
    (scale, norm_1, norm_2, intercept, slope_sum, bound_sum, slope_squares) = unpack(numbers)[8:]
    shuffled, count = len(order) > 0, len(order) if len(order) > 0 else number_of_rows(rows)
    online, bound = p[at.STEP] == 0.0, p[at.INTERCEPT_BOUND]
    loss, parameter, l1, l2 = int(p[at.LOSS]), p[at.LOSS_PARAMETER], p[at.L1], p[at.L2]
    longest, free = p[at.GRADIENT_BOUND] ** 2, 1.0 if bound > 0.0 else 0.0
    t, recorded, played = round[0], first_to_record(record, round[0]), count
    if t == 1 and not online:
        weight_sum = p[at.WEIGHT_0]  # W_1 = w_1
    w, room = np.empty(len(z)), np.zeros(len(z))
    shrink(w, z, multiplier * l1)
    for i in range(count):
        k = order[i] if shuffled else i
        if shuffled and i + AHEAD < count:
            fetch(rows, labels, order[i + AHEAD])
        dot, length = dot_and_length(rows, k, w)
        margin = intercept - scale * dot
        value, slope = value_and_slope(loss, parameter, margin, labels[k])
        if len(weights) > 0:
            value, slope = weights[k] * value, weights[k] * slope
        square = slope * slope * (length + free)
        if not (square <= longest and value < math.inf):
            played = i
            break
        if len(margins) > 0:
            margins[i] = margin
        g = constraint_value(p, scale, norm_1, norm_2)
        positive = max(g, 0.0)
        loss_sum, signed, hard, squared = loss_sum + value, signed + g, hard + positive, squared + positive * positive
        if recorded < len(record) and record[recorded] == t:
            trace[recorded, 0], trace[recorded, 1], trace[recorded, 2] = loss_sum, signed, hard
            trace[recorded, 3], trace[recorded, 4], trace[recorded, 5] = squared, nonzeros(w), multiplier
            recorded += 1
        new = p[at.WEIGHT_0] * (t + 1.0) ** (1.0 + p[at.GROWTH])
        if online:
            own = slope * slope * length  # the intercept's part sets its own step
            squares, largest = squares + own, max(largest, math.sqrt(own))
            slope_squares += slope * slope * free
            new *= largest
            if new > 0.0:
                bound_sum += 1.0 / new if bound_sum > 0.0 else (t + 1.0) / new
        weight_sum += new
        u = whole_row(rows, k, room)
        found = add_and_count(z, u, slope, multiplier * l1)
        clear(rows, k, room)
        curvature = leader_curvature(p, t, squares)
        multiplier = min(least_weight(p, curvature, z, found), weight_sum)
        norm_1, norm_2 = shrink(w, z, multiplier * l1)
        scale = within_ball(1.0 / (curvature + multiplier * l2), norm_2, p[at.RADIUS])
        if bound > 0.0:
            slope_sum += slope
            intercept = leader_intercept(p, curvature, slope_sum, slope_squares)
        t += 1
    round[0] = t
    first = (loss_sum, signed, hard, squared, multiplier, weight_sum, squares, largest)
    pack(numbers, (*first, scale, norm_1, norm_2, intercept, slope_sum, bound_sum, slope_squares))
    return played
