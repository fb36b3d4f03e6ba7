"""A-OGD for linear models, compiled: the rule of `longterm.AOGD`, of `longterm.AdaGradAOGD`, and with constant steps
that of `longterm.MahdaviOGD`.

The state's vector is v with x_t = s v, where s is the projection's factor, 1 inside the ball. A round has two passes:

    margin and length:   m = s ⟨u, v⟩ + b_t,   ‖u‖²
    step:                v ← s (1 − η_t λ_t l2) v − η_t λ_t l1 sign(v) − η_t c u,   ‖v‖₁ and ‖v‖² of what comes out

with c the slope of the loss; then s = min(1, R/‖v‖), and the norms give g(x_{t+1}). b_{t+1} = clip(b_t − η_t c, ±r).
Steps found online need the length of the whole direction first, a pass more, and b has a step of its own. A round
costs O(d), on sparse rows too.
"""

from __future__ import annotations

import math

import numpy as np

from longterm.linear_model import _layout as at
from longterm.linear_model._compile import helper
from longterm.linear_model._lanes import Lanes, lanes
from longterm.linear_model._losses import value_and_slope
from longterm.linear_model._round import (
    add_theta,
    ascend,
    clip,
    constraint_value,
    first_to_record,
    nonzeros,
    pack,
    penalty_weight,
    unpack,
    within_ball,
)
from longterm.linear_model._rows import AHEAD, clear, dot_and_length, fetch, number_of_rows, whole_row


@lanes(writes=0, sums=1)
def direction(v: Lanes, u: Lanes, slope: Lanes, sign: Lanes, share: Lanes) -> tuple[Lanes, ...]:
    """‖slope · u + sign · sign(v) + share · v‖²."""
    whole = slope * u + v.signed(sign) + share * v
    return (whole * whole,)


@lanes(writes=1, sums=2)
def descend(v: Lanes, u: Lanes, keep: Lanes, sign: Lanes, step: Lanes) -> tuple[Lanes, ...]:
    """The next v ← keep · v − sign · sign(v) − step · u; ‖v‖₁ and ‖v‖²."""
    new = keep * v - v.signed(sign) - step * u
    return new, abs(new), new * new


@helper
def adagrad_step(radius, squares):
    """Δ/√(2 S_t), Δ the diameter of the ball or of the interval; with S_t = 0 there is no step to take."""
    return 2.0 * radius / math.sqrt(2.0 * squares) if squares > 0.0 else 0.0


def play(rows, order, labels, weights, p, round, v, numbers, record, trace, margins):
    """Play rows[order] (all, where order is empty) up to the first that must be refused; how many were played."""
    (loss_sum, signed, hard, squared, multiplier, multiplier_sum, squares, largest) = unpack(numbers)[:8]
    (scale, norm_1, norm_2, intercept, slope_sum, bound_sum, slope_squares) = unpack(numbers)[8:]
    shuffled, count = len(order) > 0, len(order) if len(order) > 0 else number_of_rows(rows)
    online, constant, bound = p[at.STEP] == 0.0, p[at.MU] > 0.0, p[at.INTERCEPT_BOUND]
    loss, parameter, l1, l2 = int(p[at.LOSS]), p[at.LOSS_PARAMETER], p[at.L1], p[at.L2]
    longest, free = p[at.GRADIENT_BOUND] ** 2, 1.0 if bound > 0.0 else 0.0
    t, recorded, played = round[0], first_to_record(record, round[0]), count
    room = np.zeros(len(v))
    for i in range(count):
        k = order[i] if shuffled else i
        if shuffled and i + AHEAD < count:
            fetch(rows, labels, order[i + AHEAD])
        dot, length = dot_and_length(rows, k, v)
        margin = scale * dot + intercept
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
            trace[recorded, 3], trace[recorded, 4], trace[recorded, 5] = squared, nonzeros(v), multiplier
            recorded += 1
        u = whole_row(rows, k, room)
        pull_1, pull_2 = multiplier * l1, multiplier * l2
        if constant:
            eta, theta = p[at.STEP], p[at.THETA_0]
            multiplier = max(multiplier + p[at.MU] * (g - theta * multiplier), 0.0)
        elif online:
            squares += direction(v, u, slope, pull_1, pull_2 * scale)
            slope_squares, largest = (
                slope_squares + slope * slope * free,
                max(largest, math.sqrt(slope * slope * length)),
            )
            eta, theta = adagrad_step(p[at.RADIUS], squares), penalty_weight(p, t, largest)
            multiplier, bound_sum = ascend(multiplier, g, theta, t), add_theta(bound_sum, theta, t)
        else:
            theta = penalty_weight(p, t, largest)
            eta = p[at.STEP] * theta / p[at.THETA_0]
            multiplier = ascend(multiplier, g, theta, t)
        norm_1, norm_2 = descend(v, u, scale * (1.0 - eta * pull_2), eta * pull_1, eta * slope)
        clear(rows, k, room)
        scale = within_ball(1.0, norm_2, p[at.RADIUS])
        own = adagrad_step(bound, slope_squares) if online else eta  # found online, b is a learner of its own
        intercept = clip(intercept - own * slope, bound)
        t += 1
    round[0] = t
    first = (loss_sum, signed, hard, squared, multiplier, multiplier_sum, squares, largest)
    pack(numbers, (*first, scale, norm_1, norm_2, intercept, slope_sum, bound_sum, slope_squares))
    return played
