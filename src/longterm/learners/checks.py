"""Is what a learner was told usable: of the right shape and dtype, finite, within what was declared?

`acceptable` is the cheap test of every round, a handful of array operations that any engine can run;
`faults` is the slow look at a round that failed it, and finds the words.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import Array, dot, like, namespace, resolution, to_numpy
from longterm._validate import Hyper
from longterm.errors import BrokenBoundError, BrokenBoundWarning, InputError, NonFiniteError
from longterm.learners.feedback import Feedback


class Limits(NamedTuple):
    """What a round may not exceed, with the rounding allowed for, ready to compare with."""

    loss_gradient_square: Array
    constraint_gradient_square: Array
    constraint: Array

    @classmethod
    def around(
        cls,
        x: Array,
        loss_gradient: Hyper | None = None,
        constraint_gradient: Hyper | None = None,
        constraint: Hyper | None = None,
    ) -> Limits:
        """Limits from declared bounds. None: nothing was declared, and only infinities exceed it."""
        slack = 1 + resolution(x)
        largest = float(namespace(x).finfo(x.dtype).max)

        def limit(bound: Hyper | None, power: int) -> Array:
            if bound is None:
                return largest
            with np.errstate(over="ignore"):
                return like(np.minimum((np.asarray(bound) * slack) ** power, largest), x)

        return cls(limit(loss_gradient, 2), limit(constraint_gradient, 2), limit(constraint, 1))


BOUNDED = ("loss_gradient", "constraint_gradient", "constraint")
"""What has a declared bound, in the order in which `within` answers."""


def within(told: Feedback, limits: Limits) -> tuple[Array, Array, Array]:
    """Per learner, for each of BOUNDED: is it within its limit? A NaN is never ≤ anything."""
    return (
        dot(told.loss_gradient, told.loss_gradient) <= limits.loss_gradient_square,
        dot(told.constraint_gradient, told.constraint_gradient) <= limits.constraint_gradient_square,
        namespace(told.loss_gradient).abs(told.constraint) <= limits.constraint,
    )


def acceptable(told: Feedback, limits: Limits) -> Array:
    """Per learner: everything finite and within the limits; shape (...,)."""
    loss_gradient, constraint_gradient, constraint = within(told, limits)
    good = loss_gradient & constraint_gradient & constraint
    return good if told.loss is None else good & namespace(told.loss_gradient).isfinite(told.loss)


def faults(told: Feedback, limits: Limits, t: int) -> list[NonFiniteError] | list[BrokenBoundError]:
    """What is wrong with this round, in words: the first number that is not finite, or else every broken bound."""
    numbers = {
        name: to_numpy(value) for name, value in told._asdict().items() if not (value is None or callable(value))
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
        "loss_gradient": (lengths[0], np.sqrt(limits.loss_gradient_square)),
        "constraint_gradient": (lengths[1], np.sqrt(limits.constraint_gradient_square)),
        "constraint": (np.abs(numbers["constraint"]), np.asarray(limits.constraint)),
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


def raise_or_warn(found: Iterable[InputError], on_broken_bound: str) -> None:
    """Raise the first fault; with on_broken_bound="warn", warn of broken bounds instead. Called by what users call."""
    for fault in found:
        if not isinstance(fault, BrokenBoundError) or on_broken_bound != "warn":
            raise fault
        warnings.warn(str(fault), BrokenBoundWarning, stacklevel=4)


def _place(bad: NDArray[np.bool_]) -> str:
    """Where in a batch the first bad value stands."""
    return f" at index {tuple(int(i) for i in np.argwhere(bad)[0])}" if bad.ndim else ""


def require_match(told: Feedback, x: Array, t: int | None) -> None:
    """Shapes and dtypes of what was told must be those of the state: nothing is converted in silence."""
    wanted = {
        "loss_gradient": x.shape,
        "constraint_gradient": x.shape,
        "constraint": x.shape[:-1],
        "loss": x.shape[:-1],
    }
    for name, shape in wanted.items():
        value = getattr(told, name)
        if (name == "loss" and value is None) or (shape == () and isinstance(value, (int, float))):
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
