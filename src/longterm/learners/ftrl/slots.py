"""The slots of FTRL as interfaces: the leader of a round, the scale and the dual (`ftrl`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Protocol

from longterm._base.arrays import Array, FloatArray, as_column, like, namespace
from longterm._base.per_learner import PerLearner
from longterm._base.validate import Hyper
from longterm.learners.interface.facts import DataDependentError
from longterm.learners.interface.feedback import Feedback
from longterm.problems import Problem
from longterm.problems.constraints.prox import Prox
from longterm.theory.bounds import BoundValues, NoTheoremError


class FTRLState(NamedTuple):
    """The state (t, x_t, z_{t−1}, Λ_t) and the states of the dual and the scale."""

    round: Array
    x: Array
    gradient_sum: Array
    weight: Array
    """The weights on g that x_t was chosen with, shape (..., m): Λ_t, or the ν_t of a penalty."""
    dual: Any
    scale: Any

    @property
    def multiplier(self) -> Array:
        """λ_t, shape (..., m); the weight ν_t of a penalty."""
        return getattr(self.dual, "multiplier", self.weight)


class Leader(Protocol):
    """The argmin of one round as a function of the weights on g."""

    def at(self, weight: Array) -> Array:
        """Return the argmin for weights (..., m)."""

    def least_weight(self, floor: Array, limit: Array) -> Array:
        """Return the smallest weight with g ≤ 0 at the leader, at most `limit`, shape (...,).

        `floor` is the weight of the round before. A leader whose proof needs it never returns less.
        """


class NoState(NamedTuple):
    """The state of a scale that remembers nothing."""


class SingleLeader(NamedTuple):
    """The argmin of ⟨slope, x⟩ + ⟨weight, g(x)⟩ + (curvature/2)‖x‖²."""

    prox: Any
    slope: Array
    curvature: Array

    @classmethod
    def about_centre(cls, prox: Prox, slope: Array, curvature: Array) -> SingleLeader:
        """Return the leader regularised by (curvature/2)‖x − c‖², c the centre of the set."""
        return cls(prox, slope - as_column(curvature) * like(prox.over.centre, slope), curvature)

    def at(self, weight: Array) -> Array:
        return self.prox.argmin(self.slope, weight, self.curvature)

    def least_weight(self, floor: Array, limit: Array) -> Array:
        return namespace(limit).minimum(self.prox.least_weight(self.slope, self.curvature), limit)


class Scale(PerLearner, ABC):
    """The curvature slot of FTRL: how long steps are, and the primal term P of the theorem."""

    finds_unit: ClassVar[bool] = False
    """True if the unit M_t of the losses is found online. Then the bounds are data-dependent."""
    starts_at_centre: ClassVar[bool] = True
    """False if the leader of round 1 need not be the centre of the set."""

    strong_convexity: Hyper = 0.0
    """The σ that the losses must have."""

    def require(self, prox: Prox, dual: FTRLDual) -> None:
        """Raise if the scale does not fit the prox or the dual."""
        return

    def init(self, prox: Prox, x: Array) -> Any:
        """Return the state before round 1, for learners that play x. By default nothing is remembered."""
        return NoState()

    def observe(self, prox: Prox, state: FTRLState, feedback: Feedback) -> Any:
        """Return the state after the gradient of round t."""
        return state.scale

    def unit(self, scale: Any) -> Array | None:
        """Return M_t, the unit of the losses, or None where it is 1 and not found online."""
        return None

    def slope(self, gradient: Array, x: Array) -> Array:
        """Return the slope at 0 of the model of f_t: its gradient, where nothing else is known of f_t."""
        return gradient

    @abstractmethod
    def leader(self, prox: Prox, state: FTRLState) -> tuple[Leader, Any]:
        """Return the leader of the round about to be played, and the scale's state for it."""

    @abstractmethod
    def report(self, prox: Prox, state: FTRLState) -> dict[str, Array]:
        """Return the numbers of the scale for a trace."""

    @abstractmethod
    def primal(self, prox: Prox, problem: Problem, T: FloatArray, state: FTRLState | None) -> FloatArray:
        """Return P after T rounds. Raise a NoTheoremError if it is data-dependent and `state` is None."""

    def primal_per_round(self, problem: Problem, state: FTRLState | None) -> FloatArray:
        """Return a C with P ≤ C t after every number of rounds t, for a penalty's theorem."""
        raise NoTheoremError(f"no bound is known for a growing penalty with {type(self).__name__}")


def require_state(state: FTRLState | None) -> FTRLState:
    """Return the state, or raise a NoTheoremError before the run, when it is None."""
    if state is None:
        raise DataDependentError
    return state


class FTRLDual(PerLearner, ABC):
    """The dual slot of FTRL: the weights on g, and the bounds that follow from P."""

    starts_at_centre: ClassVar[bool] = True
    """False if round 1 already has a weight on g."""

    def require(self, prox: Prox, scale: Scale) -> None:
        """Raise if the dual does not fit the prox or the scale."""
        return

    @abstractmethod
    def init(self, prox: Prox, x: Array, unit: Array | None) -> Any:
        """Return the state before round 1."""

    @abstractmethod
    def update(self, state: FTRLState, feedback: Feedback, unit: Array | None) -> tuple[Any, Array]:
        """Return the dual's state after round t, and the weights that are known before the leader is."""

    @abstractmethod
    def weight(self, state: FTRLState, leader: Leader) -> Array:
        """Return the weights on g that x is chosen with."""

    @abstractmethod
    def report(self, state: FTRLState, scale: Scale) -> dict[str, Array]:
        """Return the numbers of the dual for a trace."""

    @abstractmethod
    def bounds(
        self, primal: FloatArray, prox: Prox, scale: Scale, problem: Problem, T: FloatArray, state: FTRLState | None
    ) -> BoundValues:
        """Return the bounds after T rounds from P; `state` is the state after them where P is data-dependent."""
