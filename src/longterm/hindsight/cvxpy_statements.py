"""Problems that state themselves to CVXPY: slow and general; the other solvers are checked against it.

Each part of a problem has a statement, found by its type: `state_loss` gives Σ_s f_s(x) over rounds as a CVXPY
expression, `state_constraint` and `state_set` give lists of CVXPY constraints. For a type of your own, register one:

    @state_loss.register
    def _(loss: MyLoss, x, a, b):        # the parameters of all rounds, rounds first
        return cp.sum(...)
"""

from __future__ import annotations

import warnings
from functools import singledispatch
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm.constraints import Constraint, ElasticNetBudget, L2Budget, Maximum, PositiveSemidefinite, Stack
from longterm.errors import InputError, LongtermError
from longterm.hindsight.base import Solution, certified_gap, total_loss
from longterm.losses import (
    Absolute,
    Hinge,
    LeastSquares,
    Linear,
    Logistic,
    Loss,
    PricedUtility,
    Softmax,
    SquaredDistance,
)
from longterm.problems import Problem
from longterm.sets import Ball, Box, Product, RowStochastic, Set, Simplex
from longterm.streams import Block


def _cvxpy() -> Any:
    try:
        return import_module("cvxpy")
    except ImportError as error:
        raise ImportError("this comparator needs cvxpy: pip install 'longterm[experiments]'") from error


def _unknown(argument: str, part: object) -> InputError:
    kind = type(part).__name__
    return InputError(argument, f"a {kind} cannot state itself", f"Register a statement: @state_{argument}.register")


@singledispatch
def state_loss(loss: Loss, x: Any, *parameters: NDArray[Any]) -> Any:
    """Σ_s f_s(x) as a CVXPY expression.

    Parameters
    ----------
    loss : Loss
        f.
    x : cvxpy.Variable
        The decision.
    *parameters : array
        Those of the rounds s, on the leading axis.

    Returns
    -------
    cvxpy.Expression
        Σ_s f_s(x).
    """
    raise _unknown("loss", loss)


@state_loss.register
def _(loss: SquaredDistance, x: Any, targets: NDArray[Any]) -> Any:
    mean = targets.mean(axis=0)
    return len(targets) / 2 * _cvxpy().sum_squares(x - mean) + 0.5 * np.sum((targets - mean) ** 2)


@state_loss.register
def _(loss: Linear, x: Any, costs: NDArray[Any]) -> Any:
    return costs.sum(axis=0) @ x


@state_loss.register
def _(loss: Logistic, x: Any, features: NDArray[Any], labels: NDArray[Any]) -> Any:
    return _cvxpy().sum(_cvxpy().logistic(-(labels[:, None] * features) @ x))


@state_loss.register
def _(loss: Softmax, x: Any, features: NDArray[Any], labels: NDArray[Any]) -> Any:
    cp, own = _cvxpy(), np.eye(loss.classes)[np.asarray(labels).astype(np.intp)]
    scores = features @ cp.reshape(x, (loss.classes, loss.features), order="C").T
    return cp.sum(cp.log_sum_exp(scores, axis=1)) - cp.sum(cp.multiply(own, scores))


@state_loss.register
def _(loss: Hinge, x: Any, features: NDArray[Any], labels: NDArray[Any]) -> Any:
    return _cvxpy().sum(_cvxpy().pos(1 - (labels[:, None] * features) @ x))


@state_loss.register
def _(loss: Absolute, x: Any, features: NDArray[Any], labels: NDArray[Any]) -> Any:
    return _cvxpy().norm1(features @ x - labels)


@state_loss.register
def _(loss: LeastSquares, x: Any, features: NDArray[Any], labels: NDArray[Any]) -> Any:
    return 0.5 * _cvxpy().sum_squares(features @ x - labels)


@state_loss.register
def _(loss: PricedUtility, x: Any, prices: NDArray[Any]) -> Any:
    cp, t = _cvxpy(), len(prices)
    return prices.sum() * cp.sum(x) - t * cp.sum(cp.multiply(loss.weights, cp.log(1 + cp.multiply(loss.gains, x))))


@singledispatch
def state_constraint(constraint: Constraint, x: Any) -> list[Any]:
    """{g ≤ 0} as CVXPY constraints; affine ones need no statement of their own.

    Parameters
    ----------
    constraint : Constraint
        g.
    x : cvxpy.Variable
        The decision.

    Returns
    -------
    list of cvxpy.Constraint
        {g ≤ 0}.
    """
    affine = constraint.as_affine()
    if affine is None:
        raise _unknown("constraint", constraint)
    return [affine.matrix @ x <= affine.limit]


@state_constraint.register
def _(constraint: ElasticNetBudget, x: Any) -> list[Any]:
    size = constraint.l1 * _cvxpy().norm1(x) + 0.5 * constraint.l2 * _cvxpy().sum_squares(x)
    return [size <= constraint.budget]


@state_constraint.register
def _(constraint: L2Budget, x: Any) -> list[Any]:
    return [_cvxpy().norm(x) <= constraint.budget]


@state_constraint.register
def _(constraint: PositiveSemidefinite, x: Any) -> list[Any]:
    matrix = _cvxpy().reshape(x, (constraint.size, constraint.size), order="C")
    return [(matrix + matrix.T) / 2 >> constraint.floor * np.eye(constraint.size)]


@state_constraint.register(Stack)
@state_constraint.register(Maximum)
def _(constraint: Stack | Maximum, x: Any) -> list[Any]:
    return [one for part in constraint.parts for one in state_constraint(part, x)]


@singledispatch
def state_set(set: Set, x: Any) -> list[Any]:
    """B as CVXPY constraints.

    Parameters
    ----------
    set : Set
        B.
    x : cvxpy.Variable
        The decision.

    Returns
    -------
    list of cvxpy.Constraint
        B.
    """
    raise _unknown("set", set)


@state_set.register
def _(set: Ball, x: Any) -> list[Any]:
    return [_cvxpy().norm(x - set.centre) <= set.radius]


@state_set.register
def _(set: Box, x: Any) -> list[Any]:
    return [x >= set.lower, x <= set.upper]


@state_set.register
def _(set: Simplex, x: Any) -> list[Any]:
    return [x >= 0, _cvxpy().sum(x) == set.total]


@state_set.register
def _(set: RowStochastic, x: Any) -> list[Any]:
    return [x >= 0, np.kron(np.eye(set.rows), np.ones(set.columns)) @ x == 1]


@state_set.register
def _(set: Product, x: Any) -> list[Any]:
    ends = np.cumsum([factor.dimension for factor in set.factors])
    parts = [x[end - factor.dimension : end] for factor, end in zip(set.factors, ends, strict=True)]
    return [one for factor, part in zip(set.factors, parts, strict=True) for one in state_set(factor, part)]


def can_state(problem: Problem) -> bool:
    """Whether CVXPY is there, and every part of the problem, with a fixed constraint, has a statement."""
    if find_spec("cvxpy") is None:
        return False
    known = (
        _has_statement(state_loss, problem.loss),
        problem.constraint.as_affine() is not None or _states_constraint(problem.constraint),
        _states_set(problem.enclosing_set),
    )
    return all(known)


def _has_statement(state: Any, part: object) -> bool:
    return state.dispatch(type(part)) is not state.dispatch(object)


def _states_constraint(constraint: Constraint) -> bool:
    if isinstance(constraint, (Stack, Maximum)):
        return all(part.as_affine() is not None or _states_constraint(part) for part in constraint.parts)
    return _has_statement(state_constraint, constraint)


def _states_set(set: Set) -> bool:
    return all(map(_states_set, set.factors)) if isinstance(set, Product) else _has_statement(state_set, set)


def is_solved(program: Any, otherwise: str, **tolerances: float) -> bool:
    """Whether CLARABEL finds a solution of the program; a LongtermError that begins with `otherwise` if it fails."""
    cp = _cvxpy()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")  # it shows in the certificate
        try:
            program.solve(solver=cp.CLARABEL, **tolerances)
        except cp.error.SolverError as error:
            raise LongtermError(f"{otherwise}: {error}") from error
    return program.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)


def solve_by_cvxpy(problem: Problem, played: Block) -> Solution:
    """The best decision of a problem with a fixed constraint that can state itself, by one convex program.

    The gap is certified anew (`certified_gap`), whatever the solver says of itself; constraints may be broken by as
    much as its tolerance.
    """
    cp = _cvxpy()
    variable = cp.Variable(problem.dimension)
    limits = state_set(problem.enclosing_set, variable) + state_constraint(problem.constraint, variable)
    program = cp.Problem(cp.Minimize(state_loss(problem.loss, variable, *played.loss)), limits)
    none = f"CVXPY found no best decision of {problem.name!r}"
    if not is_solved(program, none):
        raise LongtermError(f"{none}: the program is {program.status}")
    x = np.asarray(variable.value, dtype=np.float64)
    loss, gradient = total_loss(problem, x, played)
    return Solution(x, loss, float(certified_gap(problem, x, gradient)))
