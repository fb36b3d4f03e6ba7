"""A-OGD: adaptive online gradient descent with long-term constraints (Jenatton, Huang, Archambeau 2016).

With the Lagrangian L_t(x, λ) = f_t(x) + λ g(x) − θ_t φ(λ), where g = max_j g_j, and both steps taken from (x_t, λ_t):

    x_{t+1} = Π_B( x_t − η_t ( ∇f_t(x_t) + λ_t ∇g(x_t) ) )          x_1 = centre of B
    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t φ'(λ_t) ) ]₊               λ_1 = 0

The paper has φ(λ) = λ²/2; its discussion asks which φ is best. It hardly matters: the condition that replaces C2
squeezes every admissible φ between two quadratics (`theory.penalties`).

Steps: Table 1 of the paper (`ConvexSchedule`, `StronglyConvexSchedule`), or any schedule.
Needs: value and one subgradient of f_t and of g_t at x_t; no horizon, no projection onto {g ≤ 0}.
Guarantees: Theorem 1, corrected (`theory.paper`), for any losses and any g_t (fixed or not) against a comparator with
g_t(x*) ≤ 0 in every round; Lemma 5 for any schedule that passes C1–C3; with another φ, Lemma 5 with φ in the place of
the square (`docs/after_the_paper.md`). The bound is on the signed sum Σ_t max_j g_j(x_t), which is at least the
paper's max_j Σ_t g_j(x_t); single rounds may be infeasible.

Proximal A-OGD: A-OGD that takes the multiplier's part exactly instead of linearised.

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
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import Array, FloatArray, as_column, clamp_min, scale_rows
from longterm._validate import Hyper
from longterm.learners.base import Learner
from longterm.learners.duals import (
    DecoupledLearner,
    ascend,
    decoupled_steps,
    prox_of,
    values_of,
    with_dual,
)
from longterm.learners.feedback import Feedback
from longterm.learners.needs import StepKind, require_strong_convexity
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory import paper
from longterm.theory.bounds import REGRET, SIGNED, NoTheoremError, horizons_of
from longterm.theory.conditions import power_sum
from longterm.theory.penalties import QUADRATIC, Penalty, penalised_lemma_5
from longterm.theory.schedules import (
    ConvexSchedule,
    Schedule,
    StronglyConvexDecoupledSchedule,
    StronglyConvexSchedule,
)


class AOGDState(NamedTuple):
    """(t, x_t, λ_t)."""

    round: Array
    x: Array
    multiplier: Array


@dataclass(frozen=True, eq=False)
class AOGD(Learner[AOGDState]):
    """A-OGD on an enclosing set with a schedule.

    Parameters
    ----------
    enclosing_set : Set
        B, which it projects onto.
    schedule : Schedule
        θ_t, η_t and μ_t.
    penalty : Penalty
        φ; the paper's λ²/2 unless said otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import AOGD, observe
    >>> from longterm.problems import two_dimensional
    >>> problem = two_dimensional()
    >>> learner = AOGD.for_problem(problem, steps="strongly convex", beta=0.5)
    >>> state = learner.init()
    >>> for target in ([1.0, 0.0], [0.0, 1.0]):
    ...     x = learner.ask(state)
    ...     state = learner.tell(state, observe(problem, x, [np.array(target)]))
    >>> learner.ask(state), round(float(state.multiplier), 6)
    (array([0.5, 0.5]), 0.014731)
    """

    enclosing_set: Set
    schedule: Schedule
    penalty: Penalty = QUADRATIC

    name: ClassVar[str] = "aogd"
    title: ClassVar[str] = "A-OGD"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(T^max(β, 1−β))", SIGNED: "O(T^(1−β/2))"}
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"steps": "strongly convex"}, {"penalty": 0.3})
    drifting: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)

    @classmethod
    def for_problem(
        cls, problem: Problem, *, steps: StepKind = "convex", beta: Hyper = 2 / 3, penalty: float | Penalty = 0.5
    ) -> AOGD:
        """Table 1 of the paper, with the problem's own constants.

        Parameters
        ----------
        problem : Problem
            Gives B, Δ, G and σ.
        steps : {"convex", "strongly convex"}
            The column of Table 1.
        beta : float or array
            β in (0, 1): larger favours the constraint, smaller (down to ½) the regret.
        penalty : float or Penalty
            The c of φ(λ) = cλ², for which the theorem holds from ¼, or (1 − β)/2 where that is more, to the paper's ½;
            or a φ of your own.
        """
        c = problem.constants
        if steps == "convex":
            schedule: Schedule = ConvexSchedule(c.diameter, c.gradient_bound, beta)
        else:
            schedule = StronglyConvexSchedule(c.gradient_bound, require_strong_convexity(problem, steps), beta)
        return cls(
            problem.enclosing_set, schedule, penalty if isinstance(penalty, Penalty) else Penalty.square(penalty)
        )

    @property
    def gradient_bound(self) -> Hyper | None:
        return self.schedule.gradient_bound

    @property
    def strong_convexity(self) -> Hyper:
        return self.schedule.strong_convexity

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        c, schedule = problem.constants, self.schedule
        if not self.penalty.is_the_papers:
            bound = penalised_lemma_5(self.penalty, schedule, c, rounds)
        elif isinstance(schedule, ConvexSchedule) and _made_for(schedule, c.diameter, c.gradient_bound):
            bound = paper.theorem_1(c, rounds, schedule.beta)
        elif isinstance(schedule, StronglyConvexSchedule) and np.all(schedule.gradient_bound == c.gradient_bound):
            bound = paper.theorem_1_strongly_convex(c, rounds, schedule.beta)
        else:
            bound = paper.lemma_5(schedule, c, rounds)
        return {REGRET: bound.regret, SIGNED: bound.violation}

    def theorem_as_printed(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """Theorem 1 as the paper has it, which is false for β > ½ and large T: to be drawn, not to be relied on."""
        if not self.penalty.is_the_papers or not isinstance(self.schedule, ConvexSchedule):
            raise NoTheoremError("the paper prints no other theorem than that for its convex steps")
        bound = paper.theorem_1_as_printed(problem.constants, rounds, self.schedule.beta)
        return {REGRET: bound.regret, SIGNED: bound.violation}

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> AOGDState:
        x = self.initial_x(batch_shape, xp, dtype)
        return AOGDState(xp.asarray(1, dtype=xp.int64), x, xp.zeros(x.shape[:-1], dtype=x.dtype))

    def ask(self, state: AOGDState) -> Array:
        return state.x

    def update(self, state: AOGDState, feedback: Feedback) -> AOGDState:
        theta, eta, mu = self.schedule.at(state.round, state.x)
        descent = feedback.loss_gradient + scale_rows(state.multiplier, feedback.constraint_gradient)
        ascent = feedback.constraint - theta * self.penalty.derivative(state.multiplier)
        return AOGDState(
            round=state.round + 1,
            x=self.enclosing_set.project(state.x - scale_rows(eta, descent)),
            multiplier=clamp_min(state.multiplier + mu * ascent, 0.0),
        )

    def report(self, state: AOGDState) -> dict[str, Array]:
        theta, eta, mu = self.schedule.at(state.round, state.x)
        return {"multiplier": state.multiplier, "theta": theta, "eta": eta, "mu": mu}


def _made_for(schedule: ConvexSchedule, diameter: float, gradient_bound: float) -> bool:
    return bool(np.all(schedule.diameter == diameter) and np.all(schedule.gradient_bound == gradient_bound))


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
        cls, problem: Problem, *, steps: StepKind = "convex", beta: Hyper = 2 / 3, theta_0: Hyper | None = None
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
        prox, wide = prox_of(cls.__name__, cls.needs, problem), problem.constants.diameter
        return cls(prox, decoupled_steps(problem, prox, steps, theta_0, beta, reach=wide, share=2**0.5))

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
        x = self.initial_x(batch_shape, xp, dtype)
        return AOGDState(
            xp.asarray(1, dtype=xp.int64), x, xp.zeros((*x.shape[:-1], self.prox.constraint.count), dtype=x.dtype)
        )

    def ask(self, state: AOGDState) -> Array:
        return state.x

    def update(self, state: AOGDState, feedback: Feedback) -> AOGDState:
        steps = self.schedule.at(state.round, state.x)
        multiplier = ascend(state.multiplier, values_of(feedback, self.prox.constraint.count), steps)
        curvature = 1 / steps.eta
        slope = feedback.loss_gradient - as_column(curvature) * state.x
        return AOGDState(state.round + 1, self.prox.argmin(slope, multiplier, curvature), multiplier)
