"""The mixture of scales as a kernel: the rule and formulas of `learners.ftrl.multi_scale_hedge`, for one learner.

Every scale R_k = R/4^k has its own leader x^k = s_k w on one ray w, so the mixture x = (Σ p_k s_k) w costs a few
numbers per round and no pass over the coordinates. The intercept's residual is a second mixture of the same kind, with
one coordinate. In all functions `m` is the record of a mixture and `count` its number of scales.
"""

from __future__ import annotations

import math

import numpy as np

from longterm.linear_model.kernels.compile import exact, ordered
from longterm.theory.scales import LONGEST_BLOCK, PACE, RATIO

LEAST_SQUARES = 1e-300
"""No leader is placed while the sum of squared gradients is at most this."""
CLOSE, MAX_STEPS = 1e-7, 60
"""Newton's iteration for ν ends one step after |ln Σ p_k| is at most CLOSE; its order is two."""


@exact
def begin(m, count, radius, typical, power):
    """Set the radii R/4^k, that of 0 as the smallest, and the shares to the priors π_k ∝ (R_k + typical)^−power."""
    total = 0.0
    for k in range(count + 1):
        m.radius[k] = radius / RATIO ** min(k, count - 1)
        m.inverse[k] = 1.0 / m.radius[k]
        total += (m.radius[k] + typical) ** -power
    for k in range(count + 1):
        m.share[k] = (m.radius[k] + typical) ** -power / total
        m.prior[k] = math.log(m.share[k])


@exact
def take_over(m, count, radius):
    """Give each of the radii R/4^k what the next larger radius of before has been charged, or the expert at 0: 0."""
    shift = 0
    while shift < count and m.radius[shift] > RATIO * radius:
        shift += 1
    for k in range(count):
        m.loss[k] = m.loss[k + shift] if k + shift < count else 0.0


@ordered
def inverse_rate(m):
    """Return α = √(4m² + c²U)."""
    return math.sqrt(4.0 * m.cap * m.cap + PACE * PACE * m.clipped_squares)


@ordered
def add_losses(m, count, along, t):
    """Add the losses ℓ_k = along · s_k of round t to the pending losses, clipped at the largest before.

    Return b, the largest ℓ_k/R_k, and True if the block of rounds ends.
    """
    b = abs(along) * m.factor[count - 1] * m.inverse[count - 1]
    clipped = along * (m.cap / b) if b > m.cap else along
    most = 0.0
    for k in range(count):
        loss = clipped * m.factor[k]
        pending = m.pending[k] + loss
        m.pending[k] = pending
        m.squares[k] += loss * loss
        most = max(most, abs(pending) * m.inverse[k])
    return b, most > m.tolerance or b > m.cap or t % LONGEST_BLOCK == 0


@exact
def charge(m, count, b):
    """Charge every scale its pending losses. `b` is that of the block's last round."""
    alpha, inverse = inverse_rate(m), m.inverse[count - 1]
    m.clipped_squares += m.squares[count - 1] * inverse * inverse
    m.cap = max(m.cap, b)
    for k in range(count):
        if alpha > 0.0:
            unit = alpha * m.radius[k]
            relative, apart = m.pending[k] / unit, m.squares[k] / (unit * unit)
            m.loss[k] += unit * (-math.log1p(-relative) - 0.5 * (relative * relative - apart))
        m.pending[k] = m.squares[k] = 0.0


@exact
def set_shares(m, count, tolerance):
    """Set p_k = π_k exp((ν − Q_k)/(αR_k)) with Σ p_k = 1, then the tolerance and the tilt of the next block.

    ln Σ p_k is convex in ν, and its root is at most the ν at which the first term is 1. From above Newton's steps fall
    to the root; from below the first one rises.
    """
    alpha = inverse_rate(m)
    if alpha == 0.0:
        return
    highest = np.inf
    for k in range(count + 1):
        highest = min(highest, m.loss[k] - alpha * m.radius[k] * m.prior[k])
    pivot, close = min(m.pivot, highest), False
    for _ in range(MAX_STEPS):
        total = slope = 0.0
        for k in range(count + 1):
            per_unit = m.inverse[k] / alpha
            share = math.exp(m.prior[k] + (pivot - m.loss[k]) * per_unit)
            m.share[k] = share
            total += share
            slope += share * per_unit
        if close:
            break
        if total < 1e-100:
            pivot = highest
            continue
        excess = math.log(total)
        pivot = min(pivot - excess * total / slope, highest)
        close = abs(excess) <= CLOSE
    m.pivot = pivot
    m.tolerance = max(min(tolerance * alpha, 0.5 * alpha - m.cap), 0.0)
    unit = m.factor[count - 1] * m.inverse[count - 1]
    mean = first = second = 0.0
    steepness = m.share[count] * m.inverse[count]
    for k in range(count):
        factor = m.factor[k] / unit if unit > 0.0 else 0.0  # relative, so that its square does not overflow
        mean += m.share[k] * factor
        first += m.share[k] * factor * m.inverse[k]
        second += m.share[k] * factor * factor * m.inverse[k]
        steepness += m.share[k] * m.inverse[k]
    m.tilt = min((first * first / steepness - second) / (alpha * mean), 0.0) if mean > 0.0 else 0.0


@ordered
def place(m, count, squares, pull, norm_2):
    """Place every leader, s_k = min(1/(√V/R_k + pull), R_k/‖w‖), with V and ‖w‖² given.

    Return the factor of the mixture: Σ p_k s_k, tilted by the pending losses of the smallest scale, and at most s_0.
    """
    if squares <= LEAST_SQUARES:
        return 0.0
    root, shortest = math.sqrt(squares), 1.0 / math.sqrt(norm_2) if norm_2 > 0.0 else np.inf
    mean = 0.0
    for k in range(count):
        factor = min(1.0 / (root * m.inverse[k] + pull), m.radius[k] * shortest)
        m.factor[k] = factor
        mean += m.share[k] * factor
    tilted = 1.0 + m.tilt * m.pending[count - 1] * m.inverse[count - 1]
    return min(mean * tilted, m.factor[0])
