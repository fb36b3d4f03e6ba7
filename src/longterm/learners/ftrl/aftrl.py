"""A-FTRL: the paper's dual with a follow-the-regularised-leader primal, at three scales.

With z_t = Σ_{s≤t} ∇f_s(x_s), Λ_t = Σ_{s≤t} λ_s, x_1 the centre of B and R = max ‖x_1 − x‖ over B, every round goes

    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t λ_t ) ]₊                               λ_1 = 0
    x_{t+1} = argmin_{x ∈ B} ⟨z_t, x⟩ + ⟨Λ_{t+1}, g(x)⟩ + (a_{t+1}/2)‖x − x_1‖².

In `ftrl` this is a `Multiplier`, which has θ_t and μ_t. The learners differ in the scale:

- `AFTRL` has given constants: a_t = G_f √t/R. For σ-strongly convex losses it follows their quadratic models instead.
- `AdaptiveAFTRL` finds them online: a_{t+1} = √V_t/R, V_t = Σ_{s≤t} ‖∇f_s(x_s)‖². Scaling all losses changes no
  decision. Until the first gradient other than 0 it stays at x_1 with λ = 0.
- `MixedAFTRL` mixes the leaders of eight radii, so that a generous budget does not make the first steps long. It is for
  elastic-net budgets.

Steps: any θ_0 > 0. A larger one lowers the bound on the regret and raises that on the violation. The default is
D²/(10F), and D²/(10R) with constants found online (`docs/proofs/aftrl.md` has the trade-off).
Needs: a fixed constraint, and its prox on B. No horizon.
Guarantees: O(√T + T^β) regret (strongly convex: O(log T + T^β)), O(T^{1−β/2}) for every Σ_t g_j(x_t) (signed). With
constants found online they are data-dependent (`bound(problem, rounds, state=trace.state)`).
Proof: `docs/proofs/aftrl.md`; of the mixture, `docs/proofs/scales.md`.
Not promised: feasibility in a single round, a small Σ [g(x_t)]₊, anything about streams that drift: use `Restarted`.
"""

from __future__ import annotations

import numpy as np

from longterm._base.arrays import FloatArray
from longterm._base.validate import Hyper
from longterm.learners.ftrl.ftrl import FTRL
from longterm.learners.ftrl.ftrl_scales import OnlineScale, scale_for
from longterm.learners.ftrl.multiplier import Multiplier
from longterm.learners.ftrl.scale_mixture import ScaleMixture, default_typical_size
from longterm.learners.ftrl.slots import FTRLState
from longterm.learners.interface.needs import StepKind
from longterm.learners.interface.prox_learner import length_bound, prox_of
from longterm.learners.interface.states import as_numbers
from longterm.problems import Problem
from longterm.theory.bounds import LONG_TERM, REGRET


class AFTRL(FTRL):
    """Keep a long-term budget with sparse decisions, when the size of the gradients is known.

    Follow the regularised leader with one multiplier for each constraint.

    Examples
    --------
    >>> import longterm as lt
    >>> problem = lt.problems.two_dimensional()
    >>> bound = lt.learners.AFTRL.for_problem(problem).bound(problem, 1000)
    >>> round(float(bound["regret"]), 1), round(float(bound["long_term_violation"]), 1)
    (1588.9, 127.5)
    """

    name = "aftrl"
    title = "A-FTRL"
    promises = {REGRET: "O(√T + T^β), O(log T + T^β)", LONG_TERM: "O(T^(1−β/2))"}
    variants = ({}, {"steps": "strongly convex"})

    @classmethod
    def for_problem(
        cls, problem: Problem, *, steps: StepKind = "convex", beta: Hyper = 2 / 3, theta_0: Hyper | None = None
    ) -> AFTRL:
        """Make A-FTRL: the paper's dual with a follow-the-regularised-leader primal.

        Parameters
        ----------
        steps : {"convex", "strongly convex"}
            The losses that the steps are made for.
        beta : float or array
            β in (0, 1). Larger values favour the constraint, smaller ones the regret.
        theta_0 : float or array, optional
            Above 0; D²/(10F) unless given. Larger values favour the regret.
        """
        prox = prox_of(cls.__name__, cls.needs, problem)
        dual = Multiplier.for_range(prox, problem, theta_0, beta)
        return cls(prox, scale_for(problem, steps, problem.constants.radius, 1.0), dual)


class AdaptiveAFTRL(FTRL):
    """Keep a long-term budget with sparse decisions, when no constant is known.

    A-FTRL that finds its constants online.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import streams
    >>> problem = lt.problems.two_dimensional()
    >>> learner = lt.learners.AdaptiveAFTRL.for_problem(problem)
    >>> trace = lt.run(problem, learner, streams.Replay([np.tile([0.8, 0.6], (1000, 1))]))
    >>> round(float(learner.bound(problem, 1000, state=trace.state)["regret"]), 1)
    1295.1
    """

    name = "adaptive_aftrl"
    title = "Adaptive A-FTRL"
    promises = {REGRET: "O(√T + T^β), data-dependent", LONG_TERM: "(τ − 1)[g(x_1)]₊ + O(T^(1−β/2)), data-dependent"}

    @classmethod
    def for_problem(cls, problem: Problem, *, beta: Hyper = 2 / 3, theta_0: Hyper | None = None) -> AdaptiveAFTRL:
        """Make A-FTRL without a known bound on the gradients.

        Parameters
        ----------
        beta : float or array
            β in (0, 1). Larger values favour the constraint, smaller ones the regret.
        theta_0 : float or array, optional
            θ_0 of θ_t = θ_0/(M_t t^β), above 0; D²/(10R) unless given.
        """
        prox = prox_of(cls.__name__, cls.needs, problem)
        dual = Multiplier.for_unit(prox.values_norm_bound(), problem.constants.radius, theta_0, beta)
        return cls(prox, OnlineScale(), dual)


class MixedAFTRL(FTRL):
    """Keep a long-term budget with sparse decisions, when most of the budget may not be needed.

    A-FTRL for eight radii at once, with constants found online.

    For every k and x with ‖x‖ ≤ R_k = R/4^k and g(x) ≤ 0 the regret is at most P_k + N_k plus the dual's term
    (`scale_bounds`), where P_k + N_k is about R_k √V_T (6 + ½ ln(1/π_k)). This holds always if `priced`, else where λ_t
    = 0 or k = 0. The violation is bounded as that of `AdaptiveAFTRL`, with P_0 + N_0 for P.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import streams
    >>> rows = np.random.default_rng(0).standard_normal((500, 20))
    >>> problem = lt.problems.budgeted_logistic(rows, budget=1000.0)
    >>> stream = streams.ResampledRows(rows, np.sign(rows[:, 0]))
    >>> for rule in (lt.learners.AdaptiveAFTRL, lt.learners.MixedAFTRL):
    ...     print(round(float(lt.run(problem, rule.for_problem(problem), stream, 500).cumulative_loss[-1]) / 500, 2))
    1.2
    0.23
    """

    scale: ScaleMixture
    dual: Multiplier

    name = "mixed_aftrl"
    title = "Mixed A-FTRL"
    promises = AdaptiveAFTRL.promises

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
        """Make A-FTRL without a known bound on the gradients, for budgets that may be generous.

        Parameters
        ----------
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
        size = default_typical_size(prox) if typical_size is None else typical_size
        dual = Multiplier.for_unit(prox.values_norm_bound(), problem.constants.radius, theta_0, beta)
        return cls(prox, ScaleMixture(size, priced), dual)

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
