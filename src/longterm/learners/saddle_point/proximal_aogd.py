"""Proximal A-OGD: A-OGD that takes the multiplier's part exactly instead of linearised.

    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t λ_t ) ]₊                                              λ_1 = 0
    x_{t+1} = argmin_{x ∈ B} ⟨∇f_t(x_t), x⟩ + ⟨λ_{t+1}, g(x)⟩ + ‖x − x_t‖²/(2η_t)              x_1 = centre of B

The new multiplier is used: it is known before x_{t+1} is played. Affine constraints have a multiplier each.

Steps: neither condition C2 nor ∇g is needed. θ_t = θ_0/t^β with any θ_0 > 0 (D²/(10F) by default),
μ_t = 1/(θ_t (t + 1)), and η_t for the losses alone: Δ/(√2 G_f √t), or 1/(σt) for strongly convex ones.
Needs: a fixed constraint, and its prox on B. No horizon.
Guarantees: O(√T + T^β) regret (strongly convex: O(log T + T^β)), O(T^{1−β/2}) for every Σ_t g_j(x_t) (signed), against
losses of an adversary (`docs/proofs/aftrl.md`).
Not promised: feasibility in a single round, a small Σ [g(x_t)]₊.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longterm._base.arrays import Array, as_column
from longterm._base.validate import Hyper
from longterm.learners.ftrl.ftrl_scales import GivenScale, StronglyConvexScale, scale_for
from longterm.learners.ftrl.multiplier import Multiplier, MultiplierState
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.needs import StepKind
from longterm.learners.interface.prox_learner import ProxLearner, as_reported, prox_of, values_of
from longterm.problems import Problem
from longterm.theory.bounds import LONG_TERM, REGRET, BoundValues, Rounds, horizons_of
from longterm.theory.step_sums import power_sum


class ProximalAOGDState(NamedTuple):
    """The state (t, x_t) and the multipliers."""

    round: Array
    x: Array
    dual: MultiplierState

    @property
    def multiplier(self) -> Array:
        """λ_t, shape (..., m)."""
        return self.dual.multiplier


@dataclass(frozen=True, eq=False)
class ProximalAOGD(ProxLearner[ProximalAOGDState]):
    """Keep a long-term limit whose proximal map is known, with steps that hold the limit itself.

    A-OGD with the constraint itself in the step instead of its gradient.

    Parameters
    ----------
    prox : Prox
        The closed form of the step, from `Constraint.prox(over)`.
    scale : GivenScale or StronglyConvexScale
        The step sizes η_t: for convex losses, or for strongly convex ones.
    dual : Multiplier
        The multiplier rule, with its θ_0 and β.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import streams
    >>> problem = lt.problems.two_dimensional()  # g = x₁ − ¼
    >>> learner = lt.learners.ProximalAOGD.for_problem(problem, steps="strongly convex")
    >>> lt.run(problem, learner, streams.Replay([np.tile([0.8, 0.6], (2000, 1))])).state.x.round(2)
    array([0.25, 0.6 ])
    """

    scale: GivenScale | StronglyConvexScale
    dual: Multiplier

    name = "proximal_aogd"
    title = "Proximal A-OGD"
    promises = {REGRET: "O(√T + T^β), O(log T + T^β)", LONG_TERM: "O(T^(1−β/2))"}
    variants = ({}, {"steps": "strongly convex"})

    @classmethod
    def for_problem(
        cls, problem: Problem, *, steps: StepKind = "convex", beta: Hyper = 2 / 3, theta_0: Hyper | None = None
    ) -> ProximalAOGD:
        """Make A-OGD that takes the multiplier's part exactly, by the prox of the constraint.

        Parameters
        ----------
        steps : {"convex", "strongly convex"}
            η_t = Δ/(√2 G_f √t), or 1/(σt).
        beta : float or array
            β in (0, 1). Larger values favour the constraint, smaller ones the regret.
        theta_0 : float or array, optional
            Above 0; D²/(10F) unless given. Larger values favour the regret.
        """
        prox = prox_of(cls.__name__, cls.needs, problem)
        dual = Multiplier.for_range(prox, problem, theta_0, beta)
        return cls(prox, scale_for(problem, steps, problem.constants.diameter, 2**0.5), dual)

    @property
    def strong_convexity(self) -> Hyper:
        return self.scale.strong_convexity

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bounds of `Multiplier` for the primal term P below.

        Convex losses, η_t = s/√t: P = r²/(2s) + (Δ²/(2s)) (√T − 1) + (G_f²/2) Σ η_t, with r = max ‖x_1 − x‖ over B.
        Strongly convex losses, η_t = 1/(σt): P = (G_f²/(2σ)) (1 + ln T).
        """
        T, c = horizons_of(rounds, self.batch_shape), problem.constants
        if isinstance(self.scale, StronglyConvexScale):
            P = self.scale.primal(self.prox, problem, T, None)
        else:
            s = np.asarray(self.scale.step)
            P = (c.radius**2 + c.diameter**2 * (np.sqrt(T) - 1)) / (2 * s)
            P = P + c.loss_gradient_bound**2 * s / 2 * power_sum(T, 0.5)
        return self.dual.bounds(P, self.prox, self.scale, problem, T, None)

    def first_state(self, t: Array, x: Array) -> ProximalAOGDState:
        return ProximalAOGDState(t, x, self.dual.start(self.prox.constraint.count, x))

    def update(self, state: ProximalAOGDState, feedback: Feedback) -> ProximalAOGDState:
        values = values_of(feedback, self.prox.constraint.count)
        dual = self.dual.ascend(state.dual, state.round, values)
        curvature = 1 / self.scale.eta(state.round, state.x)
        slope = feedback.loss_gradient - as_column(curvature) * state.x
        return ProximalAOGDState(state.round + 1, self.prox.argmin(slope, dual.multiplier, curvature), dual)

    def report(self, state: ProximalAOGDState) -> dict[str, Array]:
        theta, mu = self.dual.steps(state.round, state.x)
        eta = self.scale.eta(state.round, state.x)
        return {"multiplier": as_reported(state.multiplier), "theta": theta, "eta": eta, "mu": mu}
