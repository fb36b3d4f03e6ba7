"""Projected online gradient descent: the learner that pays for feasibility with a projection onto X in every round.

    x_{t+1} = Π_X( x_t − η_t ∇f_t(x_t) ),      X = {g ≤ 0} ∩ B,      x_1 = Π_X(centre of B)

- convex losses (Zinkevich, *Online convex programming and generalized infinitesimal gradient ascent*, 2003):
  η_t = Δ/(G√t);
- σ-strongly convex losses (Hazan, Agarwal, Kale, *Logarithmic regret algorithms for online convex optimization*,
  2007, Theorem 1): η_t = 1/(σt).

Here G bounds the gradients of the losses only, and Δ is any number that no two points of X are farther apart than:
the diameter of B unless a smaller one is given. Zinkevich's article has η_t = 1/√t; the factor Δ/G balances the two
terms of its bound.
Needs: the exact projection onto X, the same constraint in every round, one gradient of f_t at x_t; never ∇g.
Guarantees: `longterm.bounds.zinkevich` and `longterm.bounds.hazan_agarwal_kale`, at every T; no violation in any
round, up to the rounding of the projection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, column, like, namespace
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.learners._given_projection import require_feasible_image
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need, require_needs
from longterm.problems import Problem
from longterm.projections import Projection
from longterm.sets import Set


class ProjectedOGDState(NamedTuple):
    """(t, x_t)."""

    round: Array
    x: Array


@dataclass(frozen=True, eq=False)
class ProjectedOGD(Learner[ProjectedOGDState]):
    """Gradient descent with steps `first_step`/t^`decay`, projected onto X by `projection`.

    >>> import numpy as np
    >>> from longterm import observe
    >>> from longterm.learners import ProjectedOGD
    >>> from longterm.problems import two_dimensional
    >>> problem = two_dimensional()
    >>> learner = ProjectedOGD.for_problem(problem, steps="strongly convex")
    >>> state = learner.init()
    >>> for target in ([1.0, 0.0], [0.0, 1.0]):
    ...     state = learner.tell(state, observe(problem, learner.ask(state), [np.array(target)]))
    >>> learner.ask(state)
    array([0.125, 0.5  ])
    """

    enclosing_set: Set
    projection: Projection
    first_step: Hyper
    decay: Hyper
    made_for: Hyper | None = None
    """The bound on the losses' gradients that the steps were made for, if they were made for one."""

    needs: ClassVar[frozenset[Need]] = frozenset({Need.PROJECTION, Need.FIXED_CONSTRAINT})

    def __post_init__(self) -> None:
        validate.remember(
            self,
            first_step=validate.positive("first_step", self.first_step),
            decay=validate.non_negative("decay", self.decay),
        )

    @classmethod
    def convex(
        cls, problem: Problem, *, diameter: Hyper | None = None, projection: Projection | None = None
    ) -> ProjectedOGD:
        """Zinkevich's steps, with the problem's own G and the diameter of B, or a smaller one that X has."""
        wide = problem.constants.diameter if diameter is None else validate.positive("diameter", diameter)
        G = problem.constants.loss_gradient_bound
        return cls(problem.enclosing_set, _onto(problem, projection), wide / G, 0.5, G)

    @classmethod
    def strongly_convex(cls, problem: Problem, *, projection: Projection | None = None) -> ProjectedOGD:
        """The steps of Hazan, Agarwal and Kale, with the problem's own σ."""
        sigma = problem.constants.strong_convexity
        if sigma <= 0:
            raise InputError(
                "problem",
                f"the losses of {problem.name!r} are not strongly convex (σ = {sigma:g})",
                "Use ProjectedOGD.convex, or declare a strong_convexity that holds",
            )
        made_for = problem.constants.loss_gradient_bound
        return cls(problem.enclosing_set, _onto(problem, projection), 1 / sigma, 1.0, made_for)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        require_feasible_image(problem, self.projection, into_set=True)

    @property
    def loss_gradient_bound(self) -> Hyper | None:
        return self.made_for

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> ProjectedOGDState:
        x = self.projection(self.at_the_centre(batch_shape, xp, dtype))
        return ProjectedOGDState(xp.asarray(1, dtype=xp.int64), x)

    def ask(self, state: ProjectedOGDState) -> Array:
        return state.x

    def update(self, state: ProjectedOGDState, feedback: Feedback) -> ProjectedOGDState:
        moved = state.x - column(self._eta(state)) * feedback.loss_gradient
        return ProjectedOGDState(round=state.round + 1, x=self.projection(moved))

    def report(self, state: ProjectedOGDState) -> dict[str, Array]:
        return {"eta": self._eta(state)}

    def _eta(self, state: ProjectedOGDState) -> Array:
        t = namespace(state.x).astype(state.round, state.x.dtype)
        return like(self.first_step, state.x) / t ** like(self.decay, state.x)


def _onto(problem: Problem, given: Projection | None) -> Projection:
    """The projection onto X that was given, or the problem's own."""
    require_needs("ProjectedOGD", ProjectedOGD.needs, problem)
    found = problem.projection if given is None else given
    if found is None:
        raise InputError(
            "problem",
            f"projected OGD needs {Need.PROJECTION.value} and B, and none is known for {problem.name!r}",
            "Give the exact Euclidean projection as projection=, or choose a learner without, A-OGD for example",
        )
    return found
