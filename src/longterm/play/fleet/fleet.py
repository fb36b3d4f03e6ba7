"""Fleets: many independent learners in one object, each with its own round and hyper-parameters.

All learners follow the same rule. A request reaches a few rows at a time: `ask` reads their decisions and `tell`
updates only them. A row is a campaign, a device or a user.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._base import validate
from longterm._base.arrays import SHORT_ROW
from longterm._base.display import TextTable
from longterm._base.states import map_states, per_row
from longterm.errors import BrokenBoundError, InputError, NonFiniteError, SnapshotError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.feedback_check import FeedbackCheck, OnBrokenBound, require_known
from longterm.learners.interface.learner import Learner, require_learner
from longterm.play.fleet.numpy_rows import NumpyRows
from longterm.play.fleet.stored import StoredFleet
from longterm.play.live_learner.live_state import require_near
from longterm.storage.engine import Durability
from longterm.storage.one_thread import OneThread
from longterm.storage.packing import require_sound, restored_state, state_arrays
from longterm.storage.snapshot import Snapshot, read_snapshot, write_snapshot
from longterm.storage.specification import difference, specification

if TYPE_CHECKING:
    from longterm.play.fleet.jax_rows import JaxRows

KIND, VERSION = "fleet", 1
TOTALS = ("signed_violation", "hard_violation")

Rows = ArrayLike | None
"""A selection of learners: their numbers, a mask over all of them, or None for all."""


class Fleet:
    """Many learners of one kind, each with its own round and hyper-parameters.

    One thread at a time may call it; a second thread gets an InUseError. A call that raises changes nothing.

    Parameters
    ----------
    learner : Learner
        The rule. Hyper-parameters that are arrays must hold one value per learner.
    size : int
        The number of learners.
    dtype : dtype, optional
        The dtype of their decisions; float64 by default.
    on_broken_bound : {"raise", "warn"}
        "raise" refuses feedback above a declared bound; "warn" takes it with a BrokenBoundWarning.
    engine : {"numpy", "jax"}
        The library that holds and updates the learners; "jax" needs the extra `jax`.
    sharding : jax.sharding.NamedSharding, optional
        Engine "jax": divide the learners among devices, along the first axis of their states. The size must be
        divisible by the number of parts. Default: all learners on JAX's first device.

    Raises
    ------
    InputError
        If an argument cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import AOGD, Feedback, Fleet
    >>> from longterm.problems.sets import Ball
    >>> from longterm.theory.schedules import ConvexSchedule
    >>> fleet = Fleet(AOGD(Ball(2), ConvexSchedule(2.0, 1.0, beta=np.array([0.5, 0.6, 0.7]))), size=3)
    >>> fleet.tell(Feedback(np.array([[1.0, 0.0]]), np.array([0.2]), np.array([[0.0, 1.0]])), rows=[1])
    >>> fleet.rounds, fleet.ask(rows=[1])
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
        sharding: Any = None,
    ) -> None:
        require_learner(learner)
        self._guard = OneThread("fleet")
        self.size = validate.dimension("size", size)
        if learner.batch_shape not in ((), (self.size,)):
            what = f"its hyper-parameters have shape {learner.batch_shape}"
            raise InputError("learner", what, f"Give single numbers, or arrays of shape ({self.size},)")
        if engine not in ("numpy", "jax"):
            raise InputError("engine", f"{engine!r} is not known", "Choose 'numpy' or 'jax'")
        if engine == "jax" and learner.reads_pullback:
            what = f"{type(learner).__name__} calls a function (pullback, constraint_at), which cannot be compiled"
            raise InputError("engine", what, "Use engine='numpy' for this fleet")
        if sharding is not None and engine != "jax":
            raise InputError("sharding", "works with the JAX engine only", "Give engine='jax' as well")
        require_known(on_broken_bound)
        self._on_broken_bound = on_broken_bound
        self.learner = learner.with_hyper_arrays(
            {path: np.broadcast_to(a, (self.size,)) for path, a in learner.hyper_arrays().items()}
        )
        one = self._learner_of(np.array([0]))
        self._template = np.zeros_like(one.ask(one.init((1,), dtype=dtype))[0])  # the shape and dtype of one decision
        self._engine = engine
        self._device: JaxRows | None = None
        """The rows if the engine is "jax"."""
        self._rows: NumpyRows | JaxRows
        if engine == "jax":
            from longterm.play.fleet.jax_rows import JaxRows

            self._rows = self._device = JaxRows(self.learner, self.size, dtype, TOTALS, sharding)
        else:
            state = learner.init((self.size,), dtype=dtype)
            self._use(map_states(lambda field: np.array(per_row(np, field, self.size)), state))

    def _use(self, state: Any, totals: dict[str, NDArray[np.float64]] | None = None) -> None:
        """Set the states and the sums of all learners, 0 by default."""
        totals = {name: np.zeros(self.size) for name in TOTALS} if totals is None else totals
        if self._device is None:
            self._rows = NumpyRows(self.learner, state, totals)
        else:
            self._device.use(state, totals)

    def __repr__(self) -> str:
        played = self.rounds - 1
        told = f"{played.min()}–{played.max()}" if played.min() != played.max() else str(played.min())
        return (
            f"Fleet({self.size:,} × {type(self.learner).__name__}, d={len(self._template)}, "
            f"rounds told to each={told}, engine={self._engine!r})"
        )

    def _repr_html_(self) -> str:
        played = self.rounds - 1
        rows = [
            ("learners", f"{self.size:,}"),
            ("dimension", str(len(self._template))),
            ("rounds told, fewest", f"{played.min():,}"),
            ("rounds told, most", f"{played.max():,}"),
            ("engine", self._engine),
        ]
        return TextTable(("", ""), rows, title=f"Fleet: {type(self.learner).__name__}").to_html()

    @property
    def state(self) -> Any:
        """A read-only view of the learners' states, one row each, as NumPy arrays. Later calls change it."""
        self._read_outcomes()
        return map_states(_read_only, self._rows.state)

    @property
    def rounds(self) -> NDArray[np.int64]:
        """The round that each learner is about to play, counted from 1."""
        return np.asarray(self.state.round)

    @property
    def signed_violation(self) -> NDArray[np.float64]:
        """Σ g(x_t) so far, per learner."""
        self._read_outcomes()
        return np.asarray(self._rows.totals["signed_violation"])

    @property
    def hard_violation(self) -> NDArray[np.float64]:
        """Σ [g(x_t)]₊ so far, per learner."""
        self._read_outcomes()
        return np.asarray(self._rows.totals["hard_violation"])

    @overload
    def ask(self, rows: Rows = None, *, on_device: Literal[False] = False) -> NDArray[Any]: ...

    @overload
    def ask(self, rows: Rows = None, *, on_device: Literal[True]) -> Any: ...

    def ask(self, rows: Rows = None, *, on_device: bool = False) -> Any:
        """Return a copy of the decisions of these learners, one row each, in the order given.

        Parameters
        ----------
        rows : array_like, optional
            Their numbers from 0, or a mask over all of them; all of them by default.
        on_device : bool
            Engine "jax": return a JAX array and copy nothing to the host. Numbers in a JAX array are then not checked;
            those out of range are clipped.

        Returns
        -------
        array
            One decision in each row.
        """
        with self._guard():
            self._raise_refused()
            if on_device:
                if self._device is None:
                    raise InputError(
                        "on_device", "needs the JAX engine, and this fleet uses NumPy", "Make it with engine='jax'"
                    )
                return self._device.decisions_on_device(rows if _is_jax(rows) else self.numbers(rows))
            return self._rows.decisions(self.numbers(rows))

    def tell(self, feedback: Feedback, rows: Rows = None, *, wait: bool = True) -> None:
        """Play one round of each of these learners.

        If one row is refused (NaN, a wrong shape, a broken bound), no learner changes.

        Parameters
        ----------
        feedback : Feedback
            Row i belongs to the i-th of them. Engine "jax": feedback in arrays of JAX, or of a library that hands them
            over by DLPack, is checked and applied on the device.
        rows : array_like, optional
            Their numbers from 0, or a mask over all of them; all of them by default.
        wait : bool
            False, for feedback on the device: return before the outcome of the check is known. A refused call changes
            nothing, and `check`, `ask`, `save` or a later `tell` raises its error. Do not donate the arrays of the
            feedback to a JAX function before then.

        Raises
        ------
        InputError
            If the feedback cannot be used, or `rows` has a number out of range or twice.
        """
        with self._guard():
            if not wait and self._on_broken_bound != "raise":
                raise InputError(
                    "wait",
                    "is False, but a warning about a broken bound must come before the update",
                    "Use wait=True, or on_broken_bound='raise'",
                )
            self._raise_refused(wait=wait)
            if self._device is not None and not isinstance(feedback.loss_gradient, np.ndarray):
                if self._send(self._device, feedback, rows, wait):
                    return
                feedback = _on_host(feedback)  # to explain the refusal, or to warn and go on
            numbers = self.numbers(rows)
            with np.errstate(all="ignore"):  # non-finite numbers are refused with an error
                self._rows.tell(numbers, feedback, lambda: self._feedback_check(numbers))

    def check(self) -> None:
        """Raise the error of a refused call of `tell` with ``wait=False``. Later calls were applied without it.

        Raises
        ------
        InputError
            As `tell` would have raised.
        """
        with self._guard():
            self._raise_refused()

    def _read_outcomes(self) -> None:
        """Wait for the outcome of calls that did not wait."""
        if self._device is not None:
            self._device.read_outcomes()

    def _raise_refused(self, *, wait: bool = True) -> None:
        """Raise the error of the oldest refused call. Without `wait`, consider known outcomes only."""
        if self._device is None:
            return
        if wait:
            self._device.read_outcomes()
        if self._device.refused:
            call = self._device.refused.pop(0)
            with np.errstate(all="ignore"):
                self._feedback_check(self.numbers(call.numbers)).accept(_on_host(call.feedback), None)
            raise InputError("feedback", "a state would not be finite", "Check the feedback of this call")

    def _feedback_check(self, numbers: NDArray[np.int64] | None) -> RowsCheck:
        x = np.broadcast_to(self._template, (self.size if numbers is None else len(numbers), *self._template.shape))
        check = RowsCheck(self._learner_of(numbers), x, on_broken_bound=self._on_broken_bound)
        check.rounds, check.numbers = self.rounds, numbers
        return check

    def _send(self, device: JaxRows, feedback: Feedback, rows: Rows, wait: bool) -> bool:
        """Apply feedback on the device. Return False if it is not there, has wrong shapes, or was refused."""
        if not device.is_on_device(feedback) or self.learner.has_requirements:
            return False
        numbers: Any = rows if _is_jax(rows) else self.numbers(rows)
        count = self.size if numbers is None else numbers.shape[0]
        shape = (count, *self._template.shape)
        for value, expected in (
            (feedback.loss_gradient, shape),
            (feedback.constraint_gradient, shape),
            (feedback.constraint, (count,)),
        ):
            if getattr(value, "shape", None) != expected or not self._is_dtype(value.dtype):
                return False
        device.send(feedback, numbers)
        if not wait:
            return True
        device.read_outcomes()
        is_refused = bool(device.refused)
        device.refused.clear()
        return not is_refused

    def _is_dtype(self, dtype: Any) -> bool:
        """Return whether a dtype of any library is that of the decisions."""
        return dtype is self._template.dtype or str(dtype).rpartition(".")[2] == self._template.dtype.name

    @classmethod
    def open(
        cls,
        url: str | PathLike[str],
        learner: Learner[Any],
        size: int,
        *,
        name: str = "fleet",
        durability: Durability = "commit",
        dtype: Any = None,
        on_broken_bound: OnBrokenBound = "raise",
    ) -> StoredFleet:
        """Return the fleet with this name in a database, or create it there. Processes that open it share it.

        Parameters
        ----------
        url : path or str
            A file for SQLite, or a URL ``postgresql://…`` (extra `postgres`).
        learner, size, dtype, on_broken_bound
            As for a new fleet; the same for a stored one.
        name : str
            Its name in the database.
        durability : {"commit", "relaxed"}
            As for `LiveLearner.open`.

        Raises
        ------
        DatabaseError
            If the database cannot be used, or holds another object with this name.
        """
        fleet = cls(learner, size, dtype=dtype, on_broken_bound=on_broken_bound)
        assert isinstance(fleet._rows, NumpyRows)
        return StoredFleet(fleet, fleet._rows, url, name, durability)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the whole fleet to a file atomically. A crash leaves the old file or the new one.

        Parameters
        ----------
        path : path
            The file.
        """
        metadata = {"learner": specification(self.learner), "size": self.size, "dtype": self._template.dtype.name}
        with self._guard():
            self._raise_refused()
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
        sharding: Any = None,
    ) -> Self:
        """Return the fleet that was saved. On the engine it was saved from it continues bit for bit.

        Parameters
        ----------
        path : path
            A file that `save` wrote.
        learner : Learner
            With the hyper-parameters of the saved one.
        on_broken_bound : {"raise", "warn"}
            As for a new fleet.
        engine : {"numpy", "jax"}
            As for a new fleet.
        sharding : jax.sharding.NamedSharding, optional
            As for a new fleet. It may be another one than that of the saved fleet.

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
        stored = read_snapshot(path, KIND, VERSION)
        try:
            size, dtype = stored.metadata["size"], np.dtype(stored.metadata["dtype"])
            _require_totals(stored.arrays, size)
            fleet = cls(learner, size, dtype=dtype, on_broken_bound=on_broken_bound, engine=engine, sharding=sharding)
            what_differs = difference(stored.metadata["learner"], specification(fleet.learner))
            if what_differs is not None:
                raise SnapshotError(
                    path, "another definition", what_differs, "Make the learner with the saved hyper-parameters"
                )
            state = restored_state(fleet.state, {name: np.array(array) for name, array in stored.arrays.items()})
            require_sound(fleet.state, state)
            require_near(fleet.learner, fleet.learner.ask(state))
            fleet._use(state, {name: np.array(stored.arrays[name]) for name in TOTALS})
        except (KeyError, ValueError, TypeError, ArithmeticError) as error:
            if isinstance(error, InputError) and error.argument == "sharding":
                raise
            raise SnapshotError(path, "another learner", str(error), "Load it with the learner that wrote it") from None
        return fleet

    def numbers(self, rows: Rows) -> NDArray[np.int64] | None:
        """Return a selection as distinct numbers in range; None for all."""
        if rows is None:
            return None
        given = np.asarray(rows)
        if given.size == 0:
            given = given.astype(np.int64)
        if given.dtype == bool and given.shape == (self.size,):
            return np.flatnonzero(given)
        if given.ndim != 1 or given.dtype.kind not in "iu":
            what = f"has shape {given.shape} and dtype {given.dtype}"
            raise InputError("rows", what, f"Give a list of learner numbers, or a mask of {self.size} booleans")
        if given.size and (given.min() < 0 or given.max() >= self.size):
            raise InputError("rows", f"names learners outside 0 … {self.size - 1}", "Give numbers from 0")
        if _has_duplicates(given, self.size):
            raise InputError("rows", "names a learner twice", "Tell its rounds one after another, in two calls")
        return given.astype(np.int64, copy=False)

    def _learner_of(self, numbers: NDArray[np.int64] | None) -> Learner[Any]:
        """Return the learner with the hyper-parameters of these rows."""
        if numbers is None:
            return self.learner
        arrays = self.learner.hyper_arrays()
        return self.learner.with_hyper_arrays({path: array[numbers] for path, array in arrays.items()})


class RowsCheck(FeedbackCheck):
    """A feedback check of several learners that names the first one whose row is refused."""

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
    """Raise a ValueError unless there are totals for each learner, which proves the size before memory is allocated."""
    for name in TOTALS:
        total: Any = arrays.get(name)
        fits = isinstance(total, np.ndarray) and total.shape == (size,) and total.dtype == np.float64
        if type(size) is not int or not fits or np.isnan(total).any():
            raise ValueError(f"{name} is not a number for each of {size!r:.40} learners")


def _on_host(feedback: Feedback) -> Feedback:
    """Return feedback with NumPy arrays. Functions stay as they are."""
    numbers = {n: v for n, v in feedback._asdict().items() if not (v is None or callable(v))}
    arrays: dict[str, Any] = {n: np.asarray(v) for n, v in numbers.items()}
    return feedback._replace(**arrays)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _is_jax(rows: Rows) -> bool:
    """Return whether a selection can stay on the device: None, or a JAX array of numbers."""
    return rows is None or (type(rows).__module__.startswith("jax") and rows.dtype.kind in "iu")  # type: ignore[union-attr]


def _has_duplicates(numbers: NDArray[np.int64], size: int) -> bool:
    """Return whether a number occurs twice, by a set, a sort or a table, whichever is fastest for the count."""
    if len(numbers) <= SHORT_ROW:
        return len(set(numbers.tolist())) < len(numbers)
    if len(numbers) < size // 64:
        ordered = np.sort(numbers)
        return bool(np.any(ordered[1:] == ordered[:-1]))
    seen = np.zeros(size, dtype=bool)
    seen[numbers] = True
    return bool(np.count_nonzero(seen) < len(numbers))
