"""Corrections that turn a running count of misses into a shift of the threshold.

A correction maps the counts of the past rounds to a number x, and the threshold is q = b + σx. Every correction
increases with the number of misses, which is what makes the error stay bounded on every sequence.
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
    """Numbers of rounds and misses per group; rounds with a tie (score = threshold) are not counted.

    Attributes
    ----------
    rounds, misses : array (..., k)
    log_wealth : array (..., k)
        Logarithm of the Krichevsky–Trofimov likelihood of the misses over their likelihood at the nominal rate.
    most_active : array (...)
        Largest number of groups that one round belonged to.
    """

    rounds: Array
    misses: Array
    log_wealth: Array
    most_active: Array

    @classmethod
    def zeros(cls, shape: tuple[int, ...], groups: int, xp: Any, dtype: Any) -> Counts:
        """Return the counts before the first round."""
        empty = xp.zeros((*shape, groups), dtype=dtype)
        return cls(empty, empty, empty, xp.ones(shape, dtype=dtype))

    def excess(self, miss_rate: Array) -> Array:
        """Return misses − α·rounds per group, shape (..., k)."""
        return self.misses - miss_rate[..., None] * self.rounds

    def bet(self, miss_rate: Array) -> Array:
        """Return β = (λ − α)/(α(1 − α)) with λ = (misses + ½)/(rounds + 1), shape (..., k)."""
        rate = (self.misses + 0.5) / (self.rounds + 1.0)
        level = miss_rate[..., None]
        return (rate - level) / (level * (1.0 - level))

    def add(self, residual: Array, missed: Array, groups: Array, miss_rate: Array) -> Counts:
        """Return the counts after a round with this residual (0 at a tie) in these groups."""
        xp = namespace(self.rounds)
        counted = xp.where((residual == 0.0)[..., None], 0.0, groups)
        grown = xp.log1p(self.bet(miss_rate) * residual[..., None] * counted)
        return Counts(
            self.rounds + counted,
            self.misses + xp.where(missed[..., None], counted, 0.0),
            self.log_wealth + grown,
            xp.maximum(self.most_active, xp.sum(groups, axis=-1)),
        )


@dataclass(frozen=True, repr=False)
class NoCorrection(ReprMixin):
    """The zero correction: the threshold is the base alone."""

    def __call__(self, counts: Counts, groups: Array, miss_rate: Array, spread: Array) -> Array:
        return 0.0 * counts.most_active


@dataclass(frozen=True, repr=False)
class Sinh(ReprMixin):
    """x = sinh(κE) for one group: a score a thousand scales away costs 7.6/κ misses, not 1000/κ.

    Parameters
    ----------
    gain : float
        κ. The sum of residuals stays within asinh(max |z|)/κ + 1, with z the scores in units of the scale.
    """

    gain: float = 0.1

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive_scalar, "gain")

    def __call__(self, counts: Counts, groups: Array, miss_rate: Array, spread: Array) -> Array:
        xp = namespace(counts.rounds)
        exponent = self.gain * counts.excess(miss_rate)[..., 0] / spread
        return xp.sinh(xp.clip(exponent, -LARGEST_EXPONENT, LARGEST_EXPONENT))

    def inverse(self, z: Array, told: Array, spread: Array) -> Array:
        """Return the excess at which the correction equals z."""
        return namespace(z).asinh(z) * spread / self.gain


@dataclass(frozen=True, repr=False)
class Linear(ReprMixin):
    """x = κ⟨V, c⟩/m, with V the excess per group, c the groups of the round and m the most groups of a round so far.

    Parameters
    ----------
    gain : float
        κ.
    normalised : bool
        Divide by m. GCACI does not.
    """

    gain: float = 0.1
    normalised: bool = True

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive_scalar, "gain")

    def __call__(self, counts: Counts, groups: Array, miss_rate: Array, spread: Array) -> Array:
        xp = namespace(groups)
        total = xp.vecdot(counts.excess(miss_rate), groups)
        if not self.normalised:
            return self.gain * total / spread
        return self.gain * total / (spread * xp.maximum(counts.most_active, xp.sum(groups, axis=-1)))

    def inverse(self, z: Array, told: Array, spread: Array) -> Array:
        """Return the excess at which the correction equals z, for one group."""
        return z * spread / self.gain


@dataclass(frozen=True, repr=False)
class Saturating(ReprMixin):
    """x = K tan(E ln(t)/(C t)), the saturating integrator of conformal PID, finite within t·C·π/(2 ln t) misses.

    Parameters
    ----------
    gain, saturation : float
        K and C.
    """

    gain: float = 1.0
    saturation: float = 5.0

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive_scalar, "gain", "saturation")

    def _slope(self, told: Array) -> Array:
        t = told + 2.0
        return namespace(told).log(t) / (t * self.saturation)

    def __call__(self, counts: Counts, groups: Array, miss_rate: Array, spread: Array) -> Array:
        xp = namespace(counts.rounds)
        angle = counts.excess(miss_rate)[..., 0] * self._slope(counts.rounds[..., 0]) / spread
        edge = 0.5 * xp.pi
        inside = xp.abs(angle) < edge
        return xp.where(
            inside, self.gain * xp.tan(xp.where(inside, angle, 0.0)), xp.where(angle > 0.0, xp.inf, -xp.inf)
        )

    def inverse(self, z: Array, told: Array, spread: Array) -> Array:
        """Return the excess at which the correction equals z, after this many counted rounds."""
        return namespace(z).atan(z / self.gain) * spread / self._slope(told)


@dataclass(frozen=True, repr=False)
class Bets(ReprMixin):
    """x = (1/k) Σ_j c_j W_j β_j: the Krichevsky–Trofimov bettor of POGO, one per group, without a step size."""

    def __call__(self, counts: Counts, groups: Array, miss_rate: Array, spread: Array) -> Array:
        xp = namespace(groups)
        wealth = xp.exp(xp.clip(counts.log_wealth / spread[..., None], -LARGEST_EXPONENT, LARGEST_LOG_WEALTH))
        return xp.vecdot(groups, wealth * counts.bet(miss_rate)) / groups.shape[-1]


@dataclass(frozen=True, repr=False)
class LinearAndBets(ReprMixin):
    """The sum of `Linear` and `Bets`: the linear part bounds every group, the bets help the rare ones.

    Parameters
    ----------
    gain : float
        κ of the linear part.
    """

    gain: float = 0.1

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive_scalar, "gain")

    def __call__(self, counts: Counts, groups: Array, miss_rate: Array, spread: Array) -> Array:
        return Linear(self.gain)(counts, groups, miss_rate, spread) + Bets()(counts, groups, miss_rate, spread)


Correction = NoCorrection | Sinh | Linear | Saturating | Bets | LinearAndBets
