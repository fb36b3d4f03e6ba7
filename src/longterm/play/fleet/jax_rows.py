"""The rows of a fleet in JAX arrays. A round is one compiled call: gather, check, update, scatter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import Array
from longterm._base.extras import missing_extra
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.feedback_check import FeedbackCheck
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.limits import Limits

try:
    import jax
    from jax import numpy as jnp
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


class JaxRows:
    """The rows of a fleet in JAX arrays.

    Parameters
    ----------
    learner : Learner
        With hyper-parameters for each row.
    state : NamedTuple of array
        The learners' states, one row each.
    totals : mapping of str to array
        The sums of each row.
    """

    def __init__(self, learner: Learner[Any], state: Any, totals: dict[str, NDArray[np.float64]]) -> None:
        self._learner = learner
        x = learner.ask(state)[0]
        with jax.enable_x64(True):
            self._state = jax.tree.map(jnp.asarray, state)
            self._totals = jax.tree.map(jnp.asarray, totals)
            self._hyper = {path: jnp.asarray(array) for path, array in learner.hyper_arrays().items()}
            self._limits = Limits(*(jnp.asarray(limit, dtype=x.dtype) for limit in Limits.declared(learner, x)))
        self._tell_all = jax.jit(partial(_tell_all, learner), donate_argnums=(0, 1))
        self._tell_rows = jax.jit(partial(_tell_rows, learner, check=True), donate_argnums=(0, 1))
        self._apply_rows = jax.jit(partial(_tell_rows, learner, check=False), donate_argnums=(0, 1))
        self._sent: list[SentCall] = []
        self.refused: list[SentCall] = []
        """Refused calls that have not been reported yet."""

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
            self.read_outcomes()
        with jax.enable_x64(True):
            told = Feedback(*(None if value is None or callable(value) else _jax_array(value) for value in feedback))
            given = self._hyper, self._limits
            if numbers is None:
                self._state, self._totals, accepted = self._tell_all(self._state, self._totals, *given, told)
            else:
                chosen = _jax_array(numbers)
                self._state, self._totals, accepted = self._tell_rows(self._state, self._totals, *given, told, chosen)
        self._sent.append(SentCall(feedback, numbers, accepted))

    def read_outcomes(self) -> None:
        """Wait for all calls that were sent, and move the refused ones to `refused`."""
        if not self._sent:
            return
        accepted = np.asarray(jnp.stack([call.accepted for call in self._sent]))
        self.refused += [call for call, good in zip(self._sent, accepted, strict=True) if not good]
        self._sent.clear()

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
            self._state, self._totals, _ = self._apply_rows(
                self._state,
                self._totals,
                self._hyper,
                self._limits,
                Feedback(*map(padded, feedback)),
                np.concatenate([chosen, np.full(missing, size)]),
            )


def _tell_all(
    learner: Learner[Any], state: Any, totals: dict[str, Array], hyper: dict[str, Array], limits: Limits, told: Feedback
) -> tuple[Any, dict[str, Array], Array]:
    """Return the rows after a round of all of them, and whether it was accepted."""
    after = learner.with_hyper_arrays(hyper).update(state, told)
    accepted = _is_acceptable(after, told, limits)
    new = after, _add_to_totals(totals, told)
    return *jax.tree.map(lambda fresh, old: jnp.where(accepted, fresh, old), new, (state, totals)), accepted


def _tell_rows(
    learner: Learner[Any],
    state: Any,
    totals: dict[str, Array],
    hyper: dict[str, Array],
    limits: Limits,
    told: Feedback,
    numbers: Array,
    *,
    check: bool,
) -> tuple[Any, dict[str, Array], Array]:
    """Return the rows after a round of those with these numbers, and whether it was accepted."""
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
    return state, totals, accepted


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


def _jax_array(value: Any) -> Any:
    """Return a value as a JAX array, without a copy where possible."""
    if isinstance(value, jax.Array):
        return value
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
        return jnp.asarray(value)
    return jnp.from_dlpack(value)
