"""The default base: a mixture of quantile predictors, weighted by AdaHedge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from longterm._base.arrays import Array, expand_last, like, min_last, namespace, sum_last
from longterm._base.display import ReprMixin
from longterm._base.selection import clamp_max, clamp_min, clamp_to_divisor, is_true_everywhere, where
from longterm.calibration.bases import Asked, count_active, pinball

N = 8
"""Predictors of each kind."""
_HALF_LIVES = np.array([*(2.0**i for i in range(N)), 32.0, 1024.0])
_RATES = 1.0 / _HALF_LIVES[:N]
"""Rates of the means, and gains of the trackers in units of the scale."""
_LOG_DECAY = -math.log(2.0) / _HALF_LIVES
_LAST_WEIGHT = np.expm1(_LOG_DECAY)
"""A mean with decay d per round gives round n the weight (1 − d)/(1 − dⁿ); this is d − 1."""
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

    `errors` (..., 10) are running means of |s − mean| (half-lives 1 … 128) and of |s − b| (32 and 1024). `multiples`
    of the deviations and `group_trackers` are (..., 8, k), linear in the groups. What is named after groups has
    size 0 without them; `group_errors` are (..., 2, k).
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

    def predict(self, state: MixtureState, groups: Array) -> tuple[Array, Array, Array]:
        """Return the base, the scale and the predictions of the experts."""
        experts = _experts(state, groups)
        return namespace(experts).vecdot(state.hedge.weights, experts), state.scale, experts

    def update(
        self, state: MixtureState, asked: Asked, score: Array, residual: Array, miss_rate: Array, current: Array
    ) -> MixtureState:
        """Return the state after a score; `current`: the state is that of the ask."""
        xp, groups = namespace(state.means), asked.groups
        rates, log_decay, last_weight = (like(c, state.means) for c in (_RATES, _LOG_DECAY, _LAST_WEIGHT))
        s, cover = expand_last(score), expand_last(-miss_rate)
        miss = 1.0 + cover
        # 0 if no score is known, else 1: now, and at the ask.
        has_score, started = clamp_max(state.rounds, 1.0), clamp_max(asked.told, 1.0)
        first = expand_last((1.0 - has_score) * score)  # the first score, then 0
        means = state.means + first

        # AdaHedge judges the experts by what they predicted at the ask. They learn from what they predict now: moved
        # by misses from before, they would oscillate while labels are late.
        error = s - asked.experts
        loss = pinball(error, expand_last(miss_rate))
        # On time the weighted loss of the experts is larger than that of their mean.
        own_loss, present = 0.0, error
        if not is_true_everywhere(current):
            own_loss = where(current, 0.0, started * pinball(score - asked.base, miss_rate))
            present = xp.where(expand_last(current), error, s - _experts(state, groups))
        move = xp.where(present > 0.0, miss, cover)

        center = (started * asked.base + (1.0 - started) * means[..., -1])[..., None]
        distance = s - xp.concat([means, center, center], axis=-1)
        size = xp.abs(distance)
        rate = last_weight / xp.expm1(expand_last(clamp_min(state.rounds, 1.0)) * log_decay)
        errors = state.errors + rate * (size - state.errors)
        scale = _scale(errors[..., N], errors[..., N + 1])

        share = groups
        group_trackers, group_rounds, group_errors = state.group_trackers, state.group_rounds, state.group_errors
        if group_trackers.shape[-1]:
            share = groups / expand_last(count_active(groups))
            counted = groups * expand_last(has_score)
            group_rounds = group_rounds + counted
            decay = xp.maximum(group_rounds, 1.0)[..., None, :] * log_decay[N:, None]
            rate = counted[..., None, :] * (last_weight[N:, None] / xp.expm1(decay))
            group_errors = group_errors + rate * (size[..., N:, None] - group_errors)
            # The rarest group of the round takes most of the step: frequent ones are held in place by other rounds.
            rarity = groups / (group_rounds + 1.0)
            step_share = rarity * expand_last(_GROUP_GAIN / xp.vecdot(rarity, groups))
            step = step_share * _scale(group_errors[..., 0, :], group_errors[..., 1, :])
            group_trackers = group_trackers + (rates * move[..., 2 * N :])[..., None] * step[..., None, :]
            overall = group_trackers[..., :1] + first[..., None]
            group_trackers = xp.concat([overall, group_trackers[..., 1:]], axis=-1)
        deviation_step = expand_last(_DEVIATION_STEP * has_score) * move[..., N : 2 * N]
        return MixtureState(
            state.rounds + 1.0,
            scale,
            state.trackers + expand_last(scale) * rates * move[..., :N] + first,
            means + rates * distance[..., :N],
            errors,
            state.multiples + deviation_step[..., None] * share[..., None, :],
            group_trackers,
            group_rounds,
            group_errors,
            _hedge(state.hedge, loss * expand_last(started), own_loss),
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
        grown = ("multiples", "group_trackers", "group_rounds", "group_errors")
        return state._replace(**{name: append_zero(getattr(state, name)) for name in grown})

    def add_experts(self, experts: Array) -> Array:
        """Return predictions from before the first group: the new trackers predicted what the old ones did."""
        return (
            experts if experts.shape[-1] == 3 * N else namespace(experts).concat([experts, experts[..., :N]], axis=-1)
        )


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
    return clamp_to_divisor(clamp_min(fast, _SLOW_SHARE * slow))


def _hedge(old: Weights, loss: Array, own_loss: Array) -> Weights:
    """Return AdaHedge after a round with these losses (de Rooij, van Erven, Grünwald, Koolen 2014).

    With late labels the weights have changed since the ask. The gap then grows by the loss of the base at the ask.
    """
    losses = old.losses + loss
    least = min_last(losses)
    lead = expand_last(least) - losses
    mix, _ = _mix(least, lead, old.gap)
    suffered = clamp_min(namespace(loss).vecdot(old.weights, loss), own_loss)
    gap = old.gap + clamp_min(suffered - (mix - old.mix), 0.0)
    return Weights(losses, gap, *_mix(least, lead, gap))


def _mix(least: Array, lead: Array, gap: Array) -> tuple[Array, Array]:
    """Return −ln(mean exp(−ηL))/η and the weights exp(−ηL)/Σ, with η = ln K/gap, for losses L = least − lead."""
    count = lead.shape[-1]
    rate = math.log(count) / clamp_to_divisor(gap)
    weights = namespace(lead).exp(expand_last(rate) * lead)
    total = sum_last(weights)
    return least - namespace(total).log(total / count) / rate, weights / expand_last(total)
