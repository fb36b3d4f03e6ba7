"""A multi-scale Hedge over experts on balls of different radii, played in blocks of rounds (`docs/proofs/scales.md`).

Expert k loses at most a multiple of R_k = R/4^k in a round; the last expert stays at 0, with the smallest R_k as its
scale. A round with losses ℓ_k is clipped at the largest seen before and added to the open block:

    b = max_k |ℓ_k|/R_k,   κ = min(1, m/b),   L_k ← L_k + κℓ_k,   B_k ← B_k + (κℓ_k)²,   m ← max(m, b),   U ← U + (κb)².

When a block ends, experts are charged for it and L and B return to 0. With h_k = L_k/(αR_k),

    Q_k ← Q_k + αR_k ( −ln(1 − h_k) − ½(h_k² − B_k/(αR_k)²) )
    α = √(4m² + c²U),   p_k = π_k exp((ν − Q_k)/(αR_k)),   ν from Σ p_k = 1,   p = π while α = 0.

A block ends if max_k |L_k|/R_k > min(.15α, ½α − m), if b > m, or if 128 divides t. Within a block p stays. The factor
Σ p_k s_k of the mixture follows L to first order: it is multiplied by 1 + τ L_7/R_7, τ ≤ 0, and is at most s_0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from longterm._base.arrays import Array, FloatArray, as_column, dot, like, namespace
from longterm.learners.interface.prox_learner import positive_or_one
from longterm.learners.interface.states import as_numbers
from longterm.theory.scales import BLOCK_TOLERANCE, LONGEST_BLOCK, PACE, RATIO, SCALES

NEWTON_STEPS = 25
"""Newton steps to ν. They converge quadratically from the start, and six suffice as a rule."""


class HedgeState(NamedTuple):
    """The state of the Hedge: arrays (..., 9) and (...,)."""

    losses: Array
    """Q_k, what each expert has been charged."""
    clip: Array
    """m, the largest b so far."""
    squares: Array
    """U = Σ (κ_t b_t)², of clipped losses."""
    clip_cost: Array
    """Σ (m_t − m_{t−1}) Σ_j p_j R_j. Only bounds read it, as the next two."""
    correction: Array
    """S_T = Σ (.273 max_k(L_k/R_k)² + ½ max_k B_k/R_k²)/α over blocks. R_k S_T is charged to k above its losses."""
    block_cost: Array
    """W_T: the cost of keeping p within blocks, less the gain of following L."""
    block_losses: Array
    """L_k of the open block."""
    block_squares: Array
    """B_k of the open block."""
    tilt: Array
    """τ, the relative change of the mixture's factor per unit of L_7/R_7."""

    @classmethod
    def zeros(cls, shape: tuple[int, ...], xp: Any, dtype: Any) -> HedgeState:
        """Return the state before the first round."""
        zero, experts = xp.zeros(shape, dtype=dtype), xp.zeros((*shape, SCALES + 1), dtype=dtype)
        return cls(experts, zero, zero, zero, zero, zero, experts, experts, zero)


def radii(radius: float) -> FloatArray:
    """Return R_0 … R_7, and R_7 again for the expert at 0."""
    scales = radius / RATIO ** np.arange(SCALES)
    return np.append(scales, scales[-1])


def log_priors(radius: float, typical_size: float) -> FloatArray:
    """Return ln π_k, π_k ∝ (R_k + r_0)^{−½}."""
    weights = (radii(radius) + typical_size) ** -0.5
    return np.asarray(np.log(weights / weights.sum()))


def inverse_rate(hedge: HedgeState) -> Array:
    """Return α = √(4m² + c²U), the inverse of the learning rate."""
    return namespace(hedge.clip).sqrt(4 * hedge.clip**2 + PACE**2 * hedge.squares)


def weights_of(hedge: HedgeState, radius: float, log_prior: FloatArray) -> Array:
    """Return p, by Newton steps on ln Σ p_k. They start where one term is 1, and fall to the root."""
    xp, Q = namespace(hedge.losses), hedge.losses
    prior, units = like(log_prior, Q), as_column(inverse_rate(hedge)) * like(radii(radius), Q)
    per_unit = xp.where(units > 0, 1 / positive_or_one(units), xp.zeros_like(units))
    pivot = xp.min(Q - units * prior, axis=-1, keepdims=True)
    p = xp.exp(prior + (pivot - Q) * per_unit)
    for _ in range(NEWTON_STEPS):
        total, slope = xp.sum(p, axis=-1, keepdims=True), xp.sum(p * per_unit, axis=-1, keepdims=True)
        pivot = pivot - xp.where(slope > 0, xp.log(total) * total / positive_or_one(slope), xp.zeros_like(total))
        p = xp.exp(prior + (pivot - Q) * per_unit)
    return p


def add_round(
    hedge: HedgeState, p: Array, s: Array, slope: Array, t: Array, radius: float, *, every_round: bool = False
) -> tuple[HedgeState, Array]:
    """Return the state after round t, in which expert k lost slope · s_k, and where a block ended.

    With `every_round` each round is a block.
    """
    xp, R = namespace(s), like(radii(radius), s)
    losses, alpha = as_column(slope) * s, inverse_rate(hedge)
    b = xp.max(xp.abs(losses) / R, axis=-1)
    clipped = losses * as_column(xp.where(b > hedge.clip, hedge.clip / positive_or_one(b), xp.ones_like(b)))
    open_block = hedge._replace(
        clip_cost=hedge.clip_cost + xp.maximum(b - hedge.clip, 0.0) * dot(p, xp.broadcast_to(R, p.shape)),
        block_cost=hedge.block_cost + slope * (factor(hedge, p, s, radius) - dot(p, s)),
        block_losses=hedge.block_losses + clipped,
        block_squares=hedge.block_squares + clipped**2,
    )
    tolerance = xp.maximum(xp.minimum(BLOCK_TOLERANCE * alpha, alpha / 2 - hedge.clip), 0.0)
    moved = xp.max(xp.abs(open_block.block_losses) / R, axis=-1) > tolerance
    ends = moved | (b > hedge.clip) | (t % LONGEST_BLOCK == 0) | every_round
    closed = close_block(open_block, p, radius)
    closed = closed._replace(clip=xp.maximum(closed.clip, b))
    pairs = zip(closed, open_block, strict=True)
    chosen = (xp.where(ends if one.ndim == ends.ndim else as_column(ends), one, other) for one, other in pairs)
    return HedgeState(*chosen), ends


def close_block(hedge: HedgeState, p: Array, radius: float) -> HedgeState:
    """Return the state after experts are charged for the open block, in which they had the weights p."""
    xp, R, alpha = namespace(hedge.losses), like(radii(radius), hedge.losses), inverse_rate(hedge)
    units, zeros = as_column(alpha) * R, xp.zeros_like(hedge.losses)
    safe = positive_or_one(units)
    h = xp.where(units > 0, hedge.block_losses / safe, zeros)
    excess = xp.where(units > 0, (h**2 - hedge.block_squares / safe**2) / 2, zeros)
    largest = xp.max(xp.abs(hedge.block_losses) / R, axis=-1)
    squares = xp.max(hedge.block_squares / R**2, axis=-1)
    correction = (0.273 * largest**2 + squares / 2) / positive_or_one(alpha)  # 0 while α is: then all is clipped
    return hedge._replace(
        losses=hedge.losses + units * (-xp.log1p(-h) - excess),
        squares=hedge.squares + squares,
        correction=hedge.correction + correction,
        block_cost=hedge.block_cost + dot(p, units * (1 - h) * xp.expm1(excess)),
        block_losses=zeros,
        block_squares=zeros,
    )


def reweight(
    hedge: HedgeState, p: Array, s: Array, ends: Array, radius: float, log_prior: FloatArray
) -> tuple[HedgeState, Array]:
    """Return the state with a new τ and a new p where a block ended."""
    xp, new = namespace(p), weights_of(hedge, radius, log_prior)
    tilt = xp.where(ends, tilt_of(hedge, new, s, radius), hedge.tilt)
    return hedge._replace(tilt=tilt), xp.where(as_column(ends), new, p)


def tilt_of(hedge: HedgeState, p: Array, s: Array, radius: float) -> Array:
    """Return τ: the relative change of Σ p_k s_k per unit of L_7/R_7, if exponents move as s_k/R_k does."""
    xp, R, alpha = namespace(s), like(radii(radius), s), inverse_rate(hedge)
    each = s / R
    mean, first, second = dot(p, s), dot(p, each), dot(p, s * each)
    unit = alpha * mean * xp.max(each, axis=-1)
    slope = xp.minimum(first**2 / dot(p, xp.broadcast_to(1 / R, p.shape)) - second, 0.0)
    return xp.where(unit > 0, slope / positive_or_one(unit), xp.zeros_like(unit))


def factor(hedge: HedgeState, p: Array, s: Array, radius: float) -> Array:
    """Return the mixture's factor: Σ p_k s_k, tilted by the open block's losses, at most s_0."""
    smallest = SCALES - 1
    tilted = 1 + hedge.tilt * hedge.block_losses[..., smallest] / float(radii(radius)[smallest])
    return namespace(s).minimum(dot(p, s) * tilted, s[..., 0])


def primal_bounds(radius: float, log_prior: FloatArray, square_sum: Array, hedge: HedgeState) -> FloatArray:
    """Return P_k + N_k of every radius, the expert at 0 last, shape (..., 9). No block may be open (`close_block`)."""
    R, V, m, U = radii(radius), as_numbers(square_sum), as_numbers(hedge.clip), as_numbers(hedge.squares)
    own = R.copy()
    own[-1] = 0.0  # the expert at 0 never moves, so that it has neither regret nor losses to correct
    alpha = np.sqrt(4 * m**2 + PACE**2 * U)[..., None]
    entropy = R * (-log_prior - 1) + np.exp(log_prior) @ R
    shared = as_numbers(hedge.clip_cost) + as_numbers(hedge.block_cost)
    per_radius = 2.5 * np.sqrt(V) + as_numbers(hedge.correction) + m
    return np.asarray(alpha * entropy + per_radius[..., None] * own + shared[..., None])
