"""Checks of feedback before a learner's `update`: shape, dtype, finite numbers, declared bounds.

`FeedbackCheck.accept` checks one round. Engines use its parts: `Limits.acceptable` is a cheap test of every round that
can be compiled, and `Limits.faults` returns the errors of a round that failed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, namespace, to_numpy
from longterm._base.messages import kind_of, warn_caller
from longterm._base.states import are_finite, first_not_finite
from longterm.errors import BrokenBoundError, BrokenBoundWarning, InputError, NonFiniteError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.limits import Limits
from longterm.problems.problem import Problem

if TYPE_CHECKING:
    from longterm.learners.interface.learner import Learner

OnBrokenBound = Literal["raise", "warn"]
"""The reaction to a gradient or a constraint above its declared bound."""


HUGE = 1e12
"""From this size on, feedback is blamed for an update that fails."""


class FeedbackCheck:
    """A check of every feedback of one learner, made once for all rounds.

    Parameters
    ----------
    learner : Learner
        The learner that receives the feedback.
    x : array
        One of its decisions. Feedback must have its shape, dtype and library.
    problem : Problem, optional
        Its constants bound the feedback too.
    on_broken_bound : {"raise", "warn"}
        Whether feedback above a declared bound is refused, or accepted with a BrokenBoundWarning.
    """

    def __init__(
        self, learner: Learner[Any], x: Array, problem: Problem | None = None, on_broken_bound: OnBrokenBound = "raise"
    ) -> None:
        require_known(on_broken_bound)
        self._learner = learner
        self._x = x
        self._on_broken_bound = on_broken_bound
        self.limits = Limits.declared(learner, x, problem)

    def accept(self, feedback: Feedback, t: int | None) -> Feedback:
        """Return the feedback of round t, ready for `update`. Raise if it is unusable.

        Call it under `numpy.errstate(all="ignore")`.
        """
        x, given = self._x, feedback  # type: Array, object
        if not isinstance(given, Feedback):
            what = f"is {kind_of(given)}, not a Feedback"
            remedy = "Give Feedback(loss_gradient, constraint, constraint_gradient), or observe(problem, x, ...)"
            raise InputError("feedback", what, remedy, round=t)
        require_match(feedback, x, t)
        self._learner.require(feedback, x, t, self._on_broken_bound)
        feedback = _as_arrays(_with_checked_query(feedback, t), x)
        good = self.limits.acceptable(feedback)
        if not (good if good.ndim == 0 else namespace(x).all(good)):
            raise_or_warn(self.faults(feedback, t), self._on_broken_bound)
        return feedback

    def faults(self, feedback: Feedback, t: int | None) -> list[NonFiniteError] | list[BrokenBoundError]:
        """Return the errors of feedback that is not acceptable."""
        return self.limits.faults(feedback, t)


def checked_update(learner: Learner[Any], state: Any, feedback: Feedback, t: int) -> Any:
    """Return the state after round t. Raise if the update fails on huge numbers or gives NaN or infinity."""
    try:
        after = learner.update(state, feedback)
    except InputError as error:
        if error.round is None:
            raise InputError(error.argument, error.what, error.remedy, round=t) from error
        raise
    except (ArithmeticError, ValueError) as error:  # an overflow within a decomposition is a ValueError
        name, size = _largest_field(feedback)
        if size < HUGE:
            raise
        raise _overflow(name, size, f"and the update of {type(learner).__name__} fails ({error})", t) from error
    field = first_not_finite(after)
    if field is not None:
        raise _overflow(*_largest_field(feedback), f"and the {field} of the state would not be finite", t)
    return after


def _largest_field(feedback: Feedback) -> tuple[str, float]:
    """Return the name of the field with the largest number, and its size."""
    sizes = {
        field: _largest(value) for field, value in feedback._asdict().items() if not (value is None or callable(value))
    }
    if isinstance(feedback.constraint_at, _CheckedQuery):
        sizes["constraint_at"] = feedback.constraint_at.largest
    name = max(sizes, key=lambda field: sizes[field])
    return name, sizes[name]


def _largest(value: Array) -> float:
    return float(np.max(np.abs(to_numpy(value)), initial=0.0))


def _overflow(name: str, size: float, ending: str, t: int) -> NonFiniteError:
    remedy = "Check the data of this round, or use smaller units. The state is unchanged"
    return NonFiniteError(name, f"has size {size:.3g}, {ending}", remedy, round=t)


class _CheckedQuery:
    """A `constraint_at` that raises where g_t is not finite. It knows the largest value it has returned."""

    def __init__(self, query: Callable[[Array], Array], t: int | None) -> None:
        self._query, self._round, self.largest = query, t, 0.0

    def __call__(self, y: Array) -> Array:
        values = self._query(y)
        if not are_finite(values):
            remedy = "Return finite values on the whole enclosing set. The state is unchanged"
            raise NonFiniteError("constraint_at", "returned NaN or infinity", remedy, round=self._round)
        self.largest = max(self.largest, _largest(values))
        return values


def _with_checked_query(feedback: Feedback, t: int | None) -> Feedback:
    query = feedback.constraint_at
    return feedback if query is None else feedback._replace(constraint_at=_CheckedQuery(query, t))


def require_known(on_broken_bound: str) -> None:
    """Raise if the argument is neither "raise" nor "warn"."""
    validate.choice("on_broken_bound", on_broken_bound, get_args(OnBrokenBound))


def raise_or_warn(faults: Iterable[InputError], on_broken_bound: OnBrokenBound) -> None:
    """Raise the first fault. With on_broken_bound="warn", warn of broken bounds instead."""
    for fault in faults:
        if not isinstance(fault, BrokenBoundError) or on_broken_bound != "warn":
            raise fault
        warn_caller(str(fault), BrokenBoundWarning)


def require_match(feedback: Feedback, x: Array, t: int | None) -> None:
    """Raise if a shape, a dtype or an array library differs from the state's. Nothing is converted silently."""
    wanted = {
        "loss_gradient": x.shape,
        "constraint_gradient": x.shape,
        "constraint": x.shape[:-1],
        "loss": x.shape[:-1],
        "hint": x.shape,
    }
    for name, shape in wanted.items():
        value = getattr(feedback, name)
        if type(value) is type(x) and value.dtype == x.dtype and value.shape == shape:
            continue
        if (name in ("loss", "hint") and value is None) or (shape == () and isinstance(value, (int, float))):
            continue
        if not hasattr(value, "dtype") or not hasattr(value, "shape") or namespace(value) is not namespace(x):
            what = f"is a {type(value).__module__}.{type(value).__name__}, the state holds {type(x).__module__} arrays"
            raise InputError(name, what, "Give an array of the state's library", round=t)
        if value.dtype != x.dtype:
            remedy = f"Convert it to {x.dtype}, or start the learner with init(dtype=...)"
            raise InputError(name, f"has dtype {value.dtype}, the state has {x.dtype}", remedy, round=t)
        if tuple(value.shape) != tuple(shape):
            remedy = "Give one value for each learner, shaped as the state is"
            raise InputError(name, f"has shape {tuple(value.shape)}, not {tuple(shape)}", remedy, round=t)


def _as_arrays(feedback: Feedback, x: Array) -> Feedback:
    """Convert Python numbers of a single learner to arrays of x's library."""
    single = {
        name: namespace(x).asarray(value, dtype=x.dtype)
        for name, value in (("constraint", feedback.constraint), ("loss", feedback.loss))
        if type(value) in (int, float)
    }
    return feedback._replace(**single) if single else feedback
