"""A-FTRL with constants found online: nothing about the losses is known beforehand, not even a gradient bound.

The rule is that of `AFTRL`, with steps from the gradients so far. In `ftrl` this is a `Multiplier` with an
`OnlineScale`: with V_t = Σ_{s≤t} ‖∇f_s(x_s)‖² and M_t = max_{s≤t} ‖∇f_s(x_s)‖,

    x_{t+1} = argmin_{x ∈ B} ⟨z_t, x⟩ + ⟨Λ_{t+1}, g(x)⟩ + (√V_t/(2R))‖x − x_1‖²
    θ_t = θ_0/(M_t t^β),   θ_0 = D²/(10R),   μ_t = 1/(θ_t (t + 1)).

Until round τ, the first with a gradient other than 0, the learner stays at x_1 with λ = 0. R and D belong to the set
and to the constraint. If all losses are scaled by s, so is λ, and the decisions stay the same.
Needs: a fixed constraint, and its prox on B. No horizon, no G_f, no F.
Guarantees, from what happened (`bound(problem, rounds, state=trace.state)`): regret at most (5/2) R √V_T +
5 R M_T (1 + (T^β − 1)/β), and for every Σ_t g_j(x_t) at most (τ − 1)[g_j(x_1)]₊ plus a term from the θ_t that
occurred. Tiny first gradients make early θ_t, and with them that term, large; decisions do not suffer.
Not promised: what `AFTRL` does not promise. Proof: `docs/aftrl.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from longterm._validate import Hyper
from longterm.learners.ftrl import FTRL
from longterm.learners.ftrl_scales import OnlineScale
from longterm.learners.multiplier import Multiplier, default_theta_0
from longterm.learners.prox_learner import prox_of
from longterm.problems import Problem
from longterm.theory.bounds import LONG_TERM, REGRET


@dataclass(frozen=True, eq=False)
class AdaptiveAFTRL(FTRL):
    """A-FTRL that finds the losses' scale by itself.

    Parameters
    ----------
    prox : Prox
        The closed form of the argmin, from `Constraint.prox(over)`.
    scale : OnlineScale
        The curvature √V/R.
    dual : Multiplier
        θ_0, per unit of the gradients, and β.

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
        REGRET: "O(√T + T^β), from what happened",
        LONG_TERM: "(τ − 1)[g(x_1)]₊ + O(T^(1−β/2)), from what happened",
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
