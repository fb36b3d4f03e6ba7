"""A-FTRL for linear models on sparse rows, compiled: a round costs what it touches, O(nnz log d) amortised.

The rule is that of `_aftrl`. With τ = Λ_t l1, z = Σ of the gradients so far and w_k = (|z_k| − τ)₊,

    x_t = −s sign(z) w,   s = min( 1/(a_t + Λ_t l2), R/‖w‖ ),   b_t = clip( −z_b/a_t, ±r ).

Only the row's own coordinates of x_t are ever computed. g(x_t) = s l1 Σw + ½ s² l2 Σw² − ρ needs the two sums, and they
change in two ways only: the row's gradient changes w on the row's coordinates; and τ rises, which takes the same amount
off every active w and lets some die, which `_dying` finds. λ_{t+1} is known before the row is learned, so τ rises
first. Found online, b has a curvature of its own (`_round.leader_intercept`).

Rows must have strictly increasing indices below d and finite values (`_sparse_rows` sees to that). So all that can go
wrong in a round is a gradient that is too long, and that is found before anything is changed.
"""

from __future__ import annotations

import math

import numpy as np
from numba import int64, uint64

from longterm.linear_model import _layout as at
from longterm.linear_model._compile import helper, prefetch
from longterm.linear_model._dying import (
    ACTIVE,
    BYTES,
    LIVE,
    LOW_1,
    LOW_2,
    PERIOD,
    SHARE,
    SIZE,
    SLACK,
    add,
    exact,
    places_for,
    push,
    raise_threshold,
    rebuild,
)
from longterm.linear_model._losses import value_and_slope
from longterm.linear_model._round import (
    add_theta,
    ascend,
    clip,
    constraint_value,
    first_to_record,
    leader_curvature,
    leader_intercept,
    penalty_weight,
    within_ball,
)
from longterm.linear_model._rows import AHEAD, fetch
from longterm.linear_model._sparse_rows import is_canonical

ONE = np.uint64(1)


@helper
def dot_and_length(indices, values, memory, threshold):
    """⟨u, soft(z, τ)⟩ and ‖u‖²."""
    dot = 0.0
    length = 0.0
    for j in range(len(indices)):
        u = np.float64(values[j])
        z = memory[uint64(indices[j]) << ONE]  # an unsigned index needs no check for a negative one
        dot += u * (z - clip(z, threshold))
        length += u * u
    return dot, length


@helper
def learn(indices, values, slope, threshold, memory, words, heap, places, round, upcoming):
    """Add slope · u to z; what Σw and Σw² gain. Coordinates of the row that comes next are fetched meanwhile.

    Nothing here branches on whether a coordinate is active: a wrong guess would cost more than all the rest. So every
    coordinate writes the entry that it may need at the end of the heap, and the end only moves if it does.
    """
    gain_1 = 0.0
    gain_2 = 0.0
    revived = 0
    begin = round[SIZE]
    if len(upcoming) == 0:
        upcoming = indices
    end, fresh, last = uint64(begin), uint64(0), len(upcoming) - 1
    ones = (ONE << places) - ONE
    for j in range(len(indices)):
        prefetch(memory, BYTES * int64(upcoming[min(j, last)]))
        k = uint64(indices[j])
        here = k << ONE
        old = memory[here]
        new = old + slope * np.float64(values[j])
        memory[here] = new
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
        prefetch(memory, BYTES * int64(upcoming[j]))
    for size in range(begin, int64(end)):
        push(heap, size, heap[size])
    round[SIZE] = int64(end)
    round[LIVE] += int64(fresh)
    round[ACTIVE] += revived
    return gain_1, gain_2


@exact
def play_row(indices, values, label, weight, p, round, memory, words, heap, places, numbers, upcoming):
    """One round, if its gradient is not too long: whether it was played, and the margin ⟨u, x_t⟩ + b_t."""
    bound, l1 = p[at.INTERCEPT_BOUND], p[at.L1]
    threshold = numbers[at.MULTIPLIER_SUM] * l1
    dot, length = dot_and_length(indices, values, memory, threshold)
    margin = numbers[at.INTERCEPT] - numbers[at.SCALE] * dot
    value, slope = value_and_slope(int64(p[at.LOSS]), p[at.LOSS_PARAMETER], margin, label)
    value, slope = weight * value, weight * slope
    square = slope * slope * (length + (1.0 if bound > 0.0 else 0.0))
    if not (square <= p[at.GRADIENT_BOUND] ** 2 and value < math.inf):
        return False, margin
    t, norm_1, norm_2 = round[0], numbers[at.NORM_1] + numbers[LOW_1], numbers[at.NORM_2] + numbers[LOW_2]
    g = constraint_value(p, numbers[at.SCALE], norm_1, norm_2)
    positive = max(g, 0.0)
    numbers[at.LOSS_SUM] += value
    numbers[at.SIGNED] += g
    numbers[at.HARD] += positive
    numbers[at.SQUARED] += positive * positive
    if p[at.STEP] == 0.0:
        own = slope * slope * length  # the intercept's part sets its own step
        numbers[at.SQUARES] += own
        numbers[at.LARGEST] = max(numbers[at.LARGEST], math.sqrt(own))
    theta = penalty_weight(p, t, numbers[at.LARGEST])
    if p[at.STEP] == 0.0:
        numbers[at.BOUND_SUM] = add_theta(numbers[at.BOUND_SUM], theta, t)
    numbers[at.MULTIPLIER] = ascend(numbers[at.MULTIPLIER], g, theta, t)
    numbers[at.MULTIPLIER_SUM] += numbers[at.MULTIPLIER]
    risen = numbers[at.MULTIPLIER_SUM] * l1
    if risen > threshold:
        raise_threshold(threshold, risen, memory, words, heap, places, round, numbers)
    full = round[SIZE] > 2 * round[LIVE] + SLACK or round[SIZE] + len(indices) > len(heap)
    if full or t % PERIOD == 0:
        rebuild(risen, memory, words, heap, places, round, numbers)
    gain_1, gain_2 = learn(indices, values, slope, risen, memory, words, heap, places, round, upcoming)
    numbers[at.NORM_1], numbers[LOW_1] = add(numbers[at.NORM_1], numbers[LOW_1], gain_1)
    numbers[at.NORM_2], numbers[LOW_2] = add(numbers[at.NORM_2], numbers[LOW_2], gain_2)
    if round[ACTIVE] == 0:
        numbers[at.NORM_1] = numbers[LOW_1] = numbers[at.NORM_2] = numbers[LOW_2] = 0.0
    curvature = leader_curvature(p, t, numbers[at.SQUARES])
    scale = 1.0 / (curvature + numbers[at.MULTIPLIER_SUM] * p[at.L2])
    numbers[at.SCALE] = within_ball(scale, numbers[at.NORM_2] + numbers[LOW_2], p[at.RADIUS])
    if bound > 0.0:
        numbers[at.INTERCEPT_SLOPE] += slope
        numbers[at.INTERCEPT_SQUARES] += slope * slope
        slope_sum, slope_squares = numbers[at.INTERCEPT_SLOPE], numbers[at.INTERCEPT_SQUARES]
        numbers[at.INTERCEPT] = leader_intercept(p, curvature, slope_sum, slope_squares)
    round[0] = t + 1
    return True, margin


def play(rows, order, labels, weights, p, round, memory, heap, numbers, record, trace, margins):
    """Play rows[order] (all, where order is empty) up to the first that must be refused; how many were played."""
    data, indices, indptr = rows
    words, places = memory.view(np.uint64), places_for(len(memory) // 2)
    shuffled, count = len(order) > 0, len(order) if len(order) > 0 else len(indptr) - 1
    recorded = first_to_record(record, round[0])
    for i in range(count):
        k = order[i] if shuffled else i
        if shuffled and i + AHEAD < count:
            fetch(rows, labels, order[i + AHEAD])
        after = k if i + 1 == count else order[i + 1] if shuffled else i + 1
        begin, end = indptr[k], indptr[k + 1]
        t, active, multiplier = round[0], round[ACTIVE], numbers[at.MULTIPLIER]
        played, margin = play_row(
            indices[begin:end],
            data[begin:end],
            labels[k],
            weights[k] if len(weights) > 0 else 1.0,
            p,
            round,
            memory,
            words,
            heap,
            places,
            numbers,
            indices[indptr[after] : indptr[after + 1]],
        )
        if not played:
            return i
        if len(margins) > 0:
            margins[i] = margin
        if recorded < len(record) and record[recorded] == t:
            for column in range(at.SQUARED + 1):
                trace[recorded, column] = numbers[column]
            trace[recorded, 4], trace[recorded, 5] = active, multiplier
            recorded += 1
    return count


def step(indices, values, label, weight, p, round, memory, heap, numbers):
    """Play one row; its margin, from before it was learned. NaN: it must be refused, and nothing was changed."""
    if not is_canonical(indices, values, len(memory) // 2):
        return np.nan
    words, places = memory.view(np.uint64), places_for(len(memory) // 2)
    played, margin = play_row(indices, values, label, weight, p, round, memory, words, heap, places, numbers, indices)
    return margin if played else np.nan


def enter(p, round, memory, heap, numbers):
    """Make the heap and the sums of a state whose active coordinates have entries of any kind."""
    threshold, places = numbers[at.MULTIPLIER_SUM] * p[at.L1], places_for(len(memory) // 2)
    rebuild(threshold, memory, memory.view(np.uint64), heap, places, round, numbers)
