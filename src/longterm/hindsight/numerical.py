"""The best fixed decision for any convex losses and constraints, found numerically and certified by what was seen.

With F = Σ_{s≤t} f_s, X = {g ≤ 0} ∩ B and S = tσ. Two phases, each of which can end it.

**1. Smooth.** Projected gradient steps with momentum where Π_X is known, and SciPy's SLSQP, find a point x. For every
μ ≥ 0 and every y in X, by convexity of F and of g,

    F(y) ≥ F(x) + ⟨r, y − x⟩ + ½ S‖y − x‖² + ⟨μ, g(x)⟩,      r = ∇F(x) + Σ_j μ_j ∇g_j(x),

and the minimum of the right side over B is known: by B's support function where S = 0 (`hindsight.base`), else at
Π_B(x − r/S). The best μ is searched for; any is valid. σ is what the loss declares.

**2. Cutting planes**, for functions with kinks. Every point that was visited gave F(y) ≥ a_i + ⟨A_i, y⟩ for all y, and
c_k + ⟨C_k, y⟩ ≤ 0 for y in X. A linear program finds the least of this model over B, and multipliers u_i (with sum 1)
and μ_k; their combination of the planes, minimised over B (with S/2 times the squared distances), is the lower bound,
whatever the solver did. The next point is the projection of the best one so far onto the set where the model is some
way between that bound and the best value: the level method of Lemaréchal, Nemirovskii and Nesterov (1995). It begins
with points very near to x: where F has a kink there, their gradients are the subgradients that prove x best.

The gap is what is left. It is true at any moment, and stays large where planes in many coordinates are too few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from longterm._arrays import FloatArray
from longterm.errors import InputError
from longterm.hindsight.base import FEASIBLE, Solution, certified_gap, total_loss
from longterm.problems import Problem
from longterm.projections import Polyhedron
from longterm.sets import Ball, Product, Set
from longterm.streams import Block

MOST_GRADIENT_STEPS = 400
KINKED = 1e-14
"""Steps shorter than this, in diameters, lead nowhere: x is best, or F has a kink there."""
MOST_COORDINATES = 200
"""SLSQP, whose steps cost d³, is for no more."""
MOST_PLANES = 300
"""Steps of the second phase."""
MOST_KEPT = 6
"""Planes kept for each coordinate, besides those that the latest bound is made of."""
LEVEL = 0.4
"""Where the next point is looked for, between the lower bound (0) and the best value (1)."""
GAP_ROUNDING = 1e-13
"""A gap within this share of ‖∇F‖ Δ is made of rounding."""
NEAR = 1e-8
"""How near to the best point the first planes are laid, in diameters."""


def solve_numerically(
    problem: Problem, played: Block, start: FloatArray | None, relative_gap: float
) -> Solution | None:
    """The best decision of a problem with a fixed constraint, as near as it comes; None where none is found feasible.

    It stops at gap ≤ relative_gap · |loss|; the gap is certified, small enough or not. `start` is a good guess.
    """
    search = _Search(problem, played, relative_gap)
    for x in (start, problem.enclosing_set.centre):
        if x is not None:
            search.visit(x)
    for phase in (_projected_gradients, _sequential_quadratic, _cutting_planes):
        if not search.done:
            phase(search)
    return search.solution()


@dataclass(eq=False)
class _Search:
    """What is known: the best feasible point, the lower bound, and the planes."""

    problem: Problem
    played: Block
    relative_gap: float
    x: FloatArray | None = None
    value: float = np.inf
    lower: float = -np.inf
    inner: FloatArray | None = None
    """A point with g < 0, if one was seen."""
    empty: bool = False
    slopes: list[FloatArray] = field(default_factory=list)
    heights: list[float] = field(default_factory=list)
    points: list[FloatArray] = field(default_factory=list)
    """Of F's planes: their slopes A_i and heights a_i, and where they touch F."""
    limit_slopes: list[FloatArray] = field(default_factory=list)
    limit_heights: list[float] = field(default_factory=list)
    """Of g's planes, C_k and c_k."""
    used: tuple[FloatArray, FloatArray] = field(default_factory=lambda: (np.zeros(0), np.zeros(0)))
    """The weights u and μ of the latest bound."""

    def __post_init__(self) -> None:
        self.over: Set = self.problem.enclosing_set
        self.curvature = self.played.rounds * self.problem.loss.strong_convexity
        self.slack = FEASIBLE * self.problem.constants.constraint_bound
        self.affine = self.problem.constraint.as_affine()
        if self.affine is not None:
            self.limit_slopes, self.limit_heights = list(self.affine.matrix), list(-self.affine.limit)

    @property
    def done(self) -> bool:
        """Whether the gap is small enough, or no more than rounding."""
        if self.x is None:
            return self.empty
        rounding = GAP_ROUNDING * self.over.diameter * max(float(np.linalg.norm(slope)) for slope in self.slopes)
        return self.value - self.lower <= max(self.relative_gap * abs(self.value), rounding)

    def solution(self) -> Solution | None:
        """What was found, if anything."""
        if self.x is None:
            return None
        return Solution(self.x, self.value, max(0.0, self.value - self.lower))

    def loss(self, x: FloatArray) -> tuple[float, FloatArray]:
        """F and ∇F, no plane laid."""
        return total_loss(self.problem, x, self.played)

    def constraint(self, x: FloatArray) -> FloatArray:
        """g_1 … g_m."""
        return np.asarray(self.problem.constraint.values(x), dtype=np.float64)

    def visit(self, x: FloatArray) -> None:
        """Look at a point of B: a plane of F, planes of g, and perhaps a better decision."""
        x = np.asarray(self.over.project(np.asarray(x, dtype=np.float64)))
        value, gradient = self.loss(x)
        if not np.isfinite(value) or not np.all(np.isfinite(gradient)):
            return
        self.slopes.append(gradient)
        self.heights.append(value - float(gradient @ x))
        self.points.append(x)
        values = self.constraint(x)
        worst = float(values.max())
        if self.affine is None:
            self._limit(x, values)
        if worst < -self.slack and (self.inner is None or worst < float(self.constraint(self.inner).max())):
            self.inner = x
        if worst <= self.slack:
            self.offer(x, value)
        elif self.inner is not None:
            # On the way to a point with g < 0, where g is 0 at the latest: the mixture has g ≤ 0, g being convex.
            depth = -float(self.constraint(self.inner).max())
            mixed = x + worst / (worst + depth) * (self.inner - x)
            if float(self.constraint(mixed).max()) <= self.slack:
                self.offer(mixed, self.loss(mixed)[0])

    def _limit(self, x: FloatArray, values: FloatArray) -> None:
        """The planes of the largest constraints, a few more than coordinates at most."""
        largest = np.argsort(-values, kind="stable")[: len(x) + 1]
        slopes = self.problem.constraint.gradient_of(np.broadcast_to(x, (len(largest), len(x))), largest)
        for j, slope in zip(largest, np.asarray(slopes, dtype=np.float64), strict=True):
            self.limit_slopes.append(slope)
            self.limit_heights.append(float(values[j] - slope @ x))

    def offer(self, x: FloatArray, value: float) -> None:
        """A feasible point."""
        if value < self.value:
            self.x, self.value = x, value

    def combine(self, shares: FloatArray, multipliers: FloatArray) -> None:
        """The lower bound from these weights of the planes: true for any u ≥ 0 with sum 1 and any μ ≥ 0."""
        u, mu = np.maximum(shares, 0.0), np.maximum(multipliers, 0.0)
        if not u.sum() > 0 or not np.all(np.isfinite(u)) or not np.all(np.isfinite(mu)):
            return
        u, points = u / u.sum(), np.array(self.points)
        level, slope = float(u @ np.array(self.heights)), u @ np.array(self.slopes)
        if len(mu):
            level, slope = level + float(mu @ np.array(self.limit_heights)), slope + mu @ np.array(self.limit_slopes)
        self.used = u, mu
        S = self.curvature
        bound = level - float(self.over.support(-slope))
        if S > 0:
            # Σ u_i S/2 ‖y − x_i‖² = S/2 ‖y‖² − S⟨Σ u_i x_i, y⟩ + S/2 Σ u_i ‖x_i‖²
            slope, level = slope - S * (u @ points), level + S / 2 * float(u @ np.vecdot(points, points))
            y = np.asarray(self.over.project(-slope / S))
            bound = max(bound, level + float(slope @ y) + S / 2 * float(y @ y))
        self.lower = max(self.lower, bound)

    def model(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """F's planes, slopes and heights, and {C y ≤ −c}."""
        limits = np.array(self.limit_slopes).reshape(-1, self.over.dimension)
        return np.array(self.slopes), np.array(self.heights), limits, -np.array(self.limit_heights)

    def forget(self) -> None:
        """Drop the oldest planes that the latest bound does not need, where there are many."""
        most = MOST_KEPT * (self.over.dimension + 10)
        lists: tuple[tuple[list[Any], ...], ...] = (
            (self.slopes, self.heights, self.points),
            (self.limit_slopes, self.limit_heights),
        )
        for planes, weights in zip(lists, self.used, strict=True):
            fixed = self.affine is not None and planes is lists[1]
            if len(planes[0]) <= most or fixed:
                continue
            needed = np.flatnonzero(weights > 0).tolist()
            recent = range(len(planes[0]) - most // 2, len(planes[0]))
            kept = sorted({*needed, *recent})
            for part in planes:
                part[:] = [part[k] for k in kept]

    def certify(self) -> None:
        """The lower bound from the best point alone."""
        if self.x is None:
            return
        value, gradient = self.loss(self.x)
        self.lower = max(self.lower, value - float(certified_gap(self.problem, self.x, gradient)))
        if self.curvature > 0 and not self.done:
            self.lower = max(self.lower, _strongly_convex_bound(self, value, gradient))


def _strongly_convex_bound(search: _Search, value: float, gradient: FloatArray) -> float:
    """The largest over μ ≥ 0 of min_B F(x) + ⟨r, y − x⟩ + ½ S‖y − x‖² + ⟨μ, g(x)⟩, as far as L-BFGS-B finds it."""
    from scipy.optimize import minimize  # loaded when asked for

    x, S, over = search.x, search.curvature, search.over
    assert x is not None
    values = search.constraint(x)
    largest = np.argsort(-values, kind="stable")[: 4 * len(x)]
    values = values[largest]
    slopes = np.asarray(search.problem.constraint.gradient_of(np.broadcast_to(x, (len(largest), len(x))), largest))
    size = max(float(np.linalg.norm(gradient)), 1e-300)
    best = -np.inf

    def negative(mu: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best
        r = gradient + size * mu @ slopes
        y = np.asarray(over.project(x - r / S)) - x
        bound = value + float(r @ y) + S / 2 * float(y @ y) + size * float(mu @ values)
        best = max(best, bound)
        return (value - bound) / size, -(slopes @ y + values)

    minimize(negative, np.zeros(len(values)), jac=True, bounds=[(0, None)] * len(values), method="L-BFGS-B")
    return best


def _projected_gradients(search: _Search) -> None:
    """FISTA with Π_X, its step found by halving, started anew where the momentum points uphill."""
    project = search.problem.projection
    if project is None:
        return
    x = np.asarray(project(search.over.centre if search.x is None else search.x))
    shortest = KINKED * search.over.diameter
    ahead, momentum = x, 1.0
    rate = search.over.diameter / max(float(np.linalg.norm(search.loss(x)[1])), 1e-300)
    for step in range(1, MOST_GRADIENT_STEPS + 1):
        height, slope = search.loss(ahead)
        moved = ahead
        while rate * np.linalg.norm(slope) > shortest:
            moved = np.asarray(project(ahead - rate * slope))
            away = moved - ahead
            allowed = height + float(slope @ away) + float(away @ away) / (2 * rate) + 1e-14 * abs(height)
            if search.loss(moved)[0] <= allowed:
                break
            rate /= 2
        restart = float((ahead - moved) @ (moved - x)) > 0
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ended = float(np.linalg.norm(moved - x)) <= shortest
        ahead = moved if restart else moved + (momentum - 1) / grown * (moved - x)
        x, momentum, rate = moved, 1.0 if restart else grown, 1.1 * rate
        if step % 20 == 0 or ended:
            search.visit(x)
            search.certify()
            if search.done or ended:
                return


def _sequential_quadratic(search: _Search) -> None:
    """SLSQP on F and g, both in units in which they are about 1."""
    from scipy.optimize import minimize  # loaded when asked for

    problem, d = search.problem, search.over.dimension
    sides = _smooth_sides(search.over)
    if d > MOST_COORDINATES or sides is None:
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
    """B as functions that are ≥ 0 in it, with their derivatives; None where it is no ball, polyhedron or product."""
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
        away = (x[part] - ball.centre) / ball.radius
        return np.array([(1 - away @ away) / 2])

    def derivative(x: FloatArray) -> FloatArray:
        row = np.zeros((1, dimension))
        row[0, part] = -(x[part] - ball.centre) / ball.radius**2
        return row

    return inside, derivative


def _cutting_planes(search: _Search) -> None:
    """The level method, from planes laid very near to the best point."""
    over, d = search.over, search.over.dimension
    sides = _Sides(over)
    if search.x is not None:
        away = np.random.default_rng(0).standard_normal((2 * d + 2, d))
        away /= np.linalg.norm(away, axis=1, keepdims=True)
        for point in search.x + NEAR * over.diameter * away:
            search.visit(point)
    for _ in range(MOST_PLANES):
        model = _least_of_model(search, sides)
        if model is None or search.done:
            return
        # Where nothing feasible is known yet, the least of the model leads there.
        point = model if search.x is None else _on_level(search, sides, model)
        sides.add(point)
        search.visit(point)
        search.forget()


class _Sides:
    """B from outside, P y ≤ p: exact for a polyhedron, else a box about it and a plane for every point outside."""

    def __init__(self, over: Set) -> None:
        self._over = over
        exact = over.half_spaces()
        if exact is None:
            each = np.concatenate([np.eye(over.dimension), -np.eye(over.dimension)])
            exact = each, np.asarray(over.support(each))
        self.matrix, self.limit = exact

    def add(self, point: FloatArray) -> None:
        """A plane between this point and the set, if it is outside."""
        normal = point - np.asarray(self._over.project(point))
        length = float(np.linalg.norm(normal))
        if length > 1e-12 * self._over.diameter:
            normal = normal / length
            self.matrix = np.concatenate([self.matrix, normal[None]])
            self.limit = np.append(self.limit, float(self._over.support(normal)))


def _least_of_model(search: _Search, sides: _Sides) -> FloatArray | None:
    """Where the model is least over B, its multipliers having been put to use; None where there is no such point."""
    from scipy.optimize import linprog  # loaded when asked for

    slopes, heights, limits, offsets = search.model()
    size, lengths = _length(slopes).max(), _length(limits)
    n, d = slopes.shape
    # The unknowns are y and the height τ of the model above the best value, in units of the longest slope.
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


def _on_level(search: _Search, sides: _Sides, model: FloatArray) -> FloatArray:
    """The point nearest to the best one where the model is between the lower bound and the best value."""
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
    except InputError:  # too thin for the arithmetic
        return (search.x + model) / 2


def _length(rows: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(np.linalg.norm(rows, axis=1), 1e-300))
