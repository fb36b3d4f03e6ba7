"""A-OGD with AdaGrad-norm steps and constants found online (after the discussion section of the A-OGD paper).

The paper's dual, and gradient steps as long as the gradients so far allow: with d_t = ∇f_t(x_t) + λ_t ∇g(x_t),
g = max_j g_j, S_t = Σ_{s≤t} ‖d_s‖² and M_t = max_{s≤t} ‖∇f_s(x_s)‖,

    x_{t+1} = Π_B( x_t − η_t d_t ),                        η_t = Δ/√(2 S_t),          x_1 = centre of B
    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t λ_t ) ]₊          θ_t = D²/(10 R M_t t^β),   λ_1 = 0,   μ_t = 1/(θ_t (t + 1))

Neither G_f nor the constraint's gradient bound is needed to run it: condition C2, which ties θ_t to both in A-OGD, is
paid for by a term of the bound instead. Until the first gradient other than 0, in round τ, the learner stays at x_1
with λ = 0. If all losses are scaled by s, so is λ, and the decisions stay the same,
while gradients are 0 or between 1e-140 and 1e140 long: their squares must be floats.
Needs: value and one subgradient of f_t and of g_t at x_t; no horizon.
Guarantees, from what happened (`bound(problem, rounds, state=trace.state)`): regret at most √2 Δ √S_T +
5 R M_T (1 + (T^β − 1)/β), and for the signed violation (τ − 1)[g(x_1)]₊ for the rounds of waiting and a bound from the
θ_t that occurred for the rest. Beforehand, its first part is 2Δ√V_T + 6Δ²G_g²/θ_T, V_T = Σ ‖∇f_t(x_t)‖²
(`docs/aftrl.md`). It can be worse than A-OGD: steps shrink with every long λ_t∇g.
Not promised: feasibility in a single round, a small Σ [g(x_t)]₊.

A-OGD with a step of its own for each coordinate: diagonal AdaGrad on a box (the paper's discussion section).

The paper's dual, and with d_t = ∇f_t(x_t) + λ_t ∇g(x_t), g = max_j g_j, and Δ_k the width of the box in coordinate k,

    x_{t+1,k} = clip( x_{t,k} − η_{t,k} d_{t,k} ),        η_{t,k} = Δ_k / √( 2 Σ_{s≤t} d_{s,k}² ),      x_1 = centre
    λ_{t+1}   = [ λ_t + μ_t ( g(x_t) − θ_t λ_t ) ]₊       θ_t = θ_0/t^β,   μ_t = 1/(θ_t (t + 1)),      λ_1 = 0

A coordinate that has seen no gradient does not move.

Steps: any θ_0 > 0 will do: condition C2, which ties θ_t to η_t G² in A-OGD, is paid for by a term of the bound instead.
The default is A-OGD's own 3ΔG; no G is needed to run it. Where few coordinates have large gradients, the others keep
long steps; where all are alike, it is `AdaGradAOGD`'s norm form up to a factor. It can be worse than A-OGD (first steps
as wide as the set): offered, not the default of anything.
Needs: a box; value and one subgradient of f_t and of g_t at x_t. No horizon.
Guarantees: O(T^max(β, 1/2)) regret and O(T^{1−β/2}) for Σ g_t(x_t) (signed), for losses of an adversary and g_t that
change, against x* with g_t(x*) ≤ 0 in every round (`docs/after_the_paper.md`).
Not promised: feasibility in a single round, a small Σ [g(x_t)]₊.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, as_column, dot, like, namespace, norm
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.learners.base import Learner
from longterm.learners.duals import (
    add_theta,
    ascend_maximum,
    default_dual_scale,
    dual_steps,
    first_round,
    no_theorem_beforehand,
    numbers,
    positive_or_one,
    regret_and_violation,
    start_of,
)
from longterm.learners.feedback import Feedback
from longterm.problems import Problem
from longterm.sets import Box, Set
from longterm.theory.bounds import REGRET, SIGNED, horizons_of
from longterm.theory.conditions import power_sum


class AdaGradAOGDState(NamedTuple):
    """(t, x_t, λ_t, S_{t−1}, M_{t−1}, S_θ + δ_μ, τ)."""

    round: Array
    x: Array
    multiplier: Array
    square_sum: Array
    """S: squared lengths of the directions d so far, added up."""
    largest_gradient: Array
    """M: the longest gradient of a loss so far."""
    theta_sum: Array
    """1/μ_τ + Σ_{s>τ} θ_s, the weight of λ²/2 in the theorem: only the bound reads it."""
    first_gradient: Array = 0
    """τ, 0 until there is one: the bound counts the rounds before it. States stored by earlier versions lack it."""


@dataclass(frozen=True, eq=False)
class AdaGradAOGD(Learner[AdaGradAOGDState]):
    """A-OGD that finds its steps by itself: θ_t = dual_scale/(M_t t^β).

    Parameters
    ----------
    enclosing_set : Set
        B, which it projects onto.
    dual_scale : float or array
        c, above 0.
    beta : float or array
        β in (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import AdaGradAOGD
    >>> from longterm.problems import two_dimensional
    >>> from longterm.streams import Replay
    >>> problem = two_dimensional()  # g = x₁ − ¼
    >>> trace = run(problem, AdaGradAOGD.for_problem(problem), Replay([np.tile([0.8, 0.6], (2000, 1))]))
    >>> trace.state.x.round(1), float((trace.signed_violation[-1] / 2000).round(3))
    (array([0.2, 0.6]), -0.01)
    """

    enclosing_set: Set
    dual_scale: Hyper
    beta: Hyper = 2 / 3

    name: ClassVar[str] = "adagrad_aogd"
    title: ClassVar[str] = "AdaGrad A-OGD"
    drifting: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(T^max(β, 1/2)), from what happened",
        SIGNED: "(τ − 1)[g(x_1)]₊ + O(T^(1−β/2)), from what happened",
    }

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "dual_scale")
        validate.validate_fields(self, validate.trade_off, "beta")

    @classmethod
    def for_problem(cls, problem: Problem, *, beta: Hyper = 2 / 3, dual_scale: Hyper | None = None) -> AdaGradAOGD:
        """A-OGD with AdaGrad's step, one for all coordinates, and no bound on the gradients known.

        Parameters
        ----------
        problem : Problem
            Gives B, R and D; nothing is read off its losses.
        beta : float or array
            β in (0, 1): larger favours the constraint, smaller (down to ½) the regret.
        dual_scale : float or array, optional
            c of θ_t = c/(M_t t^β), above 0; D²/(10R) unless given.
        """
        scale = default_dual_scale(problem) if dual_scale is None else dual_scale
        return cls(problem.enclosing_set, scale, beta)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        raise no_theorem_beforehand(type(self).__name__)

    def theorem_after(self, problem: Problem, state: AdaGradAOGDState) -> Mapping[str, FloatArray]:
        """After T rounds, against any x* with g_t(x*) ≤ 0 in every round, S_T = Σ ‖∇f_t + λ_t∇g_t‖²:

            Σ f_t(x_t) − f_t(x*)   ≤ √2 Δ √S_T + (D² M_T/(2c)) Σ t^{β−1}
            Σ_t max_j g_j(x_t)     ≤ (τ − 1) [g(x_1)]₊ + √( 2 (1/μ_τ + Σ_{t>τ} θ_t) (that + F T) )

        The τ − 1 rounds before the first gradient other than 0 are played at x_1; for g_t that change, min(D, G_g R)
        stands for [g(x_1)]₊.
        """
        c = problem.constants
        primal = np.sqrt(2 * numbers(state.square_sum)) * c.diameter
        regret, violation = regret_and_violation(
            primal, c.constraint_bound, start_of(problem), self.dual_scale, self.beta, problem, state
        )
        return {REGRET: regret, SIGNED: violation}

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> AdaGradAOGDState:
        x = self.initial_x(batch_shape, xp, dtype)
        zero, never = (xp.zeros(x.shape[:-1], dtype=dtype) for dtype in (x.dtype, xp.int64))
        return AdaGradAOGDState(xp.asarray(1, dtype=xp.int64), x, zero, zero, zero, zero, never)

    def ask(self, state: AdaGradAOGDState) -> Array:
        return state.x

    def update(self, state: AdaGradAOGDState, feedback: Feedback) -> AdaGradAOGDState:
        descent = feedback.loss_gradient + as_column(state.multiplier) * feedback.constraint_gradient
        square_sum = state.square_sum + dot(descent, descent)
        largest = namespace(state.x).maximum(state.largest_gradient, norm(feedback.loss_gradient))
        steps = dual_steps(state.round, largest, self.dual_scale, self.beta)
        return AdaGradAOGDState(
            round=state.round + 1,
            x=self.enclosing_set.project(state.x - as_column(self._eta(square_sum)) * descent),
            multiplier=ascend_maximum(state.multiplier, feedback.constraint, steps),
            square_sum=square_sum,
            largest_gradient=largest,
            theta_sum=add_theta(state.theta_sum, steps),
            first_gradient=first_round(state.first_gradient, state.round, largest),
        )

    def _eta(self, square_sum: Array) -> Array:
        return self.enclosing_set.diameter / positive_or_one(namespace(square_sum).sqrt(2 * square_sum))

    def report(self, state: AdaGradAOGDState) -> dict[str, Array]:
        return {
            "multiplier": state.multiplier,
            "square_sum": state.square_sum,
            "largest_gradient": state.largest_gradient,
        }


class DiagonalAdaGradAOGDState(NamedTuple):
    """(t, x_t, λ_t, Σ_{s<t} d_{s,k}² for each k)."""

    round: Array
    x: Array
    multiplier: Array
    square_sums: Array


@dataclass(frozen=True, eq=False)
class DiagonalAdaGradAOGD(Learner[DiagonalAdaGradAOGDState]):
    """A-OGD on a box with a step for each coordinate and θ_t = θ_0/t^β.

    Parameters
    ----------
    enclosing_set : Box
        B, the box.
    theta_0 : float or array
        θ_0, above 0.
    beta : float or array
        β in (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import Problem, run
    >>> from longterm.learners import DiagonalAdaGradAOGD
    >>> from longterm.constraints import Affine
    >>> from longterm.losses import Linear
    >>> from longterm.sets import Box
    >>> from longterm.streams import Replay
    >>> problem = Problem(Box.cube(2, -1.0, 1.0), Linear(2), Affine([[-1.0, -1.0]], [0.5]))  # x₁ + x₂ ≥ −½
    >>> trace = run(problem, DiagonalAdaGradAOGD.for_problem(problem), Replay([np.tile([0.9, 0.1], (5000, 1))]))
    >>> trace.state.x.round(2), float((trace.signed_violation[-1] / 5000).round(3))
    (array([-1.  ,  0.04]), 0.013)
    """

    enclosing_set: Set
    theta_0: Hyper
    beta: Hyper = 2 / 3
    widths: tuple[float, ...] = field(init=False, repr=False)
    """Δ_k of each coordinate k."""

    name: ClassVar[str] = "diagonal_adagrad_aogd"
    title: ClassVar[str] = "Diagonal AdaGrad A-OGD"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(T^max(β, 1/2))", SIGNED: "O(T^(1−β/2))"}

    def __post_init__(self) -> None:
        if not isinstance(self.enclosing_set, Box):
            what = f"is a {type(self.enclosing_set).__name__}, and coordinates can only move alone in a box"
            raise InputError("enclosing_set", what, "Use a Box, or A-OGD with AdaGrad-norm steps on other sets")
        validate.validate_fields(self, validate.positive, "theta_0")
        validate.validate_fields(self, validate.trade_off, "beta")
        validate.set_frozen(self, widths=tuple((self.enclosing_set.upper - self.enclosing_set.lower).tolist()))

    @classmethod
    def for_problem(cls, problem: Problem, *, beta: Hyper = 2 / 3, theta_0: Hyper | None = None) -> DiagonalAdaGradAOGD:
        """A-OGD with AdaGrad's step for each coordinate, on a box.

        Parameters
        ----------
        problem : Problem
            Gives B, Δ and G.
        beta : float or array
            β in (0, 1): larger favours the constraint, smaller (down to ½) the regret.
        theta_0 : float or array, optional
            Above 0; A-OGD's own 3ΔG unless given.
        """
        c = problem.constants
        return cls(problem.enclosing_set, 3 * c.diameter * c.gradient_bound if theta_0 is None else theta_0, beta)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """For any losses, against x* with g_t(x*) ≤ 0 in every round:

            Σ f_t(x_t) − f_t(x*) ≤ D² S_μ + 2ΔG_f √T + Δ²G_g²/m_T,       m_T = min_{2≤t≤T} θ_t (t − 1)/(2(t + 1))
            Σ g_t(x_t)           ≤ √( 2 (S_θ + θ_0) (that + F T) )

        m_T is attained at 2 or at T, and S_μ ≤ (1/θ_0) Σ t^{β−1}. The notes' 6Δ²G²T^β/θ_0 has (t − 1)/(t + 1) ≥ 1/3
        for all t; the last term here falls to a third of that. Δ is the Euclidean diameter: Σ_k Δ_k √S_k ≤ Δ √(Σ_k
        S_k).

        Examples
        --------
        >>> from longterm import Problem
        >>> from longterm.constraints import Affine
        >>> from longterm.learners import DiagonalAdaGradAOGD
        >>> from longterm.losses import Linear
        >>> from longterm.sets import Box
        >>> problem = Problem(Box.cube(2, -1.0, 1.0), Linear(2), Affine([[-0.5, -0.5]], [0.25]))
        >>> bound = DiagonalAdaGradAOGD.for_problem(problem).bound(problem, 1000)
        >>> round(float(bound["regret"]), 1), round(float(bound["signed_violation"]), 1)
        (300.9, 1241.0)
        """
        T, c = horizons_of(rounds, self.batch_shape), problem.constants
        theta_0, beta = np.asarray(self.theta_0), np.asarray(self.beta)

        def left(t: FloatArray) -> FloatArray:
            """θ_t (t − 1)/(2(t + 1)): what the dual leaves of λ_t² to pay for the steps with."""
            return np.asarray(theta_0 / t**beta * (t - 1) / (2 * (t + 1)))

        least = np.minimum(left(np.asarray(2.0)), left(np.maximum(T, 2.0)))
        pull = np.where(T > 1, (c.diameter * c.constraint_gradient_bound) ** 2 / least, 0.0)
        dual = c.constraint_bound**2 / theta_0 * power_sum(T, 1 - beta)
        regret = dual + 2 * c.diameter * c.loss_gradient_bound * np.sqrt(T) + pull
        weight = theta_0 * (power_sum(T, beta) + 1)
        return {REGRET: regret, SIGNED: np.sqrt(2 * weight * (regret + c.loss_range * T))}

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> DiagonalAdaGradAOGDState:
        x = self.initial_x(batch_shape, xp, dtype)
        zero = xp.zeros(x.shape[:-1], dtype=x.dtype)
        return DiagonalAdaGradAOGDState(xp.asarray(1, dtype=xp.int64), x, zero, xp.zeros_like(x))

    def ask(self, state: DiagonalAdaGradAOGDState) -> Array:
        return state.x

    def update(self, state: DiagonalAdaGradAOGDState, feedback: Feedback) -> DiagonalAdaGradAOGDState:
        xp = namespace(state.x)
        theta, mu = self._dual_steps(state)
        descent = feedback.loss_gradient + as_column(state.multiplier) * feedback.constraint_gradient
        square_sums = state.square_sums + descent**2
        eta = xp.asarray(self.widths, dtype=state.x.dtype) / xp.sqrt(2 * xp.where(square_sums > 0, square_sums, 1.0))
        ascent = feedback.constraint - theta * state.multiplier
        return DiagonalAdaGradAOGDState(
            round=state.round + 1,
            x=self.enclosing_set.project(state.x - eta * descent),
            multiplier=xp.maximum(state.multiplier + mu * ascent, 0.0),
            square_sums=square_sums,
        )

    def _dual_steps(self, state: DiagonalAdaGradAOGDState) -> tuple[Array, Array]:
        t = namespace(state.x).astype(state.round, state.x.dtype)
        theta = like(self.theta_0, state.x) / t ** like(self.beta, state.x)
        return theta, 1 / (theta * (t + 1))

    def report(self, state: DiagonalAdaGradAOGDState) -> dict[str, Array]:
        theta, mu = self._dual_steps(state)
        return {"multiplier": state.multiplier, "theta": theta, "mu": mu}
