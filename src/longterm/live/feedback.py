"""The three ways to tell a live learner what happened in a round."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from longterm._arrays import Array
from longterm.engines.run import require_fit
from longterm.errors import InputError
from longterm.learners.feedback import Feedback, observe
from longterm.problems import Problem
from longterm.streams import Block

Oracle = Callable[[Array], tuple[Array, Array]]
"""x ↦ (value, gradient)."""


def feedback_at(
    x: Array,
    number: int,
    problem: Problem | None,
    *,
    feedback: Feedback | None,
    loss: Oracle | None,
    constraint: Oracle | None,
    loss_parameters: Sequence[Array] | None,
    constraint_parameters: Sequence[Array],
) -> Feedback:
    """The feedback of round `number` at its own decision x, from whichever of the three ways was used."""
    by_parameters = loss_parameters is not None or len(constraint_parameters) > 0
    ways = [feedback is not None, loss is not None or constraint is not None, by_parameters]
    if sum(ways) != 1:
        raise InputError(
            "feedback",
            "was given in no way" if not any(ways) else "was given in more ways than one",
            "Give a Feedback, or loss= and constraint=, or loss_parameters=",
            round=number,
        )
    if feedback is not None:
        if not isinstance(feedback, Feedback):
            raise InputError("feedback", f"is a {type(feedback).__name__}", "Give a longterm.Feedback", round=number)
        return feedback
    if by_parameters:
        loss_parameters = loss_parameters or ()
        if problem is None:
            raise InputError(
                "loss_parameters", "mean nothing without a problem", "Make the learner with problem=", round=number
            )
        loss_arrays, constraint_arrays = (
            tuple(np.asarray(parameter) for parameter in given) for given in (loss_parameters, constraint_parameters)
        )
        one_round = Block(tuple(a[None] for a in loss_arrays), tuple(a[None] for a in constraint_arrays), 1)
        require_fit(problem, one_round, (), number)
        return observe(problem, x, loss_arrays, constraint_arrays)
    value, gradient = _called("loss", loss, x, number)
    worst, direction = _called("constraint", constraint, x, number)
    return Feedback(
        gradient, worst, direction, loss=value, constraint_at=lambda y: _called("constraint", constraint, y, number)[0]
    )


def _called(name: str, function: Oracle | None, x: Array, number: int) -> tuple[Array, Array]:
    if function is None:
        raise InputError(name, "is missing", "Give both loss= and constraint=", round=number)
    pair = function(x)
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise InputError(
            name, f"returned a {type(pair).__name__}", "Return a pair: the value and the gradient at x", round=number
        )
    return pair
