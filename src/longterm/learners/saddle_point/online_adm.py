"""Online ADM: alternating directions with a copy of x for the constraint (Wang, Banerjee 2013, arXiv 1306.3721).

min Σ f_t(x) over x in B and in C is written with a copy z of x: x in B, z in C, x = z. With y the multiplier of
x = z, f_t linearised at the point played and a proximal term with weight η,

    x_{t+1} = argmin_{x ∈ B} ⟨∇f_t + y_t, x⟩ + ρ/2 ‖x − z_t‖² + η/2 ‖x − x_t‖²
            = Π_B( (η x_t + ρ z_t − y_t − ∇f_t) / (η + ρ) )
    z_{t+1} = argmin_{z ∈ C} −⟨y_t, z⟩ + ρ/2 ‖x_{t+1} − z‖²  =  Π_C( x_{t+1} + y_t/ρ )
    y_{t+1} = y_t + ρ ( x_{t+1} − z_{t+1} )

from x_1 the centre of B, z_1 = Π_C(x_1), y_1 = 0. C is {g ≤ 0}, or {g ≤ 0} ∩ B. The first is often much easier to
project onto, which is the reason for the splitting. `OnlineADM` plays x_t, which lies in B and may violate g ≤ 0.
`FeasibleOnlineADM` plays z_t, feasible in every round. C then has to lie in B.

Needs: a horizon for the tuned ρ and η ~ √T, a fixed constraint, and Π_C in every round.
Guarantees: `theorem`, for any x* in B ∩ C and any losses (`docs/proofs/derivations.md`). We know the rule from a
restatement and derived it from the problem. Not built: the form A x + B z = c, and strongly convex losses.
Not promised: feasibility in a single round by `OnlineADM`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, like, namespace
from longterm._base.validate import Hyper
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.needs import Need
from longterm.learners.interface.projection_check import known_projection, require_feasible_image, require_projection
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.problems.projections.base import Projection
from longterm.problems.sets import Set
from longterm.theory.bounds import HARD, LONG_TERM, REGRET, BoundValues, NoTheoremError, Rounds, horizons_of
from longterm.theory.paper import violation_bound

STRETCH = 3.0
"""The extent of the sample points of Π_C as a multiple of B: x + y/ρ leaves B."""


class OnlineADMState(NamedTuple):
    """The state (t, x_t, z_t, y_t)."""

    round: Array
    x: Array
    copy: Array
    multiplier: Array


@dataclass(frozen=True, eq=False)
class OnlineADM(Learner[OnlineADMState]):
    """Alternate between a set that is easy to project onto and a constraint that is easy to project onto.

    Online alternating directions. It plays the point of the first set, which may violate the constraint.

    Parameters
    ----------
    enclosing_set : Set
        The ball, box or other set that every decision stays in (B in the formulas).
    project : Projection
        The projection onto {g ≤ 0}, or onto its part inside B.
    eta, rho : float or array
        The weight of the distance from the last decision, and that of the distance from the projected copy.
    made_for : Constants, optional
        The problem's constants that η and ρ were made for.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import streams
    >>> problem, onto = lt.problems.two_dimensional(), lambda x: np.minimum(x, [0.25, np.inf])
    >>> learner = lt.learners.OnlineADM.for_problem(problem, horizon=500, projection=onto)
    >>> lt.run(problem, learner, streams.Replay([np.tile([0.8, 0.6], (500, 1))])).state.x.round(2)
    array([0.25, 0.6 ])
    """

    enclosing_set: Set
    project: Projection
    eta: Hyper
    rho: Hyper
    made_for: Constants | None = None

    name = "online_adm"
    title = "Online ADM"
    promises = {REGRET: "O(T^1/2)", HARD: "O(T^3/4)", LONG_TERM: "O(T^1/4) under affine constraints"}
    needs = frozenset({Need.FIXED_CONSTRAINT, Need.HORIZON, Need.PROJECTION})
    _plays_copy: ClassVar[bool] = False
    """True if z_t is played. It then has to lie in B."""

    def __post_init__(self) -> None:
        validate.set_frozen(self, eta=validate.non_negative("eta", self.eta), rho=validate.positive("rho", self.rho))

    @classmethod
    def for_problem(cls, problem: Problem, *, horizon: int, projection: Projection | None = None) -> Self:
        """Alternate between x_t in B and z_t in {g ≤ 0}, joined by a multiplier.

        η = ρ = G_f√T/r: regret at most (3/2) r G_f √T.

        Parameters
        ----------
        projection : Projection, optional
            Π_C, with C = {g ≤ 0} or {g ≤ 0} ∩ B. Default: the problem's onto {g ≤ 0} ∩ B.
        """
        onto, weight = cls._known_projection(problem, projection), _weight(problem, horizon)
        return cls(problem.enclosing_set, onto, weight, weight, problem.constants)

    @classmethod
    def _known_projection(cls, problem: Problem, given: Projection | None) -> Projection:
        onto = known_projection(cls.__name__, cls.needs, problem, given)
        require_projection(problem, onto, into_set=cls._plays_copy, stretch=STRETCH)
        return onto

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        require_feasible_image(problem, self.project, into_set=self._plays_copy, stretch=STRETCH)

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return regret ≤ P_T, Σ [g(x_t)]₊ ≤ min(D, G_g r) + G_g √((T − 1) S), and a line for affine constraints.

        P_T = (η + ρ) r²/2 + T G_f²/(2η) and S = (2/ρ)(P_{T−1} + F(T − 1)). Each affine constraint has
        Σ_t g_j(x_t) ≤ min(D, G_g r) + G_g √S.
        """
        c, T, rho = problem.constants, horizons_of(rounds, self.batch_shape), np.asarray(self.rho)
        drift = c.constraint_gradient_bound * violation_bound(1 / rho, self._regret(c, T - 1), c, T - 1)
        bounds = {REGRET: self._regret(c, T), HARD: c.first_violation + np.sqrt(T - 1) * drift}
        if problem.constraint.as_affine() is None:
            return bounds
        return {**bounds, LONG_TERM: c.first_violation + drift}

    def _regret(self, c: Constants, T: FloatArray) -> FloatArray:
        """Return P_T of `theorem`."""
        eta, rho = np.asarray(self.eta), np.asarray(self.rho)
        if np.any(eta <= 0):
            raise NoTheoremError("its proximal weight η is 0", "Give η > 0")
        return np.asarray((eta + rho) * c.radius**2 / 2 + T * c.loss_gradient_bound**2 / (2 * eta))

    def first_state(self, t: Array, x: Array) -> OnlineADMState:
        return OnlineADMState(t, x, self.project(x), namespace(x).zeros_like(x))

    def update(self, state: OnlineADMState, feedback: Feedback) -> OnlineADMState:
        eta, rho = as_column(like(np.asarray(self.eta), state.x)), as_column(like(np.asarray(self.rho), state.x))
        pull = eta * state.x + rho * state.copy - state.multiplier - feedback.loss_gradient
        x = self.enclosing_set.project(pull / (eta + rho))
        copy = self.project(x + state.multiplier / rho)
        return OnlineADMState(state.round + 1, x, copy, state.multiplier + rho * (x - copy))

    def report(self, state: OnlineADMState) -> dict[str, Array]:
        return {"multiplier": state.multiplier, "eta": like(self.eta, state.x), "rho": like(self.rho, state.x)}


class FeasibleOnlineADM(OnlineADM):
    """Play a feasible decision in every round by alternating directions.

    Online ADM that plays z_t, which the projection onto X = {g ≤ 0} ∩ B makes feasible.

    Its own proof needs no proximal term, so `for_problem` takes η = 0: x_{t+1} = Π_B(z_t − (y_t + ∇f_t)/ρ). Where Π_B
    moves nothing, z_t is projected gradient descent with step 1/ρ.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import streams
    >>> problem = lt.problems.two_dimensional()  # g = x₁ − ¼
    >>> learner = lt.learners.FeasibleOnlineADM.for_problem(problem, horizon=500)
    >>> trace = lt.run(problem, learner, streams.Replay([np.tile([0.8, 0.6], (500, 1))]))
    >>> bool(trace.hard_violation[-1] < 1e-9)
    True
    """

    name = "feasible_online_adm"
    title = "Feasible online ADM"
    promises = {REGRET: "O(T^1/2)", HARD: "0"}
    _plays_copy = True

    @classmethod
    def for_problem(cls, problem: Problem, *, horizon: int, projection: Projection | None = None) -> Self:
        """Alternate directions and play z_t, which is feasible in every round.

        η = 0, ρ = G_f√T/r: regret at most r G_f √T.

        Parameters
        ----------
        projection : Projection, optional
            Π_X, onto {g ≤ 0} ∩ B. Default: the problem's.
        """
        onto, weight = cls._known_projection(problem, projection), _weight(problem, horizon)
        return cls(problem.enclosing_set, onto, 0.0, weight, problem.constants)

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return regret ≤ (η + ρ) r²/2 + T G_f²/(2ρ), and violation 0."""
        c, T = problem.constants, horizons_of(rounds, self.batch_shape)
        eta, rho = np.asarray(self.eta), np.asarray(self.rho)
        regret = np.asarray((eta + rho) * c.radius**2 / 2 + T * c.loss_gradient_bound**2 / (2 * rho))
        return {REGRET: regret, HARD: np.zeros_like(regret)}

    def ask(self, state: OnlineADMState) -> Array:
        return state.copy


def _weight(problem: Problem, horizon: int) -> float:
    """Return G_f√T/r, the η and the ρ of the theorem."""
    constants = problem.constants
    return float(constants.loss_gradient_bound * np.sqrt(validate.dimension("horizon", horizon)) / constants.radius)
