"""Cutting-plane phase of the numerical search, for functions with kinks.

A linear program minimises the model of F over the planes of F and g. Its multipliers give the lower bound of `search`.
The next point is the projection of the best one onto the set where the model is between the bound and the best value:
the level method of Lemaréchal, Nemirovskii and Nesterov (1995). The first planes touch at points very near to the best
one, because at a kink of F their gradients are the subgradients that prove optimality.
"""

from __future__ import annotations

import numpy as np

from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.hindsight.search import Search
from longterm.problems.projections.polyhedron import Polyhedron
from longterm.problems.sets import Set

MAX_PLANES = 300
"""The maximum number of steps."""
LEVEL = 0.4
"""The level between the lower bound (0) and the best value (1)."""
NEAR = 1e-8
"""The distance of the first planes' points from the best point, in diameters."""


def run_cutting_planes(search: Search) -> None:
    """Run the level method, starting with planes at points very near to the best one."""
    over, d = search.over, search.over.dimension
    sides = _OuterSides(over)
    if search.x is not None:
        directions = np.random.default_rng(0).standard_normal((2 * d + 2, d))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        for point in search.x + NEAR * over.diameter * directions:
            search.visit(point)
    for _ in range(MAX_PLANES):
        model = _minimise_model(search, sides)
        if model is None or search.done:
            return
        # Without a feasible point, the minimiser of the model leads to one.
        point = model if search.x is None else _project_onto_level(search, sides, model)
        sides.add(point)
        search.visit(point)
        search.drop_old_planes()


class _OuterSides:
    """A polyhedron P y ≤ p that contains B: B itself, or a box around it with a plane for every point outside."""

    def __init__(self, over: Set) -> None:
        self._over = over
        exact = over.half_spaces()
        if exact is None:
            each = np.concatenate([np.eye(over.dimension), -np.eye(over.dimension)])
            exact = each, np.asarray(over.support(each))
        self.matrix, self.limit = exact

    def add(self, point: FloatArray) -> None:
        """Add a plane that separates a point outside from the set."""
        normal = point - np.asarray(self._over.project(point))
        length = float(np.linalg.norm(normal))
        if length > 1e-12 * self._over.diameter:
            normal = normal / length
            self.matrix = np.concatenate([self.matrix, normal[None]])
            self.limit = np.append(self.limit, float(self._over.support(normal)))


def _minimise_model(search: Search, sides: _OuterSides) -> FloatArray | None:
    """Return the minimiser of the model over B, or None, and update the lower bound with its multipliers."""
    from scipy.optimize import linprog

    slopes, heights, limits, offsets = search.model()
    size, lengths = _length(slopes).max(), _length(limits)
    n, d = slopes.shape
    # The variables are y and the height τ of the model above the best value, in units of the longest slope.
    base = search.value if search.x is not None else float(heights.max())
    rest = np.concatenate([limits / lengths[:, None], sides.matrix])
    solved = linprog(
        np.append(np.zeros(d), 1.0),
        A_ub=np.concatenate(
            [np.column_stack([slopes / size, -np.ones(n)]), np.column_stack([rest, np.zeros(len(rest))])]
        ),
        b_ub=np.concatenate([(base - heights) / size, offsets / lengths, sides.limit]),
        bounds=(None, None),
    )
    if solved.x is None:
        search.empty = solved.status == 2 and search.x is None
        return None
    multipliers = -solved.ineqlin.marginals
    search.combine(multipliers[:n], size * multipliers[n : n + len(limits)] / lengths)
    return np.asarray(solved.x[:d])


def _project_onto_level(search: Search, sides: _OuterSides, model: FloatArray) -> FloatArray:
    """Project the best point onto the set where the model is at most the level."""
    assert search.x is not None
    slopes, heights, limits, offsets = search.model()
    level = search.lower + LEVEL * (search.value - search.lower)
    try:
        with np.errstate(all="ignore"):
            nearest = Polyhedron(
                np.concatenate([slopes / _length(slopes)[:, None], limits / _length(limits)[:, None], sides.matrix]),
                np.concatenate([(level - heights) / _length(slopes), offsets / _length(limits), sides.limit]),
            )
            return np.asarray(nearest(search.x))
    except InputError:  # the set is too thin for floating point
        return (search.x + model) / 2


def _length(rows: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(np.linalg.norm(rows, axis=1), 1e-300))
