"""How large each feature is, found on the stream: what a learner takes off rows and multiplies them by.

One step length for all features suits none of them where they differ in size, in how often they are not 0, or are far
from 0 throughout. **Means**: from a feature that is not 0 in more than a fourth of the rows its mean μ_j is taken off;
the intercept adds it again (without an intercept, and with memory for sparse rows, none is; nor in streams of targets,
whose level drifts as a rule: features that are not centred let the weights follow it). **Factors**: with v_j the mean
of u_j² where it is not 0, and s_j the share of rows where it is not (in more than half of them: the variance, and 1),
feature j is multiplied by a_j ∝ v_j^{−1/2} (s_jh_j)^{−1/4}: neither unit nor offset of a feature matter. Where features
are centred, h_j is the mean squared slope of the losses of rows in which it is not 0, over that of all rows, if less
than 1; else h_j = 1. So x_j ∝ z_j/(v_j√(s_jh_j)): AdaGrad's steps, longer for what is rare and for what says that a row
is easy. Rows have a mean squared length of 1 then.

Means and factors change after 1, 2, 4, 8, … rows. The sum of the gradients is a linear map of the rows, Σ slope · a_j
(u_j − μ_j), so with new ones it becomes a_j′(z_j/a_j + (μ_j − μ_j′) Σ slope), and the leader is the one that it would
have been with these from the first row on. (The sum of squares is only multiplied by the change of the mean squared
length.) And for two classes what was learned so far counts 2^{1/4} times from then on, as if row t had the weight
t^{−1/4}: half-way between the leader, x ∝ Σ n_s, and gradient descent, x ∝ Σ n_s/√s. Theorems hold between changes, of
which there are at most 18; about what a change costs nothing is claimed.

Streams of targets have s_j^{−1/16} instead. Where all rows are known, in `fit`, means and factors are made of all of
them, and stay.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from longterm._arrays import FloatArray
from longterm.linear_model._rows import RowBlock
from longterm.linear_model.kernels.rule import NO_NUMBERS
from longterm.linear_model.kernels.score import dense_squares, sparse_squares

POWER = 0.25
"""The share's exponent: AdaGrad's. 3/8 is 1 % ahead on Adult, and up to 2.5 % behind on covtype and ijcnn1."""
TARGET_POWER = 0.0625
"""The same in streams of targets, whose losses have no end: with ¼, ten of them lose a sixth more."""
MOST_FACTOR = 1.0
"""With the squared loss x = s w has s of at most this: rows have a mean squared length of 1, so a round does not take
its own row's prediction beyond the target. While targets stay near the first, scales are far too large for what
follows, and predictions go to and fro: without this cap ten streams of targets lose an eighth more."""
OFTEN, MOSTLY = 0.25, 0.5
"""Features that are not 0 in a larger share of the rows are centred; and are also measured by their variance."""
STEEP = 8.0
"""Rows of the usual steepness that h_j begins with. Steps are not made shorter (h_j > 1) where losses are steep: those
of a rare class's words are, and AdaGrad, which does so, has a third more loss on such (invented) text."""
EARLIER = 2.0**0.25
"""How much more what was learned so far counts, for two classes, after each change. With 1, a9a is 2 to 3 % behind, and
text as much ahead; ELEC2, which drifts, 4 %. Targets that drift lose more (up to 17 %): for them it is 1."""
FIRST = 1.0
"""The length of the first row."""
SOME, FEW = 4.0, 0.25
"""Rows in which a feature must be seen before its own size counts as much as that of the others. Text wants more of
them (words are seen seldom, and their sizes say something); what is centred has units of its own, and wants fewer."""
COLUMNS_A_ROW = 4096
"""No factors are made anew before the passes over the columns cost less than this many columns a row."""
ROOM = 2**20
"""Numbers that are centred at once."""
LAST = 2**17
"""After so many rows factors stay as they are."""
OUTLIER, ENOUGH = 100.0, 8
"""After ENOUGH rows a square counts as at most OUTLIER times what was usual when factors were last made."""
FARTHEST = 1e60
LEAST = 1e-3
"""A centred feature that is seldom 0 or seldom not has at least this share of its mean square as variance."""
SAME = 1e-10
"""Variances of less than this share of the mean square are roundings."""
NAMES = ("factors", "squares", "seen", "most", "counts")
"""What it stores."""
CENTRED = ("means", "sums", "slopes", "steepness")
"""And what it stores besides where features are centred."""


class FeatureScale:
    """Factors for features, means to take off them, and what both are made of."""

    def __init__(self, dimension: int, centred: bool) -> None:
        self.centred = centred
        self.factors = np.ones(dimension)
        self.squares = np.zeros(dimension)
        self.seen = np.zeros(dimension)
        """In how many rows each was not 0."""
        self.counts = np.zeros(1, dtype=np.int64)
        """How many rows there were."""
        self.most = np.full(dimension, FARTHEST)
        """What a square counts as at most."""
        self.means = np.zeros(dimension)
        """What is taken off each feature; 0 for those that are often 0."""
        self.sums = np.zeros(dimension)
        self.slopes = np.zeros(1)
        """The sum of the slopes of all losses: what a change of the means does to the sum of the gradients."""
        self.steepness = np.zeros(dimension + 1)
        """The sum of the squared slopes of losses of rows in which each was not 0; last that of all rows."""
        self._of: FloatArray | None = None

    @property
    def until_due(self) -> int:
        """How many rows may be learned before `renewed` is wanted."""
        rows = int(self.counts[0])
        return (1 << rows.bit_length()) - rows if rows < LAST else 2**62

    def is_due(self) -> bool:
        """Whether the number of rows is one at which factors are made anew."""
        rows = int(self.counts[0])
        return 0 < rows <= LAST and rows & (rows - 1) == 0 and rows * COLUMNS_A_ROW >= len(self.factors)

    def stays_for(self, count: int) -> bool:
        """Whether factors stay as they are while so many rows are learned."""
        return self.counts[0] > 0 and not self.is_due() and count <= self.until_due

    def longest(self, length: float) -> float:
        """How long a row of this length can be once it is scaled; the largest factor and mean are found once."""
        if self._of is not self.factors:
            self._of, self._largest = self.factors, float(self.factors.max())
            self._offset = float(np.abs(self.means).max()) * math.sqrt(len(self.means))
        return (length + self._offset) * self._largest

    def begin(self, rows: Any) -> None:
        """Before the first row: it has the length FIRST."""
        if self.counts[0] == 0:
            length = math.sqrt(float(np.sum(np.square(_values(rows), dtype=np.float64))))
            if 1 / FARTHEST < length < FARTHEST:
                self.factors = np.full(len(self.factors), FIRST / length)

    def whole(self, rows: Any) -> Any:
        """Rows whose zeros matter: an array, where features are centred."""
        if not self.centred or not isinstance(rows, tuple):
            return rows
        start, stop = rows[2][0], rows[2][-1]
        parts = rows[0][start:stop], rows[1][start:stop], rows[2] - start
        return sparse.csr_array(parts, shape=(len(rows[2]) - 1, len(self.factors))).toarray()

    def scaled(self, rows: Any) -> Any:
        """These rows, an array or (data, indices, indptr), as the learner is to see them."""
        if isinstance(rows, tuple):
            start, stop = rows[2][0], rows[2][-1]
            indices = rows[1][start:stop]
            return rows[0][start:stop] * self.factors[indices], indices, rows[2] - start
        return (rows - self.means) * self.factors

    def count(self, rows: Any, slopes: FloatArray = NO_NUMBERS) -> None:
        """Take note of rows as they came, and of the slopes of their losses; none are slopes of 0."""
        sparse_rows = isinstance(rows, tuple)
        if self.counts[0] < LAST:
            if sparse_rows:
                start, stop = rows[2][0], rows[2][-1]
                data = np.ascontiguousarray(rows[0][start:stop], dtype=np.float64)
                columns = np.ascontiguousarray(rows[1][start:stop], dtype=np.int64)
                sparse_squares()(data, columns, self.most, self.squares, self.seen)
            else:
                given = np.ascontiguousarray(rows, dtype=np.float64)
                sums = self.squares, self.seen, self.sums, self.steepness
                dense_squares()(given, slopes, self.most, *sums)
        self.counts[0] += len(rows[2]) - 1 if sparse_rows else len(rows)

    def renewed(self, power: float | None = None) -> tuple[FloatArray, FloatArray, float]:
        """New factors and means: what to add to the sum of the gradients, and then to multiply it by, number by number;
        by what the mean squared length of rows was multiplied.

        As if each feature had also been seen in one row more, and its v_j in SOME, with a typical logarithm.
        """
        rows = max(float(self.counts[0]), 1.0)
        centred, mostly = ((self.seen > share * rows) & self.centred for share in (OFTEN, MOSTLY))
        means, squares = self.sums / rows, self.squares / rows
        variances = np.maximum(squares - means * means, 0.0)
        # what never changed is taken to do so in the next row
        spread = variances * (rows / max(rows - 1.0, 1.0)) + squares / np.where(
            variances > SAME * squares, rows**2, rows
        )
        weights = np.where(mostly, rows, self.seen)
        sizes = np.where(mostly, spread, self.squares / np.maximum(self.seen, 1.0))
        logarithms = np.log(np.clip(sizes, 1 / FARTHEST, FARTHEST)) * weights
        typical = float(logarithms.sum()) / max(float(weights.sum()), 1.0)
        some = np.where(mostly, FEW, SOME)
        sizes = np.exp((logarithms + some * typical) / (weights + some))
        if rows >= ENOUGH:
            self.most = OUTLIER * np.where(mostly, np.maximum(sizes, squares), sizes)
        shares = np.where(mostly, 1.0, (self.seen + 1.0) / (rows + 1))
        usual = np.maximum(sizes * shares - np.where(centred & ~mostly, means * means, 0.0), LEAST * sizes * shares)
        new = sizes**-0.5 * shares ** -(POWER if power is None else power) * self._easy() ** -POWER
        new /= math.sqrt(float(np.sum(new * new * usual)))
        off = np.where(centred, means, 0.0)
        moved = off - self.means
        around = np.maximum(usual + moved * (2 * (means - off) + moved), 0.0)  # the mean of (u_j − μ_j)² for the old μ
        shift = -self.factors * moved * self.slopes[0]
        change, before = new / self.factors, float(np.sum(self.factors**2 * around))
        self.factors, self.means = new, off
        return shift, change, 1 / before

    def _easy(self) -> FloatArray:
        """h_j, how steep the losses were where each feature was not 0, beside all of them; at most 1."""
        usual = self.steepness[-1] / max(float(self.counts[0]), 1.0)
        if not usual > 0.0:
            return np.ones(len(self.factors))
        made: FloatArray = np.minimum((self.steepness[:-1] / usual + STEEP) / (self.seen + STEEP), 1.0)
        return made

    @classmethod
    def of_block(cls, block: RowBlock, dimension: int, centred: bool) -> FeatureScale:
        """The factors and means of all these rows, which then stay as they are."""
        made, start = cls(dimension, centred), 0
        while start < block.count:
            if made.is_due():
                made.renewed()  # for what a square counts as at most
            stop = min(block.count, start + min(made.until_due, max(ROOM // dimension, 1)))
            made.count(made.whole(block.part(start, stop)))
            start = stop
        made.renewed()
        made.counts[0] += LAST
        return made

    @classmethod
    def standard(cls, block: RowBlock, dimension: int, centred: bool) -> FeatureScale:
        """Return the scale that divides each feature by its standard deviation in these rows and by √d, and then stays.

        Where features are not centred, the root mean square takes the place of the standard deviation.
        """
        made, count = cls(dimension, centred), max(block.count, 1)
        if block.is_sparse:
            data, columns, _ = block.rows
            values = data.astype(np.float64)
            means = np.bincount(columns, values, dimension) / count
            squares = np.bincount(columns, values * values, dimension) / count
            variances = squares - means * means
        else:
            means = block.rows.mean(axis=0, dtype=np.float64)
            variances = block.rows.var(axis=0, dtype=np.float64)
            squares = variances + means * means
        if centred:
            made.means = means
        sizes = np.sqrt(np.where(variances > SAME * squares, variances, 0.0) if centred else squares)
        made.factors = 1 / (np.where(sizes > 0, sizes, 1.0) * math.sqrt(dimension))
        made.counts[0] = block.count + LAST
        return made

    def require_room(self, vector: FloatArray) -> None:
        """ValueError if a learner's sum of gradients would be too long with factors made anew: a file is not sound."""
        if self.counts[0] == 0:
            return
        with np.errstate(all="ignore"):
            shift, change, lengths = FeatureScale.restored(len(self.factors), self.arrays()).renewed()
            longest = float(np.sum(np.square((vector + shift) * change)))
        if not (longest < FARTHEST**3 and 0 < lengths < FARTHEST**2):
            raise ValueError("the features' scale is not one of this learner's rows")

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state."""
        return {name: getattr(self, name).copy() for name in (*NAMES, *CENTRED * self.centred)}

    @classmethod
    def restored(cls, dimension: int, arrays: dict[str, NDArray[Any]]) -> FeatureScale:
        """From such a state; ValueError, in words, where it is none."""
        made = cls(dimension, "means" in arrays)
        for name in (*NAMES, *CENTRED * made.centred):
            given, like = arrays[name], getattr(made, name)
            if given.shape != like.shape or given.dtype != like.dtype:
                raise ValueError(f"the {name} of the features' scale are of another shape")
            if not (np.isfinite(given).all() and (name in CENTRED[:3] or (given >= 0).all())):
                raise ValueError(f"the {name} of the features' scale are not numbers of at least 0")
            setattr(made, name, given.copy())
        if made.counts[0] == 0 and any(getattr(made, name).any() for name in (*CENTRED, "squares")):
            raise ValueError("the features' scale has sums of no rows")
        if not (made.factors > 0).all():
            raise ValueError("the features' scale has factors of 0")
        if not (made.steepness[:-1] <= made.steepness[-1] * (1 + 1e-9)).all():
            raise ValueError("the features' scale has losses steeper in some rows than in all")
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
