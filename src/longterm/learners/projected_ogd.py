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
Guarantees, at every T: regret at most (3/2) ΔG√T, and (G²/(2σ)) (1 + ln T); no violation in any round, up to the
rounding of the projection. With a_t = ‖x_t − x*‖² and x* in X, projecting onto X does not increase distances to it, so

    f_t(x_t) − f_t(x*) ≤ (a_t − a_{t+1})/(2η_t) − (σ/2) a_t + (η_t/2) G².

Summed over t, with a_t ≤ Δ² and 1/η_t − 1/η_{t−1} ≥ 0: for η_t = Δ/(G√t) and σ = 0 the first part is at most
Δ²/(2η_T) = ΔG√T/2 and the second (ΔG/2) Σ 1/√t ≤ ΔG√T. For η_t = 1/(σt) the first part vanishes, and
Σ 1/t ≤ 1 + ln T.

Whether a user's projection onto X is one is tried on a few points, here and for the other learners that ask for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, as_column, like, namespace
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need, StepKind, require_needs, require_strong_convexity
from longterm.problems import Problem
from longterm.projections import Projection
from longterm.sets import Set
from longterm.theory.bounds import HARD, REGRET, NoTheoremError, horizons_of

SAMPLES = 32
TOLERANCE = 1e-6
"""Solvers that stop early count as projections up to this share of D, and of the diameter."""


def known_projection(learner: type[Learner[Any]], problem: Problem, given: Projection | None) -> Projection:
    """The projection that was given, or the problem's own onto {g ≤ 0} ∩ B; refused where neither is known."""
    require_needs(learner.__name__, learner.needs, problem)
    known = problem.projection if given is None else given
    if known is None:
        what = f"{learner.__name__} needs {Need.PROJECTION.value} and B, and none is known for {problem.name!r}"
        remedy = "Give the exact Euclidean projection as projection=, or choose a learner without, A-OGD for example"
        raise InputError("problem", what, remedy)
    return known


def require_projection(problem: Problem, project: Projection, *, into_set: bool, stretch: float = 1.0) -> None:
    """Raise if what `project` returns is infeasible, or if it moves points that are feasible already."""
    points = _tried(problem, stretch)
    projected = require_feasible_image(problem, project, into_set=into_set, stretch=stretch)
    over = problem.enclosing_set
    feasible = (problem.constraint.values(points).max(axis=-1) <= 0) & over.contains(points)
    moved = float(np.max(np.linalg.norm(projected - points, axis=-1)[feasible], initial=0.0))
    if moved > TOLERANCE * problem.constants.diameter:
        what = f"moved a feasible point by {moved:.3g}"
        raise InputError("projection", what, "A projection leaves feasible points where they are")


def require_feasible_image(
    problem: Problem, project: Projection, *, into_set: bool, stretch: float = 1.0
) -> FloatArray:
    """Raise if what `project` returns is infeasible; with `into_set` it has to lie in B too. Returns what it did."""
    if not callable(project):
        raise InputError("projection", f"{project!r} cannot be called", "Give the Euclidean projection onto {g ≤ 0}")
    points = _tried(problem, stretch)
    projected = np.asarray(project(points))
    if projected.shape != points.shape:
        what = f"returned shape {projected.shape} for points of shape {points.shape}"
        raise InputError("projection", what, "Write it for x of shape (..., d), so that it returns the same shape")
    worst = float(problem.constraint.values(projected).max())
    if not worst <= TOLERANCE * problem.constants.constraint_bound:
        what = f"returned a point with g = {worst:.3g}"
        raise InputError("projection", what, "Give the Euclidean projection onto {g ≤ 0}")
    if into_set and not np.all(problem.enclosing_set.contains(projected, TOLERANCE)):
        raise InputError("projection", "returned a point outside B", "Give the Euclidean projection onto {g ≤ 0} ∩ B")
    return projected


def _tried(problem: Problem, stretch: float) -> FloatArray:
    """Points of B, moved away from its centre by the factor `stretch`."""
    over = problem.enclosing_set
    return np.asarray(over.centre + stretch * (over.sample(np.random.default_rng(0), SAMPLES) - over.centre))


class ProjectedOGDState(NamedTuple):
    """(t, x_t)."""

    round: Array
    x: Array


@dataclass(frozen=True, eq=False)
class ProjectedOGD(Learner[ProjectedOGDState]):
    """Gradient descent with steps `first_step`/t^`decay`, projected onto X by `projection`.

    Parameters
    ----------
    enclosing_set : Set
        B.
    projection : Projection
        Π onto X = {g ≤ 0} ∩ B.
    first_step : float or array
        η_1.
    decay : float or array
        p of η_t = η_1/t^p: ½ for convex losses; with 1 the steps are those for σ = 1/η_1, and losses that are less
        strongly convex are refused.
    made_for : float or array, optional
        The bound on the losses' gradients that the steps were made for, if they were made for one.
    diameter : float or array, optional
        A Δ smaller than the diameter of B that the steps were made for: no two points of X are farther apart.

    Examples
    --------
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
    diameter: Hyper | None = None

    name: ClassVar[str] = "projected_ogd"
    title: ClassVar[str] = "Projected OGD"
    drifting: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(T^1/2); O(log T) if strongly convex", HARD: "0"}
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"steps": "strongly convex"})
    needs: ClassVar[frozenset[Need]] = frozenset({Need.PROJECTION, Need.FIXED_CONSTRAINT})

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
        """Online gradient descent that projects onto {g ≤ 0} in every round: no violation, at the price of projecting.

        Parameters
        ----------
        problem : Problem
            What is to be played.
        steps : {"convex", "strongly convex"}
            Those of Zinkevich, or of Hazan, Agarwal and Kale with the problem's σ.
        diameter : float or array, optional
            Of X, for the convex steps; left out, that of B.
        projection : Projection, optional
            The exact Euclidean projection onto {g ≤ 0} ∩ B; left out, the problem's.
        """
        onto, G = known_projection(cls, problem, projection), problem.constants.loss_gradient_bound
        if steps != "convex":
            sigma = require_strong_convexity(problem, steps)
            return cls(problem.enclosing_set, onto, 1 / sigma, 1.0, G)
        narrower = None if diameter is None else validate.positive("diameter", diameter)
        wide = problem.constants.diameter if narrower is None else narrower
        return cls(problem.enclosing_set, onto, wide / G, 0.5, G, narrower)

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        require_feasible_image(problem, self.projection, into_set=True)

    @property
    def strong_convexity(self) -> Hyper:
        return validate.number("strong_convexity", np.where(np.asarray(self.decay) == 1, 1 / self.first_step, 0.0))

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """Σ 1/√t ≤ 2√T or Σ 1/t ≤ 1 + ln T in the bound above, for steps η_1/√t or η_1/t; no violation.

        Examples
        --------
        >>> from longterm.learners import ProjectedOGD
        >>> from longterm.problems import two_dimensional
        >>> problem = two_dimensional()
        >>> float(ProjectedOGD.for_problem(problem).bound(problem, 100)["regret"])
        60.0
        """
        T = horizons_of(rounds, self.batch_shape)
        regret = self._regret(problem, T, 1 + np.log(T) if np.all(self.decay == 1) else 2 * np.sqrt(T))
        return {REGRET: regret, HARD: np.zeros_like(regret)}

    def regret_by_exact_sums(self, problem: Problem, rounds: ArrayLike) -> FloatArray:
        """The bound on the regret with Σ 1/√t or Σ 1/t added up."""
        T = horizons_of(validate.horizons("rounds", rounds), self.batch_shape)
        totals = np.cumsum(np.arange(1, int(T.max()) + 1) ** -(1.0 if np.all(self.decay == 1) else 0.5))
        return self._regret(problem, T, totals[T.astype(np.int64) - 1])

    def _regret(self, problem: Problem, T: FloatArray, sums: FloatArray) -> FloatArray:
        """(η_1/2) G² `sums`, and for steps η_1/√t Δ²√T/(2η_1) besides."""
        first, G = np.asarray(self.first_step), problem.constants.loss_gradient_bound
        if np.all(self.decay == 1):
            return np.asarray(first * G**2 / 2 * sums)
        if not np.all(self.decay == 0.5):
            raise NoTheoremError("its steps fall neither like 1/√t nor like 1/t", "Take decay = ½ or 1")
        wide = np.asarray(problem.constants.diameter if self.diameter is None else self.diameter)
        return np.asarray(wide**2 * np.sqrt(T) / (2 * first) + first * G**2 / 2 * sums)

    @property
    def loss_gradient_bound(self) -> Hyper | None:
        return self.made_for

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> ProjectedOGDState:
        x = self.projection(self.initial_x(batch_shape, xp, dtype))
        return ProjectedOGDState(xp.asarray(1, dtype=xp.int64), x)

    def ask(self, state: ProjectedOGDState) -> Array:
        return state.x

    def update(self, state: ProjectedOGDState, feedback: Feedback) -> ProjectedOGDState:
        moved = state.x - as_column(self._eta(state)) * feedback.loss_gradient
        return ProjectedOGDState(round=state.round + 1, x=self.projection(moved))

    def report(self, state: ProjectedOGDState) -> dict[str, Array]:
        return {"eta": self._eta(state)}

    def _eta(self, state: ProjectedOGDState) -> Array:
        t = namespace(state.x).astype(state.round, state.x.dtype)
        return like(self.first_step, state.x) / t ** like(self.decay, state.x)
