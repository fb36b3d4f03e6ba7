"""Parity between groups as a long-term constraint: a price for predicting the positive class in each group.

Let h_t ∈ {0, 1} be the prediction for row t, r_a the mean of h in group a and r that of all rows. Give the constraints
±(r_a − r) ≤ tolerance the multipliers p_a λ^±_a, with p_a the group's share of rows, and let κ_a = λ⁺_a − λ⁻_a. Their
part of the Lagrangian is Σ_a p_a κ_a (r_a − r), which is the mean of c_t h_t with c_t = κ_{a_t} − Σ_a p_a κ_a, because
Σ_a p_a κ_a r_a is the mean of κ_{a_t} h_t. So a positive prediction costs c_t more, and a wrong one costs 1: the row is
learned with the label sign(y_t − c_t) and the weight |y_t − c_t|, where y_t = ±1. This is the reduction of Agarwal et
al. (ICML 2018), one row at a time.

After BLOCK rows the multipliers of the groups seen in them ascend: λ ← [λ + STEP/√n (±(r_a − r) − tolerance)]₊, with
r_a of the block and r of the window. n counts the blocks with rows of the group. The step of a group that is missing
in some blocks is divided by the share of the blocks that have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.linear_model._stored import require

CONSTRAINTS = ("demographic_parity", "equal_opportunity")
BLOCK = 32
"""Rows between two steps of the multipliers."""
STEP = 2.0
"""The step of the multipliers is STEP/√n. Chosen on Adult: 1 is slower to reach the tolerance, 4 varies more."""
LARGEST_FACTOR = 16.0
"""A group seen in a share q of the blocks takes steps 1/q times as long, at most so many times."""
LARGEST_PRICE = 100.0
"""Bound on λ_a and |κ_a|. A group with a share p_a of the rows pulls with p_a κ_a: rare groups need large prices."""
LEAST_ROWS = 30
"""Groups with fewer rows in the window do not count for `violation`: their rates say too little."""
GROUP_ARRAYS = ("clock", "age", "multipliers", "totals", "block_rows", "block_positives")
ARRAYS = (*GROUP_ARRAYS, "recent")


class GroupPrices:
    """Prices κ_a of groups, and the rates of positive predictions over the last `window` rows; constant memory."""

    def __init__(self, constraint: str, tolerance: float, window: int) -> None:
        if constraint not in CONSTRAINTS:
            what = f"{constraint!r} is not a constraint"
            raise InputError("constraint", what, f"Choose one of {', '.join(CONSTRAINTS)}")
        self.constraint, self.window = constraint, validate.count("window", window)
        self.tolerance = validate.non_negative_scalar("tolerance", tolerance)
        self.names: dict[Any, int] = {}
        """The number of each group, in the order in which they were first seen."""
        self.clock, self.age = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        """The number of steps of each group's multipliers, and of blocks in which there might have been one."""
        self.multipliers = np.zeros((0, 2))
        """λ⁺_a and λ⁻_a."""
        self.totals, self.block_rows, self.block_positives = np.zeros(0), np.zeros(0), np.zeros(0)
        """Rows of each group before this block, in this block, and those of the block that were predicted positive."""
        self.recent = np.zeros((0, 2), dtype=np.int64)
        """Group and prediction of the last `window` rows."""

    def numbers_of(self, groups: Iterable[Any]) -> NDArray[np.int64]:
        """Return the numbers of these groups; new ones get the next number."""
        known = self.names
        numbers = np.array([known.setdefault(group, len(known)) for group in groups], dtype=np.int64)
        more = len(known) - len(self.clock)
        for name in GROUP_ARRAYS if more else ():
            old = getattr(self, name)
            setattr(self, name, np.append(old, np.zeros((more, *old.shape[1:]), old.dtype), axis=0))
        return numbers

    def counts(self, labels: FloatArray) -> NDArray[np.bool_]:
        """Return which rows the constraint is about, from their labels ±1."""
        return labels > 0 if self.constraint == "equal_opportunity" else np.ones(len(labels), dtype=bool)

    @property
    def rows_left(self) -> int:
        """The number of rows that count and are left in this block. Prices stay until then."""
        return BLOCK - int(self.block_rows.sum())

    @property
    def prices(self) -> FloatArray:
        """κ_a of every group."""
        return np.asarray(self.multipliers[:, 0] - self.multipliers[:, 1])

    def signed_weights(self, numbers: NDArray[np.int64], labels: FloatArray) -> FloatArray:
        """Return y_t − c_t for rows of these groups: the label to learn is its sign, the weight its size."""
        prices, total = self.prices, float(self.totals.sum())
        mean = float(self.totals @ prices) / total if total else 0.0
        return labels - np.where(self.counts(labels), prices[numbers] - mean, 0.0)

    def observe(self, numbers: NDArray[np.int64], labels: FloatArray, positive: NDArray[np.bool_]) -> bool:
        """Add rows with their predictions, at most `rows_left` that count. Return True if the block ends with them."""
        counted = self.counts(labels)
        numbers, positive = numbers[counted], positive[counted]
        self.recent = np.concatenate([self.recent, np.stack([numbers, positive], axis=1)])[-self.window :]
        self.block_rows = self.block_rows + np.bincount(numbers, minlength=len(self.clock))
        self.block_positives = self.block_positives + np.bincount(numbers, positive, len(self.clock))
        if self.rows_left > 0:
            return False
        seen = self.block_rows > 0
        gaps = self.block_positives / np.maximum(self.block_rows, 1.0) - self.recent[:, 1].mean()
        values = np.stack([gaps, -gaps], axis=1) - self.tolerance
        self.clock, self.age = self.clock + seen, self.age + 1
        clock = np.maximum(self.clock, 1)
        steps = np.where(seen, STEP / np.sqrt(clock) * np.minimum(self.age / clock, LARGEST_FACTOR), 0.0)
        self.multipliers = np.clip(self.multipliers + steps[:, None] * values, 0.0, LARGEST_PRICE)
        self.totals, self.block_rows = self.totals + self.block_rows, np.zeros(len(seen))
        self.block_positives = np.zeros(len(seen))
        return True

    def rates(self) -> dict[Any, tuple[int, float]]:
        """Return for each group its rows in the window and the share that was predicted positive; NaN without rows."""
        numbers, positive = self.recent[:, 0], self.recent[:, 1]
        rows = np.bincount(numbers, minlength=len(self.names))
        shares = np.bincount(numbers, positive, len(self.names)) / np.where(rows > 0, rows, np.nan)
        return {name: (int(rows[k]), float(shares[k])) for name, k in self.names.items()}

    @property
    def violation(self) -> float:
        """The largest |r_a − r| − tolerance over the window, of groups with at least 30 rows there; NaN without one."""
        gaps = [abs(rate - self.recent[:, 1].mean()) for rows, rate in self.rates().values() if rows >= LEAST_ROWS]
        return float(max(gaps)) - self.tolerance if gaps else float("nan")

    # --- files ------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the state."""
        return {name: getattr(self, name) for name in ARRAYS}

    def restore(self, names: Any, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Take over groups and arrays of a file. Raise ValueError if they do not fit together."""
        require(isinstance(names, list) and all(type(one) in (str, int, bool, float) for one in names), "no groups")
        self.numbers_of(names)
        require(len(self.names) == len(names), "a group has two numbers")
        for name in ARRAYS:
            given, like = arrays[name], getattr(self, name)
            fits = given.dtype == like.dtype and given.shape[name == "recent" :] == like.shape[name == "recent" :]
            require(fits and bool(((given >= 0) & (given < np.inf)).all()), f"{name} is not one of these groups")
            setattr(self, name, given)
        require(bool((self.multipliers <= LARGEST_PRICE).all()), "a group has a price out of bounds")
        highest = self.recent.max(axis=0, initial=0)
        require(len(self.recent) <= self.window and highest[0] < max(len(names), 1), "a recent row has no group")
        full = (self.block_positives > self.block_rows).any() or self.block_rows.sum() >= BLOCK
        require(highest[1] <= 1 and not full, "its predictions are not those of a block")
        return self
