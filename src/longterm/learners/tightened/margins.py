"""Margins γ_t of a tightened constraint as a slot: constant, or decaying."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, like, namespace
from longterm._base.per_learner import PerLearner
from longterm._base.validate import Hyper
from longterm.problems.constants import Constants
from longterm.theory.bounds import REGRET, SIGNED, BoundValues, Rounds, horizons_of
from longterm.theory.paper import lemma_5, violation_bound
from longterm.theory.schedules import Schedule
from longterm.theory.step_sums import step_sums, tabulate


class Margin(PerLearner, ABC):
    """The margin slot: γ_t, and the bounds of A-OGD on g + γ_t."""

    @abstractmethod
    def at(self, t: Array, x: Array) -> Array:
        """Return γ_t in the library and dtype of x."""

    @property
    @abstractmethod
    def largest(self) -> Hyper:
        """The largest γ_t."""

    @abstractmethod
    def bounds(
        self, schedule: Schedule, epsilon: float, c: Constants, rounds: Rounds, axes: tuple[int, ...]
    ) -> BoundValues:
        """Return the bounds after `rounds`, with the axes of a grid of learners after those of the rounds."""


@dataclass(frozen=True, eq=False)
class ConstantMargin(Margin):
    """A margin γ that is the same in every round.

    Parameters
    ----------
    gamma : float or array
        γ, above 0.
    """

    gamma: Hyper

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "gamma")

    @property
    def largest(self) -> Hyper:
        return self.gamma

    def at(self, t: Array, x: Array) -> Array:
        return like(self.gamma, x) + 0 * namespace(x).astype(t, x.dtype)

    def bounds(
        self, schedule: Schedule, epsilon: float, c: Constants, rounds: Rounds, axes: tuple[int, ...]
    ) -> BoundValues:
        """Return Lemma 5 on g + γ with D + γ for D, against u = (1 − γ/ε) x* + (γ/ε) x̂."""
        T, D, gamma = horizons_of(rounds, axes), c.constraint_bound, np.asarray(self.gamma)
        sums, plain = step_sums(schedule, rounds, c.strong_convexity), lemma_5(schedule, c, rounds).regret
        regret = _expand(plain, rounds.ndim, axes) + ((D + gamma) ** 2 - D**2) * _expand(sums.mu, rounds.ndim, axes)
        root = _allowed(schedule, c, rounds, regret, axes)
        return {REGRET: regret + gamma / epsilon * c.loss_range * T, SIGNED: root - gamma * T}


@dataclass(frozen=True, eq=False)
class DecayingMargin(Margin):
    """A margin that falls: γ_t = min(limit, c t^{−power}).

    Parameters
    ----------
    coefficient, power, limit : float or array
        c, the power of 1/t and the largest γ_t, all above 0.
    """

    coefficient: Hyper
    power: Hyper
    limit: float

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "coefficient", "power", "limit")

    @property
    def largest(self) -> Hyper:
        return np.minimum(self.coefficient, self.limit)

    def at(self, t: Array, x: Array) -> Array:
        decayed = like(self.coefficient, x) * namespace(x).astype(t, x.dtype) ** like(-self.power, x)
        return namespace(x).minimum(decayed, self.limit)

    def bounds(
        self, schedule: Schedule, epsilon: float, c: Constants, rounds: Rounds, axes: tuple[int, ...]
    ) -> BoundValues:
        """Return Lemma 5 against u_t = (1 − γ_t/ε) x* + (γ_t/ε) x̂. Its movement costs (Δ²/ε) Σ (γ_t − γ_{t+1})/η_t."""
        steps = tabulate(schedule, 1, int(rounds.max()))
        t = steps.rounds.reshape(-1, *(1 for _ in axes))
        eta, mu = (_expand(step, 1, axes) for step in (steps.eta, steps.mu))
        gamma = self.at(t, np.zeros(1))
        moved = gamma - self.at(t + 1, np.zeros(1))
        wider = mu * ((c.constraint_bound + gamma) ** 2 - c.constraint_bound**2)
        extra = wider + c.diameter**2 / epsilon * moved / eta
        margins, more = (np.cumsum(terms, axis=0)[rounds - 1] for terms in (gamma, extra))
        regret = _expand(lemma_5(schedule, c, rounds).regret, rounds.ndim, axes) + more
        root = _allowed(schedule, c, rounds, regret, axes)
        return {REGRET: regret + c.loss_range / epsilon * margins, SIGNED: root - margins}


def _allowed(schedule: Schedule, c: Constants, rounds: Rounds, regret: FloatArray, axes: tuple[int, ...]) -> FloatArray:
    """Return √(2 W (𝓡 + F T)), what Lemma 5 allows."""
    sums = step_sums(schedule, rounds, c.strong_convexity)
    weight = _expand(sums.theta + sums.delta_mu, rounds.ndim, axes)
    return violation_bound(weight, regret, c, horizons_of(rounds, axes))


def _expand(values: FloatArray, lead: int, axes: tuple[int, ...]) -> FloatArray:
    """Return `values`, whose first `lead` axes are rounds, with the axes of a grid of learners after them."""
    missing = len(axes) - (values.ndim - lead)
    return values.reshape(values.shape[:lead] + (1,) * missing + values.shape[lead:])
