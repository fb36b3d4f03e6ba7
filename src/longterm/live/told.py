"""The ways to tell a live learner what happened in a round, and the check that it can be used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from longterm._arrays import Array
from longterm.engines.fit import require_fit
from longterm.engines.reference import declared_limits
from longterm.errors import InputError, NonFiniteError
from longterm.learners.base import Learner, OnBrokenBound
from longterm.learners.checks import Limits, acceptable, faults, raise_or_warn, require_match
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
    made = function(x)
    if not isinstance(made, tuple) or len(made) != 2:
        raise InputError(
            name, f"returned a {type(made).__name__}", "Return a pair: the value and the gradient at x", round=number
        )
    return made


def with_arrays(told: Feedback) -> Feedback:
    """Python numbers as NumPy's, so that everything later meets arrays only."""
    constraint, loss = (
        np.float64(value) if isinstance(value, (int, float)) else value for value in (told.constraint, told.loss)
    )
    return told._replace(constraint=constraint, loss=loss)


def limits_of(learner: Learner[Any], problem: Problem | None, x: Array) -> Limits:
    """What a round may not exceed: the problem's facts if there is a problem, and the G the learner was made for."""
    if problem is not None:
        return declared_limits(problem, learner, x)
    return Limits.around(
        x, loss_gradient=learner.loss_gradient_bound, constraint_gradient=learner.constraint_gradient_bound
    )


def require_usable(told: Feedback, x: Array, number: int, limits: Limits, on_broken_bound: OnBrokenBound) -> None:
    """Raise, or warn of a broken bound if that was asked for, unless this feedback can be used."""
    require_match(told, x, number)
    with np.errstate(all="ignore"):
        good = acceptable(told, limits).all()
    if not good:
        raise_or_warn(faults(told, limits, number), on_broken_bound)


def require_finite(arrays: dict[str, Array], number: int) -> None:
    """Raise unless the state that an update led to is finite."""
    for name, value in arrays.items():
        if not np.isfinite(value).all():
            raise NonFiniteError(
                name,
                "would hold a number that is not finite after this update",
                "Check the feedback of this round; the state is as it was",
                round=number,
            )
