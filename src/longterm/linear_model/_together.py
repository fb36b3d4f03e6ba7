"""Learners that play the same rows, side by side: groups for `kernels.path`, the rest one after another.

Learners stay what they are; a group takes their states, plays a stretch of rows and hands the states back. Up to the
order of additions, what comes out is what each would have learned alone: 1e-9 is promised, 1e-13 is usual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.errors import InputError
from longterm.linear_model._memory import Sampled
from longterm.linear_model._rows import IN_ORDER, RowBlock
from longterm.linear_model.kernels.layout import AFTRL, TRACE
from longterm.linear_model.kernels.path import BETA, LANES, ROOM, gather_kernel, lanes_kernel
from longterm.linear_model.kernels.rule import NO_NUMBERS
from longterm.linear_model.streaming import BudgetLinearLearner

FEWEST = 4
"""A group costs as much as about four learners one after another, however few it has."""


@dataclass(frozen=True)
class Stretch:
    """Some rows of a block, in the order in which they are played."""

    block: RowBlock
    order: NDArray[np.int64]
    """Row numbers; empty: all rows of `block`, in their order."""
    labels: FloatArray
    """Of the block's rows, as the weights."""
    weights: FloatArray
    record: NDArray[np.int64]
    """Rounds after which the sum of the losses is wanted."""

    def __len__(self) -> int:
        return len(self.order) if self.order is not IN_ORDER else self.block.count

    def gathered(self) -> Gathered:
        """The rows as `kernels.path` wants them, read once for all learners."""
        rows, count = self.block.rows, len(self)
        kind: tuple[str, ...]
        if self.block.is_sparse:
            data, indices, indptr = rows
            sizes = np.diff(indptr)
            entries = int(sizes[self.order].sum() if self.order is not IN_ORDER else indptr[-1] - indptr[0])
            kind = (data.dtype.name, indices.dtype.name)
        else:
            entries, kind = count * rows.shape[1], (rows.dtype.name,)
        made = np.empty(entries + 1), np.empty(entries + 1, np.int32), np.empty(count + 1, np.int64)
        lengths = np.empty(count)
        gather_kernel(*kind)(rows, self.order, *made, lengths)
        if self.order is IN_ORDER:
            return Gathered(made, lengths, self.labels, self.weights)
        weights = self.weights[self.order] if len(self.weights) else NO_NUMBERS
        return Gathered(made, lengths, self.labels[self.order], weights)


@dataclass(frozen=True)
class Gathered:
    """The same rows as CSR of float64 at int32, with ‖u‖² of each."""

    rows: tuple[FloatArray, NDArray[np.int32], NDArray[np.int64]]
    lengths: FloatArray
    labels: FloatArray
    weights: FloatArray


def groups_of(learners: Sequence[BudgetLinearLearner]) -> list[list[int]]:
    """Who plays together: at most LANES places each, alone where the rule has no kernel for groups."""
    together = [k for k, learner in enumerate(learners) if has_kernel_for_groups(learner)]
    alone = [[k] for k, learner in enumerate(learners) if not has_kernel_for_groups(learner)]
    groups = [together[start : start + LANES] for start in range(0, len(together), LANES)]
    return [part for group in groups for part in ([group] if len(group) >= FEWEST else [[k] for k in group])] + alone


def has_kernel_for_groups(learner: BudgetLinearLearner) -> bool:
    """Whether it is A-FTRL with one scale and memory for dense rows: `kernels.path` and `gpu` play nothing else."""
    return learner._rule._code == AFTRL and learner.settings.scales == "one"


def play(learners: Sequence[BudgetLinearLearner], stretch: Stretch, gathered: Gathered | None) -> FloatArray:
    """Every learner of a group learns the rows; their sums of losses after the rounds of `record`, a column each."""
    if len(learners) >= FEWEST and gathered is not None:
        return _play_group(learners, gathered, stretch.record)
    losses = np.empty((len(stretch.record), len(learners)))
    for column, learner in enumerate(learners):
        trace = np.empty(len(stretch.record), dtype=TRACE)
        learner.learn_checked(
            stretch.block, stretch.labels, stretch.weights, stretch.order, record=stretch.record, trace=trace
        )
        losses[:, column] = trace["loss"]
    return losses


def _play_group(learners: Sequence[BudgetLinearLearner], rows: Gathered, record: NDArray[np.int64]) -> FloatArray:
    return play_widening(learners, rows.labels, record, partial(_play_lanes, learners, rows))


def play_widening(
    learners: Sequence[BudgetLinearLearner],
    labels: FloatArray,
    record: NDArray[np.int64],
    play_part: Callable[[FloatArray, int, int, NDArray[np.int64]], FloatArray],
) -> FloatArray:
    """Play rows in parts, each up to where the interval of an intercept is to be widened; losses at `record`.

    `play_part` is given the labels of a part, about the level, where it starts and stops, and the rounds to record.
    """
    count = len(labels)
    widens = learners[0]._widens
    if widens:
        for learner in learners:
            learner._begin_at(float(labels[0]))
        labels = labels - learners[0]._level
    losses = np.empty((len(record), len(learners)))
    start = 0
    while start < count:
        stop = count
        if widens:  # the interval is the same for all of them, for they have seen the same targets
            stop = min(learner._widened_for(labels[start:stop], start) for learner in learners)
        first = learners[0].rounds + 1
        here = slice(*np.searchsorted(record, [first, first + stop - start]))
        losses[here] = play_part(labels[start:stop], start, stop, record[here])
        start = stop
    return losses


def _play_lanes(
    learners: Sequence[BudgetLinearLearner],
    rows: Gathered,
    labels: FloatArray,
    start: int,
    stop: int,
    record: NDArray[np.int64],
) -> FloatArray:
    rules, count = [learner._rule for learner in learners], len(learners)
    first, d = learners[0].rounds + 1, rules[0].dimension
    lanes = [min(k, count - 1) for k in range(LANES)]  # lanes without a learner play the last one's game again
    state = columns([rules[k].scalars for k in lanes])
    constants = columns([rules[k].parameters for k in lanes])
    code = int(rules[0].parameters["loss"][0])
    z = np.stack([rules[k]._arrays["vector"] for k in lanes], axis=1)
    drawn = sorted(
        (t, k) for k, learner in enumerate(learners) for t in drawn_rounds(learner, first, first + stop - start)
    )
    rounds, drawers = (np.array(drawn, dtype=np.int64).reshape(-1, 2).T.copy()) if drawn else (IN_ORDER, IN_ORDER)
    totals, losses = np.zeros((LANES, d + 1)), np.empty((len(record), LANES))
    for k, learner in enumerate(learners):
        if learner._average.sampled.total.size:
            totals[k] = learner._average.sampled.total
    data, indices, indptr = rows.rows
    betas = constants[BETA]
    weights = rows.weights[start:stop] if len(rows.weights) else rows.weights
    played = lanes_kernel()(
        code, first, bool((betas == betas[0]).all()), constants, state, z, np.zeros((ROOM, LANES)),
        (data, indices, indptr[start : stop + 1]), rows.lengths[start:stop], labels, weights,
        rounds, drawers, learners[0]._level, totals, record, losses,
    )  # fmt: skip
    if played != stop - start:  # blocks are checked, so that this never happens
        raise InputError("X", f"row {start + played} was refused", "Scale the features", round=first + played)
    times = np.bincount(drawers, minlength=count) if drawn else np.zeros(count, dtype=np.int64)
    hand_back(learners, state, z.T, first + played, times, totals)
    return losses[:, :count]


def hand_back(
    learners: Sequence[BudgetLinearLearner],
    state: FloatArray,
    vectors: NDArray[Any],
    round: int,
    times: NDArray[np.int64],
    totals: FloatArray,
) -> None:
    """Give every learner its column of the state, its vector, and what its average drew, so many times."""
    records = np.ascontiguousarray(state.T).view(learners[0]._rule.scalars.dtype)[:, 0]
    records["round"] = round
    for k, learner in enumerate(learners):
        learner._rule.scalars[0] = records[k]
        learner._rule._arrays["vector"][...] = vectors[k]
        if times[k]:
            learner._average.sampled = Sampled(learner._average.sampled.stretches + times[k], totals[k].copy())
        learner._plan_average()


def columns(records: Sequence[NDArray[Any]]) -> FloatArray:
    """Records in arrays of one, whose fields all have eight bytes, a column each. Integers pass as their bits."""
    return np.stack([record.view(np.float64) for record in records], axis=1)


def drawn_rounds(learner: BudgetLinearLearner, first: int, end: int) -> list[int]:
    """The rounds from `first` to end − 1 whose decisions the average of this learner wants."""
    average, made = learner._average, []
    stretch = int(average.sampled.stretches[0])
    while (t := average.round_of(stretch)) < end:
        made.append(t)
        stretch += 1
    return made
