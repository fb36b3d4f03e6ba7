"""Strictly feasible points: x̂ in B with g_j(x̂) ≤ −ε for every j. A margin γ < ε leaves {g + γ ≤ 0} non-empty.

`find_slater_point` minimises g = max_j g_j over B by projected subgradient steps. Every point it visits gives a
cut, g(y) ≥ g(x_k) + ⟨s_k, y − x_k⟩, and so does every average of them; the lowest value of a cut on B comes from the
set's support function, so the search knows how much better any other point could be, and when to stop.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.constraints import Affine, Constraint
from longterm.constraints.base import largest
from longterm.errors import InputError
from longterm.sets import Set

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
        validate.remember(self, epsilon=validate.positive_scalar("epsilon", self.epsilon))


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
        worst, index = largest(constraint.values(x), NOTHING * bound)
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
    rows, offsets = affine.matrix / safe[:, None], affine.offset / safe
    opposite = (rows @ rows.T <= -1 + 1e-12) & (offsets[:, None] + offsets[None, :] <= NOTHING * np.abs(offsets).max())
    if np.any(opposite):
        j, k = (int(i) for i in np.argwhere(opposite)[0])
        raise InputError(
            "constraint",
            f"{{g ≤ 0}} has no interior: constraints {j} and {k} are opposite, so one of them is ≥ 0 at every point",
            "An equality written as two inequalities leaves no room for a margin γ > 0: use a learner without one",
        )
