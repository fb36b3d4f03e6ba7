"""Penalised FTRL with a mixture of scales: O(1) hard violation, and a generous budget does no harm.

In `ftrl` this is a `GrowingPenalty` with a `ScaleMixture`: the leaders of eight radii share one weight ν_t on g, which
never falls, and the weights w_t of `AdaptivePenalisedFTRL`. With λ_t = ν_t − ν_{t−1}, λ_t g(x_t) ≥ w_t [g(x_t)]₊,
because ν rises only to where g is 0, or to W_t, which is w_t above any ν before.

Needs: an elastic-net budget with {g ≤ 0} inside the ball. No horizon, no G_f, no F.
Guarantees, from what happened: regret at most P_0 + N_0, and hard violation Σ [g(x_t)]₊ bounded for every T, by
(C M_T + F) times the sum of 1/w_t, where P_0 + N_0 ≤ C M_T T (`docs/scales.md`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from longterm._validate import Hyper
from longterm.learners.ftrl import FTRL
from longterm.learners.growing_penalty import GrowingPenalty
from longterm.learners.needs import Need
from longterm.learners.prox_learner import prox_of
from longterm.learners.scale_mixture import ScaleMixture, default_typical_size
from longterm.problems import Problem
from longterm.theory.bounds import HARD, REGRET


@dataclass(frozen=True, eq=False)
class MixedPenalisedFTRL(FTRL):
    """Penalised FTRL with constants found online and eight radii in one leader.

    Parameters
    ----------
    prox : ElasticNetProx
        Of the budget, on a ball about 0 that holds {g ≤ 0}.
    scale : ScaleMixture
        r_0.
    dual : GrowingPenalty
        w_0, per unit of the gradients, and e.

    Examples
    --------
    >>> from longterm import Problem, run
    >>> from longterm.learners import MixedPenalisedFTRL
    >>> from longterm.constraints import ElasticNetBudget
    >>> from longterm.losses import Linear
    >>> from longterm.streams import SwitchingCosts
    >>> g = ElasticNetBudget(5, budget=1.0)
    >>> problem = Problem(g.enclosing_ball(), Linear(5), g)
    >>> learner = MixedPenalisedFTRL.for_problem(problem)
    >>> run(problem, learner, SwitchingCosts(5), rounds=500, record=[10, 500]).hard_violation.round(3)
    array([0., 0.])
    """

    needs: ClassVar[frozenset[Need]] = frozenset({Need.FIXED_CONSTRAINT, Need.PENALTY_PROX})
    name: ClassVar[str] = "mixed_penalised_ftrl"
    title: ClassVar[str] = "Mixed penalised FTRL"
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T), from what happened",
        HARD: "O(1), from what happened",
    }

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        w_0: Hyper | None = None,
        typical_size: float | None = None,
        growth: Hyper = 0.5,
    ) -> MixedPenalisedFTRL:
        """Make penalised FTRL without a known bound on the gradients, unharmed by a generous budget.

        Parameters
        ----------
        problem : Problem
            Gives the ball, the budget, R and D.
        w_0 : float or array, optional
            w_0 of w_{t+1} = w_0 M_t (t + 1)^{1+e}, above 0; 2R/D unless given.
        typical_size : float, optional
            r_0; R/4⁴, the middle of the radii, unless given.
        growth : float or array
            e of the weights, above 0.
        """
        prox, c = prox_of(cls.__name__, cls.needs, problem), problem.constants
        if w_0 is None:
            w_0 = 2 * c.radius / c.constraint_bound
        size = default_typical_size(prox) if typical_size is None else typical_size
        return cls(prox, ScaleMixture(size), GrowingPenalty(w_0, growth))
