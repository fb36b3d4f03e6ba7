"""The prox-penalty family: the latest constraint, cut off at 0, inside the step, with a weight that grows by itself.

    x_{t+1} = argmin_{x ∈ B} ⟨∇f_t(x_t), x⟩ + w_t [g_t(x)]₊ + α_t ‖x − x_t‖²,    w_t = w_0 t^{1+e},    x_1 = centre of B

`RECOO` (Guo, Liu, Wei, Ying 2022) and `COLDQ` (Wang, Yan, Liu 2025) have the same step and find w_t with a queue; the
bounds need no queue at all. The step nearly projects onto {g_t ≤ 0}: that is what buys an O(1) violation.

Steps: α_t = G_f √t/(√2 Δ) for convex losses, α_t = σt/2 for σ-strongly convex ones; w_0 = (F + ΔG_f)/D and e = ½
unless given.
Needs: the argmin (`PenaltyStep`): one affine constraint on a ball or a box, fixed or changing, or a budget. No horizon.
Guarantees: `bounds.prox_penalty`, for a fixed g and every T at once: regret at most √2 ΔG_f √T (strongly convex:
(G_f²/(2σ))(1 + ln T)) and **hard** violation Σ [g(x_t)]₊ = O(1). `bounds.prox_penalty_varying`, for g_t that change,
against x* with g_t(x*) ≤ 0 in every round: the same regret, and O(T^{3/4}) for Σ [g_t(x_t)]₊ (strongly convex:
O(√(T log T))): x_{t+1} is chosen with g_t and charged with g_{t+1}.
Not promised: feasibility in a single round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, like
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.learners._given_prox import strong_convexity_of
from longterm.learners._penalty_family import PenaltyFamily, scaled_alpha
from longterm.learners.penalty_step import require_penalty_step
from longterm.problems import Problem


@dataclass(frozen=True, eq=False, kw_only=True)
class ProxPenalty(PenaltyFamily):
    """The family's plainest member: w_t = w_0 t^{1+growth}.

    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import ProxPenalty
    >>> from longterm.problems import two_dimensional
    >>> from longterm.streams import Replay
    >>> problem = two_dimensional()  # g = x₁ − ¼
    >>> trace = run(problem, ProxPenalty.for_problem(problem, steps="strongly convex"), Replay([np.tile([0.8, 0.6], (500, 1))]))
    >>> trace.state.x.round(3), float(trace.hard_violation[-1].round(3))
    (array([0.25, 0.6 ]), 0.0)
    """

    w_0: Hyper
    growth: Hyper = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        w_0, growth = validate.positive("w_0", self.w_0), validate.positive("growth", self.growth)
        validate.remember(self, w_0=w_0, growth=growth)

    @classmethod
    def convex(cls, problem: Problem, w_0: Hyper | None = None, growth: Hyper = 0.5) -> ProxPenalty:
        """The steps for convex losses, with the problem's own Δ, G_f, D and F."""
        step = require_penalty_step(cls.__name__, problem)
        w_0 = _default_weight(problem) if w_0 is None else w_0
        return cls(penalty_step=step, alpha=scaled_alpha(problem), w_0=w_0, growth=growth)

    @classmethod
    def strongly_convex(cls, problem: Problem, w_0: Hyper | None = None, growth: Hyper = 0.5) -> ProxPenalty:
        """The steps for strongly convex losses, with the problem's own σ, and the same weights."""
        step, sigma = require_penalty_step(cls.__name__, problem), strong_convexity_of(problem, "ProxPenalty.convex")
        w_0 = _default_weight(problem) if w_0 is None else w_0
        return cls(penalty_step=step, alpha=sigma / 2, power=1.0, w_0=w_0, growth=growth)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        sigma = problem.constants.strong_convexity
        if np.any(np.asarray(self.power) == 1) and np.any(2 * np.asarray(self.alpha) > sigma * (1 + 1e-12)):
            what = f"its steps are made for σ = {2 * self.alpha}, the losses have {sigma:g}"
            raise InputError("learner", what, "Use ProxPenalty.convex, or declare a strong_convexity that holds")

    def least_weight(self) -> tuple[Hyper, Hyper]:
        return self.w_0, 1 + self.growth

    def _weight(self, t: Array, queue: Array) -> Array:
        return like(self.w_0, t) * t ** (1 + like(self.growth, t))


def _default_weight(problem: Problem) -> float:
    c = problem.constants
    return (c.loss_range + c.diameter * c.loss_gradient_bound) / c.constraint_bound
