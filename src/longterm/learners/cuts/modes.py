"""The modes of hedged cuts: how the experts y, shape (K, ..., d), come back to the constraint after their steps.

- The latest constraint (`cut_by_latest`): g changes, and only its linearisations at x_t are known.
- A known constraint (`cut_by_known`): g is fixed and may be evaluated at the experts too.
- A bank (`relaxed`): slack of earlier rounds relaxes the cuts of either mode.
- Remembered half-spaces (`cut_by_memory`): g changes, and the half-spaces of earlier violated rounds are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from longterm._base import validate
from longterm._base.arrays import (
    Array,
    all_below_if_concrete,
    as_column,
    as_float,
    dot,
    first_true,
    like,
    namespace,
    where_rows,
)
from longterm._base.validate import Hyper
from longterm.learners.cuts.cuts import (
    Cut,
    Cutter,
    cut_along,
    cut_by_affine,
    cut_by_one,
    cut_jointly,
    cut_times,
    cut_until,
    cut_within,
)
from longterm.learners.interface.experts import experts_last, mixture, weighted_mean
from longterm.learners.interface.feedback import Feedback
from longterm.problems.constraints import Constraint
from longterm.problems.sets import Set

MOST_CUTS = 30
"""The most cuts of a round by a known constraint, or by remembered half-spaces. Few rounds need more than five."""
MET = 3.0
"""Cuts by remembered half-spaces end where this many times the tolerance is left."""
EMPTY = 4.0
"""Remembered half-spaces are forgotten where this many times the tolerance is left after all cuts."""
PARALLEL = 4.5e-5
"""Two unit normals are merged if their difference is at most this long."""
EQUAL = 16.0
"""Two unit normals are equal if their difference is at most this many rounding errors long."""

ONE = validate.frozen(np.ones(1))
"""The weight of a single constraint."""

Relaxation = Callable[[Array], Array]
"""From the values g_j, shape (..., m), to relaxed ones."""


def totals_after(totals: Array, feedback: Feedback) -> Array:
    """Return Σ g_j with this round, of shape (..., m), or (..., 0) where no sums are kept."""
    if not totals.shape[-1]:
        return totals
    return totals + (feedback.constraint[..., None] if totals.shape[-1] == 1 else feedback.constraint_values)


def relaxed(values: Array, totals: Array, bank: Hyper) -> Array:
    """Return g_j − β[−Σ g_j]₊, from g_j of shape (..., m)."""
    if not totals.shape[-1]:
        return values
    slack = namespace(values).maximum(-totals, 0.0)
    return values - as_column(like(bank, values) + 0 * values[..., 0]) * slack


def cutter_of(x: Array, feedback: Feedback, count: int, relax: Relaxation, over: Set) -> Cutter:
    """Return the cuts by `count` constraints linearised at x: by the only one, or by all of them together."""
    values, pullback, pushforward = feedback.constraint_values, feedback.pullback, feedback.pushforward
    if count == 1 or pullback is None or pushforward is None:  # `HedgedCuts.require` asks for both
        value = relax(feedback.constraint[..., None])[..., 0]
        return cut_by_one(x, value, feedback.constraint_gradient, over)
    return cut_jointly(x, relax(values), pullback, pushforward, over)


def cut_by_latest(y: Array, x: Array, feedback: Feedback, count: int, relax: Relaxation, over: Set, cuts: int) -> Array:
    """Cut the experts `cuts` times by the constraints of the round, linearised at the played point x."""
    return cut_times(y, cutter_of(x, feedback, count, relax, over), over, cuts)


def cut_by_known(
    y: Array,
    x: Array,
    feedback: Feedback,
    known: Constraint,
    weights: Array | None,
    relax: Relaxation,
    tolerance: Array,
    over: Set,
    cuts: int,
    *,
    each_point: bool,
) -> tuple[Array, Array]:
    """Cut the experts by a fixed g until their mean distance from the half-spaces is at most `tolerance`.

    With `each_point` several affine constraints are evaluated at each expert. Elsewhere the first cut is by g
    linearised at x, and each further one by g linearised at the mixture of the experts, or at x where g is affine.

    Returns
    -------
    points, unfinished : Array
        `unfinished`, shape (...), is true where `cuts` cuts did not suffice.
    """
    first = cut_by_affine(known, x, over) if each_point else cutter_of(x, feedback, known.count, relax, over)

    def at_mixture(y: Array) -> Cutter:
        z = mixture(weights, experts_last(y))
        values, pullback, pushforward = known.linearised(z)
        if known.count == 1:
            return cutter_of(z, Feedback(None, values[..., 0], pullback(like(ONE, z))), 1, relax, over)
        every = Feedback(None, None, None, None, values, pullback, pushforward)
        return cutter_of(z, every, known.count, relax, over)

    at = (lambda _: first) if known.is_affine else at_mixture
    points, unfinished, _ = cut_until(y, first, at, partial(weighted_mean, weights), tolerance, over, cuts)
    return points, unfinished


def cut_by_memory(
    y: Array, rows: Array, x: Array, feedback: Feedback, weights: Array | None, tolerance: Array, over: Set
) -> tuple[Array, Array, Array]:
    """Remember the half-space of a violated round, and cut the experts by all remembered ones together.

    Where the cuts cannot be met, at least `EMPTY` times the tolerance is left. Then all rows but the latest are
    forgotten, and the experts return to where they were: no point is common to the constraints so far.

    Returns
    -------
    points, rows, lost : Array
        `lost`, shape (...), counts the rows that were lost, and one more where the cuts were not met.
    """
    value = feedback.constraint
    lost = like(0.0, x) * value
    if not all_below_if_concrete(value, 0.0):
        latest = cut_within(over, feedback.constraint_gradient, value)
        rows, lost = remember(rows, x, latest, over.diameter)
    cutter, mean = cut_by_rows(rows), partial(weighted_mean, weights)
    first = cutter(y)
    if all_below_if_concrete(first.distance, 0.0):
        return y, rows, lost
    points, _, left = cut_until(y, lambda _: first, lambda _: cutter, mean, MET * tolerance, over, MOST_CUTS)
    unmet = left > EMPTY * tolerance
    if not all_below_if_concrete(as_float(unmet, x), 0.0):
        kept = forget(rows, unmet, value > 0)
        lost = lost + as_float(unmet, x) + count_rows(rows) - count_rows(kept)
        rows, points = kept, where_rows(unmet, y, points)
    return points, order_by_use(rows, points, tolerance), lost


def cut_by_rows(rows: Array) -> Cutter:
    """Return the cuts by half-spaces {z : ⟨a_i, z⟩ ≤ b_i} in rows (a_i, b_i) of shape (..., M, d + 1), weighed by v."""
    xp, normals, limits = namespace(rows), rows[..., :-1], rows[..., -1]
    columns = xp.matrix_transpose(normals)

    def cut(y: Array) -> Cut:
        broken = xp.maximum(experts_last(y) @ columns - limits[..., None, :], 0.0)
        normal, excess = broken @ normals, dot(broken, broken)
        if y.ndim > 2:
            normal, excess = xp.moveaxis(normal, -2, 0), xp.moveaxis(excess, -1, 0)
        return cut_along(normal, dot(normal, normal), excess)

    return cut


def count_rows(rows: Array) -> Array:
    """Return the number of rows that hold a half-space, shape (...), in the dtype of the rows."""
    normals = rows[..., :-1]
    return namespace(rows).sum(as_float(dot(normals, normals) > 0.5, rows), axis=-1)


def remember(rows: Array, x: Array, latest: Cut, diameter: float) -> tuple[Array, Array]:
    """Append the half-space of the latest cut of x to the rows where x is outside.

    It replaces the row of a nearly parallel normal a_i. Then the smaller limit counts, where that of the old row is
    widened by ⟨a − a_i, x⟩ + Δ‖a − a_i‖, so that every point of B in the old half-space is in the new one. Without such
    a row it replaces the first row.

    Returns
    -------
    rows, lost : Array
        `lost`, shape (...), is 1 where a row of another direction was replaced.
    """
    xp, M = namespace(rows), rows.shape[-2]
    a, value = latest.normal, latest.distance
    b = dot(a, x) - value
    turn = a[..., None, :] - rows[..., :-1]
    angle = xp.sqrt(dot(turn, turn))
    same = angle <= PARALLEL
    outer = rows[..., -1] + xp.vecdot(turn, x[..., None, :]) + diameter * angle
    limit = xp.minimum(xp.min(xp.where(same, outer, b[..., None]), axis=-1), b)
    every = xp.concat([rows, xp.concat([a, limit[..., None]], axis=-1)[..., None, :]], axis=-2)
    replaced = xp.where(xp.any(same, axis=-1), first_true(same), 0)
    left_out = xp.where(value > 0, replaced, M)
    before = xp.arange(M, dtype=left_out.dtype) < left_out[..., None]
    is_replaced = xp.arange(M, dtype=left_out.dtype) == left_out[..., None]
    full = dot(rows[..., :-1], rows[..., :-1]) > 0.5
    equal = angle <= EQUAL * float(xp.finfo(rows.dtype).eps)
    lost = xp.any(is_replaced & full & ~equal, axis=-1)
    return xp.where(as_column(before), every[..., :M, :], every[..., 1:, :]), as_float(lost, x)


def forget(rows: Array, unmet: Array, is_new: Array) -> Array:
    """Return the rows without any but the last where `unmet`, and without that one unless it `is_new`."""
    xp = namespace(rows)
    last = (xp.arange(rows.shape[-2]) == rows.shape[-2] - 1) & as_column(is_new)
    return xp.where(as_column(as_column(unmet) & ~last), xp.zeros_like(rows), rows)


def order_by_use(rows: Array, y: Array, slack: Array) -> Array:
    """Return the rows with those that bind at one of the points y, up to a slack, at the end.

    So the first row, which the next one replaces, is the least recently used. The order stays while a row is free.
    """
    xp, normals, limits = namespace(rows), rows[..., :-1], rows[..., -1]
    full = dot(normals[..., 0, :], normals[..., 0, :]) > 0.5
    if all_below_if_concrete(as_float(full, rows), 0.0):
        return rows
    gap = limits - xp.max(experts_last(y) @ xp.matrix_transpose(normals), axis=-2)
    binds = (gap <= as_column(slack)) & as_column(full)
    order = xp.argsort(xp.astype(binds, xp.int8), axis=-1, stable=True)
    return xp.take_along_axis(rows, order[..., None], axis=-2)
