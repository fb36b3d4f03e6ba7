"""Centring and scaling of features, found on the stream (`docs/proofs/scales.md`, *Features on one scale*).

Feature j becomes a_j(u_j − μ_j) with a_j ∝ v_j^{−½} (s_j h_j)^{−¼}: v_j is the typical square of u_j where it is not
0, s_j the share of such rows, and h_j ≤ 1 their squared slope relative to that of all rows. Means and factors change
after 1, 2, 4, 8, … rows. The sum of the gradients becomes what it would have been with the new ones from the first row
on.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray
from longterm.linear_model._rows import RowBlock, to_dense
from longterm.linear_model.kernels.moments import LARGEST, OUTLIER, dense_moments, scale_entries

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
PRIOR_ROWS, PRIOR_ROWS_CENTRED = 8.0, 0.25
"""Rows in which a feature must be seen before its own size counts as much as the typical size."""
OTHER_UNITS = 10.0
"""If the logarithms of squares have a larger variance, columns are taken to have different units."""
CHUNK = 2**17
"""Numbers that are read at once."""
LAST = 2**17
"""After so many rows the factors stay."""
ENOUGH = 8
"""After so many rows a square counts as at most OUTLIER times its usual size, not its first one."""
LONGEST_ROW = 10.0
"""The longest row that is centred and scaled; the mean length is about 1. Where a feature that has hardly varied so far
makes a row longer, its factor is reduced before the row is learned."""
LEAST_VARIANCE = 1e-3
"""A centred feature with few zeros or few non-zeros has at least this share of its mean square as variance."""
SAME = 1e-10
"""Variances below this share of the mean square are rounding errors."""
NAMES = ("factors", "squares", "seen", "bounds", "counts", "units", "expected")
CENTRED_NAMES = ("means", "sums", "slopes", "steepness")
"""The stored arrays; the second ones only where features are centred."""
SIGNED = ("means", "sums", "slopes", "expected")


class Rescaling(NamedTuple):
    """What an update of the factors does to the sum of the gradients z, and to squared lengths of rows."""

    columns: Any
    """The columns that were seen; z is 0 in the others."""
    shift: FloatArray
    change: FloatArray
    """z becomes (z + shift) · change in these columns."""
    lengths: float
    """The mean squared length of rows becomes so many times as large."""


class FeatureScale:
    """Factors and means of features, and the sums from which they are computed."""

    def __init__(self, dimension: int, centred: bool) -> None:
        self.centred = centred
        self.factors = np.ones(dimension)
        self.units = np.ones(2)
        """N, by which factors were divided so that rows have the mean length 1, and the largest N so far. The budget
        counts a weight of a scaled feature 1/N times."""
        self.squares = np.zeros(dimension)
        self.seen = np.zeros(dimension)
        """In how many rows each feature was not 0."""
        self.counts = np.zeros(1, dtype=np.int64)
        """The number of rows."""
        self.expected = np.array([0.0, 0.0, 1.0])
        """For a new feature: the logarithm of its expected square, for how many rows that counts, and its factor."""
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
        self._met: list[NDArray[np.int64]] | None = None
        """The columns that were seen in sparse rows, in parts, from the first sparse row on."""
        self._largest: float | None = None
        """The largest factor of a column that was seen. None: to be computed."""
        self._bounds: tuple[float, float] | None = None

    @property
    def rows_until_update(self) -> int:
        """Number of rows after which the next update is due."""
        rows = int(self.counts[0])
        return (1 << rows.bit_length()) - rows if rows < LAST else 2**62

    @property
    def is_due(self) -> bool:
        """True if an update is due, now that this many rows were learned."""
        rows = int(self.counts[0])
        return 0 < rows <= LAST and rows & (rows - 1) == 0

    def stays_for(self, count: int) -> bool:
        """Return True if the factors stay while so many rows are learned."""
        return self.counts[0] > 0 and count <= self.rows_until_update

    def length_bound(self, length: float) -> float:
        """Return a bound on the length of a scaled row, from that of the row. It holds until the next update."""
        if self._bounds is None:
            typical, prior, usual = self.expected.tolist()
            first = usual * math.exp(0.5 * (math.log(LARGEST) + typical) / (1 + prior))  # the largest of a new column
            known = float(self.factors.max()) if self._largest is None else self._largest
            farthest = (float(np.abs(self.means).max()) if self.centred else 0.0) + math.exp(0.5 * typical)
            self._bounds = farthest * math.sqrt(len(self.means)), max(known, first)
        return float((length + self._bounds[0]) * self._bounds[1])

    def begin(self, rows: Any) -> None:
        """Set the first factors, with which the first row has the length FIRST_LENGTH."""
        if self.counts[0] == 0:
            first = rows[0][rows[2][0] : rows[2][1]] if isinstance(rows, tuple) else np.asarray(rows[0])
            length = math.sqrt(float(np.sum(np.square(first, dtype=np.float64))))
            if 1 / LARGEST < length < LARGEST:
                self._set_factors(np.full(len(self.factors), FIRST_LENGTH / length), FIRST_LENGTH / length)
                self.units = np.full(2, math.sqrt(np.count_nonzero(first)))
                self.expected = np.array([2 * math.log(length / self.units[0]), LARGEST, self.factors[0]])

    def _set_factors(self, factors: FloatArray, largest: float | None = None) -> None:
        self.factors, self._largest, self._bounds = factors, largest, None

    @property
    def _meets(self) -> bool:
        """True if a column gets a factor of its own as soon as it is not 0, from its first value."""
        return bool(0 < self.counts[0] < LAST)  # later rows are not counted, so a column could be met twice

    def meet(self, rows: NDArray[Any]) -> None:
        """Set the factors of columns of an array that are not 0 for the first time."""
        unseen = np.flatnonzero(self.seen == 0) if self._meets else ()
        if not len(unseen):
            return
        given = rows[:, unseen]
        values = np.asarray(given[(given != 0).argmax(axis=0), np.arange(len(unseen))], dtype=np.float64)
        columns, values = unseen[values != 0], values[values != 0]
        typical, prior, usual = self.expected.tolist()
        squares = np.clip(np.square(values), 1 / LARGEST, LARGEST)
        self.factors[columns] = usual * np.exp(-0.5 * (np.log(squares) - typical) / (1 + prior))
        self.bounds[columns] = OUTLIER * squares

    def scale_sparse(self, rows: Any) -> Any:
        """Return CSR rows scaled, after adding them to the sums. A column gets its factor where it first is not 0."""
        data, columns, indptr = rows
        if self._met is None:
            self._met = [np.flatnonzero(self.seen)]
        if self.counts[0] >= LAST:
            scaled = data * self.factors[columns]
        else:
            scaled, sums, met = np.empty(len(data)), (self.squares, self.seen), np.empty(len(data), dtype=np.int64)
            typical, prior, usual = self.expected.tolist()
            given = data.astype(np.float64, copy=False), columns.astype(np.int64, copy=False)
            made = self.factors, self.bounds, *sums, scaled, met
            self._met.append(met[: scale_entries()(*given, self._meets, typical, prior, usual, *made)].copy())
        self.counts[0] += len(indptr) - 1
        return scaled, columns, indptr

    def reduce(self, row: FloatArray) -> FloatArray:
        """Reduce factors until this row, not scaled yet, is within LONGEST_ROW. Return new factors over old ones."""
        sizes = np.abs((row - self.means) * self.factors) * (math.sqrt(len(row)) / (0.99 * LONGEST_ROW))
        change = 1 / np.maximum(sizes, 1.0)
        self._set_factors(self.factors * change)
        return change

    def observe(self, rows: NDArray[Any], slopes: FloatArray) -> None:
        """Add rows of an array, before scaling, and the slopes of their losses to the sums."""
        if self.counts[0] < LAST:
            given, roots = np.ascontiguousarray(rows, dtype=np.float64), np.sqrt(self.bounds)
            dense_moments()(given, slopes, roots, self.squares, self.seen, self.sums, self.steepness)
        self.counts[0] += len(rows)

    def update(self, power: float = POWER, *, last: bool = False) -> Rescaling:
        """Compute new factors and means from the columns seen so far.

        The time depends on their number, not on the dimension, but for the `last` update.

        Sizes are those of a feature's own rows and of a few rows with the typical logarithm: fewer where the sizes of
        the features differ more.
        """
        rows = max(float(self.counts[0]), 1.0)
        columns = self._seen_columns()
        seen, old = self.seen[columns], self.factors[columns]
        shares = (seen + 1.0) / (rows + 1)
        weights: FloatArray = seen
        few: float | FloatArray = PRIOR_ROWS
        sizes = self.squares[columns] / np.maximum(seen, 1.0)
        if self.centred:
            means, squares, mostly = self.sums / rows, self.squares / rows, seen > MOSTLY * rows
            sizes, weights = np.where(mostly, _spread(means, squares, rows), sizes), np.where(mostly, rows, seen)
            few, shares = np.where(mostly, PRIOR_ROWS_CENTRED, PRIOR_ROWS), np.where(mostly, 1.0, shares)
        logarithms = np.log(np.clip(sizes, 1 / LARGEST, LARGEST))
        total = max(float(weights.sum()), 1.0)
        typical = float(logarithms @ weights) / total
        apart = float(np.square(logarithms - typical) @ weights) / total
        trust = 1 / (1 + (apart / OTHER_UNITS) ** 4)
        known, prior, factor = self.expected.tolist()  # a new column has a² = factor² e^((known − ln u²)/(1 + prior))
        met = np.exp((known + prior * logarithms) / (1 + prior)) @ weights / total if seen.any() else 1.0
        logarithms += (trust * few / (weights + trust * few)) * (typical - logarithms)
        sizes = np.exp(logarithms)
        usual, new = sizes * shares, np.exp(-0.5 * logarithms - power * np.log(shares))
        shift, around, off = np.zeros(len(seen)), usual, np.zeros(len(seen))
        if self.centred:
            sizes = np.where(mostly, np.maximum(sizes, squares), sizes)
            off = np.where(seen > OFTEN * rows, means, 0.0)
            usual = np.maximum(usual - np.where(mostly, 0.0, off * off), LEAST_VARIANCE * usual)
            new *= self._relative_steepness() ** -POWER
        if rows >= ENOUGH:
            self.bounds[columns] = OUTLIER * sizes
        if self.centred:  # `around` is the mean of (u_j − μ_j)², μ_j the old one
            moved = off - self.means
            around = np.maximum(usual + moved * (2 * (means - off) + moved), 0.0)
            shift = -old * moved * self.slopes[0]
        length, before = float(np.sum(new * new * usual)), float(np.sum(old * old * around))
        # The other columns, which were never seen, have the typical size and one factor.
        unseen, usual_factor = (len(self.seen) - len(seen)) / (rows + 1), math.exp(-0.5 * typical) * (rows + 1) ** power
        length += unseen * usual_factor**2 * math.exp(typical)
        before += unseen * factor**2 * float(met)
        unit = math.sqrt(length)
        new /= unit
        self.expected = np.array([typical, trust * PRIOR_ROWS, usual_factor / unit])
        if self.centred:
            self.means = off
            self._set_factors(new)
        else:
            self.factors[columns] = new
            if rows >= LAST or last:  # columns that come later have no factor of their own
                self.factors[self.seen == 0] = self.expected[2]
            self._set_factors(self.factors, float(new.max(initial=self.expected[2])))
        self.units = np.array([unit, max(unit, self.units[1])])
        return Rescaling(columns, shift, new / old, 1 / before)

    def _seen_columns(self) -> Any:
        """Return all columns, or those that were seen: in sparse rows without a pass over all."""
        if self.centred:
            return slice(None)
        if self._met is None:
            return np.flatnonzero(self.seen)
        self._met = [np.sort(np.concatenate(self._met))]
        return self._met[0]

    def _relative_steepness(self) -> FloatArray:
        """Return h_j of every column."""
        usual = self.steepness[-1] / max(float(self.counts[0]), 1.0)
        if not usual > 0.0:
            return np.ones(len(self.seen))
        made: FloatArray = np.minimum((self.steepness[:-1] / usual + STEEP) / (self.seen + STEEP), 1.0)
        return made

    @classmethod
    def of_block(cls, block: RowBlock, dimension: int, centred: bool) -> FeatureScale:
        """Return the factors and means of these rows, which then stay."""
        made, start, sparse = cls(dimension, centred), 0, block.is_sparse and not centred
        while start < block.count:
            stop = min(block.count, start + min(made.rows_until_update, max(CHUNK // dimension, 1)))
            rows = block.part(start, stop)
            if sparse:
                made.scale_sparse(rows)
            else:
                made.observe(to_dense(rows, dimension), np.zeros(stop - start))
            if made.is_due:
                made.update()  # for the bounds
            start = stop
        made.update(last=True)
        made.counts[0] += LAST
        return made

    # --- files ------------------------------------------------------------------------------------------------

    def require_update_in_range(self, z: FloatArray) -> None:
        """Raise ValueError if the sum of gradients z would be too long after the next update."""
        if self.counts[0] == 0:
            return
        with np.errstate(all="ignore"):
            made = FeatureScale.restored(len(self.factors), self.arrays()).update()
            longest = float(np.sum(np.square((z[made.columns] + made.shift) * made.change)))
        if not (longest < LARGEST**3 and 0 < made.lengths < LARGEST**2):
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
            if not (np.isfinite(given).all() and (name in SIGNED or (given >= 0).all())):
                raise ValueError(f"the {name} of the features' scale are not numbers of at least 0")
            setattr(made, name, given.copy())
        if made.counts[0] == 0 and any(getattr(made, name).any() for name in (*CENTRED_NAMES, "squares")):
            raise ValueError("the features' scale has sums of no rows")
        if not ((made.factors > 0).all() and 0 < made.units[0] <= made.units[1]):
            raise ValueError("the features' scale has factors of 0")
        if not (abs(made.expected[0]) <= 3 * math.log(LARGEST) and made.expected[1] >= 0 < made.expected[2]):
            raise ValueError("the features' scale expects a feature that does not exist")
        if not (made.steepness[:-1] <= made.steepness[-1] * (1 + 1e-9)).all():
            raise ValueError("the features' scale has a larger sum for one feature than for all rows")
        if not ((made.seen <= made.counts[0]).all() and made.counts[0] <= 2**53):
            raise ValueError("the features' scale has counted too many rows")
        return made


def _spread(means: FloatArray, squares: FloatArray, rows: float) -> FloatArray:
    """Return variances from so many rows. A feature that has not varied yet is taken to vary in the next row."""
    variances = np.maximum(squares - means * means, 0.0)
    doubt = squares / np.where(variances > SAME * squares, rows**2, rows)
    made: FloatArray = variances * (rows / max(rows - 1.0, 1.0)) + doubt
    return made
