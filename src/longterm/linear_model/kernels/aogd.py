"""A-OGD for linear models as a kernel: `learners.AOGD` and `learners.AdaGradAOGD`.

The state's vector is v with x_t = s v, where s is the projection's factor, 1 inside the ball. A round has two passes:

    margin and length:   m = s ⟨u, v⟩ + b_t,   ‖u‖²
    step:                v ← s (1 − η_t λ_t l2) v − η_t λ_t l1 sign(v) − η_t c u,   ‖v‖₁ and ‖v‖² of the result

with c the slope of the loss. Then s = min(1, R/‖v‖), and the norms give g(x_{t+1}). b_{t+1} = clip(b_t − η_t c, ±r).
Steps found online need the length of the whole direction first, which is a third pass, and b has a step of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from longterm.linear_model.kernels.compile import helper, use
from longterm.linear_model.kernels.round import ascend, clip, observe, within_ball


def row_loop(digest: str) -> Callable[..., None]:
    """Return the function that learns rows by this rule and writes their margins, to be compiled with this digest."""

    def learn_rows(parameters, scalars, mixtures, v, rows, labels, weights, margins):
        use(digest)
        p, s, d = parameters[0], scalars[0], len(v)
        for i in range(len(rows)):
            dot = length = 0.0
            for j in range(d):
                u = np.float64(rows[i, j])
                dot += u * v[j]
                length += u * u
            margins[i], slope, g = observe(p, s, dot, labels[i], weights[i])
            pull_1, pull_2 = s.multiplier * p.l1, s.multiplier * p.l2
            if p.step > 0.0:
                eta = p.step * ascend(p, s, g) / p.theta_0
            else:
                s.gradient_squares += squared_direction(v, rows, i, slope, pull_1, pull_2 * s.scale)
                s.longest_gradient = max(s.longest_gradient, math.sqrt(slope * slope * length))
                eta = adagrad_step(p.radius, s.gradient_squares)
                ascend(p, s, g)
            keep, sign, step = s.scale * (1.0 - eta * pull_2), eta * pull_1, eta * slope
            norm_1 = norm_2 = 0.0
            for j in range(d):
                new = keep * v[j] - signed(sign, v[j]) - step * np.float64(rows[i, j])
                v[j] = new
                norm_1 += abs(new)
                norm_2 += new * new
            s.norm_1, s.norm_2 = norm_1, norm_2
            s.scale = within_ball(1.0, norm_2, p.radius)
            if p.intercept_bound > 0.0:
                if p.step == 0.0:
                    s.intercept_squares += slope * slope
                    eta = adagrad_step(p.intercept_bound, s.intercept_squares)
                s.intercept = clip(s.intercept - eta * slope, p.intercept_bound)
            s.round += 1

    return learn_rows


@helper
def adagrad_step(radius, squares):
    """Return Δ/√(2 S_t), Δ the diameter of the ball or interval; 0 while S_t is 0."""
    return 2.0 * radius / math.sqrt(2.0 * squares) if squares > 0.0 else 0.0


@helper
def signed(size, value):
    """Return size · sign(value), which is 0 where value is 0."""
    return math.copysign(size, value) if value != 0.0 else 0.0


@helper
def squared_direction(v, rows, i, slope, sign, share):
    """Return ‖slope · u + sign · sign(v) + share · v‖² for row i."""
    total = 0.0
    for j in range(len(v)):
        whole = slope * np.float64(rows[i, j]) + signed(sign, v[j]) + share * v[j]
        total += whole * whole
    return total
