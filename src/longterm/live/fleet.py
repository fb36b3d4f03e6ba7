"""A fleet: very many independent learners as one object, each with its own round and hyper-parameters.

All of them follow the same rule; a request reaches a few of them at a time. `ask` reads the decisions of those
few, `tell` updates them and no others, at the cost of the few. A campaign, a device or a user is a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm import _validate as validate
from longterm._arrays import SHORT_ROW
from longterm.errors import BrokenBoundError, InputError, NonFiniteError, SnapshotError
from longterm.learners.base import Learner, require_learner
from longterm.learners.feedback import Feedback
from longterm.learners.feedback_check import FeedbackCheck, OnBrokenBound, require_known
from longterm.live.fleet_numpy import NumpyRows
from longterm.live.snapshots import require_near
from longterm.storage.one_thread import OneThread
from longterm.storage.snapshot import (
    Snapshot,
    read_snapshot,
    require_sound,
    restored_state,
    state_arrays,
    write_snapshot,
)
from longterm.storage.specification import difference, specification

if TYPE_CHECKING:
    from longterm.live.fleet_jax import JaxRows

KIND, VERSION = "fleet", 1
TOTALS = ("signed_violation", "hard_violation")

Who = ArrayLike | None
"""Which learners: their numbers, a mask over all of them, or None for all."""


class Fleet:
    """`size` learners of one kind, each with its own round and hyper-parameters.

    One thread at a time may call it; a second one is refused (InUseError). A call that raises changes nothing.

    Parameters
    ----------
    learner : Learner
        The rule. Hyper-parameters that are arrays must hold one value per learner.
    size : int
        How many learners.
    dtype : dtype, optional
        The dtype of their decisions; float64 by default.
    on_broken_bound : {"raise", "warn"}
        "raise" refuses feedback above a declared bound; "warn" takes it with a BrokenBoundWarning.
    engine : {"numpy", "jax"}
        Where the learners are kept and updated; "jax" needs the extra `jax`. With "numpy", large fleets copy and check
        their rows in compiled code where the extra `linear` is installed: faster, the same bits. The first of them
        in a process takes up to two seconds longer to make.

    Raises
    ------
    InputError
        If an argument cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import AOGD, Feedback, Fleet
    >>> from longterm.theory.schedules import ConvexSchedule
    >>> from longterm.sets import Ball
    >>> fleet = Fleet(AOGD(Ball(2), ConvexSchedule(2.0, 1.0, beta=np.array([0.5, 0.6, 0.7]))), size=3)
    >>> fleet.tell(Feedback(np.array([[1.0, 0.0]]), np.array([0.2]), np.array([[0.0, 1.0]])), who=[1])
    >>> fleet.rounds, fleet.ask(who=[1])
    (array([1, 2, 1]), array([[-1.,  0.]]))
    """

    def __init__(
        self,
        learner: Learner[Any],
        size: int,
        *,
        dtype: Any = None,
        on_broken_bound: OnBrokenBound = "raise",
        engine: Literal["numpy", "jax"] = "numpy",
    ) -> None:
        require_learner(learner)
        self._turn = OneThread("fleet")
        self.size = validate.dimension("size", size)
        if learner.batch_shape not in ((), (self.size,)):
            what = f"its hyper-parameters have shape {learner.batch_shape}"
            raise InputError("learner", what, f"Give single numbers, or arrays of shape ({self.size},)")
        if engine not in ("numpy", "jax"):
            raise InputError("engine", f"{engine!r} is not known", "Choose 'numpy' or 'jax'")
        if engine == "jax" and learner.reads_pullback:
            what = f"{type(learner).__name__} calls a function (pullback, constraint_at), which cannot be compiled"
            raise InputError("engine", what, "Use engine='numpy' for this fleet")
        require_known(on_broken_bound)
        self._on_broken_bound = on_broken_bound
        self.learner = learner.with_hyper_arrays(
            {path: np.broadcast_to(a, (self.size,)) for path, a in learner.hyper_arrays().items()}
        )
        single = learner.init((self.size,), dtype=dtype)
        state = type(single)(*(self._per_row(np.asarray(field)) for field in single))
        self._template = np.zeros_like(learner.ask(state)[0])  # the shape and dtype of one decision
        self._engine = engine
        self._device: JaxRows | None = None
        """The rows, if they are on a device."""
        self._rows = self._rows_of(state, {name: np.zeros(self.size) for name in TOTALS})

    def _rows_of(self, state: Any, totals: dict[str, NDArray[np.float64]]) -> NumpyRows | JaxRows:
        if self._engine == "numpy":
            return NumpyRows(self.learner, state, totals)
        from longterm.live.fleet_jax import JaxRows

        self._device = JaxRows(self.learner, state, totals)
        return self._device

    def _per_row(self, field: NDArray[Any]) -> NDArray[Any]:
        shape = field.shape if field.shape[:1] == (self.size,) else (self.size, *field.shape)
        return np.array(np.broadcast_to(field, shape))

    def __repr__(self) -> str:
        played = self.rounds - 1
        told = f"{played.min()}–{played.max()}" if played.min() != played.max() else str(played.min())
        return (
            f"Fleet({self.size:,} × {type(self.learner).__name__}, d={len(self._template)}, "
            f"rounds told to each={told}, engine={self._engine!r})"
        )

    @property
    def state(self) -> Any:
        """The learners' states, one row each, as NumPy arrays: a view that cannot be written to and changes later."""
        self._settle()
        return type(self._rows.state)(*(_read_only(field) for field in self._rows.state))

    @property
    def rounds(self) -> NDArray[np.int64]:
        """The round that each learner is about to play, counted from 1."""
        return np.asarray(self.state.round)

    @property
    def signed_violation(self) -> NDArray[np.float64]:
        """Σ g(x_t) so far, per learner."""
        self._settle()
        return np.asarray(self._rows.totals["signed_violation"])

    @property
    def hard_violation(self) -> NDArray[np.float64]:
        """Σ [g(x_t)]₊ so far, per learner."""
        self._settle()
        return np.asarray(self._rows.totals["hard_violation"])

    def ask(self, who: Who = None, *, on_device: bool = False) -> Any:
        """The decisions of these learners, one row each, in the order asked for.

        Parameters
        ----------
        who : array_like, optional
            Their numbers from 0, or a mask over all of them; all of them by default.
        on_device : bool
            Engine "jax": give an array of JAX, where the fleet is, with no copy to the host. Numbers that are an
            array of JAX are then not checked: those out of range are taken for the last learner's.

        Returns
        -------
        array
            One decision in each row, copied.
        """
        with self._turn():
            self._require_taken()
            if on_device:
                if self._device is None:
                    raise InputError("on_device", "this fleet is kept by NumPy", "Make it with engine='jax'")
                there = who is None or type(who).__module__.startswith("jax")
                return self._device.decisions_on_device(who if there else self._numbers(who))
            return self._rows.decisions(self._numbers(who))

    def check(self) -> None:
        """Raise if a call of `tell` without `wait` was refused; the fleet is then as if it had not been made.

        Raises
        ------
        InputError
            In the words that `tell` would have had. Calls after the refused one were taken.
        """
        with self._turn():
            self._require_taken()

    def _settle(self) -> None:
        """Read the answers of calls that did not wait."""
        if self._device is not None:
            self._device.settle()

    def _require_taken(self, *, wait: bool = True) -> None:
        """Raise if a call that did not wait was refused, as far as that is known; wait for all answers, or go on."""
        if self._device is None:
            return
        if wait:
            self._device.settle()
        else:
            self._device.make_room()
        if self._device.refused:
            feedback, who = self._device.refused.pop(0)
            with np.errstate(all="ignore"):
                self._rows_check(self._numbers(who)).accept(_on_host(feedback), None)
            raise InputError("feedback", "a state would not be finite", "Check the feedback of this call")

    def _rows_check(self, numbers: NDArray[np.int64] | None) -> RowsCheck:
        x = np.broadcast_to(self._template, (self.size if numbers is None else len(numbers), *self._template.shape))
        check = RowsCheck(self._of(numbers), x, on_broken_bound=self._on_broken_bound)
        check.rounds, check.numbers = self.rounds, numbers
        return check

    def tell(self, feedback: Feedback, who: Who = None, *, wait: bool = True) -> None:
        """One round for each of these learners.

        All or none: if one row is refused (NaN, a wrong shape, a broken bound), no learner changes.

        Parameters
        ----------
        feedback : Feedback
            Row i belongs to the i-th of them. Engine "jax": given in arrays of JAX, or of a library that hands them
            over by DLPack, it stays where it is, and so do the checks; only a refusal is looked at on the host.
        who : array_like, optional
            Their numbers from 0, or a mask over all of them; all of them by default.
        wait : bool
            False, for feedback on the device: do not wait for the answer whether it was sound. A call that was refused
            changed nothing, and `check`, `ask`, `save` or one of the next calls raises. Its arrays are kept until then,
            and the device may be given some such calls at once: do not donate them to a function of JAX.

        Raises
        ------
        InputError
            If the feedback cannot be used, or `who` names a learner that is none, or one twice.
        """
        with self._turn():
            if not wait and self._on_broken_bound != "raise":
                raise InputError("wait", "a warning comes before the update", "Wait, or refuse broken bounds")
            self._require_taken(wait=wait)
            if self._device is not None and not isinstance(feedback.loss_gradient, np.ndarray):
                if self._told_on_device(self._device, feedback, who, wait):
                    return
                feedback = _on_host(feedback)  # to find the words, or to warn and go on
            numbers = self._numbers(who)
            with np.errstate(all="ignore"):  # what is not finite is refused, in words
                self._rows.tell(numbers, feedback, lambda: self._rows_check(numbers))

    def _told_on_device(self, device: JaxRows, feedback: Feedback, who: Who, wait: bool) -> bool:
        """Whether this call was about arrays on the device, with the right shapes, and every row was sound."""
        if not device.is_near(feedback) or type(self.learner).require is not Learner.require:
            return False
        there = who is None or (type(who).__module__.startswith("jax") and who.dtype.kind in "iu")  # type: ignore[union-attr]
        numbers = who if there else self._numbers(who)
        count = self.size if numbers is None else numbers.shape[0]  # type: ignore[union-attr]
        shape = (count, *self._template.shape)
        for value, wanted in (
            (feedback.loss_gradient, shape),
            (feedback.constraint_gradient, shape),
            (feedback.constraint, (count,)),
        ):
            if getattr(value, "shape", None) != wanted or not self._is_dtype(value.dtype):
                return False
        device.send(feedback, numbers)
        if not wait:
            return True
        device.settle()
        refused = bool(device.refused)
        device.refused.clear()
        return not refused

    def _is_dtype(self, dtype: Any) -> bool:
        """Whether an array of any library has the dtype of the decisions."""
        return dtype is self._template.dtype or str(dtype).rpartition(".")[2] == self._template.dtype.name

    def save(self, path: str | PathLike[str]) -> None:
        """Write the whole fleet to a file, atomically: a crash leaves the old file or the new one.

        Parameters
        ----------
        path : path
            The file.
        """
        metadata = {"learner": specification(self.learner), "size": self.size, "dtype": self._template.dtype.name}
        with self._turn():
            self._require_taken()
            arrays = state_arrays(self.state) | self._rows.totals
            write_snapshot(Path(path), Snapshot(KIND, VERSION, metadata, arrays))

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        learner: Learner[Any],
        *,
        on_broken_bound: OnBrokenBound = "raise",
        engine: Literal["numpy", "jax"] = "numpy",
    ) -> Self:
        """The fleet that was saved, on either engine; it continues bit for bit on the one it was saved from.

        Parameters
        ----------
        path : path
            What `save` wrote.
        learner : Learner
            Made as the saved one was.
        on_broken_bound : {"raise", "warn"}
            As for a new fleet.
        engine : {"numpy", "jax"}
            As for a new fleet.

        Returns
        -------
        Fleet
            The fleet, ready to go on.

        Raises
        ------
        SnapshotError
            If the file is not whole, not of a fleet, newer than this library, or of another learner.
        """
        path = Path(path)
        stored, _ = read_snapshot(path, KIND, VERSION)
        try:
            size, dtype = stored.metadata["size"], np.dtype(stored.metadata["dtype"])
            _require_totals(stored.arrays, size)
            fleet = cls(learner, size, dtype=dtype, on_broken_bound=on_broken_bound, engine=engine)
            what_differs = difference(stored.metadata["learner"], specification(fleet.learner))
            if what_differs is not None:
                raise SnapshotError(
                    path, "another learner", what_differs, "Make the learner with the saved hyper-parameters"
                )
            state = restored_state(fleet.state, {name: np.array(array) for name, array in stored.arrays.items()})
            require_sound(fleet.state, state)
            require_near(fleet.learner, fleet.learner.ask(state))
            fleet._rows = fleet._rows_of(state, {name: np.array(stored.arrays[name]) for name in TOTALS})
        except (KeyError, ValueError, TypeError, ArithmeticError) as error:
            raise SnapshotError(path, "another learner", str(error), "Load it with the learner it is of") from None
        return fleet

    def _numbers(self, who: Who) -> NDArray[np.int64] | None:
        """Which rows, as distinct numbers in range; None for all."""
        if who is None:
            return None
        given = np.asarray(who)
        if given.size == 0:
            given = given.astype(np.int64)
        if given.dtype == bool and given.shape == (self.size,):
            return np.flatnonzero(given)
        if given.ndim != 1 or given.dtype.kind not in "iu":
            what = f"has shape {given.shape} and dtype {given.dtype}"
            raise InputError("who", what, f"Give a list of learner numbers, or a mask of {self.size} booleans")
        least, most = _ends(given)
        if least < 0 or most >= self.size:
            raise InputError("who", f"names learners outside 0 … {self.size - 1}", "Number them from 0")
        if _names_twice(given, self.size):
            raise InputError("who", "names a learner twice", "Tell its rounds one after another, in two calls")
        return given.astype(np.int64, copy=False)

    def _of(self, numbers: NDArray[np.int64] | None) -> Learner[Any]:
        """The learner with the hyper-parameters of these rows."""
        if numbers is None:
            return self.learner
        arrays = self.learner.hyper_arrays()
        return self.learner.with_hyper_arrays({path: array[numbers] for path, array in arrays.items()})


class RowsCheck(FeedbackCheck):
    """The check of a few learners' feedback at once, which names the first learner whose row is refused."""

    rounds: NDArray[np.int64]
    numbers: NDArray[np.int64] | None

    def faults(self, feedback: Feedback, t: int | None) -> list[NonFiniteError] | list[BrokenBoundError]:
        with np.errstate(all="ignore"):
            row = int(np.argmin(np.asarray(self.limits.acceptable(feedback))))
        number = row if self.numbers is None else int(self.numbers[row])
        faults = super().faults(feedback, int(self.rounds[number]))
        for fault in faults:
            fault.args = (f"learner {number}: {fault}",)
        return faults


def _require_totals(arrays: Mapping[str, Any], size: Any) -> None:
    """ValueError unless there are totals for each learner: a size is believed if the file has the bytes."""
    for name in TOTALS:
        total: Any = arrays.get(name)
        fits = isinstance(total, np.ndarray) and total.shape == (size,) and total.dtype == np.float64
        if type(size) is not int or not fits or np.isnan(total).any():
            raise ValueError(f"{name} is not a number for each of {size!r:.40} learners")


def _on_host(feedback: Feedback) -> Feedback:
    """The same in NumPy arrays; functions as they are."""
    numbers = {n: v for n, v in feedback._asdict().items() if not (v is None or callable(v))}
    arrays: dict[str, Any] = {n: np.asarray(v) for n, v in numbers.items()}
    return feedback._replace(**arrays)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _ends(numbers: NDArray[np.int64]) -> tuple[int, int]:
    """The least and the largest: of a few, Python finds them sooner."""
    if len(numbers) > SHORT_ROW:
        return int(numbers.min()), int(numbers.max())
    few = numbers.tolist()
    return min(few, default=0), max(few, default=0)


def _names_twice(numbers: NDArray[np.int64], size: int) -> bool:
    """Whether a number appears more than once: a few are a set, more are sorted, many are ticked off a list of all."""
    if len(numbers) <= SHORT_ROW:
        return len(set(numbers.tolist())) < len(numbers)
    if len(numbers) < size // 64:
        ordered = np.sort(numbers)
        return bool(np.any(ordered[1:] == ordered[:-1]))
    named = np.zeros(size, dtype=bool)
    named[numbers] = True
    return bool(np.count_nonzero(named) < len(numbers))
