"""Hyper-parameters that differ from learner to learner in a batch.

A field that holds an array holds one value for each learner on the leading axes. Parts that all
learners of a batch share (sets, losses, constraints) are not of this kind and are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np

from longterm._display import Shown


class PerLearner(Shown):
    """Mixin of the frozen dataclasses whose array fields run over the leading axes."""

    def _varying(self) -> Iterator[tuple[str, Any]]:
        for name, value in vars(self).items():
            if isinstance(value, (np.ndarray, PerLearner)):
                yield name, value

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The leading axes that the hyper-parameters span: () for one learner, (3,) for a grid of three."""
        return np.broadcast_shapes(*(array.shape for array in self.hyper_arrays().values()))

    def hyper_arrays(self) -> dict[str, Any]:
        """Every array among the hyper-parameters, by its path: {"schedule.beta": …}."""
        arrays: dict[str, Any] = {}
        for name, value in self._varying():
            if isinstance(value, np.ndarray):
                arrays[name] = value
            else:
                arrays |= {f"{name}.{path}": array for path, array in value.hyper_arrays().items()}
        return arrays

    def with_hyper_arrays(self, arrays: Mapping[str, Any]) -> Self:
        """The same learner with other arrays at these paths. They are taken as they are, without checks."""
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        for name, value in self._varying():
            inner = {path.removeprefix(f"{name}."): a for path, a in arrays.items() if path.startswith(f"{name}.")}
            other = arrays[name] if isinstance(value, np.ndarray) else value.with_hyper_arrays(inner)
            object.__setattr__(made, name, other)
        return made

    def with_trailing_axes(self, count: int) -> Self:
        """The same hyper-parameters with `count` axes of length 1 behind theirs, to be crossed with seeds."""
        arrays = self.hyper_arrays()
        if count == 0 or not arrays:
            return self  # the same object: engines remember what they compiled for it
        return self.with_hyper_arrays({path: a.reshape(a.shape + (1,) * count) for path, a in arrays.items()})
