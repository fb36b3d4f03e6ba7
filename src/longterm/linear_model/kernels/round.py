"""What several rules do in a round: charging the loss, the dual's step, the leader's place.

In all of them `p` is the record of parameters, `s` that of the state.

The order within a round is chosen for the processor, which looks some two hundred instructions ahead. Everything waits
for the slope, the multiplier and the pass, one after another. What waits for none of them comes first (logarithms,
while the last pass is added up), what nothing waits for comes last (the loss's value): a fifth of a round.
"""

from __future__ import annotations

import math

import numpy as np

from longterm.linear_model.kernels.compile import helper, in_order
from longterm.linear_model.kernels.functions import falling_power, logarithm
from longterm.linear_model.kernels.layout import MEAN, NO_OFFSET, ONE, PRICED
from longterm.linear_model.kernels.losses import slope_and_parts, value_of
from longterm.linear_model.kernels.mixture import (
    begin_mixture,
    owe_round,
    pay,
    place_residual,
    place_scales,
    price,
    settle,
)
from longterm.linear_model.kernels.vectors import logarithms

FARTHER = 1.5
"""How much farther from the first target than any so far a target is predicted. With 2 the first 500 rows of series
lose a fifth more, to and fro; with 1.25 one that rises (TrumpApproval) is behind, by two fifths."""
LONGEST_GRADIENT = 1e90
"""A row with a longer gradient is refused: squares of gradients and their sums would come near the largest float."""


@helper
def margin_of(p, s, dot):
    """⟨u, x_t⟩ + b_t, with ⟨u, −soft(z, τ)⟩ given; for targets not much farther from the first than any of them was.

    A target within that interval loses nothing by it, and its slope still points away from it: theorems hold as they
    are. The first few rows, when no step has its size yet, would be scored anywhere.
    """
    margin = s.scale * dot + s.intercept
    if p.offset == MEAN:
        margin = clip(margin, s.reach)
    return margin


@helper
def charge(p, s, margin, length, label, weight):
    """Add g(x_t) to the sums: whether the row may be learned (else nothing was changed), slope, g(x_t), parts of f_t.

    `length` is ‖u‖². A NaN anywhere makes the slope or the row's length NaN, and the row is refused.
    """
    slope, part, share = slope_and_parts(p.loss, p.loss_parameter, margin, label)
    slope = weight * slope
    free = 1.0 if p.intercept_bound + p.residual_radius > 0.0 else 0.0
    moderate = length <= p.longest and slope * slope * (length + free) <= LONGEST_GRADIENT**2
    if not (moderate and weight * part < math.inf):
        return False, slope, 0.0, (part, share)
    if p.offset == MEAN:
        s.reach = max(s.reach, FARTHER * abs(label))
    norm_1, norm_2 = s.norm_1 + s.norm_1_low, s.norm_2 + s.norm_2_low
    g = s.scale * (p.l1 * norm_1 + 0.5 * p.l2 * s.scale * norm_2) - p.budget
    positive = max(g, 0.0)
    s.signed_violation += g
    s.hard_violation += positive
    s.squared_violation += positive * positive
    return True, slope, g, (part, share)


@helper
def add_loss(p, s, parts, weight):
    """Add f_t(x_t) to its sum."""
    part, share = parts
    s.loss_sum += weight * value_of(p.loss, part, share)


@helper
def add_gradient(p, s, slope, length):
    """Constants found online: V_t, M_t and the intercept's own V_b."""
    if p.step == 0.0:
        square = slope * slope * length  # the intercept's part of the gradient sets its own step
        s.gradient_squares += square
        s.longest_gradient = max(s.longest_gradient, math.sqrt(square))
        if p.intercept_bound + p.residual_radius > 0.0:
            s.intercept_squares += slope * slope


@helper
def ascend(p, s, g, logarithm_of_t):
    """The dual's step, λ_{t+1} = [λ_t + μ_t (g(x_t) − θ_t λ_t)]₊ with μ_t = 1/(θ_t (t + 1)); returns θ_t.

    θ_t = theta_0/t^β; found online theta_0/(M_t t^β), and while M_t is 0 there is no θ_t, and λ stays as it was.
    """
    t, online = s.round, p.step == 0.0
    theta = p.theta_0 * falling_power(logarithm_of_t, p.beta)
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
def pay_scales_and_place_intercept(p, s, mixture, dot, length, slope):
    """The scales of the mixture, where there is one, owe the round or pay for it; `dot` is ⟨u, −soft(z, τ)⟩.

    Then the next b. Scales with a price have not paid for the multiplier yet, so b waits for that (`place_leader`).
    """
    if p.scales > ONE:
        begin_mixture(mixture, s, length)
        b, residual_b, ends = owe_round(mixture, s, slope * dot, -slope * s.intercept_slope)
        if p.scales == PRICED:
            pay(mixture, s, b, residual_b)
            return
        if ends:
            pay(mixture, s, b, residual_b)
            settle(mixture, s)
    place_intercept(p, s, mixture, slope)


@helper
def place_leader(p, s, mixture, weight, norm_1, norm_2, slope):
    """The factor of x_{t+1} = −s soft(z, τ), s = min(1/(a + weight l2), R/‖soft(z, τ)‖), or the mixture's Σ p_k s_k."""
    if p.scales == ONE:
        s.scale = within_ball(1.0 / (leader_curvature(p, s) + weight * p.l2), norm_2, p.radius)
        return
    s.scale = min(place_scales(mixture, s, s.gradient_squares, weight * p.l2, norm_2), p.most_factor)
    if p.scales == PRICED:
        price(mixture, s, s.multiplier, p.l1 * norm_1, 0.5 * p.l2 * norm_2, p.budget)
        settle(mixture, s)
        s.scale = min(place_scales(mixture, s, s.gradient_squares, weight * p.l2, norm_2), p.most_factor)
        place_intercept(p, s, mixture, slope)


@helper
def place_intercept(p, s, mixture, slope):
    """The next b: clip(−z_b/a, ±r); with a mixture a residual on top of the offset (`place_offset`).

    Found online, b in an interval is a learner of its own, with the curvature √(Σ slope²)/r.
    """
    if p.intercept_bound + p.residual_radius > 0.0:
        s.intercept_slope += slope
    if p.intercept_bound > 0.0:
        if p.step > 0.0:
            s.intercept = clip(-s.intercept_slope / leader_curvature(p, s), p.intercept_bound)
        elif s.intercept_squares > 0.0:
            curvature = math.sqrt(s.intercept_squares) / p.intercept_bound
            s.intercept = clip(-s.intercept_slope / curvature, p.intercept_bound)
    elif p.scales > ONE:
        if p.residual_radius > 0.0:
            s.residual = -s.intercept_slope * place_residual(mixture, s)
        s.intercept += s.residual


@helper
def next_offset(p, s, label, weight):
    """What the next b is without its residual, with a mixture; log t, which the dual's step needs. Nothing changes."""
    t = np.float64(s.round)
    if p.scales == ONE or p.intercept_bound > 0.0:
        return s.intercept, logarithm(t)
    heaviest = max(s.heaviest, weight)
    if p.offset == NO_OFFSET or heaviest == 0.0:
        return 0.0, logarithm(t)
    if p.offset == MEAN:
        return (s.negative_weight + weight * label) / (s.positive_weight + weight), logarithm(t)
    positive, negative = weights_with(s, label, weight)
    return logarithms(positive + 0.5 * heaviest, negative + 0.5 * heaviest, t)


@helper
def place_offset(p, s, label, weight, offset):
    """The offset is that one now."""
    if p.scales == ONE or p.intercept_bound > 0.0:
        return
    s.heaviest, s.intercept = max(s.heaviest, weight), offset
    if p.offset == MEAN:
        s.positive_weight += weight
        s.negative_weight += weight * label
    elif p.offset != NO_OFFSET:
        s.positive_weight, s.negative_weight = weights_with(s, label, weight)


@in_order
def weights_with(s, label, weight):
    """The classes' weights with this row. No branch on the label, which cannot be guessed: LLVM makes one otherwise."""
    positive = weight if label > 0.0 else 0.0
    return s.positive_weight + positive, s.negative_weight + (weight - positive)


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
