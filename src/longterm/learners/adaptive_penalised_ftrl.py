"""Penalised FTRL with constants found online: O(1) hard violation without a bound on the gradients.

The rule is that of `PenalisedFTRL`, with steps from the gradients so far. In `ftrl` this is a `GrowingPenalty` with an
`OnlineScale`: with V_t = Σ_{s≤t} ‖∇f_s(x_s)‖², M_t = max_{s≤t} ‖∇f_s(x_s)‖ and W_t = Σ_{s≤t} w_s,

    x_{t+1} = argmin_{x ∈ B} ⟨z_t, x⟩ + W_{t+1} [g(x)]₊ + (√V_t/(2R))‖x − c‖²
    w_{t+1} = w_0 M_t (t + 1)^{1+e},   w_0 = 2R/D,   w_1 = 0.

Up to round τ, the first with a gradient other than 0, the learner stays at c, which must not break the budget (c = 0
never does), and the weights are 0.
Needs: a fixed constraint of one function with {g ≤ 0} inside B and g(c) ≤ 0, and the prox of its positive part. No
horizon, no G_f, no F.
Guarantees, from what happened (`bound(problem, rounds, state=trace.state)`): regret at most (5/2) R √V_T, **hard**
violation Σ [g(x_t)]₊ at most ((5/2) R M_T + F) times a sum of 1/w_t that stays bounded. Proof: `docs/aftrl.md`.
Not promised: feasibility in a single round, anything about streams that drift.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from longterm._validate import Hyper
from longterm.learners.ftrl import FTRL
from longterm.learners.ftrl_scales import OnlineScale
from longterm.learners.growing_penalty import GrowingPenalty
from longterm.learners.needs import Need
from longterm.learners.prox_learner import prox_of
from longterm.problems import Problem
from longterm.theory.bounds import HARD, REGRET


@dataclass(frozen=True, eq=False)
class AdaptivePenalisedFTRL(FTRL):
    """Penalised FTRL that finds the losses' scale by itself.

    Parameters
    ----------
    prox : PenaltyProx
        The closed form of the argmin with [g]₊, from `Constraint.prox(over)`.
    scale : OnlineScale
        The curvature √V/R.
    dual : GrowingPenalty
        w_0, per unit of the gradients, and e.

    Examples
    --------
    >>> from longterm import Problem, run
    >>> from longterm.learners import AdaptivePenalisedFTRL
    >>> from longterm.constraints import ElasticNetBudget
    >>> from longterm.losses import Linear
    >>> from longterm.streams import SwitchingCosts
    >>> g = ElasticNetBudget(5, budget=1.0)
    >>> problem = Problem(g.enclosing_ball(), Linear(5), g)
    >>> learner = AdaptivePenalisedFTRL.for_problem(problem)
    >>> trace = run(problem, learner, SwitchingCosts(5), rounds=1000, record=[10, 1000])
    >>> trace.hard_violation.round(3)
    array([0., 0.])
    """

    needs: ClassVar[frozenset[Need]] = frozenset({Need.FIXED_CONSTRAINT, Need.PENALTY_PROX})
    name: ClassVar[str] = "adaptive_penalised_ftrl"
    title: ClassVar[str] = "Adaptive penalised FTRL"
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T), from what happened",
        HARD: "O(1), from what happened",
    }

    @classmethod
    def for_problem(cls, problem: Problem, *, w_0: Hyper | None = None, growth: Hyper = 0.5) -> AdaptivePenalisedFTRL:
        """Make penalised FTRL without a known bound on the gradients.

        Parameters
        ----------
        problem : Problem
            Gives B, the prox of [g]₊, R and D. Nothing is read off its losses.
        w_0 : float or array, optional
            w_0 of w_{t+1} = w_0 M_t (t + 1)^{1+e}, above 0; 2R/D unless given.
        growth : float or array
            e of the weights, above 0.
        """
        prox, c = prox_of(cls.__name__, cls.needs, problem), problem.constants
        if w_0 is None:
            w_0 = 2 * c.radius / c.constraint_bound
        return cls(prox, OnlineScale(), GrowingPenalty(w_0, growth))
