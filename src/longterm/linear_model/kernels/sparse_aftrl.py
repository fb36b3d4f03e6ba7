"""A-FTRL for linear models on sparse rows, compiled: a round costs what it touches, O(nnz log d) amortised.

The rule is that of `aftrl`. With τ = Λ_t l1, z = Σ of the gradients so far and w_k = (|z_k| − τ)₊,

    x_t = −s sign(z) w,   s = min( 1/(a_t + Λ_t l2), R/‖w‖ ),   b_t = clip( −z_b/a_t, ±r ).

Only the row's own coordinates of x_t are ever computed. g(x_t) = s l1 Σw + ½ s² l2 Σw² − ρ needs the two sums, and they
change in two ways only: the row's gradient changes w on the row's coordinates; and τ rises, which takes the same amount
off every active w and lets some die, which `heap` finds. λ_{t+1} is known before the row is learned, so τ rises
first. Found online, b has a curvature of its own (`round.place_leader`).

Rows must have strictly increasing indices below d and finite values: an index out of range would write into foreign
memory, duplicates would make a row's length wrong. `linear_model._rows` sees to that for blocks, `is_canonical` for
single rows. So all that can go wrong in a round is a gradient that is too long, which is found before anything changes.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from longterm.linear_model.kernels.compile import exact, helper, in_order
from longterm.linear_model.kernels.heap import BYTES, PERIOD, SHARE, SLACK, add, push, raise_threshold, rebuild
from longterm.linear_model.kernels.round import (
    add_gradient,
    add_loss,
    ascend,
    charge,
    clip,
    margin_of,
    next_offset,
    pay_scales_and_place_intercept,
    place_leader,
    place_offset,
)
from longterm.linear_model.kernels.rows import sparse_row
from longterm.storage.compiled import prefetch

ONE = np.uint64(1)


@helper
def is_canonical(values, indices, dimension):
    """Whether one row has finite values at indices that increase strictly within 0 … dimension − 1."""
    wrong = 0
    for j in range(len(values)):
        wrong |= not abs(values[j]) < np.inf
    for j in range(1, len(indices)):
        wrong |= indices[j] <= indices[j - 1]
    inside = len(indices) == 0 or (indices[0] >= 0 and indices[len(indices) - 1] < dimension)
    return inside and wrong == 0 and len(values) == len(indices)


@exact
def begin(memory, rows, first):
    """⟨u, −soft(z, τ)⟩ and ‖u‖² of row `first`."""
    values, indices = sparse_row(rows, first)
    return dot_and_length(memory, values, indices, memory.scalars[0].multiplier_sum * memory.parameters[0].l1)


@exact
def active(memory):
    """How many coordinates of x_t are not 0."""
    return memory.scalars[0].active


@exact
def play_row(memory, rows, k, following, ahead, label, weight):
    """Play row k: whether it was played (else nothing was changed), and the margin from before it was learned.

    `ahead` is ⟨u, −soft(z, τ)⟩ and ‖u‖² of this row; returned with the rest are those of the row that follows.
    """
    p, s = memory.parameters[0], memory.scalars[0]
    values, indices = sparse_row(rows, k)
    threshold = s.multiplier_sum * p.l1
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
    risen = s.multiplier_sum * p.l1
    if risen > threshold:
        raise_threshold(memory, threshold, risen)
    full = s.entries > 2 * s.live + SLACK or s.entries + len(indices) > len(memory.heap)
    if full or s.round % PERIOD == 0:
        rebuild(memory, risen)
    next_values, next_indices = sparse_row(rows, following)
    gain_1, gain_2 = learn(memory, values, indices, slope, risen, next_indices)
    ahead = dot_and_length(memory, next_values, next_indices, risen)
    s.norm_1, s.norm_1_low = add(s.norm_1, s.norm_1_low, gain_1)
    s.norm_2, s.norm_2_low = add(s.norm_2, s.norm_2_low, gain_2)
    if s.active == 0:
        s.norm_1 = s.norm_1_low = s.norm_2 = s.norm_2_low = 0.0
    norm_1, norm_2 = s.norm_1 + s.norm_1_low, s.norm_2 + s.norm_2_low
    pay_scales_and_place_intercept(p, s, memory.mixture, dot, length, slope)
    place_leader(p, s, memory.mixture, s.multiplier_sum, norm_1, norm_2, slope)
    add_loss(p, s, parts, weight)
    return True, margin, ahead


@in_order
def dot_and_length(memory, values, indices, threshold):
    """⟨u, −soft(z, τ)⟩ and ‖u‖²."""
    dot = 0.0
    length = 0.0
    for j in range(len(indices)):
        u = np.float64(values[j])
        z = memory.vector[uint64(indices[j]) << ONE]  # an unsigned index needs no check for a negative one
        dot += u * (clip(z, threshold) - z)
        length += u * u
    return dot, length


@in_order
def learn(memory, values, indices, slope, threshold, upcoming):
    """Add slope · u to z; what Σw and Σw² gain. Coordinates of the row that comes next are fetched meanwhile.

    Nothing here branches on whether a coordinate is active: a wrong guess would cost more than all the rest. So every
    coordinate writes the entry that it may need at the end of the heap, and the end only moves if it does.
    """
    s, vector, words, heap = memory.scalars[0], memory.vector, memory.words, memory.heap
    gain_1 = 0.0
    gain_2 = 0.0
    revived = 0
    start = s.entries
    if len(upcoming) == 0:
        upcoming = indices
    end, fresh, last = uint64(start), uint64(0), len(upcoming) - 1
    ones = (ONE << memory.places) - ONE
    for j in range(len(indices)):
        prefetch(vector.ctypes.data + BYTES * int64(upcoming[min(j, last)]))
        k = uint64(indices[j])
        here = k << ONE
        old = vector[here]
        new = old + slope * np.float64(values[j])
        vector[here] = new
        w_old = max(abs(old) - threshold, 0.0)
        w_new = max(abs(new) - threshold, 0.0)
        gain_1 += w_new - w_old
        gain_2 += (w_new - w_old) * (w_new + w_old)
        revived += int64(w_new > 0.0) - int64(w_old > 0.0)
        # Active without a live entry (0 − 1 is the largest word of all), or fallen below its key?
        word = words[here + ONE]
        longest = np.float64(abs(new)).view(np.uint64) << ONE | ones
        needed = uint64(w_new > 0.0) & uint64(word - ONE > longest)
        entry = np.float64(threshold + SHARE * w_new).view(np.uint64) << ONE & ~ones | k + ONE
        heap[end] = entry
        end += needed
        fresh += needed & uint64(word == uint64(0))
        words[here + ONE] = entry if needed else word
    for j in range(len(indices), len(upcoming)):
        prefetch(vector.ctypes.data + BYTES * int64(upcoming[j]))
    for size in range(start, int64(end)):
        push(heap, size, heap[size])
    s.entries = int64(end)
    s.live += int64(fresh)
    s.active += revived
    return gain_1, gain_2
