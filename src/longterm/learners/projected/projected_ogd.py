"""Projected online gradient descent: feasible in every round, at the cost of one projection onto X per round.

    x_{t+1} = Π_X( x_t − η_t ∇f_t(x_t) ),      X = {g ≤ 0} ∩ B,      x_1 = Π_X(centre of B)

Steps: η_t = Δ/(G√t) for convex losses (Zinkevich 2003, with the factor Δ/G that balances his bound), η_t = 1/(σt) for
σ-strongly convex ones (Hazan, Agarwal, Kale 2007, Theorem 1). G bounds the gradients of the losses only. Δ bounds the
distance of two points of X: the diameter of B unless a smaller one is given.
Needs: the exact projection onto X, the same constraint in every round, one gradient of f_t at x_t. Never ∇g.
Guarantees, at every T: regret at most (3/2) ΔG√T, and (G²/(2σ)) (1 + ln T). No violation in any round, up to the
rounding of the projection. Proof: `docs/proofs/derivations.md`. Not promised: a cheap round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, as_column, like, namespace
from longterm._base.validate import Hyper
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.needs import Need, StepKind, require_strong_convexity
from longterm.learners.interface.projection_check import known_projection, require_feasible_image
from longterm.learners.interface.states import PointState
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.problems.projections.base import Projection
from longterm.problems.sets import Set
from longterm.theory.bounds import HARD, REGRET, BoundValues, NoTheoremError, Rounds, horizons_of


@dataclass(frozen=True, eq=False)
class ProjectedOGD(Learner[PointState]):
    """Never violate a fixed limit, at the price of a projection onto the feasible points in each round.

    Gradient descent with steps ``first_step / t**decay``, each projected.

    Parameters
    ----------
    enclosing_set : Set
        The ball, box or other set that every decision stays in (B in the formulas).
    projection : Projection
        The projection onto the feasible points, {g ≤ 0} ∩ B.
    first_step : float or array
        The size of the first step (η_1).
    decay : float or array
        The power of t by which steps shrink: ½ for convex losses, 1 for losses with σ ≥ 1/η_1.
    made_for : Constants, optional
        The problem's constants that the steps were made for.
    diameter : float or array, optional
        A diameter smaller than that of B that the steps were made for (Δ).

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> problem = lt.problems.two_dimensional()
    >>> learner = lt.learners.ProjectedOGD.for_problem(problem, steps="strongly convex")
    >>> state = learner.init()
    >>> for target in ([1.0, 0.0], [0.0, 1.0]):
    ...     state = learner.tell(state, lt.observe(problem, learner.ask(state), [np.array(target)]))
    >>> learner.ask(state)
    array([0.125, 0.5  ])
    """

    enclosing_set: Set
    projection: Projection
    first_step: Hyper
    decay: Hyper
    made_for: Constants | None = None
    diameter: Hyper | None = None

    name = "projected_ogd"
    title = "Projected OGD"
    drifting = ({},)
    promises = {REGRET: "O(T^1/2); O(log T) if strongly convex", HARD: "0"}
    variants = ({}, {"steps": "strongly convex"})
    needs = frozenset({Need.PROJECTION, Need.FIXED_CONSTRAINT})

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "first_step")
        validate.validate_fields(self, validate.non_negative, "decay")

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        steps: StepKind = "convex",
        diameter: Hyper | None = None,
        projection: Projection | None = None,
    ) -> ProjectedOGD:
        """Project onto {g ≤ 0} in every round: no violation, at the cost of a projection.

        Parameters
        ----------
        steps : {"convex", "strongly convex"}
            The steps of Zinkevich, or of Hazan, Agarwal and Kale with the problem's σ.
        diameter : float or array, optional
            The diameter of X, for the convex steps. Default: that of B.
        projection : Projection, optional
            The exact Euclidean projection onto {g ≤ 0} ∩ B. Default: the problem's.
        """
        onto = known_projection(cls.__name__, cls.needs, problem, projection)
        c = problem.constants
        if steps != "convex":
            sigma = require_strong_convexity(problem, steps)
            return cls(problem.enclosing_set, onto, 1 / sigma, 1.0, c)
        given = None if diameter is None else validate.positive("diameter", diameter)
        used = c.diameter if given is None else given
        return cls(problem.enclosing_set, onto, used / c.loss_gradient_bound, 0.5, c, given)

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        require_feasible_image(problem, self.projection, into_set=True)

    @property
    def strong_convexity(self) -> Hyper:
        return validate.number("strong_convexity", np.where(np.asarray(self.decay) == 1, 1 / self.first_step, 0.0))

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bound above with Σ 1/√t ≤ 2√T or Σ 1/t ≤ 1 + ln T, for steps η_1/√t or η_1/t."""
        T, first = horizons_of(rounds, self.batch_shape), np.asarray(self.first_step)
        G = problem.constants.loss_gradient_bound
        if np.all(self.decay == 1):
            regret = np.asarray(first * G**2 / 2 * (1 + np.log(T)))
        elif np.all(self.decay == 0.5):
            diameter = np.asarray(problem.constants.diameter if self.diameter is None else self.diameter)
            regret = np.asarray((diameter**2 / (2 * first) + first * G**2) * np.sqrt(T))
        else:
            raise NoTheoremError("its steps fall neither like 1/√t nor like 1/t", "Use decay=0.5 or decay=1")
        return {REGRET: regret, HARD: np.zeros_like(regret)}

    def initial_x(self, batch_shape: tuple[int, ...], xp: Any, dtype: Any) -> Array:
        return self.projection(super().initial_x(batch_shape, xp, dtype))

    def update(self, state: PointState, feedback: Feedback) -> PointState:
        moved = state.x - as_column(self._eta(state)) * feedback.loss_gradient
        return PointState(state.round + 1, self.projection(moved))

    def report(self, state: PointState) -> dict[str, Array]:
        return {"eta": self._eta(state)}

    def _eta(self, state: PointState) -> Array:
        t = namespace(state.x).astype(state.round, state.x.dtype)
        return like(self.first_step, state.x) / t ** like(self.decay, state.x)
