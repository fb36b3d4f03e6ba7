"""Whether {g ≤ 0} ∩ B is empty, where that can be shown in a few milliseconds.

A proof is a lower bound of max_j g_j over B that is above 0. Two kinds are tried:

- one constraint alone: `Constraint.least_values` knows min_B g_j, or a number below it;
- several together: for points y_k of B, subgradients s_k of the largest g_j there, and weights w_k ≥ 0 with sum 1,

      max_j g_j(x) ≥ Σ_k w_k (g(y_k) + ⟨s_k, x − y_k⟩),      whose minimum over B is known by B's support function.

  The points are those of Polyak's steps x ← Π_B(x − g(x) s/‖s‖²), which go to {g ≤ 0} where there is such a point.
  Affine constraints that these steps leave open, and that are few, are put to a linear program, whose multipliers
  are weights like these.

Any weights give a true bound, so neither rounding nor a solver's tolerance makes a proof false. Where steps come near
{g ≤ 0} nothing is shown, and nothing is said.
"""

from __future__ import annotations

import numpy as np

from longterm._arrays import FloatArray
from longterm.constraints import Affine, Constraint
from longterm.projections.base import ROUNDING
from longterm.sets import Set

STEPS = 60
ABOVE_ZERO = 1e-9
"""A lower bound counts as above 0 where it is, by this share of D."""
NEAR = 0.01
"""Steps that end with max_j g_j below this share of where they began are on the way to a feasible point."""
LARGE_TABLE = 1_000_000
"""Steps are tried for no more than this, constraints times coordinates."""
SMALL_TABLE = 20_000
"""A linear program is asked for no more than this."""


def proof_of_emptiness(constraint: Constraint, over: Set) -> str | None:
    """Why no point of the set has g ≤ 0, in words; None where there is one, or nothing can be shown cheaply.

    Parameters
    ----------
    constraint : Constraint
        A fixed one.
    over : Set
        B.

    Returns
    -------
    str or None
        The proof.
    """
    first = float(np.max(constraint.values(over.centre)))
    if not first > 0:  # the centre is feasible, or g is no number there: others say so
        return None
    least = np.asarray(constraint.least_values(over))
    size = constraint.gradient_bound(over) * over.largest_norm(
        2
    )  # of the numbers that are added up, B far from 0 or not
    nothing = ABOVE_ZERO * constraint.value_bound(over) + ROUNDING * size
    worst = int(np.argmax(least))
    if least[worst] > nothing:
        return f"constraint {worst} is nowhere on B below {least[worst]:.4g}"
    if constraint.count * constraint.dimension > LARGE_TABLE:
        return None
    reached, lower = _steps(constraint, over, nothing)
    affine = constraint.as_affine() if lower <= nothing and reached > NEAR * first and constraint.count > 1 else None
    if affine is not None and affine.matrix.size <= SMALL_TABLE:
        lower = max(lower, _by_linear_program(affine, over))
    return f"the largest constraint is nowhere on B below {lower:.4g}" if lower > nothing else None


def _steps(constraint: Constraint, over: Set, nothing: float) -> tuple[float, float]:
    """The least max_j g_j that Polyak's steps reach, and the lower bound that their subgradients prove."""
    x = np.asarray(over.centre, dtype=np.float64)
    reached, lower = np.inf, -np.inf
    slope, level, weight = np.zeros(over.dimension), 0.0, 0.0
    for _ in range(STEPS):
        values = np.asarray(constraint.values(x))
        worst = float(values.max())
        reached = min(reached, worst)
        if not reached > nothing or lower > nothing:
            break
        s = np.asarray(constraint.gradient_of(x, np.argmax(values)), dtype=np.float64)
        square = float(s @ s)
        if not square > 0:  # x is where the largest is least
            return reached, worst
        step = worst / square
        slope, level, weight = slope + step * s, level + step * (worst - float(s @ x)), weight + step
        for cut, height in ((s, worst - float(s @ x)), (slope / weight, level / weight)):
            lower = max(lower, height - float(over.support(-cut)))
        x = np.asarray(over.project(x - step * s))
    return reached, lower


def _by_linear_program(affine: Affine, over: Set) -> float:
    """The bound with the multipliers of min_x max_j g_j(x) over B, or over a box about B where it is no polyhedron."""
    from scipy.optimize import linprog  # loaded when asked for

    d, sides = over.dimension, over.half_spaces()
    each = np.eye(d)
    rows, limits = (
        sides
        if sides is not None
        else (np.concatenate([each, -each]), np.concatenate([over.support(each), over.support(-each)]))
    )
    above = np.column_stack([affine.matrix, -np.ones(affine.count)])
    inside = np.column_stack([rows, np.zeros(len(rows))])
    found = linprog(
        np.append(np.zeros(d), 1.0),
        A_ub=np.concatenate([above, inside]),
        b_ub=np.concatenate([affine.offset, limits]),
        bounds=(None, None),
    )
    if found.x is None:
        return -np.inf
    weights: FloatArray = np.maximum(-found.ineqlin.marginals[: affine.count], 0.0)
    if not weights.sum() > 0:
        return -np.inf
    weights = weights / weights.sum()
    return float(-weights @ affine.offset - over.support(-(weights @ affine.matrix)))
