"""LEWA: exponential weights on the simplex under a long-term constraint (Mahdavi, Yang, Jin 2012, arXiv 1205.2265).

With g_t = max_j g_{t,j} and both steps from (x_t, λ_t):

    x_{t+1,i} ∝ x_{t,i} exp( −η ( ∂_i f_t(x_t) + λ_t ∂_i g_t(x_t) ) )        x_1 = (1/d, …, 1/d)
    λ_{t+1}   = [ λ_t + μ ( g_t(x_t) − θ λ_t ) ]₊                           λ_1 = 0

The article has μ = η and calls θ δ. The state holds logarithms of the weights, so that no weight underflows.

Steps: let R_f and R_g bound the spreads max_i ∂_i − min_i ∂_i of the gradients of f_t and g_t. The proof needs
ηR_g²/4 + μθ² ≤ θ/2. `for_problem` takes η = μ = √( ln d / (T (R_f²/4 + D²)) ), at most 1/(2R_g), and θ the smallest
root, about ηR_g²/2. A spread is at most √2 G, the default. For entries in [0, 1] give ``loss_spread=1.0``, which saves
a factor of up to √(2d). `tell` checks such a promise, the loop does not.
Needs: a horizon, and the simplex with total 1 for B. Losses and constraints may be any convex ones, fixed or changing.
Guarantees: `theorem`, against every x* with g_t(x*) ≤ 0 in all rounds (`docs/proofs/derivations.md`). θ must fall with
T like η: a constant θ can have linear violation.
Not promised: feasibility in a single round, a small Σ [g(x_t)]₊.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import ROUNDING, Array, as_column, namespace, resolution, to_numpy
from longterm.errors import BrokenBoundError, InputError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.feedback_check import OnBrokenBound, raise_or_warn
from longterm.learners.interface.horizons import ScheduledLearner
from longterm.learners.interface.needs import Need
from longterm.problems import Problem
from longterm.problems.sets import Set, Simplex
from longterm.theory.bounds import REGRET, SIGNED, BoundValues, NoTheoremError, Rounds, horizons_of
from longterm.theory.paper import violation_bound
from longterm.theory.schedules import ConstantSchedule


class LEWAState(NamedTuple):
    """The state (t, ln x_t, λ_t)."""

    round: Array
    log_x: Array
    multiplier: Array

    @property
    def x(self) -> Array:
        """The weights x_t."""
        return namespace(self.log_x).exp(self.log_x)


@dataclass(frozen=True, eq=False)
class LEWA(ScheduledLearner[LEWAState]):
    """Mix experts under a long-term limit, for a known number of rounds.

    Exponentially weighted averages with a multiplier.

    Parameters
    ----------
    enclosing_set : Set
        The simplex of the mixtures, with total 1.
    schedule : ConstantSchedule
        The constant step sizes η and μ of decision and multiplier, and the weight θ of the multiplier's penalty.
    loss_spread, constraint_spread : float
        Upper limits on max_i − min_i of the entries of a loss gradient, and of a constraint gradient.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import constraints, losses, sets, streams
    >>> half = constraints.Affine([[1.0, 0.0, 0.0]], [0.5])  # at most half of the weight on expert 0, who never errs
    >>> problem = lt.Problem(sets.Simplex(3), losses.Linear(3, 2**0.5), half)
    >>> learner = lt.learners.LEWA.for_problem(problem, horizon=3000, loss_spread=1.0, constraint_spread=1.0)
    >>> trace = lt.run(problem, learner, streams.Replay([np.tile([0.0, 1.0, 1.0], (3000, 1))]))
    >>> float(trace.cumulative_loss[-1].round(1)), float(trace.signed_violation[-1].round(1))  # the best loses 1500
    (1438.9, 61.1)
    """

    enclosing_set: Set
    schedule: ConstantSchedule
    loss_spread: float
    constraint_spread: float

    needs = frozenset({Need.HORIZON})
    name = "lewa"
    title = "LEWA"
    promises = {REGRET: "O(√(T ln d))", SIGNED: "O(T^(3/4))"}

    def __post_init__(self) -> None:
        _require_weights(self.enclosing_set)
        validate.validate_fields(self, validate.positive_scalar, "loss_spread", "constraint_spread")

    @classmethod
    def for_problem(
        cls, problem: Problem, *, horizon: int, loss_spread: float | None = None, constraint_spread: float | None = None
    ) -> LEWA:
        """Make exponential weights with a multiplier, on a simplex and for a known horizon.

        Parameters
        ----------
        loss_spread, constraint_spread : float, optional
            R_f and R_g, bounds on max_i ∂_i − min_i ∂_i; √2 times the bounds on the gradients' lengths unless given.
        """
        _require_weights(problem.enclosing_set)
        T, c = validate.count("horizon", horizon), problem.constants
        R_f = np.sqrt(2) * c.loss_gradient_bound if loss_spread is None else loss_spread
        R_g = np.sqrt(2) * c.constraint_gradient_bound if constraint_spread is None else constraint_spread
        R_f, R_g = validate.positive_scalar("loss_spread", R_f), validate.positive_scalar("constraint_spread", R_g)
        eta = min(np.sqrt(np.log(problem.dimension) / (T * (R_f**2 / 4 + c.constraint_bound**2))), 1 / (2 * R_g))
        theta = eta * R_g**2 / (1 + np.sqrt(max(1 - (2 * eta * R_g) ** 2, 0.0)))
        schedule = ConstantSchedule(float(theta), float(eta), float(eta), gradient_bound=c.gradient_bound)
        return cls(problem.enclosing_set, schedule, R_f, R_g)

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bounds for steps with ηR_g²/4 + μθ² ≤ θ/2 and any x* with g_t(x*) ≤ 0 in every round.

            Σ f_t(x_t) − f_t(x*) ≤ P = ln d/η + ηT R_f²/4 + μT D²
            Σ g_t(x_t)           ≤ √( 2 (θ(T − 1) + 1/μ) (P + F T) )

        R_f and R_g are the learner's spreads.
        """
        theta, eta, mu = self.schedule.at(np.asarray(1), np.zeros(1))
        if np.any(eta * self.constraint_spread**2 / 4 + mu * theta**2 - theta / 2 > ROUNDING * theta):
            remedy = "Use LEWA.for_problem, a smaller η, or a θ near ηR_g²/2"
            raise NoTheoremError("its steps violate ηR_g²/4 + μθ² ≤ θ/2", remedy)
        T, c, d = horizons_of(rounds, self.batch_shape), problem.constants, self.enclosing_set.dimension
        regret = np.log(d) / eta + eta * T * self.loss_spread**2 / 4 + mu * T * c.constraint_bound**2
        return {REGRET: regret, SIGNED: violation_bound(theta * (T - 1) + 1 / mu, regret, c, T)}

    def first_state(self, t: Array, x: Array) -> LEWAState:
        return LEWAState(t, namespace(x).log(x), namespace(x).zeros(x.shape[:-1], dtype=x.dtype))

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        for name, bound in (("loss", self.loss_spread), ("constraint", self.constraint_spread)):
            entries = to_numpy(getattr(feedback, f"{name}_gradient"))
            spread = float(np.max(np.ptp(entries, axis=-1), initial=0.0))
            if spread > bound * (1 + resolution(x)):
                what = f"the entries of the {name}'s gradient are {spread:.6g} apart, but {bound:.6g} was declared"
                remedy = f"Make the learner with a {name}_spread that holds"
                raise_or_warn([BrokenBoundError(f"{name}_spread", what, remedy, round=t)], on_broken_bound)

    def update(self, state: LEWAState, feedback: Feedback) -> LEWAState:
        xp = namespace(state.log_x)
        theta, eta, mu = self.schedule.at(state.round, state.log_x)
        descent = feedback.loss_gradient + as_column(state.multiplier) * feedback.constraint_gradient
        moved = state.log_x - as_column(eta) * descent
        moved = moved - xp.max(moved, axis=-1, keepdims=True)
        ascent = feedback.constraint - theta * state.multiplier
        return LEWAState(
            round=state.round + 1,
            log_x=moved - xp.log(xp.sum(xp.exp(moved), axis=-1, keepdims=True)),
            multiplier=xp.maximum(state.multiplier + mu * ascent, 0.0),
        )


def _require_weights(over: Set) -> None:
    """Raise unless the set is a simplex with total 1."""
    if not isinstance(over, Simplex) or over.total != 1 or over.dimension < 2:
        what = f"is a {type(over).__name__}, not a simplex with total 1 and at least two corners"
        raise InputError("enclosing_set", what, "Use such a simplex, or A-OGD on this set")
