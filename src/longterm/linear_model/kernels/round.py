"""The part of a round that several rules share: the loss, the dual step, the leader and the intercept.

`p` is the record of parameters, `s` that of the state. The range of a row's numbers is checked before (`_rows`), so no
round can fail half-way.
"""

from __future__ import annotations

import math

import numpy as np

from longterm.linear_model.kernels.compile import helper
from longterm.linear_model.kernels.layout import LOG_ODDS, MEAN, RESIDUAL_SCALES, WEIGHT_SCALES
from longterm.linear_model.kernels.losses import value_and_slope
from longterm.linear_model.kernels.mixture import add_losses, begin, charge, place, set_shares, take_over
from longterm.theory.scales import BLOCK_TOLERANCE

REACH = 1.5
"""Margins of regression are clipped to this multiple of the largest distance of a target from the first one. With 2 the
first 500 rows of time series have a fifth more loss, with 1.25 a rising one has two fifths more."""

TYPICAL = 0.25
"""A typical size of x, for rows of length 1."""
PRIOR_POWER, RESIDUAL_PRIOR_POWER = 0.5, 2.0
"""Exponents of the priors. The residual is what the offset leaves over, so its large scales have small priors."""
RESIDUAL_TOLERANCE = 0.3
"""By how much an exponent of the residual's mixture may move within a block. Twice that of the weights ends a third
fewer blocks, and no measured loss was larger for it."""


@helper
def clip(value, bound):
    """Return the nearest number in [−bound, bound]."""
    return min(max(value, -bound), bound)


@helper
def score(z, threshold, u, means, factors, rows, i):
    """Store the centred and scaled row i in u. Return ⟨u, w⟩ for w = −soft(z, threshold), and ‖u‖²."""
    dot = length = 0.0
    for j in range(len(z)):
        u[j] = (np.float64(rows[i, j]) - means[j]) * factors[j]
        dot += u[j] * (clip(z[j], threshold) - z[j])
        length += u[j] * u[j]
    return dot, length


@helper
def excess(p, s):
    """Return g(x) of the decision in force."""
    norm_1, norm_2 = s.norm_1 + s.norm_1_low, s.norm_2 + s.norm_2_low
    return s.scale * (p.l1 * norm_1 + 0.5 * p.l2 * s.scale * norm_2) - p.budget


@helper
def observe(p, s, dot, label, weight):
    """Score a row with ⟨u, w⟩ = dot, and add f_t(x_t) and g(x_t) to their sums.

    Return the margin ⟨u, x_t⟩ + b_t, the weighted slope of the loss, and g(x_t). In regression margins are clipped to
    ±reach. A target within ±reach loses nothing by it and its slope keeps its sign: the theorems hold.
    """
    margin = s.scale * dot + s.intercept
    if p.offset == MEAN:
        margin = clip(margin, s.reach)
        s.reach = max(s.reach, REACH * abs(label))
    value, slope = value_and_slope(p.loss, p.loss_parameter, margin, label)
    s.loss_sum += weight * value
    g = excess(p, s)
    positive = max(g, 0.0)
    s.signed_violation += g
    s.hard_violation += positive
    s.squared_violation += positive * positive
    return margin, weight * slope, g


@helper
def ascend(p, s, g):
    """Take the dual step λ_{t+1} = [λ_t + μ_t (g(x_t) − θ_t λ_t)]₊ with μ_t = 1/(θ_t (t + 1)).

    θ_t = theta_0/(M_t t^β). While M_t is 0 there is no θ_t, and λ stays.
    """
    t = float(s.round)
    theta = p.theta_0 * t**-p.beta / s.longest_gradient if s.longest_gradient > 0.0 else 0.0
    if theta > 0.0:
        s.multiplier = max(s.multiplier + (g - theta * s.multiplier) / (theta * (t + 1.0)), 0.0)
    # S_θ + δ_μ: θ_t, and 1/μ_t = (t + 1) θ_t in the first round that has one
    s.bound_sum += theta if s.bound_sum > 0.0 else theta * (t + 1.0)


@helper
def add_gradient(p, s, slope, length):
    """Add the gradient to V, M and V_b; `length` is ‖u‖²."""
    square = slope * slope * length
    s.gradient_squares += square
    s.longest_gradient = max(s.longest_gradient, math.sqrt(square))
    if p.intercept_bound + p.residual_radius > 0.0:
        s.intercept_squares += slope * slope


@helper
def charge_scales(p, s, weights, residual, dot, length, slope):
    """Add the round to the pending losses of both mixtures, and charge them if the block ends; `dot` is ⟨u, w⟩."""
    if s.first_length == 0.0 and length > 0.0:  # the first row sets a typical size of x
        s.first_length = math.sqrt(length)
        begin(weights, WEIGHT_SCALES, weights.radius[0], TYPICAL / s.first_length, PRIOR_POWER)
    b, ends = add_losses(weights, WEIGHT_SCALES, slope * dot, s.round)
    residual_b = 0.0
    if p.residual_radius > 0.0:
        residual_b, residual_ends = add_losses(residual, RESIDUAL_SCALES, -slope * s.intercept_slope, s.round)
        ends = ends or residual_ends
    if ends:
        charge(weights, WEIGHT_SCALES, b)
        set_shares(weights, WEIGHT_SCALES, BLOCK_TOLERANCE)
        if p.residual_radius > 0.0:
            charge(residual, RESIDUAL_SCALES, residual_b)
            set_shares(residual, RESIDUAL_SCALES, RESIDUAL_TOLERANCE)


@helper
def place_leader(p, s, weights, multiplier, norm_2):
    """Set the factor s of x_{t+1} = s w, that of the mixture.

    Where x_{t+1} would pass the budget for the first time, the mixture continues in the ball that holds {g ≤ 0}.
    """
    factor = place(weights, WEIGHT_SCALES, s.gradient_squares, multiplier * p.l2, norm_2)
    s.scale = min(factor, p.factor_bound)
    if s.reached == 0 and excess(p, s) > 0.0:
        s.reached = 1
        if weights.radius[0] > p.budget_radius:
            charge(weights, WEIGHT_SCALES, 0.0)
            take_over(weights, WEIGHT_SCALES, p.budget_radius)
            begin(weights, WEIGHT_SCALES, p.budget_radius, TYPICAL / s.first_length, PRIOR_POWER)
            set_shares(weights, WEIGHT_SCALES, BLOCK_TOLERANCE)
            factor = place(weights, WEIGHT_SCALES, s.gradient_squares, multiplier * p.l2, norm_2)
            s.scale = min(factor, p.factor_bound)


@helper
def place_intercept(p, s, residual, slope, label, weight):
    """Set b_{t+1}: an offset plus a residual or, in an interval ±r, clip(−z_b r/√V_b, ±r).

    The offset is the log-odds of the classes so far, the mean target, or 0.
    """
    if p.intercept_bound + p.residual_radius > 0.0:
        s.intercept_slope += slope
    if p.intercept_bound > 0.0:
        if s.intercept_squares > 0.0:
            curvature = math.sqrt(s.intercept_squares) / p.intercept_bound
            s.intercept = clip(-s.intercept_slope / curvature, p.intercept_bound)
        return
    if p.residual_radius > 0.0:
        slope_squared = s.intercept_slope * s.intercept_slope
        factor = place(residual, RESIDUAL_SCALES, s.intercept_squares, 0.0, slope_squared)
        s.residual = -s.intercept_slope * factor
    s.heaviest = max(s.heaviest, weight)
    offset = 0.0
    if p.offset == MEAN:
        s.positive_weight += weight
        s.negative_weight += weight * label
        offset = s.negative_weight / s.positive_weight if s.heaviest > 0.0 else 0.0
    elif p.offset == LOG_ODDS:
        s.positive_weight += weight if label > 0.0 else 0.0
        s.negative_weight += 0.0 if label > 0.0 else weight
        half = 0.5 * s.heaviest
        offset = math.log((s.positive_weight + half) / (s.negative_weight + half)) if half > 0.0 else 0.0
    s.intercept = offset + s.residual
