"""The best fixed decision where g or g_t is affine: a linear program for linear losses, a projection for squared ones.

With c = Σ_{s≤t} ∇f_s and the allowed decisions X = {A x ≤ b} ∩ B (`hindsight.benchmarks` says which):

- linear losses: min ⟨c, x⟩ over X by HiGHS. Its multipliers μ ≥ 0 are the certificate: for every s in X

      ⟨c, x⟩ − ⟨c, s⟩ ≤ ⟨r, x⟩ + max_B ⟨−r, ·⟩ − ⟨μ, A x − b⟩,      r = c + Aᵀμ,

  whatever the solver says of itself; the maximum over B comes from the set, not from the solver.
- ½‖x − y_s‖²: Π_X of the mean target, certified by `certified_gap`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from longterm._arrays import FloatArray
from longterm.constraints import Affine
from longterm.errors import InputError, LongtermError
from longterm.hindsight.base import Hindsight
from longterm.hindsight.benchmarks import Benchmark, EveryRound, affine_rounds
from longterm.hindsight.certificates import certified_gap
from longterm.hindsight.rounds import Solution, best_of_each
from longterm.losses import Linear, SquaredDistance
from longterm.problems import Problem
from longterm.sets import Set
from longterm.streams import Block, Seeds, Stream

TOLERANCE = 1e-10
"""What HiGHS may break a constraint by: its smallest choice."""


def best_fixed(
    problem: Problem,
    stream: Stream,
    rounds: Sequence[int] | NDArray[np.int64],
    *,
    seeds: Seeds = 0,
    benchmark: Benchmark | None = None,
) -> Hindsight:
    """x*_t for each t in `rounds` (increasing): the best decision of the benchmark, by default `EveryRound`.

    For losses `Linear` (B a polyhedron) or `SquaredDistance` and constraints that are affine in every round;
    `best_by_cvxpy` takes the same benchmarks for other losses.

    >>> import numpy as np
    >>> from longterm import Problem
    >>> from longterm.constraints import VaryingAffine
    >>> from longterm.hindsight import OnAverage, best_fixed
    >>> from longterm.losses import Linear
    >>> from longterm.sets import Box
    >>> from longterm.streams import Replay
    >>> problem = Problem(Box.cube(1, -1.0, 1.0), Linear(1), VaryingAffine(1, 1, row_norm=1.0, offset_bound=1.0))
    >>> stream = Replay([-np.ones((2, 1))], [np.ones((2, 1, 1)), np.array([[0.25], [0.75]])])  # x ≤ ¼, then x ≤ ¾
    >>> best_fixed(problem, stream, [1, 2]).x[:, 0]
    array([0.25, 0.25])
    >>> best_fixed(problem, stream, [1, 2], benchmark=OnAverage()).x[:, 0]
    array([0.25, 0.5 ])
    """
    chosen = EveryRound() if benchmark is None else benchmark

    def solve(played: Block) -> Solution:
        allowed = allowed_decisions(problem, played, chosen)
        if isinstance(problem.loss, Linear):
            return _least_linear(problem, played, allowed, chosen)
        if isinstance(problem.loss, SquaredDistance):
            return _nearest_to_mean(problem, played, allowed)
        what = f"{problem.name!r} has a {type(problem.loss).__name__} loss"
        raise InputError("problem", what, "Use best_by_cvxpy for other losses than Linear and SquaredDistance")

    return best_of_each(solve, stream, rounds, seeds)


def allowed_decisions(problem: Problem, played: Block, benchmark: Benchmark) -> Affine:
    """{A x ≤ b}: the benchmark after these rounds."""
    constraint = problem.constraint
    if not constraint.parameters:
        fixed = constraint.as_affine()
        if fixed is not None:
            return fixed
    return benchmark.after(affine_rounds(constraint, played.rounds, *played.constraint))


def _least_linear(problem: Problem, played: Block, allowed: Affine, benchmark: Benchmark) -> Solution:
    B, total = problem.enclosing_set, played.loss[0].sum(axis=0)
    size = max(float(np.linalg.norm(total)), 1e-300)
    x, multipliers = least_linear(total / size, allowed, B)
    if x is None:
        what = f"no decision of B is {benchmark.words} up to round {played.rounds}"
        raise InputError("benchmark", what, "Compare with a larger set: OnAverage(), or fewer rounds")
    x = np.asarray(B.project(x))  # the solver's tolerance, not more
    rest = total + size * multipliers @ allowed.matrix
    slack = size * multipliers @ (allowed.offset - allowed.matrix @ x)
    gap = max(0.0, float(rest @ x + B.support(-rest) + slack))
    return Solution(x, float(total @ x), gap)


def least_linear(cost: FloatArray, allowed: Affine, over: Set) -> tuple[FloatArray | None, FloatArray]:
    """Where ⟨cost, x⟩ is least over {A x ≤ b} ∩ B, and the multipliers of A x ≤ b; None where there is no such x."""
    sides = over.half_spaces()
    if sides is None:
        what = f"its B, a {type(over).__name__}, is no polyhedron"
        raise InputError("problem", what, "Use best_by_cvxpy, which takes the same benchmarks")
    found = linprog(
        cost,
        A_ub=np.concatenate([allowed.matrix, sides[0]]),
        b_ub=np.concatenate([allowed.offset, sides[1]]),
        bounds=(None, None),
        options={"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE},
    )
    if found.status == 2:
        return None, np.zeros(allowed.count)
    if found.x is None:
        raise LongtermError(f"HiGHS found no best decision: {found.message}")
    return np.asarray(found.x), np.maximum(-found.ineqlin.marginals[: allowed.count], 0.0)


def _nearest_to_mean(problem: Problem, played: Block, allowed: Affine) -> Solution:
    targets = played.loss[0]
    mean = targets.mean(axis=0)
    project = allowed.projection(problem.enclosing_set)
    if project is None:
        raise InputError("problem", "the projection onto its set is not known", "Use best_by_cvxpy instead")
    x = np.asarray(project(mean))
    loss = 0.5 * float(np.sum((x - targets) ** 2))
    compared = replace(problem, constraint=allowed)
    return Solution(x, loss, float(certified_gap(compared, x, played.rounds * (x - mean))))
