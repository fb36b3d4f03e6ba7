"""Which coordinates die as the threshold τ grows, for compiled kernels: a heap of lower bounds on |z_k|.

A coordinate is active while |z_k| > τ, and w_k = |z_k| − τ is what is left of it. Each active one has one *live* entry
in a min-heap, with a key of at most |z_k|; so all that die when τ rises to τ' have keys of at most τ', and are found at
the top. That keys are only bounds keeps the heap out of most rounds' way:

- |z_k| grows: the entry stays, its key is still a bound.
- |z_k| falls below its key: a new entry is pushed and is the live one. The old one is stale.
- a coordinate dies by its own gradient: its entry stays, and serves again if it revives before the entry's turn.
- an entry comes to the top: a stale one is thrown away, a coordinate that still lives gets a new key, others are dead.

**An entry is one word** of 64 bits: the leading bits of the key, then k + 1 in as many bits as d takes (`places`).
Positive floats are ordered as their bits are, so words are ordered by key; cutting a key's last bits rounds it down,
and it is still a bound. The word of coordinate k's live entry (0: none) is kept beside z_k, in the same cache line:
`vector` is z_0, word_0, z_1, word_1, …, and `words` the same array seen as integers. An entry is live if it *is* that
word.

**The heap stays O(d).** Before a row with n ≤ d coordinates is learned, `rebuild` throws all stale entries away if
there are more than 2 live + SLACK entries, or if n more might not fit into `room(d)` = 2d + SLACK words. A row pushes
at most one entry for each of its coordinates, so they do fit: without a call because that was checked, after a call
because live + n ≤ 2d. A call costs O(entries), and it is paid for: since the call before, which left only live ones, at
least as many were pushed as are stale now. If the first reason holds those are half of all (stale > live + SLACK); if
the second holds and n ≤ d/2, a third (entries > 3d/2 ≥ 3/2 live); and a row with n > d/2 costs as much itself.

**Sums.** Σw and Σw² over the active are carried along, with what rounding takes from them kept in low parts. What is
left is the rounding of single w_k: for each coordinate touched a few units in the last place of w_k and w_k², so in a
round never more than that of Σw and Σw². It stays when the sums become small, but harms no x_t: x = s w with s ≤ 1/c
and c = a + Λ l2 never falls, so it is rounding of earlier, longer w/c. `rebuild` sums anew from the z_k, every PERIOD
rounds at the latest: drift does not grow with t. (Measured after PERIOD − 1 rounds without one: 2e-16 of either sum.)
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from longterm.linear_model.kernels.compile import exact
from longterm.storage.compiled import prefetch

SLACK = 64
PERIOD = 2**16
"""After so many rounds, counted by t itself, the sums are made anew."""
ARITY = 4
"""Children of an entry: the heap is half as deep as a binary one."""
SHARE = 63 / 64
"""A new key is τ + SHARE · w: below |z_k|, so that small falls need no new entry. ½ to 1 were tried on sector."""

BYTES = 16
"""What a coordinate takes in the vector."""


def room(dimension: int) -> int:
    """How many words the heap of so many coordinates needs."""
    return 2 * dimension + SLACK


@exact
def word_of(key, k, places):
    """The entry of coordinate k with a key ≥ 0. The sign's bit is dropped, there is none."""
    bits = np.float64(key).view(np.uint64) << uint64(1)
    return bits >> places << places | uint64(k) + uint64(1)


@exact
def coordinate_of(word, places):
    """The k of an entry."""
    return int64(word & (uint64(1) << places) - uint64(1)) - 1


@exact
def add(high, low, value):
    """The sum high + low with one more number in it: what rounding takes from high goes to low (Knuth's two-sum)."""
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
    """Put a word in the place of entry `hole` and let it sink. The least of four is found without a branch to guess."""
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
def raise_threshold(memory, old, new):
    """Take out what dies as τ rises from `old` to `new`, and bring the sums to the new τ."""
    s, vector, words, heap, places = memory.scalars[0], memory.vector, memory.words, memory.heap, memory.places
    size, active = s.entries, s.active
    sum_1, low_1, sum_2, low_2 = s.norm_1, s.norm_1_low, s.norm_2, s.norm_2_low
    limit = word_of(new, 0, places) | (uint64(1) << places) - uint64(1)
    end, waiting = size, 0
    while size > 0 and heap[0] <= limit:
        for child in range(1, min(1 + ARITY, size)):  # one of them is next
            prefetch(vector.ctypes.data + BYTES * coordinate_of(heap[child], places))
        word = heap[0]
        k = coordinate_of(word, places)
        again = uint64(0)
        if word == words[2 * k + 1]:
            length = abs(vector[2 * k])
            if length > new:
                again = word_of(new + SHARE * (length - new), k, places)
            else:
                s.live -= 1
                if length > old:
                    active -= 1
                    sum_1, low_1 = add(sum_1, low_1, old - length)
                    sum_2, low_2 = add(sum_2, low_2, -((length - old) ** 2))
            words[2 * k + 1] = again
        if again > limit:
            sink(heap, size, 0, again)
            continue
        size -= 1
        sink(heap, size, 0, heap[size])
        if again > uint64(0):
            # Its key's leading bits are τ's own: in the heap it would come up again for ever. It waits behind the
            # heap, where every entry taken out has left a place.
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
def rebuild(memory, threshold):
    """One entry for each active coordinate, with a new key, and the sums anew."""
    s, vector, words, heap, places = memory.scalars[0], memory.vector, memory.words, memory.heap, memory.places
    sum_1 = low_1 = sum_2 = low_2 = 0.0
    size = 0
    for place in range(s.entries):
        word = heap[place]
        k = coordinate_of(word, places)
        if word == words[2 * k + 1]:
            words[2 * k + 1] = uint64(0)  # the same word can be there twice: the other one is stale from now on
            w = abs(vector[2 * k]) - threshold
            if w > 0.0:
                sum_1, low_1 = add(sum_1, low_1, w)
                sum_2, low_2 = add(sum_2, low_2, w * w)
                heap[size] = word_of(threshold + SHARE * w, k, places)
                size += 1
    for place in range(size):
        words[2 * coordinate_of(heap[place], places) + 1] = heap[place]
    for place in range((size - 2) // ARITY, -1, -1):
        sink(heap, size, place, heap[place])
    s.entries = s.live = s.active = size
    s.norm_1, s.norm_1_low, s.norm_2, s.norm_2_low = sum_1, low_1, sum_2, low_2
