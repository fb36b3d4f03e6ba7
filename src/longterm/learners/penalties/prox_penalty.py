"""The prox-penalty family: the positive part of the latest constraint inside the step, with a growing weight.

    x_{t+1} = argmin_{x ∈ B} ⟨∇f_t(x_t), x⟩ + w_t [g_t(x)]₊ + α_t ‖x − x_t‖²,     α_t = α t^power,     x_1 = centre of B

The step nearly projects onto {g_t ≤ 0}. The weights w_t are a slot (`penalty_weights`): here w_t = w_0 t^{1+e}. `RECOO`
and `COLDQ` find w_t with a queue. The bounds need no queue.

Steps: α_t = G_f √t/(√2 Δ) for convex losses, α_t = σt/2 for σ-strongly convex ones, w_0 = (F + ΔG_f)/D and e = ½.
Needs: the argmin (`PenaltyStep`): one affine constraint on a ball or a box, fixed or changing, or a budget. No horizon.
Guarantees: `theorem`, if α_t/w_t does not increase. Where it does, the rule can be played, with a warning, and has no
bound. Proof: `docs/proofs/after_the_paper.md`. Not promised: feasibility in a single round.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, like, namespace
from longterm._base.validate import Hyper
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.learner import Learner, QueueState, Variants
from longterm.learners.interface.needs import Need, StepKind, require_strong_convexity
from longterm.learners.penalties.penalty_step import PenaltyStep, require_penalty_step, require_same_step
from longterm.learners.penalties.penalty_weights import GrowingWeights, PenaltyWeights
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.problems.sets import Set
from longterm.theory.assumptions import Assumption
from longterm.theory.bounds import HARD, REGRET, BoundValues, Rounds, horizons_of
from longterm.theory.step_sums import power_sum


@dataclass(frozen=True, eq=False)
class ProxPenalty(Learner[QueueState]):
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
    >>> import longterm as lt
    >>> from longterm.problems import streams
    >>> problem = lt.problems.two_dimensional()  # g = x₁ − ¼
    >>> learner = lt.learners.ProxPenalty.for_problem(problem, steps="strongly convex")
    >>> trace = lt.run(problem, learner, streams.Replay([np.tile([0.8, 0.6], (500, 1))]))
    >>> trace.state.x.round(3), float(trace.hard_violation[-1].round(3))
    (array([0.25, 0.6 ]), 0.0)
    """

    penalty_step: PenaltyStep
    weights: PenaltyWeights
    alpha: Hyper
    power: Hyper = 0.5
    enclosing_set: Set = field(init=False, repr=False)

    name = "prox_penalty"
    title = "Prox penalty"
    needs = frozenset({Need.LATEST_PENALTY_PROX})
    promises = {REGRET: "O(√T), O(log T)", HARD: "O(1) for a fixed g, else O(T^(3/4)), O(√(T log T))"}
    variants: ClassVar[Variants] = ({}, {"steps": "strongly convex"})

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

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bounds for weights w_t ≥ w t^e such that α_t/w_t does not increase, if g_t(x*) ≤ 0 in every round.

            Σ f_t(x_t) − f_t(x*) ≤ P_T = Σ G_f²/(4α_t) + r²[α_1 − σ/2]₊ + Δ² Σ_{t≥2} [α_t − α_{t−1} − σ/2]₊
            Σ [g(x_t)]₊          ≤ min(D, G_g r) + H_{T−1},     H_T = Σ_{t≤T} (F + G_f²/(4α_t))/(w t^e) + r² α_1/w
            Σ [g_t(x_t)]₊        ≤ H_T + G_g √( 2 Σ 1/α_t · (P_T + Σ G_f²/(4α_t) + F T) )

        The second line is for a fixed g, the third for changing g_t. σ counts only for α_t in proportion to t.
        """
        self.require_assumptions()
        T, c = horizons_of(rounds, self.batch_shape), problem.constants
        regret = self._regret(c, T)
        if problem.constraint.parameters:
            inverse = self._inverse_sum(T)
            energy = regret + c.loss_gradient_bound**2 / 4 * inverse + c.loss_range * T
            violation = self._residual(c, T) + c.constraint_gradient_bound * np.sqrt(2 * inverse * energy)
        else:
            violation = c.first_violation + np.where(T > 1, self._residual(c, np.maximum(T - 1, 1.0)), 0.0)
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

    def first_state(self, t: Array, x: Array) -> QueueState:
        return QueueState(t, x, namespace(x).zeros(x.shape[:-1], dtype=x.dtype))

    def update(self, state: QueueState, feedback: Feedback) -> QueueState:
        t = namespace(state.x).astype(state.round, state.x.dtype)
        queue = self.weights.before_step(t, state.queue, feedback.constraint)
        curvature = 2 * self._alpha(t) + 0 * feedback.constraint
        stepped = self.penalty_step.step(state.x, feedback, self.weights.weight(t, queue), curvature)
        return QueueState(state.round + 1, stepped.x, self.weights.after_step(t, queue, stepped.constraint))

    def _alpha(self, t: Array) -> Array:
        return like(self.alpha, t) * t ** like(self.power, t)

    def report(self, state: QueueState) -> dict[str, Array]:
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
