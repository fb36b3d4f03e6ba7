"""The feedback of one round, and the oracle call that evaluates it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from longterm._base.arrays import Array, namespace, resolution
from longterm.problems.constraints.base import max_with_index
from longterm.problems.problem import Problem


class Feedback(NamedTuple):
    """Tell a learner what loss and constraint were at the decision that it played.

    A learner reads a part of it, and only that part has to be given. Learners with one multiplier per constraint read
    `constraint_values` and `pullback` instead of the maximum.

    Parameters
    ----------
    loss_gradient : array
        ∇f_t(x_t), shape (..., d).
    constraint : array
        g(x_t) = max_j g_j(x_t), shape (...,).
    constraint_gradient : array
        A subgradient of that maximum at x_t, shape (..., d).
    loss : array, optional
        f_t(x_t), shape (...,).
    constraint_values : array, optional
        g_j(x_t), shape (..., m).
    pullback : callable, optional
        λ ↦ Σ_j λ_j ∇g_j(x_t), from shape (..., m) to (..., d).
    pushforward : callable, optional
        v ↦ (⟨∇g_j(x_t), v⟩)_j, from shape (..., d) to (..., m).
    constraint_at : callable, optional
        y ↦ g_t(y) = max_j g_{t,j}(y), from shape (..., d) to (...,), for learners that query other points of B.
    hint : array, optional
        A forecast of ∇f_{t+1}(x_{t+1}), shape (..., d), for learners that use one.
    """

    loss_gradient: Array
    constraint: Array
    constraint_gradient: Array
    loss: Array = None
    constraint_values: Array = None
    pullback: Callable[[Array], Array] | None = None
    pushforward: Callable[[Array], Array] | None = None
    constraint_at: Callable[[Array], Array] | None = None
    hint: Array = None


def observe(
    problem: Problem, x: Array, loss_parameters: Sequence[Array], constraint_parameters: Sequence[Array] = ()
) -> Feedback:
    """Evaluate f_t and g_t once, at x.

    Parameters
    ----------
    problem : Problem
        The problem whose loss and constraint are evaluated.
    x : array
        The decision, shape (..., d).
    loss_parameters : sequence of array
        The parameters of f_t: a target, a cost, features and a label.
    constraint_parameters : sequence of array
        The parameters of g_t. Empty where the constraint is fixed.

    Returns
    -------
    Feedback
        Values, subgradients, and the maps that some learners call.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> feedback = lt.observe(lt.problems.two_dimensional(), np.array([1.0, 0.0]), [np.array([0.0, 1.0])])
    >>> float(feedback.loss), feedback.loss_gradient, float(feedback.constraint), feedback.constraint_gradient
    (1.0, array([ 1., -1.]), 0.75, array([1., 0.]))
    """
    loss, loss_gradient = problem.loss.value_and_gradient(x, *loss_parameters)
    constraint = problem.constraint
    values, pullback, pushforward = constraint.linearised(x, *constraint_parameters)
    if constraint.count == 1:
        maximum = values[0] if values.ndim == 1 else values[..., 0]  # a NumPy scalar is faster than a 0-d array
        constraint_gradient = pullback(namespace(x).ones_like(values))
    else:
        maximum, index = max_with_index(values, resolution(x) * problem.constants.constraint_bound)
        constraint_gradient = constraint.gradient_of(x, index, *constraint_parameters)

    def constraint_at(y: Array) -> Array:
        return namespace(y).max(constraint.values(y, *constraint_parameters), axis=-1)

    return Feedback(loss_gradient, maximum, constraint_gradient, loss, values, pullback, pushforward, constraint_at)
