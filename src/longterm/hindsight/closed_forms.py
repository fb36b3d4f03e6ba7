"""Exact solvers: the problem's minimiser, the projection of the mean target, and linear programs.

**Squared distances.** Σ_{s≤t} ½‖x − y_s‖² = (t/2) ‖x − ȳ_t‖² + ½ (Σ‖y_s‖² − t ‖ȳ_t‖²), so x*_t = Π_X(ȳ_t). If the
mean is feasible, as for permutation matrices, x*_t is the mean and the gap is 0.

**Linear losses** with affine g on a polyhedron B: min ⟨c, x⟩ over {A x ≤ b} ∩ B by HiGHS, c = Σ_{s≤t} ∇f_s. Its
multipliers μ ≥ 0 are the certificate: for every s in X

    ⟨c, x⟩ − ⟨c, s⟩ ≤ ⟨r, x⟩ + max_B ⟨−r, ·⟩ − ⟨μ, A x − b⟩,      r = c + Aᵀμ,

where the maximum over B comes from the set, not from the solver.

Each solver returns None if it does not apply.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from longterm._base.arrays import FloatArray
from longterm.errors import InputError, LongtermError
from longterm.hindsight.base import Hindsight, HindsightRequest, Solution, is_feasible, require_rounds, total_loss
from longterm.hindsight.gaps import certified_gap
from longterm.problems import Problem
from longterm.problems.constraints import Affine
from longterm.problems.losses import Linear, SquaredDistance
from longterm.problems.sets import Set
from longterm.problems.streams.base import Block

TOLERANCE = 1e-10
"""HiGHS's feasibility tolerance, the smallest that it accepts."""


def solve_by_minimiser(request: HindsightRequest) -> Hindsight | None:
    """Return the result of the problem's minimiser, if it is feasible and certified."""
    problem = request.problem
    minimiser = problem.minimiser
    if minimiser is None or problem.constraint.parameters:
        return None

    def solve(block: Block, before: Solution | None) -> Solution | None:
        x = np.asarray(minimiser(*block.loss), dtype=np.float64)
        if x.shape != (problem.dimension,) or not is_feasible(problem, x):
            return None  # for example after the constraint was replaced
        loss, gradient = total_loss(problem, x, block)
        solution = Solution(x, loss, float(certified_gap(problem, x, gradient)))
        return solution if solution.certified_to(request.relative_gap) else None

    return request.solve_each(solve, "the problem's own minimiser")


def solve_by_mean_target(request: HindsightRequest) -> Hindsight | None:
    """Return the projection of the mean target, for squared distances and a fixed g."""
    problem, wanted = request.problem, request.rounds
    if not isinstance(problem.loss, SquaredDistance) or problem.constraint.parameters:
        return None
    mean, lengths = _means_and_squares(request)
    x, solver = mean, "the mean target"
    if not is_feasible(problem, mean):
        if problem.projection is None:
            return None
        x, solver = np.asarray(problem.projection(mean)), "the projection of the mean target"
    t = wanted.reshape(-1, *(1,) * (lengths.ndim - 1))
    loss = t / 2 * (np.vecdot(x - mean, x - mean) - np.vecdot(mean, mean)) + lengths / 2
    gap = certified_gap(problem, x, t[..., None] * (x - mean))
    return Hindsight(wanted, x, loss, gap, request.seeds, solver)


def _means_and_squares(request: HindsightRequest) -> tuple[FloatArray, FloatArray]:
    """Return ȳ_t and Σ_{s≤t} ‖y_s‖² at the requested rounds, in one pass over the stream."""
    wanted = request.rounds
    means, squares, done = [], [], 0
    total = square = np.zeros(())
    for block in request.stream.blocks(request.seeds, 0, int(wanted[-1])):
        targets = np.asarray(block.loss[0], dtype=np.float64)
        sums = total + np.cumsum(targets, axis=0)
        lengths = square + np.cumsum(np.vecdot(targets, targets), axis=0)
        inside = wanted[(wanted > done) & (wanted <= done + block.rounds)]
        means.append(sums[inside - done - 1] / inside.reshape(-1, *(1,) * (sums.ndim - 1)))
        squares.append(lengths[inside - done - 1])
        total, square, done = sums[-1], lengths[-1], done + block.rounds
    require_rounds(done, int(wanted[-1]))
    return np.concatenate(means), np.concatenate(squares)


def solve_by_polyhedron(request: HindsightRequest) -> Hindsight | None:
    """Solve a linear program, or project the mean target, if the comparator set is a polyhedron."""
    problem, benchmark = request.problem, request.benchmark
    linear, squared = isinstance(problem.loss, Linear), isinstance(problem.loss, SquaredDistance)
    if not (linear and problem.enclosing_set.half_spaces() is not None) and not squared:
        return None

    def solve(block: Block, before: Solution | None) -> Solution | None:
        allowed = benchmark.after(problem.constraint, block.rounds, *block.constraint)
        if not isinstance(allowed, Affine):
            return None
        return _solve_linear(request, block, allowed) if linear else _nearest_to_mean(problem, block, allowed)

    return request.solve_each(solve, "a linear program" if linear else "the projection of the mean target")


def _solve_linear(request: HindsightRequest, block: Block, allowed: Affine) -> Solution:
    B, total = request.problem.enclosing_set, block.loss[0].sum(axis=0)
    size = max(float(np.linalg.norm(total)), 1e-300)
    x, multipliers = minimise_linear(total / size, allowed, B)
    if x is None:
        raise infeasible(request, block.rounds)
    x = np.asarray(B.project(x))  # moves x by at most the solver's tolerance
    rest = total + size * multipliers @ allowed.matrix
    slack = size * multipliers @ (allowed.limit - allowed.matrix @ x)
    gap = max(0.0, float(rest @ x + B.support(-rest) + slack))
    return Solution(x, float(total @ x), gap)


def infeasible(request: HindsightRequest, rounds: int) -> InputError:
    """Return the error for an empty comparator set."""
    if not request.problem.constraint.parameters:
        what = f"no decision of {request.problem.name!r} with g ≤ 0 was found"
        return InputError("problem", what, "Check the signs of the constraint, or give a larger enclosing set")
    what = f"no decision of B is {request.benchmark.description} up to round {rounds}"
    return InputError("benchmark", what, "Compare with a larger set: OnAverage(), or fewer rounds")


def minimise_linear(cost: FloatArray, allowed: Affine, over: Set) -> tuple[FloatArray | None, FloatArray]:
    """Return the minimiser of ⟨cost, x⟩ over {A x ≤ b} ∩ B, or None, and the multipliers of A x ≤ b."""
    from scipy.optimize import linprog

    sides = over.half_spaces()
    assert sides is not None
    solved = linprog(
        cost,
        A_ub=np.concatenate([allowed.matrix, sides[0]]),
        b_ub=np.concatenate([allowed.limit, sides[1]]),
        bounds=(None, None),
        options={"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE},
    )
    if solved.status == 2:
        return None, np.zeros(allowed.count)
    if solved.x is None:
        raise LongtermError(f"HiGHS found no best decision: {solved.message}")
    return np.asarray(solved.x), np.maximum(-solved.ineqlin.marginals[: allowed.count], 0.0)


def _nearest_to_mean(problem: Problem, block: Block, allowed: Affine) -> Solution | None:
    targets = block.loss[0]
    mean = targets.mean(axis=0)
    project = allowed.projection(problem.enclosing_set)
    if project is None:
        return None
    x = np.asarray(project(mean))
    loss = 0.5 * float(np.sum((x - targets) ** 2))
    restricted = replace(problem, constraint=allowed)
    return Solution(x, loss, float(certified_gap(restricted, x, block.rounds * (x - mean))))
