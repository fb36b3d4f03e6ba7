"""Which coordinates die as the threshold τ grows: a heap of lower bounds on |z_k|, for compiled kernels.

A coordinate is active while |z_k| > τ. Each active one has one *live* entry in a min-heap, whose key is at most |z_k|;
so all that die when τ rises to τ' have keys of at most τ', and are found at the top. Keys are bounds only, which keeps
the heap out of most rounds' way:

- |z_k| grows: the entry stays as it is, its key is still a bound.
- |z_k| falls below its key: a new entry is pushed and becomes the live one. The old one is stale.
- an entry comes to the top: stale ones are thrown away; if the coordinate still lives it gets a new key, else it is dead.
- a coordinate dies by its own gradient: its entry stays until it comes to the top, and serves if it revives before.

**An entry is one word** of 64 bits: the leading bits of the key as a float, then k + 1 in as many bits as d needs.
Positive floats are ordered as their bits are, so words are ordered by key. Cutting the key's last bits rounds it down:
still a bound. The word of coordinate k's live entry (0: none) is kept beside z_k, in the same cache line, so an entry is
live if and only if it *is* that word. `memory` is the interleaved array z_0, word_0, z_1, word_1, ….

**Its size.** `rebuild` throws stale entries away. Kernels call it before a round with more than 2 live + SLACK entries, or
where the row's own pushes might not fit, so a heap of 2d + SLACK words is enough for ever: size ≤ 2 live + SLACK ≤ 2d +
SLACK before a row, and a row pushes at most one entry for each of its coordinates. Between two calls there are at
least as many pushes as a third of what the second call handles (or the row itself has more than d/2 entries), so the
cost per push is constant.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import int64, uint64

ARITY = 4
"""Children per node: a heap half as deep as a binary one."""
SLACK = 64
ACTIVE, LIVE, SIZE = 1, 2, 3
"""Positions in the state's `counts`, behind the round: active coordinates, live entries, entries."""

helper = numba.njit(error_model="numpy")
"""No fast mathematics here: the sums below are compensated, which reordering would undo."""


@helper
def word_of(key, k, places):  # type: ignore[no-untyped-def]
    """The entry of coordinate k with this key ≥ 0, in a state whose indices take so many binary places."""
    bits = np.float64(key).view(np.uint64) << uint64(1)  # the sign is free
    return (bits >> places << places) | uint64(k + 1)


@helper
def coordinate_of(word, places):  # type: ignore[no-untyped-def]
    return int64(word & ((uint64(1) << places) - uint64(1))) - 1


@helper
def key_for(size, threshold):  # type: ignore[no-untyped-def]
    """Half-way between τ and |z_k| > τ: far enough below |z_k| to outlive its small falls."""
    return threshold + 0.5 * (size - threshold)


@helper
def push(heap, size, word):  # type: ignore[no-untyped-def]
    """Put a word in; the heap then has size + 1."""
    hole = size
    while hole > 0:
        parent = (hole - 1) // ARITY
        if heap[parent] <= word:
            break
        heap[hole] = heap[parent]
        hole = parent
    heap[hole] = word


@helper
def sink(heap, size, hole, word):  # type: ignore[no-untyped-def]
    """Put a word in the place of entry `hole`, and let it sink."""
    while True:
        first = ARITY * hole + 1
        if first >= size:
            break
        least = first
        for child in range(first + 1, min(first + ARITY, size)):
            if heap[child] < heap[least]:
                least = child
        if word <= heap[least]:
            break
        heap[hole] = heap[least]
        hole = least
    heap[hole] = word


@helper
def add(high, low, value):  # type: ignore[no-untyped-def]
    """high + low + value, with what rounding takes from the sum kept in `low`."""
    total = high + value
    part = total - high
    return total, low + ((high - (total - part)) + (value - part))


@helper
def raise_threshold(old, new, memory, words, heap, places, counts, sums):  # type: ignore[no-untyped-def]
    """Take out what dies as τ rises from `old` to `new`, and bring Σw, Σw² of w = |z| − τ over the active to the new τ.

    `sums` holds Σw and Σw², each followed by its compensation.
    """
    size, active = counts[SIZE], counts[ACTIVE]
    first, first_low, second, second_low = sums[0], sums[1], sums[2], sums[3]
    limit = word_of(new, -1, places) | ((uint64(1) << places) - uint64(1))
    end, aside = size, 0
    while size > 0 and heap[0] <= limit:
        word = heap[0]
        k = coordinate_of(word, places)
        if words[2 * k + 1] == word:
            length = abs(memory[2 * k])
            if length > new:
                word = word_of(key_for(length, new), k, places)
                words[2 * k + 1] = word
                if word > limit:
                    sink(heap, size, 0, word)
                    continue
                # Its key's leading bits are those of τ itself: it would come up again for ever. It waits behind
                # the heap, where entries taken out have left room, until the loop is over.
                aside += 1
            else:
                if length > old:
                    w = length - old
                    first, first_low = add(first, first_low, -w)
                    second, second_low = add(second, second_low, -w * w)
                    active -= 1
                words[2 * k + 1] = uint64(0)
                counts[LIVE] -= 1
                word = uint64(0)
        else:
            word = uint64(0)
        size -= 1
        if size > 0:
            sink(heap, size, 0, heap[size])
        if word:
            heap[end - aside] = word
    for waiting in range(end - aside, end):
        push(heap, size, heap[waiting])
        size += 1
    rise = new - old
    before = first + first_low
    first, first_low = add(first, first_low, -active * rise)
    second, second_low = add(second, second_low, -rise * (before + (first + first_low)))
    counts[SIZE], counts[ACTIVE] = size, active
    sums[0], sums[1], sums[2], sums[3] = first, first_low, second, second_low


@helper
def rebuild(threshold, memory, words, heap, places, counts, sums):  # type: ignore[no-untyped-def]
    """The heap without stale entries, and the sums anew from the coordinates themselves: what drifted is exact again."""
    size = 0
    first = first_low = second = second_low = 0.0
    for i in range(counts[SIZE]):
        word = heap[i]
        k = coordinate_of(word, places)
        if words[2 * k + 1] != word:
            continue
        words[2 * k + 1] = uint64(0)  # the same word may be there twice: the second is stale now
        w = abs(memory[2 * k]) - threshold
        if w > 0.0:
            first, first_low = add(first, first_low, w)
            second, second_low = add(second, second_low, w * w)
            heap[size] = word
            size += 1
    for i in range(size):
        k = coordinate_of(heap[i], places)
        heap[i] = word_of(key_for(abs(memory[2 * k]), threshold), k, places)
        words[2 * k + 1] = heap[i]
    for i in range((size - 2) // ARITY, -1, -1):
        sink(heap, size, i, heap[i])
    counts[SIZE] = counts[LIVE] = counts[ACTIVE] = size
    sums[0], sums[1], sums[2], sums[3] = first, first_low, second, second_low
