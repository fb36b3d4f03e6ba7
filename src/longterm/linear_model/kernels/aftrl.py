"""A-FTRL for linear models, compiled: the rule of `learners.AFTRL`, and of `learners.AdaptiveAFTRL`.

The state's vector is z = Σ of the gradients so far. With τ = Λ_t l1 and w = −soft(z, τ),

    x_t = s w,   s = min( 1/(a_t + Λ_t l2), R/‖w‖ ),   b_t = clip( −z_b/a_t, ±r ),

so a round is two passes over the coordinates: one for the margin ⟨u, x_t⟩ and ‖u‖², one that adds the gradient to z and
makes the next w with its ‖w‖₁ and ‖w‖², which give g(x_{t+1}). λ_{t+1} and the next τ are known between the two.
A round costs O(d), on sparse rows too. Found online, b has a curvature of its own (`round.place_leader`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from longterm.linear_model.kernels.compile import OPTIONS, helper
from longterm.linear_model.kernels.round import (
    add_gradient,
    add_loss,
    ascend,
    charge,
    clip,
    margin_of,
    next_offset,
    nonzeros,
    pay_scales_and_place_intercept,
    place_leader,
    place_offset,
    shrink,
)
from longterm.linear_model.kernels.rows import clear, dot_and_length, is_dense, whole_row, zeros_like_row


def begin(memory: Any, rows: Any, first: Any) -> Any:
    """Make w from z; ⟨u, w⟩ and ‖u‖² of row `first`, which is played first."""


def step(memory: Any, rows: Any, k: Any, slope: Any, threshold: Any, following: Any) -> Any:
    """Add slope · u of row k to z, make the next w; ‖w‖₁ and ‖w‖², and ⟨u, w⟩ and ‖u‖² of the row that follows."""


@helper
def play_row(memory, rows, k, following, ahead, label, weight):
    """Play row k: whether it was played (else nothing was changed), and the margin from before it was learned.

    `ahead` is ⟨u, w⟩ and ‖u‖² of this row; returned with the rest are those of the row that follows.
    """
    p, s = memory.parameters[0], memory.scalars[0]
    dot, length = ahead
    offset, logarithm_of_t = next_offset(p, s, label, weight)
    margin = margin_of(p, s, dot)
    accepted, slope, g, parts = charge(p, s, margin, length, label, weight)
    if not accepted:
        return False, margin, ahead
    place_offset(p, s, label, weight, offset)
    add_gradient(p, s, slope, length)
    ascend(p, s, g, logarithm_of_t)
    s.multiplier_sum += s.multiplier
    pay_scales_and_place_intercept(p, s, memory.mixture, dot, length, slope)
    s.norm_1, s.norm_2, next_dot, next_length = step(memory, rows, k, slope, s.multiplier_sum * p.l1, following)
    place_leader(p, s, memory.mixture, s.multiplier_sum, s.norm_1, s.norm_2, slope)
    add_loss(p, s, parts, weight)
    return True, margin, (next_dot, next_length)


@helper
def active(memory):
    """How many coordinates of x_t are not 0."""
    return nonzeros(memory.point)


@overload(begin, jit_options=OPTIONS)
def _begin(memory, rows, first):
    if is_dense(rows):

        def dense(memory, rows, first):
            threshold = memory.scalars[0].multiplier_sum * memory.parameters[0].l1
            nothing = zeros_like_row(rows, memory.row)
            _, _, dot, length = add_shrink_and_look(memory.vector, nothing, 0.0, threshold, memory.point, rows[first])
            return dot, length

        return dense

    def sparse(memory, rows, first):
        shrink(memory.vector, memory.scalars[0].multiplier_sum * memory.parameters[0].l1, memory.point)
        return dot_and_length(rows, first, memory.point)

    return sparse


@overload(step, jit_options=OPTIONS)
def _step(memory, rows, k, slope, threshold, following):
    if is_dense(rows):
        return lambda memory, rows, k, slope, threshold, following: add_shrink_and_look(
            memory.vector, rows[k], slope, threshold, memory.point, rows[following]
        )

    def sparse(memory, rows, k, slope, threshold, following):
        u = whole_row(rows, k, memory.row)
        norm_1, norm_2 = add_and_shrink(memory.vector, u, slope, threshold, memory.point)
        clear(rows, k, memory.row)
        dot, length = dot_and_length(rows, following, memory.point)
        return norm_1, norm_2, dot, length

    return sparse


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


@helper
def add_shrink_and_look(z, u, slope, threshold, point, following):
    """The same, with ⟨u, point⟩ and ‖u‖² of the row that follows: one pass is all that a round takes."""
    norm_1 = 0.0
    norm_2 = 0.0
    dot = 0.0
    length = 0.0
    for j in range(len(u)):
        total = z[j] + slope * np.float64(u[j])
        z[j] = total
        new = clip(total, threshold) - total
        point[j] = new
        norm_1 += abs(new)
        norm_2 += new * new
        value = np.float64(following[j])
        dot += value * new
        length += value * value
    return norm_1, norm_2, dot, length
