"""The paper's conditions on a schedule, checked round by round up to a horizon.

    C1   1/μ_t − 1/μ_{t−1} − θ_t ≤ 0                          for every t ≥ 2
    C2   η_t G² + μ_t θ_t² − θ_t/2 ≤ 0                        for every t ≥ 2
    C3   Σ_{t=2}^{T} [1/η_t − 1/η_{t−1} − σ]₊ ≤ U_η

C3 sums positive parts. The paper sums the brackets themselves, which its proof does not allow if one of them is
negative. Table 1 is not affected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import ROUNDING, FloatArray
from longterm._validate import Hyper
from longterm.errors import InputError, ScheduleError
from longterm.theory.schedules import Schedule, require_positive_steps
from longterm.theory.step_sums import tabulate


@dataclass(frozen=True)
class Condition:
    """The result of checking one condition."""

    name: str
    statement: str
    horizon: int
    failing_round: int | None
    excess: float

    @property
    def holds(self) -> bool:
        """True if it holds in every round up to the horizon."""
        return self.failing_round is None

    def __str__(self) -> str:
        if self.holds:
            return f"{self.name} holds up to round {self.horizon}"
        return f"{self.name} ({self.statement}) fails first in round {self.failing_round}, by {self.excess:.6g}"


@dataclass(frozen=True)
class Conditions:
    """The results of checking C1, C2 and C3."""

    c1: Condition
    c2: Condition
    c3: Condition

    @property
    def hold(self) -> bool:
        """True if all three hold."""
        return self.c1.holds and self.c2.holds and self.c3.holds

    def require(self) -> None:
        """Raise ScheduleError for the first condition that does not hold."""
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

    `gradient_bound` is G, by default that of the schedule. `growth_allowed` is U_η, by default any finite number.

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
        raise InputError("gradient_bound", "this schedule has no G", "Give the G for which C2 is checked")
    first: dict[str, tuple[int, float]] = {}

    def record(name: str, rounds: NDArray[np.int64], excess: FloatArray, scale: FloatArray) -> None:
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
        record("C1", steps.rounds[1:], rise - theta, 1 / mu)
        record("C2", steps.rounds[1:], eta * G**2 + mu * theta**2 - theta / 2, theta)
        steepening = np.maximum(np.diff(1 / steps.eta, axis=0) - strong_convexity, 0.0)
        total = growth + np.cumsum(steepening, axis=0)
        record("C3", steps.rounds[1:], total - growth_allowed, total)
        growth = total[-1]
    statements = {
        "C1": "1/μ_t − 1/μ_{t−1} − θ_t ≤ 0",
        "C2": "η_t G² + μ_t θ_t² − θ_t/2 ≤ 0",
        "C3": "Σ [1/η_t − 1/η_{t−1} − σ]₊ ≤ U_η",
    }
    conditions = [Condition(c, statement, horizon, *first.get(c, (None, 0.0))) for c, statement in statements.items()]
    return Conditions(*conditions)
