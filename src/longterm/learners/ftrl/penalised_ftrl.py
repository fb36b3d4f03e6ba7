"""Penalised FTRL: a growing penalty in place of multipliers, and O(1) hard violation, at three scales.

With z_t = Σ_{s≤t} ∇f_s(x_s), W_t = Σ_{s≤t} w_s and c the centre of B,

    x_{t+1} = argmin_{x ∈ B} ⟨z_t, x⟩ + W_{t+1} [g(x)]₊ + (a_{t+1}/2)‖x − c‖²,        z_0 = 0.

In `ftrl` this is a `GrowingPenalty`. The learners differ in the scale:

- `PenalisedFTRL` has given constants: a_t = G_f √t/R, w_t = w_0 t^{1+e}, w_0 = (F + RG_f)/D.
- `AdaptivePenalisedFTRL` finds them online: a_{t+1} = √V_t/R with V_t = Σ_{s≤t} ‖∇f_s(x_s)‖², w_{t+1} =
  w_0 M_t (t + 1)^{1+e} with M_t = max_{s≤t} ‖∇f_s(x_s)‖ and w_0 = 2R/D, w_1 = 0. Up to the first gradient other than 0
  it stays at c, where g(c) ≤ 0 must hold.
- `MixedPenalisedFTRL` mixes the leaders of eight radii (elastic-net budgets). They share one ν_t, which never falls.

Needs: a fixed constraint of one function with {g ≤ 0} inside B, and the prox of its positive part. No horizon.
Guarantees: regret at most P_T, with no term for the constraint, and **hard** violation Σ [g(x_t)]₊ = O(1) for every T
at once. Given constants: P_T ≤ (3/2) R G_f √T and (F + RG_f)(1 + 1/e)/w_0. Found online, data-dependent:
P_T = (5/2) R √V_T, or P_0 + N_0 of the mixture (`docs/proofs/aftrl.md`, `docs/proofs/scales.md`).
Not promised: feasibility in a single round, anything about streams that drift: use `Restarted`.
"""

from __future__ import annotations

from longterm._base import validate
from longterm._base.validate import Hyper
from longterm.learners.ftrl.ftrl import FTRL
from longterm.learners.ftrl.ftrl_scales import GivenScale, OnlineScale
from longterm.learners.ftrl.growing_penalty import GrowingPenalty
from longterm.learners.ftrl.scale_mixture import ScaleMixture, default_typical_size
from longterm.learners.interface.needs import Need
from longterm.learners.interface.prox_learner import prox_of
from longterm.problems import Problem
from longterm.theory.bounds import HARD, REGRET


class PenalisedFTRL(FTRL):
    """Keep a budget with a total violation that stops growing, when the size of the gradients is known.

    Follow the regularised leader with a growing penalty on [g]₊.

    Examples
    --------
    >>> import longterm as lt
    >>> problem = lt.problems.budgeted_logistic([[3.0, 4.0, 0.0, 0.0]], budget=1.5)
    >>> bound = lt.learners.PenalisedFTRL.for_problem(problem).bound(problem, [100, 10_000])
    >>> bound["regret"].round(1), bound["hard_violation"].round(2)
    (array([ 72.5, 747.5]), array([4.2 , 4.47]))
    """

    needs = frozenset({Need.FIXED_CONSTRAINT, Need.PENALTY_PROX})
    name = "penalised_ftrl"
    title = "Penalised FTRL"
    promises = {REGRET: "O(√T)", HARD: "O(1)"}

    @classmethod
    def for_problem(cls, problem: Problem, *, w_0: Hyper | None = None, growth: Hyper = 0.5) -> PenalisedFTRL:
        """Make FTRL with a growing penalty on [g]₊, which hardly violates the constraint.

        Parameters
        ----------
        w_0 : float or array, optional
            The first weight; (F + RG_f)/D unless given.
        growth : float or array
            e of w_t = w_0 t^{1+e}, above 0.
        """
        prox, c = prox_of(cls.__name__, cls.needs, problem), problem.constants
        G = validate.positive_scalar("loss_gradient_bound", c.loss_gradient_bound)
        first = (c.loss_range + c.radius * G) / c.constraint_bound if w_0 is None else w_0
        return cls(prox, GivenScale(c.radius / G), GrowingPenalty(first, growth))


class AdaptivePenalisedFTRL(FTRL):
    """Keep a budget with a total violation that stops growing, when no constant is known.

    Penalised FTRL that finds its constants online.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import constraints, losses, sets, streams
    >>> problem = lt.Problem(sets.Ball(2), losses.Linear(2), constraints.L1Budget(2, budget=0.5))
    >>> stream = streams.Replay([np.tile([0.9, 0.1], (500, 1))])
    >>> for rule in (lt.learners.AdaptivePenalisedFTRL, lt.learners.PenalisedFTRL):
    ...     trace = lt.run(problem, rule.for_problem(problem), stream)
    ...     print(trace.state.x.round(2) + 0.0, float(trace.hard_violation[-1].round(2)))
    [-0.5  0. ] 0.0
    [-0.5  0. ] 0.0
    """

    needs = PenalisedFTRL.needs
    name = "adaptive_penalised_ftrl"
    title = "Adaptive penalised FTRL"
    promises = {REGRET: "O(√T), data-dependent", HARD: "O(1), data-dependent"}

    @classmethod
    def for_problem(cls, problem: Problem, *, w_0: Hyper | None = None, growth: Hyper = 0.5) -> AdaptivePenalisedFTRL:
        """Make penalised FTRL without a known bound on the gradients.

        Parameters
        ----------
        w_0 : float or array, optional
            w_0 of w_{t+1} = w_0 M_t (t + 1)^{1+e}, above 0; 2R/D unless given.
        growth : float or array
            e of the weights, above 0.
        """
        prox, c = prox_of(cls.__name__, cls.needs, problem), problem.constants
        first = 2 * c.radius / c.constraint_bound if w_0 is None else w_0
        return cls(prox, OnlineScale(), GrowingPenalty(first, growth))


class MixedPenalisedFTRL(FTRL):
    """Keep a budget with a total violation that stops growing, when most of it may not be needed.

    Penalised FTRL for eight radii at once, with constants found online.

    With λ_t = ν_t − ν_{t−1}, λ_t g(x_t) ≥ w_t [g(x_t)]₊, because ν rises only to where g is 0, or to W_t, which is w_t
    above any ν before.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import streams
    >>> rows = np.random.default_rng(0).standard_normal((500, 20))
    >>> problem = lt.problems.budgeted_logistic(rows, budget=1000.0)
    >>> stream = streams.ResampledRows(rows, np.sign(rows[:, 0]))
    >>> losses = [
    ...     float(lt.run(problem, rule.for_problem(problem), stream, 500).cumulative_loss[-1])
    ...     for rule in (lt.learners.AdaptivePenalisedFTRL, lt.learners.MixedPenalisedFTRL)
    ... ]
    >>> losses[1] < 0.5 * losses[0]
    True
    """

    needs = PenalisedFTRL.needs
    name = "mixed_penalised_ftrl"
    title = "Mixed penalised FTRL"
    promises = AdaptivePenalisedFTRL.promises

    @classmethod
    def for_problem(
        cls, problem: Problem, *, w_0: Hyper | None = None, typical_size: float | None = None, growth: Hyper = 0.5
    ) -> MixedPenalisedFTRL:
        """Make penalised FTRL without a known bound on the gradients, for budgets that may be generous.

        Parameters
        ----------
        w_0 : float or array, optional
            w_0 of w_{t+1} = w_0 M_t (t + 1)^{1+e}, above 0; 2R/D unless given.
        typical_size : float, optional
            r_0; R/4⁴, the middle of the radii, unless given.
        growth : float or array
            e of the weights, above 0.
        """
        prox, c = prox_of(cls.__name__, cls.needs, problem), problem.constants
        first = 2 * c.radius / c.constraint_bound if w_0 is None else w_0
        size = default_typical_size(prox) if typical_size is None else typical_size
        return cls(prox, ScaleMixture(size), GrowingPenalty(first, growth))
