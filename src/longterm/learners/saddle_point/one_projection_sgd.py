"""SGD with one projection, at the end (Mahdavi, Yang, Jin, Zhu, Yi 2012, "SGD-PD").

With g = max_j g_j and both steps taken from (x_t, λ_t):

    x_{t+1} = Π_B( x_t − η ( ∇f_t(x_t) + λ_t ∇g(x_t) ) )            x_1 = centre of B
    λ_{t+1} = [ (1 − θη) λ_t + η g(x_t) ]₊                          λ_1 = 0
    answer  = Π_X( (x_1 + … + x_T) / T )

This is A-OGD with constant steps and μ = η (θ is the article's γ), and a running mean. One projection onto
X = {g ≤ 0}, after the last round, makes the answer feasible.

Steps: the proof needs η (G_g² + θ²) ≤ θ/2. θ is the smallest root, and η minimises the bound on the answer.
Needs: a horizon, a fixed constraint, Π_X once, and a `slope` ρ > 0 with dist(x, X) ≤ [g(x)]₊/ρ on B: the least ‖∇g‖ on
the boundary of {g ≤ 0} inside B, or ε/Δ where a point of B has g(x̂) ≤ −ε.
Guarantees: for losses drawn independently from one law with mean f, E f(answer) − min_X f = O(1/√T), `answer_bound`.
As for any A-OGD, regret and Σ g(x_t) of the rounds are bounded for arbitrary losses (`docs/proofs/derivations.md`).
Not promised: anything about the answer against an adversary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from longterm._base import validate
from longterm._base.arrays import ROUNDING, Array, FloatArray, as_column, namespace
from longterm.errors import InputError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.horizons import ScheduledLearner
from longterm.learners.interface.needs import Need
from longterm.learners.interface.projection_check import known_projection, require_projection
from longterm.learners.interface.slater_for import slater_point_for
from longterm.learners.interface.states import DualState
from longterm.learners.saddle_point.aogd import AOGD
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.problems.projections.base import Projection
from longterm.problems.sets import Set
from longterm.theory.bounds import REGRET, SIGNED, BoundValues, NoTheoremError, Rounds, horizons_of
from longterm.theory.paper import violation_bound
from longterm.theory.schedules import ConstantSchedule


class OneProjectionSGDState(NamedTuple):
    """The state (t, x_t, λ_t) and the mean of x_1 … x_{t−1}."""

    round: Array
    x: Array
    multiplier: Array
    mean: Array


@dataclass(frozen=True, eq=False)
class OneProjectionSGD(ScheduledLearner[OneProjectionSGDState]):
    """Find one feasible decision at the end of a stream with a single costly projection.

    SGD-PD: gradient steps on loss and weighted constraint. The mean of all decisions is projected once.

    Parameters
    ----------
    enclosing_set : Set
        The ball, box or other set that every decision stays in (B in the formulas).
    project : Projection
        The projection onto the feasible points. Only `answer` calls it.
    schedule : ConstantSchedule
        The constant step sizes η and μ of decision and multiplier, and the weight θ of the multiplier's penalty.
    slope : float, optional
        The ρ of dist(x, X) ≤ [g(x)]₊/ρ on B, for `answer_bound`.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> problem = lt.problems.two_dimensional()  # dist(x, X) = [x_1 − ¼]₊ in the disc: slope 1
    >>> onto = lambda x: np.minimum(x, [0.25, np.inf])  # Π_X for means, which lie in the disc
    >>> learner = lt.learners.OneProjectionSGD.for_problem(problem, horizon=2000, projection=onto, slope=1.0)
    >>> state = learner.init()
    >>> for _ in range(2000):
    ...     state = learner.tell(state, lt.observe(problem, learner.ask(state), [np.array([0.8, 0.6])]))
    >>> learner.answer(state).round(2)
    array([0.25, 0.57])
    """

    enclosing_set: Set
    project: Projection
    schedule: ConstantSchedule
    slope: float | None = None

    name = "one_projection_sgd"
    title = "One-projection SGD"
    promises = {REGRET: "O(T^1/2)", SIGNED: "O(T^3/4)"}
    needs = frozenset({Need.FIXED_CONSTRAINT, Need.HORIZON, Need.PROJECTION})

    @classmethod
    def for_problem(
        cls, problem: Problem, *, horizon: int, slope: float | None = None, projection: Projection | None = None
    ) -> OneProjectionSGD:
        """Make stochastic gradient descent with one projection at the end.

        With κ = G_f/ρ: η = √((r² + κ²)/(2T(G_f² + D² + κ²G_g²))), at most 1/(4G_g), θ = 4ηG_g²/(1 + √(1 − 16η²G_g²)).

        Parameters
        ----------
        slope : float, optional
            A ρ with dist(x, X) ≤ [g(x)]₊/ρ on B; ε/Δ from a Slater point of slack ε unless given.
        projection : Projection, optional
            Π_X, onto {g ≤ 0} ∩ B; the problem's unless given.
        """
        onto, c = known_projection(cls.__name__, cls.needs, problem, projection), problem.constants
        T = validate.dimension("horizon", horizon)
        require_projection(problem, onto, into_set=True)
        if slope is None:
            slope = slater_point_for(problem, None).epsilon / c.diameter
        rho = validate.positive_scalar("slope", slope)
        kappa = c.loss_gradient_bound / rho
        G = c.constraint_gradient_bound
        noise = c.loss_gradient_bound**2 + c.constraint_bound**2 + (kappa * G) ** 2
        eta = min(np.sqrt((c.radius**2 + kappa**2) / (2 * T * noise)), 1 / (4 * G))
        theta = 4 * eta * G**2 / (1 + np.sqrt(max(1 - (4 * eta * G) ** 2, 0.0)))
        schedule = ConstantSchedule(float(theta), float(eta), float(eta), gradient_bound=c.gradient_bound)
        return cls(problem.enclosing_set, onto, schedule, rho)

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bounds P and √(2W (P + FT)) on regret and Σ g(x_t) of the rounds, for arbitrary losses.

        They hold for η (G_g² + θ²) ≤ θ/2, with P = r²/(2η) + ηT (G_f² + D²) and W = θ(T − 1) + 1/η.
        """
        P, W, T = self._terms(problem.constants, rounds)
        return {REGRET: P, SIGNED: violation_bound(W, P, problem.constants, T)}

    def answer_bound(self, problem: Problem, rounds: ArrayLike) -> FloatArray:
        """Return P/T + κ²W/(2T), κ = G_f/ρ, which bounds E f(answer) − min_X f for independent losses with mean f."""
        if self.slope is None:
            raise InputError("slope", "is missing", "Make the learner with slope=ρ, where dist(x, X) ≤ [g(x)]₊/ρ")
        P, W, T = self._terms(problem.constants, validate.horizons("rounds", rounds))
        kappa = problem.constants.loss_gradient_bound / self.slope
        return (P + kappa**2 * W / 2) / T

    def _terms(self, c: Constants, rounds: Rounds) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return P, W and T of the theorem."""
        theta, eta, mu = self.schedule.at(np.asarray(1), np.zeros(1))
        excess = eta * (c.constraint_gradient_bound**2 + theta**2) - theta / 2
        if np.any(excess > ROUNDING * theta) or np.any(mu != eta):
            what = "its steps violate η (G_g² + θ²) ≤ θ/2 or μ = η"
            raise NoTheoremError(what, "Use for_problem, a smaller η, or a θ near 2ηG_g²")
        T = horizons_of(rounds, self.batch_shape)
        P = c.radius**2 / (2 * eta) + eta * T * (c.loss_gradient_bound**2 + c.constraint_bound**2)
        return P, theta * (T - 1) + 1 / eta, T

    @property
    def _rule(self) -> AOGD:
        """The A-OGD that makes the steps."""
        return AOGD(self.enclosing_set, self.schedule)

    def first_state(self, t: Array, x: Array) -> OneProjectionSGDState:
        return OneProjectionSGDState(*self._rule.first_state(t, x), mean=x)

    def update(self, state: OneProjectionSGDState, feedback: Feedback) -> OneProjectionSGDState:
        after = self._rule.update(DualState(state.round, state.x, state.multiplier), feedback)
        played = namespace(state.x).astype(state.round, state.x.dtype)
        return OneProjectionSGDState(*after, mean=state.mean + (state.x - state.mean) / as_column(played))

    def answer(self, state: OneProjectionSGDState) -> Array:
        """Return Π_X of the mean of the decisions played so far, the one projection."""
        return self.project(state.mean)
