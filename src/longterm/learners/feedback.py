"""What a learner is told at the end of a round, the oracle call that finds it out, and whether it is usable.

Usable is feedback of the right shape and dtype, finite, and within what was declared. `FeedbackCheck.accept` is the one
door between feedback and a learner's `update`. Engines, which evaluate the feedback themselves, use its parts:
`Limits.acceptable` is the cheap test of every round, a handful of array operations that can be compiled;
`Limits.faults` is the slow look at a round that failed it, and finds the words.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import Array, like, namespace, resolution, square, to_numpy
from longterm._validate import Hyper
from longterm.constraints.base import largest
from longterm.errors import BrokenBoundError, BrokenBoundWarning, InputError, NonFiniteError
from longterm.problems.problem import Problem


class Feedback(NamedTuple):
    """The loss and the constraint at the point x_t that was played.

    `constraint` is g(x_t) = max_j g_j(x_t) and `constraint_gradient` a subgradient of that maximum; a
    learner with one multiplier per constraint reads `constraint_values` and `pullback` instead. Only
    what the learner in use reads has to be given.

    Parameters
    ----------
    loss_gradient : array
        ∇f_t(x_t), shape (..., d).
    constraint : array
        g(x_t), shape (...,).
    constraint_gradient : array
        ∇g(x_t), shape (..., d).
    loss : array, optional
        f_t(x_t), shape (...,).
    constraint_values : array, optional
        g_j(x_t), shape (..., m).
    pullback : callable, optional
        λ ↦ Σ_j λ_j ∇g_j(x_t), from shape (..., m) to (..., d).
    pushforward : callable, optional
        v ↦ (⟨∇g_j(x_t), v⟩)_j, from shape (..., d) to (..., m).
    constraint_at : callable, optional
        y ↦ g_t(y) = max_j g_{t,j}(y), from shape (..., d) to (...,): for learners that ask about other points of B.
    hint : array, optional
        A forecast of ∇f_{t+1}(x_{t+1}), shape (..., d), for learners that follow one (`learners.optimistic`).
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
        Whose loss and constraint they are.
    x : array
        The decision, shape (..., d).
    loss_parameters : sequence of array
        What makes f_t of the problem's loss: a target, a cost, features and a label.
    constraint_parameters : sequence of array
        What makes g_t of the problem's constraint; none where the constraint is fixed.

    Returns
    -------
    Feedback
        Values, subgradients and the functions that some learners ask for.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import observe
    >>> from longterm.problems import two_dimensional
    >>> feedback = observe(two_dimensional(), np.array([1.0, 0.0]), [np.array([0.0, 1.0])])
    >>> float(feedback.loss), feedback.loss_gradient, float(feedback.constraint), feedback.constraint_gradient
    (1.0, array([ 1., -1.]), 0.75, array([1., 0.]))
    """
    loss, loss_gradient = problem.loss.value_and_gradient(x, *loss_parameters)
    constraint = problem.constraint
    values, pullback, pushforward = constraint.linearised(x, *constraint_parameters)
    if constraint.count == 1:
        worst = values[0] if values.ndim == 1 else values[..., 0]  # a number is quicker
        constraint_gradient = pullback(namespace(x).ones_like(values))
    else:
        worst, index = largest(values, resolution(x) * problem.constants.constraint_bound)
        constraint_gradient = constraint.gradient_of(x, index, *constraint_parameters)

    def constraint_at(y: Array) -> Array:
        return namespace(y).max(constraint.values(y, *constraint_parameters), axis=-1)

    return Feedback(loss_gradient, worst, constraint_gradient, loss, values, pullback, pushforward, constraint_at)


OnBrokenBound = Literal["raise", "warn"]
"""What to do when a gradient or a constraint exceeds what was declared."""

BOUNDED = ("loss_gradient", "constraint_gradient", "constraint")
"""What has a declared bound, in the order in which `Limits.within` answers."""


class Bounded(Protocol):
    """What a learner says about the feedback it can use."""

    @property
    def loss_gradient_bound(self) -> Hyper | None:
        """The bound on ∇f_t that it was made for."""

    @property
    def constraint_gradient_bound(self) -> Hyper | None:
        """The bound on ∇g_t that it was made for."""

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        """Raise if what it reads beyond the common part is missing or unusable."""


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

    @classmethod
    def declared(cls, learner: Bounded, x: Array, problem: Problem | None = None) -> Limits:
        """The bounds the learner was made for and, where there is a problem, its facts."""
        loss_gradient, constraint_gradient = learner.loss_gradient_bound, learner.constraint_gradient_bound
        if problem is None:
            return cls.around(x, loss_gradient, constraint_gradient)

        def smaller(bound: float, made_for: Hyper | None) -> Hyper:
            return bound if made_for is None else np.minimum(bound, made_for)

        facts = problem.constants
        return cls.around(
            x,
            smaller(facts.loss_gradient_bound, loss_gradient),
            smaller(facts.constraint_gradient_bound, constraint_gradient),
            facts.constraint_bound,
        )

    def within(self, feedback: Feedback) -> tuple[Array, Array, Array]:
        """Per learner, for each of BOUNDED: is it within its limit? A NaN is never ≤ anything."""
        return (
            square(feedback.loss_gradient) <= self.loss_gradient_square,
            square(feedback.constraint_gradient) <= self.constraint_gradient_square,
            namespace(feedback.loss_gradient).abs(feedback.constraint) <= self.constraint,
        )

    def acceptable(self, feedback: Feedback) -> Array:
        """Per learner: everything finite and within the limits; shape (...,)."""
        loss_gradient, constraint_gradient, constraint = self.within(feedback)
        good = loss_gradient & constraint_gradient & constraint
        xp = namespace(feedback.loss_gradient)
        if feedback.hint is not None:
            good = good & xp.all(xp.isfinite(feedback.hint), axis=-1)
        return good if feedback.loss is None else good & xp.isfinite(feedback.loss)

    def faults(self, feedback: Feedback, t: int | None) -> list[NonFiniteError] | list[BrokenBoundError]:
        """What is wrong with this round, in words: the first number that is not finite, or else every broken bound."""
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
    """What stands between feedback and the `update` of a learner, made once for all its rounds.

    Parameters
    ----------
    learner : Learner
        Whose feedback it is.
    x : array
        A decision of it: its shape, dtype and library are those that feedback must have.
    problem : Problem, optional
        Its constants bound the feedback too.
    on_broken_bound : {"raise", "warn"}
        Whether feedback above a declared bound is refused, or taken with a BrokenBoundWarning.
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

    def _beyond_doubt(self, feedback: Feedback) -> Feedback | None:
        """Feedback for one NumPy learner, if it passes: the same checks, without the words or the libraries.

        Python's floats, which services give, become numbers of the state's dtype. What does not pass is looked at
        again, by what knows all cases.
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
            (type(constraint) is kind or _is_single(constraint, dtype))
            and (loss is None or ((type(loss) is kind or _is_single(loss, dtype)) and math.isfinite(loss)))
            and loss_gradient.dot(loss_gradient) <= first
            and constraint_gradient.dot(constraint_gradient) <= second
            and abs(float(constraint)) <= third
        ):
            return feedback
        return None

    def accept(self, feedback: Feedback, t: int | None) -> Feedback:
        """The feedback of round t, ready for `update`: it matches the state, is finite and within the limits.

        Called by what users call: warnings point at their line. To be called with NumPy's own warnings switched off
        (`numpy.errstate`): what is not finite is refused in words.
        """
        x = self._x
        if self._is_plain:
            plain = self._beyond_doubt(feedback)
            if plain is not None:
                self._learner.require(plain, x, t, self._on_broken_bound)
                return plain
        require_match(feedback, x, t)
        self._learner.require(feedback, x, t, self._on_broken_bound)
        feedback = _as_arrays(feedback, x)
        good = self.limits.acceptable(feedback)
        if not (good if good.ndim == 0 else namespace(x).all(good)):
            raise_or_warn(self.faults(feedback, t), self._on_broken_bound, stacklevel=4)
        return feedback

    def faults(self, feedback: Feedback, t: int | None) -> list[NonFiniteError] | list[BrokenBoundError]:
        """What is wrong with feedback that is not acceptable, in words."""
        return self.limits.faults(feedback, t)


def _is_single(number: Array, dtype: np.dtype[Any]) -> bool:
    """Whether it is an array of NumPy that holds one number of this dtype."""
    return type(number) is np.ndarray and number.shape == () and number.dtype is dtype


def require_known(on_broken_bound: str) -> None:
    """Refuse what is not one of the two."""
    if on_broken_bound not in ("raise", "warn"):
        raise InputError("on_broken_bound", f"{on_broken_bound!r} is not known", "Choose 'raise' or 'warn'")


def raise_or_warn(faults: Iterable[InputError], on_broken_bound: OnBrokenBound, stacklevel: int = 5) -> None:
    """Raise the first fault; with on_broken_bound="warn", warn of broken bounds instead.

    The warning points at the caller of `tell`, where a learner's `require` calls this; nearer callers say how near.
    """
    for fault in faults:
        if not isinstance(fault, BrokenBoundError) or on_broken_bound != "warn":
            raise fault
        warnings.warn(str(fault), BrokenBoundWarning, stacklevel=stacklevel)


def require_match(feedback: Feedback, x: Array, t: int | None) -> None:
    """Shapes and dtypes of the feedback must be those of the state: nothing is converted in silence."""
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
    """Python numbers, which stand for themselves where there is one learner, as arrays of x's library."""
    single = {
        name: namespace(x).asarray(value, dtype=x.dtype)
        for name, value in (("constraint", feedback.constraint), ("loss", feedback.loss))
        if type(value) in (int, float)
    }
    return feedback._replace(**single) if single else feedback


def _place(bad: NDArray[np.bool_]) -> str:
    """Where in a batch the first bad value stands."""
    return f" at index {tuple(int(i) for i in np.argwhere(bad)[0])}" if bad.ndim else ""
