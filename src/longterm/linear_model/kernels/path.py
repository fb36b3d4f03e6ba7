"""A-FTRL for many learners on the same rows, compiled: LANES of them side by side in the lanes of vectors.

The rule and its state are those of `aftrl`; only the layout differs. `state[f, l]` is field f of SCALARS of learner l,
`parameters[f, l]` field f of PARAMETERS, `z[j, l]` coordinate j of its z. So a row's numbers are read once for all of
them, its length and t^β are computed once, and everything else is done on vectors: z too, of which only the row's own
coordinates are read for the margin. What remains for every coordinate in every round are ‖w‖₁ and ‖w‖², w = soft(z, τ).

The three loops over coordinates are written for LLVM's vectors directly: Numba cannot know that `z` and the sums lie in
different memory, and would keep the sums there. exp and log1p are those of `functions`: calls of the mathematics
library would take the lanes one by one.

Rows are CSR in the order in which they are played; `gather` makes them of dense or sparse ones.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, float64, int32, int64, types  # type: ignore[attr-defined]
from numba.core import cgutils
from numba.extending import intrinsic, overload

from longterm.linear_model.kernels.compile import OPTIONS, compiled, helper, keep_under, pointer, sources
from longterm.linear_model.kernels.functions import exponential, log1p_of_share
from longterm.linear_model.kernels.layout import PARAMETERS, SCALARS
from longterm.linear_model.kernels.losses import LOGISTIC, value_and_slope
from longterm.linear_model.kernels.play import NUMBA_TYPES
from longterm.linear_model.kernels.round import LONGEST_GRADIENT
from longterm.linear_model.kernels.rows import number_of_rows
from longterm.storage.compiled import readonly

LANES = 16
"""Learners in a group: four vectors of AVX2, two of AVX-512, enough of them to hide how long an addition takes."""
BYTES = 8 * LANES

_P = {name: place for place, name in enumerate(PARAMETERS.names or ())}
_S = {name: place for place, name in enumerate(SCALARS.names or ())}
BUDGET, L1, L2, RADIUS, INTERCEPT_BOUND = (_P[n] for n in ("budget", "l1", "l2", "radius", "intercept_bound"))
BETA, STEP, THETA_0, LOSS_PARAMETER = (_P[n] for n in ("beta", "step", "theta_0", "loss_parameter"))
LOSS_SUM, SIGNED, HARD, SQUARED = (
    _S[n] for n in ("loss_sum", "signed_violation", "hard_violation", "squared_violation")
)
MULTIPLIER, MULTIPLIER_SUM, BOUND_SUM = (_S[n] for n in ("multiplier", "multiplier_sum", "bound_sum"))
SQUARES, LONGEST, SCALE = (_S[n] for n in ("gradient_squares", "longest_gradient", "scale"))
NORM_1, NORM_2 = _S["norm_1"], _S["norm_2"]
INTERCEPT, INTERCEPT_SLOPE, INTERCEPT_SQUARES = (_S[n] for n in ("intercept", "intercept_slope", "intercept_squares"))
FIELDS, CONSTANTS = len(_S), len(_P)
THRESHOLD, DOT, VALUE, SLOPE, POWER, ROOM = range(6)
"""What a round keeps for itself, a row of lanes each."""

# --- loops over coordinates, on vectors -----------------------------------------------------------------------

_NUMBER, _WHOLE = ir.DoubleType(), ir.IntType(64)
_VECTOR = ir.VectorType(_NUMBER, LANES)
_FAST = ("reassoc", "contract", "nsz")


def _lanes(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _VECTOR.as_pointer())


def _spread(builder: Any, number: Any) -> Any:
    """The same number in every lane."""
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), zeros)


def _less(builder: Any, one: Any, other: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", one, other), one, other)


def _more(builder: Any, one: Any, other: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", one, other), one, other)


class _Loop:
    """for k = start … stop − 1, with vectors that are carried from turn to turn."""

    def __init__(self, builder: Any, start: Any, stop: Any, carried: int) -> None:
        self._builder, before = builder, builder.block
        self._head, self._body = builder.append_basic_block("head"), builder.append_basic_block("body")
        self._after = builder.append_basic_block("after")
        builder.branch(self._head)
        builder.position_at_end(self._head)
        self.k = builder.phi(_WHOLE)
        self.k.add_incoming(start, before)
        self.carried = [builder.phi(_VECTOR) for _ in range(carried)]
        for vector in self.carried:
            vector.add_incoming(ir.Constant(_VECTOR, [0.0] * LANES), before)
        builder.cbranch(builder.icmp_signed("<", self.k, stop), self._body, self._after)
        builder.position_at_end(self._body)

    def end(self, *carried: Any) -> None:
        """Go on with these."""
        builder = self._builder
        self.k.add_incoming(builder.add(self.k, _WHOLE(1)), builder.block)
        for vector, new in zip(self.carried, carried, strict=True):
            vector.add_incoming(new, builder.block)
        builder.branch(self._head)
        builder.position_at_end(self._after)


def _entry(builder: Any, data: Any, indices: Any, z: Any, k: Any) -> tuple[Any, Any]:
    """Entry k of the rows, in every lane, and where its coordinates of z are."""
    value = builder.load(builder.inttoptr(builder.add(data, builder.mul(k, _WHOLE(8))), _NUMBER.as_pointer()))
    place = builder.inttoptr(builder.add(indices, builder.mul(k, _WHOLE(4))), ir.IntType(32).as_pointer())
    column = builder.zext(builder.load(place), _WHOLE)
    return _spread(builder, value), _lanes(builder, builder.add(z, builder.mul(column, _WHOLE(BYTES))))


def _dot(context, z, data, indices, start, stop, thresholds, out):
    """Out = ⟨u, −soft(z, τ)⟩."""

    def generate(context, builder, signature, arguments):
        z, data, indices, start, stop, thresholds, out = arguments
        threshold = builder.load(_lanes(builder, thresholds), align=8)
        lowest = builder.fsub(ir.Constant(_VECTOR, [0.0] * LANES), threshold)
        loop = _Loop(builder, start, stop, 1)
        value, place = _entry(builder, data, indices, z, loop.k)
        old = builder.load(place, align=8)
        clipped = _less(builder, _more(builder, old, lowest), threshold)
        part = builder.fmul(value, builder.fsub(clipped, old), flags=_FAST)
        loop.end(builder.fadd(loop.carried[0], part, flags=_FAST))
        builder.store(loop.carried[0], _lanes(builder, out), align=8)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 7), generate


def _add(context, z, data, indices, start, stop, slopes):
    """Z ← z + slope · u."""

    def generate(context, builder, signature, arguments):
        z, data, indices, start, stop, slopes = arguments
        slope = builder.load(_lanes(builder, slopes), align=8)
        loop = _Loop(builder, start, stop, 0)
        value, place = _entry(builder, data, indices, z, loop.k)
        part = builder.fmul(value, slope, flags=_FAST)
        builder.store(builder.fadd(builder.load(place, align=8), part, flags=_FAST), place, align=8)
        loop.end()
        return context.get_dummy_value()

    return types.void(*[types.int64] * 6), generate


def _norms(context, z, dimension, thresholds, norm_1, norm_2):
    """‖soft(z, τ)‖₁ and its ‖·‖²."""

    def generate(context, builder, signature, arguments):
        z, dimension, thresholds, norm_1, norm_2 = arguments
        threshold = builder.load(_lanes(builder, thresholds), align=8)
        kind = ir.FunctionType(_VECTOR, [_VECTOR])
        size = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fabs.v{LANES}f64")
        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        loop = _Loop(builder, _WHOLE(0), dimension, 2)
        old = builder.load(_lanes(builder, builder.add(z, builder.mul(loop.k, _WHOLE(BYTES)))), align=8)
        w = _more(builder, builder.fsub(builder.call(size, [old]), threshold), zero)
        first = builder.fadd(loop.carried[0], w, flags=_FAST)
        loop.end(first, builder.fadd(loop.carried[1], builder.fmul(w, w, flags=_FAST), flags=_FAST))
        builder.store(loop.carried[0], _lanes(builder, norm_1), align=8)
        builder.store(loop.carried[1], _lanes(builder, norm_2), align=8)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), generate


dot: Any = intrinsic(_dot)
add: Any = intrinsic(_add)
norms: Any = intrinsic(_norms)

# --- a block of rows --------------------------------------------------------------------------------------------


@helper
def charge(code, p, s, room, label, weight, length):
    """Value and slope of every lane at its margin; whether all may learn the row. Nothing of the state is changed."""
    if code == LOGISTIC:
        for lane in range(LANES):
            z = label * (s[SCALE, lane] * room[DOT, lane] + s[INTERCEPT, lane])
            small = exponential(-abs(z))
            room[VALUE, lane] = weight * (max(-z, 0.0) + log1p_of_share(small))
            room[SLOPE, lane] = -label * weight * ((small if z >= 0.0 else 1.0) / (1.0 + small))
    else:
        for lane in range(LANES):
            margin = s[SCALE, lane] * room[DOT, lane] + s[INTERCEPT, lane]
            value, slope = value_and_slope(code, p[LOSS_PARAMETER, lane], margin, label)
            room[VALUE, lane], room[SLOPE, lane] = weight * value, weight * slope
    wrong = 0
    for lane in range(LANES):
        free = 1.0 if p[INTERCEPT_BOUND, lane] > 0.0 else 0.0
        fits = room[SLOPE, lane] * room[SLOPE, lane] * (length + free) <= LONGEST_GRADIENT**2
        wrong += 0 if fits and room[VALUE, lane] < math.inf else 1
    return wrong == 0


@helper
def ascend(p, s, room, t, length):
    """What `round.charge`, `add_gradient` and `ascend` do to the state; the next τ."""
    for lane in range(LANES):
        slope, scale, online = room[SLOPE, lane], s[SCALE, lane], p[STEP, lane] == 0.0
        g = scale * (p[L1, lane] * s[NORM_1, lane] + 0.5 * p[L2, lane] * scale * s[NORM_2, lane]) - p[BUDGET, lane]
        positive = max(g, 0.0)
        s[LOSS_SUM, lane] += room[VALUE, lane]
        s[SIGNED, lane] += g
        s[HARD, lane] += positive
        s[SQUARED, lane] += positive * positive
        square = slope * slope * length
        longest = max(s[LONGEST, lane], math.sqrt(square))
        theta = p[THETA_0, lane] / room[POWER, lane]
        found = theta / longest if longest > 0.0 else 0.0
        theta = found if online else theta
        multiplier = s[MULTIPLIER, lane]
        raised = max(multiplier + (g - theta * multiplier) / (theta * (t + 1.0)), 0.0)
        multiplier = raised if theta > 0.0 else multiplier
        s[MULTIPLIER, lane] = multiplier
        total = s[MULTIPLIER_SUM, lane] + multiplier
        s[MULTIPLIER_SUM, lane] = total
        room[THRESHOLD, lane] = total * p[L1, lane]
        s[SQUARES, lane] += square if online else 0.0
        s[LONGEST, lane] = longest if online else s[LONGEST, lane]
        first = theta if s[BOUND_SUM, lane] > 0.0 else theta * (t + 1.0)
        s[BOUND_SUM, lane] += first if online else 0.0
        s[INTERCEPT_SQUARES, lane] += slope * slope if online and p[INTERCEPT_BOUND, lane] > 0.0 else 0.0


@helper
def place_leader(p, s, room, t):
    """`round.place_leader` with `leader_curvature`."""
    for lane in range(LANES):
        online, radius, squares = p[STEP, lane] == 0.0, p[RADIUS, lane], s[SQUARES, lane]
        found = math.sqrt(squares) / radius if squares > 0.0 else 1.0
        curvature = found if online else math.sqrt(t + 1.0) / p[STEP, lane]
        scale = 1.0 / (curvature + s[MULTIPLIER_SUM, lane] * p[L2, lane])
        norm_2 = s[NORM_2, lane]
        s[SCALE, lane] = radius / math.sqrt(norm_2) if norm_2 * scale * scale > radius * radius else scale
        bound = p[INTERCEPT_BOUND, lane]
        slope = s[INTERCEPT_SLOPE, lane] + (room[SLOPE, lane] if bound > 0.0 else 0.0)
        s[INTERCEPT_SLOPE, lane] = slope
        own = s[INTERCEPT_SQUARES, lane]
        curvature = math.sqrt(own) / bound if online else curvature
        known = bound > 0.0 and (own > 0.0 or not online)
        s[INTERCEPT, lane] = min(max(-slope / curvature, -bound), bound) if known else s[INTERCEPT, lane]


@cache
def lanes_kernel() -> Any:
    """Rows for LANES learners of one loss, as `play.block_kernel` plays them for one, all in round `first` at first.

    Called as kernel(code, first, same_beta, parameters, state, z, room, rows, lengths, labels, weights, drawn, lanes,
    level, totals, record, losses). In round drawn[i], in increasing order, the decision of learner lanes[i] is added to
    totals[lanes[i]], its intercept last, with `level` added; after round record[i] all sums of losses are written to
    losses[i]. It returns how many rows were played: fewer than given where the next one must be refused.
    """
    digest = sources()

    def play(
        code, first, same_beta, parameters, state, z, room, rows, lengths, labels, weights,
        drawn, lanes, level, totals, record, losses,
    ):  # fmt: skip
        keep_under(digest)
        data, indices, indptr = rows
        p = carray(pointer(parameters.ctypes.data), (CONSTANTS, LANES), np.float64)
        s = carray(pointer(state.ctypes.data), (FIELDS, LANES), np.float64)
        own = carray(pointer(room.ctypes.data), (ROOM, LANES), np.float64)
        there, values, columns = z.ctypes.data, data.ctypes.data, indices.ctypes.data
        begin, numbers = room.ctypes.data, state.ctypes.data
        for lane in range(LANES):
            own[THRESHOLD, lane] = s[MULTIPLIER_SUM, lane] * p[L1, lane]
        added, recorded = 0, 0
        for i in range(len(labels)):
            t = first + i
            while added < len(drawn) and drawn[added] == t:
                draw(s, own, z, lanes[added], level, totals)
                added += 1
            dot(there, values, columns, indptr[i], indptr[i + 1], begin + THRESHOLD * BYTES, begin + DOT * BYTES)
            weight = weights[i] if len(weights) > 0 else 1.0
            if not charge(code, p, s, own, labels[i], weight, lengths[i]):
                return i
            if same_beta:
                power = t ** p[BETA, 0]
                for lane in range(LANES):
                    own[POWER, lane] = power
            else:
                for lane in range(LANES):
                    own[POWER, lane] = t ** p[BETA, lane]
            ascend(p, s, own, t, lengths[i])
            add(there, values, columns, indptr[i], indptr[i + 1], begin + SLOPE * BYTES)
            norms(there, len(z), begin + THRESHOLD * BYTES, numbers + NORM_1 * BYTES, numbers + NORM_2 * BYTES)
            place_leader(p, s, own, t)
            if recorded < len(record) and record[recorded] == t:
                for lane in range(LANES):
                    losses[recorded, lane] = s[LOSS_SUM, lane]
                recorded += 1
        return len(labels)

    numbers, whole, table = readonly(float64), readonly(int64), float64[:, ::1]
    rows = types.Tuple((numbers, readonly(int32), whole))
    signature = (int64, int64, types.boolean, table, table, table, table, rows, numbers, numbers, numbers)
    return compiled(play, (*signature, whole, whole, float64, table, whole, table))


@helper
def draw(s, room, z, lane, level, totals):
    """Add the decision of learner lane to its total."""
    threshold = room[THRESHOLD, lane]
    for j in range(len(z)):
        totals[lane, j] += s[SCALE, lane] * (min(max(z[j, lane], -threshold), threshold) - z[j, lane])
    totals[lane, len(z)] += s[INTERCEPT, lane] + level


# --- rows in the order in which they are played -------------------------------------------------------------------


def gather_row(rows: Any, k: Any, data: Any, indices: Any, end: Any) -> Any:
    """Write the entries of row k that are not 0 from place `end` on; where the next row begins, and ‖u‖²."""


@overload(gather_row, jit_options=OPTIONS)
def _gather_row(rows, k, data, indices, end):
    if isinstance(rows, types.Array):

        def dense(rows, k, data, indices, end):
            length = 0.0
            for j in range(rows.shape[1]):
                value = np.float64(rows[k, j])
                data[end] = value
                indices[end] = j
                length += value * value
                end += int64(value != 0.0)  # no branch to guess
            return end, length

        return dense

    def sparse(rows, k, data, indices, end):
        values, columns, indptr = rows
        length = 0.0
        for j in range(indptr[k], indptr[k + 1]):
            value = np.float64(values[j])
            data[end] = value
            indices[end] = columns[j]
            length += value * value
            end += 1
        return end, length

    return sparse


@cache
def gather_kernel(values: str, indices: str | None = None) -> Any:
    """kernel(rows, order, data, indices, indptr, lengths): these rows, in this order, as CSR with their ‖u‖².

    An empty order stands for that of the rows. `data` and `indices` have one place more than can be needed.
    """
    digest = sources()

    def gather(rows, order, data, indices, indptr, lengths):
        keep_under(digest)
        shuffled = len(order) > 0
        end = 0
        indptr[0] = 0
        for i in range(len(order) if shuffled else number_of_rows(rows)):
            end, lengths[i] = gather_row(rows, order[i] if shuffled else i, data, indices, end)
            indptr[i + 1] = end

    rows: Any = readonly(NUMBA_TYPES[values], 2)
    if indices is not None:
        kinds = (NUMBA_TYPES[values], NUMBA_TYPES[indices], NUMBA_TYPES[indices])
        rows = types.Tuple(tuple(readonly(kind) for kind in kinds))
    return compiled(gather, (rows, readonly(int64), float64[::1], int32[::1], int64[::1], float64[::1]))
