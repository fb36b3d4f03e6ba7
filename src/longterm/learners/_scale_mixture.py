"""Eight radii in one leader: experts on one ray, and a multi-scale Hedge over them (`docs/scales.md`).

With R_k = R/4^k, one z and one V = Σ‖n_s‖², the leaders of an elastic-net budget on the balls B_k of radius R_k are

    x^k = s_k w,   w = −soft(z, Λl1),   s_k = min( 1/(√V/R_k + Λl2), R_k/‖w‖ ),

and a last expert stays at 0 (s = 0, with the smallest R_k as its scale). For a round experts owe ℓ_k = ⟨n, x^k⟩, cut
off at the largest so far:

    b = max_k |ℓ_k|/R_k,   κ = min(1, m/b),   L_k ← L_k + κℓ_k,   B_k ← B_k + (κℓ_k)²,   m ← max(m, b),   U ← U + (κb)².

At the end of a block of rounds they pay, with h_k = L_k/(αR_k), and owe nothing:

    Q_k ← Q_k + αR_k ( −ln(1 − h_k) − ½(h_k² − B_k/(αR_k)²) )
    α = √(4m² + c²U),   p_k = π_k exp((ν − Q_k)/(αR_k)),   ν from Σ p_k = 1,   p = π while α = 0.

A block ends where max_k |L_k|/R_k > min(.15α, ½α − m), where b > m, and at every 128th round. Within it p stays, and
the mixture's factor Σ p_k s_k follows what is owed to first order: it is multiplied by 1 + τ L_7/R_7, τ ≤ 0, and is at
most s_0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from longterm._arrays import Array, FloatArray, as_column, dot, like, namespace
from longterm.constraints.prox import ElasticNetProx
from longterm.errors import InputError
from longterm.learners.duals import numbers, positive_or_one
from longterm.sets import Ball

SCALES, RATIO = 8, 4.0
PACE = 0.5
"""c, at most 2."""
PATIENCE, LONGEST_BLOCK = 0.15, 128
"""By how much an exponent may move before a block of rounds ends, and its most rounds, a power of 2. Chosen on
covtype in its own order: with .2 it loses half a per cent more."""
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
    """Σ (m_t − m_{t−1}) Σ_j p_j R_j: only the bound reads it, as the next two."""
    correction: Array
    """Σ (.273 max_k(L_k/R_k)² + ½ max_k B_k/R_k²)/α over blocks: times R_k, what scale k paid above its losses."""
    waiting: Array
    """What it cost that p stays in blocks, less what following within them has earned."""
    owed: Array
    """L_k, shape (..., 9)."""
    owed_squares: Array
    """B_k, shape (..., 9)."""
    tilt: Array
    """τ: by what part the mixture's factor changes per unit of L_7/R_7."""
    waits: Array
    """1; 0 where every round is a block."""


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
    zero, lanes = xp.zeros(shape, dtype=dtype), xp.zeros((*shape, SCALES + 1), dtype=dtype)
    return Hedge(lanes, zero, zero, zero, zero, zero, lanes, lanes, zero, xp.ones(shape, dtype=dtype))


def factors(prox: ElasticNetProx, w: Array, multiplier_sum: Array, square_sum: Array) -> Array:
    """s_k, shape (..., 9); 0 for the expert at 0, and for all while every gradient was 0."""
    xp, R = namespace(w), like(radii(prox.over.radius), w)
    root, length = as_column(xp.sqrt(square_sum)), as_column(xp.sqrt(dot(w, w)))
    seen = root * like(np.append(np.ones(SCALES), 0.0), w) > 0
    inside = 1 / positive_or_one(root / R + as_column(multiplier_sum) * prox.constraint.l2)
    longest = xp.where(length > 0, R / positive_or_one(length), inside)
    return xp.where(seen, xp.minimum(inside, longest), xp.zeros_like(inside))


def direction(prox: ElasticNetProx, gradient_sum: Array, multiplier_sum: Array) -> Array:
    """W = −soft(z, Λl1)."""
    threshold, maximum = as_column(multiplier_sum) * prox.constraint.l1, namespace(gradient_sum).maximum
    return maximum(-gradient_sum - threshold, 0.0) - maximum(gradient_sum - threshold, 0.0)


def leaders(prox: ElasticNetProx, gradient_sum: Array, weight: Array, square_sum: Array) -> tuple[Array, Array]:
    """The experts' ray w, and how far along it each of them is, s_k."""
    w = direction(prox, gradient_sum, weight)
    return w, factors(prox, w, weight, square_sum)


def rate(hedge: Hedge) -> Array:
    """α = √(4m² + c²U), the inverse of the learning rate."""
    return namespace(hedge.clip).sqrt(4 * hedge.clip**2 + PACE**2 * hedge.squares)


def shares(hedge: Hedge, radius: float, log_prior: FloatArray) -> Array:
    """p, by Newton's steps on the logarithm of the sum, from a ν where one term is 1 already: they fall to the root."""
    xp, Q = namespace(hedge.losses), hedge.losses
    prior, units = like(log_prior, Q), as_column(rate(hedge)) * like(radii(radius), Q)
    started = units > 0
    per_unit = xp.where(started, 1 / positive_or_one(units), xp.zeros_like(units))
    pivot = xp.min(Q - units * prior, axis=-1, keepdims=True)
    p = xp.exp(prior + (pivot - Q) * per_unit)
    for _ in range(STEPS):
        total, slope = xp.sum(p, axis=-1, keepdims=True), xp.sum(p * per_unit, axis=-1, keepdims=True)
        pivot = pivot - xp.where(slope > 0, xp.log(total) * total / positive_or_one(slope), xp.zeros_like(total))
        p = xp.exp(prior + (pivot - Q) * per_unit)
    return p


def charged(
    hedge: Hedge, p: Array, s: Array, along: Array, t: Array, radius: float, *, every_round: bool = False
) -> tuple[Hedge, Array]:
    """The mixture after round t, in which ⟨n, w⟩ was `along`, and whether a block ended: then p is to be made anew."""
    xp, R = namespace(s), like(radii(radius), s)
    losses, alpha = as_column(along) * s, rate(hedge)
    b = xp.max(xp.abs(losses) / R, axis=-1)
    kept = losses * as_column(xp.where(b > hedge.clip, hedge.clip / positive_or_one(b), xp.ones_like(b)))
    open_block = hedge._replace(
        clip_cost=hedge.clip_cost + xp.maximum(b - hedge.clip, 0.0) * dot(p, xp.broadcast_to(R, p.shape)),
        waiting=hedge.waiting + along * (factor(hedge, p, s, radius) - dot(p, s)),
        owed=hedge.owed + kept,
        owed_squares=hedge.owed_squares + kept**2,
    )
    patience = hedge.waits * xp.maximum(xp.minimum(PATIENCE * alpha, alpha / 2 - hedge.clip), 0.0)
    much = xp.max(xp.abs(open_block.owed) / R, axis=-1) > patience
    ends = much | (b > hedge.clip) | (t % LONGEST_BLOCK == 0) | every_round
    closed = paid(open_block, p, radius)
    closed = closed._replace(clip=xp.maximum(closed.clip, b))
    return _where(ends, closed, open_block), ends


def paid(hedge: Hedge, p: Array, radius: float) -> Hedge:
    """The mixture after scales have paid what they owe, for rounds in which they had the weights p."""
    xp, R, alpha = namespace(hedge.owed), like(radii(radius), hedge.owed), rate(hedge)
    units, nothing = as_column(alpha) * R, xp.zeros_like(hedge.owed)
    safe = positive_or_one(units)
    h = xp.where(units > 0, hedge.owed / safe, nothing)
    excess = xp.where(units > 0, (h**2 - hedge.owed_squares / safe**2) / 2, nothing)
    largest = xp.max(xp.abs(hedge.owed) / R, axis=-1)
    squares = xp.max(hedge.owed_squares / R**2, axis=-1)
    correction = (0.273 * largest**2 + squares / 2) / positive_or_one(alpha)  # 0 while α is: then all is cut off
    return hedge._replace(
        losses=hedge.losses + units * (-xp.log1p(-h) - excess),
        squares=hedge.squares + squares,
        correction=hedge.correction + correction,
        waiting=hedge.waiting + dot(p, units * (1 - h) * xp.expm1(excess)),
        owed=nothing,
        owed_squares=nothing,
    )


def settled(hedge: Hedge, p: Array, s: Array, ends: Array, radius: float, log_prior: FloatArray) -> tuple[Hedge, Array]:
    """The mixture with its new τ, and p: where a block ended."""
    anew = shares(hedge, radius, log_prior)
    xp = namespace(p)
    lean = xp.where(ends, tilt(hedge, anew, s, radius), hedge.tilt)
    return hedge._replace(tilt=lean), xp.where(as_column(ends), anew, p)


def _where(ends: Array, closed: Hedge, open_block: Hedge) -> Hedge:
    """The one or the other, number by number."""
    xp = namespace(ends)
    pairs = zip(closed, open_block, strict=True)
    return Hedge(*(xp.where(ends if one.ndim == ends.ndim else as_column(ends), one, other) for one, other in pairs))


def tilt(hedge: Hedge, p: Array, s: Array, radius: float) -> Array:
    """τ: by what part Σ p_k s_k changes per unit of L_7/R_7, were exponents to move as s_k/R_k do."""
    xp, R, alpha = namespace(s), like(radii(radius), s), rate(hedge)
    each = s / R
    mean, first, second = dot(p, s), dot(p, each), dot(p, s * each)
    unit = alpha * mean * xp.max(each, axis=-1)
    made = xp.minimum(first**2 / dot(p, xp.broadcast_to(1 / R, p.shape)) - second, 0.0)
    return xp.where(unit > 0, made / positive_or_one(unit), xp.zeros_like(unit))


def factor(hedge: Hedge, p: Array, s: Array, radius: float) -> Array:
    """The factor of x = s w: Σ p_k s_k, tilted by what is owed, at most s_0."""
    smallest = SCALES - 1
    tilted = 1 + hedge.tilt * hedge.owed[..., smallest] / float(radii(radius)[smallest])
    return namespace(s).minimum(dot(p, s) * tilted, s[..., 0])


def primal_bounds(radius: float, log_prior: FloatArray, square_sum: Array, hedge: Hedge) -> FloatArray:
    """P_k + N_k of every scale, and that of the expert at 0 last; shape (..., 9). Nothing may be owed (`pay`)."""
    R, V, m, U = radii(radius), numbers(square_sum), numbers(hedge.clip), numbers(hedge.squares)
    own = R.copy()
    own[-1] = 0.0  # it never moves: neither a regret of its own, nor a loss to correct
    alpha = np.sqrt(4 * m**2 + PACE**2 * U)[..., None]
    entropy = R * (-log_prior - 1) + np.exp(log_prior) @ R
    shared = numbers(hedge.clip_cost) + numbers(hedge.waiting)
    per_radius = 3.07 * np.sqrt(V) + numbers(hedge.correction) + m
    return np.asarray(alpha * entropy + per_radius[..., None] * own + shared[..., None])


def require_ray(learner: str, prox: Any) -> ElasticNetProx:
    """The prox, if its leaders of all radii lie on one ray."""
    if isinstance(prox, ElasticNetProx) and isinstance(prox.over, Ball):
        return prox
    what = f"{learner} is for elastic-net budgets on a ball about 0, where the leaders of all scales lie on one ray"
    raise InputError("problem", what, "Use AdaptiveAFTRL, or another constraint")
