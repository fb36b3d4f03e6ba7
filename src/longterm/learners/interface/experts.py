"""Arrays of experts: (..., K, d) in states, (K, ..., d) where a constraint's maps broadcast over them."""

from __future__ import annotations

from longterm._base.arrays import Array, dots, namespace, times_table


def experts_first(experts: Array) -> Array:
    """Return (..., K, d) as (K, ..., d), so that a constraint's maps broadcast over the experts."""
    return experts if experts.ndim == 2 else namespace(experts).moveaxis(experts, -2, 0)


def experts_last(experts: Array) -> Array:
    """Return (K, ..., d) as (..., K, d)."""
    return experts if experts.ndim == 2 else namespace(experts).moveaxis(experts, 0, -2)


def mixture(weights: Array | None, experts: Array) -> Array:
    """Return Σ_k p_k x^k of experts (..., K, d). A single expert has no weights."""
    if weights is None:
        return experts[..., 0, :]
    return times_table(weights, experts) if weights.ndim == 1 else (weights[..., None, :] @ experts)[..., 0, :]


def weighted_mean(weights: Array | None, values: Array) -> Array:
    """Return Σ_k p_k value_k of values (K, ...)."""
    if weights is None:
        return values[0, ...]
    if weights.ndim == 1:
        return dots(weights, values)
    xp = namespace(values)
    return xp.sum(weights * xp.moveaxis(values, 0, -1), axis=-1)
