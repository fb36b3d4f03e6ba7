"""Strictly feasible points: x̂ in B with g_j(x̂) ≤ −ε for every j. A margin γ < ε leaves {g + γ ≤ 0} non-empty.

`find_slater_point` minimises max_j g_j over B by projected subgradient steps. Visited points and their averages give
cuts g(y) ≥ g(x_k) + ⟨s_k, y − x_k⟩, and so a lower bound by the set's support function. The search stops when the bound
is close.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.problems.constraints import Affine, Constraint
from longterm.problems.constraints.base import max_with_index
from longterm.problems.sets import Set

ZERO_SLACK = 1e-9
"""A slack below this share of D is rounding."""
PRECISION = 0.02
"""The search stops if no point can have a slack larger by more than this share."""
MAX_STEPS = 4000


@dataclass(frozen=True, eq=False)
class SlaterPoint:
    """Name a decision that satisfies every constraint strictly, in every round.

    Parameters
    ----------
    epsilon : float
        The slack: every g_j is at most −ε there.
    x : array of shape (d,), optional
        The point, if known.
    """

    epsilon: float
    x: FloatArray | None = field(default=None)

    def __post_init__(self) -> None:
        validate.set_frozen(self, epsilon=validate.positive_scalar("epsilon", self.epsilon))


def require_slack(point: SlaterPoint, constraint: Constraint, over: Set) -> None:
    """Raise InputError if the point has less slack than declared, or if no point can have any."""
    if constraint.parameters:
        return  # future constraints cannot be checked
    affine = constraint.as_affine()
    if affine is not None:
        _refuse_equalities(affine)
    if point.x is not None:
        slack = -float(constraint.values(point.x).max())
        if slack < point.epsilon - ZERO_SLACK * constraint.value_bound(over):
            what = f"has slack {slack:.6g} here, but {point.epsilon:.6g} was declared"
            raise InputError("slater", what, "Find one for this problem: find_slater_point(constraint, enclosing_set)")


def find_slater_point(constraint: Constraint, over: Set) -> SlaterPoint:
    """Return a point of the set whose slack ε = −max_j g_j is within about 2 % of the largest.

    Parameters
    ----------
    constraint : Constraint
        g.
    over : Set
        B.

    Examples
    --------
    >>> import longterm as lt
    >>> problem = lt.problems.two_dimensional()
    >>> lt.find_slater_point(problem.constraint, problem.enclosing_set)
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
    for k in range(1, MAX_STEPS + 1):
        worst, index = max_with_index(constraint.values(x), ZERO_SLACK * bound)
        s = constraint.gradient_of(x, index)
        if worst < best:
            best, best_x = float(worst), x
        step = over.diameter / (max(float(np.linalg.norm(s)), 1e-300) * np.sqrt(k))
        slope, level, weight = slope + step * s, level + step * float(worst - s @ x), weight + step
        for cut, height in ((s, float(worst - s @ x)), (slope / weight, level / weight)):
            lower = max(lower, height - float(over.support(-cut)))
        slack = max(-best, ZERO_SLACK * bound)
        if -lower <= slack * (1 + PRECISION):
            break
        x = over.project(x - step * s)
    if -best <= ZERO_SLACK * bound:
        what = f"no strictly feasible point was found (smallest max_j g_j: {best:.3g}; on B it is at least {lower:.3g})"
        remedy = "If you know one, pass it. A set without interior allows no margin γ: use a learner without one"
        raise InputError("constraint", what, remedy)
    return SlaterPoint(-best, validate.frozen(best_x))


def _require_fixed(constraint: Constraint) -> None:
    if constraint.parameters:
        what = "changes from round to round, so no point can be checked before the run"
        remedy = "Declare SlaterPoint(epsilon), with an ε such that in every round some point of B has g ≤ −ε"
        raise InputError("constraint", what, remedy)


def _refuse_equalities(affine: Affine) -> None:
    """Raise InputError for rows a_k = −c a_j, c > 0, with b_k + c b_j ≤ 0: then c g_j + g_k ≥ 0 everywhere."""
    lengths = np.linalg.norm(affine.matrix, axis=1)
    safe = np.where(lengths > 0, lengths, 1.0)
    rows, limits = affine.matrix / safe[:, None], affine.limit / safe
    sums = limits[:, None] + limits[None, :]
    opposite = (rows @ rows.T <= -1 + 1e-12) & (sums <= ZERO_SLACK * np.abs(limits).max())
    if np.any(opposite):
        j, k = (int(i) for i in np.argwhere(opposite)[0])
        what = f"{{g ≤ 0}} has no interior: constraints {j} and {k} are opposite, so one of them is ≥ 0 at every point"
        remedy = "An equality written as two inequalities allows no margin γ > 0: use a learner without one"
        raise InputError("constraint", what, remedy)
