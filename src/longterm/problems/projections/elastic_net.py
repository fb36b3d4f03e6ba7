"""Projection onto the elastic-net ball, which is the ℓ1 ball for l2 = 0 and the ℓ2 ball for l1 = 0.

The nearest point of {l1 ‖z‖₁ + ½ l2 ‖z‖² ≤ ρ} to w is z = soft(w, l1 ν)/(1 + l2 ν) with the smallest ν ≥ 0 that
makes it feasible. ν has a closed form. Let a_1 ≥ a_2 ≥ … be the sorted |w_i| and

    h_k(ν) = Σ_{i≤k} [ l1 (a_i − l1 ν)(1 + l2 ν) + ½ l2 (a_i − l1 ν)² ] − ρ (1 + l2 ν)²
           = v_k − q_k (ν + ½ l2 ν²),      v_k = Σ_{i≤k} (l1 a_i + ½ l2 a_i²) − ρ,      q_k = k l1² + 2ρ l2.

The i-th bracket is (a_i − l1 ν)(l1 + ½ l1 l2 ν + ½ l2 a_i), which is positive if and only if a_i > l1 ν. Hence
max_k h_k is (1 + l2 ν)² times the constraint at z. Its root solves ν + ½ l2 ν² = max_k v_k/q_k =: c, so
ν = 2c/(1 + √(1 + 2 l2 c)). If c ≤ 0, w is inside.
"""

from __future__ import annotations

from longterm._base.arrays import Array, namespace
from longterm._base.registered import registered
from longterm.problems.sets.simplex import project_onto_simplex


@registered("elastic_net")
def project_onto_elastic_net(x: Array, budget: float, l1: float = 1.0, l2: float = 1.0) -> Array:
    """Project x, along the last axis, onto {l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ budget}. Points inside are returned bit for bit.

    Parameters
    ----------
    x : array of shape (..., d)
        The points.
    budget, l1, l2 : float
        As in the set. l1 and l2 are not both 0.

    Returns
    -------
    array
        The nearest points, in the shape of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.projections.elastic_net import project_onto_elastic_net
    >>> project_onto_elastic_net(np.array([3.0, -1.0, 0.25]), budget=1.5)
    array([ 1., -0.,  0.])
    >>> project_onto_elastic_net(np.array([3.0, -1.0, 0.25]), budget=2.5, l2=0.0)
    array([ 2.25, -0.25,  0.  ])
    """
    xp = namespace(x)
    size = xp.abs(x)
    if l2 == 0:  # the projection onto the simplex stays accurate for large x
        outside = xp.sum(size, axis=-1, keepdims=True) > budget / l1
        return xp.where(outside, xp.sign(x) * project_onto_simplex(size, budget / l1), x)
    unit = xp.maximum(xp.max(size, axis=-1, keepdims=True), 1.0)  # c / unit² is computed, so no square overflows
    largest_first = xp.sort(size, axis=-1, descending=True) / unit
    excess = xp.cumulative_sum(largest_first * (l1 / unit + 0.5 * l2 * largest_first), axis=-1) - budget / unit / unit
    counts = xp.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    level = xp.maximum(xp.max(excess / (counts * l1**2 + 2 * budget * l2), axis=-1, keepdims=True), 0.0)
    nu = 2 * level * unit / (1 / unit + xp.sqrt((1 / unit) ** 2 + 2 * l2 * level))
    return xp.sign(x) * xp.maximum(size - l1 * nu, 0.0) / (1 + l2 * nu)
