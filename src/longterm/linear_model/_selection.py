"""The choice of at most `max_features` features in `fit`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from longterm._base.arrays import FloatArray
from longterm.linear_model._rows import RowBlock, row_block
from longterm.linear_model.streaming import BudgetLinearLearner


def largest_features(learner: BudgetLinearLearner, x: FloatArray, count: int) -> NDArray[np.bool_]:
    """Return a mask of the features with the `count` largest weights, as weights of scaled features."""
    sizes = np.abs(x if learner.scale is None else x / learner.scale.factors)
    chosen = np.zeros(len(x), dtype=bool)
    chosen[np.argsort(-sizes, kind="stable")[:count]] = True
    return chosen


def restricted_rows(block: RowBlock, chosen: NDArray[np.bool_], learner: BudgetLinearLearner) -> RowBlock:
    """Return the rows with every other feature at its mean, so that the learner sees 0 there."""
    dimension, scale = len(chosen), learner.scale
    if not block.is_sparse:
        means = np.zeros(dimension) if scale is None else scale.means
        return row_block(np.where(chosen, block.rows, means), dimension)
    matrix = sparse.csr_array(block.rows, shape=(block.count, dimension))
    if scale is not None and scale.centred:
        return row_block(np.where(chosen, matrix.toarray(), scale.means), dimension)
    matrix = matrix.copy()
    matrix.data = matrix.data * chosen[matrix.indices]
    matrix.eliminate_zeros()
    return row_block(matrix, dimension)
