"""A-OGD for linear models, compiled: the rule of `learners.AOGD`, of `learners.AdaGradAOGD`, and with constant steps
that of `learners.MahdaviOGD`.

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

from longterm.linear_model.kernels.compile import helper
from longterm.linear_model.kernels.functions import logarithm
from longterm.linear_model.kernels.round import add_loss, ascend, charge, clip, nonzeros, within_ball
from longterm.linear_model.kernels.rows import clear, dot_and_length, whole_row


@helper
def begin(memory, rows, first):
    """Nothing: x_t is the state's vector, up to its factor."""
    return 0.0, 0.0


@helper
def play_row(memory, rows, k, following, ahead, label, weight):
    """Play row k: whether it was played (else nothing was changed), and the margin from before it was learned."""
    p, s, v = memory.parameters[0], memory.scalars[0], memory.vector
    dot, length = dot_and_length(rows, k, v)
    margin = s.scale * dot + s.intercept
    accepted, slope, g, parts = charge(p, s, margin, length, label, weight)
    if not accepted:
        return False, margin, ahead
    add_loss(p, s, parts, weight)
    u = whole_row(rows, k, memory.row)
    pull_1, pull_2 = s.multiplier * p.l1, s.multiplier * p.l2
    if p.mu > 0.0:  # Mahdavi's constant steps
        eta = p.step
        s.multiplier = max(s.multiplier + p.mu * (g - p.theta_0 * s.multiplier), 0.0)
    elif p.step > 0.0:
        eta = p.step * ascend(p, s, g, logarithm(np.float64(s.round))) / p.theta_0
    else:
        s.gradient_squares += squared_direction(v, u, slope, pull_1, pull_2 * s.scale)
        s.longest_gradient = max(s.longest_gradient, math.sqrt(slope * slope * length))
        eta = adagrad_step(p.radius, s.gradient_squares)
        ascend(p, s, g, logarithm(np.float64(s.round)))
    s.norm_1, s.norm_2 = descend(v, u, s.scale * (1.0 - eta * pull_2), eta * pull_1, eta * slope)
    clear(rows, k, memory.row)
    s.scale = within_ball(1.0, s.norm_2, p.radius)
    if p.intercept_bound > 0.0:
        if p.step == 0.0:  # found online, b is a learner of its own
            s.intercept_squares += slope * slope
            eta = adagrad_step(p.intercept_bound, s.intercept_squares)
        s.intercept = clip(s.intercept - eta * slope, p.intercept_bound)
    return True, margin, ahead


@helper
def adagrad_step(radius, squares):
    """Δ/√(2 S_t), Δ the diameter of the ball or of the interval; with S_t = 0 there is no step to take."""
    return 2.0 * radius / math.sqrt(2.0 * squares) if squares > 0.0 else 0.0


@helper
def signed(size, value):
    """The number size · sign(value), 0 where value is 0."""
    return math.copysign(size, value) if value != 0.0 else 0.0


@helper
def squared_direction(v, u, slope, sign, share):
    """‖slope · u + sign · sign(v) + share · v‖²."""
    total = 0.0
    for j in range(len(u)):
        whole = slope * np.float64(u[j]) + signed(sign, v[j]) + share * v[j]
        total += whole * whole
    return total


@helper
def descend(v, u, keep, sign, step):
    """The next v ← keep · v − sign · sign(v) − step · u; ‖v‖₁ and ‖v‖²."""
    norm_1 = 0.0
    norm_2 = 0.0
    for j in range(len(u)):
        new = keep * v[j] - signed(sign, v[j]) - step * np.float64(u[j])
        v[j] = new
        norm_1 += abs(new)
        norm_2 += new * new
    return norm_1, norm_2


@helper
def active(memory):
    """How many coordinates of x_t are not 0."""
    return nonzeros(memory.vector)
