"""The prox-penalty family: the positive part of the latest constraint inside the step, with a growing weight.

    x_{t+1} = argmin_{x ∈ B} ⟨∇f_t(x_t), x⟩ + w_t [g_t(x)]₊ + α_t ‖x − x_t‖²,     α_t = α t^power,     x_1 = centre of B

The step nearly projects onto {g_t ≤ 0}, which is the reason for an O(1) violation. The weights w_t are a slot: here
w_t = w_0 t^{1+e}. `RECOO` and `COLDQ` find w_t with a queue. The bounds need no queue.

Steps: α_t = G_f √t/(√2 Δ) for convex losses, α_t = σt/2 for σ-strongly convex ones. By default w_0 = (F + ΔG_f)/D and
e = ½.
Needs: the argmin (`PenaltyStep`): one affine constraint on a ball or a box, fixed or changing, or a budget. No horizon.
Guarantees, if α_t/w_t does not increase (power ≤ 1 + e): for a fixed g and every T at once, regret at most √2 ΔG_f √T
(strongly convex: (G_f²/(2σ))(1 + ln T)) and **hard** violation Σ [g(x_t)]₊ = O(1). For changing g_t, against x* with
g_t(x*) ≤ 0 in every round, the same regret, and O(T^{3/4}) for Σ [g_t(x_t)]₊ (strongly convex: O(√(T log T))), because
x_{t+1} is chosen with g_t and charged with g_{t+1}. Proof: `docs/proofs/after_the_paper.md`. Where the condition
fails the rule can be played, with a warning, and has no bound.
Not promised: feasibility in a single round.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, like, namespace
from longterm._validate import Hyper
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need, StepKind, require_strong_convexity
from longterm.learners.penalty_step import PenaltyStep, require_penalty_step, require_same_step
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.bounds import HARD, REGRET, horizons_of
from longterm.theory.facts import Assumption, Constants
from longterm.theory.per_learner import PerLearner
from longterm.theory.step_sums import power_sum


class PenaltyWeights(PerLearner, ABC):
    """The weights w_t of the penalty, with a queue where the rule has one."""

    @abstractmethod
    def weight(self, t: Array, queue: Array) -> Array:
        """Return w_t, given Q_t."""

    def before_step(self, t: Array, queue: Array, constraint: Array) -> Array:
        """Return Q_t from the queue of the state, given g_t(x_t)."""
        return queue

    def after_step(self, t: Array, queue: Array, constraint: Array) -> Array:
        """Return the queue of the next state, given g_t(x_{t+1})."""
        return queue

    @abstractmethod
    def lower_bound(self) -> tuple[Hyper, Hyper]:
        """Return (w, e) with w_t ≥ w t^e in every round."""

    def assumptions(self, power: Hyper) -> tuple[Assumption, ...]:
        """Return the conditions under which α_t/w_t does not increase, checked."""
        return ()

    def residual(self, c: Constants, T: FloatArray, alpha: Hyper, power: Hyper, regret: FloatArray) -> FloatArray:
        """Return H_T, a bound on Σ_{t≤T} [g_t(x_{t+1})]₊, given P_T."""
        weight, exponent = (np.asarray(part) for part in self.lower_bound())
        first, decay = np.asarray(alpha), np.asarray(power)
        losses = c.loss_range * power_sum(T, exponent)
        losses = losses + c.loss_gradient_bound**2 / (4 * first) * power_sum(T, exponent + decay)
        return np.asarray((losses + first * c.radius**2) / weight)


@dataclass(frozen=True, eq=False)
class GrowingWeights(PenaltyWeights):
    """w_t = w_0 t^{1+growth}, without a queue.

    Parameters
    ----------
    w_0, growth : float or array
        The first weight, and e. Both above 0.
    """

    w_0: Hyper
    growth: Hyper = 0.5

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "w_0", "growth")

    def weight(self, t: Array, queue: Array) -> Array:
        return like(self.w_0, t) * t ** (1 + like(self.growth, t))

    def lower_bound(self) -> tuple[Hyper, Hyper]:
        return self.w_0, 1 + self.growth

    def assumptions(self, power: Hyper) -> tuple[Assumption, ...]:
        statement, remedy = "α_t/w_t does not increase (power ≤ 1 + growth)", "Raise growth, or lower power"
        return (Assumption.worst(statement, power, 1 + np.asarray(self.growth), remedy),)


class ProxPenaltyState(NamedTuple):
    """(t, x_t) and the queue of the weights."""

    round: Array
    x: Array
    queue: Array


@dataclass(frozen=True, eq=False)
class ProxPenalty(Learner[ProxPenaltyState]):
    """A step with [g_t]₊ itself in it, under the weights of a rule.

    Parameters
    ----------
    penalty_step : PenaltyStep
        The argmin.
    weights : PenaltyWeights
        The weights w_t.
    alpha, power : float or array
        α_t = alpha t^power.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import ProxPenalty
    >>> from longterm.problems import two_dimensional
    >>> from longterm.streams import Replay
    >>> problem = two_dimensional()  # g = x₁ − ¼
    >>> learner = ProxPenalty.for_problem(problem, steps="strongly convex")
    >>> trace = run(problem, learner, Replay([np.tile([0.8, 0.6], (500, 1))]))
    >>> trace.state.x.round(3), float(trace.hard_violation[-1].round(3))
    (array([0.25, 0.6 ]), 0.0)
    """

    penalty_step: PenaltyStep
    weights: PenaltyWeights
    alpha: Hyper
    power: Hyper = 0.5
    enclosing_set: Set = field(init=False, repr=False)

    name: ClassVar[str] = "prox_penalty"
    title: ClassVar[str] = "Prox penalty"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.LATEST_PENALTY_PROX})
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T), O(log T)",
        HARD: "O(1) for a fixed g, else O(T^(3/4)), O(√(T log T))",
    }
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"steps": "strongly convex"})

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "alpha", "power")
        validate.set_frozen(self, enclosing_set=self.penalty_step.over)

    @classmethod
    def for_problem(
        cls, problem: Problem, *, steps: StepKind = "convex", w_0: Hyper | None = None, growth: Hyper = 0.5
    ) -> ProxPenalty:
        """Take gradient steps with [g_t]₊ itself in them, under a growing weight: little hard violation.

        Parameters
        ----------
        problem : Problem
            Gives B, the argmin, Δ, G_f, D and F, or σ.
        steps : {"convex", "strongly convex"}
            α_t = G_f √t/(√2 Δ), or σt/2.
        w_0 : float or array, optional
            The first weight. Left out, (F + ΔG_f)/D.
        growth : float or array
            e of w_t = w_0 t^{1+e}, above 0.
        """
        step = require_penalty_step(cls.__name__, problem)
        weights = GrowingWeights(default_weight(problem) if w_0 is None else w_0, growth)
        if steps == "convex":
            return cls(step, weights, balanced_alpha(problem))
        return cls(step, weights, require_strong_convexity(problem, steps) / 2, 1.0)

    @property
    def strong_convexity(self) -> Hyper:
        """The σ = 2α that the steps are made for where α_t grows like t, else 0."""
        sigma = np.where(np.asarray(self.power) == 1, 2 * np.asarray(self.alpha), 0.0)
        return sigma if sigma.ndim else float(sigma)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        return self.weights.assumptions(self.power)

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        require_same_step(self.penalty_step, problem)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """Return the bounds for weights w_t ≥ w t^e such that α_t/w_t does not increase.

        For any losses and any x* with g_t(x*) ≤ 0 in every round:

            Σ f_t(x_t) − f_t(x*) ≤ P_T = Σ G_f²/(4α_t) + r²[α_1 − σ/2]₊ + Δ² Σ_{t≥2} [α_t − α_{t−1} − σ/2]₊
            Σ [g(x_t)]₊          ≤ min(D, G_g r) + H_{T−1},     H_T = Σ_{t≤T} (F + G_f²/(4α_t))/(w t^e) + r² α_1/w
            Σ [g_t(x_t)]₊        ≤ H_T + G_g √( 2 Σ 1/α_t · (P_T + Σ G_f²/(4α_t) + F T) )

        The second line is for a fixed g, the third for changing g_t. σ counts only for α_t in proportion to t. Both
        follow from the step: for z with g_t(z) ≤ 0, a_t = ‖x_t − z‖² and δ_t = x_{t+1} − x_t,

            f_t(x_t) − f_t(z) + w_t [g_t(x_{t+1})]₊ ≤ G_f²/(4α_t) + α_t (a_t − a_{t+1}) − (σ/2) a_t
            f_t(x_t) − f_t(z) + (α_t/2) ‖δ_t‖²      ≤ G_f²/(2α_t) + α_t (a_t − a_{t+1}) − (σ/2) a_t
        """
        self.require_assumptions()
        T, c = horizons_of(rounds, self.batch_shape), problem.constants
        regret = self._regret(c, T)
        if problem.constraint.parameters:
            inverse = self._inverse_sum(T)
            energy = regret + c.loss_gradient_bound**2 / 4 * inverse + c.loss_range * T
            violation = self._residual(c, T) + c.constraint_gradient_bound * np.sqrt(2 * inverse * energy)
        else:
            first = min(c.constraint_bound, c.constraint_gradient_bound * c.radius)
            violation = first + np.where(T > 1, self._residual(c, np.maximum(T - 1, 1.0)), 0.0)
        regret, violation = np.broadcast_arrays(regret, violation)
        return {REGRET: regret, HARD: violation}

    def _regret(self, c: Constants, T: FloatArray) -> FloatArray:
        """Return P_T of `theorem`."""
        alpha, power = np.asarray(self.alpha), np.asarray(self.power)
        credit = np.where(power == 1, c.strong_convexity / 2, 0.0)
        growth = np.where(power == 1, np.maximum(alpha - credit, 0.0) * (T - 1), alpha * (T**power - 1))
        spread = c.radius**2 * np.maximum(alpha - credit, 0.0) + c.diameter**2 * growth
        return np.asarray(c.loss_gradient_bound**2 / 4 * self._inverse_sum(T) + spread)

    def _residual(self, c: Constants, T: FloatArray) -> FloatArray:
        """Return H_T of `theorem`."""
        return self.weights.residual(c, T, self.alpha, self.power, self._regret(c, T))

    def _inverse_sum(self, T: FloatArray) -> FloatArray:
        """Return an upper bound of Σ 1/α_t."""
        return np.asarray(power_sum(T, self.power) / np.asarray(self.alpha))

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> ProxPenaltyState:
        x = self.initial_x(batch_shape, xp, dtype)
        return ProxPenaltyState(xp.asarray(1, dtype=xp.int64), x, xp.zeros(x.shape[:-1], dtype=x.dtype))

    def update(self, state: ProxPenaltyState, feedback: Feedback) -> ProxPenaltyState:
        t = namespace(state.x).astype(state.round, state.x.dtype)
        queue = self.weights.before_step(t, state.queue, feedback.constraint)
        curvature = 2 * self._alpha(t) + 0 * feedback.constraint
        stepped = self.penalty_step.step(state.x, feedback, self.weights.weight(t, queue), curvature)
        return ProxPenaltyState(state.round + 1, stepped.x, self.weights.after_step(t, queue, stepped.constraint))

    def _alpha(self, t: Array) -> Array:
        return like(self.alpha, t) * t ** like(self.power, t)

    def report(self, state: ProxPenaltyState) -> dict[str, Array]:
        t = namespace(state.x).astype(state.round, state.x.dtype)
        return {"queue": state.queue, "alpha": self._alpha(t)}


def balanced_alpha(problem: Problem) -> float:
    """Return G_f/(√2 Δ), the α for which α_t = α√t balances the two terms of the regret."""
    c = problem.constants
    return validate.positive_scalar("loss_gradient_bound", c.loss_gradient_bound) / (2**0.5 * c.diameter)


def default_weight(problem: Problem) -> float:
    """Return (F + ΔG_f)/D, the first weight."""
    c = problem.constants
    return (c.loss_range + c.diameter * c.loss_gradient_bound) / c.constraint_bound
