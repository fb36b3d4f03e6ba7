"""A-FTRL on sparse rows as a kernel: the rule of `aftrl` in time proportional to the non-zeros of a row, times log d.

Coordinates that a row does not touch keep their z. What changes for all of them is the threshold τ = Λ_t l1: its rise
takes the same amount off every active |w_k| and makes some of them 0, which `heap` finds. While the budget has never
bound, τ is 0 and a loop of its own needs no heap. Rows must have strictly
increasing indices below d and finite values, which `_rows` checks: an index out of range would write into other memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import int64, uint64

from longterm.linear_model.kernels.aftrl import begin_round, end_round
from longterm.linear_model.kernels.compile import exact, use
from longterm.linear_model.kernels.heap import (
    KEY_SHARE,
    PERIOD,
    SLACK,
    add,
    push,
    raise_threshold,
    rebuild,
    sum_above,
)
from longterm.linear_model.kernels.layout import RESIDUAL, WEIGHTS
from longterm.linear_model.kernels.round import clip


def plain_row_loop(digest: str) -> Callable[..., int]:
    """Return the function that learns CSR rows while τ is 0, to be compiled with this digest.

    It writes their margins and returns how many rows it has learned: all, or those up to the one in which τ rose. The
    heap is to be made then.
    """

    def learn_rows(parameters, scalars, mixtures, vector, data, indices, indptr, labels, weights, margins):
        use(digest)
        p, s = parameters[0], scalars[0]
        mixture, residual = mixtures[WEIGHTS], mixtures[RESIDUAL]
        for i in range(len(labels)):
            first, last = indptr[i], indptr[i + 1]
            dot = length = 0.0
            for j in range(first, last):
                u = np.float64(data[j])
                dot -= u * vector[indices[j]].z
                length += u * u
            margins[i], slope = begin_round(p, s, mixture, residual, dot, length, labels[i], weights[i])
            add_plain_row(s, vector, data, indices, first, last, slope)
            threshold = s.multiplier_sum * p.l1
            if threshold > 0.0 or s.round % PERIOD == 0:
                sum_above(s, vector, threshold)
            end_round(p, s, mixture, residual, s.norm_2 + s.norm_2_low, slope, labels[i], weights[i])
            if threshold > 0.0:
                return i + 1
        return len(labels)

    return learn_rows


def row_loop(digest: str) -> Callable[..., None]:
    """Return the function that learns CSR rows with a heap and writes their margins, to be compiled so."""

    def learn_rows(
        parameters, scalars, mixtures, vector, heap, bits, data, indices, indptr, labels, weights, margins
    ):  # fmt: skip
        use(digest)
        p, s = parameters[0], scalars[0]
        mixture, residual = mixtures[WEIGHTS], mixtures[RESIDUAL]
        for i in range(len(labels)):
            first, last = indptr[i], indptr[i + 1]
            threshold = s.multiplier_sum * p.l1
            dot = length = 0.0
            for j in range(first, last):
                u, z = np.float64(data[j]), vector[indices[j]].z
                dot += u * (clip(z, threshold) - z)
                length += u * u
            margins[i], slope = begin_round(p, s, mixture, residual, dot, length, labels[i], weights[i])
            risen = s.multiplier_sum * p.l1
            if risen > threshold:
                raise_threshold(s, vector, heap, bits, threshold, risen)
            full = s.entries > 2 * s.live + SLACK or s.entries + (last - first) > len(heap)
            if full or s.round % PERIOD == 0:
                rebuild(s, vector, heap, bits, risen)
            add_row(s, vector, heap, bits, data, indices, first, last, slope, risen)
            end_round(p, s, mixture, residual, s.norm_2 + s.norm_2_low, slope, labels[i], weights[i])

    return learn_rows


@exact
def add_plain_row(s, vector, data, indices, first, last, slope):
    """Add slope · u to z, and update the sums, while the threshold is 0."""
    gain_1 = gain_2 = 0.0
    gained = 0
    for j in range(first, last):
        k = indices[j]
        old = vector[k].z
        new = old + slope * np.float64(data[j])
        gain_1 += abs(new) - abs(old)
        gain_2 += (new - old) * (new + old)
        gained += int64(new != 0.0) - int64(old != 0.0)
        vector[k].z = new
    s.active += gained
    s.norm_1, s.norm_1_low = add(s.norm_1, s.norm_1_low, gain_1)
    s.norm_2, s.norm_2_low = add(s.norm_2, s.norm_2_low, gain_2)


@exact
def add_row(s, vector, heap, bits, data, indices, first, last, slope, threshold):
    """Add slope · u to z, and update the heap and the sums.

    The loop has no branch on whether a coordinate is active, which would be mispredicted often: it takes half the time.
    Every coordinate writes the entry that it may need behind the heap, whose end only moves if the entry is needed.
    """
    gain_1 = gain_2 = 0.0
    gained, end, fresh = 0, uint64(s.entries), uint64(0)
    ones, one = (uint64(1) << bits) - uint64(1), uint64(1)
    for j in range(first, last):
        k = indices[j]
        old, word = vector[k].z, vector[k].entry
        new = old + slope * np.float64(data[j])
        w_old, w_new = max(abs(old) - threshold, 0.0), max(abs(new) - threshold, 0.0)
        gain_1 += w_new - w_old
        gain_2 += (w_new - w_old) * (w_new + w_old)
        gained += int64(w_new > 0.0) - int64(w_old > 0.0)
        # An entry is needed if there is none (0 − 1 is the largest word), or if its key is above |z_k|.
        longest = np.float64(abs(new)).view(np.uint64) << one | ones
        needed = uint64(w_new > 0.0) & uint64(word - one > longest)
        entry = np.float64(threshold + KEY_SHARE * w_new).view(np.uint64) << one & ~ones | uint64(k) + one
        heap[end] = entry
        end += needed
        fresh += needed & uint64(word == uint64(0))
        vector[k].z, vector[k].entry = new, entry if needed else word
    for size in range(s.entries, int64(end)):
        push(heap, size, heap[size])
    s.entries, s.live, s.active = int64(end), s.live + int64(fresh), s.active + gained
    s.norm_1, s.norm_1_low = add(s.norm_1, s.norm_1_low, gain_1)
    s.norm_2, s.norm_2_low = add(s.norm_2, s.norm_2_low, gain_2)
    if s.active == 0:
        s.norm_1 = s.norm_1_low = s.norm_2 = s.norm_2_low = 0.0
