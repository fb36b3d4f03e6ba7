"""The rows of a fleet in JAX arrays. A round is one compiled call: gather, check, update, scatter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import Array
from longterm._base.extras import missing_extra
from longterm._base.states import per_row
from longterm.errors import InputError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.feedback_check import FeedbackCheck
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.limits import Limits

try:
    import jax
    from jax import numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec
except ImportError as error:
    raise missing_extra("a fleet with engine='jax' needs JAX", "jax") from error

MAX_UNREAD = 64
"""Calls of `send` whose outcome may stay unread on the device."""


class SentCall(NamedTuple):
    """A call of `send` whose outcome has not been read yet."""

    feedback: Feedback
    numbers: Any
    accepted: Array
    """A boolean on the device."""
    all_accepted: Array
    """The same for this call and all unread ones before it, so that one number is read for many calls."""


class JaxRows:
    """The rows of a fleet in JAX arrays.

    Parameters
    ----------
    learner : Learner
        With hyper-parameters for each row.
    size : int
        The number of rows.
    dtype : dtype, optional
        The dtype of the decisions.
    totals : sequence of str
        The names of the sums of each row.
    sharding : jax.sharding.NamedSharding, optional
        The devices that the rows are divided among.
    """

    def __init__(
        self, learner: Learner[Any], size: int, dtype: Any, totals: Sequence[str], sharding: Any = None
    ) -> None:
        self._learner = learner
        self._sharding: Any = None if sharding is None else require_sharding(sharding, size)

        def start() -> tuple[Any, dict[str, Array]]:
            state = learner.init((size,), xp=jnp, dtype=dtype)
            return jax.tree.map(lambda field: per_row(jnp, field, size), state), {n: jnp.zeros(size) for n in totals}

        with jax.enable_x64(True):
            self._state, self._totals = jax.jit(start, out_shardings=self._sharding)()
            x = np.zeros(1, dtype=learner.ask(self._state).dtype)
            self._hyper = {path: self._put(array) for path, array in learner.hyper_arrays().items()}
            self._limits = Limits(*(self._put(np.asarray(limit, x.dtype)) for limit in Limits.declared(learner, x)))
            self._true = jnp.asarray(True) if sharding is None else self._placed(np.asarray(True), is_whole=False)
        self._all_accepted = self._true
        kept = None if sharding is None else (sharding, sharding, None, None)
        compiled = partial(jax.jit, donate_argnums=(0, 1), out_shardings=kept)
        self._tell_all = compiled(partial(_tell_all, learner))
        self._tell_rows = compiled(partial(_tell_rows, learner, check=True))
        self._apply_rows = compiled(partial(_tell_rows, learner, check=False))
        self._sent: list[SentCall] = []
        self.refused: list[SentCall] = []
        """Refused calls that have not been reported yet."""

    def _put(self, array: Any) -> Any:
        """Return an array with a row for each learner, or a single number, on the devices."""
        if self._sharding is None or not np.ndim(array):
            return jnp.asarray(array)
        return jax.device_put(array, self._sharding)

    def use(self, state: Any, totals: dict[str, NDArray[np.float64]]) -> None:
        """Set all rows."""
        with jax.enable_x64(True):
            self._state, self._totals = jax.tree.map(self._put, (state, totals))

    @property
    def state(self) -> Any:
        """All rows, as NumPy arrays."""
        return jax.tree.map(np.asarray, self._state)

    @property
    def totals(self) -> dict[str, NDArray[np.float64]]:
        """The sums of each row, as NumPy arrays."""
        return {name: np.asarray(total) for name, total in self._totals.items()}

    def decisions(self, numbers: NDArray[np.int64] | None) -> NDArray[Any]:
        """Return a copy of the decisions of these rows."""
        return np.array(self.decisions_on_device(numbers))

    def decisions_on_device(self, numbers: Any) -> Any:
        """Return a copy of the decisions of these rows as a JAX array."""
        with jax.enable_x64(True):
            x = self._learner.ask(self._state)
            return jnp.copy(x) if numbers is None else x[jnp.asarray(numbers)]

    @staticmethod
    def is_on_device(feedback: Feedback) -> bool:
        """Return whether feedback is in arrays of JAX, or of a library that hands them over by DLPack."""
        gradient = feedback.loss_gradient
        return isinstance(gradient, jax.Array) or (
            hasattr(gradient, "__dlpack__") and not isinstance(gradient, np.ndarray)
        )

    def send(self, feedback: Feedback, numbers: Any) -> None:
        """Check and apply feedback on the device: all rows or none. `read_outcomes` finds what was refused."""
        if len(self._sent) >= MAX_UNREAD:
            self.read_outcomes(max(MAX_UNREAD // 2, 1))  # the device goes on with the others meanwhile
        with jax.enable_x64(True):
            place = _jax_array if self._sharding is None else partial(self._placed, is_whole=numbers is None)
            told = Feedback(*(None if value is None or callable(value) else place(value) for value in feedback))
            given = self._state, self._totals, self._all_accepted, self._hyper, self._limits, told
            made = self._tell_all(*given) if numbers is None else self._tell_rows(*given, place(numbers))
        self._state, self._totals, accepted, self._all_accepted = made
        self._sent.append(SentCall(feedback, numbers, accepted, self._all_accepted))

    def _placed(self, value: Any, *, is_whole: bool) -> Any:
        """Return rows of all learners divided as these are, and other rows on every device."""
        sharding = self._sharding if is_whole else NamedSharding(self._sharding.mesh, PartitionSpec())  # type: ignore[no-untyped-call]
        return jax.device_put(_jax_array(value), sharding)

    def read_outcomes(self, count: int | None = None) -> None:
        """Wait for the oldest calls that were sent, by default for all, and move the refused ones to `refused`."""
        read = self._sent[:count]
        if read and not np.asarray(read[-1].all_accepted):
            read = self._sent
            self.refused += [call for call in read if not np.asarray(call.accepted)]
            self._all_accepted = self._true
        self._sent = self._sent[len(read) :]

    def tell(
        self, numbers: NDArray[np.int64] | None, feedback: Feedback, make_check: Callable[[], FeedbackCheck]
    ) -> None:
        """Check feedback on the host, then apply it.

        Batches are padded to a power of two, so that few sizes are compiled. The padding has the number `size`, which
        belongs to no learner.
        """
        feedback = make_check().accept(feedback, None)
        size = len(self._state.round)
        chosen = np.arange(size) if numbers is None else numbers
        missing = (1 << max(len(chosen) - 1, 0).bit_length()) - len(chosen)

        def padded(value: Any) -> Any:
            if value is None or callable(value):
                return None
            return np.concatenate([value, np.zeros((missing, *value.shape[1:]), value.dtype)])

        with jax.enable_x64(True):
            self._state, self._totals, *_ = self._apply_rows(
                self._state,
                self._totals,
                self._true,
                self._hyper,
                self._limits,
                Feedback(*map(padded, feedback)),
                np.concatenate([chosen, np.full(missing, size)]),
            )


def _tell_all(
    learner: Learner[Any],
    state: Any,
    totals: dict[str, Array],
    all_accepted: Array,
    hyper: dict[str, Array],
    limits: Limits,
    told: Feedback,
) -> tuple[Any, dict[str, Array], Array, Array]:
    """Return the rows after a round of all of them, and whether it was accepted, and all calls so far."""
    after = learner.with_hyper_arrays(hyper).update(state, told)
    accepted = _is_acceptable(after, told, limits)
    new = after, _add_to_totals(totals, told)
    state, totals = jax.tree.map(lambda fresh, old: jnp.where(accepted, fresh, old), new, (state, totals))
    return state, totals, accepted, all_accepted & accepted


def _tell_rows(
    learner: Learner[Any],
    state: Any,
    totals: dict[str, Array],
    all_accepted: Array,
    hyper: dict[str, Array],
    limits: Limits,
    told: Feedback,
    numbers: Array,
    *,
    check: bool,
) -> tuple[Any, dict[str, Array], Array, Array]:
    """Return the rows after a round of those with these numbers, and whether it was accepted, and all calls so far."""
    size = len(state.round)
    rows, sums, own_hyper, own_limits = jax.tree.map(
        lambda field: field.at[numbers].get(mode="clip") if field.ndim else field, (state, totals, hyper, limits)
    )
    after = learner.with_hyper_arrays(own_hyper).update(rows, told)
    accepted = jnp.asarray(True)
    if check:
        accepted = _is_acceptable(after, told, own_limits) & _are_distinct(numbers, size)
    places = jnp.where(accepted, numbers, size)  # out of range: dropped
    new = after, _add_to_totals(sums, told)
    state, totals = jax.tree.map(
        lambda field, row: field.at[places].set(row, mode="drop", unique_indices=True), (state, totals), new
    )
    return state, totals, accepted, all_accepted & accepted


def _is_acceptable(after: Any, told: Feedback, limits: Limits) -> Array:
    """Return whether all feedback is within the limits and all numbers of the new states are finite."""
    floats = [field for field in jax.tree.leaves(after) if jnp.issubdtype(field.dtype, jnp.floating)]
    finite = [jnp.all(jnp.isfinite(field)) for field in floats]
    return jnp.all(jnp.stack([jnp.all(limits.acceptable(told)), *finite]))


def _are_distinct(numbers: Array, size: int) -> Array:
    """Return whether each number is a learner's and none occurs twice."""
    counts = jnp.zeros(size, dtype=jnp.int32).at[numbers].add(1, mode="drop")
    return jnp.all((numbers >= 0) & (numbers < size)) & jnp.all(counts <= 1)


def _add_to_totals(totals: dict[str, Array], told: Feedback) -> dict[str, Array]:
    """Return the sums of the rows after a round."""
    worst = told.constraint.astype(jnp.float64)
    added = {"signed_violation": worst, "hard_violation": jnp.maximum(worst, 0)}
    return {name: total + added[name] for name, total in totals.items()}


def require_sharding(sharding: Any, size: int) -> NamedSharding:
    """Return a sharding that divides arrays along their first axis, or raise an InputError."""
    if not isinstance(sharding, NamedSharding) or len(sharding.spec) > 1:
        remedy = "Give jax.sharding.NamedSharding(mesh, PartitionSpec('learners')), with that axis in the mesh"
        raise InputError("sharding", f"{sharding!r:.80} does not divide the first axis alone", remedy)
    names = sharding.spec[0] if len(sharding.spec) else None
    axes = (names,) if isinstance(names, str) else tuple(names or ())
    parts = int(np.prod([sharding.mesh.shape[name] for name in axes], dtype=np.int64))
    if size % parts:
        what = f"{size} learners cannot be divided evenly among {parts} parts"
        raise InputError("sharding", what, f"Use a size that {parts} divides, such as {-(-size // parts) * parts}")
    return sharding


def _jax_array(value: Any) -> Any:
    """Return a value as a JAX array, without a copy where possible."""
    if isinstance(value, jax.Array):
        return value
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
        return jnp.asarray(value)
    return jnp.from_dlpack(value)
