"""The paper's conditions on a schedule, checked round by round up to a horizon.

With the penalty θ_t c λ² in the Lagrangian (the paper has c = ½),

    C1   1/μ_t − 1/μ_{t−1} − 2c θ_t ≤ 0                       for every t ≥ 2
    C2   η_t G² + 4c² μ_t θ_t² − c θ_t ≤ 0                    for every t ≥ 2
    C3   Σ_{t=2}^{T} [1/η_t − 1/η_{t−1} − σ]₊ ≤ U_η

C3 sums positive parts, which the proof needs. The paper prints the brackets themselves. Table 1 passes C2 for
¼ ≤ c ≤ ½, and C1 if also 2c ≥ 1 − β.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import ROUNDING, FloatArray
from longterm._base.validate import Hyper
from longterm.errors import InputError, ScheduleError
from longterm.theory.schedules import Schedule, require_positive_steps
from longterm.theory.step_sums import chunks


@dataclass
class Condition:
    """The result of checking one condition: the first failing round, if any, and the excess there."""

    name: str
    statement: str
    horizon: int
    failing_round: int | None = None
    excess: float = 0.0

    @property
    def holds(self) -> bool:
        """True if it holds in every round up to the horizon."""
        return self.failing_round is None

    def record(self, rounds: NDArray[np.int64], excess: FloatArray, scale: FloatArray) -> None:
        """Note the first round whose excess is above 0 by more than rounding of `scale`."""
        worst = np.max(np.where(np.isnan(excess), np.inf, excess - ROUNDING * scale).reshape(len(rounds), -1), axis=1)
        if self.holds and np.any(worst > 0):
            k = int(np.argmax(worst > 0))
            self.failing_round, self.excess = int(rounds[k]), float(np.max(excess[k]))

    def __str__(self) -> str:
        if self.holds:
            return f"{self.name} holds up to round {self.horizon}"
        return f"{self.name} ({self.statement}) fails first in round {self.failing_round}, by {self.excess:.6g}"


class Conditions(NamedTuple):
    """The results of checking C1, C2 and C3."""

    c1: Condition
    c2: Condition
    c3: Condition

    @property
    def hold(self) -> bool:
        """True if all of them hold."""
        return all(condition.holds for condition in self)

    def require(self) -> None:
        """Raise ScheduleError for the first condition that does not hold."""
        for condition in self:
            if not condition.holds:
                remedy = "For C2, use a larger θ_t or a smaller η_t. For C1, let 1/μ_t grow more slowly"
                what, t = str(condition), condition.failing_round
                raise ScheduleError("schedule", what, f"Lemma 5 does not cover it; {remedy}", round=t)


def check_conditions(
    schedule: Schedule,
    horizon: int,
    *,
    gradient_bound: Hyper | None = None,
    strong_convexity: float = 0.0,
    growth_allowed: float = np.inf,
    penalty: float = 0.5,
) -> Conditions:
    """Check C1–C3 for t = 2 … horizon.

    `gradient_bound` is G, by default that of the schedule. `growth_allowed` is U_η, by default any finite number.
    `penalty` is c.

    >>> from longterm.theory.conditions import check_conditions
    >>> from longterm.theory.schedules import ConstantSchedule
    >>> print(check_conditions(ConstantSchedule(theta=1.0, eta=0.1, mu=0.5), 10, gradient_bound=1.0).c2)
    C2 (η_t G² + μ_t θ_t² − θ_t/2 ≤ 0) fails first in round 2, by 0.1
    """
    validate.count("horizon", horizon)
    G = schedule.gradient_bound if gradient_bound is None else validate.positive("gradient_bound", gradient_bound)
    if G is None:
        raise InputError("gradient_bound", "this schedule has no G", "Give the G for which C2 is checked")
    c, is_paper = validate.positive_scalar("penalty", penalty), penalty == 0.5
    first = "1/μ_t − 1/μ_{t−1} − θ_t ≤ 0" if is_paper else f"1/μ_t − 1/μ_{{t−1}} − 2cθ_t ≤ 0, c = {c:g}"
    second = "η_t G² + μ_t θ_t² − θ_t/2 ≤ 0" if is_paper else f"η_t G² + 4c²μ_t θ_t² − cθ_t ≤ 0, c = {c:g}"
    statements = {"C1": first, "C2": second, "C3": "Σ [1/η_t − 1/η_{t−1} − σ]₊ ≤ U_η"}
    found = Conditions(*(Condition(name, statement, horizon) for name, statement in statements.items()))
    growth = 0.0
    for steps in chunks(schedule, horizon):
        require_positive_steps(steps.rounds, steps.theta, steps.eta, steps.mu)
        rounds, (theta, eta, mu) = steps.rounds[1:], (part[1:] for part in steps[1:])
        if len(theta) == 0:
            continue
        found.c1.record(rounds, np.diff(1 / steps.mu, axis=0) - 2 * c * theta, 1 / mu)
        found.c2.record(rounds, eta * G**2 + mu * (2 * c * theta) ** 2 - c * theta, theta)
        total = growth + np.cumsum(np.maximum(np.diff(1 / steps.eta, axis=0) - strong_convexity, 0.0), axis=0)
        found.c3.record(rounds, total - growth_allowed, total)
        growth = total[-1]
    return found
