"""Smooth phase of the numerical search: projected gradient steps with momentum, and SciPy's SLSQP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from longterm._base.arrays import FloatArray
from longterm.hindsight.search import Search
from longterm.problems.sets import Ball, Product, Set

MAX_GRADIENT_STEPS = 400
SHORTEST_STEP = 1e-14
"""Shorter steps, in diameters, end the phase: x is best, or F has a kink there."""
MAX_SLSQP_DIMENSION = 200
"""SLSQP, whose steps cost d³, is used up to this dimension."""


def run_projected_gradients(search: Search) -> None:
    """Run FISTA with the projection onto X, backtracking and restarts."""
    project = search.problem.projection
    if project is None:
        return
    x = np.asarray(project(search.over.centre if search.x is None else search.x))
    shortest = SHORTEST_STEP * search.over.diameter
    lookahead, momentum = x, 1.0
    rate = search.over.diameter / max(float(np.linalg.norm(search.loss(x)[1])), 1e-300)
    for step in range(1, MAX_GRADIENT_STEPS + 1):
        height, slope = search.loss(lookahead)
        moved = lookahead
        while rate * np.linalg.norm(slope) > shortest:
            moved = np.asarray(project(lookahead - rate * slope))
            change = moved - lookahead
            allowed = height + float(slope @ change) + float(change @ change) / (2 * rate) + 1e-14 * abs(height)
            if search.loss(moved)[0] <= allowed:
                break
            rate /= 2
        restart = float((lookahead - moved) @ (moved - x)) > 0
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ended = float(np.linalg.norm(moved - x)) <= shortest
        lookahead = moved if restart else moved + (momentum - 1) / grown * (moved - x)
        x, momentum, rate = moved, 1.0 if restart else grown, 1.1 * rate
        if step % 20 == 0 or ended:
            search.visit(x)
            search.certify()
            if search.done or ended:
                return


def run_slsqp(search: Search) -> None:
    """Run SLSQP on F and g, both scaled to about 1."""
    from scipy.optimize import minimize

    problem, d = search.problem, search.over.dimension
    sides = _smooth_sides(search.over)
    if d > MAX_SLSQP_DIMENSION or sides is None:
        return
    start = np.asarray(search.over.centre if search.x is None else search.x)
    scale = max(float(np.linalg.norm(search.loss(start)[1])) * search.over.diameter, 1e-300)
    bound = max(problem.constants.constraint_bound, 1e-300)
    every = np.arange(problem.constraint.count)

    def slopes(x: FloatArray) -> FloatArray:
        points = np.broadcast_to(x, (len(every), d))
        return -np.asarray(problem.constraint.gradient_of(points, every), dtype=np.float64) / bound

    def loss(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = search.loss(x)
        return value / scale, gradient / scale

    limits: list[Any] = [{"type": "ineq", "fun": lambda x: -search.constraint(x) / bound, "jac": slopes}]
    limits += [{"type": "ineq", "fun": inside, "jac": jacobian} for inside, jacobian in sides]
    with np.errstate(all="ignore"):
        solved = minimize(
            loss, start, jac=True, constraints=limits, method="SLSQP", options={"ftol": 1e-15, "maxiter": 300}
        )
    if np.all(np.isfinite(solved.x)):
        search.visit(solved.x)
        search.certify()


Side = tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]


def _smooth_sides(over: Set) -> list[Side] | None:
    """Return functions that are ≥ 0 on B with their derivatives, or None if B is not a ball, polyhedron or product."""
    factors = over.factors if isinstance(over, Product) else [over]
    made: list[Side] = []
    first = 0
    for factor in factors:
        part, d = slice(first, first + factor.dimension), over.dimension
        first += factor.dimension
        sides = factor.half_spaces()
        if isinstance(factor, Ball):
            made.append(_ball_side(factor, part, d))
        elif sides is not None:
            wide = np.zeros((len(sides[0]), d))
            wide[:, part] = sides[0]
            made.append((lambda x, A=wide, b=sides[1]: b - A @ x, lambda x, A=wide: -A))  # type: ignore[misc]
        else:
            return None
    return made


def _ball_side(ball: Ball, part: slice, dimension: int) -> Side:
    def inside(x: FloatArray) -> FloatArray:
        scaled = (x[part] - ball.centre) / ball.radius
        return np.array([(1 - scaled @ scaled) / 2])

    def derivative(x: FloatArray) -> FloatArray:
        row = np.zeros((1, dimension))
        row[0, part] = -(x[part] - ball.centre) / ball.radius**2
        return row

    return inside, derivative
