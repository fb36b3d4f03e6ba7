"""Rates γ_t of the queue of Yu, Lee and Lee, as published and sharper."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, like, namespace
from longterm._base.per_learner import PerLearner
from longterm._base.validate import Hyper


@dataclass(frozen=True, eq=False)
class Rates(PerLearner, ABC):
    """The rate γ_t of the queue, and its allowance κ γ_t D² in every round.

    The proof (`docs/proofs/after_the_paper.md`) needs that γ_t does not increase and, with A = D (1 + κ γ_1 D) and
    ϱ = (e^u − 1 − u)/u² at u = γ_1 D, that κ D² ≥ ϱ A² and 2 ϱ γ_1 (2A + 4ΔG) ≤ 1.

    Parameters
    ----------
    diameter, gradient_bound, constraint_bound : float or array
        Δ, G and D.
    """

    diameter: Hyper
    gradient_bound: Hyper
    constraint_bound: Hyper
    allowance: ClassVar[float]
    """The κ of the two conditions."""

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "diameter", "gradient_bound", "constraint_bound")

    @property
    @abstractmethod
    def largest(self) -> Hyper:
        """The value that γ_t never exceeds."""

    @abstractmethod
    def decaying(self, t: Array) -> Array:
        """Return γ_t for large t: 1/√t times a factor that does not decrease."""

    def gamma(self, t: Array) -> Array:
        """Return γ_t, the smaller of the two, for rounds as floats, in their library and dtype."""
        return namespace(t).minimum(self.decaying(t), like(self.largest, t))

    def total(self, T: FloatArray) -> FloatArray:
        """Return an upper bound of Σ_{t≤T} γ_t, from Σ 1/√t ≤ 2√T."""
        return np.asarray(np.minimum(self.largest * T, 2 * T * self.decaying(T)))


class Published(Rates):
    """The article's rates: γ_t = min( 1/(12 D √t), 1/(24 Δ G), 1 ), κ = 12."""

    allowance = 12.0

    @property
    def largest(self) -> Hyper:
        return np.minimum(1 / (24 * np.asarray(self.diameter * self.gradient_bound)), 1.0)

    def decaying(self, t: Array) -> Array:
        return 1 / (12 * like(self.constraint_bound, t) * t**0.5)


class Sharp(Rates):
    """Our rates, for a violation of O(√(T log T)): γ_t = min( √(ln(e t)/(2t))/D, 1/(4D + 5ΔG) ), κ = 1."""

    allowance = 1.0

    @property
    def largest(self) -> Hyper:
        return 1 / np.asarray(4 * self.constraint_bound + 5 * self.diameter * self.gradient_bound)

    def decaying(self, t: Array) -> Array:
        xp = namespace(t)
        return xp.sqrt((1 + xp.log(t)) / (2 * t)) / like(self.constraint_bound, t)


RATES: Mapping[str, type[Rates]] = {"sharp": Sharp, "published": Published}
