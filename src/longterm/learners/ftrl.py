"""Follow the regularised leader under a long-term constraint: the rule once, with a slot for the dual and the scale.

With z_t the slopes of the losses' models up to round t, c the centre of B and a_t the curvature,

    x_{t+1} = argmin_{x ∈ B} ⟨z_t, x⟩ + ⟨Λ_{t+1}, g(x)⟩ + (a_{t+1}/2)‖x − c‖².

- The **dual** defines Λ: the sum of learned multipliers (`Multiplier`), or the weight that a growing penalty on
  [g]₊ gives (`GrowingPenalty`).
- The **scale** defines the curvature: from given constants (`GivenScale`, `StronglyConvexScale`), from the gradients
  so far (`OnlineScale`), for eight radii at once (`ScaleMixture`), or from the errors of forecasts (`ForecastScale`).

Since g itself is in the argmin, iterates under an ℓ1 budget are sparse, and neither ∇g nor condition C2 is needed.
Every scale has Σ Δf_t + Σ ⟨λ_t, g(x_t)⟩ ≤ P, λ_t = Λ_t − Λ_{t−1} (`docs/proofs/aftrl.md`). The dual turns P into bounds
on regret and violation. Published learners are subclasses in `aftrl`, `penalised_ftrl` and `optimistic_aftrl`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from longterm._arrays import Array, FloatArray, as_column, like, namespace
from longterm._validate import Hyper
from longterm.constraints.prox import Prox
from longterm.learners.base import DataDependentError
from longterm.learners.feedback import Feedback
from longterm.learners.prox_learner import ProxLearner, as_numbers
from longterm.problems import Problem
from longterm.theory.bounds import BoundValues, NoTheoremError, Rounds, horizons_of
from longterm.theory.per_learner import PerLearner


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
        raise NoTheoremError(f"none is known for a growing penalty with {type(self).__name__}")


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


@dataclass(frozen=True, eq=False)
class FTRL(ProxLearner[FTRLState]):
    """Follow the regularised leader with the prox of a constraint, a scale and a dual.

    Parameters
    ----------
    prox : Prox
        The closed form of the argmin, from `Constraint.prox(over)`.
    scale : Scale
        The curvature.
    dual : FTRLDual
        The weights on g.

    Examples
    --------
    >>> import longterm as lt
    >>> problem = lt.problems.two_dimensional()
    >>> prox = problem.constraint.prox(problem.enclosing_set)
    >>> learner = lt.learners.FTRL(prox, lt.learners.GivenScale(step=1.0), lt.learners.Multiplier(theta_0=0.1))
    >>> sorted(learner.bound(problem, 2000))
    ['long_term_violation', 'regret']
    """

    scale: Scale
    dual: FTRLDual

    def __post_init__(self) -> None:
        super().__post_init__()
        self.scale.require(self.prox, self.dual)
        self.dual.require(self.prox, self.scale)

    @property
    def strong_convexity(self) -> Hyper:
        return self.scale.strong_convexity

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the dual's bounds for the scale's P. The modules of the slots state their terms."""
        return self._bounds_at(problem, horizons_of(rounds, self.batch_shape), None)

    def theorem_after(self, problem: Problem, state: FTRLState) -> BoundValues:
        return self._bounds_at(problem, as_numbers(state.round) - 1, state)

    def _bounds_at(self, problem: Problem, T: FloatArray, state: FTRLState | None) -> BoundValues:
        primal = self.scale.primal(self.prox, problem, T, state)
        return self.dual.bounds(primal, self.prox, self.scale, problem, T, state)

    def first_state(self, t: Array, x: Array) -> FTRLState:
        xp, scale = namespace(x), self.scale.init(self.prox, x)
        state = FTRLState(
            round=t,
            x=x,
            gradient_sum=xp.zeros_like(x),
            weight=xp.zeros((*x.shape[:-1], self.prox.constraint.count), dtype=x.dtype),
            dual=self.dual.init(self.prox, x, self.scale.unit(scale)),
            scale=scale,
        )
        return state if self.scale.starts_at_centre and self.dual.starts_at_centre else self.lead(state)

    def update(self, state: FTRLState, feedback: Feedback) -> FTRLState:
        scale = self.scale.observe(self.prox, state, feedback)
        dual, weight = self.dual.update(state, feedback, self.scale.unit(scale))
        gradient_sum = state.gradient_sum + self.scale.slope(feedback.loss_gradient, state.x)
        return self.lead(FTRLState(state.round + 1, state.x, gradient_sum, weight, dual, scale))

    def lead(self, state: FTRLState) -> FTRLState:
        """Return the state with the leader of its round as x."""
        leader, scale = self.scale.leader(self.prox, state)
        weight = self.dual.weight(state, leader)
        return state._replace(x=leader.at(weight), weight=weight, scale=scale)

    def report(self, state: FTRLState) -> dict[str, Array]:
        return {**self.dual.report(state, self.scale), **self.scale.report(self.prox, state)}
