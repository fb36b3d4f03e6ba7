"""How large each feature is, found on the stream: what a learner multiplies rows by before it learns them.

One step length for all features suits none of them where they differ in size or in how often they are not 0. With v_j
the mean of u_j² where it is not 0, and s_j the share of rows where it is not, feature j is multiplied by
a_j ∝ v_j^{−1/2} s_j^{−3/8}. So the unit of a feature does not matter; of rare ones less is made than unit variance (s_j
to the power −1/2) would, which learns them from a few rows. Rows have a mean squared length of 1 then.

Factors change after 1, 2, 4, 8, … rows. A weight x_j of a row as it came is a_j times the learner's own weight; the sum
of the gradients is a linear map of the rows, so with new factors it is multiplied by a_j′/a_j, and the leader is the
one that it would have been with these factors from the first row on. (The sum of squares is only multiplied by the
change of the mean squared length.) Theorems hold between changes, of which there are at most 18; about what a change
costs nothing is claimed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from longterm._arrays import FloatArray
from longterm.linear_model.kernels.squares import dense_squares, sparse_squares

POWER = 0.375
"""The share's exponent. In orders not used while choosing, 1/4 is 2 % behind on Adult and up to 3 % ahead on ijcnn1,
1/2 is 1 to 4 % behind on a9a, text and ijcnn1."""
FIRST = 4.0
"""The length of the first row: it sets r_0 = 1/16, a prior for smaller models than the r_0 of rows of length 1."""
SOME = 4.0
"""Rows in which a feature must be seen before its own size counts as much as that of the others. Text wants more of
them (words are seen seldom, and their sizes say something), features with units of their own want fewer."""
COLUMNS_A_ROW = 4096
"""No factors are made anew before the passes over the columns cost less than this many columns a row."""
LAST = 2**17
"""After so many rows factors stay as they are."""
OUTLIER, ENOUGH = 100.0, 8
"""After ENOUGH rows a square counts as at most OUTLIER times what was usual when factors were last made."""
FARTHEST = 1e60
NAMES = ("factors", "squares", "seen", "most", "counts")
"""What it stores."""


class FeatureScale:
    """Factors for features, and what they are made of."""

    def __init__(self, dimension: int) -> None:
        self.factors = np.ones(dimension)
        self.squares = np.zeros(dimension)
        self.seen = np.zeros(dimension)
        """In how many rows each was not 0."""
        self.counts = np.zeros(1, dtype=np.int64)
        """How many rows there were."""
        self.most = np.full(dimension, FARTHEST)
        """What a square counts as at most."""

    @property
    def until_due(self) -> int:
        """How many rows may be learned before `renewed` is wanted."""
        rows = int(self.counts[0])
        return (1 << rows.bit_length()) - rows if rows < LAST else 2**62

    def is_due(self) -> bool:
        """Whether the number of rows is one at which factors are made anew."""
        rows = int(self.counts[0])
        return 0 < rows <= LAST and rows & (rows - 1) == 0 and rows * COLUMNS_A_ROW >= len(self.factors)

    def begin(self, rows: Any) -> None:
        """Before the first row: it has the length FIRST."""
        if self.counts[0] == 0:
            length = math.sqrt(float(np.sum(np.square(_values(rows), dtype=np.float64))))
            if 1 / FARTHEST < length < FARTHEST:
                self.factors[:] = FIRST / length

    def scaled(self, rows: Any) -> Any:
        """These rows, an array or (data, indices, indptr), as the learner is to see them."""
        if isinstance(rows, tuple):
            start, stop = rows[2][0], rows[2][-1]
            indices = rows[1][start:stop]
            return rows[0][start:stop] * self.factors[indices], indices, rows[2] - start
        return rows * self.factors

    def count(self, rows: Any) -> None:
        """Take note of rows as they came."""
        sparse_rows = isinstance(rows, tuple)
        if self.counts[0] < LAST:
            if sparse_rows:
                start, stop = rows[2][0], rows[2][-1]
                data = np.ascontiguousarray(rows[0][start:stop], dtype=np.float64)
                columns = np.ascontiguousarray(rows[1][start:stop], dtype=np.int64)
                sparse_squares()(data, columns, self.most, self.squares, self.seen)
            else:
                given = np.ascontiguousarray(rows, dtype=np.float64)
                dense_squares()(given, self.most, self.squares, self.seen)
        self.counts[0] += len(rows[2]) - 1 if sparse_rows else len(rows)

    def renewed(self) -> tuple[FloatArray, float]:
        """New factors: by what each was multiplied, and by what the mean squared length of rows was.

        As if each feature had also been seen in one row more, and its v_j in SOME, with a typical logarithm.
        """
        rows = int(self.counts[0]) + 1
        logarithms = np.log(np.clip(self.squares / np.maximum(self.seen, 1.0), 1 / FARTHEST, FARTHEST)) * self.seen
        typical = float(logarithms.sum()) / max(float(self.seen.sum()), 1.0)
        sizes = np.exp((logarithms + SOME * typical) / (self.seen + SOME))
        if rows > ENOUGH:
            self.most = OUTLIER * sizes
        shares = (self.seen + 1.0) / rows
        usual = sizes * shares
        new = sizes**-0.5 * shares**-POWER
        new /= math.sqrt(float(np.sum(new * new * usual)))
        change, before = new / self.factors, float(np.sum(self.factors**2 * usual))
        self.factors = new
        return change, 1 / before

    def require_room(self, vector: FloatArray) -> None:
        """ValueError if a learner's sum of gradients would be too long with factors made anew: a file is not sound."""
        with np.errstate(all="ignore"):
            change, lengths = FeatureScale.restored(len(self.factors), self.arrays()).renewed()
            longest = float(np.sum(np.square(vector * change)))
        if not (longest < FARTHEST**3 and 0 < lengths < FARTHEST**2):
            raise ValueError("the features' scale is not one of this learner's rows")

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state."""
        return {name: getattr(self, name).copy() for name in NAMES}

    @classmethod
    def restored(cls, dimension: int, arrays: dict[str, NDArray[Any]]) -> FeatureScale:
        """From such a state; ValueError, in words, where it is none."""
        made = cls(dimension)
        for name in NAMES:
            given, like = arrays[name], getattr(made, name)
            if given.shape != like.shape or given.dtype != like.dtype:
                raise ValueError(f"the {name} of the features' scale are of another shape")
            if not (np.isfinite(given).all() and (given >= 0).all()):
                raise ValueError(f"the {name} of the features' scale are not numbers of at least 0")
            setattr(made, name, given.copy())
        if not (made.factors > 0).all():
            raise ValueError("the features' scale has factors of 0")
        if not ((made.seen <= made.counts[0]).all() and made.counts[0] <= 2**53):
            raise ValueError("the features' scale has counted too much")
        return made


def _values(rows: Any) -> NDArray[Any]:
    if isinstance(rows, tuple):
        made: NDArray[Any] = rows[0][rows[2][0] : rows[2][1]]
        return made
    return np.asarray(rows[0])


def gathered(rows: Any, order: NDArray[np.int64], dimension: int) -> Any:
    """These rows in this order, each as often as it is named."""
    if not isinstance(rows, tuple):
        return rows[order]
    matrix = sparse.csr_array(rows, shape=(len(rows[2]) - 1, dimension))[order]
    return matrix.data, matrix.indices, matrix.indptr
