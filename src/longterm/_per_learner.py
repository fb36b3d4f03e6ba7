"""Hyper-parameters that differ from learner to learner in a batch.

A field that holds an array holds one value for each learner on the leading axes. Parts that all
learners of a batch share (sets, losses, constraints) are not of this kind and are left alone.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Self

import numpy as np


class PerLearner:
    """Mixin of the frozen dataclasses whose array fields run over the leading axes."""

    def _varying(self) -> Iterator[tuple[str, Any]]:
        for name, value in vars(self).items():
            if isinstance(value, (np.ndarray, PerLearner)):
                yield name, value

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The leading axes that the hyper-parameters span: () for one learner, (3,) for a grid of three."""
        shapes = [v.shape if isinstance(v, np.ndarray) else v.batch_shape for _, v in self._varying()]
        return np.broadcast_shapes(*shapes)

    def with_trailing_axes(self, count: int) -> Self:
        """The same hyper-parameters with `count` axes of length 1 behind theirs, to be crossed with seeds."""
        if count == 0:
            return self  # the same object: engines remember what they compiled for it
        made = copy.copy(self)
        for name, value in self._varying():
            if isinstance(value, np.ndarray):
                object.__setattr__(made, name, value.reshape(value.shape + (1,) * count))
            else:
                object.__setattr__(made, name, value.with_trailing_axes(count))
        return made
