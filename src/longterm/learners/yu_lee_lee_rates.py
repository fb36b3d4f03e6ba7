"""How fast the queue of `YuLeeLee` speaks: γ_t, and what it is spared in every round, κ γ_t D².

The proof (`docs/after_the_paper.md`) asks that γ_t does not increase and, with A = D (1 + κ γ_1 D) and
ϱ = (e^u − 1 − u)/u² at u = γ_1 D (0.515 at u = 1/12, 0.545 at u = ¼),

    κ D² ≥ ϱ A²   and   2 ϱ γ_1 (2A + 4ΔG) ≤ 1.

The published rates keep both with a lot of room, and pay for it: (1/γ_T) ln T is 12 D √T ln T. The sharp ones use
the room, and balance (1/γ_T) ln T with Σ γ_t D², so that the violation is O(√(T log T)).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, like, namespace
from longterm._per_learner import PerLearner
from longterm._validate import Hyper
from longterm.problems import Problem


@dataclass(frozen=True, eq=False)
class Rates(PerLearner, ABC):
    """t ↦ γ_t, for a set of diameter Δ, gradients up to G and constraints up to D."""

    diameter: Hyper
    gradient_bound: Hyper
    constraint_bound: Hyper
    spared: ClassVar[float]
    """κ."""

    def __post_init__(self) -> None:
        validate.remember(
            self,
            diameter=validate.positive("diameter", self.diameter),
            gradient_bound=validate.positive("gradient_bound", self.gradient_bound),
            constraint_bound=validate.positive("constraint_bound", self.constraint_bound),
        )

    @property
    @abstractmethod
    def flat(self) -> Hyper:
        """What γ_t never exceeds."""

    @abstractmethod
    def falling(self, t: Array) -> Array:
        """What γ_t is in the long run: 1/√t times something that does not decrease."""

    def gamma(self, t: Array) -> Array:
        """γ_t, the smaller of the two, for rounds as floats, in their library and dtype."""
        return namespace(t).minimum(self.falling(t), like(self.flat, t))

    def total(self, T: FloatArray) -> FloatArray:
        """Σ_{t≤T} γ_t at most: Σ 1/√t ≤ 2√T."""
        return np.asarray(np.minimum(self.flat * T, 2 * T * self.falling(T)))


@dataclass(frozen=True, eq=False)
class Published(Rates):
    """γ_t = min( 1/(12 D √t), 1/(24 Δ G), 1 ), κ = 12: the article's."""

    spared: ClassVar[float] = 12.0

    @property
    def flat(self) -> Hyper:
        return np.minimum(1 / (24 * np.asarray(self.diameter * self.gradient_bound)), 1.0)

    def falling(self, t: Array) -> Array:
        return 1 / (12 * like(self.constraint_bound, t) * t**0.5)


@dataclass(frozen=True, eq=False)
class Sharp(Rates):
    """γ_t = min( √(ln(e t)/(2t))/D, 1/(4D + 5ΔG) ), κ = 1: ours.

    >>> import numpy as np
    >>> from longterm.learners import Published, Sharp
    >>> [float(rates(2.0, 1.0, 1.0).gamma(np.asarray(1e4)).round(5)) for rates in (Published, Sharp)]
    [0.00083, 0.02259]
    """

    spared: ClassVar[float] = 1.0

    @property
    def flat(self) -> Hyper:
        return 1 / np.asarray(4 * self.constraint_bound + 5 * self.diameter * self.gradient_bound)

    def falling(self, t: Array) -> Array:
        xp = namespace(t)
        return xp.sqrt((1 + xp.log(t)) / (2 * t)) / like(self.constraint_bound, t)


def rates_of(kind: type[Rates], problem: Problem) -> Rates:
    """With the problem's own Δ, G and D."""
    c = problem.constants
    return kind(c.diameter, c.gradient_bound, c.constraint_bound)
