"""Follow what moves, constraints by a penalty without memory: a rule for moving comparators on f_t plus a penalty.

    d_t = a subgradient at x_t of   f_t                                  penalty "none"
                                    f_t + 2G_f dist(·, X) + [g]₊         "distance": fixed g, its projection known
                                    f_t + (1 + W)[g_t]₊,  W = G_fΔ/ε     "slater": g_t ≤ −ε at a point of each round

and d_t goes to a `Tracker` (`learners.tracking`). The penalty has no memory, so what the tracker promises on an
interval, or against a path, is promised of loss and violation together: for u_t in B with g_t(u_t) ≤ 0 in its own
round, P its path and 𝓐(P) the tracker's promise with the penalised gradients' bound for G',

    Σ f_t(x_t) − f_t(u_t) + Σ [g_t(x_t)]₊ ≤ 𝓐(P);     Σ [g_t(x_t)]₊ ≤ 𝓐(P*), P* the path of u*_t = argmin_{X_t} f_t

Proof. The penalised loss of u_t is f_t(u_t). And f_t(x) + G_f dist(x, X_t) ≥ f_t(u*_t): move x to its projection. With
a point of slack ε, [g_t(x)]₊ ≥ (ε/Δ) dist(x, X_t) by convexity on the segment to it, so W[g_t]₊ ≥ G_f dist. ∎ The
first line for all u at once (`bound`, with `path`), the second by `violation_bound`. The "distance" form with Ader is
Supantha and Sinha's (2026; abstract read, proof ours). Strongly adaptive: on **every** interval I and u feasible in
all of it, Reg_I + Σ_I [g]₊ ≤ SA(|I|). "none" is for problems whose constraint does not matter: it promises the regret
alone. "projection" keeps all experts in a fixed X, whose projection is known: nothing is broken, and 𝓐 has G_f for G'.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, column, floored, namespace, norm
from longterm.errors import InputError
from longterm.learners._given import Projection
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need
from longterm.learners.tracking import RULES, Tracker
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.bounds import REGRET, horizons_of

PenaltyKind = Literal["none", "distance", "slater", "projection"]
TrackerName = Literal["ader", "strongly adaptive", "restarts"]


class TrackedPenaltyState(NamedTuple):
    """(t, x_t) and what the tracker remembers."""

    round: Array
    x: Array
    memory: Array


@dataclass(frozen=True, eq=False)
class TrackedPenalty(Learner[TrackedPenaltyState]):
    """A tracker on f_t + `price`·[g_t]₊ + `distance_price`·dist(·, X).

    Parameters
    ----------
    tracker : Tracker
        The rule without constraints, on its enclosing set.
    price : float
        Of [g_t]₊.
    distance_price : float
        Of the distance to X.
    projection : callable, optional
        Onto X, where the distance has a price.
    path : float
        P, for `bound`; the rule does not read it.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import Problem, run
    >>> from longterm.constraints import L2Budget
    >>> from longterm.learners import TrackedPenalty
    >>> from longterm.losses import Linear
    >>> from longterm.sets import Ball
    >>> from longterm.streams import Replay
    >>> problem = Problem(Ball(2), Linear(2), L2Budget(2, budget=0.5))
    >>> turning = Replay([np.repeat([[1.0, 0.0], [-1.0, 0.0]], 500, axis=0)])  # at best −½ a round
    >>> learner = TrackedPenalty.for_problem(problem, horizon=1000)
    >>> trace = run(problem, learner, turning)
    >>> float(trace.cumulative_loss[-1].round()), float(trace.hard_violation[-1].round())
    (-450.0, 3.0)
    """

    tracker: Tracker
    price: float = 0.0
    distance_price: float = 0.0
    projection: Projection | None = None
    path: float = 0.0
    enclosing_set: Set = field(init=False, repr=False)

    needs: ClassVar[frozenset[Need]] = frozenset({Need.HORIZON})
    name: ClassVar[str] = "tracked_penalty"
    title: ClassVar[str] = "Tracked penalty"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(√(T(1 + P))), moving, with the hard violation added"}
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    drifting: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"slater": 0.3},
        {"slater": 0.3, "tracker": "strongly adaptive"},
        {"slater": 0.3, "tracker": "restarts"},
    )

    def __post_init__(self) -> None:
        validate.remember(
            self,
            price=validate.non_negative_scalar("price", self.price),
            distance_price=validate.non_negative_scalar("distance_price", self.distance_price),
            path=validate.non_negative_scalar("path", self.path),
            enclosing_set=self.tracker.enclosing_set,
        )

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        horizon: int,
        tracker: TrackerName = "ader",
        penalty: PenaltyKind | None = None,
        slater: float | None = None,
        path: float = 0.0,
    ) -> TrackedPenalty:
        """Ader, a strongly adaptive rule or hedged restarts on the loss and a penalty without memory: for what drifts.

        Parameters
        ----------
        problem : Problem
            Gives B, Δ, G_f, G_g, the projection or the Slater point.
        horizon : int
            T.
        tracker : {"ader", "strongly adaptive", "restarts"}
            The best rate against paths; small regret on every interval; or restarts whose period need not be known.
        penalty : {"none", "distance", "slater", "projection"}, optional
            Left out: the distance where the projection is known, else that of a Slater point. "projection" is no
            penalty: all experts are projected onto X, and nothing is broken.
        slater : float, optional
            ε: in every round some point has g_t ≤ −ε; left out, that of a fixed constraint.
        path : float
            P, for `bound` alone.
        """
        c, B = problem.constants, problem.enclosing_set
        fixed = not problem.constraint.parameters
        if penalty is None:
            penalty = "distance" if fixed and problem.projection is not None else "slater"
        if penalty not in ("none", "distance", "slater", "projection"):
            known = "'none', 'distance', 'slater' or 'projection'"
            raise InputError("penalty", f"{penalty!r} is not known", f"Choose {known}")
        price, far, onto = 0.0, 0.0, None
        if penalty in ("distance", "projection"):
            onto = problem.projection if fixed else None
            if onto is None:
                what = f"no exact projection onto a fixed {{g ≤ 0}} is known for {problem.name!r}"
                raise InputError("penalty", what, "Choose penalty='slater' with a slater=, or 'none'")
            if penalty == "distance":
                price, far = 1.0, 2 * c.loss_gradient_bound
        elif penalty == "slater":
            point = problem.slater_point if fixed else None
            epsilon = slater if slater is not None else None if point is None else point.epsilon
            if epsilon is None:
                what = f"no Slater point of every round is known for {problem.name!r}"
                raise InputError("slater", what, "Give ε, such that in every round some point has g ≤ −ε")
            price = 1 + c.loss_gradient_bound * c.diameter / validate.positive_scalar("slater", epsilon)
        G = c.loss_gradient_bound + price * c.constraint_gradient_bound + far
        if tracker not in RULES:
            raise InputError("tracker", f"{tracker!r} is not known", f"Choose from {sorted(RULES)}")
        if penalty == "projection":
            return cls(RULES[tracker](B, G, horizon, onto), path=path)
        return cls(RULES[tracker](B, G, horizon), price, far, onto, path)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """Of the regret against u with Σ ‖u_t − u_{t−1}‖ ≤ `path`, each feasible in its round."""
        return {REGRET: self._tracked(rounds, self.path)}

    def violation_bound(self, rounds: NDArray[np.int64] | int, path: float) -> FloatArray:
        """Of the hard violation, where the best decisions of single rounds move by no more than `path` in all."""
        if self.price == 0:
            raise InputError("penalty", "violations cost nothing, so nothing is promised of them", "Choose another")
        return self._tracked(np.asarray(rounds), path)

    def _tracked(self, rounds: NDArray[np.int64], path: float) -> FloatArray:
        t = horizons_of(np.asarray(rounds), self.batch_shape)
        if np.any(t > self.tracker.horizon):
            what = f"{np.max(t):g} is beyond the horizon {self.tracker.horizon} that the learner was made for"
            raise InputError("rounds", what, "Give at most as many")
        return self.tracker.dynamic_regret(t, path)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> TrackedPenaltyState:
        x = self.tracker.project(self.at_the_centre(batch_shape, xp, dtype))
        return TrackedPenaltyState(xp.asarray(1, dtype=xp.int64), x, self.tracker.memory(x))

    def ask(self, state: TrackedPenaltyState) -> Array:
        return state.x

    def update(self, state: TrackedPenaltyState, feedback: Feedback) -> TrackedPenaltyState:
        x, xp, descent = state.x, namespace(state.x), feedback.loss_gradient
        broken = column(xp.astype(feedback.constraint > 0, x.dtype))
        if self.price > 0:
            descent = descent + self.price * broken * feedback.constraint_gradient
        if self.projection is not None:
            away = x - self.projection(x)
            descent = descent + self.distance_price * broken * away / column(floored(norm(away)))
        x, memory = self.tracker.step(x, state.memory, descent, state.round)
        return TrackedPenaltyState(state.round + 1, x, memory)

    def report(self, state: TrackedPenaltyState) -> dict[str, Array]:
        return {}
