"""Solvers that are exact: what the problem's maker knows, the feasible point nearest to the mean, linear programs.

**Squared distances.** Σ_{s≤t} ½‖x − y_s‖² = (t/2) ‖x − ȳ_t‖² + ½ (Σ‖y_s‖² − t ‖ȳ_t‖²), so x*_t = Π_X(ȳ_t). Where the
mean is itself feasible, as for permutation matrices, that is the mean, and no solver is needed: the gap is 0.

**Linear losses** with affine g on a polyhedron B: min ⟨c, x⟩ over {A x ≤ b} ∩ B by HiGHS, c = Σ_{s≤t} ∇f_s. Its
multipliers μ ≥ 0 are the certificate: for every s in X

    ⟨c, x⟩ − ⟨c, s⟩ ≤ ⟨r, x⟩ + max_B ⟨−r, ·⟩ − ⟨μ, A x − b⟩,      r = c + Aᵀμ,

whatever the solver says of itself; the maximum over B comes from the set, not from the solver.

Each gives None where the question is not for it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from longterm._arrays import FloatArray
from longterm.constraints import Affine
from longterm.errors import InputError, LongtermError
from longterm.hindsight.base import Hindsight, Question, Solution, certified_gap, feasible, require_rounds, total_loss
from longterm.losses import Linear, SquaredDistance
from longterm.problems import Problem
from longterm.sets import Set
from longterm.streams import Block

TOLERANCE = 1e-10
"""What HiGHS may break a constraint by: its smallest choice."""


def by_the_problem(question: Question) -> Hindsight | None:
    """What the problem's own minimiser says, where that is feasible and certified."""
    problem = question.problem
    minimiser = problem.minimiser
    if minimiser is None or problem.constraint.parameters:
        return None

    def solve(played: Block, before: Solution | None) -> Solution | None:
        x = np.asarray(minimiser(*played.loss), dtype=np.float64)
        if x.shape != (problem.dimension,) or not feasible(problem, x):
            return None  # a constraint that was replaced, for example
        loss, gradient = total_loss(problem, x, played)
        solution = Solution(x, loss, float(certified_gap(problem, x, gradient)))
        return solution if solution.certified_to(question.relative_gap) else None

    return question.answer_each(solve, "the problem's own minimiser")


def by_mean_target(question: Question) -> Hindsight | None:
    """Π_X of the mean target, for squared distances and a fixed g, in one pass over the stream."""
    problem, wanted = question.problem, question.rounds
    if not isinstance(problem.loss, SquaredDistance) or problem.constraint.parameters:
        return None
    mean, lengths = _means_and_squares(question)
    x, solver = mean, "the mean target"
    if not feasible(problem, mean):
        if problem.projection is None:
            return None
        x, solver = np.asarray(problem.projection(mean)), "the projection of the mean target"
    t = wanted.reshape(-1, *(1,) * (lengths.ndim - 1))
    loss = t / 2 * (np.vecdot(x - mean, x - mean) - np.vecdot(mean, mean)) + lengths / 2
    gap = certified_gap(problem, x, t[..., None] * (x - mean))
    return Hindsight(wanted, x, loss, gap, question.seeds, solver)


def _means_and_squares(question: Question) -> tuple[FloatArray, FloatArray]:
    """ȳ_t and Σ_{s≤t} ‖y_s‖² at the wanted rounds."""
    wanted = question.rounds
    means, squares, done = [], [], 0
    total = square = np.zeros(())
    for block in question.stream.blocks(question.seeds, 0, int(wanted[-1])):
        targets = np.asarray(block.loss[0], dtype=np.float64)
        sums = total + np.cumsum(targets, axis=0)
        lengths = square + np.cumsum(np.vecdot(targets, targets), axis=0)
        inside = wanted[(wanted > done) & (wanted <= done + block.rounds)]
        means.append(sums[inside - done - 1] / inside.reshape(-1, *(1,) * (sums.ndim - 1)))
        squares.append(lengths[inside - done - 1])
        total, square, done = sums[-1], lengths[-1], done + block.rounds
    require_rounds(done, int(wanted[-1]))
    return np.concatenate(means), np.concatenate(squares)


def by_polyhedron(question: Question) -> Hindsight | None:
    """A linear program, or a projection of the mean target, where what is allowed is a polyhedron in B."""
    problem, benchmark = question.problem, question.benchmark
    linear, squared = isinstance(problem.loss, Linear), isinstance(problem.loss, SquaredDistance)
    if not (linear and problem.enclosing_set.half_spaces() is not None) and not squared:
        return None

    def solve(played: Block, before: Solution | None) -> Solution | None:
        allowed = benchmark.after(problem.constraint, played.rounds, *played.constraint)
        if not isinstance(allowed, Affine):
            return None
        return _least_linear(question, played, allowed) if linear else _nearest_to_mean(problem, played, allowed)

    return question.answer_each(solve, "a linear program" if linear else "the projection of the mean target")


def _least_linear(question: Question, played: Block, allowed: Affine) -> Solution:
    B, total = question.problem.enclosing_set, played.loss[0].sum(axis=0)
    size = max(float(np.linalg.norm(total)), 1e-300)
    x, multipliers = least_linear(total / size, allowed, B)
    if x is None:
        raise nothing_allowed(question, played.rounds)
    x = np.asarray(B.project(x))  # the solver's tolerance, not more
    rest = total + size * multipliers @ allowed.matrix
    slack = size * multipliers @ (allowed.limit - allowed.matrix @ x)
    gap = max(0.0, float(rest @ x + B.support(-rest) + slack))
    return Solution(x, float(total @ x), gap)


def nothing_allowed(question: Question, rounds: int) -> InputError:
    """No decision of B counts."""
    if not question.problem.constraint.parameters:
        what = f"no decision of {question.problem.name!r} with g ≤ 0 was found"
        return InputError("problem", what, "Check the signs of the constraint, or give a larger enclosing set")
    what = f"no decision of B is {question.benchmark.description} up to round {rounds}"
    return InputError("benchmark", what, "Compare with a larger set: OnAverage(), or fewer rounds")


def least_linear(cost: FloatArray, allowed: Affine, over: Set) -> tuple[FloatArray | None, FloatArray]:
    """Where ⟨cost, x⟩ is least over {A x ≤ b} ∩ B, and the multipliers of A x ≤ b; None where there is no such x."""
    from scipy.optimize import linprog  # loaded when asked for

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


def _nearest_to_mean(problem: Problem, played: Block, allowed: Affine) -> Solution | None:
    targets = played.loss[0]
    mean = targets.mean(axis=0)
    project = allowed.projection(problem.enclosing_set)
    if project is None:
        return None
    x = np.asarray(project(mean))
    loss = 0.5 * float(np.sum((x - targets) ** 2))
    compared = replace(problem, constraint=allowed)
    return Solution(x, loss, float(certified_gap(compared, x, played.rounds * (x - mean))))
