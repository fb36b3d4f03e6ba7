"""A-FTRL for linear models, compiled: the rule of `learners.AFTRL`, and of `learners.AdaptiveAFTRL`.

The state's vector is z = Σ of the gradients so far. With τ = Λ_t l1 and w = −soft(z, τ),

    x_t = s w,   s = min( 1/(a_t + Λ_t l2), R/‖w‖ ),   b_t = clip( −z_b/a_t, ±r ),

so a round is two passes over the coordinates: one for the margin ⟨u, x_t⟩ and ‖u‖², one that adds the gradient to z and
makes the next w with its ‖w‖₁ and ‖w‖², which give g(x_{t+1}). λ_{t+1} and the next τ are known between the two.
A round costs O(d), on sparse rows too. Found online, b has a curvature of its own (`round.place_leader`).
"""

from __future__ import annotations

import numpy as np

from longterm.linear_model.kernels.compile import helper
from longterm.linear_model.kernels.round import (
    add_gradient,
    ascend,
    charge,
    clip,
    pay_scales,
    place_intercept,
    place_leader,
    shrink,
)
from longterm.linear_model.kernels.rows import clear, dot_and_length, whole_row


@helper
def begin(memory):
    """Make w from z."""
    shrink(memory.vector, memory.scalars[0].multiplier_sum * memory.parameters[0].l1, memory.point)


@helper
def play_row(memory, rows, k, following, label, weight):
    """Play row k: whether it was played (else nothing was changed), and the margin from before it was learned."""
    p, s = memory.parameters[0], memory.scalars[0]
    dot, length = dot_and_length(rows, k, memory.point)
    margin = s.scale * dot + s.intercept
    accepted, slope, g = charge(p, s, margin, length, label, weight)
    if not accepted:
        return False, margin
    pay_scales(p, s, memory.mixture, dot, length, slope)
    add_gradient(p, s, slope, length)
    ascend(p, s, g)
    s.multiplier_sum += s.multiplier
    u = whole_row(rows, k, memory.row)
    s.norm_1, s.norm_2 = add_and_shrink(memory.vector, u, slope, s.multiplier_sum * p.l1, memory.point)
    clear(rows, k, memory.row)
    place_leader(p, s, memory.mixture, s.multiplier_sum, s.norm_1, s.norm_2, False)
    place_intercept(p, s, memory.mixture, slope, label, weight)
    return True, margin


@helper
def add_and_shrink(z, u, slope, threshold, point):
    """Add slope · u to z, then `round.shrink`, in one pass."""
    norm_1 = 0.0
    norm_2 = 0.0
    for j in range(len(u)):
        total = z[j] + slope * np.float64(u[j])
        z[j] = total
        new = clip(total, threshold) - total
        point[j] = new
        norm_1 += abs(new)
        norm_2 += new * new
    return norm_1, norm_2
