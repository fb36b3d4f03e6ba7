"""Hyper-parameters that differ from learner to learner in a batch, as arrays over the leading axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np

from longterm._base.display import ReprMixin


class PerLearner(ReprMixin):
    """A mixin for frozen dataclasses whose array fields run over the leading axes."""

    def _varying(self) -> Iterator[tuple[str, Any]]:
        """Yield the fields that are arrays, or that may hold some."""
        for name, value in vars(self).items():
            if isinstance(value, (np.ndarray, PerLearner)):
                yield name, value

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The leading axes that the hyper-parameters span: () for one learner, (3,) for a grid of three."""
        return np.broadcast_shapes(*(array.shape for array in self.hyper_arrays().values()))

    def hyper_arrays(self) -> dict[str, Any]:
        """Return every array among the hyper-parameters by its path: {"schedule.beta": …}."""
        arrays: dict[str, Any] = {}
        for name, value in self._varying():
            if isinstance(value, np.ndarray):
                arrays[name] = value
            else:
                arrays |= {f"{name}.{path}": array for path, array in value.hyper_arrays().items()}
        return arrays

    def with_hyper_arrays(self, arrays: Mapping[str, Any]) -> Self:
        """Return a copy with other arrays at these paths, unchecked."""
        made = object.__new__(type(self))
        fields = vars(made)
        inner: dict[str, dict[str, Any]] = {}
        fields.update(vars(self))
        for path, array in arrays.items():
            name, _, rest = path.partition(".")
            if name not in fields:
                raise KeyError(path)
            if rest:
                inner.setdefault(name, {})[rest] = array
            else:
                fields[name] = array
        for name, below in inner.items():
            fields[name] = fields[name].with_hyper_arrays(below)
        return made

    def with_trailing_axes(self, count: int) -> Self:
        """Return a copy whose arrays have `count` more axes of length 1 at the end, to be crossed with seeds."""
        arrays = self.hyper_arrays()
        if count == 0 or not arrays:
            return self  # the same object, since engines cache what they compiled for it
        return self.with_hyper_arrays({path: a.reshape(a.shape + (1,) * count) for path, a in arrays.items()})
