"""Proximal A-OGD: A-OGD that takes the multiplier's part exactly instead of linearised.

    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t λ_t ) ]₊                                              λ_1 = 0
    x_{t+1} = argmin_{x ∈ B} ⟨∇f_t(x_t), x⟩ + ⟨λ_{t+1}, g(x)⟩ + ‖x − x_t‖²/(2η_t)              x_1 = centre of B

The new multiplier is used: it is known before x_{t+1} is played. Affine constraints have a multiplier each.

Steps: condition C2, which ties θ_t to η_t G² in A-OGD, is not needed, nor is ∇g: θ_t = θ_0/t^β with any θ_0 > 0,
μ_t = 1/(θ_t (t + 1)), and η_t for the losses alone: Δ/(√2 G_f √t) for convex ones, 1/(σt) for strongly convex ones.
The default θ_0 is D²/(10F); `AFTRL` says what it trades.
Needs: a fixed constraint, and its prox on B (`Constraint.prox`). No horizon.
Guarantees: O(√T + T^β) regret (strongly convex: O(log T + T^β)), O(T^{1−β/2}) for every Σ_t g_j(x_t) (signed), against
losses of an adversary (`docs/aftrl.md`).
Not promised: feasibility in a single round, a small Σ [g(x_t)]₊.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, column
from longterm._validate import Hyper
from longterm.learners._given_prox import (
    DecoupledLearner,
    ascend,
    default_theta,
    prox_of,
    strongly_convex_steps,
    values_of,
    with_dual,
)
from longterm.learners.aogd import AOGDState, Steps
from longterm.learners.feedback import Feedback
from longterm.problems import Problem
from longterm.theory.bounds import horizons_of
from longterm.theory.conditions import power_sum
from longterm.theory.schedules import DecoupledSchedule, StronglyConvexDecoupledSchedule


@dataclass(frozen=True, eq=False)
class ProximalAOGD(DecoupledLearner[AOGDState]):
    """Proximal A-OGD with the prox of a constraint on a set; the state's multiplier has shape (..., m).

    Parameters
    ----------
    prox : Prox
        The closed form of the argmin, from `Constraint.prox(over)`.
    schedule : DecoupledSchedule or StronglyConvexDecoupledSchedule
        θ_t, η_t and μ_t: for convex losses, or for strongly convex ones.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import ProximalAOGD
    >>> from longterm.problems import two_dimensional
    >>> from longterm.streams import Replay
    >>> problem = two_dimensional()  # g = x₁ − ¼
    >>> learner = ProximalAOGD.for_problem(problem, steps="strongly convex")
    >>> run(problem, learner, Replay([np.tile([0.8, 0.6], (2000, 1))])).state.x.round(2)
    array([0.25, 0.6 ])
    """

    name: ClassVar[str] = "proximal_aogd"
    title: ClassVar[str] = "Proximal A-OGD"

    @classmethod
    def for_problem(
        cls, problem: Problem, *, steps: Steps = "convex", beta: Hyper = 2 / 3, theta_0: Hyper | None = None
    ) -> ProximalAOGD:
        """A-OGD with the multiplier's part taken exactly, by the prox of the constraint.

        Parameters
        ----------
        problem : Problem
            Gives B, the prox of g, Δ, G_f, D and F, or σ.
        steps : {"convex", "strongly convex"}
            η_t = Δ/(√2 G_f √t), or 1/(σt).
        beta : float or array
            β in (0, 1): larger favours the constraint, smaller the regret.
        theta_0 : float or array, optional
            Above 0; D²/(10F) unless given. Larger favours the regret.
        """
        prox, c = prox_of(cls.__name__, cls.needs, problem), problem.constants
        if steps == "convex":
            step = c.diameter / (2**0.5 * validate.positive_scalar("loss_gradient_bound", c.loss_gradient_bound))
            return cls(prox, DecoupledSchedule(step, default_theta(problem, prox, theta_0), beta))
        return cls(prox, strongly_convex_steps(problem, prox, steps, theta_0, beta))

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """For any x* with g(x*) ≤ 0 and any losses; r = max ‖x_1 − x‖ over B, Δ its diameter:

            Σ f_t(x_t) − f_t(x*)  ≤ P + (D²/2) Σ 1/(θ_t t)
            max_j Σ_t g_j(x_t)    ≤ √( 2 (S_θ + θ_0) (that + F T) )

        Convex losses, η_t = s/√t: P = r²/(2s) + (Δ²/(2s)) (√T − 1) + (G_f²/2) Σ η_t. Strongly convex losses,
        η_t = 1/(σt): P = (G_f²/(2σ)) (1 + ln T).

        Examples
        --------
        >>> from longterm.learners import ProximalAOGD
        >>> from longterm.problems import two_dimensional
        >>> problem = two_dimensional()
        >>> bound = ProximalAOGD.for_problem(problem).bound(problem, 1000)
        >>> round(float(bound["regret"]), 1), round(float(bound["long_term_violation"]), 1)
        (1670.3, 129.0)
        """
        T, schedule, c = horizons_of(rounds, self.batch_shape), self.schedule, problem.constants
        if isinstance(schedule, StronglyConvexDecoupledSchedule):
            P = c.loss_gradient_bound**2 / (2 * np.asarray(schedule.strong_convexity)) * (1 + np.log(T))
        else:
            s = np.asarray(schedule.step)
            P = (c.radius**2 + c.diameter**2 * (np.sqrt(T) - 1)) / (2 * s)
            P = P + c.loss_gradient_bound**2 * s / 2 * power_sum(T, 0.5)
        return with_dual(P, self.prox, schedule, problem, T)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> AOGDState:
        x = self.at_the_centre(batch_shape, xp, dtype)
        return AOGDState(
            xp.asarray(1, dtype=xp.int64), x, xp.zeros((*x.shape[:-1], self.prox.constraint.count), dtype=x.dtype)
        )

    def ask(self, state: AOGDState) -> Array:
        return state.x

    def update(self, state: AOGDState, feedback: Feedback) -> AOGDState:
        steps = self.schedule.at(state.round, state.x)
        multiplier = ascend(state.multiplier, values_of(feedback, self.prox.constraint.count), steps)
        curvature = 1 / steps.eta
        slope = feedback.loss_gradient - column(curvature) * state.x
        return AOGDState(state.round + 1, self.prox.argmin(slope, multiplier, curvature), multiplier)
