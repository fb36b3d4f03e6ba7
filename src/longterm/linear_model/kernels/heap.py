"""The coordinates that become 0 as the threshold τ rises, found by a heap of lower bounds on |z_k|.

A coordinate is active while |z_k| > τ; then w_k = |z_k| − τ. Each active coordinate has one *live* entry in a min-heap
with a key of at most |z_k|. So all coordinates that become inactive when τ rises to τ' are found at the top. An entry
stays while |z_k| grows, or while its coordinate is inactive. If |z_k| falls below its key, a new entry is pushed and
becomes the live one; the old one is stale and is dropped at the top.

**An entry is one word** of 64 bits: the leading bits of the key, rounded down, then k + 1 in as many bits as d needs.
Positive floats are ordered as their bits are. The word of the live entry (0: none) is stored beside z_k.

**While τ = 0** no coordinate can become inactive, and there is no heap. `KernelState.rebuild_heap` makes the first one.

**The heap stays O(d).** Before a row with n ≤ d coordinates is learned, `rebuild` drops all stale entries if there are
more than 2 live + SLACK entries, or if n more might not fit into `capacity(d)` words. It also sums Σw and Σw² again,
every PERIOD rounds at the latest, so rounding errors do not grow with t.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from longterm.linear_model.kernels.compile import exact

SLACK = 64
PERIOD = 2**16
"""After so many rounds the sums are computed again."""
ARITY = 4
"""Children of an entry."""
KEY_SHARE = 63 / 64
"""A new key is τ + KEY_SHARE · w. It is below |z_k|, so that small falls need no new entry."""


def capacity(dimension: int) -> int:
    """Return how many words the heap of so many coordinates needs."""
    return 2 * dimension + SLACK


def bits_for(dimension: int) -> np.uint64:
    """Return how many bits hold k + 1 for every coordinate k."""
    return np.uint64(dimension.bit_length())


@exact
def word_of(key, k, bits):
    """Return the entry of coordinate k with a key ≥ 0. The sign bit is dropped, since it is 0."""
    return np.float64(key).view(np.uint64) << uint64(1) >> bits << bits | uint64(k) + uint64(1)


@exact
def coordinate_of(word, bits):
    """Return the k of an entry."""
    return int64(word & (uint64(1) << bits) - uint64(1)) - 1


@exact
def add(high, low, value):
    """Add a number to the compensated sum high + low (Knuth's two-sum). Return both parts."""
    total = high + value
    part = total - high
    return total, low + ((high - (total - part)) + (value - part))


@exact
def push(heap, size, word):
    """Put a word into a heap of this size."""
    hole = size
    while hole > 0:
        parent = (hole - 1) // ARITY
        if heap[parent] <= word:
            break
        heap[hole] = heap[parent]
        hole = parent
    heap[hole] = word


@exact
def sink(heap, size, hole, word):
    """Put a word in place of entry `hole` and let it sink. The least of four children is found without branches."""
    first = ARITY * hole + 1
    while first + ARITY <= size:
        left = first + int64(heap[first + 1] < heap[first])
        right = first + 2 + int64(heap[first + 3] < heap[first + 2])
        least = right if heap[right] < heap[left] else left
        if word <= heap[least]:
            break
        heap[hole] = heap[least]
        hole = least
        first = ARITY * hole + 1
    else:
        least = first
        for child in range(first + 1, size):
            if heap[child] < heap[least]:
                least = child
        if first < size and heap[least] < word:
            heap[hole] = heap[least]
            hole = least
    heap[hole] = word


@exact
def raise_threshold(s, vector, heap, bits, old, new):
    """Drop the coordinates that become inactive as τ rises from `old` to `new`, and update the sums."""
    size, active = s.entries, s.active
    sum_1, low_1, sum_2, low_2 = s.norm_1, s.norm_1_low, s.norm_2, s.norm_2_low
    limit = word_of(new, 0, bits) | (uint64(1) << bits) - uint64(1)
    end, waiting = size, 0
    while size > 0 and heap[0] <= limit:
        word = heap[0]
        k = coordinate_of(word, bits)
        again = uint64(0)
        if word == vector[k].entry:
            length = abs(vector[k].z)
            if length > new:
                again = word_of(new + KEY_SHARE * (length - new), k, bits)
            else:
                s.live -= 1
                if length > old:
                    active -= 1
                    sum_1, low_1 = add(sum_1, low_1, old - length)
                    sum_2, low_2 = add(sum_2, low_2, -((length - old) ** 2))
            vector[k].entry = again
        if again > limit:
            sink(heap, size, 0, again)
            continue
        size -= 1
        sink(heap, size, 0, heap[size])
        if again > uint64(0):
            # The leading bits of its key are τ's own, so in the heap it would reach the top again at once. It is stored
            # behind the heap meanwhile, where every entry taken out has left a place.
            waiting += 1
            heap[end - waiting] = again
    for place in range(end - waiting, end):
        push(heap, size, heap[place])
        size += 1
    before = sum_1 + low_1
    s.norm_1, s.norm_1_low = add(sum_1, low_1, -active * (new - old))
    after = s.norm_1 + s.norm_1_low
    s.norm_2, s.norm_2_low = add(sum_2, low_2, -(new - old) * (before + after))
    s.entries, s.active = size, active


@exact
def sum_above(s, vector, threshold):
    """Compute the sums again, from all coordinates."""
    sum_1 = low_1 = sum_2 = low_2 = 0.0
    for k in range(len(vector)):
        w = max(abs(vector[k].z) - threshold, 0.0)
        sum_1, low_1 = add(sum_1, low_1, w)
        sum_2, low_2 = add(sum_2, low_2, w * w)
    s.norm_1, s.norm_1_low, s.norm_2, s.norm_2_low = sum_1, low_1, sum_2, low_2


@exact
def rebuild(s, vector, heap, bits, threshold):
    """Make one entry with a new key for each active coordinate, and compute the sums again."""
    sum_1 = low_1 = sum_2 = low_2 = 0.0
    size = 0
    for place in range(s.entries):
        word = heap[place]
        k = coordinate_of(word, bits)
        if word == vector[k].entry:
            vector[k].entry = uint64(0)  # a second entry with the same word is stale from now on
            w = abs(vector[k].z) - threshold
            if w > 0.0:
                sum_1, low_1 = add(sum_1, low_1, w)
                sum_2, low_2 = add(sum_2, low_2, w * w)
                heap[size] = word_of(threshold + KEY_SHARE * w, k, bits)
                size += 1
    for place in range(size):
        vector[coordinate_of(heap[place], bits)].entry = heap[place]
    for place in range((size - 2) // ARITY, -1, -1):
        sink(heap, size, place, heap[place])
    s.entries = s.live = s.active = size
    s.norm_1, s.norm_1_low, s.norm_2, s.norm_2_low = sum_1, low_1, sum_2, low_2
