"""A tracker on the loss plus a penalty without memory: regret against comparators that move.

    d_t = a subgradient at x_t of   f_t                                  penalty "none"
                                    f_t + 2G_f dist(·, X) + [g]₊         "distance": fixed g, its projection known
                                    f_t + (1 + W)[g_t]₊,  W = G_fΔ/ε     "slater": g_t ≤ −ε at a point of each round

The penalty has no memory, so the tracker's bound on an interval, or against a path, holds for loss and violation
together. For u_t in B with g_t(u_t) ≤ 0 in its own round, path P, and 𝓐(P) the tracker's bound with the penalised
gradients' bound for G',

    Σ f_t(x_t) − f_t(u_t) + Σ [g_t(x_t)]₊ ≤ 𝓐(P);     Σ [g_t(x_t)]₊ ≤ 𝓐(P*), P* the path of u*_t = argmin_{X_t} f_t

`bound` has the first line, with `path`; `violation_bound` has the second. "distance" with Ader is Supantha and Sinha's
method (2026; abstract read, proof ours: `docs/proofs/drift.md`). "projection" keeps
all experts in a fixed X: no violation, and 𝓐 has G_f for G'.
Not promised: with penalty "none", anything about the constraint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, namespace, norm
from longterm._base.selection import clamp_to_divisor
from longterm.errors import InputError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.horizons import require_within_horizon
from longterm.learners.interface.needs import Need
from longterm.learners.surrogates.surrogate import Price, Surrogate
from longterm.learners.tracking.ader import Ader
from longterm.learners.tracking.hedged_restarts import HedgedRestarts
from longterm.learners.tracking.tracker import Tracker
from longterm.problems import Problem
from longterm.problems.projections.base import Projection
from longterm.theory.bounds import REGRET, BoundValues, Rounds, horizons_of, require_covered

PenaltyKind = Literal["none", "distance", "slater", "projection"]
TrackerName = Literal["ader", "restarts"]
TRACKERS: Mapping[TrackerName, type[Tracker]] = {"ader": Ader, "restarts": HedgedRestarts}


@dataclass(frozen=True, eq=False)
class FixedPrice(Price):
    """A constant weight of [g_t]₊, and one of the distance to X in rounds that violate g_t."""

    weight: float = 0.0
    distance_weight: float = 0.0
    projection: Projection | None = None

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.non_negative_scalar, "weight", "distance_weight")

    def charge(self, queue: Array, t: Array, constraint: Array) -> tuple[Array, Array]:
        return self.weight + namespace(constraint).zeros_like(constraint), queue

    def gradient(self, weight: Array, x: Array, feedback: Feedback) -> Array:
        penalty = super().gradient(weight, x, feedback)
        if self.projection is None:
            return penalty
        broken = namespace(x).astype(feedback.constraint > 0, x.dtype)
        away = x - self.projection(x)
        return penalty + self.distance_weight * as_column(broken) * away / as_column(clamp_to_divisor(norm(away)))


@dataclass(frozen=True, eq=False)
class TrackedPenalty(Surrogate):
    """Follow a best decision that moves, under limits that may move too.

    A tracker on the loss plus a penalty with constant weights.

    Parameters
    ----------
    inner : Tracker
        The rule without constraints, on its enclosing set.
    price : FixedPrice
        The constant weights of the penalty.
    made_for : Constants, optional
        The problem's constants that the weights were made for.
    path : float
        An upper limit, used by `bound` alone, on how far the best decision moves in all rounds together (P in the
        formulas). 0 is one best decision for all rounds. The rule does not read it.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import constraints, losses, sets, streams
    >>> problem = lt.Problem(sets.Ball(2), losses.Linear(2), constraints.L2Budget(2, budget=0.5))
    >>> turning = streams.Replay([np.repeat([[1.0, 0.0], [-1.0, 0.0]], 500, axis=0)])  # at best −½ a round
    >>> trace = lt.run(problem, lt.learners.TrackedPenalty.for_problem(problem, horizon=1000), turning)
    >>> float(trace.cumulative_loss[-1].round()), float(trace.hard_violation[-1].round())
    (-450.0, 3.0)
    """

    inner: Tracker
    price: FixedPrice
    path: float = 0.0

    needs = frozenset({Need.HORIZON})
    name = "tracked_penalty"
    title = "Tracked penalty"
    promises = {REGRET: "O(√(T(1 + P))), moving, with the hard violation added"}
    variants = ()
    drifting = ({"slack": 0.3}, {"slack": 0.3, "tracker": "restarts"})

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.validate_fields(self, validate.non_negative_scalar, "path")

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        horizon: int,
        tracker: TrackerName = "ader",
        penalty: PenaltyKind | None = None,
        slack: float | None = None,
        path: float = 0.0,
    ) -> TrackedPenalty:
        """Track a moving comparator on the loss plus a penalty without memory.

        Parameters
        ----------
        tracker : {"ader", "restarts"}
            The best rate against paths, or restarts without a known period.
        penalty : {"none", "distance", "slater", "projection"}, optional
            Default: the distance where the projection is known, else that of a Slater point.
        slack : float, optional
            ε: in every round some point has g_t ≤ −ε. Default: that of a fixed constraint.
        path : float
            P, for `bound` alone.
        """
        c, B, fixed = problem.constants, problem.enclosing_set, not problem.constraint.parameters
        if penalty is None:
            penalty = "distance" if fixed and problem.projection is not None else "slater"
        validate.choice("penalty", penalty, get_args(PenaltyKind))
        validate.choice("tracker", tracker, TRACKERS)
        weight, distance_weight, onto = 0.0, 0.0, None
        if penalty in ("distance", "projection"):
            onto = problem.projection if fixed else None
            if onto is None:
                what = f"no exact projection onto a fixed {{g ≤ 0}} is known for {problem.name!r}"
                raise InputError("penalty", what, "Choose penalty='slater' with a slack=, or 'none'")
            if penalty == "projection":
                return cls(TRACKERS[tracker](B, c.loss_gradient_bound, horizon, onto), FixedPrice(), c, path)
            weight, distance_weight = 1.0, 2 * c.loss_gradient_bound
        elif penalty == "slater":
            weight = 1 + c.loss_gradient_bound * c.diameter / _slack(problem, slack)
        G = c.loss_gradient_bound + weight * c.constraint_gradient_bound + distance_weight
        return cls(TRACKERS[tracker](B, G, horizon), FixedPrice(weight, distance_weight, onto), c, path)

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bound on the regret against u with Σ ‖u_t − u_{t−1}‖ ≤ `path`, each feasible in its round."""
        c, price = problem.constants, self.price
        longest = c.loss_gradient_bound + price.weight * c.constraint_gradient_bound + price.distance_weight
        require_covered({"G'": (self.inner.gradient_bound, longest)}, "Use TrackedPenalty.for_problem")
        return {REGRET: self._tracked(rounds, self.path)}

    def violation_bound(self, rounds: Rounds | int, path: float) -> FloatArray:
        """Return the bound on the hard violation if the best decisions of single rounds have a path of `path`.

        It is proved for the weights of `for_problem`. Smaller ones than 1 are refused.
        """
        if self.price.weight < 1:
            what = f"with a weight of {self.price.weight:g} in the loss nothing bounds the violation"
            raise InputError("penalty", what, "Choose 'distance' or 'slater' with for_problem")
        return self._tracked(np.asarray(rounds), path)

    def _tracked(self, rounds: Rounds, path: float) -> FloatArray:
        t = horizons_of(np.asarray(rounds), self.batch_shape)
        require_within_horizon(t, self.inner.horizon)
        return self.inner.dynamic_regret(t, path)


def _slack(problem: Problem, given: float | None) -> float:
    """Return ε, that of the user or of a fixed constraint's Slater point."""
    point = None if problem.constraint.parameters else problem.slater_point
    epsilon = given if given is not None else None if point is None else point.epsilon
    if epsilon is None:
        what = f"no Slater point of every round is known for {problem.name!r}"
        raise InputError("slack", what, "Give ε, such that in every round some point has g ≤ −ε")
    return validate.positive_scalar("slack", epsilon)
