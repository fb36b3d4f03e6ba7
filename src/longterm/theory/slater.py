"""Strictly feasible points: x̂ in B with g_j(x̂) ≤ −ε for every j. A margin γ < ε leaves {g + γ ≤ 0} non-empty.

`find_slater_point` minimises g = max_j g_j over B by projected subgradient steps. Every point it visits gives a
cut, g(y) ≥ g(x_k) + ⟨s_k, y − x_k⟩, and so does every average of them; the lowest value of a cut on B comes from the
set's support function, so the search knows how much better any other point could be, and when to stop.

How large a margin γ must be for A-OGD on g + γ to end with Σ g(x_t) ≤ 0 (Corollary 1 of the paper, made explicit).

|g + γ| ≤ D + γ, so Lemma 5 holds for g + γ with D + γ in the place of D, Table 1 unchanged, against any comparator with
g ≤ −γ (the paper splits a square in three instead, and then Table 1's μ_t would fail C2 at t = 2):

    Σ (g(x_t) + γ) ≤ √( 2 W (𝓡_0 + (D + γ)² S_μ + F T) ),     W = S_θ + δ_μ,   𝓡_0 = 𝓡 − D² S_μ.

*Exact sums.* The right side equals γT for γ² T² = C + A (D + γ)² with A = 2 W S_μ and C = 2 W (𝓡_0 + F T): a quadratic,
with a positive root if and only if T² > A.

*Closed form.* For γ ≤ D and Table 1, (D + γ)² ≤ 4D², W ≤ 2θ_1 T^{1−β}/(1 − β) and 𝓡 + F T ≤ (K + F) T, so that
γ = c_1 T^{−β/2} is enough, with

    c_1 = √( 4 θ_1 (K + F)/(1 − β) ),
    K = ΔG + ΔG/(2(1 − β)) + 4D²/(βθ_1)     convex, θ_1 = 3ΔG (on a ball: 2RG + RG/(1 − β) + 4D²/(6βRG), θ_1 = 6RG),
    K = G²/σ + 4D²/(βθ_1)                   strongly convex, θ_1 = 6G²/σ.

A Slater point with slack ε makes room for γ ≤ ε only: T ≥ c_0 = (c_1/ε)^{2/β}.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm._validate import Hyper
from longterm.constraints import Affine, Constraint
from longterm.constraints.base import max_with_index
from longterm.errors import InputError
from longterm.sets import Set
from longterm.theory.conditions import check_conditions, step_sums
from longterm.theory.facts import Constants
from longterm.theory.schedules import ConvexSchedule, Schedule, StronglyConvexSchedule

NOTHING = 1e-9
"""A slack below this share of D is rounding, not an interior."""
CLOSE_ENOUGH = 0.02
"""The search stops when no point can have a slack larger by more than this share."""
STEPS = 4000


@dataclass(frozen=True, eq=False)
class SlaterPoint:
    """A point of B with g_j ≤ −ε for every j (in every round, where constraints change).

    Parameters
    ----------
    epsilon : float
        ε.
    x : array of shape (d,), optional
        The point, where it is known.
    """

    epsilon: float
    x: FloatArray | None = field(default=None)

    def __post_init__(self) -> None:
        validate.set_frozen(self, epsilon=validate.positive_scalar("epsilon", self.epsilon))


def slater_point_at(constraint: Constraint, over: Set, x: FloatArray) -> SlaterPoint:
    """A point of the user's, with the ε it has."""
    _require_fixed(constraint)
    point = validate.vector("x", x, over.dimension)
    slack = -float(constraint.values(point).max())
    if not bool(over.contains(point)) or slack <= NOTHING * constraint.value_bound(over):
        raise InputError(
            "x",
            f"is not strictly feasible (slack {slack:.3g}, inside B: {bool(over.contains(point))})",
            "Give a point of B with every g_j below 0, or let find_slater_point look for one",
        )
    return SlaterPoint(slack, point)


def require_slack(point: SlaterPoint, constraint: Constraint, over: Set) -> None:
    """Raise if the constraint itself shows that the point has not the slack it claims, or that no point has any."""
    if constraint.parameters:
        return  # of constraints to come, the user's word is all there is
    affine = constraint.as_affine()
    if affine is not None:
        _refuse_equalities(affine)
    if point.x is not None:
        slack = -float(constraint.values(point.x).max())
        if slack < point.epsilon - NOTHING * constraint.value_bound(over):
            what = f"has slack {slack:.6g} here, {point.epsilon:.6g} was claimed"
            raise InputError("slater", what, "Find one for this problem: find_slater_point(constraint, enclosing_set)")


def find_slater_point(constraint: Constraint, over: Set) -> SlaterPoint:
    """A point of the set whose slack ε = −max_j g_j is within 2 % of the largest there is, or nearly so.

    Parameters
    ----------
    constraint : Constraint
        g.
    over : Set
        B.

    Returns
    -------
    SlaterPoint
        The point and its ε.

    Examples
    --------
    >>> from longterm.problems import two_dimensional
    >>> from longterm.theory.slater import find_slater_point
    >>> problem = two_dimensional()
    >>> find_slater_point(problem.constraint, problem.enclosing_set)
    SlaterPoint(epsilon=1.25, x=array([-1.,  0.]))
    """
    _require_fixed(constraint)
    affine = constraint.as_affine()
    if affine is not None:
        _refuse_equalities(affine)
    bound = constraint.value_bound(over)
    best, best_x, lower = np.inf, over.centre, -np.inf
    slope, level, weight = np.zeros(over.dimension), 0.0, 0.0
    x = np.asarray(over.centre)
    for k in range(1, STEPS + 1):
        worst, index = max_with_index(constraint.values(x), NOTHING * bound)
        s = constraint.gradient_of(x, index)
        if worst < best:
            best, best_x = float(worst), x
        step = over.diameter / (max(float(np.linalg.norm(s)), 1e-300) * np.sqrt(k))
        slope, level, weight = slope + step * s, level + step * float(worst - s @ x), weight + step
        for cut, height in ((s, float(worst - s @ x)), (slope / weight, level / weight)):
            lower = max(lower, height - float(over.support(-cut)))
        slack = max(-best, NOTHING * bound)
        if -lower <= slack * (1 + CLOSE_ENOUGH):
            break
        x = over.project(x - step * s)
    if -best <= NOTHING * bound:
        raise InputError(
            "constraint",
            f"no strictly feasible point was found (smallest max_j g_j: {best:.3g}; on B it is at least {lower:.3g})",
            "If there is one, give it; a set without interior has no margin γ: play it without one",
        )
    return SlaterPoint(-best, validate.frozen(best_x))


def _require_fixed(constraint: Constraint) -> None:
    if constraint.parameters:
        raise InputError(
            "constraint",
            "changes from round to round, so no point can be checked beforehand",
            "Declare SlaterPoint(epsilon), an ε that some point of B keeps in every round",
        )


def _refuse_equalities(affine: Affine) -> None:
    """Two rows a_k = −c a_j with c > 0 and b_k + c b_j ≤ 0: then c g_j + g_k ≥ 0 everywhere, and one of them is ≥ 0."""
    lengths = np.linalg.norm(affine.matrix, axis=1)
    safe = np.where(lengths > 0, lengths, 1.0)
    rows, offsets = affine.matrix / safe[:, None], affine.limit / safe
    opposite = (rows @ rows.T <= -1 + 1e-12) & (offsets[:, None] + offsets[None, :] <= NOTHING * np.abs(offsets).max())
    if np.any(opposite):
        j, k = (int(i) for i in np.argwhere(opposite)[0])
        raise InputError(
            "constraint",
            f"{{g ≤ 0}} has no interior: constraints {j} and {k} are opposite, so one of them is ≥ 0 at every point",
            "An equality written as two inequalities leaves no room for a margin γ > 0: use a learner without one",
        )


def coefficient(schedule: Schedule, constants: Constants) -> Hyper:
    """c_1, for a schedule of Table 1.

    >>> from longterm import Constants
    >>> from longterm.theory.slater import coefficient, needed_horizon
    >>> from longterm.theory.schedules import ConvexSchedule
    >>> constants = Constants(1.0, 2.0, 1.0, 1.0, constraint_bound=1.5, loss_range=2.0)
    >>> schedule = ConvexSchedule(2.0, 1.0, beta=2 / 3)
    >>> round(coefficient(schedule, constants), 2), round(needed_horizon(schedule, constants, 0.5), -2)
    (25.81, 137500.0)
    """
    D, F, beta = constants.constraint_bound, constants.loss_range, beta_of(schedule)
    if isinstance(schedule, StronglyConvexSchedule):
        _require_made_for(schedule.strong_convexity, constants.strong_convexity, "strong convexity")
        losses = schedule.gradient_bound**2 / schedule.strong_convexity
        theta = 6 * losses
    else:
        assert isinstance(schedule, ConvexSchedule)  # beta_of has refused the others
        _require_made_for(constants.diameter, schedule.diameter, "diameter")
        product = schedule.diameter * schedule.gradient_bound
        theta, losses = 3 * product, product + product / (2 * (1 - beta))
    _require_made_for(constants.gradient_bound, schedule.gradient_bound, "gradient bound")
    K = losses + 4 * D**2 / (beta * theta)
    return validate.positive("c_1", np.sqrt(4 * theta * (K + F) / (1 - beta)))


def needed_horizon(schedule: Schedule, constants: Constants, epsilon: float) -> Hyper:
    """c_0: from this horizon on, γ = c_1 T^{−β/2} is at most ε, and Σ g(x_t) ≤ 0 is guaranteed."""
    c = coefficient(schedule, constants)
    return validate.number("c_0", np.maximum(1.0, (c / epsilon) ** (2 / beta_of(schedule))))


def beta_of(schedule: Schedule) -> Hyper:
    """β of a schedule of Table 1."""
    if not isinstance(schedule, (ConvexSchedule, StronglyConvexSchedule)):
        raise InputError(
            "learner",
            f"its {type(schedule).__name__} is not of Table 1, so c_1 is not known",
            "Use the margin by exact sums, which takes any schedule that passes C1–C3",
        )
    return schedule.beta


def allowed_violation(schedule: Schedule, constants: Constants, horizon: int, gamma: Hyper) -> FloatArray:
    """√(2 W (𝓡_γ + F T)): what Lemma 5 allows A-OGD on g + γ. Where γT is at least that, Σ g(x_t) ≤ 0."""
    A, C = _sums(schedule, constants, validate.dimension("horizon", horizon))
    return np.sqrt(C + A * (constants.constraint_bound + np.asarray(gamma)) ** 2)


def exact_margin(schedule: Schedule, constants: Constants, horizon: int) -> Hyper:
    """The γ with γT = √(2 W (𝓡_γ + F T)), by exact sums; refused where T² ≤ A, that is where T is far too short.

    >>> from longterm import Constants
    >>> from longterm.theory.slater import exact_margin
    >>> from longterm.theory.schedules import ConvexSchedule
    >>> constants = Constants(1.0, 2.0, 1.0, 1.0, constraint_bound=1.5, loss_range=2.0)
    >>> round(exact_margin(ConvexSchedule(2.0, 1.0, beta=2 / 3), constants, 100_000), 4)
    0.1846
    """
    T, D = validate.dimension("horizon", horizon), constants.constraint_bound
    A, C = _sums(schedule, constants, T)
    if np.any(A >= T**2):
        raise InputError("horizon", f"T² = {T**2} is not above A = {np.max(A):.6g}", "Give a longer horizon")
    return validate.positive("gamma", (A * D + np.sqrt((A * D) ** 2 + (T**2 - A) * (C + A * D**2))) / (T**2 - A))


def _sums(schedule: Schedule, constants: Constants, T: int) -> tuple[FloatArray, FloatArray]:
    """A = 2 W S_μ and C = 2 W (𝓡_0 + F T)."""
    G, sigma = constants.gradient_bound, constants.strong_convexity
    check_conditions(schedule, T, gradient_bound=G, strong_convexity=sigma).require()
    sums = step_sums(schedule, T, sigma)
    steps = constants.radius**2 * np.maximum(sums.delta_eta, 0.0) / 2 + constants.diameter**2 / 2 * sums.growth
    twice_W = 2 * (sums.theta + sums.delta_mu)
    return twice_W * sums.mu, twice_W * (steps + G**2 * sums.eta + constants.loss_range * T)


def _require_made_for(asked: Hyper, made_for: Hyper, name: str) -> None:
    if np.any(np.asarray(asked) > np.asarray(made_for) * (1 + 1e-12)):
        raise InputError("learner", f"was made for another {name}", "Build it from the same problem")
