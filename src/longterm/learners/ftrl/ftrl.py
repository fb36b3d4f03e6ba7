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

from dataclasses import dataclass

from longterm._base.arrays import Array, FloatArray, namespace
from longterm._base.validate import Hyper
from longterm.learners.ftrl.slots import FTRLDual, FTRLState, Scale
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.prox_learner import ProxLearner
from longterm.learners.interface.states import as_numbers
from longterm.problems import Problem
from longterm.theory.bounds import BoundValues, Rounds, horizons_of


@dataclass(frozen=True, eq=False)
class FTRL(ProxLearner[FTRLState]):
    """Combine a scale and a dual rule into a learner that follows the regularised leader under a constraint.

    Parameters
    ----------
    prox : Prox
        The closed form of the decision, from `Constraint.prox(over)`.
    scale : Scale
        The strength of the regulariser in each round.
    dual : FTRLDual
        The rule that weighs the constraint: multipliers, or a growing penalty.

    Examples
    --------
    >>> import longterm as lt
    >>> from longterm.learners.ftrl.ftrl_scales import GivenScale
    >>> from longterm.learners.ftrl.multiplier import Multiplier
    >>> problem = lt.problems.two_dimensional()
    >>> prox = problem.constraint.prox(problem.enclosing_set)
    >>> learner = lt.learners.FTRL(prox, GivenScale(step=1.0), Multiplier(theta_0=0.1))
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
