"""The feedback of a live learner's round, given in one of three ways, and a view of the learner at one moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longterm._base.arrays import Array, safe_norm
from longterm._base.display import ReprMixin
from longterm.errors import InputError
from longterm.learners.interface.feedback import Feedback, observe
from longterm.learners.interface.learner import Learner
from longterm.play.engines.validation import require_fit
from longterm.problems import Problem
from longterm.problems.streams.base import Block

Oracle = Callable[[Array], tuple[Array, Array]]
"""x ↦ (value, gradient)."""
MAX_DIAMETERS = 10.0
"""A stored decision further from the centre of the set, in diameters, is refused."""


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
    """Return the feedback of round `number` at its decision x, from the one way that was used."""
    loss_arrays = _parameters("loss_parameters", () if loss_parameters is None else loss_parameters, number)
    constraint_arrays = _parameters("constraint_parameters", constraint_parameters, number)
    by_parameters = loss_parameters is not None or len(constraint_arrays) > 0
    ways = [feedback is not None, loss is not None or constraint is not None, by_parameters]
    if sum(ways) != 1:
        raise InputError(
            "feedback",
            "is missing" if not any(ways) else "was given in more ways than one",
            "Give a Feedback, or loss= and constraint=, or loss_parameters=",
            round=number,
        )
    if feedback is not None:
        if not isinstance(feedback, Feedback):
            raise InputError("feedback", f"is a {type(feedback).__name__}", "Give a longterm.Feedback", round=number)
        return feedback
    if by_parameters:
        if problem is None:
            raise InputError(
                "loss_parameters",
                "can be used only if the learner has a problem",
                "Make the learner with problem=",
                round=number,
            )
        one_round = Block(tuple(a[None] for a in loss_arrays), tuple(a[None] for a in constraint_arrays), 1)
        require_fit(problem, one_round, (), number)
        return observe(problem, x, loss_arrays, constraint_arrays)
    value, gradient = _evaluate("loss", loss, x, number)
    worst, direction = _evaluate("constraint", constraint, x, number)
    return Feedback(
        gradient,
        worst,
        direction,
        loss=value,
        constraint_at=lambda y: _evaluate("constraint", constraint, y, number)[0],
    )


def _parameters(name: str, given: Any, number: int) -> tuple[Any, ...]:
    """Return the parameters of a round as arrays."""
    if isinstance(given, (str, bytes)) or np.ma.isMaskedArray(given) or not np.iterable(given):
        raise InputError(name, f"is {given!r:.60}", "Give a list of arrays, one for each parameter", round=number)
    try:
        return tuple(np.asarray(parameter) for parameter in given)
    except ValueError:
        what = f"{given!r:.60} has rows of different lengths"
        raise InputError(name, what, "Give each parameter as one array", round=number) from None


def _evaluate(name: str, function: Oracle | None, x: Array, number: int) -> tuple[Array, Array]:
    if function is None:
        raise InputError(name, "is missing", "Give both loss= and constraint=", round=number)
    pair = function(x)
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise InputError(
            name, f"returned a {type(pair).__name__}", "Return a pair: the value and the gradient at x", round=number
        )
    return pair


def require_near(learner: Learner[Any], x: Array) -> None:
    """Raise a ValueError if a stored decision is so far from the learner's set that its rounds would overflow."""
    B = learner.enclosing_set
    with np.errstate(all="ignore"):
        is_near = safe_norm(np.asarray(x) - B.centre) <= MAX_DIAMETERS * B.diameter
    if not np.all(is_near):
        raise ValueError("a decision is far outside of the learner's set")


@dataclass(frozen=True, eq=False)
class LiveState(ReprMixin):
    """A live learner at one moment. It does not change when the learner does.

    Violations and losses are sums over the rounds told, at the decisions that were played in them. They are
    scalars for one learner, arrays for a batch.

    Parameters
    ----------
    round : int
        The learner's own counter t, from 1: one more than the rounds told. The steps below are those of t.
    x : array
        The decision of the next ask.
    report : mapping of str to array
        The learner's report: multiplier, theta, eta, mu, …
    asked, told, skipped, expired, in_flight : int
        The numbers of rounds that were opened, told, skipped, expired, and are open.
    largest_delay : int
        τ: the largest number of rounds opened between a round and its feedback, for `theory.lemma_5_delayed`.
    cumulative_loss : array
        Σ f_s(x_s), over the rounds whose feedback had a loss.
    losses_told : int
        The number of those rounds.
    signed_violation : array
        Σ g_s(x_s), which the theorem bounds.
    hard_violation : array
        Σ [g_s(x_s)]₊.
    squared_violation : array
        Σ [g_s(x_s)]₊².
    largest_violation : array
        max g_s(x_s); −∞ before the first feedback.
    """

    round: int
    x: Array
    report: Mapping[str, Array]
    asked: int
    told: int
    skipped: int
    expired: int
    in_flight: int
    largest_delay: int
    cumulative_loss: Array
    losses_told: int
    signed_violation: Array
    hard_violation: Array
    squared_violation: Array
    largest_violation: Array

    @property
    def multiplier(self) -> Array:
        """λ_t; None if the learner has none."""
        return self.report.get("multiplier")

    @property
    def theta(self) -> Array:
        """θ_t; None if the learner has none."""
        return self.report.get("theta")

    @property
    def eta(self) -> Array:
        """η_t; None if the learner has none."""
        return self.report.get("eta")

    @property
    def mu(self) -> Array:
        """μ_t; None if the learner has none."""
        return self.report.get("mu")
