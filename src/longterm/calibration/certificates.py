"""Certificates of coverage: the right sides of the theorems, evaluated on the sequence that was played."""

from __future__ import annotations

from typing import NamedTuple

from longterm._arrays import Array, namespace
from longterm.calibration.bases import Tracker, TrackerState
from longterm.calibration.corrections import Bets, Correction, Counts, Linear, LinearAndBets


class Evidence(NamedTuple):
    """Sums from which the certificate is computed.

    Attributes
    ----------
    lowest, highest : array (...)
        min and max of 0 and of f⁻¹(z) over the rounds told, for corrections with an inverse.
    pinball : array (...)
        Σ of the base's pinball loss in units of the scale.
    squares : array (...)
        Σ residual²·|c|/m.
    late : array (...)
        Most rounds told between an ask and its tell.
    """

    lowest: Array
    highest: Array
    pinball: Array
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


def position_bound(evidence: Evidence, miss_rate: Array, theorem: str) -> Bound:
    """Return Theorem 1, and with late labels Theorem 5, for a correction with an inverse."""
    rounds = evidence.late + 1.0
    lower, upper = evidence.lowest - miss_rate * rounds, evidence.highest + (1.0 - miss_rate) * rounds
    return Bound(lower[..., None], upper[..., None], theorem)


def tracker_bound(tracker: Tracker, state: TrackerState, evidence: Evidence, miss_rate: Array) -> Bound:
    """Return Theorem 2: the range of scores and thresholds over the last step."""
    xp = namespace(miss_rate)
    low = xp.minimum(evidence.lowest, tracker.start * xp.ones_like(miss_rate)) - tracker.step * miss_rate
    high = xp.maximum(evidence.highest, tracker.start * xp.ones_like(miss_rate)) + tracker.step * (1.0 - miss_rate)
    reach = ((high - low) / state.step)[..., None]
    return Bound(-reach, reach, "Theorem 2")


def group_bound(correction: Correction, counts: Counts, evidence: Evidence, miss_rate: Array) -> Bound:
    """Return Theorem 3 per group: the smaller of the limits of the linear part and of the bets."""
    xp = namespace(miss_rate)
    gain = correction.gain if isinstance(correction, (Linear, LinearAndBets)) else 0.0
    bets = isinstance(correction, (Bets, LinearAndBets))
    most = counts.most_active
    scale = xp.ones_like(most) if isinstance(correction, Linear) and not correction.normalised else most
    potential = (1.0 if bets else 0.0) + evidence.pinball + 0.5 * gain * evidence.squares * most / scale
    reach = xp.inf * xp.ones_like(counts.rounds)
    if gain > 0.0:
        reach = xp.minimum(reach, xp.sqrt(2.0 * scale / gain * potential)[..., None])
    if not bets:
        return Bound(-reach, reach, "Theorem 3")
    rounds = xp.where(counts.rounds > 0.0, counts.rounds, 1.0)
    groups = counts.rounds.shape[-1]
    information = (xp.log(groups * potential)[..., None] + xp.log(2.0 * xp.sqrt(rounds))) / rounds
    below, above = _kl_interval(information, miss_rate[..., None])
    lower, upper = xp.maximum(-reach, -counts.rounds * below), xp.minimum(reach, counts.rounds * above)
    return Bound(lower, upper, "Theorem 3")


def _kl_interval(information: Array, alpha: Array) -> tuple[Array, Array]:
    """Return the largest u and v with KL(α − u ‖ α) ≤ information and KL(α + v ‖ α) ≤ information, by bisection."""
    xp = namespace(information)

    def divergence(p: Array) -> Array:
        inner = xp.where(p > 0.0, p * xp.log(xp.where(p > 0.0, p, 1.0) / alpha), 0.0)
        rest = 1.0 - p
        return inner + xp.where(rest > 0.0, rest * xp.log(xp.where(rest > 0.0, rest, 1.0) / (1.0 - alpha)), 0.0)

    found = []
    for sign, edge in ((-1.0, alpha), (1.0, 1.0 - alpha)):
        inside, outside = 0.0 * information, edge + 0.0 * information
        for _ in range(60):
            middle = 0.5 * (inside + outside)
            within = divergence(alpha + sign * middle) <= information
            inside, outside = xp.where(within, middle, inside), xp.where(within, outside, middle)
        found.append(outside)
    return found[0], found[1]
