"""The entry point to the best decision in hindsight, which selects the solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm._base.progress import Progress, reporter
from longterm.errors import InputError, LongtermError
from longterm.hindsight.base import Hindsight, HindsightRequest, Solution, increasing_rounds, is_feasible
from longterm.hindsight.closed_forms import infeasible, solve_by_mean_target, solve_by_minimiser, solve_by_polyhedron
from longterm.hindsight.cvxpy_statements import can_state, solve_by_cvxpy
from longterm.hindsight.logistic_rows import solve_by_newton
from longterm.hindsight.moving import solve_moving
from longterm.hindsight.numerical import solve_numerically
from longterm.hindsight.piecewise_linear import solve_by_linear_program
from longterm.play import Comparison, Trace
from longterm.problems import EveryRound, Problem
from longterm.problems.benchmarks import Benchmark
from longterm.problems.streams import Stream
from longterm.problems.streams.base import Block, Seeds, validate_seeds

Method = Literal["auto", "numerical", "cvxpy"]
"""The solver: selected automatically, or by name to check the others."""
MAX_CVXPY_NUMBERS = 500_000
"""CVXPY is selected automatically up to this number of parameters of the rounds. For many more it takes minutes."""


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
    """Return x*_t = argmin Σ_{s≤t} f_s(x) over {g ≤ 0} ∩ B for each t in `rounds`, with a certificate.

    The first applicable solver is used: `Problem.minimiser`; the projection of the mean target for squared distances;
    Newton's method for logistic regression under an elastic-net budget; linear programs for linear and piecewise linear
    losses (absolute, quantile, hinge) with affine constraints on a polyhedron; CVXPY, if installed and the parts have
    statements (`state_loss` etc.); a numerical solver for any convex losses and constraints. The returned gap is always
    valid. The last two solvers may miss the requested `relative_gap`.

    Parameters
    ----------
    problem : Problem, Trace or Comparison
        The problem, or the result of `longterm.run` or `longterm.compare`, which contains the other arguments.
    stream : Stream
        The rounds, which are drawn again.
    rounds : int or sequence of int
        The rounds t, increasing, for example ``trace.rounds``.
    seeds : int or sequence of int
        The seeds of the run, 0 by default.
    benchmark : Benchmark, optional
        The comparator set for a constraint that changes. `EveryRound` by default.
    method : {"auto", "numerical", "cvxpy"}
        The solver.
    relative_gap : float
        The target of iterative solvers: gap ≤ relative_gap · |loss|.
    path : float, optional
        P, for a moving comparator: u_1, …, u_t, each in B and feasible in its own round, with Σ ‖u_s − u_{s−1}‖ ≤ P.
        The result has the attribute `points`, and ``trace.regret`` of it is the dynamic regret. It needs cvxpy. None or
        0 means a fixed decision.
    progress : {"auto"}, callable or None
        A bar on a terminal, a function of (solved, total), or None.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import hindsight
    >>> from longterm.problems import two_dimensional
    >>> from longterm.problems.streams import Replay
    >>> stream = Replay([np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])])
    >>> found = hindsight.best(two_dimensional(), stream, [3])
    >>> found.x, found.loss.round(4), found.solver
    (array([[0.25      , 0.33333333]]), array([0.9271]), 'the projection of the mean target')

    A custom loss and constraint:

    >>> from longterm import Problem
    >>> from longterm.problems.constraints import CustomConstraint
    >>> from longterm.problems.losses import CustomLoss
    >>> from longterm.problems.sets import Box
    >>> cosh = CustomLoss(2, lambda x: np.cosh(x - 1).sum(-1), lambda x: np.sinh(x - 1), 10.0, 10.0)
    >>> disc = CustomConstraint(2, lambda x: (x * x).sum(-1) - 0.5, lambda x: 2 * x, 4.0, 2.0)
    >>> found = hindsight.best(Problem(Box.cube(2, -1.0, 1.0), cosh, disc), Replay([], rounds=9), [9])
    >>> found.x.round(6), bool(found.relative_gap[0] < 1e-6), found.solver
    (array([[0.5, 0.5]]), True, 'numerical')

    A moving comparator with path length 1:

    >>> stream = Replay([np.array([[0.0, 1.0], [0.0, -1.0], [0.0, -1.0]])])
    >>> found = hindsight.best(two_dimensional(), stream, [3], path=1.0)
    >>> found.points[0][0].round(3)[:, 1], bool(found.relative_gap[0] < 1e-6)
    (array([ 0.333, -0.667, -0.667]), True)
    """
    if not isinstance(problem, Problem):
        problem, stream, rounds, seeds = _arguments_of_run(problem, stream, rounds, seeds)
    if stream is None or rounds is None:
        missing = "stream" if stream is None else "rounds"
        raise InputError(missing, "is missing", "Give problem, stream and rounds, or the result of run or compare")
    wanted, seeds = increasing_rounds(rounds), validate_seeds(0 if seeds is None else seeds)
    target = validate.positive_scalar("relative_gap", relative_gap)
    if method not in METHODS:
        raise InputError("method", f"{method!r} is not known", f"Choose from {sorted(METHODS)}")
    problem.require_feasible()
    length = None if path is None else validate.non_negative_scalar("path", path)
    with reporter(progress, f"hindsight, {problem.name}") as report:
        request = HindsightRequest(problem, stream, wanted, seeds, benchmark or EveryRound(), target, report)
        if length:
            return solve_moving(request, length)
        for solver in METHODS[method]:
            found = solver(request)
            if found is not None:
                return found
    what = f"no decision of {problem.name!r} with g ≤ 0 was found"
    raise InputError("problem", what, "Check that there is one, or give a smaller enclosing set around it")


def _arguments_of_run(
    result: Trace | Comparison,
    stream: Stream | None,
    rounds: int | Sequence[int] | NDArray[np.int64] | None,
    seeds: Seeds | None,
) -> tuple[Problem, Stream, int | Sequence[int] | NDArray[np.int64], Seeds]:
    """Return problem, stream, rounds and seeds of a run's result. Given arguments take precedence."""
    trace = next(iter(result.values()), None) if isinstance(result, Comparison) else result
    if not isinstance(trace, Trace):
        what = f"is a {type(result).__name__}"
        raise InputError("problem", what, "Give a Problem, or the result of longterm.run or longterm.compare")
    if trace.problem is None or (stream is None and trace.stream is None):
        what = "the trace has no problem or stream, because it was loaded from a file or pickled"
        raise InputError("problem", what, "Give problem, stream, trace.rounds and seeds=trace.seeds")
    drawn = trace.stream if stream is None else stream
    assert drawn is not None
    return trace.problem, drawn, trace.rounds if rounds is None else rounds, trace.seeds if seeds is None else seeds


def _solve_numerically(request: HindsightRequest) -> Hindsight | None:
    def solve(block: Block, before: Solution | None) -> Solution | None:
        return _numerical_solution(request, _fixed(request, block), block, None if before is None else before.x)

    return request.solve_each(solve, "numerical")


def _solve_by_cvxpy_if_small(request: HindsightRequest) -> Hindsight | None:
    """Return CVXPY's result, polished by the numerical solver if its certificate is loose. None if not applicable."""

    def solve(block: Block, before: Solution | None) -> Solution | None:
        fixed = _fixed(request, block)
        if not can_state(fixed) or sum(array.size for array in block.loss) > MAX_CVXPY_NUMBERS:
            return None
        try:
            solution = solve_by_cvxpy(fixed, block)
        except LongtermError:
            return None  # another solver may succeed
        if solution.certified_to(request.relative_gap) and is_feasible(fixed, solution.x):
            return solution
        polished = _numerical_solution(request, fixed, block, solution.x)
        return polished if is_feasible(fixed, polished.x) else solution

    return request.solve_each(solve, "CVXPY")


def _solve_by_cvxpy(request: HindsightRequest) -> Hindsight | None:
    return request.solve_each(lambda block, _: solve_by_cvxpy(_fixed(request, block), block), "CVXPY")


def _fixed(request: HindsightRequest, block: Block) -> Problem:
    """Return the problem with the benchmark's fixed constraint after these rounds."""
    problem = request.problem
    if not problem.constraint.parameters:
        return problem
    allowed = request.benchmark.after(problem.constraint, block.rounds, *block.constraint)
    return replace(problem, constraint=allowed, minimiser=None)


def _numerical_solution(request: HindsightRequest, fixed: Problem, block: Block, start: FloatArray | None) -> Solution:
    solution = solve_numerically(fixed, block, start, request.relative_gap)
    if solution is None:
        raise infeasible(request, block.rounds)
    return solution


METHODS: dict[str, tuple[Callable[[HindsightRequest], Hindsight | None], ...]] = {
    "auto": (
        solve_by_minimiser,
        solve_by_mean_target,
        solve_by_newton,
        solve_by_polyhedron,
        solve_by_linear_program,
        _solve_by_cvxpy_if_small,
        _solve_numerically,
    ),
    "numerical": (_solve_numerically,),
    "cvxpy": (_solve_by_cvxpy,),
}
"""The solvers of each method, tried in order."""
