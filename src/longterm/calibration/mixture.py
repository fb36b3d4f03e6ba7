"""The default base: a mixture of quantile predictors, weighted by AdaHedge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from longterm._arrays import Array, clamp_min, clamp_to_divisor, min_last, namespace, sum_last
from longterm._display import ReprMixin
from longterm.calibration.bases import Outcome, Prediction
from longterm.calibration.corrections import count_active

N = 8
"""Predictors of each kind."""
GAINS = tuple(2.0**-i for i in range(N))
HALF_LIVES = tuple(2.0**i for i in range(N))
SCALE_HALF_LIVES = (32.0, 1024.0)
_SLOW_SHARE = 1.0 / 32.0
_DEVIATION_STEP = 0.1
_GROUP_GAIN = 4.0


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
    rounds, scale : array (...)
        Scores seen, and the scale σ.
    trackers, means : array (..., 8)
        Tracked quantiles, and means with the rates 1/h.
    errors : array (..., 10)
        Running means of |s − mean| (half-lives 1 … 128) and of |s − b| (32 and 1024).
    multiples, group_trackers : array (..., 8, k)
        Deviations to add to the mean, and tracked quantiles, both linear in the groups. The latter are of size 0
        without groups.
    group_rounds, group_errors : array (..., k), (..., 2, k)
        Rounds of each group, and running means of |s − b| over them.
    hedge : Weights
    """

    rounds: Array
    scale: Array
    trackers: Array
    means: Array
    errors: Array
    multiples: Array
    group_trackers: Array
    group_rounds: Array
    group_errors: Array
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

        k = groups if groups > 1 else 0
        experts = (3 if k else 2) * N
        hedge = Weights(zeros(experts), zeros(), zeros(), zeros(experts) + 1.0 / experts)
        return MixtureState(
            zeros(), clamp_to_divisor(zeros()), zeros(N), zeros(N), zeros(N + 2),
            zeros(N, groups), zeros(N, k), zeros(k), zeros(2, k), hedge,
        )  # fmt: skip

    def predict(self, state: MixtureState, groups: Array) -> Prediction:
        experts = _experts(state, groups)
        return Prediction(namespace(experts).vecdot(state.hedge.weights, experts), state.scale, experts)

    def update(self, state: MixtureState, prediction: Prediction, outcome: Outcome) -> MixtureState:
        xp, groups = namespace(state.means), outcome.groups
        constants = _constants(xp, state.means.dtype, groups.shape[-1])
        s, cover = outcome.score[..., None], -outcome.miss_rate[..., None]
        miss = 1.0 + cover
        fresh = 1.0 - xp.minimum(state.rounds, 1.0)[..., None]
        began = 1.0 - fresh

        # Experts are judged by what they predicted at the ask. Rounds asked before the first score are judged by what
        # they predict now, and have no weight in AdaHedge.
        now = prediction.experts if outcome.current else _experts(state, groups)
        started = outcome.started
        error = s - xp.where(started[..., None] > 0.0, prediction.experts, now)
        push = xp.where(error > 0.0, miss, cover)
        # Multiples of the deviation move by the miss of what they predict now: late labels would make them oscillate.
        multiples_step = (_DEVIATION_STEP * began) * xp.where(s > now[..., N : 2 * N], miss, cover)

        center = (started * prediction.base + (1.0 - started) * state.means[..., -1])[..., None]
        distance = s - xp.concat([state.means, center, center], axis=-1)
        size = xp.abs(distance)
        rate = constants.weights / xp.expm1(xp.maximum(state.rounds[..., None], 1.0) * constants.log_decay)
        errors = state.errors + began * rate * (size - state.errors)
        scale = _scale(errors[..., N], errors[..., N + 1])

        share = groups
        group_trackers, group_rounds, group_errors = state.group_trackers, state.group_rounds, state.group_errors
        if group_trackers.shape[-1]:
            share = groups / count_active(groups)[..., None]
            counted = groups * began
            group_rounds = group_rounds + counted
            decay = xp.maximum(group_rounds, 1.0)[..., None, :] * constants.log_decay[N:, None]
            rate = constants.weights[N:, None] / xp.expm1(decay)
            group_errors = group_errors + counted[..., None, :] * rate * (size[..., N:, None] - group_errors)
            # The rarest group of the round takes most of the step: frequent ones are held in place by other rounds.
            rarity = groups / (group_rounds + 1.0)
            blame = rarity / xp.vecdot(rarity, groups)[..., None]
            step = _GROUP_GAIN * _scale(group_errors[..., 0, :], group_errors[..., 1, :]) * blame
            moved = (started[..., None] * constants.gains * push[..., 2 * N :])[..., None] * step[..., None, :]
            group_trackers = group_trackers + moved + (s * fresh)[..., None] * constants.unit
        return MixtureState(
            state.rounds + 1.0,
            scale,
            state.trackers + scale[..., None] * constants.gains * push[..., :N] + s * fresh,
            state.means + xp.maximum(constants.mean_rates, fresh) * distance[..., :N],
            errors,
            state.multiples + multiples_step[..., None] * share[..., None, :],
            group_trackers,
            group_rounds,
            group_errors,
            _hedge(state.hedge, error * push * started[..., None]),
        )

    def add_group(self, state: MixtureState) -> MixtureState:
        """Return the state with one more group. The first one adds the trackers that are linear in the groups."""
        if not state.group_trackers.shape[-1]:
            xp, hedge = namespace(state.means), state.hedge
            losses = xp.concat([hedge.losses, hedge.losses[..., :N]], axis=-1)
            least = min_last(losses)
            weights = _mix(least, least[..., None] - losses, hedge.gap)
            state = state._replace(
                group_trackers=state.trackers[..., None],
                group_rounds=clamp_min(state.rounds - 1.0, 0.0)[..., None],
                group_errors=state.errors[..., N:, None],
                hedge=Weights(losses, hedge.gap, *weights),
            )
        return state._replace(
            **{
                name: append_zero(getattr(state, name))
                for name in ("multiples", "group_trackers", "group_rounds", "group_errors")
            }
        )

    def add_experts(self, prediction: Prediction) -> Prediction:
        """Return a prediction from before the first group: the new trackers predicted what the old ones did."""
        experts = prediction.experts
        if experts.shape[-1] == 3 * N:
            return prediction
        return prediction._replace(experts=namespace(experts).concat([experts, experts[..., :N]], axis=-1))


def _experts(state: MixtureState, groups: Array) -> Array:
    """Return what the experts predict for a round of these groups, shape (..., 16) or (..., 24)."""
    xp, wide = namespace(groups), groups[..., None, :]
    parts = [state.trackers, state.means + xp.vecdot(state.multiples, wide) * state.errors[..., :N]]
    if state.group_trackers.shape[-1]:
        parts.append(xp.vecdot(state.group_trackers, wide))
    return xp.concat(parts, axis=-1)


def append_zero(values: Array) -> Array:
    """Return values with one more entry, 0, along the last axis."""
    xp = namespace(values)
    return xp.concat([values, xp.zeros((*values.shape[:-1], 1), dtype=values.dtype)], axis=-1)


def _scale(fast: Array, slow: Array) -> Array:
    """Return max(fast, slow/32), clamped so that it can be divided by."""
    return clamp_to_divisor(namespace(fast).maximum(fast, _SLOW_SHARE * slow))


class _Constants(NamedTuple):
    """Gains (8), rates of the means (8), log decays and weights of the errors (10), and (1, 0, …, 0) (k)."""

    gains: Array
    mean_rates: Array
    log_decay: Array
    weights: Array
    unit: Array


def _constants(xp: Any, dtype: Any, groups: int) -> _Constants:
    """Return the constants as arrays. Round n has the weight (1 − d)/(1 − dⁿ) in a mean with decay d per round."""
    key = xp.__name__, dtype, groups  # dtypes of different libraries cannot be compared
    found = _CONSTANTS.get(key)
    if found is None:
        lives = np.array(HALF_LIVES + SCALE_HALF_LIVES)
        log_decay = -math.log(2.0) / lives
        numbers = (GAINS, 1.0 / lives[:N], log_decay, np.expm1(log_decay), np.eye(1, groups)[0])
        found = _Constants(*(xp.asarray(values, dtype=dtype) for values in numbers))
        if "jax" not in key[0]:  # inside a trace these are tracers, which must not outlive it
            _CONSTANTS[key] = found
    return found


_CONSTANTS: dict[tuple[str, Any, int], _Constants] = {}


def _hedge(old: Weights, loss: Array) -> Weights:
    """Return AdaHedge after a round with these losses (de Rooij, van Erven, Grünwald, Koolen 2014)."""
    losses = old.losses + loss
    least = min_last(losses)
    lead = least[..., None] - losses
    mix, _ = _mix(least, lead, old.gap)
    gap = old.gap + clamp_min(namespace(loss).vecdot(old.weights, loss) - (mix - old.mix), 0.0)
    return Weights(losses, gap, *_mix(least, lead, gap))


def _mix(least: Array, lead: Array, gap: Array) -> tuple[Array, Array]:
    """Return −ln(mean exp(−ηL))/η and the weights exp(−ηL)/Σ, with η = ln K/gap, for losses L = least − lead."""
    rate = math.log(lead.shape[-1]) / clamp_to_divisor(gap)
    weights = namespace(lead).exp(rate[..., None] * lead)
    total = sum_last(weights)
    return least - namespace(total).log(total / lead.shape[-1]) / rate, weights / total[..., None]
