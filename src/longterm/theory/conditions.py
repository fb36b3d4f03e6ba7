"""The paper's conditions on a schedule, checked round by round up to a horizon.

    C1   1/μ_t − 1/μ_{t−1} − θ_t ≤ 0                          for every t ≥ 2
    C2   η_t G² + μ_t θ_t² − θ_t/2 ≤ 0                        for every t ≥ 2
    C3   Σ_{t=2}^{T} [1/η_t − 1/η_{t−1} − σ]₊ ≤ U_η

C3 sums positive parts, which the proof needs. The paper prints the brackets themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    """The results of checking C1, C2 and, where the proof needs it, C3."""

    c1: Condition
    c2: Condition
    c3: Condition | None = None
    argument: str = "schedule"
    """The argument that an error names."""
    remedy: str = "Lemma 5 does not cover it; a larger θ_t or smaller η_t helps C2, a slower growing 1/μ_t helps C1"

    @property
    def checked(self) -> tuple[Condition, ...]:
        """The conditions that were checked."""
        return (self.c1, self.c2) if self.c3 is None else (self.c1, self.c2, self.c3)

    @property
    def hold(self) -> bool:
        """True if all of them hold."""
        return all(condition.holds for condition in self.checked)

    def require(self) -> None:
        """Raise ScheduleError for the first condition that does not hold."""
        for condition in self.checked:
            if not condition.holds:
                raise ScheduleError(self.argument, str(condition), self.remedy, round=condition.failing_round)

    def __str__(self) -> str:
        return "\n".join(map(str, self.checked))


class FailureLog:
    """The first failing round of each condition, and the excess there, for rounds up to a horizon."""

    def __init__(self, horizon: int, statements: Mapping[str, str]) -> None:
        self._horizon, self._statements = horizon, statements
        self._first: dict[str, tuple[int, float]] = {}

    def record(self, name: str, rounds: NDArray[np.int64], excess: FloatArray, scale: FloatArray) -> None:
        """Note the first round whose excess is above 0 by more than rounding of `scale`."""
        worst = np.max(np.where(np.isnan(excess), np.inf, excess - ROUNDING * scale).reshape(len(rounds), -1), axis=1)
        if name not in self._first and np.any(worst > 0):
            k = int(np.argmax(worst > 0))
            self._first[name] = (int(rounds[k]), float(np.max(excess[k])))

    def results(self) -> list[Condition]:
        """Return the results of all conditions, in the order of the statements."""
        unbroken: tuple[int | None, float] = (None, 0.0)
        found = ((name, text, self._first.get(name, unbroken)) for name, text in self._statements.items())
        return [Condition(name, text, self._horizon, *first) for name, text, first in found]


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
    >>> from longterm.theory.schedules import ConstantSchedule
    >>> print(check_conditions(ConstantSchedule(theta=1.0, eta=0.1, mu=0.5), 10, gradient_bound=1.0).c2)
    C2 (η_t G² + μ_t θ_t² − θ_t/2 ≤ 0) fails first in round 2, by 0.1
    """
    validate.count("horizon", horizon)
    G = schedule.gradient_bound if gradient_bound is None else validate.positive("gradient_bound", gradient_bound)
    if G is None:
        raise InputError("gradient_bound", "this schedule has no G", "Give the G for which C2 is checked")
    log = FailureLog(
        horizon,
        {
            "C1": "1/μ_t − 1/μ_{t−1} − θ_t ≤ 0",
            "C2": "η_t G² + μ_t θ_t² − θ_t/2 ≤ 0",
            "C3": "Σ [1/η_t − 1/η_{t−1} − σ]₊ ≤ U_η",
        },
    )
    growth = 0.0
    for steps in tabulate(schedule, horizon):
        require_positive_steps(steps.rounds, steps.theta, steps.eta, steps.mu)
        rounds, (theta, eta, mu) = steps.rounds[1:], (part[1:] for part in steps[1:])
        if len(theta) == 0:
            continue
        log.record("C1", rounds, np.diff(1 / steps.mu, axis=0) - theta, 1 / mu)
        log.record("C2", rounds, eta * G**2 + mu * theta**2 - theta / 2, theta)
        total = growth + np.cumsum(np.maximum(np.diff(1 / steps.eta, axis=0) - strong_convexity, 0.0), axis=0)
        log.record("C3", rounds, total - growth_allowed, total)
        growth = total[-1]
    c1, c2, c3 = log.results()
    return Conditions(c1, c2, c3)
