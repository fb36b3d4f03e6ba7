"""A path of budgets on a GPU: all learners in one launch, a row read once for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from longterm._arrays import FloatArray
from longterm.errors import InputError
from longterm.linear_model._rows import IN_ORDER as AS_THEY_STAND
from longterm.linear_model._together import (
    Stretch,
    columns,
    drawn_rounds,
    hand_back,
    has_kernel_for_groups,
    play_widening,
)
from longterm.linear_model.gpu import device
from longterm.linear_model.streaming import BudgetLinearLearner


class GpuPath:
    """Learners of one path, played by `gpu.device`."""

    def __init__(self, learners: Sequence[BudgetLinearLearner], dtype: str) -> None:
        if dtype not in device.MOST_COORDINATES:
            raise InputError("dtype", f"{dtype!r} is not known", "Choose 'float32' or 'float64'")
        if not all(has_kernel_for_groups(learner) for learner in learners):
            raise InputError(
                "rules", "there is one rule for paths on a GPU", "Use 'a-ftrl', with sparse=False and scales='one'"
            )
        if len({learner._average.seed for learner in learners}) > 1:
            raise InputError("seeds", "the learners of a path on a GPU have one seed", "Give one, or use device='cpu'")
        device.cupy()
        self._learners, self._dtype = learners, dtype

    def play(self, stretch: Stretch) -> FloatArray:
        """Every learner learns the rows; their sums of losses after the rounds of `record`, a column each."""
        rules = [learner._rule for learner in self._learners]
        constants = columns([rule.parameters for rule in rules])
        d, betas = rules[0].dimension, constants[device.PARAMETER_FIELDS.index("beta")]
        lanes, coordinates = device.lanes_for(d, len(rules), self._dtype)
        shuffled = stretch.order is not AS_THEY_STAND
        kind = device.Kind(
            ftrl=True,
            online=bool(constants[device.PARAMETER_FIELDS.index("step"), 0] == 0.0),
            loss=int(rules[0].parameters["loss"][0]),
            order=device.ONE_ORDER if shuffled else device.IN_ORDER,
            same_beta=bool((betas == betas[0]).all()),
            dtype=self._dtype,
            lanes=lanes,
            coordinates=coordinates,
        )
        X = stretch.block.rows
        if stretch.block.is_sparse:
            data, indices, indptr = X
            shape = (stretch.block.count, d)
            X = sparse.csr_array((data, indices, indptr - indptr[0]), shape=shape).astype(np.float32).toarray()
        rows = device.rows_on_device(X, stretch.labels, stretch.weights if len(stretch.weights) else None, kind.width,
                                     kind.dtype)  # fmt: skip
        labels = stretch.labels[stretch.order] if shuffled else stretch.labels
        return play_widening(self._learners, labels, stretch.record, partial(self._play_part, kind, rows, stretch))

    def _play_part(
        self,
        kind: device.Kind,
        rows: Any,
        stretch: Stretch,
        labels: FloatArray,
        start: int,
        stop: int,
        record: NDArray[np.int64],
    ) -> FloatArray:
        learners = self._learners
        rules, first = [learner._rule for learner in learners], learners[0].rounds + 1
        state = columns([rule.scalars for rule in rules])
        constants = columns([rule.parameters for rule in rules])  # an interval may have been widened
        vectors = np.stack([rule._arrays["vector"] for rule in rules])
        drawn = drawn_rounds(learners[0], first, first + stop - start)
        totals = np.zeros((len(learners), rules[0].dimension + 1))
        for k, learner in enumerate(learners):
            if learner._average.sampled.total.size:
                totals[k] = learner._average.sampled.total
        level = learners[0]._level
        order = stretch.order[start:stop] if kind.order == device.ONE_ORDER else np.arange(start, stop)
        part = kind if kind.order == device.ONE_ORDER or start == 0 else device.with_order(kind)
        state, made, losses, sums = device.play(
            part, device.about(rows, level), constants, state, vectors, first, stop - start,
            order=order if part.order == device.ONE_ORDER else None, record=record, drawn=drawn, totals=totals,
        )  # fmt: skip
        sums[:, -1] += len(drawn) * level
        hand_back(learners, state, made, first + stop - start, np.full(len(learners), len(drawn)), sums)
        return losses
