"""Multipliers: how many there are, how they ascend, with constants that are given or found online, and what they cost.

`Duals` prices constraints one by one, or their maximum. The paper's dual step is

    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t λ_t ) ]₊

**Constants given** (A-FTRL and others with a prox). For steps θ_t = θ_0/t^β, μ_t = 1/(θ_t (t + 1)), a primal side
Σ Δf_t + Σ ⟨λ_t, g(x_t)⟩ ≤ P and D the bound of the vector (g_1, …, g_m)'s length (`docs/aftrl.md`),

    Σ Δf_t                 ≤ P + Q,   Q = (D²/2) Σ 1/(θ_t t)
    Σ_j [ Σ_t g_j(x_t) ]₊² ≤ 2 (S_θ + θ_0) (P + Q + F T)

**Constants found online**, where no bound on the losses' gradients is known beforehand. With b_t = ‖∇f_t(x_t)‖,
M_t = max_{s≤t} b_s and a `dual_scale` that the constraint alone gives,

    θ_t = dual_scale/(M_t t^β),   μ_t = 1/(θ_t (t + 1)).

θ_t does not increase, which is all that the dual's proof asks of it (`docs/aftrl.md`). Until the first gradient other
than 0, in round τ, there is no scale to price the constraint in: M_t = 0, λ stays 0 and x stays x_1. The theorems are
about what happened, so they read the state after T rounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, as_column, dot, like, namespace, to_numpy
from longterm._validate import Hyper, positive_scalar, set_frozen
from longterm.constraints.prox import PenaltyProx, Prox
from longterm.constraints.smooth import SmoothProx
from longterm.errors import InputError, NonFiniteError
from longterm.learners.base import Learner, S
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need, require_needs, require_strong_convexity
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.bounds import LONG_TERM, REGRET, NoTheoremError
from longterm.theory.conditions import power_sum
from longterm.theory.schedules import DecoupledSchedule, Steps, StronglyConvexDecoupledSchedule


class Duals(ABC):
    """Which constraints the multipliers belong to. Shapes: λ is (..., *shape)."""

    count: int
    """m, the number of multipliers: the m of the theorems."""
    shape: tuple[int, ...]
    """The axes of λ behind the batch."""

    @abstractmethod
    def values(self, feedback: Feedback) -> Array:
        """g(x_t), shaped as λ is."""

    @abstractmethod
    def pullback(self, feedback: Feedback, multiplier: Array) -> Array:
        """Σ_j λ_j ∇g_j(x_t), shape (..., d)."""

    @abstractmethod
    def pushforward(self, feedback: Feedback, direction: Array) -> Array:
        """⟨∇g_j(x_t), direction⟩, shaped as λ is."""

    def require(self, feedback: Feedback, x: Array, t: int | None) -> None:
        """Raise if what `values` and `pullback` read is not there; the rest every learner checks."""
        return

    @abstractmethod
    def spread(self, step: Array) -> Array:
        """A per-learner step (...,), ready to scale λ."""


@dataclass(frozen=True)
class OnePerConstraint(Duals):
    """λ in R^m, one entry for each g_j.

    Parameters
    ----------
    count : int
        m.
    """

    count: int

    def __post_init__(self) -> None:
        validate.set_frozen(self, count=validate.dimension("count", self.count), shape=(self.count,))

    def values(self, feedback: Feedback) -> Array:
        return feedback.constraint_values

    def pullback(self, feedback: Feedback, multiplier: Array) -> Array:
        return cast("Callable[[Array], Array]", feedback.pullback)(multiplier)

    def pushforward(self, feedback: Feedback, direction: Array) -> Array:
        return cast("Callable[[Array], Array]", feedback.pushforward)(direction)

    def require(self, feedback: Feedback, x: Array, t: int | None) -> None:
        if feedback.pullback is None:
            raise InputError("pullback", "was not given", "Give λ ↦ Σ_j λ_j ∇g_j(x_t), as `observe` does", round=t)
        values, expected = feedback.constraint_values, (*x.shape[:-1], self.count)
        actual = getattr(values, "shape", None), getattr(values, "dtype", None)
        if actual != (expected, x.dtype):
            what = f"is {type(values).__name__} of shape {actual[0]} and dtype {actual[1]}"
            raise InputError(
                "constraint_values", what, f"Give g_j(x_t) in shape {expected} and dtype {x.dtype}", round=t
            )
        if not bool(namespace(x).all(namespace(x).isfinite(values))):
            raise NonFiniteError(
                "constraint_values", "holds NaN or an infinity", "Check the data of this round", round=t
            )

    def spread(self, step: Array) -> Array:
        return as_column(step)


@dataclass(frozen=True)
class OneForTheMaximum(Duals):
    """One λ for g = max_j g_j: m = 1, however many constraints there are."""

    count = 1
    shape = ()

    def values(self, feedback: Feedback) -> Array:
        return feedback.constraint

    def pullback(self, feedback: Feedback, multiplier: Array) -> Array:
        return as_column(multiplier) * feedback.constraint_gradient

    def pushforward(self, feedback: Feedback, direction: Array) -> Array:
        return dot(feedback.constraint_gradient, direction)

    def spread(self, step: Array) -> Array:
        return step


def per_constraint(count: int) -> Duals:
    """A multiplier for each of `count` constraints; for a single one the plain form, which asks for arrays only."""
    return OneForTheMaximum() if count == 1 else OnePerConstraint(count)


def prox_of(learner: str, needs: frozenset[Need], problem: Problem) -> Prox:
    """The problem's own prox, or the reason why this learner cannot have one."""
    require_needs(learner, needs, problem)
    return cast(Prox, problem.constraint.prox(problem.enclosing_set))


def penalty_prox_of(learner: str, needs: frozenset[Need], problem: Problem) -> PenaltyProx:
    """The same for the positive part of the problem's constraint."""
    return cast(PenaltyProx, prox_of(learner, needs, problem))


def require_same_constraint(prox: Prox, problem: Problem) -> None:
    """Raise if the prox is that of other functions than the problem's, as far as a few points can tell."""
    points = problem.enclosing_set.sample(np.random.default_rng(0), 8)
    ours, theirs = prox.constraint.values(points), problem.constraint.values(points)
    if ours.shape != theirs.shape or not np.allclose(ours, theirs):
        what = f"was made for another constraint than that of {problem.name!r}"
        raise InputError("learner", what, "Build the learner from the problem that it is to play")


def default_theta(problem: Problem, prox: Prox, theta_0: Hyper | None) -> Hyper:
    """θ_0 where none is given: D²/(10F), with D for the vector of all constraints.

    Bounds would choose about seven times as much. On ijcnn1 and covtype that left the losses as they were and more
    than doubled the hard violation.
    """
    if theta_0 is not None:
        return theta_0
    return prox.values_norm_bound() ** 2 / (10 * positive_scalar("loss_range", problem.constants.loss_range))


def values_of(feedback: Feedback, count: int) -> Array:
    """(g_1(x_t), …, g_m(x_t)), shape (..., m)."""
    if count == 1:
        return as_column(feedback.constraint)
    if feedback.constraint_values is None:
        what = f"is missing, and the learner has {count} multipliers"
        raise InputError("constraint_values", what, "Tell it g_j(x_t) for every constraint, as `observe` does")
    return feedback.constraint_values


def ascend(multiplier: Array, values: Array, steps: Steps) -> Array:
    """The paper's dual step, one multiplier per constraint: [λ_t + μ_t (g(x_t) − θ_t λ_t)]₊."""
    ascent = values - as_column(steps.theta) * multiplier
    return namespace(values).maximum(multiplier + as_column(steps.mu) * ascent, 0.0)


def as_reported(multiplier: Array) -> Array:
    """Multipliers (..., m) for the trace: a plain (...,) where there is one."""
    return multiplier[..., 0] if multiplier.shape[-1] == 1 else multiplier


def require_exact(prox: Prox) -> None:
    """Raise a NoTheoremError where the argmin is found by steps: Λ grows, and with it what N of them leave over."""
    if isinstance(prox, SmoothProx):
        raise NoTheoremError("the argmin of constraints.Smooth is found by N steps, whose error no bound accounts for")


def length_bound(prox: Prox, problem: Problem) -> float:
    """D for the vector (g_1, …, g_m), from the prox or from the problem's D, whichever is smaller."""
    return float(min(prox.values_norm_bound(), np.sqrt(prox.constraint.count) * problem.constants.constraint_bound))


def with_dual(
    primal: FloatArray,
    prox: Prox,
    schedule: DecoupledSchedule | StronglyConvexDecoupledSchedule,
    problem: Problem,
    T: FloatArray,
) -> Mapping[str, FloatArray]:
    """From P to both bounds."""
    require_exact(prox)
    theta_0, beta = np.asarray(schedule.theta_0), np.asarray(schedule.beta)
    regret = primal + length_bound(prox, problem) ** 2 / (2 * theta_0) * power_sum(T, 1 - beta)
    weight = theta_0 * (power_sum(T, beta) + 1)
    return {REGRET: regret, LONG_TERM: np.sqrt(2 * weight * (regret + problem.constants.loss_range * T))}


@dataclass(frozen=True, eq=False)
class ProxLearner(Learner[S]):
    """What plays by the prox of one constraint, on the set that the prox is for."""

    prox: Prox
    enclosing_set: Set = field(init=False, repr=False)

    needs: ClassVar[frozenset[Need]] = frozenset({Need.FIXED_CONSTRAINT, Need.PROX})

    def __post_init__(self) -> None:
        set_frozen(self, enclosing_set=self.prox.over)

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        require_same_constraint(self.prox, problem)


@dataclass(frozen=True, eq=False)
class DecoupledLearner(ProxLearner[S]):
    """A prox, and a schedule whose θ does not follow from η: what A-FTRL and proximal A-OGD have in common."""

    schedule: DecoupledSchedule | StronglyConvexDecoupledSchedule

    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T + T^β), O(log T + T^β)",
        LONG_TERM: "O(T^(1−β/2))",
    }
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"steps": "strongly convex"})

    @property
    def strong_convexity(self) -> Hyper:
        return self.schedule.strong_convexity

    def report(self, state: Any) -> dict[str, Array]:
        theta, eta, mu = self.schedule.at(state.round, state.x)
        return {"multiplier": as_reported(state.multiplier), "theta": theta, "eta": eta, "mu": mu}


def decoupled_steps(
    problem: Problem, prox: Prox, steps: str, theta_0: Hyper | None, beta: Hyper, *, reach: float, share: float
) -> DecoupledSchedule | StronglyConvexDecoupledSchedule:
    """η_t = reach/(share G_f √t) for any convex losses, or 1/(σt), of a problem that has a σ."""
    if steps == "convex":
        step = reach / (share * positive_scalar("loss_gradient_bound", problem.constants.loss_gradient_bound))
        return DecoupledSchedule(step, default_theta(problem, prox, theta_0), beta)
    sigma = require_strong_convexity(problem, steps)
    return StronglyConvexDecoupledSchedule(sigma, default_theta(problem, prox, theta_0), beta)


SHARE = 0.1
"""dual_scale is this share of D²/R: with R M_t for F, θ_t starts from the D²/(10F) of learners that know F."""


def default_dual_scale(problem: Problem, prox: Prox | None = None) -> float:
    """D²/(10R), from the set and the constraint alone; with a prox, D is for the vector of all constraints."""
    D = problem.constants.constraint_bound if prox is None else prox.values_norm_bound()
    return SHARE * D**2 / problem.constants.radius


def positive_or_one(value: Array) -> Array:
    """The value where there is one to divide by; 1 where it is still 0, and what it divides is 0 as well."""
    xp = namespace(value)
    return xp.where(value > 0, value, xp.ones_like(value))


def dual_steps(t: Array, largest_gradient: Array, dual_scale: Hyper, beta: Hyper) -> Steps:
    """θ_t and μ_t from M_t; both 0 while M_t is. The step of x is not the dual's business: `eta` is 0."""
    xp, seen = namespace(largest_gradient), largest_gradient > 0
    t = xp.astype(t, largest_gradient.dtype)
    theta = like(dual_scale, t) / (positive_or_one(largest_gradient) * t ** like(beta, t))
    zero = xp.zeros_like(theta)
    return Steps(xp.where(seen, theta, zero), zero, xp.where(seen, 1 / (theta * (t + 1)), zero))


def add_theta(theta_sum: Array, steps: Steps) -> Array:
    """S_θ + δ_μ after one more round: θ_t, and in the first round that has one 1/μ_t = (t + 1) θ_t."""
    xp, zero = namespace(theta_sum), theta_sum <= 0
    first = xp.where(steps.mu > 0, 1 / positive_or_one(steps.mu), steps.mu)
    return theta_sum + xp.where(zero, first, steps.theta)


def first_round(first_gradient: Array, t: Array, largest_gradient: Array) -> Array:
    """τ, the first round with a gradient other than 0: t if none was seen before and one is now, 0 while there is none.

    A state that does not know (one of an earlier version) has 0 with M > 0; then t stands for a τ that is no later.
    """
    seen_now = (first_gradient == 0) & (largest_gradient > 0)
    return namespace(largest_gradient).where(seen_now, t, first_gradient)


def ascend_maximum(multiplier: Array, constraint: Array, steps: Steps) -> Array:
    """The paper's dual step, [λ_t + μ_t (g(x_t) − θ_t λ_t)]₊, for one multiplier per learner, shape (...,)."""
    return namespace(multiplier).maximum(multiplier + steps.mu * (constraint - steps.theta * multiplier), 0.0)


def about(centre: Array, slope: Array, curvature: Array) -> Array:
    """The slope at 0 of ⟨slope, x⟩ + (a/2)‖x − centre‖²."""
    return slope - as_column(curvature) * like(centre, slope)


class OnlineState(Protocol):
    """What the theorems read of a state after T rounds."""

    @property
    def round(self) -> Array:
        """T + 1: the round about to be played."""

    @property
    def largest_gradient(self) -> Array:
        """M_T, the length of the largest gradient so far."""

    @property
    def theta_sum(self) -> Array:
        """N_T = 1/μ_τ + Σ_{τ<t≤T} θ_t."""

    @property
    def first_gradient(self) -> Array:
        """τ; 0 where there was no gradient other than 0, or where nobody knows when."""


def regret_and_violation(
    primal: FloatArray, D: float, at_start: float, dual_scale: Hyper, beta: Hyper, problem: Problem, state: OnlineState
) -> tuple[FloatArray, FloatArray]:
    """From P to both bounds, with c the dual_scale and [g(x_1)]₊ `at_start`:

    regret    ≤ P + (D² M_T/(2c)) Σ t^{β−1}
    violation ≤ (τ − 1) [g(x_1)]₊ + √( 2 N_T (that + F T) )
    """
    T, first = numbers(state.round) - 1, numbers(state.first_gradient)
    inverse_theta, power = numbers(state.largest_gradient) / np.asarray(dual_scale), 1 - np.asarray(beta)
    regret = primal + D**2 / 2 * inverse_theta * np.where(T > 0, power_sum(np.maximum(T, 1.0), power), 0.0)
    waited = np.where(first > 0, first - 1, T)
    priced = np.sqrt(2 * numbers(state.theta_sum) * (regret + problem.constants.loss_range * T))
    return regret, waited * at_start + priced


def start_of(problem: Problem) -> float:
    """[g(x_1)]₊ = max_j [g_j(x_1)]₊ at the centre; at most min(D, G_g R) where g_t changes, with g_t(x*) ≤ 0 always."""
    c, constraint = problem.constants, problem.constraint
    if constraint.parameters:
        return min(c.constraint_bound, c.constraint_gradient_bound * c.radius)
    return max(float(np.max(constraint.values(problem.enclosing_set.centre))), 0.0)


def no_theorem_beforehand(learner: str) -> NoTheoremError:
    """Its bounds are made of what happened."""
    why = f"the theorem of {learner} is about what happened: ask after the run"
    return NoTheoremError(f"{why}, bound(problem, rounds, state=trace.state)")


@dataclass(frozen=True, eq=False)
class OnlineProxLearner(ProxLearner[S]):
    """One that knows no bound on the gradients: its theorem is about what happened."""

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        raise no_theorem_beforehand(type(self).__name__)


def numbers(value: Array) -> FloatArray:
    """An array of a state, for NumPy."""
    return np.asarray(to_numpy(value), dtype=np.float64)
