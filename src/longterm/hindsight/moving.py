"""The best decisions that may move: a path u_1 … u_t of feasible points, no longer than P, with a certificate.

    V(P) = min Σ_s f_s(u_s)   over u_s in B, g_s(u_s) ≤ 0 in its own round, Σ_{s≥2} ‖u_s − u_{s−1}‖ ≤ P

A conic solver finds points and multipliers; neither is trusted. The points are put back into B, and what they lose is
their own loss. From below, for any ν ≥ 0, z_2 … z_t with ‖z_s‖ ≤ ν (z_1 = z_{t+1} = 0) and μ_{s,j} ≥ 0,

    V(P) ≥ −νP + Σ_s min_{u ∈ B} [ f_s(u) + Σ_j μ_{s,j} g_{s,j}(u) + ⟨z_s − z_{s+1}, u⟩ ]

because Σ ⟨z_s, u_s − u_{s−1}⟩ ≤ νP on a feasible path. Linearised at the points found, which convexity allows, each
minimum is that of a linear function over B: a support function.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from longterm._arrays import FloatArray
from longterm.constraints import VaryingAffine
from longterm.errors import InputError, LongtermError
from longterm.hindsight.base import FEASIBLE, Hindsight, Question, Solution, rounds_of
from longterm.hindsight.cvxpy_statements import _cvxpy, is_solved, state_constraint, state_loss, state_set
from longterm.losses import Linear, SquaredDistance
from longterm.problems import Problem
from longterm.sets import Ball, Box
from longterm.streams import Block

MARGIN, MARGIN_OF_PATH = 1e-9, 5e-8
"""What is asked for is this much tighter, as a share of D and of P, so that a solver's rounding breaks nothing."""


@dataclass(frozen=True)
class MovingHindsight(Hindsight):
    """The best path at chosen rounds. `x` holds its last points.

    Parameters
    ----------
    rounds : NDArray[np.int64]
        The rounds t, increasing.
    x : FloatArray
        u_t, the last point of the path that ends there.
    loss : FloatArray
        Σ_{s≤t} f_s(u_s).
    gap : FloatArray
        The certificate: no such path has a cumulative loss below ``loss − gap``.
    seeds : int or tuple of int
        Those of the rounds that were played.
    solver : str
        How it was found, in words.
    path : float
        P.
    points : tuple of tuple of array
        For each seed and each of the rounds t: u_1 … u_t, shape (t, d).
    """

    path: float = 0.0
    points: tuple[tuple[FloatArray, ...], ...] = field(default=(), repr=False)


def solve_moving(question: Question, path: float) -> MovingHindsight:
    """The best path no longer than that, at every round asked for."""
    columns: list[list[Solution]] = []
    paths: list[tuple[FloatArray, ...]] = []
    for seed in question.every_seed:
        every = rounds_of(question.stream, seed, int(question.rounds[-1]))
        found = [best_path(question.problem, every.part(0, int(t)), path) for t in question.rounds]
        columns.append([Solution(points[-1], loss, gap) for points, loss, gap in found])
        paths.append(tuple(points for points, _, _ in found))
        question.report(len(columns), len(question.every_seed))
    answer = question.answer(columns, "a conic program, certified by its multipliers")
    return MovingHindsight(**vars(answer), path=path, points=tuple(paths))


def best_path(problem: Problem, played: Block, path: float) -> tuple[FloatArray, float, float]:
    """The points, their loss, and how much less any such path could lose."""
    cp, t, d = _cvxpy(), played.rounds, problem.dimension
    U = cp.Variable((t, d))
    of_constraint, multipliers = _constraint(problem, U, played)
    limits, steps, length = [*of_constraint, *_set(problem, U)], None, None
    if t > 1:
        W = cp.Variable((t - 1, d))
        steps = U[1:, :] - U[:-1, :] == W
        length = cp.sum(cp.norm(W, 2, axis=1)) <= path * (1 - MARGIN_OF_PATH)
        limits += [steps, length]
    program = cp.Problem(cp.Minimize(_loss(problem, U, played)), limits)
    none = f"no best path of {problem.name!r} was found"
    if not is_solved(program, none, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10):
        what = f"no path of length {path:g} is feasible in each of {t} rounds: the program is {program.status}"
        raise InputError("path", what, "Allow a longer one, or check that every round has a feasible point")
    points = np.asarray(problem.enclosing_set.project(np.asarray(U.value, dtype=np.float64)))
    _require_feasible(problem, points, played, path)
    loss = float(np.sum(problem.loss.value_and_gradient(points, *played.loss)[0]))
    prices = multipliers()
    if steps is None:
        return points, loss, max(loss - _below(problem, points, played, prices, np.zeros((0, d)), path), 0.0)
    z = np.asarray(steps.dual_value, dtype=np.float64).reshape(t - 1, d)
    bounds = [_below(problem, points, played, prices, sign * z, path) for sign in (1.0, -1.0)]
    return points, loss, max(loss - max(bounds), 0.0)


def _below(
    problem: Problem, points: FloatArray, played: Block, prices: FloatArray, z: FloatArray, path: float
) -> float:
    """The lower bound from multipliers μ (t, m) and z (t − 1, d)."""
    losses, slopes = problem.loss.value_and_gradient(points, *played.loss)
    values, pullback, _ = problem.constraint.linearised(points, *played.constraint)
    prices = np.maximum(prices, 0.0)
    none = np.zeros((1, points.shape[1]))
    before, after = np.concatenate([none, z]), np.concatenate([z, none])
    linear = slopes + pullback(prices) + before - after
    constant = losses + np.sum(prices * values, axis=-1) - np.sum((slopes + pullback(prices)) * points, axis=-1)
    least = constant - np.asarray(problem.enclosing_set.support(-linear))
    nu = float(np.max(np.linalg.norm(z, axis=1))) if len(z) else 0.0
    return float(np.sum(least)) - nu * path


def _require_feasible(problem: Problem, points: FloatArray, played: Block, path: float) -> None:
    worst = float(np.max(problem.constraint.values(points, *played.constraint)))
    moved = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
    if worst > FEASIBLE * problem.constants.constraint_bound or moved > path * (1 + FEASIBLE) + FEASIBLE:
        what = f"the solver's path breaks a constraint by {worst:.2g} or is {moved:.9g} long, not {path:.9g}"
        raise LongtermError(f"no best path of {problem.name!r} was found: {what}")


def _loss(problem: Problem, U: Any, played: Block) -> Any:
    """Σ_s f_s(u_s): at once where there is a way, else round by round, by the statements of `state_loss`."""
    cp, loss = _cvxpy(), problem.loss
    if isinstance(loss, Linear):
        return cp.sum(cp.multiply(played.loss[0], U))
    if isinstance(loss, SquaredDistance):
        return 0.5 * cp.sum_squares(U - played.loss[0])
    return sum(state_loss(loss, U[s, :], *(a[s : s + 1] for a in played.loss)) for s in range(played.rounds))


def _set(problem: Problem, U: Any) -> list[Any]:
    cp, B = _cvxpy(), problem.enclosing_set
    if isinstance(B, Ball):
        return [cp.norm(U - B.centre[None, :], 2, axis=1) <= B.radius]
    if isinstance(B, Box):
        ones = np.ones((U.shape[0], 1))
        return [ones @ B.lower[None, :] <= U, ones @ B.upper[None, :] >= U]
    return [one for s in range(U.shape[0]) for one in state_set(B, U[s, :])]


def _constraint(problem: Problem, U: Any, played: Block) -> tuple[list[Any], Any]:
    """What states g_s(u_s) ≤ 0, a little tighter, and a function that reads the multipliers (t, m) off it."""
    cp, g, t = _cvxpy(), problem.constraint, played.rounds
    room = MARGIN * problem.constants.constraint_bound
    affine = g.as_affine()
    if isinstance(g, VaryingAffine):
        matrix, offset = played.constraint
        stated = [cp.sum(cp.multiply(matrix[:, j, :], U), axis=1) <= offset[:, j] - room for j in range(g.count)]
    elif affine is not None:
        ones = np.ones(t)
        stated = [U @ row <= ones * (b - room) for row, b in zip(affine.matrix, affine.offset, strict=True)]
    elif not g.parameters:
        each = [state_constraint(g, U[s, :]) for s in range(t)]
        if any(len(one) != g.count for one in each):
            raise InputError("problem", f"the constraint of {problem.name!r} has no multipliers to read", "Use path=0")
        return [one for every in each for one in every], lambda: np.array(
            [[float(np.sum(one.dual_value)) for one in every] for every in each]
        )
    else:
        what = f"a {type(g).__name__} that changes from round to round cannot state itself"
        raise InputError("problem", what, "Use VaryingAffine, or a fixed constraint")
    return stated, lambda: np.stack([np.asarray(one.dual_value).reshape(t) for one in stated], axis=-1)
