"""One door to the best fixed decision in hindsight; it picks the solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.engines import Comparison, Trace
from longterm.errors import InputError, LongtermError
from longterm.hindsight.base import Hindsight, Question, Solution, feasible, increasing_rounds
from longterm.hindsight.closed_forms import by_mean_target, by_polyhedron, by_the_problem, nothing_allowed
from longterm.hindsight.cvxpy_statements import can_state, solve_by_cvxpy
from longterm.hindsight.logistic import by_newton, by_saga
from longterm.hindsight.moving import solve_moving
from longterm.hindsight.numerical import solve_numerically
from longterm.problems import Benchmark, EveryRound, Problem
from longterm.progress import Progress, reporter
from longterm.streams import Block, Seeds, Stream
from longterm.streams.base import checked_seeds

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
    wanted, played = increasing_rounds(rounds), checked_seeds(0 if seeds is None else seeds)
    target = validate.positive_scalar("relative_gap", relative_gap)
    if method not in METHODS:
        raise InputError("method", f"{method!r} is not known", f"Choose from {sorted(METHODS)}")
    problem.require_possible()
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
