"""Forecasts m_t of ∇f_t(x_t), made before round t.

A model makes them from the gradients so far, or a table is given beforehand (`GivenHints`). A hint in the feedback of
the round before (`Feedback.hint`) takes precedence over the model. Round 1 has only the model's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from longterm._base import validate
from longterm._base.arrays import Array, as_column, like, namespace, resolution, rows_at
from longterm.errors import InputError
from longterm.learners.interface.feedback import Feedback
from longterm.problems.constraints import Constraint
from longterm.problems.constraints.base import max_with_index


class HintModel(ABC):
    """A forecaster of the next gradient. Its memory is one array."""

    def start(self, x: Array) -> Array:
        """Return the memory before round 1, for decisions of this shape. By default nothing is remembered."""
        return namespace(x).zeros_like(x[..., :1])

    @abstractmethod
    def predict(self, memory: Array, t: Array, x: Array) -> Array:
        """Return m_t, shaped as x is."""

    def update(self, memory: Array, t: Array, gradient: Array) -> Array:
        """Return the memory after ∇f_t(x_t)."""
        return memory

    def following(self, memory: Array, t: Array, feedback: Feedback) -> tuple[Array, Array]:
        """Return the memory after round t, and m_{t+1}: the feedback's hint if it has one."""
        memory = self.update(memory, t, feedback.loss_gradient)
        if feedback.hint is not None:
            return memory, feedback.hint
        return memory, self.predict(memory, t + 1, feedback.loss_gradient)


@dataclass(frozen=True)
class NoHint(HintModel):
    """The forecast m_t = 0, unless the feedback has a hint."""

    def predict(self, memory: Array, t: Array, x: Array) -> Array:
        return namespace(x).zeros_like(x)


@dataclass(frozen=True)
class LastGradient(HintModel):
    """The forecast m_t = ∇f_{t−1}(x_{t−1})."""

    def start(self, x: Array) -> Array:
        return namespace(x).zeros_like(x)

    def predict(self, memory: Array, t: Array, x: Array) -> Array:
        return memory

    def update(self, memory: Array, t: Array, gradient: Array) -> Array:
        return gradient + 0 * memory


@dataclass(frozen=True)
class Seasonal(HintModel):
    """The forecast m_t = ∇f_{t−n}(x_{t−n}), n the length of a season; 0 in the first season.

    Parameters
    ----------
    period : int
        The rounds of a season, 24 for the hours of a day.
    """

    period: int

    def __post_init__(self) -> None:
        validate.set_frozen(self, period=validate.count("period", self.period))

    def start(self, x: Array) -> Array:
        return namespace(x).zeros((*x.shape[:-1], self.period, x.shape[-1]), dtype=x.dtype)

    def _indicator(self, t: Array, x: Array) -> Array:
        """Return 1 at the phase of round t and 0 elsewhere, shape (..., period, 1)."""
        xp = namespace(x)
        is_phase = as_column((t - 1) % self.period) == xp.arange(self.period, dtype=t.dtype)
        return as_column(xp.astype(is_phase, x.dtype))

    def predict(self, memory: Array, t: Array, x: Array) -> Array:
        return namespace(memory).sum(memory * self._indicator(t, memory), axis=-2)

    def update(self, memory: Array, t: Array, gradient: Array) -> Array:
        phase = self._indicator(t, gradient)
        return memory * (1 - phase) + gradient[..., None, :] * phase


@dataclass(frozen=True, eq=False)
class KnownConstraint(HintModel):
    """The forecast ∇[g]₊ of a fixed g at the point x that is given with the round.

    Parameters
    ----------
    constraint : Constraint
        The fixed g.
    value_bound : float
        D. Values within 1e-9 D of the maximum count as equal to it.
    """

    constraint: Constraint
    value_bound: float

    def predict(self, memory: Array, t: Array, x: Array) -> Array:
        xp, (values, pullback, _) = namespace(x), self.constraint.linearised(x)
        if self.constraint.count == 1:
            maximum, normal = values[..., 0], pullback(xp.ones_like(values))
        else:
            maximum, index = max_with_index(values, resolution(x) * self.value_bound)
            normal = self.constraint.gradient_of(x, index)
        return as_column(xp.astype(maximum > 0, x.dtype)) * normal


@dataclass(frozen=True, eq=False)
class GivenHints(HintModel):
    """Forecasts from a table with one row a round; 0 after its end.

    Parameters
    ----------
    table : array_like
        Shape (rounds, d).
    """

    table: ArrayLike

    def __post_init__(self) -> None:
        table = np.asarray(self.table, dtype=np.float64)
        if table.ndim != 2 or not np.all(np.isfinite(table)):
            raise InputError(
                "table",
                f"has shape {table.shape}, or contains a number that is not finite",
                "Give one row of numbers for each round",
            )
        validate.set_frozen(self, table=validate.frozen(np.concatenate([table, np.zeros((1, table.shape[1]))])))

    def predict(self, memory: Array, t: Array, x: Array) -> Array:
        xp, rows = namespace(x), np.asarray(self.table)
        index = xp.minimum(t - 1, xp.asarray(len(rows) - 1, dtype=t.dtype))
        return rows_at(like(rows, x), index) + 0 * x
