"""Cheap proofs that {g ≤ 0} ∩ B is empty.

A proof is a lower bound of max_j g_j over B that is above 0. Two kinds are tried:

- one constraint: `Constraint.least_values` is a lower bound of min_B g_j;
- several constraints: for points y_k of B, subgradients s_k of max_j g_j at y_k, and weights w_k ≥ 0 with sum 1,

      max_j g_j(x) ≥ Σ_k w_k (g(y_k) + ⟨s_k, x − y_k⟩),      minimised over B by B's support function.

  The points are those of Polyak's steps x ← Π_B(x − g(x) s/‖s‖²), which converge to {g ≤ 0} if it is not empty.
  Where these steps are inconclusive, small affine problems go to a linear program, whose multipliers are weights.

Any weights give a valid bound, so rounding and solver tolerances cannot make a proof false.
"""

from __future__ import annotations

import numpy as np

from longterm._base.arrays import ROUNDING, FloatArray
from longterm.problems.constraints import Affine, Constraint
from longterm.problems.sets import Set

STEPS = 60
"""The number of Polyak steps."""
ABOVE_ZERO = 1e-9
"""A lower bound proves emptiness if it exceeds this share of D."""
PROMISING = 0.01
"""Steps that reduce max_j g_j to this share of its start are taken to converge to a feasible point."""
MAX_STEP_SIZE = 1_000_000
"""Steps are tried up to this number of constraints times coordinates."""
MAX_PROGRAM_SIZE = 20_000
"""A linear program is tried up to this number of constraints times coordinates."""


def proof_of_emptiness(constraint: Constraint, over: Set) -> str | None:
    """Return a proof in words that no point of the set has g ≤ 0, or None if no cheap proof was found.

    Parameters
    ----------
    constraint : Constraint
        A fixed constraint.
    over : Set
        B.
    """
    first = float(np.max(constraint.values(over.centre)))
    if not first > 0:  # the centre is feasible, or g is NaN there, which is reported elsewhere
        return None
    least = np.asarray(constraint.least_values(over))
    size = constraint.gradient_bound(over) * over.largest_norm(2)  # the size of the summands
    threshold = ABOVE_ZERO * constraint.value_bound(over) + ROUNDING * size
    worst = int(np.argmax(least))
    if least[worst] > threshold:
        return f"constraint {worst} is nowhere on B below {least[worst]:.4g}"
    if constraint.count * constraint.dimension > MAX_STEP_SIZE:
        return None
    reached, lower = _polyak_steps(constraint, over, threshold)
    inconclusive = lower <= threshold and reached > PROMISING * first and constraint.count > 1
    affine = constraint.as_affine() if inconclusive else None
    if affine is not None and affine.matrix.size <= MAX_PROGRAM_SIZE:
        lower = max(lower, _linear_program_bound(affine, over))
    return f"the largest constraint is nowhere on B below {lower:.4g}" if lower > threshold else None


def _polyak_steps(constraint: Constraint, over: Set, threshold: float) -> tuple[float, float]:
    """Return the least max_j g_j that Polyak's steps reach, and the lower bound from their subgradients."""
    x = np.asarray(over.centre, dtype=np.float64)
    reached, lower = np.inf, -np.inf
    slope, level, weight = np.zeros(over.dimension), 0.0, 0.0
    for _ in range(STEPS):
        values = np.asarray(constraint.values(x))
        worst = float(values.max())
        reached = min(reached, worst)
        if not reached > threshold or lower > threshold:
            break
        s = np.asarray(constraint.gradient_of(x, np.argmax(values)), dtype=np.float64)
        square = float(s @ s)
        if not square > 0:  # x minimises the maximum
            return reached, worst
        step = worst / square
        slope, level, weight = slope + step * s, level + step * (worst - float(s @ x)), weight + step
        for cut, height in ((s, worst - float(s @ x)), (slope / weight, level / weight)):
            lower = max(lower, height - float(over.support(-cut)))
        x = np.asarray(over.project(x - step * s))
    return reached, lower


def _linear_program_bound(affine: Affine, over: Set) -> float:
    """Return the lower bound from the multipliers of min_x max_j g_j(x) over B, or over a box around B."""
    from scipy.optimize import linprog

    d, sides = over.dimension, over.half_spaces()
    each = np.eye(d)
    if sides is None:
        sides = np.concatenate([each, -each]), np.concatenate([over.support(each), over.support(-each)])
    rows, limits = sides
    above = np.column_stack([affine.matrix, -np.ones(affine.count)])
    inside = np.column_stack([rows, np.zeros(len(rows))])
    found = linprog(
        np.append(np.zeros(d), 1.0),
        A_ub=np.concatenate([above, inside]),
        b_ub=np.concatenate([affine.limit, limits]),
        bounds=(None, None),
    )
    if found.x is None:
        return -np.inf
    weights: FloatArray = np.maximum(-found.ineqlin.marginals[: affine.count], 0.0)
    if not weights.sum() > 0:
        return -np.inf
    weights = weights / weights.sum()
    return float(-weights @ affine.limit - over.support(-(weights @ affine.matrix)))
