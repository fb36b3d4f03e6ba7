"""One door to the best fixed decision in hindsight, which picks the solver; and the best decisions that may move.

**Decisions that may move**: a path u_1 … u_t of feasible points, no longer than P, with a certificate.

    V(P) = min Σ_s f_s(u_s)   over u_s in B, g_s(u_s) ≤ 0 in its own round, Σ_{s≥2} ‖u_s − u_{s−1}‖ ≤ P

A conic solver finds points and multipliers; neither is trusted. The points are put back into B, and what they lose is
their own loss. From below, for any ν ≥ 0, z_2 … z_t with ‖z_s‖ ≤ ν (z_1 = z_{t+1} = 0) and μ_{s,j} ≥ 0,

    V(P) ≥ −νP + Σ_s min_{u ∈ B} [ f_s(u) + Σ_j μ_{s,j} g_{s,j}(u) + ⟨z_s − z_{s+1}, u⟩ ]

because Σ ⟨z_s, u_s − u_{s−1}⟩ ≤ νP on a feasible path. Linearised at the points found, which convexity allows, each
minimum is that of a linear function over B: a support function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.constraints import VaryingAffine
from longterm.engines import Comparison, Trace
from longterm.errors import InputError, LongtermError
from longterm.hindsight.base import FEASIBLE, Hindsight, Question, Solution, feasible, increasing_rounds, rounds_of
from longterm.hindsight.closed_forms import by_mean_target, by_polyhedron, by_the_problem, nothing_allowed
from longterm.hindsight.cvxpy_statements import (
    _cvxpy,
    can_state,
    is_solved,
    solve_by_cvxpy,
    state_constraint,
    state_loss,
    state_set,
)
from longterm.hindsight.logistic import by_newton, by_saga
from longterm.hindsight.numerical import solve_numerically
from longterm.losses import Linear, SquaredDistance
from longterm.problems import Benchmark, EveryRound, Problem
from longterm.progress import Progress, reporter
from longterm.sets import Ball, Box
from longterm.streams import Block, Seeds, Stream
from longterm.streams.base import validate_seeds

Method = Literal["auto", "numerical", "cvxpy", "saga"]
"""Which solver: the best fitting one, or one by its name, to check the others by."""
FEW_NUMBERS = 500_000
"""CVXPY is asked, unasked, where the rounds have no more parameters than this: it takes minutes for many more."""


def best(
    problem: Problem | Trace | Comparison,
    stream: Stream | None = None,
    rounds: int | Sequence[int] | NDArray[np.int64] | None = None,
    *,
    seeds: Seeds | None = None,
    benchmark: Benchmark | None = None,
    method: Method = "auto",
    relative_gap: float = 1e-6,
    path: float | None = None,
    progress: Progress = "auto",
) -> Hindsight:
    """x*_t = argmin Σ_{s≤t} f_s(x) over {g ≤ 0} ∩ B for each t in `rounds`, with a certificate.

    The solver is, in this order: the problem's own (`Problem.minimiser`); the mean target or its projection for squared
    distances; Newton's method for logistic regression under an elastic-net budget, fair or not; a linear program for
    linear losses; CVXPY, where it is installed and the parts can state themselves (`state_loss` and its like); and for
    any other convex losses and constraints a numerical one, nothing registered. The gap that it returns is true in any
    case; the last two may leave more of it than was asked for.

    Parameters
    ----------
    problem : Problem, Trace or Comparison
        What is played; or what `longterm.run` or `longterm.compare` returned, which knows the rest.
    stream : Stream
        The rounds, which are drawn again.
    rounds : int or sequence of int
        The rounds t, increasing: ``trace.rounds``, for example.
    seeds : int or sequence of int
        Those of the run; 0 unless given.
    benchmark : Benchmark, optional
        Which decisions count where the constraint changes from round to round; by default `EveryRound`.
    method : {"auto", "numerical", "cvxpy", "saga"}
        A solver by its name, to check the others by.
    relative_gap : float
        What an iterative solver aims at: gap ≤ relative_gap · |loss|.
    path : float, optional
        P: not one decision but u_1, …, u_t, each in B and feasible in its own round, with Σ ‖u_s − u_{s−1}‖ ≤ P; the
        answer's `points` are they, and ``trace.regret`` of it is the dynamic regret (needs cvxpy). Left out, or 0:
        one decision.
    progress : {"auto"}, callable or None
        A bar on a terminal, or a function of (solved, to solve), or nothing.

    Returns
    -------
    Hindsight
        x*_t, its loss, and the certified gap.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import hindsight
    >>> from longterm.problems import two_dimensional
    >>> from longterm.streams import Replay
    >>> stream = Replay([np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])])
    >>> found = hindsight.best(two_dimensional(), stream, [3])
    >>> found.x, found.loss.round(4), found.solver
    (array([[0.25      , 0.33333333]]), array([0.9271]), 'the projection of the mean target')

    A loss and a constraint of one's own:

    >>> from longterm import Problem
    >>> from longterm.constraints import CustomConstraint
    >>> from longterm.losses import CustomLoss
    >>> from longterm.sets import Box
    >>> cosh = CustomLoss(2, lambda x: np.cosh(x - 1).sum(-1), lambda x: np.sinh(x - 1), 10.0, 10.0)
    >>> disc = CustomConstraint(2, lambda x: (x * x).sum(-1) - 0.5, lambda x: 2 * x, 4.0, 2.0)
    >>> found = hindsight.best(Problem(Box.cube(2, -1.0, 1.0), cosh, disc), Replay([], rounds=9), [9])
    >>> found.x.round(6), bool(found.relative_gap[0] < 1e-6), found.solver
    (array([[0.5, 0.5]]), True, 'numerical')

    Decisions that may move by 1 in all:

    >>> stream = Replay([np.array([[0.0, 1.0], [0.0, -1.0], [0.0, -1.0]])])
    >>> found = hindsight.best(two_dimensional(), stream, [3], path=1.0)
    >>> found.points[0][0].round(3)[:, 1], bool(found.relative_gap[0] < 1e-6)
    (array([ 0.333, -0.667, -0.667]), True)
    """
    if not isinstance(problem, Problem):
        problem, stream, rounds, seeds = _what_was_played(problem, stream, rounds, seeds)
    if stream is None or rounds is None:
        missing = "stream" if stream is None else "rounds"
        raise InputError(missing, "is left out", "Give problem, stream and rounds, or what run or compare returned")
    wanted, played = increasing_rounds(rounds), validate_seeds(0 if seeds is None else seeds)
    target = validate.positive_scalar("relative_gap", relative_gap)
    if method not in METHODS:
        raise InputError("method", f"{method!r} is not known", f"Choose from {sorted(METHODS)}")
    problem.require_feasible()
    moves = None if path is None else validate.non_negative_scalar("path", path)
    with reporter(progress, f"hindsight, {problem.name}") as report:
        question = Question(problem, stream, wanted, played, benchmark or EveryRound(), target, report)
        if moves:
            return solve_moving(question, moves)
        for solver in METHODS[method]:
            answer = solver(question)
            if answer is not None:
                return answer
    what = f"no decision of {problem.name!r} with g ≤ 0 was found"
    raise InputError("problem", what, "Check that there is one, or declare a smaller enclosing set about it")


def _what_was_played(
    played: Trace | Comparison,
    stream: Stream | None,
    rounds: int | Sequence[int] | NDArray[np.int64] | None,
    seeds: Seeds | None,
) -> tuple[Problem, Stream, int | Sequence[int] | NDArray[np.int64], Seeds]:
    """Problem, stream, rounds and seeds of a run that is at hand."""
    trace = next(iter(played.values()), None) if isinstance(played, Comparison) else played
    if not isinstance(trace, Trace):
        what = f"is a {type(played).__name__}"
        raise InputError("problem", what, "Give a Problem, or what longterm.run or longterm.compare returned")
    if trace.problem is None or (stream is None and trace.stream is None):
        what = "the trace does not know what was played: it was loaded from a file, or pickled"
        raise InputError("problem", what, "Give problem, stream, trace.rounds and seeds=trace.seeds")
    drawn = trace.stream if stream is None else stream
    assert drawn is not None
    return trace.problem, drawn, trace.rounds if rounds is None else rounds, trace.seeds if seeds is None else seeds


def _numerically(question: Question) -> Hindsight | None:
    def solve(played: Block, before: Solution | None) -> Solution | None:
        return _numerical_solution(question, _fixed(question, played), played, None if before is None else before.x)

    return question.answer_each(solve, "numerical")


def _by_cvxpy_if_small(question: Question) -> Hindsight | None:
    """CVXPY's answer, with a certificate from planes about it where its own is loose; None where it cannot be asked."""

    def solve(played: Block, before: Solution | None) -> Solution | None:
        fixed = _fixed(question, played)
        if not can_state(fixed) or sum(array.size for array in played.loss) > FEW_NUMBERS:
            return None
        try:
            solution = solve_by_cvxpy(fixed, played)
        except LongtermError:
            return None  # it may be one that another solver finds
        if solution.certified_to(question.relative_gap) and feasible(fixed, solution.x):
            return solution
        polished = _numerical_solution(question, fixed, played, solution.x)
        return polished if feasible(fixed, polished.x) else solution

    return question.answer_each(solve, "CVXPY")


def _by_cvxpy(question: Question) -> Hindsight | None:
    return question.answer_each(lambda played, _: solve_by_cvxpy(_fixed(question, played), played), "CVXPY")


def _fixed(question: Question, played: Block) -> Problem:
    """The problem with the constraint of the benchmark after these rounds."""
    problem = question.problem
    if not problem.constraint.parameters:
        return problem
    allowed = question.benchmark.after(problem.constraint, played.rounds, *played.constraint)
    return replace(problem, constraint=allowed, minimiser=None)


def _numerical_solution(question: Question, fixed: Problem, played: Block, start: FloatArray | None) -> Solution:
    solution = solve_numerically(fixed, played, start, question.relative_gap)
    if solution is None:
        raise nothing_allowed(question, played.rounds)
    return solution


METHODS: dict[str, tuple[Callable[[Question], Hindsight | None], ...]] = {
    "auto": (by_the_problem, by_mean_target, by_newton, by_polyhedron, _by_cvxpy_if_small, _numerically),
    "numerical": (_numerically,),
    "cvxpy": (_by_cvxpy,),
    "saga": (by_saga,),
}
"""Which solvers are asked, one after another, until one answers."""


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
        stated = [U @ row <= ones * (b - room) for row, b in zip(affine.matrix, affine.limit, strict=True)]
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
