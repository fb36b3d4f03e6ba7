"""Bandit feedback on the constraint: two values of g_t a round (Mahdavi, Jin, Yang, JMLR 13, 2012, Algorithm 3).

With u_t uniform on the unit sphere of R^d, g_t = max_j g_{t,j} known at x_t ± ζu_t only, and ∇f_t(x_t) known:

    ĝ_t     = ½ ( g_t(x_t + ζu_t) + g_t(x_t − ζu_t) ),       s_t = (d/(2ζ)) ( g_t(x_t + ζu_t) − g_t(x_t − ζu_t) ) u_t
    x_{t+1} = Π_{(1−ξ)B}( x_t − η ( ∇f_t(x_t) + λ_t s_t ) )                               x_1 = centre of B
    λ_{t+1} = [ λ_t + η ( ĝ_t − ηδ λ_t ) ]₊                                               λ_1 = 0

(1 − ξ)B is B shrunk towards its centre, so that both points are in B: ξ = ζ/ρ with ρ the radius of a ball about the
centre inside B. u_t is a function of (seed, t) alone (`random_directions`), so a state holds no generator. An array of
seeds is a batch of learners with different directions.

Steps: η = r/√(2(D² + G_f²)T), at most 1/(4dG_g); δ the smallest root of δ = 2d²G_g² + 2η²δ²; ζ = δ/T, at most ρ/2.
Needs: a horizon, B with an interior, and values of g_t at two points that are not played (`Feedback.constraint_at`).
Guarantees: `theorem`, *in expectation over the u_t*, for losses and constraints that may depend on the past but not on
u_t. The constants are ours (`docs/proofs/after_the_paper.md`).
Not promised: anything about a single run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import Array, as_column, like, namespace
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.feedback_check import OnBrokenBound
from longterm.learners.interface.horizons import ScheduledLearner
from longterm.learners.interface.needs import Need
from longterm.learners.interface.states import DualState
from longterm.learners.saddle_point.mahdavi_ogd import smallest_root
from longterm.learners.saddle_point.random_directions import unit_direction
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.problems.sets import Ball, Set
from longterm.theory.assumptions import Assumption
from longterm.theory.bounds import REGRET, SIGNED, BoundValues, NoTheoremError, Rounds, horizons_of
from longterm.theory.paper import violation_bound
from longterm.theory.schedules import ConstantSchedule


@dataclass(frozen=True, eq=False)
class TwoPointBandit(ScheduledLearner[DualState]):
    """Keep a long-term limit of which only two values are seen in each round, and no gradient.

    Every round evaluates the constraint at two points near the decision. Their difference stands for its gradient.

    Parameters
    ----------
    enclosing_set : Set
        The ball or box that every decision stays in (B in the formulas). It has an interior.
    schedule : ConstantSchedule
        The constant step sizes η and μ of decision and multiplier, and the weight θ of the multiplier's penalty.
    distance : float or array
        The distance of the two points from the decision (ζ).
    seed : int or array of int
        The seed of the directions: one, or one for each learner of a batch.
    made_for : Constants, optional
        The problem's constants that the steps were made for.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import streams
    >>> problem = lt.problems.two_dimensional()  # g = x₁ − ¼
    >>> learner = lt.learners.TwoPointBandit.for_problem(problem, horizon=2000, seed=np.arange(3))
    >>> trace = lt.run(problem, learner, streams.Replay([np.tile([0.8, 0.6], (2000, 1))]), record=[2000])
    >>> trace.state.x.round(2)
    array([[0.28, 0.59],
           [0.25, 0.59],
           [0.28, 0.61]])
    """

    enclosing_set: Set
    schedule: ConstantSchedule
    distance: Hyper
    seed: int | NDArray[Any] = 0
    made_for: Constants | None = None

    needs = frozenset({Need.HORIZON, Need.OTHER_POINTS})
    name = "two_point_bandit"
    title = "Two-point bandit"
    promises = {REGRET: "O(√T), expected", SIGNED: "O(d T^(3/4)), expected"}

    def __post_init__(self) -> None:
        distance, radius = validate.positive("distance", self.distance), inner_radius(self.enclosing_set)
        if np.any(np.asarray(distance) >= radius):
            what = f"{self.distance!r} is not below {radius:g}, the radius of a ball about the centre inside the set"
            raise InputError("distance", what, "Take a smaller ζ, or a set with an interior")
        validate.set_frozen(self, distance=distance, seed=_validate_seed(self.seed))

    @classmethod
    def for_problem(cls, problem: Problem, *, horizon: int, seed: int | NDArray[Any] = 0) -> TwoPointBandit:
        """Make a learner that knows only two values of the constraint a round; on balls and boxes.

        Parameters
        ----------
        seed : int or array of int
            The seed of the directions.
        """
        T, c, d = validate.count("horizon", horizon), problem.constants, problem.dimension
        G = validate.positive_scalar("constraint_gradient_bound", c.constraint_gradient_bound)
        eta = c.radius / np.sqrt(2 * (c.constraint_bound**2 + c.loss_gradient_bound**2) * T)
        eta = float(min(eta, 1 / (4 * d * G)))
        delta = smallest_root(2 * (d * G) ** 2, eta)
        distance = min(delta / T, inner_radius(problem.enclosing_set) / 2)
        return cls(problem.enclosing_set, ConstantSchedule(eta * delta, eta, eta), distance, seed, c)

    @property
    def shrinkage(self) -> Hyper:
        """ξ, the share by which B is shrunk so that both points lie in B."""
        return self.distance / inner_radius(self.enclosing_set)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        return () if self.made_for is None else (self._steps_assumption(self.made_for),)

    def _steps_assumption(self, c: Constants) -> Assumption:
        """Return the condition on the steps that the proof needs."""
        theta, eta, mu = self.schedule.at(np.asarray(1), np.zeros(1))
        noise = (self.enclosing_set.dimension * c.constraint_gradient_bound) ** 2
        statement = "d²G_g²η + μθ² ≤ θ/2 (with μ = η and θ = ηδ: 2d²G_g² + 2δ²η² ≤ δ)"
        return Assumption.worst(statement, eta * noise + mu * theta**2, theta / 2, "Take a smaller η, or a larger δ")

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bounds in expectation over the directions, against x* with g_t(x*) ≤ 0 in every round.

            P = r²/(2η) + ηT (G_f² + D²) + ζT (D/θ) (G_g + min(D, G_g r)/ρ)
            E Σ f_t(x_t) − f_t(x*) ≤ P + (ζT/ρ) min(F, G_f r)
            E Σ g_t(x_t)           ≤ √( 2 (θ(T − 1) + 1/η) (P + F T) )

        ρ is the radius of a ball inside B, and θ = ηδ.
        """
        T, c = horizons_of(rounds, self.batch_shape), problem.constants
        theta, eta, mu = self.schedule.at(np.asarray(1), np.zeros(1))
        assumed = self._steps_assumption(c)
        if not assumed.holds or np.any(mu != eta):
            why = f"{assumed.statement}, or μ = η, does not hold"
            raise NoTheoremError(why, "Use TwoPointBandit.for_problem")
        rho, moved = inner_radius(self.enclosing_set), np.asarray(self.distance) * T
        pull = c.constraint_gradient_bound + c.first_violation / rho
        P = (
            c.radius**2 / (2 * eta)
            + eta * T * (c.loss_gradient_bound**2 + c.constraint_bound**2)
            + moved * c.constraint_bound / theta * pull
        )
        regret = P + moved / rho * min(c.loss_range, c.loss_gradient_bound * c.radius)
        violation = violation_bound(theta * (T - 1) + 1 / eta, P, c, T)
        shape = np.broadcast_shapes(T.shape, self.batch_shape)  # a grid of seeds has the same bound for each
        return {REGRET: np.broadcast_to(regret, shape), SIGNED: np.broadcast_to(violation, shape)}

    @property
    def reads_pullback(self) -> bool:
        return True

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        if feedback.constraint_at is None:
            raise InputError("constraint_at", "is missing", "Give the function y ↦ g_t(y), as `observe` does", round=t)

    def first_state(self, t: Array, x: Array) -> DualState:
        return DualState(t, x, namespace(x).zeros(x.shape[:-1], dtype=x.dtype))

    def update(self, state: DualState, feedback: Feedback) -> DualState:
        g = cast("Callable[[Array], Array]", feedback.constraint_at)
        theta, eta, mu = self.schedule.at(state.round, state.x)
        zeta = like(np.asarray(self.distance), state.x)
        direction = unit_direction(self.seed, state.round, state.x)
        plus, minus = (g(state.x + sign * as_column(zeta) * direction) for sign in (1.0, -1.0))
        slope = as_column(self.enclosing_set.dimension / (2 * zeta) * (plus - minus)) * direction
        ascent = (plus + minus) / 2 - theta * state.multiplier
        return DualState(
            round=state.round + 1,
            x=self._project(state.x - as_column(eta) * (feedback.loss_gradient + as_column(state.multiplier) * slope)),
            multiplier=namespace(state.x).maximum(state.multiplier + mu * ascent, 0.0),
        )

    def _project(self, x: Array) -> Array:
        """Project onto (1 − ξ)B."""
        shrinkage, centre = as_column(like(np.asarray(self.shrinkage), x)), like(self.enclosing_set.centre, x)
        inner = self.enclosing_set.project((x - shrinkage * centre) / (1 - shrinkage))
        return shrinkage * centre + (1 - shrinkage) * inner


def inner_radius(over: Set) -> float:
    """Return the radius of a ball about the centre inside the set."""
    if isinstance(over, Ball):
        return over.radius
    half_spaces = over.half_spaces()
    radius = 0.0
    if half_spaces is not None:
        matrix, offset = half_spaces
        radius = float(np.min((offset - matrix @ over.centre) / np.linalg.norm(matrix, axis=1)))
    if radius <= 1e-12 * over.diameter:
        what = f"is a {type(over).__name__}, and no ball about its centre is known to lie inside it"
        raise InputError("enclosing_set", what, "Use a ball, or a polyhedron with an interior, a box for example")
    return radius


def _validate_seed(value: Any) -> int | NDArray[Any]:
    """Return a seed, or an array of seeds over the leading axes, validated."""
    given = np.asarray(value)
    if given.dtype.kind not in "iu" or given.size == 0 or given.min() < 0:
        what = f"{value!r} is not a seed or an array of seeds"
        raise InputError("seed", what, "Give 0, or np.arange(10), for example")
    return int(given) if given.ndim == 0 else validate.frozen(given)
