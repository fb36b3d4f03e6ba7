"""A-FTRL for linear models on sparse rows, compiled: rounds that cost what they touch, whatever d is.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import float64, int32, int64, uint64

from longterm.linear_model._compile import FASTMATH, compiled, prefetch, readonly
from longterm.linear_model._dying import ACTIVE, LIVE, SIZE, SLACK, key_for, push, raise_threshold, rebuild, word_of, add
from longterm.linear_model._layout import *
from longterm.linear_model._losses import value_and_slope

PERIOD = 2**16
OK, NOT_FINITE = 0, 1

@numba.njit(fastmath=FASTMATH, error_model="numpy")
def margin_and_length(indices, values, begin, end, upcoming, last, memory, threshold):
    dot = 0.0
    length = 0.0
    both = min(end - begin, last - upcoming)
    for j in range(both):
        prefetch(memory, 16 * int64(indices[upcoming + j]))
        z = memory[2 * int64(indices[begin + j])]
        u = float64(values[begin + j])
        dot += u * (z - min(max(z, -threshold), threshold))
        length += u * u
    for j in range(begin + both, end):
        z = memory[2 * int64(indices[j])]
        u = float64(values[j])
        dot += u * (z - min(max(z, -threshold), threshold))
        length += u * u
    for j in range(upcoming + both, last):
        prefetch(memory, 16 * int64(indices[j]))
    return dot, length


@numba.njit(fastmath=FASTMATH, error_model="numpy")
def touch(indices, values, begin, end, slope, memory, words, threshold, heap, places, counts, sums):
    first = 0.0
    second = 0.0
    gained = 0
    size = counts[SIZE]
    for j in range(begin, end):
        k = int64(indices[j])
        old = memory[2 * k]
        new = old + slope * float64(values[j])
        memory[2 * k] = new
        length = abs(new)
        w_old = max(abs(old) - threshold, 0.0)
        w_new = max(length - threshold, 0.0)
        step = w_new - w_old
        first += step
        second += step * (w_new + w_old)
        gained += int64(w_new > 0.0) - int64(w_old > 0.0)
        if w_new > 0.0:
            word = words[2 * k + 1]
            if word_of(length, k, places) <= word - uint64(1):
                if word == uint64(0):
                    counts[LIVE] += 1
                word = word_of(key_for(length, threshold), k, places)
                words[2 * k + 1] = word
                push(heap, size, word)
                size += 1
    counts[SIZE] = size
    counts[ACTIVE] += gained
    sums[0], sums[1] = add(sums[0], sums[1], first)
    sums[2], sums[3] = add(sums[2], sums[3], second)
    if counts[ACTIVE] == 0:
        sums[:] = 0.0


@numba.njit(error_model="numpy")
def play_round(indices, values, begin, end, upcoming, last, label, weight, p, counts, memory, words, heap, places, numbers):
    l1, l2, radius, bound = p[L1], p[L2], p[RADIUS], p[INTERCEPT_BOUND]
    free = 1.0 if bound > 0.0 else 0.0
    threshold = numbers[MULTIPLIER_SUM] * l1
    dot, length = margin_and_length(indices, values, begin, end, upcoming, last, memory, threshold)
    scale = numbers[SCALE]
    margin = numbers[INTERCEPT] - scale * dot
    value, slope = value_and_slope(int64(p[LOSS]), p[LOSS_PARAMETER], margin, label)
    value *= weight
    slope *= weight
    square = slope * slope * (length + free)
    if not (square <= p[GRADIENT_BOUND] * p[GRADIENT_BOUND] * (1 + 1e-9) and value < math.inf):
        return False, margin
    sums = numbers[NUMBERS:]
    g = l1 * scale * (sums[0] + sums[1]) + 0.5 * l2 * scale * scale * (sums[2] + sums[3]) - p[BUDGET]
    positive = max(g, 0.0)
    numbers[LOSS_SUM] += value
    numbers[SIGNED] += g
    numbers[HARD] += positive
    numbers[SQUARED] += positive * positive
    t = counts[0]
    online = p[STEP] == 0.0
    theta = p[THETA_0]
    if online:
        numbers[SQUARES] += square
        numbers[LARGEST] = max(numbers[LARGEST], math.sqrt(square))
        theta = theta / numbers[LARGEST]
        curvature = math.sqrt(numbers[SQUARES] / (radius * radius + bound * bound)) if numbers[SQUARES] > 0.0 else 1.0
    else:
        curvature = math.sqrt(t + 1.0) / p[STEP]
    if numbers[LARGEST] > 0.0 or not online:
        theta = theta / t ** p[BETA]
        numbers[MULTIPLIER] = max(numbers[MULTIPLIER] + (g - theta * numbers[MULTIPLIER]) / (theta * (t + 1.0)), 0.0)
    numbers[MULTIPLIER_SUM] += numbers[MULTIPLIER]
    rising = numbers[MULTIPLIER_SUM] * l1
    if rising > threshold:
        raise_threshold(threshold, rising, memory, words, heap, places, counts, sums)
    if t % PERIOD == 0 or counts[SIZE] > 2 * counts[LIVE] + SLACK or counts[SIZE] + end - begin > len(heap):
        rebuild(rising, memory, words, heap, places, counts, sums)
    touch(indices, values, begin, end, slope, memory, words, rising, heap, places, counts, sums)
    numbers[INTERCEPT_SLOPE] += slope * free
    numbers[INTERCEPT] = min(max(-numbers[INTERCEPT_SLOPE] / curvature, -bound), bound)
    scale = 1.0 / (curvature + numbers[MULTIPLIER_SUM] * l2)
    norm = sums[2] + sums[3]
    if norm * scale * scale > radius * radius:
        scale = radius / math.sqrt(norm)
    numbers[SCALE] = scale
    counts[0] = t + 1
    return True, margin

def play(indptr, indices, values, order, labels, weights, p, counts, memory, heap, numbers, record, trace, margins):
    words = memory.view(np.uint64)
    d = len(memory) // 2
    places = uint64(0)
    while (int64(1) << int64(places)) <= d:
        places += uint64(1)
    shuffled, weighted, wanted = len(order) > 0, len(weights) > 0, len(margins) > 0
    count = len(order) if shuffled else len(indptr) - 1
    next_record = 0
    while next_record < len(record) and record[next_record] < counts[0]:
        next_record += 1
    for i in range(count):
        row = order[i] if shuffled else i
        following = (order[i + 1] if shuffled else i + 1) if i + 1 < count else row
        begin, end = indptr[row], indptr[row + 1]
        upcoming, last = indptr[following], indptr[following + 1]
        active, multiplier, t = counts[ACTIVE], numbers[MULTIPLIER], counts[0]
        fine, margin = play_round(indices, values, begin, end, upcoming, last, labels[row], weights[row] if weighted else 1.0,
           p, counts, memory, words, heap, places, numbers)
        if not fine:
            return i
        if wanted:
            margins[i] = margin
        if next_record < len(record) and record[next_record] == t:
            out = trace[next_record]
            out[0], out[1], out[2], out[3] = numbers[LOSS_SUM], numbers[SIGNED], numbers[HARD], numbers[SQUARED]
            out[4], out[5] = active, multiplier
            next_record += 1
    return count


@cache
def play_for(index, value):
    i, v = numba.from_dtype(np.dtype(index)), numba.from_dtype(np.dtype(value))
    f = readonly(float64)
    return compiled(play, numba.int64(readonly(i), readonly(i), readonly(v), readonly(int64), f, f, f, int64[::1], float64[::1], uint64[::1], float64[::1], readonly(int64), float64[:, ::1], float64[::1]))
