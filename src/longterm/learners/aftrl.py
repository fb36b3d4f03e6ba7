"""A-FTRL: the paper's dual with a follow-the-regularised-leader primal, at three scales.

With z_t = Σ_{s≤t} ∇f_s(x_s), Λ_t = Σ_{s≤t} λ_s, x_1 the centre of B, R = max ‖x_1 − x‖ over B and M_t a unit of the
losses, every round goes

    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t λ_t ) ]₊                               λ_1 = 0
    x_{t+1} = argmin_{x ∈ B} ⟨z_t, x⟩ + ⟨Λ_{t+1}, g(x)⟩ + (a_{t+1}/2)‖x − x_1‖²
    θ_t = θ_0/(M_t t^β),   μ_t = 1/(θ_t (t + 1)).

In `ftrl` this is a `Multiplier`. The learners differ in the scale:

- `AFTRL` has given constants: a_t = G_f √t/R, M_t = 1. For σ-strongly convex losses it follows the losses' quadratic
  models instead: argmin Σ_{s≤t} [ ⟨∇f_s(x_s), x⟩ + (σ/2)‖x − x_s‖² ] + ⟨Λ_{t+1}, g(x)⟩.
- `AdaptiveAFTRL` finds them online: a_{t+1} = √V_t/R, V_t = Σ_{s≤t} ‖∇f_s(x_s)‖², M_t = max_{s≤t} ‖∇f_s(x_s)‖. It
  knows no G_f and no F. Until round τ, the first with a gradient other than 0, it stays at x_1 with λ = 0. If all
  losses are scaled by s, so is λ, and the decisions stay the same.
- `MixedAFTRL` mixes the leaders of eight radii, so that a generous budget does not make the first steps long. It is for
  elastic-net budgets.

Steps: any θ_0 > 0. A larger one lowers the bound on the regret and raises that on the violation. The sum of regret and
(F/D)·violation has its smallest bound at θ_0 = 0.72 D²/F (β = 2/3, given constants). On data smaller ones do better:
the default is D²/(10F), and D²/(10R) with constants found online.
Needs: a fixed constraint, and its prox on B. No horizon.
Guarantees: O(√T + T^β) regret (strongly convex: O(log T + T^β)), O(T^{1−β/2}) for every Σ_t g_j(x_t) (signed). With
constants found online they are data-dependent (`bound(problem, rounds, state=trace.state)`). Proofs and history:
`docs/proofs/aftrl.md`, `docs/proofs/scales.md`.
Not promised: feasibility in a single round, a small Σ [g(x_t)]₊, anything about streams that drift. z and Λ only
accumulate; use `Restarted` for such streams.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from longterm._arrays import FloatArray
from longterm._validate import Hyper, positive_scalar
from longterm.learners.ftrl import FTRL, FTRLState
from longterm.learners.ftrl_scales import OnlineScale, scale_for
from longterm.learners.multiplier import Multiplier, default_theta_0
from longterm.learners.needs import StepKind
from longterm.learners.prox_learner import as_numbers, length_bound, prox_of
from longterm.learners.scale_mixture import ScaleMixture, default_typical_size
from longterm.problems import Problem
from longterm.theory.bounds import LONG_TERM, REGRET


class AFTRL(FTRL):
    """FTRL with a multiplier for each constraint and steps from given constants.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import AFTRL
    >>> from longterm.problems import budgeted_logistic, two_dimensional
    >>> from longterm.streams import ResampledRows
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((500, 20))
    >>> labels = np.sign(rows[:, 0] - 0.5 * rows[:, 1] + 0.1 * rng.standard_normal(500))
    >>> problem = budgeted_logistic(rows, budget=1.0)
    >>> trace = run(problem, AFTRL.for_problem(problem), ResampledRows(rows, labels), rounds=2000)
    >>> trace.state.x.round(2)[:4], int(np.count_nonzero(trace.state.x))
    (array([ 0.58, -0.23,  0.  ,  0.  ]), 2)
    >>> problem = two_dimensional()
    >>> bound = AFTRL.for_problem(problem).bound(problem, 1000)
    >>> round(float(bound["regret"]), 1), round(float(bound["long_term_violation"]), 1)
    (1588.9, 127.5)
    """

    name: ClassVar[str] = "aftrl"
    title: ClassVar[str] = "A-FTRL"
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T + T^β), O(log T + T^β)",
        LONG_TERM: "O(T^(1−β/2))",
    }
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"steps": "strongly convex"})

    @classmethod
    def for_problem(
        cls, problem: Problem, *, steps: StepKind = "convex", beta: Hyper = 2 / 3, theta_0: Hyper | None = None
    ) -> AFTRL:
        """Make A-FTRL: the paper's dual with a follow-the-regularised-leader primal.

        Parameters
        ----------
        problem : Problem
            Gives B, the prox of g, R, G_f, D and F, or σ.
        steps : {"convex", "strongly convex"}
            The losses that the steps are made for.
        beta : float or array
            β in (0, 1). Larger values favour the constraint, smaller ones the regret.
        theta_0 : float or array, optional
            Above 0; D²/(10F) unless given. Larger values favour the regret.
        """
        prox, c = prox_of(cls.__name__, cls.needs, problem), problem.constants
        scale = scale_for(problem, steps, c.radius, 1.0)
        if theta_0 is None:
            theta_0 = default_theta_0(prox.values_norm_bound(), positive_scalar("loss_range", c.loss_range))
        return cls(prox, scale, Multiplier(theta_0, beta))


class AdaptiveAFTRL(FTRL):
    """A-FTRL with constants found online.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import AdaptiveAFTRL
    >>> from longterm.problems import two_dimensional
    >>> from longterm.streams import Replay
    >>> problem = two_dimensional()
    >>> learner = AdaptiveAFTRL.for_problem(problem)
    >>> trace = run(problem, learner, Replay([np.tile([0.8, 0.6], (1000, 1))]))
    >>> bound = learner.bound(problem, 1000, state=trace.state)
    >>> round(float(bound["regret"]), 1), round(float(bound["long_term_violation"]), 1)
    (1295.1, 136.6)
    """

    name: ClassVar[str] = "adaptive_aftrl"
    title: ClassVar[str] = "Adaptive A-FTRL"
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T + T^β), data-dependent",
        LONG_TERM: "(τ − 1)[g(x_1)]₊ + O(T^(1−β/2)), data-dependent",
    }

    @classmethod
    def for_problem(cls, problem: Problem, *, beta: Hyper = 2 / 3, theta_0: Hyper | None = None) -> AdaptiveAFTRL:
        """Make A-FTRL without a known bound on the gradients.

        Parameters
        ----------
        problem : Problem
            Gives B, the prox of g, R and D. Nothing is read off its losses.
        beta : float or array
            β in (0, 1). Larger values favour the constraint, smaller ones the regret.
        theta_0 : float or array, optional
            θ_0 of θ_t = θ_0/(M_t t^β), above 0; D²/(10R) unless given.
        """
        prox = prox_of(cls.__name__, cls.needs, problem)
        if theta_0 is None:
            theta_0 = default_theta_0(prox.values_norm_bound(), problem.constants.radius)
        return cls(prox, OnlineScale(), Multiplier(theta_0, beta))


class MixedAFTRL(FTRL):
    """A-FTRL with constants found online and eight radii in one leader.

    For every k and x with ‖x‖ ≤ R_k = R/4^k and g(x) ≤ 0 the regret is at most P_k + N_k plus the dual's term
    (`scale_bounds`), where P_k + N_k is about R_k √V_T (6 + ½ ln(1/π_k)). This holds always if `priced`, else where
    λ_t = 0 or k = 0. The violation is bounded as that of `AdaptiveAFTRL`, with P_0 + N_0 for P.

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
    >>> problem = budgeted_logistic(rows, budget=1000.0)
    >>> for rule in (AdaptiveAFTRL, MixedAFTRL):
    ...     trace = run(problem, rule.for_problem(problem), ResampledRows(rows, labels), rounds=500)
    ...     print(rule.__name__, round(float(trace.cumulative_loss[-1]) / 500, 2))
    AdaptiveAFTRL 3.2
    MixedAFTRL 0.53
    """

    scale: ScaleMixture
    dual: Multiplier

    name: ClassVar[str] = "mixed_aftrl"
    title: ClassVar[str] = "Mixed A-FTRL"
    promises: ClassVar[Mapping[str, str]] = AdaptiveAFTRL.promises

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
        """
        P, T = self.scale.primal_bounds(self.prox, state.scale), as_numbers(state.round) - 1
        D, unit = length_bound(self.prox, problem), state.scale.largest_gradient
        made = [self.dual.terms(P[..., k], D, problem, T, state.dual, unit)[0] for k in range(P.shape[-1])]
        if not self.scale.priced:
            made[-1] = P[..., -1]
        return np.stack(made, axis=-1)
