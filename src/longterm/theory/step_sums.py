"""Sums in the bounds: exact sums of a schedule's steps, and closed forms for powers of t."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.problems.constants import Constants
from longterm.theory.schedules import Schedule

CHUNK = 2**16
"""The number of rounds per chunk, which bounds the memory for long horizons."""


class Tabulated(NamedTuple):
    """θ, η, μ of consecutive rounds. Axes are rounds, then the schedule's batch axes."""

    rounds: NDArray[np.int64]
    theta: FloatArray
    eta: FloatArray
    mu: FloatArray


class StepSums(NamedTuple):
    """The sums of Lemma 5 over rounds 1 … T, for each requested horizon (leading axis)."""

    theta: FloatArray
    """S_θ = Σ θ_t."""
    eta: FloatArray
    """S_η = Σ η_t."""
    mu: FloatArray
    """S_μ = Σ μ_t."""
    growth: FloatArray
    """U_η = Σ_{t≥2} [1/η_t − 1/η_{t−1} − σ]₊."""
    delta_eta: FloatArray
    """δ_η = 1/η_1 − σ."""
    delta_mu: FloatArray
    """δ_μ = 1/μ_1 − θ_1."""


def tabulate(schedule: Schedule, first: int, last: int) -> Tabulated:
    """Return θ_t, η_t, μ_t for t = first … last."""
    t, batch = np.arange(first, last + 1), schedule.batch_shape
    steps = schedule.at(t.reshape(-1, *(1 for _ in batch)), np.zeros(1))
    theta, eta, mu = (np.broadcast_to(np.asarray(s, dtype=np.float64), (len(t), *batch)) for s in steps)
    return Tabulated(t, theta, eta, mu)


def chunks(schedule: Schedule, horizon: int) -> Iterator[Tabulated]:
    """Yield θ_t, η_t, μ_t for t = 1 … horizon. Each chunk starts with the last round of the previous one."""
    for first in range(1, horizon + 1, CHUNK):
        yield tabulate(schedule, max(first - 1, 1), min(first + CHUNK - 1, horizon))


def step_sums(schedule: Schedule, rounds: ArrayLike, strong_convexity: float = 0.0) -> StepSums:
    """Return the sums up to each of `rounds`, one horizon or a list.

    >>> from longterm.theory.schedules import ConvexSchedule
    >>> from longterm.theory.step_sums import step_sums
    >>> sums = step_sums(ConvexSchedule(diameter=2.0, gradient_bound=1.0, beta=0.5), 4)
    >>> float(sums.growth), float(sums.delta_eta), float(sums.delta_mu)
    (1.0, 1.0, 6.0)
    """
    requested = validate.horizons("rounds", rounds)
    horizons, place = np.unique(requested, return_inverse=True)
    parts: list[tuple[FloatArray, ...]] = []
    totals = tuple(np.zeros(schedule.batch_shape) for _ in range(4))
    delta_eta = delta_mu = np.zeros(schedule.batch_shape)
    for steps in chunks(schedule, int(horizons[-1])):
        growth = np.maximum(np.diff(1 / steps.eta, axis=0) - strong_convexity, 0.0)
        if steps.rounds[0] == 1:
            delta_eta, delta_mu = 1 / steps.eta[0] - strong_convexity, 1 / steps.mu[0] - steps.theta[0]
            new = steps
            growth = np.concatenate([np.zeros((1, *growth.shape[1:])), growth])
        else:
            new = Tabulated(steps.rounds[1:], steps.theta[1:], steps.eta[1:], steps.mu[1:])
        sums = tuple(
            total + np.cumsum(column, axis=0)
            for total, column in zip(totals, (new.theta, new.eta, new.mu, growth), strict=True)
        )
        inside = horizons[(horizons >= new.rounds[0]) & (horizons <= new.rounds[-1])] - new.rounds[0]
        parts.append(tuple(column[inside] for column in sums))
        totals = tuple(column[-1] for column in sums)
    theta, eta, mu, growths = (
        np.concatenate(column)[place].reshape(requested.shape + schedule.batch_shape)
        for column in zip(*parts, strict=True)
    )
    return StepSums(theta, eta, mu, growths, delta_eta, delta_mu)


def descent_cost(sums: StepSums, constants: Constants, gradient_bound: float) -> FloatArray:
    """Return r² [δ_η]₊/2 + (Δ²/2) U_η + G² S_η, the cost of the x-steps in Lemma 5 for a bound G on their gradients."""
    # The first term is dropped if 1/η_1 < σ, where it would be negative.
    start = constants.radius**2 * np.maximum(sums.delta_eta, 0.0) / 2
    return np.asarray(start + constants.diameter**2 / 2 * sums.growth + gradient_bound**2 * sums.eta)


def power_sum(T: ArrayLike, s: ArrayLike) -> FloatArray:
    """Return 1 + (T^{1−s} − 1)/(1 − s), an upper bound on Σ_{t≤T} t^{−s} for s ≥ 0: 1 + ln T at s = 1.

    For T = 0 it is 1, as for T = 1.

    >>> import numpy as np
    >>> from longterm.theory.step_sums import power_sum
    >>> [round(float(power_sum(1000, s)), 3) for s in (0.5, np.nextafter(1.0, 0.0), 1.0)]
    [62.246, 7.908, 7.908]
    """
    logarithm, rest = np.log(np.maximum(T, 1)), 1 - np.asarray(s, dtype=np.float64)
    one = rest == 0
    return np.asarray(1 + np.where(one, logarithm, np.expm1(rest * logarithm) / np.where(one, 1.0, rest)))
