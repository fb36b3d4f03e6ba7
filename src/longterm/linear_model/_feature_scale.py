"""Centring and scaling of features, found on the stream (`docs/proofs/scales.md`, *Features on one scale*).

Feature j becomes a_j(u_j − μ_j) with a_j ∝ v_j^{−½} (s_j h_j)^{−¼}: v_j is the typical square of u_j where it is not
0, s_j the share of such rows, and h_j ≤ 1 their squared slope relative to that of all rows. Means and factors change
after 1, 2, 4, 8, … rows. The sum of the gradients becomes what it would have been with the new ones from the first row
on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray
from longterm.linear_model._rows import RowBlock, to_dense
from longterm.linear_model.kernels.moments import dense_moments, sparse_moments

POWER = 0.25
"""The exponent of the share s_j, AdaGrad's."""
TARGET_POWER = 0.0625
"""The same in streams of targets. With ¼ ten such streams lose a sixth more."""
FACTOR_BOUND = 1.0
"""With the squared loss and scaled features x = s w has s of at most this, so that no round takes the prediction of its
own row beyond the target. Without it ten streams of targets lose an eighth more."""
OFTEN, MOSTLY = 0.25, 0.5
"""Features with a larger share of non-zeros are centred, and measured by their variance."""
STEEP = 8.0
"""Rows of the usual steepness that h_j begins with."""
PAST_WEIGHT = 2.0**0.25
"""The factor by which the past counts more for the leaders after each update, for two classes."""
FIRST_LENGTH = 1.0
"""The length of the first row."""
PRIOR_ROWS, PRIOR_ROWS_CENTRED = 4.0, 0.25
"""Rows in which a feature must be seen before its own size counts as much as the typical size."""
COLUMNS_PER_ROW = 4096
"""No update happens before its pass over the columns costs less than this many columns per row."""
CHUNK = 2**17
"""Numbers that are read at once."""
LAST = 2**17
"""After so many rows the factors stay."""
OUTLIER, ENOUGH = 100.0, 8
"""After ENOUGH rows a square counts as at most OUTLIER times its usual size."""
LONGEST_ROW = 10.0
"""The longest row that is centred and scaled; the mean length is about 1. Where a feature that has hardly varied so far
makes a row longer, its factor is reduced before the row is learned."""
LARGEST = 1e60
LEAST_VARIANCE = 1e-3
"""A centred feature with few zeros or few non-zeros has at least this share of its mean square as variance."""
SAME = 1e-10
"""Variances below this share of the mean square are rounding errors."""
NAMES = ("factors", "squares", "seen", "bounds", "counts")
CENTRED_NAMES = ("means", "sums", "slopes", "steepness")
"""The stored arrays; the second ones only where features are centred."""


class FeatureScale:
    """Factors and means of features, and the sums from which they are computed."""

    def __init__(self, dimension: int, centred: bool) -> None:
        self.centred = centred
        self.factors = np.ones(dimension)
        self.squares = np.zeros(dimension)
        self.seen = np.zeros(dimension)
        """In how many rows each feature was not 0."""
        self.counts = np.zeros(1, dtype=np.int64)
        """The number of rows."""
        self.bounds = np.full(dimension, LARGEST)
        """The largest square that is counted."""
        self.means = np.zeros(dimension)
        """The number that is subtracted from each feature; 0 for features that are often 0."""
        self.sums = np.zeros(dimension)
        self.slopes = np.zeros(1)
        """The sum of the slopes of all losses."""
        self.steepness = np.zeros(dimension + 1)
        """The sum of the squared slopes of rows in which each feature was not 0; the last number is that of all
        rows."""
        self._measured: FloatArray | None = None

    @property
    def rows_until_update(self) -> int:
        """Number of rows that may be learned before the next update is due."""
        rows = int(self.counts[0])
        return (1 << rows.bit_length()) - rows if rows < LAST else 2**62

    @property
    def is_due(self) -> bool:
        """True if an update is due before the next row."""
        rows = int(self.counts[0])
        return 0 < rows <= LAST and rows & (rows - 1) == 0 and rows * COLUMNS_PER_ROW >= len(self.factors)

    def stays_for(self, count: int) -> bool:
        """Return True if the factors stay while so many rows are learned."""
        return self.counts[0] > 0 and not self.is_due and count <= self.rows_until_update

    def length_bound(self, length: float) -> float:
        """Return a bound on the length of a scaled row, from that of the row."""
        if self._measured is not self.factors:
            self._measured, self._largest = self.factors, float(self.factors.max())
            self._offset = float(np.abs(self.means).max()) * math.sqrt(len(self.means))
        return (length + self._offset) * self._largest

    def begin(self, rows: Any) -> None:
        """Set the first factors, with which the first row has the length FIRST_LENGTH."""
        if self.counts[0] == 0:
            first = rows[0][rows[2][0] : rows[2][1]] if isinstance(rows, tuple) else np.asarray(rows[0])
            length = math.sqrt(float(np.sum(np.square(first, dtype=np.float64))))
            if 1 / LARGEST < length < LARGEST:
                self.factors = np.full(len(self.factors), FIRST_LENGTH / length)

    def reduce(self, row: FloatArray) -> FloatArray:
        """Reduce factors until this row, not scaled yet, is within LONGEST_ROW. Return new factors over old ones."""
        sizes = np.abs((row - self.means) * self.factors) * (math.sqrt(len(row)) / (0.99 * LONGEST_ROW))
        change = 1 / np.maximum(sizes, 1.0)
        self.factors = self.factors * change
        return change

    def prepare(self, rows: Any) -> Any:
        """Return rows as an array where features are centred, since zeros then matter."""
        return to_dense(rows, len(self.factors)) if self.centred else rows

    def apply(self, rows: Any) -> Any:
        """Return rows, an array or (data, indices, indptr), centred and scaled."""
        if isinstance(rows, tuple):
            return rows[0] * self.factors[rows[1]], rows[1], rows[2]
        made = rows - self.means
        made *= self.factors
        return made

    def observe(self, rows: Any, slopes: FloatArray) -> None:
        """Add rows, before scaling, and the slopes of their losses to the sums."""
        sparse = isinstance(rows, tuple)
        if self.counts[0] < LAST:
            if sparse:
                data, columns = rows[0].astype(np.float64, copy=False), rows[1].astype(np.int64, copy=False)
                sparse_moments()(data, columns, self.bounds, self.squares, self.seen)
            else:
                given = np.ascontiguousarray(rows, dtype=np.float64)
                dense_moments()(given, slopes, self.bounds, self.squares, self.seen, self.sums, self.steepness)
        self.counts[0] += len(rows[2]) - 1 if sparse else len(rows)

    def update(self, power: float = POWER) -> tuple[FloatArray, FloatArray, float]:
        """Compute new factors and means. Return shift, change and lengths.

        The sum of the gradients z becomes (z + shift) · change, and the mean squared length of rows `lengths` times as
        large. Sizes are those of the feature's own rows and of PRIOR_ROWS rows with the typical logarithm.
        """
        rows = max(float(self.counts[0]), 1.0)
        centred, mostly = ((self.seen > share * rows) & self.centred for share in (OFTEN, MOSTLY))
        means, squares = self.sums / rows, self.squares / rows
        variances = np.maximum(squares - means * means, 0.0)
        # A feature that has not varied yet is taken to vary in the next row.
        spread = variances * (rows / max(rows - 1.0, 1.0)) + squares / np.where(
            variances > SAME * squares, rows**2, rows
        )
        weights = np.where(mostly, rows, self.seen)
        sizes = np.where(mostly, spread, self.squares / np.maximum(self.seen, 1.0))
        logarithms = np.log(np.clip(sizes, 1 / LARGEST, LARGEST)) * weights
        typical = float(logarithms.sum()) / max(float(weights.sum()), 1.0)
        prior = np.where(mostly, PRIOR_ROWS_CENTRED, PRIOR_ROWS)
        sizes = np.exp((logarithms + prior * typical) / (weights + prior))
        if rows >= ENOUGH:
            self.bounds = OUTLIER * np.where(mostly, np.maximum(sizes, squares), sizes)
        shares = np.where(mostly, 1.0, (self.seen + 1.0) / (rows + 1))
        usual = sizes * shares - np.where(centred & ~mostly, means * means, 0.0)
        usual = np.maximum(usual, LEAST_VARIANCE * sizes * shares)
        new = sizes**-0.5 * shares**-power * self._relative_steepness() ** -POWER
        new /= math.sqrt(float(np.sum(new * new * usual)))
        off = np.where(centred, means, 0.0)
        moved = off - self.means
        around = np.maximum(
            usual + moved * (2 * (means - off) + moved), 0.0
        )  # the mean of (u_j − μ_j)², μ_j the old one
        shift = -self.factors * moved * self.slopes[0]
        change, before = new / self.factors, float(np.sum(self.factors**2 * around))
        self.factors, self.means = new, off
        return shift, change, 1 / before

    def _relative_steepness(self) -> FloatArray:
        """Return h_j."""
        usual = self.steepness[-1] / max(float(self.counts[0]), 1.0)
        if not usual > 0.0:
            return np.ones(len(self.factors))
        made: FloatArray = np.minimum((self.steepness[:-1] / usual + STEEP) / (self.seen + STEEP), 1.0)
        return made

    @classmethod
    def of_block(cls, block: RowBlock, dimension: int, centred: bool) -> FeatureScale:
        """Return the factors and means of these rows, which then stay."""
        made, start = cls(dimension, centred), 0
        while start < block.count:
            if made.is_due:
                made.update()  # for the bounds
            stop = min(block.count, start + min(made.rows_until_update, max(CHUNK // dimension, 1)))
            made.observe(made.prepare(block.part(start, stop)), np.zeros(stop - start))
            start = stop
        made.update()
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

    # --- files ------------------------------------------------------------------------------------------------

    def require_update_in_range(self, z: FloatArray) -> None:
        """Raise ValueError if the sum of gradients z would be too long after the next update."""
        if self.counts[0] == 0:
            return
        with np.errstate(all="ignore"):
            shift, change, lengths = FeatureScale.restored(len(self.factors), self.arrays()).update()
            longest = float(np.sum(np.square((z + shift) * change)))
        if not (longest < LARGEST**3 and 0 < lengths < LARGEST**2):
            raise ValueError("the features' scale is not one of this learner's rows")

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return copies of all arrays."""
        return {name: getattr(self, name).copy() for name in (*NAMES, *CENTRED_NAMES * self.centred)}

    @classmethod
    def restored(cls, dimension: int, arrays: dict[str, NDArray[Any]]) -> FeatureScale:
        """Return the scale with these arrays. Raise ValueError if they are not valid."""
        made = cls(dimension, "means" in arrays)
        for name in (*NAMES, *CENTRED_NAMES * made.centred):
            given, like = arrays[name], getattr(made, name)
            if given.shape != like.shape or given.dtype != like.dtype:
                raise ValueError(f"the {name} of the features' scale have another shape")
            if not (np.isfinite(given).all() and (name in CENTRED_NAMES[:3] or (given >= 0).all())):
                raise ValueError(f"the {name} of the features' scale are not numbers of at least 0")
            setattr(made, name, given.copy())
        if made.counts[0] == 0 and any(getattr(made, name).any() for name in (*CENTRED_NAMES, "squares")):
            raise ValueError("the features' scale has sums of no rows")
        if not (made.factors > 0).all():
            raise ValueError("the features' scale has factors of 0")
        if not (made.steepness[:-1] <= made.steepness[-1] * (1 + 1e-9)).all():
            raise ValueError("the features' scale has a feature steeper than all rows")
        if not ((made.seen <= made.counts[0]).all() and made.counts[0] <= 2**53):
            raise ValueError("the features' scale has counted too many rows")
        return made
