"""The best sequence of decisions with a bounded path length, with a certificate.

    V(P) = min Σ_s f_s(u_s)   over u_s in B, g_s(u_s) ≤ 0 in its own round, Σ_{s≥2} ‖u_s − u_{s−1}‖ ≤ P

A conic solver finds points and multipliers. The points are projected onto B, and their loss is computed. For any ν ≥ 0,
z_2 … z_t with ‖z_s‖ ≤ ν (z_1 = z_{t+1} = 0) and μ_{s,j} ≥ 0,

    V(P) ≥ −νP + Σ_s min_{u ∈ B} [ f_s(u) + Σ_j μ_{s,j} g_{s,j}(u) + ⟨z_s − z_{s+1}, u⟩ ]

because Σ ⟨z_s, u_s − u_{s−1}⟩ ≤ νP on a feasible path. After linearisation at the points each minimum is a support
function of B. The bound holds for any multipliers, so the solver need not be trusted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from longterm._base.arrays import FloatArray
from longterm.errors import InputError, LongtermError
from longterm.hindsight.base import FEASIBILITY, Hindsight, HindsightRequest, Solution, rounds_of
from longterm.hindsight.cvxpy_statements import import_cvxpy, is_solved, state_constraint, state_loss, state_set
from longterm.problems import Problem
from longterm.problems.constraints import VaryingAffine
from longterm.problems.losses import Linear, SquaredDistance
from longterm.problems.sets import Ball, Box
from longterm.problems.streams.base import Block

MARGIN, PATH_MARGIN = 1e-9, 5e-8
"""Constraints are tightened by these shares of D and P, so that the solver's rounding violates nothing."""


@dataclass(frozen=True)
class MovingHindsight(Hindsight):
    """The best moving comparators at chosen rounds. `x` has their last points.

    Parameters
    ----------
    rounds : NDArray[np.int64]
        The rounds t, increasing.
    x : FloatArray
        u_t, the last point of the path to round t.
    loss : FloatArray
        Σ_{s≤t} f_s(u_s).
    gap : FloatArray
        The certificate: no feasible path has a cumulative loss below ``loss − gap``.
    seeds : int or tuple of int
        The seeds of the stream.
    solver : str
        The name of the solver.
    path : float
        P.
    points : tuple of tuple of array
        u_1 … u_t for each seed and round t, shape (t, d).
    """

    path: float = 0.0
    points: tuple[tuple[FloatArray, ...], ...] = field(default=(), repr=False)


def solve_moving(request: HindsightRequest, path: float) -> MovingHindsight:
    """Return the best paths of at most this length at the requested rounds."""
    columns: list[list[Solution]] = []
    paths: list[tuple[FloatArray, ...]] = []
    for seed in request.seed_list:
        block = rounds_of(request.stream, seed, int(request.rounds[-1]))
        found = [best_path(request.problem, block.part(0, int(t)), path) for t in request.rounds]
        columns.append([Solution(points[-1], loss, gap) for points, loss, gap in found])
        paths.append(tuple(points for points, _, _ in found))
        request.report(len(columns), len(request.seed_list))
    result = request.to_hindsight(columns, "a conic program, certified by its multipliers")
    return MovingHindsight(**vars(result), path=path, points=tuple(paths))


def best_path(problem: Problem, block: Block, path: float) -> tuple[FloatArray, float, float]:
    """Return the points, their loss, and the certified gap."""
    cp, t, d = import_cvxpy(), block.rounds, problem.dimension
    U = cp.Variable((t, d))
    statements, multipliers = _state_rounds(problem, U, block)
    limits, steps, length = [*statements, *_state_points(problem, U)], None, None
    if t > 1:
        W = cp.Variable((t - 1, d))
        steps = U[1:, :] - U[:-1, :] == W
        length = cp.sum(cp.norm(W, 2, axis=1)) <= path * (1 - PATH_MARGIN)
        limits += [steps, length]
    program = cp.Problem(cp.Minimize(_state_losses(problem, U, block)), limits)
    failure = f"no best path of {problem.name!r} was found"
    if not is_solved(program, failure, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10):
        what = f"no path of length {path:g} is feasible in each of {t} rounds: the program is {program.status}"
        raise InputError("path", what, "Allow a longer path, or check that every round has a feasible point")
    points = np.asarray(problem.enclosing_set.project(np.asarray(U.value, dtype=np.float64)))
    _require_feasible(problem, points, block, path)
    loss = float(np.sum(problem.loss.value_and_gradient(points, *block.loss)[0]))
    mu = multipliers()
    if steps is None:
        return points, loss, max(loss - _lower_bound(problem, points, block, mu, np.zeros((0, d)), path), 0.0)
    z = np.asarray(steps.dual_value, dtype=np.float64).reshape(t - 1, d)
    bounds = [_lower_bound(problem, points, block, mu, sign * z, path) for sign in (1.0, -1.0)]
    return points, loss, max(loss - max(bounds), 0.0)


def _lower_bound(
    problem: Problem, points: FloatArray, block: Block, mu: FloatArray, z: FloatArray, path: float
) -> float:
    """Return the lower bound of V(P) from multipliers μ (t, m) and z (t − 1, d)."""
    losses, slopes = problem.loss.value_and_gradient(points, *block.loss)
    values, pullback, _ = problem.constraint.linearised(points, *block.constraint)
    mu = np.maximum(mu, 0.0)
    zero = np.zeros((1, points.shape[1]))
    before, after = np.concatenate([zero, z]), np.concatenate([z, zero])
    linear = slopes + pullback(mu) + before - after
    constant = losses + np.sum(mu * values, axis=-1) - np.sum((slopes + pullback(mu)) * points, axis=-1)
    least = constant - np.asarray(problem.enclosing_set.support(-linear))
    nu = float(np.max(np.linalg.norm(z, axis=1))) if len(z) else 0.0
    return float(np.sum(least)) - nu * path


def _require_feasible(problem: Problem, points: FloatArray, block: Block, path: float) -> None:
    worst = float(np.max(problem.constraint.values(points, *block.constraint)))
    moved = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
    if worst > FEASIBILITY * problem.constants.constraint_bound or moved > path * (1 + FEASIBILITY) + FEASIBILITY:
        what = f"the solver's path violates a constraint by {worst:.2g} or has length {moved:.9g}, not {path:.9g}"
        raise LongtermError(f"no best path of {problem.name!r} was found: {what}")


def _state_losses(problem: Problem, U: Any, block: Block) -> Any:
    """State Σ_s f_s(u_s), in one expression for common losses, otherwise round by round with `state_loss`."""
    cp, loss = import_cvxpy(), problem.loss
    if isinstance(loss, Linear):
        return cp.sum(cp.multiply(block.loss[0], U))
    if isinstance(loss, SquaredDistance):
        return 0.5 * cp.sum_squares(U - block.loss[0])
    return sum(state_loss(loss, U[s, :], *(a[s : s + 1] for a in block.loss)) for s in range(block.rounds))


def _state_points(problem: Problem, U: Any) -> list[Any]:
    cp, B = import_cvxpy(), problem.enclosing_set
    if isinstance(B, Ball):
        return [cp.norm(U - B.centre[None, :], 2, axis=1) <= B.radius]
    if isinstance(B, Box):
        ones = np.ones((U.shape[0], 1))
        return [ones @ B.lower[None, :] <= U, ones @ B.upper[None, :] >= U]
    return [one for s in range(U.shape[0]) for one in state_set(B, U[s, :])]


def _state_rounds(problem: Problem, U: Any, block: Block) -> tuple[list[Any], Callable[[], FloatArray]]:
    """State the tightened g_s(u_s) ≤ 0, and return it with a function that reads the multipliers (t, m)."""
    cp, g, t = import_cvxpy(), problem.constraint, block.rounds
    margin = MARGIN * problem.constants.constraint_bound
    affine = g.as_affine()
    if isinstance(g, VaryingAffine):
        matrix, limit = block.constraint
        stated = [cp.sum(cp.multiply(matrix[:, j, :], U), axis=1) <= limit[:, j] - margin for j in range(g.count)]
    elif affine is not None:
        ones = np.ones(t)
        stated = [U @ row <= ones * (b - margin) for row, b in zip(affine.matrix, affine.limit, strict=True)]
    elif not g.parameters:
        each = [state_constraint(g, U[s, :]) for s in range(t)]
        if any(len(one) != g.count for one in each):
            raise InputError("problem", f"the constraint of {problem.name!r} gives no multipliers", "Use path=0")
        return [one for every in each for one in every], lambda: np.array(
            [[float(np.sum(one.dual_value)) for one in every] for every in each]
        )
    else:
        what = f"a {type(g).__name__} that changes from round to round has no CVXPY statement"
        raise InputError("problem", what, "Use VaryingAffine, or a fixed constraint")
    return stated, lambda: np.stack([np.asarray(one.dual_value).reshape(t) for one in stated], axis=-1)
