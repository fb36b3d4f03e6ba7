"""What several rules do in a round: charging the loss, the dual's step, the leader's place.

In all of them `p` is the record of parameters, `s` that of the state.
"""

from __future__ import annotations

import math

import numpy as np

from longterm.linear_model.kernels.compile import helper
from longterm.linear_model.kernels.losses import value_and_slope

LONGEST_GRADIENT = 1e100
"""A row with a longer gradient is refused: sums of squares would overflow."""


@helper
def charge(p, s, margin, length, label, weight):
    """Add f_t(x_t) and g(x_t) to the sums: whether the row may be learned (else nothing was changed), slope, g(x_t).

    `length` is ‖u‖². A NaN anywhere makes the value or the gradient's length NaN, and the row is refused.
    """
    value, slope = value_and_slope(p.loss, p.loss_parameter, margin, label)
    value, slope = weight * value, weight * slope
    free = 1.0 if p.intercept_bound > 0.0 else 0.0
    if not (slope * slope * (length + free) <= LONGEST_GRADIENT**2 and value < math.inf):
        return False, slope, 0.0
    norm_1, norm_2 = s.norm_1 + s.norm_1_low, s.norm_2 + s.norm_2_low
    g = s.scale * (p.l1 * norm_1 + 0.5 * p.l2 * s.scale * norm_2) - p.budget
    positive = max(g, 0.0)
    s.loss_sum += value
    s.signed_violation += g
    s.hard_violation += positive
    s.squared_violation += positive * positive
    return True, slope, g


@helper
def add_gradient(p, s, slope, length):
    """Constants found online: V_t, M_t and the intercept's own V_b."""
    if p.step == 0.0:
        square = slope * slope * length  # the intercept's part of the gradient sets its own step
        s.gradient_squares += square
        s.longest_gradient = max(s.longest_gradient, math.sqrt(square))
        if p.intercept_bound > 0.0:
            s.intercept_squares += slope * slope


@helper
def ascend(p, s, g):
    """The dual's step, λ_{t+1} = [λ_t + μ_t (g(x_t) − θ_t λ_t)]₊ with μ_t = 1/(θ_t (t + 1)); returns θ_t.

    θ_t = theta_0/t^β; found online theta_0/(M_t t^β), and while M_t is 0 there is no θ_t, and λ stays as it was.
    """
    t, online = s.round, p.step == 0.0
    theta = p.theta_0 / t**p.beta
    if online:
        theta = theta / s.longest_gradient if s.longest_gradient > 0.0 else 0.0
    if theta > 0.0:
        s.multiplier = max(s.multiplier + (g - theta * s.multiplier) / (theta * (t + 1.0)), 0.0)
    if online:  # S_θ + δ_μ: θ_t, and 1/μ_t = (t + 1) θ_t in the first round that has one
        s.bound_sum += theta if s.bound_sum > 0.0 else theta * (t + 1.0)
    return theta


@helper
def leader_curvature(p, s):
    """a_{t+1} = √(t + 1)/step; found online √V_t/R, or 1 while every gradient was 0 (x is 0 whatever it is)."""
    if p.step > 0.0:
        return math.sqrt(s.round + 1.0) / p.step
    return math.sqrt(s.gradient_squares) / p.radius if s.gradient_squares > 0.0 else 1.0


@helper
def place_leader(p, s, curvature, weight, norm_2, slope):
    """The factor of x_{t+1} = −s soft(z, τ), s = min(1/(a + weight l2), R/‖soft(z, τ)‖); then b_{t+1}.

    b_{t+1} = clip(−z_b/a, ±r). Found online, b is a learner of its own, with the curvature √(Σ slope²)/r.
    """
    s.scale = within_ball(1.0 / (curvature + weight * p.l2), norm_2, p.radius)
    if p.intercept_bound > 0.0:
        s.intercept_slope += slope
        if p.step > 0.0:
            s.intercept = clip(-s.intercept_slope / curvature, p.intercept_bound)
        elif s.intercept_squares > 0.0:
            curvature = math.sqrt(s.intercept_squares) / p.intercept_bound
            s.intercept = clip(-s.intercept_slope / curvature, p.intercept_bound)


@helper
def within_ball(scale, norm_2, radius):
    """The factor that puts scale · v into the ball, from ‖v‖²."""
    return radius / math.sqrt(norm_2) if norm_2 * scale * scale > radius * radius else scale


@helper
def clip(value, bound):
    """The nearest number in [−bound, bound]."""
    return min(max(value, -bound), bound)


@helper
def shrink(z, threshold, point):
    """Make `point` = −soft(z, threshold); ‖point‖₁ and ‖point‖²."""
    norm_1 = 0.0
    norm_2 = 0.0
    for j in range(len(z)):
        new = clip(z[j], threshold) - z[j]
        point[j] = new
        norm_1 += abs(new)
        norm_2 += new * new
    return norm_1, norm_2


@helper
def nonzeros(v):
    """How many numbers of v are not 0."""
    return np.count_nonzero(v)
