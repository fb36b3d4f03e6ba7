"""A-FTRL with a mixture of scales: a generous budget does not make the first steps long.

In `ftrl` this is a `Multiplier` with a `ScaleMixture`: the leaders of eight radii R_k = R/4^k and an expert at 0 share
z, V, Λ and the dual of `AdaptiveAFTRL`, driven by g(x_t). By default the mixture's weights do not depend on λ. With
`priced` experts are also charged λ_t g(x^k_t), known before the round.

Needs: an elastic-net budget, so that all leaders lie on one ray. No horizon, no G_f, no F.
Guarantees, from what happened: for every k and x with ‖x‖ ≤ R_k and g(x) ≤ 0 the regret is at most P_k + N_k plus the
dual's term, where P_k + N_k is about R_k √V_T (6 + ½ ln(1/π_k)) (`scale_bounds`). This holds always if `priced`, else
where λ_t = 0 or k = 0. The violation is bounded as that of `AdaptiveAFTRL`, with P_0 + N_0 for P. Proof:
`docs/scales.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longterm._arrays import FloatArray
from longterm._validate import Hyper
from longterm.learners.ftrl import FTRL, FTRLState
from longterm.learners.multiplier import Multiplier, default_theta_0
from longterm.learners.prox_learner import length_bound, prox_of
from longterm.learners.scale_mixture import ScaleMixture, default_typical_size
from longterm.problems import Problem
from longterm.theory.bounds import LONG_TERM, REGRET


@dataclass(frozen=True, eq=False)
class MixedAFTRL(FTRL):
    """A-FTRL with constants found online and eight radii in one leader.

    Parameters
    ----------
    prox : ElasticNetProx
        Of the budget, on a ball about 0.
    scale : ScaleMixture
        r_0, and whether experts are charged for the constraint.
    dual : Multiplier
        θ_0, per unit of the gradients, and β.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import AdaptiveAFTRL, MixedAFTRL
    >>> from longterm.problems import budgeted_logistic
    >>> from longterm.streams import ResampledRows
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((500, 20))
    >>> labels = np.sign(rows[:, 0] - 0.5 * rows[:, 1] + rng.standard_normal(500))
    >>> for budget in (1.0, 1000.0):
    ...     problem = budgeted_logistic(rows, budget=budget)
    ...     for rule in (AdaptiveAFTRL, MixedAFTRL):
    ...         trace = run(problem, rule.for_problem(problem), ResampledRows(rows, labels), rounds=500)
    ...         print(budget, rule.__name__, round(float(trace.cumulative_loss[-1]) / 500, 2))
    1.0 AdaptiveAFTRL 0.57
    1.0 MixedAFTRL 0.58
    1000.0 AdaptiveAFTRL 3.2
    1000.0 MixedAFTRL 0.53
    """

    scale: ScaleMixture
    dual: Multiplier

    name: ClassVar[str] = "mixed_aftrl"
    title: ClassVar[str] = "Mixed A-FTRL"
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T + T^β), from what happened",
        LONG_TERM: "(τ − 1)[g(x_1)]₊ + O(T^(1−β/2)), from what happened",
    }

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        beta: Hyper = 2 / 3,
        theta_0: Hyper | None = None,
        typical_size: float | None = None,
        priced: bool = False,
    ) -> MixedAFTRL:
        """Make A-FTRL without a known bound on the gradients, unharmed by a generous budget.

        Parameters
        ----------
        problem : Problem
            Gives the ball, the budget, R and D.
        beta : float or array
            β in (0, 1). Larger values favour the constraint, smaller ones the regret.
        theta_0 : float or array, optional
            θ_0 of θ_t = θ_0/(M_t t^β), above 0; D²/(10R) unless given.
        typical_size : float, optional
            r_0; R/4⁴, the middle of the radii, unless given.
        priced : bool
            True to charge experts λ_t g(x^k_t). Then the regret's theorem holds for every radius.
        """
        prox = prox_of(cls.__name__, cls.needs, problem)
        if theta_0 is None:
            theta_0 = default_theta_0(prox.values_norm_bound(), problem.constants.radius)
        size = default_typical_size(prox) if typical_size is None else typical_size
        return cls(prox, ScaleMixture(size, priced), Multiplier(theta_0, beta))

    def scale_bounds(self, problem: Problem, state: FTRLState) -> FloatArray:
        """Return the regret's bound against every x within radius R_k, shape (..., 9); the last is against x = 0.

        With `priced` it holds for any losses, else where λ = 0, and for k = 0 and x = 0 always.

        Examples
        --------
        >>> from longterm import Problem, run
        >>> from longterm.constraints import ElasticNetBudget
        >>> from longterm.learners import MixedAFTRL
        >>> from longterm.losses import Linear
        >>> from longterm.streams import SwitchingCosts
        >>> g = ElasticNetBudget(5, budget=1.0)
        >>> problem = Problem(g.enclosing_ball(), Linear(5), g)
        >>> learner = MixedAFTRL.for_problem(problem)
        >>> trace = run(problem, learner, SwitchingCosts(5), rounds=1000)
        >>> bounds = learner.scale_bounds(problem, trace.state)
        >>> bounds.shape, bool(bounds[0] == learner.bound(problem, 1000, state=trace.state)["regret"])
        ((9,), True)
        """
        P, D, M = self.scale.primal_bounds(self.prox, state.scale), length_bound(self.prox, problem), state.scale
        made = [self.dual.regret_after(P[..., k], D, state.round, M.largest_gradient) for k in range(P.shape[-1])]
        if not self.scale.priced:
            made[-1] = P[..., -1]
        return np.stack(made, axis=-1)
