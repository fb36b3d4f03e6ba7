"""Eight radii in one leader: experts on one ray, and a multi-scale Hedge over them (`docs/scales.md`).

With R_k = R/4^k, one z and one V = Σ‖n_s‖², the leaders of an elastic-net budget on the balls B_k of radius R_k are

    x^k = s_k w,   w = −soft(z, Λl1),   s_k = min( 1/(√V/R_k + Λl2), R_k/‖w‖ ),

and a last expert stays at 0 (s = 0, with the smallest R_k as its scale). The mixture's weights p pay ℓ_k = ⟨n, x^k⟩:

    b = max_k |ℓ_k|/R_k,   κ = min(1, m/b),   Q_k ← Q_k − αR_k ln(1 − κℓ_k/(αR_k)),   m ← max(m, b),   U ← U + (κb)²
    α = √(4m² + c²U),   p_k = π_k exp((ν − Q_k)/(αR_k)),   ν from Σ p_k = 1,   p = π while α = 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from longterm._arrays import Array, FloatArray, column, dot, like, namespace
from longterm.constraints.prox import ElasticNetProx
from longterm.errors import InputError
from longterm.learners._online_constants import numbers, positive_or_one
from longterm.sets import Ball

SCALES, RATIO = 8, 4.0
PACE = 0.5
"""c, at most 2."""
STEPS = 25
"""Newton's steps to ν; from a sum of at most nine they are quadratic from the start. Six suffice as a rule."""


class Hedge(NamedTuple):
    """What the mixture remembers: arrays (..., 9) and (...,)."""

    losses: Array
    """Q_k, what each scale has paid."""
    clip: Array
    """m, the largest b so far."""
    squares: Array
    """U = Σ (κ_t b_t)², of clipped losses."""
    clip_cost: Array
    """Σ (m_t − m_{t−1}) Σ_j p_j R_j: only the bound reads it."""


def radii(radius: float) -> FloatArray:
    """R_0 … R_7, and R_7 again for the expert at 0."""
    scales = radius / RATIO ** np.arange(SCALES)
    return np.append(scales, scales[-1])


def log_priors(radius: float, typical: float) -> FloatArray:
    """Ln π_k, π_k ∝ (R_k + r_0)^{−½}."""
    weights = (radii(radius) + typical) ** -0.5
    return np.asarray(np.log(weights / weights.sum()))


def begin(shape: tuple[int, ...], xp: Any, dtype: Any) -> Hedge:
    """Nothing seen."""
    zero = xp.zeros(shape, dtype=dtype)
    return Hedge(xp.zeros((*shape, SCALES + 1), dtype=dtype), zero, zero, zero)


def factors(prox: ElasticNetProx, w: Array, multiplier_sum: Array, square_sum: Array) -> Array:
    """s_k, shape (..., 9); 0 for the expert at 0, and for all while every gradient was 0."""
    xp, R = namespace(w), like(radii(prox.over.radius), w)
    root, length = column(xp.sqrt(square_sum)), column(xp.sqrt(dot(w, w)))
    seen = root * like(np.append(np.ones(SCALES), 0.0), w) > 0
    inside = 1 / positive_or_one(root / R + column(multiplier_sum) * prox.constraint.l2)
    longest = xp.where(length > 0, R / positive_or_one(length), inside)
    return xp.where(seen, xp.minimum(inside, longest), xp.zeros_like(inside))


def direction(prox: ElasticNetProx, gradient_sum: Array, multiplier_sum: Array) -> Array:
    """W = −soft(z, Λl1)."""
    threshold, maximum = column(multiplier_sum) * prox.constraint.l1, namespace(gradient_sum).maximum
    return maximum(-gradient_sum - threshold, 0.0) - maximum(gradient_sum - threshold, 0.0)


def rate(hedge: Hedge) -> Array:
    """α = √(4m² + c²U), the inverse of the learning rate."""
    return namespace(hedge.clip).sqrt(4 * hedge.clip**2 + PACE**2 * hedge.squares)


def shares(hedge: Hedge, radius: float, log_prior: FloatArray) -> Array:
    """p, by Newton's steps on the logarithm of the sum, from a ν where one term is 1 already: they fall to the root."""
    xp, Q = namespace(hedge.losses), hedge.losses
    prior, units = like(log_prior, Q), column(rate(hedge)) * like(radii(radius), Q)
    started = units > 0
    per_unit = xp.where(started, 1 / positive_or_one(units), xp.zeros_like(units))
    pivot = xp.min(Q - units * prior, axis=-1, keepdims=True)
    p = xp.exp(prior + (pivot - Q) * per_unit)
    for _ in range(STEPS):
        total, slope = xp.sum(p, axis=-1, keepdims=True), xp.sum(p * per_unit, axis=-1, keepdims=True)
        pivot = pivot - xp.where(slope > 0, xp.log(total) * total / positive_or_one(slope), xp.zeros_like(total))
        p = xp.exp(prior + (pivot - Q) * per_unit)
    return p


def pay(hedge: Hedge, losses: Array, p: Array, radius: float) -> Hedge:
    """The mixture after a round in which the experts lost so much and had the weights p."""
    xp, R = namespace(losses), like(radii(radius), losses)
    b = xp.max(xp.abs(losses) / R, axis=-1)
    kappa = xp.where(b > hedge.clip, hedge.clip / positive_or_one(b), xp.ones_like(b))
    units = column(rate(hedge)) * R
    h = xp.where(units > 0, column(kappa) * losses / positive_or_one(units), xp.zeros_like(units))
    clip = xp.maximum(hedge.clip, b)
    cost = hedge.clip_cost + (clip - hedge.clip) * dot(p, xp.broadcast_to(R, p.shape))
    return Hedge(hedge.losses - units * xp.log1p(-h), clip, hedge.squares + (kappa * b) ** 2, cost)


def primal_bounds(radius: float, log_prior: FloatArray, square_sum: Array, hedge: Hedge) -> FloatArray:
    """P_k + N_k of every scale, and that of the expert at 0 last; shape (..., 9)."""
    R, V, m, U = radii(radius), numbers(square_sum), numbers(hedge.clip), numbers(hedge.squares)
    own = R.copy()
    own[-1] = 0.0  # it never moves: neither a regret of its own, nor a loss to correct
    alpha = np.sqrt(4 * m**2 + PACE**2 * U)[..., None]
    entropy = R * (-log_prior - 1) + np.exp(log_prior) @ R
    clipped = numbers(hedge.clip_cost)[..., None] + m[..., None] * own
    return np.asarray(
        3.07 * own * np.sqrt(V)[..., None] + alpha * entropy + 1.55 / PACE * own * np.sqrt(U)[..., None] + clipped
    )


def require_ray(learner: str, prox: Any) -> ElasticNetProx:
    """The prox, if its leaders of all radii lie on one ray."""
    if isinstance(prox, ElasticNetProx) and isinstance(prox.over, Ball):
        return prox
    what = f"{learner} is for elastic-net budgets on a ball about 0, where the leaders of all scales lie on one ray"
    raise InputError("problem", what, "Use AdaptiveAFTRL, or another constraint")
