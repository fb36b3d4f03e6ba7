"""Online ADM: alternating directions with the constraint split off (Wang, Banerjee 2013, arXiv 1306.3721).

min Σ f_t(x) over x in B and in C is written with a copy z of x: x in B, z in C, x = z. With y the multiplier of
x = z, f_t linearised at the point played and a proximal term,

    x_{t+1} = argmin_{x ∈ B} ⟨∇f_t + y_t, x⟩ + ρ/2 ‖x − z_t‖² + η/2 ‖x − x_t‖²
            = Π_B( (η x_t + ρ z_t − y_t − ∇f_t) / (η + ρ) )
    z_{t+1} = argmin_{z ∈ C} −⟨y_t, z⟩ + ρ/2 ‖x_{t+1} − z‖²  =  Π_C( x_{t+1} + y_t/ρ )
    y_{t+1} = y_t + ρ ( x_{t+1} − z_{t+1} )

from x_1 the centre of B, z_1 = Π_C(x_1), y_1 = 0. (η is the weight of the proximal term, as in the article.) C is
{g ≤ 0}, or {g ≤ 0} ∩ B. The first is often much easier to project onto, which is what the splitting is for.

`OnlineADM` plays x_t, which lies in B and may break g ≤ 0. `FeasibleOnlineADM` plays z_t, feasible in every round.

Needs: a horizon for the tuned ρ and η ~ √T, a fixed constraint, and Π_C in every round.
Guarantees (r = max ‖x_1 − x‖ over B, G_f for the losses alone; `docs/derivations.md` has the proof):

    x played   regret ≤ (η + ρ) r²/2 + T G_f²/(2η), and Σ [g(x_t)]₊ = O(T^{3/4});
               for every *affine* constraint g_j even Σ g_j(x_t) = O(T^{1/4})
    z played   regret ≤ (η + ρ) r²/2 + T G_f²/(2ρ), and no violation at all

Checked: the rule came second-hand and was derived from the problem; the O(√T) that the article gives for the squared
residuals Σ ‖x_{t+1} − z_t‖² comes out as it says (new point, old copy); the two statements on g follow from it and
from ‖y_T‖. Not built: the form A x + B z = c, and the logarithmic rates for strongly convex losses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, column, like
from longterm._validate import Hyper
from longterm.learners._given_projection import Projection, require_feasible_image, require_projection
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need, require_needs
from longterm.problems import Problem
from longterm.sets import Set


class OnlineADMState(NamedTuple):
    """(t, x_t, z_t, y_t)."""

    round: Array
    x: Array
    copy: Array
    multiplier: Array


@dataclass(frozen=True, eq=False)
class OnlineADM(Learner[OnlineADMState]):
    """Online ADM that plays x_t. `project` is Π_C, with C = {g ≤ 0} or {g ≤ 0} ∩ B.

    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.problems import two_dimensional
    >>> from longterm.learners import OnlineADM
    >>> from longterm.streams import Replay
    >>> problem = two_dimensional()
    >>> learner = OnlineADM.for_problem(problem, horizon=500, projection=lambda x: np.minimum(x, [0.25, np.inf]))
    >>> trace = run(problem, learner, Replay([np.tile([0.8, 0.6], (500, 1))]))
    >>> trace.state.x.round(2), trace.signed_violation[-1].round(2)
    (array([0.25, 0.6 ]), np.float64(-4.02))
    """

    enclosing_set: Set
    project: Projection
    eta: Hyper
    rho: Hyper
    gradient_bound: Hyper | None = None
    needs: ClassVar[frozenset[Need]] = frozenset({Need.FIXED_CONSTRAINT, Need.HORIZON, Need.PROJECTION})

    def __post_init__(self) -> None:
        validate.remember(self, eta=validate.non_negative("eta", self.eta), rho=validate.positive("rho", self.rho))

    @classmethod
    def tuned(cls, problem: Problem, project: Projection, rounds: int) -> Self:
        """η = ρ = G_f√T/r: regret at most (3/2) r G_f √T."""
        require_needs(cls.__name__, cls.needs, problem)
        require_projection(problem, project, into_set=False, stretch=3.0)
        weight = _weight(problem, rounds)
        return cls(problem.enclosing_set, project, weight, weight, problem.constants.gradient_bound)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        require_feasible_image(problem, self.project, into_set=False, stretch=3.0)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> OnlineADMState:
        x = self.at_the_centre(batch_shape, xp, dtype)
        return OnlineADMState(xp.asarray(1, dtype=xp.int64), x, self.project(x), xp.zeros_like(x))

    def ask(self, state: OnlineADMState) -> Array:
        return state.x

    def update(self, state: OnlineADMState, feedback: Feedback) -> OnlineADMState:
        eta, rho = column(like(np.asarray(self.eta), state.x)), column(like(np.asarray(self.rho), state.x))
        pull = eta * state.x + rho * state.copy - state.multiplier - feedback.loss_gradient
        x = self.enclosing_set.project(pull / (eta + rho))
        copy = self.project(x + state.multiplier / rho)
        return OnlineADMState(state.round + 1, x, copy, state.multiplier + rho * (x - copy))

    def report(self, state: OnlineADMState) -> dict[str, Array]:
        return {"multiplier": state.multiplier, "eta": like(self.eta, state.x), "rho": like(self.rho, state.x)}


@dataclass(frozen=True, eq=False)
class FeasibleOnlineADM(OnlineADM):
    """Online ADM that plays z_t: feasible in every round. `project` is Π_X, onto {g ≤ 0} ∩ B.

    Its own proof needs no proximal term, so the tuned η is 0: x_{t+1} = Π_B(z_t − (y_t + ∇f_t)/ρ). Where Π_B moves
    nothing, z_t is projected gradient descent with step 1/ρ.
    """

    @classmethod
    def tuned(cls, problem: Problem, project: Projection, rounds: int) -> Self:
        """η = 0, ρ = G_f√T/r: regret at most r G_f √T."""
        require_needs(cls.__name__, cls.needs, problem)
        require_projection(problem, project, into_set=True, stretch=3.0)
        return cls(problem.enclosing_set, project, 0.0, _weight(problem, rounds), problem.constants.gradient_bound)

    def ask(self, state: OnlineADMState) -> Array:
        return state.copy


def _weight(problem: Problem, rounds: int) -> float:
    """G_f√T/r."""
    constants = problem.constants
    return float(constants.loss_gradient_bound * np.sqrt(validate.dimension("rounds", rounds)) / constants.radius)
