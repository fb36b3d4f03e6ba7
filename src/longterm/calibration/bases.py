"""Bases: predictions of the score's quantile, to which a correction is added.

A base proposes a quantile b and a scale σ > 0 from the scores seen so far. Coverage does not depend on it: Theorem 1
holds for any numbers chosen before the score. A sharper base gives narrower intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from longterm import _validate as validate
from longterm._arrays import Array, clamp_min, min_last, namespace, sum_last
from longterm._display import ReprMixin

SMALLEST_SCALE = 1e-100
LARGEST_SCORE = 1e100


class Prediction(NamedTuple):
    """Predictions of a base for one round: base b, scale σ, and what its experts predicted (..., K)."""

    base: Array
    scale: Array
    experts: Array


def pinball(error: Array, miss_rate: Array) -> Array:
    """Return max((1 − α)e, −αe) for errors e = score − prediction."""
    return namespace(error).maximum((1.0 - miss_rate) * error, -miss_rate * error)


@dataclass(frozen=True, repr=False)
class NoBase(ReprMixin):
    """The base b = 0 with scale 1, for rules that are a correction alone."""

    def init(self, shape: tuple[int, ...], groups: int, xp: Any, dtype: Any) -> Array:
        return xp.zeros(shape, dtype=dtype)

    def predict(self, state: Array, groups: Array) -> Prediction:
        xp = namespace(state)
        return Prediction(state, xp.ones_like(state), state[..., None])

    def update(
        self, state: Array, prediction: Prediction, score: Array, groups: Array, miss_rate: Array, first: Array
    ) -> Array:
        return state


class TrackerState(NamedTuple):
    """State of a `Tracker`: the threshold, Σ residual², rounds, and the range of scores and of thresholds."""

    threshold: Array
    squares: Array
    rounds: Array
    step: Array


@dataclass(frozen=True, repr=False)
class Tracker(ReprMixin):
    """A tracked quantile: b ← b + η_t (1{score > b} − α), online gradient descent on the pinball loss.

    Parameters
    ----------
    step : float
        η, in units of the score.
    steps : {"constant", "decaying", "scale-free"}
        η; η t^{−0.6} (Angelopoulos, Barber, Bates 2024); or η/√(Σ residual²) (SF-OGD).
    start : float
        The first threshold.
    """

    step: float = 0.1
    steps: Literal["constant", "decaying", "scale-free"] = "constant"
    start: float = 0.0

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive_scalar, "step")

    def init(self, shape: tuple[int, ...], groups: int, xp: Any, dtype: Any) -> TrackerState:
        zero = xp.zeros(shape, dtype=dtype)
        return TrackerState(zero + self.start, zero, zero, zero + self.step)

    def predict(self, state: TrackerState, groups: Array) -> Prediction:
        xp = namespace(state.threshold)
        return Prediction(state.threshold, xp.ones_like(state.threshold), state.threshold[..., None])

    def update(
        self,
        state: TrackerState,
        prediction: Prediction,
        score: Array,
        groups: Array,
        miss_rate: Array,
        first: Array,
    ) -> TrackerState:
        xp = namespace(score)
        residual = xp.where(score > prediction.base, 1.0 - miss_rate, -miss_rate)
        residual = xp.where(score == prediction.base, 0.0, residual)
        rounds, squares = state.rounds + 1.0, state.squares + residual**2
        step = self.step * xp.ones_like(rounds)
        if self.steps == "decaying":
            step = self.step * rounds**-0.6
        elif self.steps == "scale-free":
            step = self.step / xp.sqrt(xp.where(squares > 0.0, squares, 1.0))
        return TrackerState(state.threshold + step * residual, squares, rounds, step)


GAINS = tuple(2.0**-i for i in range(8))
HALF_LIVES = tuple(2.0**i for i in range(8))
SCALE_HALF_LIVES = (32.0, 1024.0)
_SLOW_SHARE = 1.0 / 32.0
_DEVIATION_STEP = 0.1
_GROUP_GAIN = 4.0
_LARGEST_EXPONENT = 700.0
_SMALLEST_GAP = 1e-200


class Scale(NamedTuple):
    """Running means of the base's absolute error with half-lives 32 and 1024, and how many rounds they have."""

    fast: Array
    slow: Array
    rounds: Array

    def value(self) -> Array:
        """Return max(fast, slow/32), at least `SMALLEST_SCALE`."""
        xp = namespace(self.fast)
        return clamp_min(xp.maximum(self.fast, _SLOW_SHARE * self.slow), SMALLEST_SCALE)

    def add(self, error: Array, counted: Array) -> Scale:
        """Return the means after a round; `counted` is 1 where the round counts, else 0."""
        rounds = self.rounds + counted
        fast, slow = (
            mean + counted * _rate(rounds + (1.0 - counted), half_life) * (error - mean)
            for mean, half_life in zip((self.fast, self.slow), SCALE_HALF_LIVES, strict=True)
        )
        return Scale(fast, slow, rounds)


def _rate(rounds: Array, half_life: Array) -> Array:
    """Return the weight of round n ≥ 1 in a bias-corrected exponential mean; 1 at n = 1."""
    return (1.0 - 2.0 ** (-1.0 / half_life)) / (1.0 - 2.0 ** (-rounds / half_life))


class Weights(NamedTuple):
    """AdaHedge: cumulative losses (..., K), mixability gap, the mix loss so far, and the weights (..., K)."""

    losses: Array
    gap: Array
    mix: Array
    weights: Array


class MixtureState(NamedTuple):
    """State of the `Mixture`.

    Attributes
    ----------
    rounds : array (...)
        Scores seen.
    trackers, means, deviations : array (..., 8)
        Tracked quantiles, and exponentially weighted means and mean absolute deviations.
    multiples : array (..., 8, k)
        Deviations to add to the mean, per group.
    group_trackers : array (..., 8, k)
        Tracked quantiles that are linear in the groups; of size 0 without groups.
    scale, group_scale : Scale
        Absolute errors of the base over all rounds, and over each group's rounds.
    hedge : Weights
    """

    rounds: Array
    trackers: Array
    means: Array
    deviations: Array
    multiples: Array
    group_trackers: Array
    scale: Scale
    group_scale: Scale
    hedge: Weights


@dataclass(frozen=True, repr=False)
class Mixture(ReprMixin):
    """The default base: AdaHedge over quantile trackers and mean-plus-deviation predictors, without a step size.

    The experts are eight trackers with gains 1 … 1/128 (times the scale) and eight predictors μ_h + ρ_h d_h.
    Their mean μ_h has the rate 1/h (h = 1 is the last score), and their mean deviation d_h the half-life
    h = 1 … 128. With groups there are eight more trackers, which are linear in the groups. AdaHedge weighs all of
    them by the pinball loss of what they predicted when the threshold was asked for. The scale is a running mean
    of |score − b|. The rule is equivariant under s → as + b, a > 0.
    """

    def init(self, shape: tuple[int, ...], groups: int, xp: Any, dtype: Any) -> MixtureState:
        def zeros(*more: int) -> Array:
            return xp.zeros((*shape, *more), dtype=dtype)

        grouped = groups if groups > 1 else 0
        n, experts = len(GAINS), (3 if grouped else 2) * len(GAINS)
        return MixtureState(
            zeros(),
            zeros(n),
            zeros(n),
            zeros(n),
            zeros(n, groups),
            zeros(n, grouped),
            Scale(zeros(), zeros(), zeros()),
            Scale(zeros(grouped), zeros(grouped), zeros(grouped)),
            Weights(zeros(experts), zeros(), zeros(), zeros(experts) + 1.0 / experts),
        )

    def predict(self, state: MixtureState, groups: Array) -> Prediction:
        experts = self._experts(state, groups)
        return Prediction(namespace(experts).vecdot(state.hedge.weights, experts), state.scale.value(), experts)

    @staticmethod
    def _experts(state: MixtureState, groups: Array) -> Array:
        xp = namespace(groups)
        wide = groups[..., None, :]
        parts = [state.trackers, state.means + xp.vecdot(state.multiples, wide) * state.deviations]
        if state.group_trackers.shape[-1]:
            parts.append(xp.vecdot(state.group_trackers, wide))
        return xp.concat(parts, axis=-1)

    def update(
        self,
        state: MixtureState,
        prediction: Prediction,
        score: Array,
        groups: Array,
        miss_rate: Array,
        first: Array,
    ) -> MixtureState:
        """Return the state after a score; `first` is true where the threshold was asked before the base had begun."""
        xp = namespace(score)
        constants = _constants(xp, state.means.dtype)
        began = state.rounds[..., None] > 0.0
        s, alpha = score[..., None], miss_rate[..., None]
        # A round asked before any score was told has no prediction; its distance from the present mean sets the scale.
        error = xp.abs(score - xp.where(first, state.means[..., -1], prediction.base))
        counted = xp.minimum(state.rounds, 1.0)
        scale = state.scale.add(error, counted)

        # Trackers move by their miss at the ask; multiples of the deviation by the miss of what they predict now.
        n, now = len(GAINS), self._experts(state, groups)
        then = xp.where(first[..., None], now, prediction.experts)
        experts = xp.concat([then[..., :n], now[..., n : 2 * n], then[..., 2 * n :]], axis=-1)
        push = xp.where(s > experts, 1.0 - alpha, -alpha)
        trackers = state.trackers + constants.gains * scale.value()[..., None] * push[..., :n]
        share = (groups / xp.sum(groups, axis=-1, keepdims=True))[..., None, :]
        step = _DEVIATION_STEP * counted[..., None]
        multiples = state.multiples + (step * push[..., n : 2 * n])[..., None] * share

        distance = s - state.means
        means = state.means + constants.mean_rates * distance
        past = state.rounds[..., None]
        rate = _rate(xp.maximum(past, 1.0), constants.half_lives)
        deviations = xp.where(began, state.deviations + rate * (xp.abs(distance) - state.deviations), 0.0)

        group_trackers, group_scale = state.group_trackers, state.group_scale
        if group_trackers.shape[-1]:
            group_scale = group_scale.add(error[..., None], groups * counted[..., None])
            # The rarest group of the round takes most of the step: frequent ones are held in place by other rounds.
            rarity = groups / (group_scale.rounds + 1.0)
            blame = (rarity / xp.sum(rarity, axis=-1, keepdims=True))[..., None, :]
            step = _GROUP_GAIN * constants.gains[:, None] * group_scale.value()[..., None, :] * blame
            moved = group_trackers + step * push[..., 2 * n :, None]
            group_trackers = xp.where(began[..., None], moved, s[..., None] * constants.unit(groups.shape[-1], xp))
        return MixtureState(
            state.rounds + 1.0,
            xp.where(began, trackers, s),
            xp.where(began, means, s),
            deviations,
            multiples,
            group_trackers,
            scale,
            group_scale,
            _hedge(state.hedge, xp.where(first[..., None], 0.0, pinball(s - then, alpha))),
        )

    def add_group(self, state: MixtureState) -> MixtureState:
        """Return the state with one more group. The first one adds the trackers that are linear in the groups."""
        group_trackers, group_scale, hedge = state.group_trackers, state.group_scale, state.hedge
        if not group_trackers.shape[-1]:
            xp = namespace(state.means)
            group_trackers = state.trackers[..., None]
            group_scale = Scale(*(part[..., None] for part in state.scale))
            losses = xp.concat([hedge.losses, hedge.losses[..., : len(GAINS)]], axis=-1)
            hedge = Weights(losses, hedge.gap, *_mix(losses, hedge.gap))
        return state._replace(
            multiples=append_zero(state.multiples),
            group_trackers=append_zero(group_trackers),
            group_scale=Scale(*(append_zero(part) for part in group_scale)),
            hedge=hedge,
        )

    def with_experts(self, prediction: Prediction, count: int) -> Prediction:
        """Return a prediction with as many experts as there are now: new ones predicted what the trackers did."""
        experts = prediction.experts
        if experts.shape[-1] == count:
            return prediction
        return prediction._replace(experts=namespace(experts).concat([experts, experts[..., : len(GAINS)]], axis=-1))


def append_zero(values: Array) -> Array:
    """Return values with one more entry, 0, along the last axis."""
    xp = namespace(values)
    return xp.concat([values, 0.0 * values[..., :1]], axis=-1)


class _Constants(NamedTuple):
    gains: Array
    half_lives: Array
    mean_rates: Array

    def unit(self, size: int, xp: Any) -> Array:
        """Return (1, 0, …, 0)."""
        return xp.astype(xp.arange(size) == 0, self.gains.dtype)


def _constants(xp: Any, dtype: Any) -> _Constants:
    """Return the gains and rates as arrays of this library and dtype."""
    key = xp.__name__, str(dtype)
    found = _CONSTANTS.get(key)
    if found is None:
        half_lives = xp.asarray(HALF_LIVES, dtype=dtype)
        found = _Constants(xp.asarray(GAINS, dtype=dtype), half_lives, 1.0 / half_lives)
        if "jax" not in key[0]:  # inside a trace these are tracers, which must not outlive it
            _CONSTANTS[key] = found
    return found


_CONSTANTS: dict[tuple[str, str], _Constants] = {}


def _hedge(old: Weights, loss: Array) -> Weights:
    """Return AdaHedge after a round with these losses (de Rooij, van Erven, Grünwald, Koolen 2014)."""
    xp = namespace(loss)
    losses = old.losses + loss
    hedge = xp.vecdot(old.weights, loss)
    mix, _ = _mix(losses, old.gap)
    gap = old.gap + clamp_min(hedge - (mix - old.mix), 0.0)
    mix, weights = _mix(losses, gap)
    return Weights(losses, gap, mix, weights)


def _mix(losses: Array, gap: Array) -> tuple[Array, Array]:
    """Return −ln(mean exp(−ηL))/η and the weights exp(−ηL)/Σ, with η = ln K/gap; the minimum where the gap is 0."""
    xp = namespace(losses)
    experts = losses.shape[-1]
    least = min_last(losses)
    rate = math.log(experts) / clamp_min(gap, _SMALLEST_GAP)
    weights = xp.exp(-xp.minimum(rate[..., None] * (losses - least[..., None]), _LARGEST_EXPONENT))
    total = sum_last(weights)
    return least - xp.log(total / experts) / rate, weights / total[..., None]


Base = NoBase | Tracker | Mixture
