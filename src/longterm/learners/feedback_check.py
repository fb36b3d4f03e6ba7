"""Checks of feedback before a learner's `update`: shape, dtype, finite numbers, declared bounds.

`FeedbackCheck.accept` checks one round. Engines use its parts: `Limits.acceptable` is a cheap test of every round that
can be compiled, and `Limits.faults` finds the words for a round that failed it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import Array, like, namespace, resolution, square, to_numpy
from longterm._validate import Hyper
from longterm.errors import BrokenBoundError, BrokenBoundWarning, InputError, NonFiniteError, kind_of, warn_caller
from longterm.learners.feedback import Feedback
from longterm.problems.problem import Problem

OnBrokenBound = Literal["raise", "warn"]
"""What happens when a gradient or a constraint exceeds its declared bound."""

BOUNDED = ("loss_gradient", "constraint_gradient", "constraint")
"""The fields with a declared bound, in the order of the results of `Limits.within`."""


class Bounded(Protocol):
    """The part of a learner that describes the feedback it accepts."""

    @property
    def loss_gradient_bound(self) -> Hyper | None:
        """The bound on ∇f_t that it was made for."""

    @property
    def constraint_gradient_bound(self) -> Hyper | None:
        """The bound on ∇g_t that it was made for."""

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        """Raise if a field that only this learner reads is missing or unusable."""


class Limits(NamedTuple):
    """The largest sizes that feedback may have, rounding included."""

    loss_gradient_square: Array
    constraint_gradient_square: Array
    constraint: Array

    @classmethod
    def from_bounds(
        cls,
        x: Array,
        loss_gradient: Hyper | None = None,
        constraint_gradient: Hyper | None = None,
        constraint: Hyper | None = None,
    ) -> Limits:
        """Return the limits of declared bounds. None means no bound, and only infinities exceed it."""
        slack = 1 + resolution(x)
        largest = float(namespace(x).finfo(x.dtype).max)

        def limit(bound: Hyper | None, power: int) -> Array:
            if bound is None:
                return largest
            with np.errstate(over="ignore"):
                return like(np.minimum((np.asarray(bound) * slack) ** power, largest), x)

        return cls(limit(loss_gradient, 2), limit(constraint_gradient, 2), limit(constraint, 1))

    @classmethod
    def declared(cls, learner: Bounded, x: Array, problem: Problem | None = None) -> Limits:
        """Return the smaller of the learner's bounds and the problem's constants."""
        loss_gradient, constraint_gradient = learner.loss_gradient_bound, learner.constraint_gradient_bound
        if problem is None:
            return cls.from_bounds(x, loss_gradient, constraint_gradient)

        def smaller(bound: float, made_for: Hyper | None) -> Hyper:
            return bound if made_for is None else np.minimum(bound, made_for)

        facts = problem.constants
        return cls.from_bounds(
            x,
            smaller(facts.loss_gradient_bound, loss_gradient),
            smaller(facts.constraint_gradient_bound, constraint_gradient),
            facts.constraint_bound,
        )

    def within(self, feedback: Feedback) -> tuple[Array, Array, Array]:
        """Return, per learner and for each field of BOUNDED, whether it is within its limit. NaN is not."""
        return (
            square(feedback.loss_gradient) <= self.loss_gradient_square,
            square(feedback.constraint_gradient) <= self.constraint_gradient_square,
            namespace(feedback.loss_gradient).abs(feedback.constraint) <= self.constraint,
        )

    def acceptable(self, feedback: Feedback) -> Array:
        """Return, per learner, whether everything is finite and within the limits; shape (...,)."""
        loss_gradient, constraint_gradient, constraint = self.within(feedback)
        good = loss_gradient & constraint_gradient & constraint
        xp = namespace(feedback.loss_gradient)
        if feedback.hint is not None:
            good = good & xp.all(xp.isfinite(feedback.hint), axis=-1)
        return good if feedback.loss is None else good & xp.isfinite(feedback.loss)

    def faults(self, feedback: Feedback, t: int | None) -> list[NonFiniteError] | list[BrokenBoundError]:
        """Return the first number that is not finite as an error, or else one error per broken bound."""
        numbers = {
            name: to_numpy(value)
            for name, value in feedback._asdict().items()
            if not (value is None or callable(value))
        }
        for name, value in numbers.items():
            bad = ~np.isfinite(value)
            if np.any(bad):
                what = f"holds {value[bad].flat[0]}{_place(bad)}"
                remedy = "Check the data of this round; the state is as it was, so leave the round out or tell it again"
                return [NonFiniteError(name, what, remedy, round=t)]
        with np.errstate(over="ignore"):
            lengths = [np.linalg.norm(numbers[name], axis=-1) for name in ("loss_gradient", "constraint_gradient")]
        sizes = {
            "loss_gradient": (lengths[0], np.sqrt(self.loss_gradient_square)),
            "constraint_gradient": (lengths[1], np.sqrt(self.constraint_gradient_square)),
            "constraint": (np.abs(numbers["constraint"]), np.asarray(self.constraint)),
        }
        broken = []
        for name, (size, limit) in sizes.items():
            above = ~(size <= limit)
            if np.any(above):
                amount, bound = size[above].flat[0], np.broadcast_to(limit, size.shape)[above].flat[0]
                what = f"has size {amount:.6g}, above the declared bound {bound:.6g}{_place(above)}"
                remedy = f"Declare a {name} bound that holds, or go on without a theorem by on_broken_bound='warn'"
                broken.append(BrokenBoundError(name, what, remedy, round=t))
        return broken


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
        self, learner: Bounded, x: Array, problem: Problem | None = None, on_broken_bound: OnBrokenBound = "raise"
    ) -> None:
        require_known(on_broken_bound)
        self._learner = learner
        self._x = x
        self._on_broken_bound = on_broken_bound
        self.limits = Limits.declared(learner, x, problem)
        self._is_plain = type(x) is np.ndarray and x.ndim == 1 and all(np.ndim(limit) == 0 for limit in self.limits)
        if self._is_plain:
            self._dtype, self._shape = x.dtype, x.shape
            self._numbers = tuple(float(limit) for limit in self.limits)

    def _fast_accept(self, feedback: Feedback) -> Feedback | None:
        """Return the feedback of one NumPy learner if it passes the common checks, else None.

        Python floats become numbers of the state's dtype. The full check looks again at what does not pass.
        """
        loss_gradient, constraint, constraint_gradient, loss, _, _, _, _, hint = feedback
        dtype, shape = self._dtype, self._shape
        if not (
            hint is None
            and type(loss_gradient) is np.ndarray
            and type(constraint_gradient) is np.ndarray
            and loss_gradient.shape == shape == constraint_gradient.shape
            and loss_gradient.dtype is dtype
            and constraint_gradient.dtype is dtype
        ):
            return None
        kind = dtype.type
        if type(constraint) is float or type(loss) is float:
            constraint = kind(constraint) if type(constraint) is float else constraint
            loss = kind(loss) if type(loss) is float else loss
            feedback = feedback._replace(constraint=constraint, loss=loss)
        first, second, third = self._numbers
        if (
            (type(constraint) is kind or _is_scalar_array(constraint, dtype))
            and (loss is None or ((type(loss) is kind or _is_scalar_array(loss, dtype)) and math.isfinite(loss)))
            and loss_gradient.dot(loss_gradient) <= first
            and constraint_gradient.dot(constraint_gradient) <= second
            and abs(float(constraint)) <= third
        ):
            return feedback
        return None

    def accept(self, feedback: Feedback, t: int | None) -> Feedback:
        """Return the feedback of round t, ready for `update`. Raise if it is unusable.

        Call it under `numpy.errstate(all="ignore")`.
        """
        x, given = self._x, feedback  # type: Array, object
        if not isinstance(given, Feedback):
            what = f"is {kind_of(given)}, not a Feedback"
            remedy = "Give Feedback(loss_gradient, constraint, constraint_gradient), or observe(problem, x, ...)"
            raise InputError("feedback", what, remedy, round=t)
        if self._is_plain:
            plain = self._fast_accept(feedback)
            if plain is not None:
                self._learner.require(plain, x, t, self._on_broken_bound)
                return plain
        require_match(feedback, x, t)
        self._learner.require(feedback, x, t, self._on_broken_bound)
        feedback = _as_arrays(feedback, x)
        good = self.limits.acceptable(feedback)
        if not (good if good.ndim == 0 else namespace(x).all(good)):
            raise_or_warn(self.faults(feedback, t), self._on_broken_bound)
        return feedback

    def faults(self, feedback: Feedback, t: int | None) -> list[NonFiniteError] | list[BrokenBoundError]:
        """Return the errors of feedback that is not acceptable."""
        return self.limits.faults(feedback, t)


def _is_scalar_array(number: Array, dtype: np.dtype[Any]) -> bool:
    """Return whether it is a NumPy array of shape () and this dtype."""
    return type(number) is np.ndarray and number.shape == () and number.dtype is dtype


def require_known(on_broken_bound: str) -> None:
    """Raise if the argument is neither "raise" nor "warn"."""
    if on_broken_bound not in ("raise", "warn"):
        raise InputError("on_broken_bound", f"{on_broken_bound!r} is not known", "Choose 'raise' or 'warn'")


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


def _place(bad: NDArray[np.bool_]) -> str:
    """Return the index of the first bad value in a batch, in words."""
    return f" at index {tuple(int(i) for i in np.argwhere(bad)[0])}" if bad.ndim else ""
