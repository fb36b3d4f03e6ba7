"""Certificates of coverage: the right sides of the theorems, evaluated on the sequence that was played."""

from __future__ import annotations

import math
from typing import NamedTuple

from longterm._arrays import Array, namespace
from longterm.calibration.bases import Tracker, TrackerState
from longterm.calibration.corrections import LARGEST_LOG_WEALTH, WITH_BETS, Correction, Counts, Linear, LinearAndBets

_CLIPPED = math.exp(LARGEST_LOG_WEALTH - 20.0)
"""A potential this large was computed with clipped bets, so nothing is known."""


class Evidence(NamedTuple):
    """Sums from which the certificate is computed.

    Attributes
    ----------
    lowest, highest : array (...)
        min and max over 0 and the rounds told: of f⁻¹(z) for corrections with an inverse, of the score for trackers.
    loss : array (...)
        L: Σ pinball(z) + (r·(correction at the tell − correction at the ask))₊, for the other corrections.
    squares : array (...)
        Σ residual²·|c|/m.
    late : array (...)
        Most rounds told between an ask and its tell.
    """

    lowest: Array
    highest: Array
    loss: Array
    squares: Array
    late: Array


class Bound(NamedTuple):
    """A certificate: the sum of residuals 1{miss} − α lies in [lower, upper] on the sequence played so far.

    Parameters
    ----------
    lower, upper : array (..., k)
        Limits of the sum, per group where the rule has groups.
    theorem : str
        Name of the theorem.
    """

    lower: Array
    upper: Array
    theorem: str


def position_bound(evidence: Evidence, miss_rate: Array) -> Bound:
    """Return Theorem 1, and with late labels Theorem 5, for a correction with an inverse."""
    steps = evidence.late + 1.0
    lower, upper = evidence.lowest - miss_rate * steps, evidence.highest + (1.0 - miss_rate) * steps
    return Bound(lower[..., None], upper[..., None], _theorem(evidence, "Theorem 1"))


def tracker_bound(tracker: Tracker, state: TrackerState, evidence: Evidence, miss_rate: Array) -> Bound:
    """Return Theorem 2: the range of scores and thresholds over the last step.

    A scale-free step times its residual is at most η; the other steps are at most η.
    """
    xp = namespace(miss_rate)
    start = tracker.start + xp.zeros_like(miss_rate)
    steps = tracker.step * (evidence.late + 1.0)
    below, above = (1.0, 1.0) if tracker.steps == "scale-free" else (miss_rate, 1.0 - miss_rate)
    low, high = xp.minimum(evidence.lowest, start) - steps * below, xp.maximum(evidence.highest, start) + steps * above
    reach = ((high - low) / state.step)[..., None]
    return Bound(-reach, reach, _theorem(evidence, "Theorem 2"))


def group_bound(correction: Correction, counts: Counts, evidence: Evidence, miss_rate: Array) -> Bound:
    """Return Theorem 3 per group: the smaller of the limits of the linear part and of the bets."""
    xp = namespace(miss_rate)
    gain = correction.gain if isinstance(correction, (Linear, LinearAndBets)) else 0.0
    bets = isinstance(correction, WITH_BETS)
    most = counts.most_active
    divisor = xp.ones_like(most) if isinstance(correction, Linear) and not correction.normalised else most
    potential = (1.0 if bets else 0.0) + evidence.loss + 0.5 * gain * evidence.squares * most / divisor
    potential = xp.where(potential < _CLIPPED, potential, xp.inf)
    reach = (xp.sqrt(2.0 * divisor / gain * potential) if gain else xp.inf + most)[..., None]
    reach = reach + xp.zeros_like(counts.rounds)
    theorem = _theorem(evidence, "Theorem 3")
    if not bets:
        return Bound(-reach, reach, theorem)
    rounds = xp.maximum(counts.rounds, 1.0)
    information = (xp.log(rounds.shape[-1] * potential)[..., None] + xp.log(2.0 * xp.sqrt(rounds))) / rounds
    below, above = _kl_interval(information, miss_rate[..., None])
    return Bound(xp.maximum(-reach, -counts.rounds * below), xp.minimum(reach, counts.rounds * above), theorem)


def _theorem(evidence: Evidence, on_time: str) -> str:
    return "Theorem 5" if bool(namespace(evidence.late).any(evidence.late > 0.0)) else on_time


def _kl_interval(information: Array, alpha: Array) -> tuple[Array, Array]:
    """Return the largest u and v with KL(α − u ‖ α) ≤ information and KL(α + v ‖ α) ≤ information, by bisection."""
    xp = namespace(information)

    def divergence(p: Array) -> Array:
        inner = xp.where(p > 0.0, p * xp.log(xp.where(p > 0.0, p, 1.0) / alpha), 0.0)
        rest = 1.0 - p
        return inner + xp.where(rest > 0.0, rest * xp.log(xp.where(rest > 0.0, rest, 1.0) / (1.0 - alpha)), 0.0)

    found = []
    for sign, edge in ((-1.0, alpha), (1.0, 1.0 - alpha)):
        inside, outside = xp.zeros_like(information), edge + xp.zeros_like(information)
        for _ in range(60):
            middle = 0.5 * (inside + outside)
            within = divergence(alpha + sign * middle) <= information
            inside, outside = xp.where(within, middle, inside), xp.where(within, outside, middle)
        found.append(outside)
    return found[0], found[1]
