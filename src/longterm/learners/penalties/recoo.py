"""RECOO (Guo, Liu, Wei, Ying, NeurIPS 2022): the prox-penalty step with a rectified queue.

    x_{t+1} = argmin_{x ∈ B} ⟨∇f_t(x_t), x⟩ + Q_t γ_t [g_t(x)]₊ + α_t ‖x − x_t‖²          x_1 = centre of B
    Q_{t+1} = max( Q_t + γ_t [g_t(x_{t+1})]₊, η_{t+1} )                                   Q_1 = η_1

The queue grows by the violation of the *new* point under the *old* constraint, and never falls below η_t.

Steps: **the article's γ_t and η_t are not known to us**. We know the rule from a paper that restates it. Here
γ_t = gamma t^gamma_power and η_t = floor t^floor_power, of order t^{½+e} and t^½, so that w_t = Q_t γ_t ≥ w_0 t^{1+e}.
α_t, w_0 and e are as in `ProxPenalty`.
Needs and guarantees: as for `ProxPenalty`, if power ≤ gamma_power. Proof: `docs/proofs/after_the_paper.md`.
Not promised: the article's own constants, feasibility in a single round.
"""

from __future__ import annotations

from dataclasses import dataclass

from longterm._base import validate
from longterm._base.arrays import Array, like, namespace
from longterm._base.validate import Hyper
from longterm.learners.penalties.penalty_step import require_penalty_step
from longterm.learners.penalties.penalty_weights import PenaltyWeights
from longterm.learners.penalties.prox_penalty import ProxPenalty, balanced_alpha, default_weight
from longterm.problems import Problem
from longterm.theory.assumptions import Assumption
from longterm.theory.bounds import HARD, REGRET


@dataclass(frozen=True, eq=False)
class RectifiedQueue(PenaltyWeights):
    """A rectified queue: w_t = Q_t γ_t, γ_t = gamma t^gamma_power, with a floor η_t = floor t^floor_power of Q_t."""

    gamma: Hyper
    floor: Hyper
    gamma_power: Hyper = 1.0
    floor_power: Hyper = 0.5

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "gamma", "floor")
        validate.validate_fields(self, validate.non_negative, "gamma_power", "floor_power")

    def weight(self, t: Array, queue: Array) -> Array:
        return queue * self._gamma(t)

    def before_step(self, t: Array, queue: Array, constraint: Array) -> Array:
        return namespace(queue).maximum(queue, like(self.floor, t) * t ** like(self.floor_power, t))

    def after_step(self, t: Array, queue: Array, constraint: Array) -> Array:
        return queue + self._gamma(t) * namespace(queue).maximum(constraint, 0.0)

    def _gamma(self, t: Array) -> Array:
        return like(self.gamma, t) * t ** like(self.gamma_power, t)

    def lower_bound(self) -> tuple[Hyper, Hyper]:
        return self.gamma * self.floor, self.gamma_power + self.floor_power

    def assumptions(self, power: Hyper) -> tuple[Assumption, ...]:
        statement, remedy = "α_t/γ_t does not increase (power ≤ gamma_power)", "Raise gamma_power, or lower power"
        return (Assumption.worst(statement, power, self.gamma_power, remedy),)


class RECOO(ProxPenalty):
    """The prox-penalty step with a rectified queue (`RectifiedQueue`).

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import streams
    >>> problem = lt.problems.two_dimensional()  # g = x₁ − ¼
    >>> learner = lt.learners.RECOO.for_problem(problem)
    >>> lt.run(problem, learner, streams.Replay([np.tile([0.8, 0.6], (500, 1))])).state.x.round(2)
    array([0.25, 0.6 ])
    """

    name = "recoo"
    title = "RECOO"
    promises = {REGRET: "O(√T)", HARD: "O(1) for a fixed g, else O(T^(3/4))"}
    variants = ({},)

    @classmethod
    def for_problem(  # type: ignore[override]
        cls, problem: Problem, *, gamma: Hyper = 1.0, floor: Hyper | None = None
    ) -> RECOO:
        """Weigh [g_t]₊ in the step by a queue of the violation, with a growing floor.

        Parameters
        ----------
        gamma : float or array
            γ_1, above 0.
        floor : float or array, optional
            η_1, above 0. Left out, the one that makes γ_t η_t the weight of `ProxPenalty`.
        """
        step = require_penalty_step(cls.__name__, problem)
        floor = default_weight(problem) / gamma if floor is None else floor
        return cls(step, RectifiedQueue(gamma, floor), balanced_alpha(problem))
