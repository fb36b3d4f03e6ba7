"""Corrections that turn the counts of misses into a shift x of the threshold q = b + σx.

Every correction increases with the number of misses. That keeps the error bounded on every sequence. While labels are
late, the default corrections react more slowly: `late` is ℓ = 1 + D, D the larger of the open rounds and the delay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, expand_last, namespace
from longterm._base.display import ReprMixin
from longterm._base.selection import clamp_max, clamp_min, where
from longterm.calibration.bases import count_active

LARGEST_EXPONENT = 700.0
LARGEST_LOG_WEALTH = 600.0


class MissCounts(NamedTuple):
    """Numbers of rounds and misses per group. A tie (score = threshold) counts in `told` and `ties`, not in `rounds`.

    `log_wealth` is the logarithm of the Krichevsky–Trofimov likelihood of the misses over their likelihood at the
    nominal rate. `most_active` is the largest number of groups of one round. `delay` is the number of rounds open
    at an ask and told before it. Afterwards it falls no faster than the largest excess can.
    """

    told: Array
    rounds: Array
    misses: Array
    ties: Array
    log_wealth: Array
    most_active: Array
    delay: Array

    def excess(self, miss_rate: Array) -> Array:
        """Return misses − α·rounds per group, without ties, shape (..., k)."""
        return self.misses - expand_last(miss_rate) * self.rounds

    def coverage(self) -> Array:
        """Return the share of rounds without a miss per group, shape (..., k); NaN where a group has no round."""
        xp, rounds = namespace(self.rounds), self.rounds + self.ties
        return xp.where(rounds > 0.0, 1.0 - self.misses / xp.where(rounds > 0.0, rounds, 1.0), xp.nan)

    def bet(self, miss_rate: Array) -> Array:
        """Return β = (λ − α)/(α(1 − α)) with λ = (misses + ½)/(rounds + 1), shape (..., k)."""
        alpha = expand_last(miss_rate)
        return ((self.misses + 0.5) / (self.rounds + 1.0) - alpha) / (alpha * (1.0 - alpha))

    def add(self, residual: Array, groups: Array, miss_rate: Array, burst: Array) -> MissCounts:
        """Return the counts after a round with this residual (..., 1), 0 at a tie."""
        none = 0.0 * groups
        delay = self.delay
        if not (isinstance(delay, np.generic) and delay == 0.0):
            # An excess falls by at most α per round. With delay/excess kept, sinh(κE/√(1 + 3·delay)) does not rise.
            largest = namespace(groups).max(namespace(groups).abs(self.excess(miss_rate)), axis=-1)
            delay = delay * (1.0 - miss_rate / clamp_min(clamp_min(largest, delay), 1.0))
        return MissCounts(
            self.told + 1.0,
            self.rounds + where(residual != 0.0, groups, none),
            self.misses + where(residual > 0.0, groups, none),
            self.ties + where(residual == 0.0, groups, none),
            self.log_wealth + namespace(groups).log1p(self.bet(miss_rate) * (residual * groups)),
            clamp_min(self.most_active, count_active(groups)),
            clamp_min(delay, burst),
        )


@dataclass(frozen=True, repr=False)
class Correction(ReprMixin):
    """No correction: the shift is 0. Base class of the corrections.

    `gain` is that of the linear part. Theorem 1 needs an inverse, Theorem 3 the bets.
    """

    gain = 0.0
    has_bets = False
    has_inverse = False

    def __call__(self, counts: MissCounts, groups: Array, miss_rate: Array, late: Array) -> Array:
        """Return the shift x of a round of these groups."""
        return 0.0 * counts.told

    def inverse(self, z: Array, told: Array, miss_rate: Array, late: Array) -> Array:
        """Return the excess at which the correction of one group equals z, in a round asked after `told` scores."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class _WithGain(Correction):
    gain: float = 0.1

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive_scalar, "gain")


class Sinh(_WithGain):
    """x = sinh(κE/L) for one group, with the gain κ = 0.1 and L = min(√(1 + 3D), 1 + κ·max(α·told rounds, D/3)).

    The sum of residuals stays within asinh(max |z|)·L/κ + 1 + the rounds told between an ask and its tell, with z the
    scores in units of the scale: a score a thousand scales away costs 7.6/κ misses, not 1000/κ. Late labels multiply
    the loss that a gain costs by 1 + 2D, so the best gain is smaller by the root. The second limit of L keeps the first
    part of that sum near a share α of the rounds while few are told. D/3 limits the shift after a burst of D ≤ 2,600
    misses to about e³ times the largest |z|.
    """

    has_inverse = True

    def __call__(self, counts: MissCounts, groups: Array, miss_rate: Array, late: Array) -> Array:
        exponent = counts.excess(miss_rate)[..., 0] * self._slope(counts.told, miss_rate, late)
        return namespace(exponent).sinh(clamp_min(clamp_max(exponent, LARGEST_EXPONENT), -LARGEST_EXPONENT))

    def inverse(self, z: Array, told: Array, miss_rate: Array, late: Array) -> Array:
        return namespace(z).asinh(z) / self._slope(told, miss_rate, late)

    def _slope(self, told: Array, miss_rate: Array, late: Array) -> Array:
        delay = late - 1.0
        few = 1.0 + self.gain * clamp_min(miss_rate * told, delay / 3.0)
        return self.gain / clamp_max((1.0 + 3.0 * delay) ** 0.5, few)


@dataclass(frozen=True, repr=False)
class LinearCorrection(_WithGain):
    """x = κ⟨V, c⟩/m, with V the excess per group, c the groups of the round and m the most groups of a round so far.

    Parameters
    ----------
    gain : float
        The factor κ.
    normalised : bool
        Divide by m. GCACI does not.
    """

    normalised: bool = True
    has_inverse = True

    def __call__(self, counts: MissCounts, groups: Array, miss_rate: Array, late: Array) -> Array:
        total = self.gain * namespace(groups).vecdot(counts.excess(miss_rate), groups)
        return total / clamp_min(counts.most_active, count_active(groups)) if self.normalised else total

    def inverse(self, z: Array, told: Array, miss_rate: Array, late: Array) -> Array:
        return z / self.gain


@dataclass(frozen=True, repr=False)
class Saturating(Correction):
    """x = K tan(E ln(t + 1)/(C(t + 1))) after t rounds, the saturating integrator of conformal PID.

    Parameters
    ----------
    gain, saturation : float
        K and C. The threshold is infinite where |E| exceeds (π/2)·C·(t + 1)/ln(t + 1).
    """

    gain: float = 1.0
    saturation: float = 5.0
    has_inverse = True

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive_scalar, "gain", "saturation")

    def __call__(self, counts: MissCounts, groups: Array, miss_rate: Array, late: Array) -> Array:
        xp = namespace(counts.rounds)
        angle = counts.excess(miss_rate)[..., 0] * self._slope(counts.told)
        inside = xp.abs(angle) < 0.5 * xp.pi
        finite = self.gain * xp.tan(xp.where(inside, angle, 0.0))
        return xp.where(inside, finite, xp.where(angle > 0.0, xp.inf, -xp.inf))

    def inverse(self, z: Array, told: Array, miss_rate: Array, late: Array) -> Array:
        return namespace(z).atan(z / self.gain) / self._slope(told)

    def _slope(self, told: Array) -> Array:
        t = clamp_min(told, 1.0) + 1.0
        return namespace(told).log(t) / (t * self.saturation)


class Bets(Correction):
    """x = (1/k) Σ_j c_j W_j^{1/ℓ} β_j: the Krichevsky–Trofimov bettor of POGO, one per group, without a step size."""

    has_bets = True

    def __call__(self, counts: MissCounts, groups: Array, miss_rate: Array, late: Array) -> Array:
        xp = namespace(groups)
        wealth = xp.exp(xp.minimum(counts.log_wealth / expand_last(late), LARGEST_LOG_WEALTH))
        return xp.vecdot(groups, wealth * counts.bet(miss_rate)) / groups.shape[-1]


class LinearAndBets(LinearCorrection):
    """The sum of `LinearCorrection`, divided by ℓ^¼, and `Bets`.

    The first bounds every group, the bets help the rare ones.
    """

    has_inverse = False
    has_bets = True
    _bets = Bets()

    def __call__(self, counts: MissCounts, groups: Array, miss_rate: Array, late: Array) -> Array:
        linear = super().__call__(counts, groups, miss_rate, late) / late**0.25
        return linear + self._bets(counts, groups, miss_rate, late)
