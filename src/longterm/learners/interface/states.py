"""States of learners: small named tuples of arrays. All have the round and the iterate."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from longterm._base.arrays import Array, FloatArray, to_numpy


class State(Protocol):
    """Remember everything that a learner has learned so far: the fields that every state has."""

    @property
    def round(self) -> Array:
        """The round t about to be played, an integer array that counts from 1."""

    @property
    def x(self) -> Array:
        """The iterate x_t, shape (..., d)."""


class PointState(NamedTuple):
    """The state (t, x_t) of a learner that remembers nothing else."""

    round: Array
    x: Array


class DualState(NamedTuple):
    """The state (t, x_t, λ_t). λ has the shape (...), or one more axis where there are several multipliers."""

    round: Array
    x: Array
    multiplier: Array


class QueueState(NamedTuple):
    """The state (t, x_t) and the queues, of shape (...) or (..., m)."""

    round: Array
    x: Array
    queue: Array


S = TypeVar("S", bound=State)


def as_numbers(value: Array) -> FloatArray:
    """Return an array of a state as NumPy float64, for a bound."""
    return np.asarray(to_numpy(value), dtype=np.float64)
