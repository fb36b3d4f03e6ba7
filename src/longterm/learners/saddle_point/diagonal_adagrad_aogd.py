"""A-OGD with a step for each coordinate: diagonal AdaGrad on a box (after the paper's discussion section).

With d_t = ∇f_t(x_t) + λ_t ∇g(x_t), g = max_j g_j, and Δ_k the width of the box in coordinate k,

    x_{t+1,k} = clip( x_{t,k} − η_{t,k} d_{t,k} ),        η_{t,k} = Δ_k / √( 2 Σ_{s≤t} d_{s,k}² ),      x_1 = centre
    λ_{t+1}   = [ λ_t + μ_t ( g(x_t) − θ_t λ_t ) ]₊       θ_t = θ_0/t^β,   μ_t = 1/(θ_t (t + 1)),      λ_1 = 0

Steps: any θ_0 > 0, since a term of the bound replaces condition C2. The default is A-OGD's 3ΔG. Where few coordinates
have large gradients, the others keep long steps. It can be worse than A-OGD, as first steps are as wide as the set.
Needs: a box. No horizon.
Guarantees: `theorem`, for g_t that change (`docs/proofs/after_the_paper.md`).
Not promised: feasibility in a single round, a small Σ [g(x_t)]₊.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from longterm._base.arrays import Array, FloatArray, like
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.learners.ftrl.multiplier import Multiplier
from longterm.learners.interface.prox_learner import as_reported
from longterm.learners.saddle_point.adagrad_aogd import AdaGradAOGD, AdaGradAOGDState
from longterm.problems import Problem
from longterm.problems.sets import Box
from longterm.theory.bounds import REGRET, SIGNED, BoundValues, NoTheoremError, Rounds, horizons_of
from longterm.theory.paper import violation_bound
from longterm.theory.step_sums import power_sum


@dataclass(frozen=True, eq=False)
class DiagonalAdaGradAOGD(AdaGradAOGD):
    """A-OGD on a box with a step for each coordinate.

    Parameters
    ----------
    enclosing_set : Box
        B, the box.
    dual : Multiplier
        θ_0 and β.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import constraints, losses, streams
    >>> at_least = constraints.Affine([[-1.0, -1.0]], [0.5])  # x₁ + x₂ ≥ −½
    >>> problem = lt.Problem(lt.problems.sets.Box.cube(2, -1.0, 1.0), losses.Linear(2), at_least)
    >>> learner = lt.learners.DiagonalAdaGradAOGD.for_problem(problem)
    >>> lt.run(problem, learner, streams.Replay([np.tile([0.9, 0.1], (5000, 1))])).state.x.round(2)
    array([-1.  ,  0.04])
    """

    finds_unit = False
    name = "diagonal_adagrad_aogd"
    title = "Diagonal AdaGrad A-OGD"
    promises = {REGRET: "O(T^max(β, 1/2))", SIGNED: "O(T^(1−β/2))"}

    drifting = ()

    def __post_init__(self) -> None:
        if not isinstance(self.enclosing_set, Box):
            what = f"is a {type(self.enclosing_set).__name__}, and coordinates can only move alone in a box"
            raise InputError("enclosing_set", what, "Use a Box, or A-OGD with AdaGrad-norm steps on other sets")

    @classmethod
    def for_problem(cls, problem: Problem, *, beta: Hyper = 2 / 3, theta_0: Hyper | None = None) -> DiagonalAdaGradAOGD:
        """Make A-OGD with AdaGrad's step for each coordinate, on a box.

        Parameters
        ----------
        beta : float or array
            β in (0, 1). Larger values favour the constraint, smaller ones (down to ½) the regret.
        theta_0 : float or array, optional
            Above 0; A-OGD's 3ΔG unless given.
        """
        c = problem.constants
        theta = 3 * c.diameter * c.gradient_bound if theta_0 is None else theta_0
        return cls(problem.enclosing_set, Multiplier(theta, beta))

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bounds against x* with g_t(x*) ≤ 0 in every round, for any losses.

            Σ f_t(x_t) − f_t(x*) ≤ D² S_μ + 2ΔG_f √T + Δ²G_g²/m_T,       m_T = min_{2≤t≤T} θ_t (t − 1)/(2(t + 1))
            Σ g_t(x_t)           ≤ √( 2 (S_θ + θ_0) (that + F T) )

        m_T is attained at 2 or at T, and S_μ ≤ (1/θ_0) Σ t^{β−1}.
        """
        T, c = horizons_of(rounds, self.batch_shape), problem.constants
        theta_0, beta = np.asarray(self.dual.theta_0), np.asarray(self.dual.beta)

        def slack(t: FloatArray) -> FloatArray:
            """Return θ_t (t − 1)/(2(t + 1)), the multiple of λ_t² that the dual leaves for the x-step."""
            return np.asarray(theta_0 / t**beta * (t - 1) / (2 * (t + 1)))

        least = np.minimum(slack(np.asarray(2.0)), slack(np.maximum(T, 2.0)))
        pull = np.where(T > 1, (c.diameter * c.constraint_gradient_bound) ** 2 / least, 0.0)
        dual = c.constraint_bound**2 / theta_0 * power_sum(T, 1 - beta)
        regret = dual + 2 * c.diameter * c.loss_gradient_bound * np.sqrt(T) + pull
        weight = theta_0 * (power_sum(T, beta) + 1)
        return {REGRET: regret, SIGNED: violation_bound(weight, regret, c, T)}

    def theorem_after(self, problem: Problem, state: AdaGradAOGDState) -> BoundValues:
        raise NoTheoremError("its theorem is not about a state", "Leave the state out")

    def squares(self, descent: Array) -> Array:
        """Return d_k² of every coordinate k."""
        return descent**2

    def widths(self, x: Array) -> Array:
        """Return Δ_k of every coordinate k, for decisions like x."""
        box = cast(Box, self.enclosing_set)
        return like(box.upper - box.lower, x)

    def report(self, state: AdaGradAOGDState) -> dict[str, Array]:
        theta, mu = self.dual.steps(state.round, state.x)
        return {"multiplier": as_reported(state.multiplier), "theta": theta, "mu": mu}
