"""Problems as CVXPY programs, which are slow and general. The other solvers are checked against them.

Each part of a problem has a statement, selected by its type: `state_loss` returns Σ_s f_s(x) over rounds as a CVXPY
expression, `state_constraint` and `state_set` return lists of CVXPY constraints. For a type of your own, register one:

    @state_loss.register
    def _(loss: MyLoss, x, a, b):        # the parameters of all rounds, rounds first
        return cp.sum(...)
"""

from __future__ import annotations

import warnings
from functools import singledispatch
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._base.extras import import_optional
from longterm.errors import InputError, LongtermError
from longterm.hindsight.base import Solution, total_loss
from longterm.hindsight.gaps import certified_gap
from longterm.problems import Problem
from longterm.problems.constraints import Constraint, ElasticNetBudget, L2Budget, Maximum, PositiveSemidefinite, Stack
from longterm.problems.losses import Absolute, Hinge, LeastSquares, Linear, Logistic, Loss, SquaredDistance
from longterm.problems.losses.priced_utility import PricedUtility
from longterm.problems.sets import Ball, Box, Product, RowStochastic, Set, Simplex
from longterm.problems.streams.base import Block


def import_cvxpy() -> Any:
    """Return the module cvxpy, or raise ImportError with the extra to install."""
    return import_optional("cvxpy", "this comparator needs CVXPY", "experiments")


def _unknown(argument: str, part: object) -> InputError:
    kind = type(part).__name__
    what = f"a {kind} has no CVXPY statement"
    return InputError(argument, what, f"Register a statement: @state_{argument}.register")


@singledispatch
def state_loss(loss: Loss, x: Any, *parameters: NDArray[Any]) -> Any:
    """Return Σ_s f_s(x) as a CVXPY expression.

    Parameters
    ----------
    loss : Loss
        f.
    x : cvxpy.Variable
        The decision.
    *parameters : array
        The parameters of the rounds s, with rounds on the leading axis.
    """
    raise _unknown("loss", loss)


@state_loss.register
def _(loss: SquaredDistance, x: Any, targets: NDArray[Any]) -> Any:
    mean = targets.mean(axis=0)
    return len(targets) / 2 * import_cvxpy().sum_squares(x - mean) + 0.5 * np.sum((targets - mean) ** 2)


@state_loss.register
def _(loss: Linear, x: Any, costs: NDArray[Any]) -> Any:
    return costs.sum(axis=0) @ x


@state_loss.register
def _(loss: Logistic, x: Any, features: NDArray[Any], labels: NDArray[Any]) -> Any:
    return import_cvxpy().sum(import_cvxpy().logistic(-(labels[:, None] * features) @ x))


@state_loss.register
def _(loss: Hinge, x: Any, features: NDArray[Any], labels: NDArray[Any]) -> Any:
    return import_cvxpy().sum(import_cvxpy().pos(1 - (labels[:, None] * features) @ x))


@state_loss.register
def _(loss: Absolute, x: Any, features: NDArray[Any], labels: NDArray[Any]) -> Any:
    return import_cvxpy().norm1(features @ x - labels)


@state_loss.register
def _(loss: LeastSquares, x: Any, features: NDArray[Any], labels: NDArray[Any]) -> Any:
    return 0.5 * import_cvxpy().sum_squares(features @ x - labels)


@state_loss.register
def _(loss: PricedUtility, x: Any, prices: NDArray[Any]) -> Any:
    cp, t = import_cvxpy(), len(prices)
    return prices.sum() * cp.sum(x) - t * cp.sum(cp.multiply(loss.weights, cp.log(1 + cp.multiply(loss.gains, x))))


@singledispatch
def state_constraint(constraint: Constraint, x: Any) -> list[Any]:
    """Return {g ≤ 0} as CVXPY constraints. Affine constraints need no registered statement.

    Parameters
    ----------
    constraint : Constraint
        g.
    x : cvxpy.Variable
        The decision.
    """
    affine = constraint.as_affine()
    if affine is None:
        raise _unknown("constraint", constraint)
    return [affine.matrix @ x <= affine.limit]


@state_constraint.register
def _(constraint: ElasticNetBudget, x: Any) -> list[Any]:
    size = constraint.l1 * import_cvxpy().norm1(x) + 0.5 * constraint.l2 * import_cvxpy().sum_squares(x)
    return [size <= constraint.budget]


@state_constraint.register
def _(constraint: L2Budget, x: Any) -> list[Any]:
    return [import_cvxpy().norm(x) <= constraint.budget]


@state_constraint.register
def _(constraint: PositiveSemidefinite, x: Any) -> list[Any]:
    matrix = import_cvxpy().reshape(x, (constraint.size, constraint.size), order="C")
    return [(matrix + matrix.T) / 2 >> constraint.floor * np.eye(constraint.size)]


@state_constraint.register(Stack)
@state_constraint.register(Maximum)
def _(constraint: Stack | Maximum, x: Any) -> list[Any]:
    return [one for part in constraint.parts for one in state_constraint(part, x)]


@singledispatch
def state_set(set: Set, x: Any) -> list[Any]:
    """Return B as CVXPY constraints.

    Parameters
    ----------
    set : Set
        B.
    x : cvxpy.Variable
        The decision.
    """
    raise _unknown("set", set)


@state_set.register
def _(set: Ball, x: Any) -> list[Any]:
    return [import_cvxpy().norm(x - set.centre) <= set.radius]


@state_set.register
def _(set: Box, x: Any) -> list[Any]:
    return [x >= set.lower, x <= set.upper]


@state_set.register
def _(set: Simplex, x: Any) -> list[Any]:
    return [x >= 0, import_cvxpy().sum(x) == set.total]


@state_set.register
def _(set: RowStochastic, x: Any) -> list[Any]:
    return [x >= 0, np.kron(np.eye(set.rows), np.ones(set.columns)) @ x == 1]


@state_set.register
def _(set: Product, x: Any) -> list[Any]:
    ends = np.cumsum([factor.dimension for factor in set.factors])
    parts = [x[end - factor.dimension : end] for factor, end in zip(set.factors, ends, strict=True)]
    return [one for factor, part in zip(set.factors, parts, strict=True) for one in state_set(factor, part)]


def can_state(problem: Problem) -> bool:
    """Return True if CVXPY is installed and every part of a problem with a fixed constraint has a statement."""
    if find_spec("cvxpy") is None:
        return False
    return (
        _has_statement(state_loss, problem.loss)
        and (problem.constraint.as_affine() is not None or _can_state_constraint(problem.constraint))
        and _can_state_set(problem.enclosing_set)
    )


def _has_statement(state: Any, part: object) -> bool:
    return state.dispatch(type(part)) is not state.dispatch(object)


def _can_state_constraint(constraint: Constraint) -> bool:
    if isinstance(constraint, (Stack, Maximum)):
        return all(part.as_affine() is not None or _can_state_constraint(part) for part in constraint.parts)
    return _has_statement(state_constraint, constraint)


def _can_state_set(set: Set) -> bool:
    return all(map(_can_state_set, set.factors)) if isinstance(set, Product) else _has_statement(state_set, set)


def is_solved(program: Any, failure: str, **tolerances: float) -> bool:
    """Solve with CLARABEL and return True if it succeeds. Raise LongtermError with `failure` if it crashes."""
    cp = import_cvxpy()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")  # visible in the certificate
        try:
            program.solve(solver=cp.CLARABEL, **tolerances)
        except cp.error.SolverError as error:
            raise LongtermError(f"{failure}: {error}") from error
    return program.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)


def solve_by_cvxpy(problem: Problem, block: Block) -> Solution:
    """Return the best decision of a problem with a fixed constraint by one convex program, with a certified gap.

    Constraints may be violated by the solver's tolerance.
    """
    cp = import_cvxpy()
    variable = cp.Variable(problem.dimension)
    limits = state_set(problem.enclosing_set, variable) + state_constraint(problem.constraint, variable)
    program = cp.Problem(cp.Minimize(state_loss(problem.loss, variable, *block.loss)), limits)
    failure = f"CVXPY found no best decision of {problem.name!r}"
    if not is_solved(program, failure):
        raise LongtermError(f"{failure}: the program is {program.status}")
    x = np.asarray(variable.value, dtype=np.float64)
    loss, gradient = total_loss(problem, x, block)
    return Solution(x, loss, float(certified_gap(problem, x, gradient)))
