"""Certificates of coverage: the right sides of the theorems, evaluated on the sequence that was played."""

from __future__ import annotations

import math
from typing import NamedTuple

from longterm._base.arrays import Array, namespace
from longterm.calibration.bases import QuantileTracker, TrackerState
from longterm.calibration.corrections import LARGEST_LOG_WEALTH, Correction, LinearCorrection, MissCounts

_CLIPPED = math.exp(LARGEST_LOG_WEALTH - 20.0)
"""A potential this large was computed with clipped bets, so nothing is known."""


class Evidence(NamedTuple):
    """Sums from which the certificate is computed.

    `lowest` and `highest` are over 0 and the rounds told: of f⁻¹(z) for corrections with an inverse, of the score for
    trackers. For the others, `loss` is Σ pinball(z) + (r·(correction at the tell − correction at the ask))₊ and
    `squares` is Σ r²·|c|/m. `late` is the most rounds told between an ask and its tell.
    """

    lowest: Array
    highest: Array
    loss: Array
    squares: Array
    late: Array


class Bound(NamedTuple):
    """A certificate: the sum of residuals 1{miss} − α of each group lies in [lower, upper], both (..., k).

    The sum is over the rounds whose score differs from the threshold. Ties are covered, so `upper` holds with them too.
    """

    lower: Array
    upper: Array
    theorem: str


def position_bound(evidence: Evidence, miss_rate: Array) -> Bound:
    """Return Theorem 1, and with late labels Theorem 4, for a correction with an inverse."""
    steps = evidence.late + 1.0
    lower, upper = evidence.lowest - miss_rate * steps, evidence.highest + (1.0 - miss_rate) * steps
    return Bound(lower[..., None], upper[..., None], _theorem(evidence, "Theorem 1"))


def nested_bound(alone: Bound) -> Bound:
    """Return Theorem 5 for nested levels along the last leading axis, from the bound of each level alone."""
    lower, upper = [alone.lower[..., 0, :]], alone.upper
    for j in range(1, upper.shape[-2]):
        lower.append(alone.lower[..., j, :] - (upper[..., j - 1, :] - lower[-1]))
    return Bound(namespace(upper).stack(lower, axis=-2), upper, alone.theorem)


def tracker_bound(tracker: QuantileTracker, state: TrackerState, evidence: Evidence) -> Bound:
    """Return Theorem 2: the range of the scores, 0 and one move up and down, over the last step."""
    largest_move = tracker.step * (2.0 if tracker.steps == "scale-free" else 1.0) * (evidence.late + 1.0)
    reach = ((evidence.highest - evidence.lowest + largest_move) / state.step)[..., None]
    return Bound(-reach, reach, _theorem(evidence, "Theorem 2"))


def group_bound(correction: Correction, counts: MissCounts, evidence: Evidence, miss_rate: Array) -> Bound:
    """Return Theorem 3 per group: the smaller of the limits of the linear part and of the bets."""
    xp, gain, most = namespace(miss_rate), correction.gain, counts.most_active
    divisor = xp.ones_like(most) if isinstance(correction, LinearCorrection) and not correction.normalised else most
    potential = float(correction.has_bets) + evidence.loss + 0.5 * gain * evidence.squares * most / divisor
    potential = xp.where(potential < _CLIPPED, potential, xp.inf)
    reach = (xp.sqrt(2.0 * divisor / gain * potential) if gain else xp.inf + most)[..., None]
    reach = reach + xp.zeros_like(counts.rounds)
    theorem = _theorem(evidence, "Theorem 3")
    if not correction.has_bets:
        return Bound(-reach, reach, theorem)
    rounds = xp.maximum(counts.rounds, 1.0)
    information = (xp.log(rounds.shape[-1] * potential)[..., None] + xp.log(2.0 * xp.sqrt(rounds))) / rounds
    alpha = miss_rate[..., None]
    lower = -counts.rounds * _largest_deviation(information, alpha, -1.0)
    upper = counts.rounds * _largest_deviation(information, alpha, 1.0)
    return Bound(xp.maximum(-reach, lower), xp.minimum(reach, upper), theorem)


def _theorem(evidence: Evidence, on_time: str) -> str:
    return "Theorem 4" if bool(namespace(evidence.late).any(evidence.late > 0.0)) else on_time


def _largest_deviation(information: Array, alpha: Array, sign: float) -> Array:
    """Return the largest v with KL(α + sign·v ‖ α) ≤ information, by bisection from above."""
    xp = namespace(information)

    def divergence(p: Array, q: Array) -> Array:
        return xp.where(p > 0.0, p * xp.log(xp.where(p > 0.0, p, 1.0) / q), 0.0)

    inside = xp.zeros_like(information)
    outside = inside + (alpha if sign < 0.0 else 1.0 - alpha)
    for _ in range(60):
        middle = 0.5 * (inside + outside)
        p = alpha + sign * middle
        within = divergence(p, alpha) + divergence(1.0 - p, 1.0 - alpha) <= information
        inside, outside = xp.where(within, middle, inside), xp.where(within, outside, middle)
    return outside
