"""A-FTRL: the paper's dual with a follow-the-regularised-leader primal, for convex and for strongly convex losses.

With z_t = Σ_{s≤t} ∇f_s(x_s), Λ_t = Σ_{s≤t} λ_s and x_1 the centre of B,

    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t λ_t ) ]₊                                              λ_1 = 0
    x_{t+1} = argmin_{x ∈ B} ⟨z_t, x⟩ + ⟨Λ_{t+1}, g(x)⟩ + ‖x − x_1‖²/(2η_{t+1})

and for σ-strongly convex losses each loss is remembered by its quadratic model:

    x_{t+1} = argmin_{x ∈ B} Σ_{s≤t} [ ⟨∇f_s(x_s), x⟩ + (σ/2)‖x − x_s‖² ] + ⟨Λ_{t+1}, g(x)⟩.

In `ftrl` this is a `Multiplier` with a `GivenScale` or a `StronglyConvexScale`.

Steps: η_t = R/(G_f √t), θ_t = θ_0/t^β with any θ_0 > 0, μ_t = 1/(θ_t (t + 1)). R = max ‖x_1 − x‖ over B. A larger θ_0
lowers the bound on the regret and raises that on the violation. The sum of regret and (F/D)·violation has its smallest
bound at θ_0 = 0.72 D²/F (β = 2/3). On data smaller ones do better: the default is D²/(10F).
Needs: a fixed constraint, and its prox on B. No horizon.
Guarantees: O(√T + T^β) regret (strongly convex: O(log T + T^β)), O(T^{1−β/2}) for every Σ_t g_j(x_t) (signed).
Not promised: feasibility in a single round, a small Σ [g(x_t)]₊, anything about streams that drift. z and Λ only
accumulate; use `Restarted` for such streams. Proof and history: `docs/aftrl.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from longterm._validate import Hyper, positive_scalar
from longterm.learners.ftrl import FTRL
from longterm.learners.ftrl_scales import scale_for
from longterm.learners.multiplier import Multiplier, default_theta_0
from longterm.learners.needs import StepKind
from longterm.learners.prox_learner import prox_of
from longterm.problems import Problem
from longterm.theory.bounds import LONG_TERM, REGRET


@dataclass(frozen=True, eq=False)
class AFTRL(FTRL):
    """FTRL with a multiplier for each constraint and steps from given constants.

    Parameters
    ----------
    prox : Prox
        The closed form of the argmin, from `Constraint.prox(over)`.
    scale : GivenScale or StronglyConvexScale
        η_t: for convex losses, or for strongly convex ones.
    dual : Multiplier
        θ_0 and β.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import AFTRL
    >>> from longterm.problems import budgeted_logistic, two_dimensional
    >>> from longterm.streams import Replay, ResampledRows
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((500, 20))
    >>> labels = np.sign(rows[:, 0] - 0.5 * rows[:, 1] + 0.1 * rng.standard_normal(500))
    >>> problem = budgeted_logistic(rows, budget=1.0)
    >>> trace = run(problem, AFTRL.for_problem(problem), ResampledRows(rows, labels), rounds=2000)
    >>> trace.state.x.round(2)[:4], int(np.count_nonzero(trace.state.x))
    (array([ 0.58, -0.23,  0.  ,  0.  ]), 2)
    >>> problem = two_dimensional()  # g = x₁ − ¼
    >>> bound = AFTRL.for_problem(problem).bound(problem, 1000)
    >>> round(float(bound["regret"]), 1), round(float(bound["long_term_violation"]), 1)
    (1588.9, 127.5)
    >>> learner = AFTRL.for_problem(problem, steps="strongly convex")
    >>> run(problem, learner, Replay([np.tile([0.8, 0.6], (2000, 1))])).state.x.round(2)
    array([0.25, 0.6 ])
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
