"""Sparse rows as kernels want them: finite values, and in each row indices that increase strictly, all in 0 … d − 1.

Kernels trust this: an index out of range would write into foreign memory, and duplicates would make a row's length
wrong, and with it the steps of constants found online. Checking costs a small part of learning. Where only the order is
wrong, or indices come more than once, `canonical` sorts them and adds duplicates up, in a copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from longterm.errors import InputError
from longterm.linear_model._compile import helper


@helper
def is_canonical(indices, values, dimension):
    """Whether one row is as it should be."""
    wrong = 0
    for j in range(len(values)):
        wrong |= not abs(values[j]) < np.inf
    for j in range(1, len(indices)):
        wrong |= indices[j] <= indices[j - 1]
    inside = len(indices) == 0 or (indices[0] >= 0 and indices[len(indices) - 1] < dimension)
    return inside and wrong == 0 and len(values) == len(indices)


def first_wrong(rows, dimension):
    """The first row that is not as it should be; as many as there are rows where all are."""
    data, indices, indptr = rows
    count = len(indptr) - 1
    for k in range(count):
        begin, end = indptr[k], indptr[k + 1]
        if not 0 <= begin <= end <= len(indices) or not is_canonical(indices[begin:end], data[begin:end], dimension):
            return k
    return count


def canonical(rows: Any, dimension: int, t: int) -> Any:
    """The same rows in order and without duplicates; an InputError where something else is wrong with them."""
    data, indices, indptr = rows
    steps = np.diff(indptr)
    if indptr[0] < 0 or np.any(steps < 0) or indptr[-1] > len(indices) or len(indices) != len(data):
        what = "its indptr does not fit its indices and data"
        raise InputError("rows", what, "Give CSR rows as SciPy makes them", round=t)
    outside = (indices < 0) | (indices >= dimension)
    if np.any(outside):
        place = int(outside.argmax())
        where = int(np.searchsorted(indptr, place, side="right")) - 1
        what = f"row {where} has the index {indices[place]}, and the learner has {dimension} features"
        raise InputError("rows", what, f"Indices go from 0 to {dimension - 1}", round=t)
    not_finite = ~np.isfinite(data)
    if np.any(not_finite):
        where = int(np.searchsorted(indptr, int(not_finite.argmax()), side="right")) - 1
        raise InputError("rows", f"row {where} holds NaN or infinity", "Clean the rows first", round=t)
    copy = csr_array((data.copy(), indices.copy(), indptr.copy()), shape=(len(indptr) - 1, dimension))
    copy.sum_duplicates()
    return copy.data, copy.indices.astype(indices.dtype, copy=False), copy.indptr.astype(indptr.dtype, copy=False)
