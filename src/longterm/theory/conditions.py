"""The paper's conditions on a schedule, checked round by round up to a horizon.

    C1   1/μ_t − 1/μ_{t−1} − θ_t ≤ 0                          for every t ≥ 2
    C2   η_t G² + μ_t θ_t² − θ_t/2 ≤ 0                        for every t ≥ 2
    C3   Σ_{t=2}^{T} [1/η_t − 1/η_{t−1} − σ]₊ ≤ U_η

In C3 the positive parts are summed: the paper sums the brackets themselves, which its proof does not
allow when one of them is negative (harmless for Table 1).

Sums that bounds are made of: of a schedule's steps, exactly; of powers of t, by closed forms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm import _validate as validate
from longterm._arrays import ROUNDING, FloatArray
from longterm._validate import Hyper
from longterm.errors import InputError, ScheduleError
from longterm.theory.schedules import Schedule, require_positive_steps


@dataclass(frozen=True)
class Condition:
    """One condition, checked."""

    name: str
    statement: str
    horizon: int
    failing_round: int | None
    excess: float

    @property
    def holds(self) -> bool:
        """Whether it held in every round up to the horizon."""
        return self.failing_round is None

    def __str__(self) -> str:
        if self.holds:
            return f"{self.name} holds up to round {self.horizon}"
        return f"{self.name} ({self.statement}) fails first in round {self.failing_round}, by {self.excess:.6g}"


@dataclass(frozen=True)
class Conditions:
    """C1, C2 and C3, checked."""

    c1: Condition
    c2: Condition
    c3: Condition

    @property
    def hold(self) -> bool:
        """Whether all three held."""
        return self.c1.holds and self.c2.holds and self.c3.holds

    def require(self) -> None:
        """Raise a ScheduleError for the first condition that does not hold."""
        for condition in (self.c1, self.c2, self.c3):
            if not condition.holds:
                raise ScheduleError(
                    "schedule",
                    str(condition),
                    "Lemma 5 does not cover it; a larger θ_t or smaller η_t helps C2, a slower growing 1/μ_t helps C1",
                    round=condition.failing_round,
                )

    def __str__(self) -> str:
        return "\n".join(str(condition) for condition in (self.c1, self.c2, self.c3))


def check_conditions(
    schedule: Schedule,
    horizon: int,
    *,
    gradient_bound: Hyper | None = None,
    strong_convexity: float = 0.0,
    growth_allowed: float = np.inf,
) -> Conditions:
    """Check C1–C3 for t = 2 … horizon.

    `gradient_bound` is G, by default the one the schedule was made for; `growth_allowed` is U_η, by default any
    finite number.

    >>> from longterm.theory.conditions import check_conditions
    >>> from longterm.theory.schedules import ConstantSchedule, ConvexSchedule
    >>> check_conditions(ConvexSchedule(diameter=2.0, gradient_bound=1.0, beta=2 / 3), 1000).hold
    True
    >>> print(check_conditions(ConstantSchedule(theta=1.0, eta=0.1, mu=0.5), 10, gradient_bound=1.0).c2)
    C2 (η_t G² + μ_t θ_t² − θ_t/2 ≤ 0) fails first in round 2, by 0.1
    """
    validate.count("horizon", horizon)
    G = schedule.gradient_bound if gradient_bound is None else validate.positive("gradient_bound", gradient_bound)
    if G is None:
        raise InputError("gradient_bound", "this schedule was made for no G", "Say which G its C2 is to be checked for")
    first: dict[str, tuple[int, float]] = {}

    def note(name: str, rounds: NDArray[np.int64], excess: FloatArray, scale: FloatArray) -> None:
        worst = np.max(np.where(np.isnan(excess), np.inf, excess - ROUNDING * scale).reshape(len(rounds), -1), axis=1)
        if name not in first and np.any(worst > 0):
            k = int(np.argmax(worst > 0))
            first[name] = (int(rounds[k]), float(np.max(excess[k])))

    growth = 0.0
    for steps in tabulate(schedule, horizon):
        require_positive_steps(steps.rounds, steps.theta, steps.eta, steps.mu)
        theta, eta, mu = steps.theta[1:], steps.eta[1:], steps.mu[1:]
        if len(theta) == 0:
            continue
        rise = np.diff(1 / steps.mu, axis=0)
        note("C1", steps.rounds[1:], rise - theta, 1 / mu)
        note("C2", steps.rounds[1:], eta * G**2 + mu * theta**2 - theta / 2, theta)
        steepening = np.maximum(np.diff(1 / steps.eta, axis=0) - strong_convexity, 0.0)
        total = growth + np.cumsum(steepening, axis=0)
        note("C3", steps.rounds[1:], total - growth_allowed, total)
        growth = total[-1]
    statements = {
        "C1": "1/μ_t − 1/μ_{t−1} − θ_t ≤ 0",
        "C2": "η_t G² + μ_t θ_t² − θ_t/2 ≤ 0",
        "C3": "Σ [1/η_t − 1/η_{t−1} − σ]₊ ≤ U_η",
    }
    conditions = [Condition(c, statement, horizon, *first.get(c, (None, 0.0))) for c, statement in statements.items()]
    return Conditions(*conditions)


CHUNK = 2**16
"""Rounds tabulated at a time, so that a long horizon takes no more memory than a short one."""


class Tabulated(NamedTuple):
    """θ, η, μ of consecutive rounds, the rounds on the leading axis, then the schedule's batch axes."""

    rounds: NDArray[np.int64]
    theta: FloatArray
    eta: FloatArray
    mu: FloatArray


class StepSums(NamedTuple):
    """The sums over rounds 1 … T that Lemma 5 speaks of, for each horizon asked for (leading axis)."""

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


def tabulate(schedule: Schedule, horizon: int) -> Iterator[Tabulated]:
    """θ_t, η_t, μ_t for t = 1 … horizon, chunk by chunk; each chunk starts with the last round of the one before."""
    batch = schedule.batch_shape
    like = np.zeros(1)
    for first in range(1, horizon + 1, CHUNK):
        t = np.arange(max(first - 1, 1), min(first + CHUNK, horizon + 1))
        steps = schedule.at(t.reshape(-1, *(1 for _ in batch)), like)
        theta, eta, mu = (np.broadcast_to(np.asarray(s, dtype=np.float64), (len(t), *batch)) for s in steps)
        yield Tabulated(t, theta, eta, mu)


def step_sums(schedule: Schedule, rounds: ArrayLike, strong_convexity: float = 0.0) -> StepSums:
    """The sums up to each of `rounds`: one horizon, or a list of them.

    >>> from longterm.theory.schedules import ConvexSchedule
    >>> from longterm.theory.conditions import step_sums
    >>> sums = step_sums(ConvexSchedule(diameter=2.0, gradient_bound=1.0, beta=0.5), 4)
    >>> float(sums.growth), float(sums.delta_eta), float(sums.delta_mu)
    (1.0, 1.0, 6.0)
    """
    asked = validate.horizons("rounds", rounds)
    horizons, place = np.unique(asked, return_inverse=True)
    kept: list[tuple[FloatArray, ...]] = []
    totals = tuple(np.zeros(schedule.batch_shape) for _ in range(4))
    delta_eta = delta_mu = np.zeros(schedule.batch_shape)
    for steps in tabulate(schedule, int(horizons[-1])):
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
        kept.append(tuple(column[inside] for column in sums))
        totals = tuple(column[-1] for column in sums)
    theta, eta, mu, growths = (
        np.concatenate(column)[place].reshape(asked.shape + schedule.batch_shape) for column in zip(*kept, strict=True)
    )
    return StepSums(theta, eta, mu, growths, delta_eta, delta_mu)


def power_sum(T: ArrayLike, s: ArrayLike) -> FloatArray:
    """Σ_{t≤T} t^{−s} at most, for s ≥ 0: the first term, and the integral (T^{1−s} − 1)/(1 − s) from 1 to T.

    It is right near s = 1 as well, where the difference above would lose every digit, and at s = 1, where it is ln T.

    >>> import numpy as np
    >>> from longterm.theory.conditions import power_sum
    >>> [round(float(power_sum(1000, s)), 3) for s in (0.5, np.nextafter(1.0, 0.0), 1.0)]
    [62.246, 7.908, 7.908]
    """
    logarithm, rest = np.log(T), 1 - np.asarray(s, dtype=np.float64)
    one = rest == 0
    return np.asarray(1 + np.where(one, logarithm, np.expm1(rest * logarithm) / np.where(one, 1.0, rest)))
