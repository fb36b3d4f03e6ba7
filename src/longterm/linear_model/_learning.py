"""The part of a streaming learner that learns blocks of rows: parts, scaled features, the intercept's interval."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.linear_model._feature_scale import PAST_WEIGHT, POWER, TARGET_POWER, FeatureScale
from longterm.linear_model._memory import LearnerMemory
from longterm.linear_model._rows import (
    IN_ORDER,
    NO_NUMBERS,
    TOO_LARGE,
    RowBlock,
    first_out_of_range,
    in_range,
    max_abs,
    require_in_range,
    to_dense,
    to_sparse,
)
from longterm.linear_model.kernels.losses import values_and_slopes

NUMBERS_AT_ONCE, ROWS_AT_ONCE = 2**17, 64
"""Rows that are gathered, converted or scaled at once have so many numbers, which fit into a cache, or are so few."""
NARROWEST = 1e-60
"""A bound on the intercept's interval, which keeps numbers finite."""
LONGEST_SCALED = 1e60
"""The bound on gradients of scaled rows. Sums are multiplied when factors change, so it is smaller than usual."""


class BlockLearner(LearnerMemory):
    """A learner of blocks of rows that have been checked."""

    def require(
        self, block: RowBlock, labels: FloatArray, weights: FloatArray, order: NDArray[np.int64] | None = None
    ) -> None:
        """Raise InputError if a row is out of range (`_rows.in_range`), learned in this order or, with None, in any."""
        if order is not None and order is not IN_ORDER:
            labels, weights = labels[order], weights[order] if len(weights) else weights
        if block.count == 0 or len(labels) == 0:
            return
        distances, radius = np.abs(labels), self._radius
        if self._widens:
            with np.errstate(over="ignore"):
                if self._has_level or order is not None:
                    level = self._level if self._has_level else float(labels[0])
                    distances, farthest = distances + abs(level), max_abs(labels - level)
                else:
                    distances, farthest = distances + distances.max(), float(labels.max() - labels.min())
                radius = self._state.parameter("radius") + max(self._settings.reach, 2 * farthest)
        require_in_range(block, distances, self._weight_bound(weights), radius, IN_ORDER if order is None else order)

    def _weight_bound(self, weight: Any) -> Any:
        """Return the weights that the range check is to use."""
        return weight

    def learn_checked(
        self,
        block: RowBlock,
        labels: FloatArray,
        weights: FloatArray = NO_NUMBERS,
        order: NDArray[np.int64] = IN_ORDER,
        *,
        margins: FloatArray = NO_NUMBERS,
    ) -> None:
        """Learn what `row_block`, `labels_for` and `weights_for` returned and `require` accepted, as `learn` does."""
        count = block.count if order is IN_ORDER else len(order)
        if count == 0:
            return
        labels = labels if order is IN_ORDER else labels[order]
        weights = np.ones(count) if len(weights) == 0 else weights if order is IN_ORDER else weights[order]
        made = margins if len(margins) else np.empty(count)
        with self.rollback_on_error(block, labels, weights):
            before = self._level
            if self._widens and not self._has_level:  # the interval lies about the first target
                self._has_level, self._level = True, float(labels[0])
            self._learn_parts(block, order, labels, weights, made)
            if self._widens:
                made[0] += before  # the first target of all was not known before it came
                made[1:] += self._level

    def _learn_parts(
        self, block: RowBlock, order: NDArray[np.int64], labels: FloatArray, weights: FloatArray, margins: FloatArray
    ) -> None:
        """Learn the rows in parts, between which settings, factors and the average change."""
        start, end, scale = 0, len(labels), self._scale
        as_they_are = order is IN_ORDER and scale is None and block.is_sparse == self._state.is_sparse
        width = block.width if block.is_sparse and self._state.is_sparse else self._settings.dimension
        at_once = end if as_they_are else max(NUMBERS_AT_ONCE // max(width, 1), ROWS_AT_ONCE)
        largest = block.longest, max_abs(labels) + abs(self._level), float(weights.max())
        while start < end:
            if self._until_drawn == 0:
                self._draw_decision()
            stop = min(end, start + min(at_once, self._until_drawn))
            if scale is not None:
                stop = min(stop, start + scale.rows_until_update)
            targets = labels[start:stop] - self._level
            if self._widens:
                stop = start + self._widen_for(targets)
                targets = targets[: stop - start]
            rows = block.part(start, stop) if order is IN_ORDER else block.take(order[start:stop])
            rows = to_sparse(rows) if self._state.is_sparse else to_dense(rows, self._settings.dimension)
            given = targets, weights[start:stop], margins[start:stop]
            if scale is None:
                self._state.learn(rows, *given)
            else:
                self._learn_scaled(scale, rows, *given, largest)
            self._until_drawn -= stop - start
            start = stop

    # --- scaled features --------------------------------------------------------------------------------------

    @contextmanager
    def rollback_on_error(self, block: RowBlock, labels: FloatArray, weights: FloatArray) -> Iterator[None]:
        """Restore the learner if a row turns out to be out of range after scaling, half-way through the block."""
        if self._scale is None or self._scaled_rows_fit(block, labels, weights):
            yield
            return
        before = self._specification(), self._arrays()
        try:
            yield
        except InputError:
            self._restore(*before)
            raise

    def _scaled_rows_fit(self, block: RowBlock, labels: FloatArray, weights: FloatArray) -> bool:
        """Return True if no row of the block can be out of range once it is scaled."""
        assert self._scale is not None
        if not self._scale.stays_for(block.count):
            return False
        weight = float(weights.max()) if len(weights) else 1.0
        distance = 2 * max_abs(labels) + abs(self._level)
        longest = self._scale.length_bound(block.longest)
        return bool(in_range(longest, distance, weight, self._radius + 4 * distance, LONGEST_SCALED))

    def _learn_scaled(
        self,
        scale: FeatureScale,
        rows: Any,
        labels: FloatArray,
        weights: FloatArray,
        margins: FloatArray,
        largest: tuple[float, float, float],
    ) -> None:
        """Learn rows after centring and scaling their features; raise InputError if one is out of range then.

        `largest` bounds the length of a row, the size of a label and the weight.
        """
        if scale.counts[0] == 0:
            scale.begin(rows)
            self._use(self._settings)
        length, label, weight = largest
        fits = in_range(scale.length_bound(length), label, weight, self._radius, LONGEST_SCALED)
        if self._state.is_sparse:
            rows = scale.scale_sparse(rows)
            self._require_scaled(fits or rows, labels, weights)
            self._state.learn(rows, labels, weights, margins)
            self._update_if_due(scale)
            return
        scale.meet(rows)
        self._require_scaled(fits or (rows - scale.means) * scale.factors, labels, weights)
        done = 0
        while done < len(labels):
            given = rows[done:], labels[done:], weights[done:], margins[done:]
            done += self._state.learn(*given, (scale.means, scale.factors))
            if done < len(labels):
                change = scale.reduce(np.asarray(rows[done], dtype=np.float64))
                self._state.rescale(slice(None), np.zeros(len(change)), change, 1.0, 1.0)
        self._observe_for_scale(scale, rows, labels, weights, margins)

    def _require_scaled(self, rows: Any, labels: FloatArray, weights: FloatArray) -> None:
        """Raise InputError if one of these scaled rows is out of range; True stands for rows that are not."""
        given = np.abs(labels), weights, self._radius
        if rows is True or first_out_of_range(rows, *given, bound=LONGEST_SCALED) is None:
            return
        what = "has a row whose numbers overflow when they are scaled like the rows before it"
        raise InputError("X", what, TOO_LARGE, round=self.rounds + 1)

    def _update_if_due(self, scale: FeatureScale) -> None:
        """Compute new factors of the features if it is time, and continue as if they had been used from the start."""
        if not scale.is_due:
            return
        change = scale.update(POWER if self._classifies else TARGET_POWER)
        self._use(self._settings)
        more = PAST_WEIGHT if self._classifies else 1.0
        self._state.rescale(change.columns, change.shift, change.change, change.lengths, more)
        scale.slopes = scale.slopes * more

    def _observe_for_scale(
        self, scale: FeatureScale, rows: Any, labels: FloatArray, weights: FloatArray, margins: FloatArray
    ) -> None:
        """Add learned rows to the sums from which factors are computed."""
        slopes = np.zeros(len(labels))
        if scale.centred and scale.rows_until_update < 2**62:
            s = self._settings
            slopes = values_and_slopes(s.code, s.loss_parameter or 0.0, margins, labels)[1] * weights
            scale.slopes[0] = np.cumsum(np.append(scale.slopes, slopes))[-1]
        scale.observe(rows, slopes if self._classifies else np.zeros(len(labels)))
        self._update_if_due(scale)

    def scale_by(self, block: RowBlock) -> None:
        """Centre and scale features by their means and sizes in these rows; to be called before the first row."""
        self._scale = FeatureScale.of_block(block, self._settings.dimension, self._settings.may_centre(self._sparse))
        self._use(self._settings)

    # --- the intercept's interval -----------------------------------------------------------------------------

    def _widen_for(self, labels: FloatArray) -> int:
        """Widen the interval to ±2 |the first target| if that lies outside. Return how many targets lie inside then.

        The residual of the intercept begins at 0 again.
        """
        sizes = np.abs(labels)
        if sizes[0] > self._settings.residual_radius:
            self._use(replace(self._settings, residual_radius=2 * max(float(sizes[0]), NARROWEST)))
        outside = sizes > self._settings.residual_radius
        return int(outside.argmax()) if outside.any() else len(labels)
