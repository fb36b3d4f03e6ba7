"""The rows of a fleet on JAX: gathered, updated and scattered back in one compiled call."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import Array
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback

try:
    import jax
    from jax import numpy as jnp
except ImportError as error:
    raise ImportError("a fleet with engine='jax' needs JAX: install longterm[jax]") from error


class JaxRows:
    """The rows of a fleet in JAX arrays. Batches are filled up to a power of two, so that few sizes are compiled."""

    def __init__(self, learner: Learner[Any], state: Any, totals: dict[str, NDArray[np.float64]]) -> None:
        self._learner = learner
        with jax.enable_x64(True):
            self._state = jax.tree.map(jnp.asarray, state)
            self._totals = jax.tree.map(jnp.asarray, totals)
            self._hyper = {path: jnp.asarray(array) for path, array in learner.hyper_arrays().items()}
        self._compiled = jax.jit(partial(_advance, learner), donate_argnums=(0, 1))

    @property
    def state(self) -> Any:
        """All rows, as NumPy arrays."""
        return jax.tree.map(np.asarray, self._state)

    @property
    def totals(self) -> dict[str, NDArray[np.float64]]:
        """The sums kept for each row, as NumPy arrays."""
        return {name: np.asarray(total) for name, total in self._totals.items()}

    def decisions(self, numbers: NDArray[np.int64] | None) -> NDArray[Any]:
        """X of these rows."""
        with jax.enable_x64(True):
            x = self._learner.ask(self._state)
            return np.array(x if numbers is None else x[jnp.asarray(numbers)])

    def advance(self, numbers: NDArray[np.int64] | None, feedback: Feedback) -> None:
        """Apply the rule to these rows."""
        size = len(self._state.round)
        chosen = np.arange(size) if numbers is None else numbers
        missing = (1 << max(len(chosen) - 1, 0).bit_length()) - len(chosen)
        arrays = {n: v for n, v in feedback._asdict().items() if v is not None and not callable(v)}
        with jax.enable_x64(True):
            # A filled-up row has the number `size`, which names no learner: what is scattered there is dropped.
            padded = np.concatenate([chosen, np.full(missing, size)])
            filled = {n: np.concatenate([v, np.zeros((missing, *v.shape[1:]), v.dtype)]) for n, v in arrays.items()}
            self._state, self._totals = self._compiled(self._state, self._totals, self._hyper, padded, filled)


def _advance(
    learner: Learner[Any], state: Any, totals: dict[str, Array], hyper: dict[str, Array], numbers: Array, feedback: Any
) -> tuple[Any, dict[str, Array]]:
    rows = jax.tree.map(lambda field: field.at[numbers].get(mode="clip"), state)
    chosen = learner.with_hyper_arrays({path: array.at[numbers].get(mode="clip") for path, array in hyper.items()})
    after = chosen.update(rows, Feedback(**feedback))
    state = jax.tree.map(lambda field, new: field.at[numbers].set(new, mode="drop"), state, after)
    worst = feedback["constraint"].astype(jnp.float64)
    added = {"signed_violation": worst, "hard_violation": jnp.maximum(worst, 0)}
    return state, {name: total.at[numbers].add(added[name], mode="drop") for name, total in totals.items()}
