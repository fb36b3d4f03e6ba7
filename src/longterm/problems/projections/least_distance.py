"""Nearest points under half-spaces, with multipliers: by non-negative least squares. SciPy only, one point at a time.

The nearest point of {x : A x ≤ b} to w is w + y for the shortest y with A y ≤ b − A w. Lawson and Hanson (1974, chapter
23) find it by non-negative least squares: let h = A w − b, E = [−Aᵀ; hᵀ], u ≥ 0 minimise ‖E u − e_{d+1}‖, and r be the
residual. Then y = −r_{1…d}/r_{d+1}, the multipliers are −u/r_{d+1}, and r = 0 means that the polyhedron is empty. A
least-squares solve on the rows with u > 0 removes the rounding of the quotient.

A *penalised* point minimises ½ ‖x − w‖² + W max(max_j ⟨a_j, x⟩ − b_j, 0) over B. Where the multipliers of the nearest
point of {x ∈ B : A x ≤ b} add up to W at most, it is that point. Elsewhere let s be the positive part of the maximum.
With x and z = s/k as variables and the rows ⟨a_j, x⟩ − k z ≤ b_j and z ≥ 0, the nearest point to (w, −W k) minimises
the same sum plus s²/(2k²). Its weight is W + s/k², which k makes W to a share of WEIGHT_ERROR. A linear solve on the
active rows, with the weight W itself, removes that error.

For a ball B of radius R about c, the penalised point is that without B for c + share (w − c) and share · W, where
share ≤ 1 is the largest number whose result lies in the ball. 1/share − 1 is the multiplier of the ball.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import ROUNDING, FloatArray
from longterm.errors import InputError
from longterm.problems.sets import Ball, Set

WEIGHT_ERROR = 1e-7
"""The relative error of the weight in the search for the active rows of a penalised point."""

NEVER_BINDS = 1e300
"""A weight that no multiplier reaches: with it, the penalised point is the nearest point."""


class Nearest(NamedTuple):
    """The nearest point, and the multipliers of the rows."""

    point: FloatArray
    multipliers: FloatArray


def nearest_point(rows: FloatArray, limits: FloatArray, w: FloatArray) -> Nearest | None:
    """Return the nearest point to w with A x ≤ b, or None where there is no such point up to rounding."""
    from scipy.optimize import nnls

    excess = rows @ w - limits
    scale = excess.max(initial=0.0)
    if not scale > 0:
        return Nearest(w, np.zeros(len(excess)))
    system = np.vstack([-rows.T, excess / scale])
    unit = np.zeros(len(system))
    unit[-1] = 1.0
    weights, _ = nnls(system, unit)
    residual = system @ weights - unit
    if not residual[-1] < -1e-13:  # it is −1/(1 + ‖y/scale‖²) if a solution y exists
        return None
    active = weights > 0
    rough = -scale * residual[:-1] / residual[-1]
    exact = np.linalg.lstsq(rows[active], -excess[active], rcond=None)[0]
    better = (rows @ exact + excess).max() <= max((rows @ rough + excess).max(), ROUNDING * scale)
    return Nearest(w + (exact if better else rough), -scale * weights / residual[-1])


class PenalisedPoint(NamedTuple):
    """The penalised point, and the sum of the multipliers of A x ≤ b: at most W, and W where it is violated."""

    point: FloatArray
    multiplier: float


def penalised_point(rows: FloatArray, limits: FloatArray, w: FloatArray, weight: float, over: Set) -> PenalisedPoint:
    """Return the minimiser of ½ ‖x − w‖² + W max(max_j ⟨a_j, x⟩ − b_j, 0) over a ball or a polyhedron.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.projections.least_distance import penalised_point
    >>> from longterm.problems.sets import Box
    >>> corner, limits, box = np.eye(2), np.array([0.5, 0.25]), Box.cube(2, 0.0, 1.0)
    >>> penalised_point(corner, limits, np.array([0.75, 0.75]), 9.0, box).point
    array([0.5 , 0.25])
    >>> penalised_point(corner, limits, np.array([0.75, 0.75]), 0.25, box).point  # the weight binds
    array([0.75, 0.5 ])
    """
    if isinstance(over, Ball):
        return _penalised_in_ball(rows, limits, w, weight, over)
    bounds = over.half_spaces()
    if bounds is None:
        raise InputError("over", "is neither a ball nor a polyhedron", "Use a Ball, a Box or a Simplex")
    return _penalised(rows, limits, w, weight, *_normalised(*bounds))


def _normalised(rows: FloatArray, limits: FloatArray) -> tuple[FloatArray, FloatArray]:
    lengths = np.linalg.norm(rows, axis=-1)
    lengths = np.where(lengths > 0, lengths, 1.0)
    return rows / lengths[:, None], limits / lengths


def _penalised(
    rows: FloatArray, limits: FloatArray, w: FloatArray, weight: float, bounds: FloatArray, ends: FloatArray
) -> PenalisedPoint:
    """Return the penalised point over {C x ≤ c}, `bounds` and `ends`, with rows of length 1."""
    every, right = np.concatenate([rows, bounds]), np.concatenate([limits, ends])
    found, m = nearest_point(every, right, w), len(rows)
    if found is not None:
        total = float(found.multipliers[:m].sum())
        if total <= weight:
            return PenalisedPoint(found.point, total)
    inside = nearest_point(bounds, ends, w) if len(bounds) else Nearest(w, np.zeros(0))
    assert inside is not None  # B is not empty
    if weight == 0 or float((rows @ inside.point - limits).max()) <= 0:
        return PenalisedPoint(inside.point, 0.0)
    largest = float((rows @ inside.point - limits).max())  # s is at most this
    k = np.sqrt(largest / (WEIGHT_ERROR * weight))
    lifted = np.zeros((len(every) + 1, len(w) + 1))
    lifted[:-1, :-1], lifted[:m, -1], lifted[-1, -1] = every, -k, -1.0
    level, level_right = _normalised(lifted, np.append(right, 0.0))
    best = nearest_point(level, level_right, np.append(w, -weight * k))
    assert best is not None  # every x of B has a z
    exact = _stationary_point(every, right, w, weight, best.multipliers[:-1] > 0, m)
    return PenalisedPoint(best.point[:-1] if exact is None else exact, weight)


def _stationary_point(
    rows: FloatArray, limits: FloatArray, w: FloatArray, weight: float, active: NDArray[np.bool_], m: int
) -> FloatArray | None:
    """Return x that minimises ½ ‖x − w‖² + W s with ⟨a, x⟩ − s = b on active rows among the first m, = b on others.

    None where it breaks a row or has a multiplier below 0. Then the active rows were not the right ones.
    """
    (kept,) = np.nonzero(active)
    d, n = len(w), len(kept)
    system = np.zeros((d + 1 + n, d + 1 + n))
    system[:d, :d] = np.eye(d)
    system[:d, d + 1 :], system[d + 1 :, :d] = rows[kept].T, rows[kept]
    system[d, d + 1 :] = system[d + 1 :, d] = np.where(kept < m, -1.0, 0.0)
    solution = np.linalg.lstsq(system, np.concatenate([w, [-weight], limits[kept]]), rcond=None)[0]
    x, level, multipliers = solution[:d], solution[d], solution[d + 1 :]
    excess = rows @ x - limits
    excess[:m] -= level
    reach = 1 + float(np.abs(w).max())
    fits = excess.max() <= 1e-9 * reach and min(multipliers.min(initial=0.0), level) >= -1e-9 * (reach + weight)
    return np.asarray(x) if fits else None


def _penalised_in_ball(
    rows: FloatArray, limits: FloatArray, w: FloatArray, weight: float, ball: Ball
) -> PenalisedPoint:
    from scipy.optimize import brentq

    none = np.zeros((0, len(w))), np.zeros(0)
    centre, direction = ball.centre, w - ball.centre

    def at(share: float) -> PenalisedPoint:
        return _penalised(rows, limits, centre + share * direction, share * weight, *none)

    def beyond(share: float) -> float:
        return float(np.linalg.norm(at(share).point - centre)) - ball.radius

    whole = at(1.0)
    if np.linalg.norm(whole.point - centre) <= ball.radius:
        return whole
    share = float(brentq(beyond, 0.0, 1.0, xtol=1e-15, rtol=4 * np.finfo(np.float64).eps))
    found = at(share)
    return PenalisedPoint(ball.project(found.point), found.multiplier / share)
