"""Corrections that turn the counts of misses into a shift x of the threshold q = b + σx.

Every correction increases with the number of misses. That keeps the error bounded on every sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from longterm import _validate as validate
from longterm._arrays import Array, namespace
from longterm._display import ReprMixin

LARGEST_EXPONENT = 700.0
LARGEST_LOG_WEALTH = 600.0


class Counts(NamedTuple):
    """Numbers of rounds and misses; rounds with a tie (score = threshold) are told but not counted.

    Attributes
    ----------
    told : array (...)
    rounds, misses : array (..., k)
        Per group.
    log_wealth, bet : array (..., k)
        Logarithm of the Krichevsky–Trofimov likelihood of the misses over their likelihood at the nominal rate, and
        the next bet. Of size 0 where the correction has no bets.
    most_active : array (...)
        Largest number of groups that one round belonged to.
    """

    told: Array
    rounds: Array
    misses: Array
    log_wealth: Array
    bet: Array
    most_active: Array

    def excess(self, miss_rate: Array) -> Array:
        """Return misses − α·rounds per group, shape (..., k)."""
        return self.misses - miss_rate[..., None] * self.rounds

    def add(self, residual: Array, groups: Array, miss_rate: Array) -> Counts:
        """Return the counts after a round with this residual (..., 1), 0 at a tie, in these groups."""
        xp = namespace(self.rounds)
        rounds = self.rounds + xp.where(residual != 0.0, groups, 0.0)
        misses = self.misses + xp.where(residual > 0.0, groups, 0.0)
        wealth, bet, most_active = self.log_wealth, self.bet, self.most_active
        if wealth.shape[-1]:
            wealth = wealth + xp.log1p(bet * residual * groups)
            bet = next_bet(rounds, misses, miss_rate)
        if groups.shape[-1] > 1:
            most_active = xp.maximum(most_active, count_active(groups))
        return Counts(self.told + 1.0, rounds, misses, wealth, bet, most_active)


def next_bet(rounds: Array, misses: Array, miss_rate: Array) -> Array:
    """Return β = (λ − α)/(α(1 − α)) with λ = (misses + ½)/(rounds + 1), shape (..., k)."""
    variance = miss_rate * (1.0 - miss_rate)
    return ((misses + 0.5) / (rounds + 1.0) - miss_rate[..., None]) / variance[..., None]


def count_active(groups: Array) -> Array:
    """Return the number of groups of a round, given 0 or 1 for each. The product is faster than the sum."""
    return namespace(groups).vecdot(groups, groups)


@dataclass(frozen=True, repr=False)
class NoCorrection(ReprMixin):
    """The zero correction: the threshold is the base alone."""

    def __call__(self, counts: Counts, groups: Array, miss_rate: Array, late: Array) -> Array:
        return 0.0 * counts.told


@dataclass(frozen=True, repr=False)
class _WithGain(ReprMixin):
    """A correction with a gain κ."""

    gain: float = 0.1

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive_scalar, "gain")


@dataclass(frozen=True, repr=False)
class Sinh(_WithGain):
    """x = sinh(κE) for one group: a score a thousand scales away costs 7.6/κ misses, not 1000/κ.

    Parameters
    ----------
    gain : float
        κ. The sum of residuals stays within asinh(max |z|)/κ + 1, with z the scores in units of the scale.
    """

    def __call__(self, counts: Counts, groups: Array, miss_rate: Array, late: Array) -> Array:
        exponent = self.gain * counts.excess(miss_rate)[..., 0] / namespace(late).sqrt(late)
        xp = namespace(exponent)
        return xp.sinh(xp.maximum(xp.minimum(exponent, LARGEST_EXPONENT), -LARGEST_EXPONENT))

    def inverse(self, z: Array, told: Array, late: Array) -> Array:
        """Return the excess at which the correction equals z."""
        return namespace(z).asinh(z) * namespace(late).sqrt(late) / self.gain


@dataclass(frozen=True, repr=False)
class Linear(_WithGain):
    """x = κ⟨V, c⟩/m, with V the excess per group, c the groups of the round and m the most groups of a round so far.

    Parameters
    ----------
    gain : float
        κ.
    normalised : bool
        Divide by m. GCACI does not.
    """

    normalised: bool = True

    def __call__(self, counts: Counts, groups: Array, miss_rate: Array, late: Array) -> Array:
        xp = namespace(groups)
        total = self.gain * xp.vecdot(counts.excess(miss_rate), groups)
        return total / xp.maximum(counts.most_active, count_active(groups)) if self.normalised else total

    def inverse(self, z: Array, told: Array, late: Array) -> Array:
        """Return the excess at which the correction equals z, for one group."""
        return z / self.gain


@dataclass(frozen=True, repr=False)
class Saturating(ReprMixin):
    """x = K tan(E ln(t + 1)/(C(t + 1))) after t rounds, the saturating integrator of conformal PID.

    Parameters
    ----------
    gain, saturation : float
        K and C. The threshold is infinite where |E| exceeds (π/2)·C·(t + 1)/ln(t + 1).
    """

    gain: float = 1.0
    saturation: float = 5.0

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive_scalar, "gain", "saturation")

    def _slope(self, told: Array) -> Array:
        xp = namespace(told)
        t = xp.maximum(told, 1.0) + 1.0
        return xp.log(t) / (t * self.saturation)

    def __call__(self, counts: Counts, groups: Array, miss_rate: Array, late: Array) -> Array:
        xp = namespace(counts.rounds)
        angle = counts.excess(miss_rate)[..., 0] * self._slope(counts.told)
        inside = xp.abs(angle) < 0.5 * xp.pi
        finite = self.gain * xp.tan(xp.where(inside, angle, 0.0))
        return xp.where(inside, finite, xp.where(angle > 0.0, xp.inf, -xp.inf))

    def inverse(self, z: Array, told: Array, late: Array) -> Array:
        """Return the excess at which the correction equals z in a round asked after `told` scores."""
        return namespace(z).atan(z / self.gain) / self._slope(told)


@dataclass(frozen=True, repr=False)
class Bets(ReprMixin):
    """x = (1/k) Σ_j c_j W_j β_j: the Krichevsky–Trofimov bettor of POGO, one per group, without a step size."""

    def __call__(self, counts: Counts, groups: Array, miss_rate: Array, late: Array) -> Array:
        xp = namespace(groups)
        wealth = xp.exp(xp.minimum(counts.log_wealth / late[..., None], LARGEST_LOG_WEALTH))
        return xp.vecdot(groups, wealth * counts.bet) / groups.shape[-1]


@dataclass(frozen=True, repr=False)
class LinearAndBets(_WithGain):
    """The sum of `Linear` and `Bets`: the linear part bounds every group, the bets help the rare ones.

    Parameters
    ----------
    gain : float
        κ of the linear part.
    """

    def __call__(self, counts: Counts, groups: Array, miss_rate: Array, late: Array) -> Array:
        linear = Linear(self.gain)(counts, groups, miss_rate, late) / late**0.25
        return linear + Bets()(counts, groups, miss_rate, late)


Correction = NoCorrection | Sinh | Linear | Saturating | Bets | LinearAndBets
WITH_BETS: Any = (Bets, LinearAndBets)
