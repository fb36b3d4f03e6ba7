"""Linear programs for piecewise linear losses, affine constraints and a polyhedron B.

With f_s(x) = max_w w (⟨r_s, x⟩ − c_s) over low ≤ w ≤ high (`Loss.as_pieces`), the dual problem of
min Σ_s f_s(x) over {A x ≤ b, H x ≤ h}, B = {H x ≤ h}, has d equations:

    min Σ_s c_s w_s + ⟨b, μ⟩ + ⟨h, ν⟩    subject to    Σ_s w_s r_s + Aᵀμ + Hᵀν = 0,  low ≤ w ≤ high,  μ, ν ≥ 0.

HiGHS solves it, and x is the vector of its multipliers. Any w and μ within their limits are a certificate: for r = Σ_s
w_s r_s + Aᵀμ, no decision in X has a loss below −Σ_s c_s w_s − ⟨b, μ⟩ − max_B ⟨−r, ·⟩.

**Warm start.** At the previous solution most residuals ⟨r_s, x⟩ − c_s are far from 0. Their w_s is set to the limit
that the sign gives, and the program has the other rows only. Rows whose sign turns out to be different are added, until
the certificate holds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray
from longterm.hindsight.base import Hindsight, HindsightRequest, Solution
from longterm.hindsight.closed_forms import TOLERANCE, infeasible
from longterm.problems.constraints import Affine
from longterm.problems.losses.base import Pieces
from longterm.problems.sets import Set
from longterm.problems.streams.base import Block

ROWS_PER_COORDINATE, FIRST_ROWS = 8, 40
"""The first program after a warm start has FIRST_ROWS rows and this many more per coordinate."""
SHARE_OF_START = 8
"""Without a previous solution, the start is the solution of every eighth row."""
ROUNDING = 1e-12
"""A gap within this share of the numbers that are added is rounding."""


def solve_by_linear_program(request: HindsightRequest) -> Hindsight | None:
    """Return the result of linear programs, or None if a part of the problem is not piecewise linear."""
    problem = request.problem
    if problem.enclosing_set.half_spaces() is None:
        return None

    def solve(block: Block, before: Solution | None) -> Solution | None:
        pieces = problem.loss.as_pieces(*block.loss)
        if pieces is None:
            return None
        allowed = problem.constraint
        if allowed.parameters:
            allowed = request.benchmark.after(allowed, block.rounds, *block.constraint)
        affine = allowed.as_affine()
        if affine is None:
            return None
        try:
            solution = _solve(pieces, affine, problem.enclosing_set, None if before is None else before.x, request)
        except _NoSolutionError:
            raise infeasible(request, block.rounds) from None
        return solution

    return request.solve_each(solve, "linear programs")


class _NoSolutionError(Exception):
    """No decision satisfies the constraints."""


def _solve(
    pieces: Pieces, allowed: Affine, over: Set, start: FloatArray | None, request: HindsightRequest
) -> Solution | None:
    """Return the best decision, or None if its certificate stays loose. `start` is a nearby decision."""
    count, d = pieces.rows.shape
    few = ROWS_PER_COORDINATE * d + FIRST_ROWS
    if start is None and count > SHARE_OF_START * few:
        some = Pieces(pieces.rows[::SHARE_OF_START], pieces.offsets[::SHARE_OF_START], pieces.low, pieces.high)
        nearby = _solve(some, allowed, over, None, request)
        start = None if nearby is None else nearby.x
    chosen = np.ones(count, dtype=np.bool_)
    weights = np.zeros(count)
    if start is not None and count > few:
        residuals = pieces.rows @ start - pieces.offsets
        weights = np.where(residuals > 0.0, pieces.high, pieces.low)
        chosen = np.zeros(count, dtype=np.bool_)
        chosen[np.argpartition(np.abs(residuals), few)[:few]] = True
    while True:
        weights, multipliers, x = _solve_dual(pieces, allowed, over, weights, chosen)
        x = np.asarray(over.project(x))
        residuals = pieces.rows @ x - pieces.offsets
        loss = float(np.maximum(pieces.low * residuals, pieces.high * residuals).sum())
        rest = weights @ pieces.rows + multipliers @ allowed.matrix
        lower = -float(weights @ pieces.offsets + multipliers @ allowed.limit + over.support(-rest))
        gap, size = max(loss - lower, 0.0), np.abs(residuals) + 2 * np.abs(pieces.offsets)
        rounding = ROUNDING * max(pieces.high, -pieces.low) * float(size.sum())
        if gap <= max(0.01 * request.relative_gap * abs(loss), rounding):
            break
        expected = np.where(residuals > 0.0, pieces.high, pieces.low)
        more = ~chosen & (weights != expected)
        if not more.any():
            break
        chosen |= more
    solution = Solution(x, loss, gap)
    fits = np.max(allowed.values(x)) <= 1e-9 * max(request.problem.constants.constraint_bound, 1e-300)
    return solution if fits and (gap <= rounding or solution.certified_to(request.relative_gap)) else None


def _solve_dual(
    pieces: Pieces, allowed: Affine, over: Set, weights: FloatArray, chosen: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return all w, μ and x of the program with the chosen rows; the other w stay."""
    from scipy.optimize import linprog

    sides = over.half_spaces()
    assert sides is not None
    rows, fixed = pieces.rows[chosen], np.where(chosen, 0.0, weights)
    matrix, limit = np.concatenate([allowed.matrix, sides[0]]), np.concatenate([allowed.limit, sides[1]])
    free: list[tuple[float, float | None]] = [(pieces.low, pieces.high)] * len(rows)
    solved = linprog(
        np.concatenate([pieces.offsets[chosen], limit]),
        A_eq=np.concatenate([rows, matrix]).T,
        b_eq=-fixed @ pieces.rows,
        bounds=[*free, *[(0.0, None)] * len(limit)],
        method="highs-ds",
        options={"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE},
    )
    if solved.x is None:
        raise _NoSolutionError
    found = fixed
    found[chosen] = np.clip(solved.x[: len(rows)], pieces.low, pieces.high)
    multipliers = np.maximum(solved.x[len(rows) : len(rows) + allowed.count], 0.0)
    return found, multipliers, np.asarray(solved.eqlin.marginals)
