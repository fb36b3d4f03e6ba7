"""Penalised FTRL: a penalty that grows by itself in place of multipliers, and O(1) hard violation.

With z_t = Σ_{s≤t} ∇f_s(x_s), W_t = Σ_{s≤t} w_s, w_t = w_0 t^{1+e}, and c the centre of B,

    x_{t+1} = argmin_{x ∈ B} ⟨z_t, x⟩ + W_{t+1} [g(x)]₊ + ‖x − c‖²/(2η_{t+1}),        z_0 = 0.

In `ftrl` this is a `GrowingPenalty` with a `GivenScale`. Each round solves for one scalar root ν, which the budgets
have in closed form.

Steps: η_t = R/(G_f √t). w_0 = (F + RG_f)/D and e = ½ unless given.
Needs: a fixed constraint of one function with {g ≤ 0} inside B, and the prox of its positive part. No horizon.
Guarantees: regret at most (3/2) R G_f √T, with no term for the constraint, and **hard** violation
Σ [g(x_t)]₊ ≤ (F + RG_f)(1 + 1/e)/w_0 for every T at once (`docs/aftrl.md`).
Not promised: feasibility in a single round, anything about streams that drift. z only accumulates; use `Restarted`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from longterm import _validate as validate
from longterm._validate import Hyper
from longterm.learners.ftrl import FTRL
from longterm.learners.ftrl_scales import GivenScale
from longterm.learners.growing_penalty import GrowingPenalty
from longterm.learners.needs import Need
from longterm.learners.prox_learner import prox_of
from longterm.problems import Problem
from longterm.theory.bounds import HARD, REGRET


@dataclass(frozen=True, eq=False)
class PenalisedFTRL(FTRL):
    """FTRL with a growing penalty on [g]₊ and steps from given constants.

    Parameters
    ----------
    prox : PenaltyProx
        The closed form of the argmin with [g]₊, from `Constraint.prox(over)`.
    scale : GivenScale
        η_t = step/√t.
    dual : GrowingPenalty
        w_0 and e.

    Examples
    --------
    >>> from longterm import Problem, run
    >>> from longterm.learners import PenalisedFTRL
    >>> from longterm.constraints import ElasticNetBudget
    >>> from longterm.losses import Linear
    >>> from longterm.problems import budgeted_logistic
    >>> from longterm.streams import SwitchingCosts
    >>> g = ElasticNetBudget(5, budget=1.0)
    >>> problem = Problem(g.enclosing_ball(), Linear(5), g)
    >>> trace = run(problem, PenalisedFTRL.for_problem(problem), SwitchingCosts(5), rounds=1000, record=[10, 1000])
    >>> trace.hard_violation.round(3)
    array([0., 0.])
    >>> problem = budgeted_logistic([[3.0, 4.0, 0.0, 0.0]], budget=1.5)
    >>> bound = PenalisedFTRL.for_problem(problem).bound(problem, [100, 10_000])
    >>> bound["regret"].round(1), bound["hard_violation"].round(2)
    (array([ 72.5, 747.5]), array([4.2 , 4.47]))
    """

    needs: ClassVar[frozenset[Need]] = frozenset({Need.FIXED_CONSTRAINT, Need.PENALTY_PROX})
    name: ClassVar[str] = "penalised_ftrl"
    title: ClassVar[str] = "Penalised FTRL"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(√T)", HARD: "O(1)"}

    @classmethod
    def for_problem(cls, problem: Problem, *, w_0: Hyper | None = None, growth: Hyper = 0.5) -> PenalisedFTRL:
        """Make FTRL with a growing penalty on [g]₊, which hardly violates the constraint.

        Parameters
        ----------
        problem : Problem
            Gives B, the prox of [g]₊, R, G_f, D and F.
        w_0 : float or array, optional
            The first weight; (F + RG_f)/D unless given.
        growth : float or array
            e of w_t = w_0 t^{1+e}, above 0.
        """
        prox, c = prox_of(cls.__name__, cls.needs, problem), problem.constants
        G = validate.positive_scalar("loss_gradient_bound", c.loss_gradient_bound)
        if w_0 is None:
            w_0 = (c.loss_range + c.radius * G) / c.constraint_bound
        return cls(prox, GivenScale(c.radius / G), GrowingPenalty(w_0, growth))
