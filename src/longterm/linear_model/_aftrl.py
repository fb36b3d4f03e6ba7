"""A-FTRL for linear models, compiled: the rule of `longterm.AFTRL`, and of `longterm.AdaptiveAFTRL`.

The state's vector is z = Σ of the gradients so far. With τ = Λ_t l1 and w = soft(z, τ),

    x_t = −s w,   s = min( 1/(a_t + Λ_t l2), R/‖w‖ ),   b_t = clip( −z_b/a_t, ±r ),

so a round is two passes over the coordinates: one for the margin ⟨u, x_t⟩ and ‖u‖², one that adds the gradient to z and
makes the next w with its ‖w‖₁ and ‖w‖², which give g(x_{t+1}). λ_{t+1} and the next τ are known between the two.
A round costs O(d), on sparse rows too. Found online, b has a curvature of its own (`_round.leader_intercept`).
"""

from __future__ import annotations

import math

import numpy as np

from longterm.linear_model import _layout as at
from longterm.linear_model._losses import value_and_slope
from longterm.linear_model._round import (
    add_and_shrink,
    add_theta,
    ascend,
    constraint_value,
    first_to_record,
    leader_curvature,
    leader_intercept,
    nonzeros,
    pack,
    penalty_weight,
    shrink,
    unpack,
    within_ball,
)
from longterm.linear_model._rows import AHEAD, clear, dot_and_length, fetch, number_of_rows, whole_row


def play(rows, order, labels, weights, p, round, z, numbers, record, trace, margins):
    """Play rows[order] (all, where order is empty) up to the first that must be refused; how many were played."""
    (loss_sum, signed, hard, squared, multiplier, multiplier_sum, squares, largest) = unpack(numbers)[:8]
    (scale, norm_1, norm_2, intercept, slope_sum, bound_sum, slope_squares) = unpack(numbers)[8:]
    shuffled, count = len(order) > 0, len(order) if len(order) > 0 else number_of_rows(rows)
    online, bound = p[at.STEP] == 0.0, p[at.INTERCEPT_BOUND]
    loss, parameter, l1, l2 = int(p[at.LOSS]), p[at.LOSS_PARAMETER], p[at.L1], p[at.L2]
    longest, free = p[at.GRADIENT_BOUND] ** 2, 1.0 if bound > 0.0 else 0.0
    t, recorded, played = round[0], first_to_record(record, round[0]), count
    w, room = np.empty(len(z)), np.zeros(len(z))
    shrink(w, z, multiplier_sum * l1)
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
        if online:
            own = slope * slope * length  # the intercept's part sets its own step
            squares, largest = squares + own, max(largest, math.sqrt(own))
            slope_squares += slope * slope * free
        theta = penalty_weight(p, t, largest)
        multiplier = ascend(multiplier, g, theta, t)
        multiplier_sum += multiplier
        if online:
            bound_sum = add_theta(bound_sum, theta, t)
        u = whole_row(rows, k, room)
        norm_1, norm_2 = add_and_shrink(z, w, u, slope, multiplier_sum * l1)
        clear(rows, k, room)
        curvature = leader_curvature(p, t, squares)
        scale = within_ball(1.0 / (curvature + multiplier_sum * l2), norm_2, p[at.RADIUS])
        if bound > 0.0:
            slope_sum += slope
            intercept = leader_intercept(p, curvature, slope_sum, slope_squares)
        t += 1
    round[0] = t
    first = (loss_sum, signed, hard, squared, multiplier, multiplier_sum, squares, largest)
    pack(numbers, (*first, scale, norm_1, norm_2, intercept, slope_sum, bound_sum, slope_squares))
    return played
