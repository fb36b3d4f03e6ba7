"""What a learner is told at the end of a round, and the oracle call that finds it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from longterm._arrays import Array, namespace, resolution
from longterm.constraints.base import largest
from longterm.problems.problem import Problem


class Feedback(NamedTuple):
    """The loss and the constraint at the point x_t that was played.

    `constraint` is g(x_t) = max_j g_j(x_t) and `constraint_gradient` a subgradient of that maximum; a
    learner with one multiplier per constraint reads `constraint_values` and `pullback` instead. Only
    what the learner in use reads has to be given.
    """

    loss_gradient: Array
    """∇f_t(x_t), shape (..., d)."""
    constraint: Array
    """g(x_t), shape (...,)."""
    constraint_gradient: Array
    """∇g(x_t), shape (..., d)."""
    loss: Array = None
    """f_t(x_t), shape (...,)."""
    constraint_values: Array = None
    """g_j(x_t), shape (..., m)."""
    pullback: Callable[[Array], Array] | None = None
    """λ ↦ Σ_j λ_j ∇g_j(x_t), from shape (..., m) to (..., d)."""
    pushforward: Callable[[Array], Array] | None = None
    """v ↦ (⟨∇g_j(x_t), v⟩)_j, from shape (..., d) to (..., m)."""
    constraint_at: Callable[[Array], Array] | None = None
    """y ↦ g_t(y) = max_j g_{t,j}(y), from shape (..., d) to (...,): for learners that ask about other points of B."""


def observe(
    problem: Problem, x: Array, loss_parameters: Sequence[Array], constraint_parameters: Sequence[Array] = ()
) -> Feedback:
    """Evaluate f_t and g_t once, at x.

    >>> import numpy as np
    >>> from longterm import observe
    >>> from longterm.problems import two_dimensional
    >>> told = observe(two_dimensional(), np.array([1.0, 0.0]), [np.array([0.0, 1.0])])
    >>> float(told.loss), told.loss_gradient, float(told.constraint), told.constraint_gradient
    (1.0, array([ 1., -1.]), 0.75, array([1., 0.]))
    """
    loss, loss_gradient = problem.loss.value_and_gradient(x, *loss_parameters)
    constraint = problem.constraint
    values, pullback = constraint.values_and_pullback(x, *constraint_parameters)
    if constraint.count == 1:
        worst = values[..., 0]
        constraint_gradient = pullback(namespace(x).ones_like(values))
    else:
        worst, index = largest(values, resolution(x) * problem.constants.constraint_bound)
        constraint_gradient = constraint.gradient_of(x, index, *constraint_parameters)

    def pushforward(direction: Array) -> Array:
        return constraint.pushforward(x, direction, *constraint_parameters)

    def constraint_at(y: Array) -> Array:
        return namespace(y).max(constraint.values(y, *constraint_parameters), axis=-1)

    return Feedback(loss_gradient, worst, constraint_gradient, loss, values, pullback, pushforward, constraint_at)
