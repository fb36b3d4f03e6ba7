"""Is what a learner was told usable: of the right shape and dtype, finite, within what was declared?

`acceptable` is the cheap test of every round, a handful of array operations that any engine can run;
`first_fault` is the slow look at a round that failed it, and finds the words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import Array, dot, like, namespace, resolution, to_numpy
from longterm._validate import Hyper
from longterm.errors import BrokenBoundError, InputError, NonFiniteError
from longterm.feedback import Feedback


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
            return like(np.minimum((np.asarray(bound) * slack) ** power, largest), x)

        return cls(limit(loss_gradient, 2), limit(constraint_gradient, 2), limit(constraint, 1))


def acceptable(told: Feedback, limits: Limits) -> Array:
    """Per learner: finite and within the limits; shape (...,). A NaN is never ≤ anything."""
    xp = namespace(told.loss_gradient)
    good = dot(told.loss_gradient, told.loss_gradient) <= limits.loss_gradient_square
    good = good & (dot(told.constraint_gradient, told.constraint_gradient) <= limits.constraint_gradient_square)
    good = good & (xp.abs(told.constraint) <= limits.constraint)
    return good if told.loss is None else good & xp.isfinite(told.loss)


def first_fault(told: Feedback, limits: Limits, t: int) -> NonFiniteError | BrokenBoundError | None:
    """What is wrong with this round, if anything: a number that is not finite comes before a broken bound."""
    numbers = {
        name: to_numpy(value) for name, value in told._asdict().items() if not (value is None or callable(value))
    }
    for name, value in numbers.items():
        bad = ~np.isfinite(value)
        if np.any(bad):
            return NonFiniteError(
                name,
                f"holds {value[bad].flat[0]}{_place(bad)}",
                "Check the data of this round; the state is as it was, so leave the round out or tell it again",
                round=t,
            )
    sizes = {
        "loss_gradient": (np.linalg.norm(numbers["loss_gradient"], axis=-1), np.sqrt(limits.loss_gradient_square)),
        "constraint_gradient": (
            np.linalg.norm(numbers["constraint_gradient"], axis=-1),
            np.sqrt(limits.constraint_gradient_square),
        ),
        "constraint": (np.abs(numbers["constraint"]), np.asarray(limits.constraint)),
    }
    for name, (size, limit) in sizes.items():
        above = ~(size <= limit)
        if np.any(above):
            amount, bound = size[above].flat[0], np.broadcast_to(limit, size.shape)[above].flat[0]
            return BrokenBoundError(
                name,
                f"has size {amount:.6g}, above the declared bound {bound:.6g}{_place(above)}",
                f"Declare a {name} bound that holds, or go on without a theorem by on_broken_bound='warn'",
                round=t,
            )
    return None


def _place(bad: NDArray[np.bool_]) -> str:
    """Where in a batch the first bad value stands."""
    return f" at index {tuple(int(i) for i in np.argwhere(bad)[0])}" if bad.ndim else ""


def require_match(told: Feedback, x: Array, t: int) -> None:
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
        if not hasattr(value, "dtype") or not hasattr(value, "shape"):
            raise InputError(name, f"is a {type(value).__name__}, not an array", "Give an array", round=t)
        if value.dtype != x.dtype:
            remedy = f"Convert it to {x.dtype}, or start the learner with init(dtype=...)"
            raise InputError(name, f"has dtype {value.dtype}, the state has {x.dtype}", remedy, round=t)
        if tuple(value.shape) != tuple(shape):
            remedy = "Give one value for each learner, shaped as the state is"
            raise InputError(name, f"has shape {tuple(value.shape)}, not {tuple(shape)}", remedy, round=t)
