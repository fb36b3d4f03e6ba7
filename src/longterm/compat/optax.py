"""Multipliers for JAX training loops, in the manner of Optax: a pair of pure functions (extra `optax`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from longterm._base.extras import missing_extra
from longterm.compat import multipliers as rules

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise missing_extra("longterm.compat.optax needs JAX", "optax") from error


class OptaxMultipliers(NamedTuple):
    """The functions of `multipliers`, to be used under `jax.jit`.

    Attributes
    ----------
    init : callable
        `init(dtype=None)` returns the state, in float32 or float64.
    penalty : callable
        `penalty(state, violations, indices=None)` returns ⟨λ, violations⟩ to add to the loss.
    update : callable
        `update(violations, state, indices=None)` returns the next state; arguments in Optax's order. Violations are
        not checked to be finite: a NaN stays in the multiplier.
    """

    init: Callable[..., rules.TrainingMultiplierState]
    penalty: Callable[..., jax.Array]
    update: Callable[..., rules.TrainingMultiplierState]


def multipliers(
    constraints: int, rule: rules.Rule | None = None, *, equality: bool | Sequence[bool] = False
) -> OptaxMultipliers:
    """Return functions for the multipliers of a training loop.

    Parameters
    ----------
    constraints, rule, equality
        As for `longterm.compat.torch.TorchMultipliers`.

    Examples
    --------
    Minimise (x − 2)² subject to x ≤ 1. The multiplier is 2.

    >>> import jax
    >>> from longterm.compat.optax import multipliers
    >>> duals = multipliers(1)
    >>> @jax.jit
    ... def step(x, dual):
    ...     gradient = jax.grad(lambda x: ((x - 2) ** 2).sum() + duals.penalty(dual, x - 1))(x)
    ...     return x - 0.05 * gradient, duals.update(x - 1, dual)
    >>> x, dual = jax.numpy.zeros(1), duals.init()
    >>> for _ in range(2000):
    ...     x, dual = step(x, dual)
    >>> bool(abs(x[0] - 1) < 0.01), bool(abs(dual.multiplier[0] - 2) < 0.05)
    (True, True)
    """
    chosen: rules.Rule = rules.Adaptive() if rule is None else rule
    kinds = rules.constraint_kinds(constraints, chosen, equality)

    def init(dtype: Any = None) -> rules.TrainingMultiplierState:
        zeros = jnp.zeros(constraints, dtype=dtype)
        if zeros.dtype not in (jnp.float32, jnp.float64):
            raise rules.precision_error(zeros.dtype)
        return rules.init(zeros, chosen, jnp.asarray(kinds))

    def penalty(state: rules.TrainingMultiplierState, violations: jax.Array, indices: Any = None) -> jax.Array:
        values = state.multiplier if indices is None else state.multiplier[indices]
        _require_violations(violations, values.shape)
        return jnp.sum(jax.lax.stop_gradient(values) * violations)

    def update(
        violations: jax.Array, state: rules.TrainingMultiplierState, indices: Any = None
    ) -> rules.TrainingMultiplierState:
        where = slice(None) if indices is None else indices
        part = rules.TrainingMultiplierState(*(values[where] for values in state))
        _require_violations(violations, part.multiplier.shape)
        new = rules.update(chosen, part, violations.astype(part.multiplier.dtype))
        return rules.TrainingMultiplierState(*(old.at[where].set(one) for old, one in zip(state, new, strict=True)))

    return OptaxMultipliers(init, penalty, update)


def _require_violations(violations: Any, shape: tuple[int, ...]) -> None:
    is_array = isinstance(violations, (jax.Array, np.ndarray))
    if not is_array or violations.shape != shape or not jnp.issubdtype(violations.dtype, jnp.floating):
        raise rules.violations_error(violations, shape, "JAX array")
