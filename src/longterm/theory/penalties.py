"""Penalties φ on the multiplier, and the conditions of A-OGD's proof on them.

The paper's Lagrangian has the term −θ_t λ²/2. With another φ it is L_t(x, λ) = f_t(x) + λ g(x) − θ_t φ(λ). The proof
needs a convex φ with φ(0) = 0 and derivative φ', and, for every t ≥ 2 and every λ ≥ 0 that can occur,

    C1'   1/μ_t − 1/μ_{t−1} − κ θ_t ≤ 0                          κ the strong convexity of φ
    C2'   η_t G² λ² + μ_t θ_t² φ'(λ)² ≤ θ_t φ(λ)

C2' keeps φ between two quadratics, so no φ changes the rate. For φ = c λ² Table 1 admits ¼ ≤ c ≤ ½ if 2c ≥ 1 − β. The
paper has c = ½. With c = ¼ the regret bound is the same and the violation bound smaller by nearly √2.
Proof: `docs/proofs/after_the_paper.md`, "Another penalty".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import ROUNDING, Array
from longterm.errors import InputError
from longterm.theory.conditions import Conditions, FailureLog
from longterm.theory.facts import Constants
from longterm.theory.paper import PaperBound
from longterm.theory.schedules import Schedule
from longterm.theory.step_sums import descent_cost, step_sums, tabulate


@dataclass(frozen=True, eq=False)
class Penalty:
    """A penalty φ, its derivative φ', and κ with φ'(b) − φ'(a) ≥ κ (b − a) for 0 ≤ a ≤ b."""

    value: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    strong_convexity: float = 0.0
    """κ. If it is 0, the steps μ_t must not decrease."""

    @classmethod
    def square(cls, weight: float) -> Penalty:
        """Return φ(λ) = weight · λ². The paper's weight is ½."""
        c = validate.positive_scalar("penalty", weight)
        return cls(partial(_square, c), partial(_slope_of_square, c), strong_convexity=2 * c)

    @property
    def is_half_square(self) -> bool:
        """True if φ(λ) = λ²/2, the paper's penalty."""
        return isinstance(self.value, partial) and self.value.args == (0.5,)

    def __post_init__(self) -> None:
        kappa = validate.non_negative_scalar("strong_convexity", self.strong_convexity)
        validate.set_frozen(self, strong_convexity=kappa)
        require_penalty(self)


SAMPLES = 257
"""The number of λ that are tried. Sampling can refute a condition but not prove it."""


def check_penalty(penalty: Penalty, schedule: Schedule, constants: Constants, horizon: int) -> Conditions:
    """Check C1' and C2' for t = 2 … horizon and λ up to D Σ μ_t, an upper bound on λ_t.

    >>> from longterm.problems import two_dimensional
    >>> from longterm.theory.penalties import Penalty, check_penalty
    >>> from longterm.theory.schedules import ConvexSchedule
    >>> constants = two_dimensional().constants
    >>> schedule = ConvexSchedule(constants.diameter, constants.gradient_bound)
    >>> print(check_penalty(Penalty(lambda u: u**4 / 4, lambda u: u**3), schedule, constants, 100).c2)
    C2' (η_t G² λ² + μ_t θ_t² φ'(λ)² ≤ θ_t φ(λ)) fails first in round 2, by 1886.33
    """
    validate.count("horizon", horizon)
    if schedule.batch_shape:
        raise InputError("schedule", "is a grid of schedules", "Check one at a time")
    G, kappa = constants.gradient_bound, penalty.strong_convexity
    tried = np.linspace(0.0, 1.0, SAMPLES) ** 2 * constants.constraint_bound * float(step_sums(schedule, horizon).mu)
    value, slope = (np.asarray(part(tried), dtype=np.float64) for part in (penalty.value, penalty.derivative))
    statements = {"C1'": "1/μ_t − 1/μ_{t−1} − κ θ_t ≤ 0", "C2'": "η_t G² λ² + μ_t θ_t² φ'(λ)² ≤ θ_t φ(λ)"}
    log = FailureLog(horizon, statements)
    for steps in tabulate(schedule, horizon):
        rounds, (theta, eta, mu) = steps.rounds[1:], (part[1:] for part in steps[1:])
        log.record("C1'", rounds, np.diff(1 / steps.mu) - kappa * theta, 1 / mu)
        worst = np.full(theta.shape, -np.inf)
        for at, phi, pull in zip(tried.tolist(), value.tolist(), slope.tolist(), strict=True):
            excess = eta * (G * at) ** 2 + mu * (theta * pull) ** 2 - theta * phi
            worst = np.maximum(worst, excess - ROUNDING * theta * abs(phi))
        log.record("C2'", rounds, worst, np.zeros_like(worst))
    remedy = "Use QUADRATIC, or a φ between the two quadratics of `longterm.theory.penalties`"
    c1, c2 = log.results()
    return Conditions(c1, c2, argument="penalty", remedy=remedy)


def penalised_lemma_5(
    penalty: Penalty, schedule: Schedule, constants: Constants, rounds: NDArray[np.int64]
) -> PaperBound:
    """Return the bounds of Lemma 5 for A-OGD with a penalty φ. Raise ScheduleError if C1' or C2' fails.

        Σ f_t(x_t) − f_t(x*) ≤ 𝓡 of Lemma 5
        Σ g(x_t)             ≤ min over λ > 0 of ( 𝓡 + F T + S_θ φ(λ) + λ² [1/μ_1 − κθ_1]₊/2 ) / λ

    The minimum is taken over a fine grid, because every λ gives a valid bound.

    >>> import numpy as np
    >>> from longterm.problems import two_dimensional
    >>> from longterm.theory.penalties import Penalty, penalised_lemma_5
    >>> from longterm.theory.schedules import ConvexSchedule
    >>> c = two_dimensional().constants
    >>> schedule = ConvexSchedule(c.diameter, c.gradient_bound)
    >>> [round(float(part), 1) for part in penalised_lemma_5(Penalty.square(0.25), schedule, c, np.asarray(10_000))]
    [215.4, 3976.6]
    """
    c = constants
    check_penalty(penalty, schedule, c, int(rounds.max())).require()
    sums = step_sums(schedule, rounds, c.strong_convexity)
    regret = descent_cost(sums, c, c.gradient_bound) + c.constraint_bound**2 * sums.mu
    first = schedule.at(np.asarray(1), np.zeros(1))
    start = max(float(1 / first.mu - penalty.strong_convexity * first.theta), 0.0)
    gain = regret + c.loss_range * rounds
    # The best λ for the paper's penalty, times a grid around 1.
    tried = (np.sqrt(2 * gain / (sums.theta + start)))[..., None] * np.geomspace(0.05, 20, 2001)
    cost = gain[..., None] + sums.theta[..., None] * np.asarray(penalty.value(tried)) + start * tried**2 / 2
    return PaperBound(regret, np.min(cost / tried, axis=-1))


def require_penalty(penalty: Penalty) -> None:
    """Raise InputError if a sample shows that φ(0) ≠ 0, φ' is not the derivative, or κ is too large."""
    points = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 121)])
    with np.errstate(all="ignore"):  # values that are not finite are refused below
        value, slope = (np.asarray(part(points), dtype=np.float64) for part in (penalty.value, penalty.derivative))
    if value.shape != points.shape or slope.shape != points.shape:
        what = f"returned shapes {value.shape} and {slope.shape} for λ of shape {points.shape}"
        raise InputError("penalty", what, "Write φ and φ' for arrays of any shape")
    scale = np.abs(value).max() + 1e-300
    if not np.all(np.isfinite(value + slope)) or value[0] != 0:
        raise InputError("penalty", f"is {value[0]:g} at 0, or not finite", "Give a φ with φ(0) = 0, finite on [0, ∞)")
    # Convexity with derivative φ' and modulus κ: φ(b) ≥ φ(a) + φ'(a)(b − a) + (κ/2)(b − a)² for all a and b.
    step = points[None, :] - points[:, None]
    gap = value[:, None] + slope[:, None] * step + penalty.strong_convexity / 2 * step**2 - value[None, :]
    i, j = np.unravel_index(int(np.argmax(gap)), gap.shape)
    if gap[i, j] > 1e-9 * min(scale, 1 + abs(value[i]) + abs(value[j])):
        what = f"violates φ(b) ≥ φ(a) + φ'(a)(b − a) + κ(b − a)²/2 at a = {points[i]:g}, b = {points[j]:g}"
        raise InputError("penalty", what, "Give a convex φ, its own derivative, and a κ that holds")


def _square(weight: float, multiplier: Array) -> Array:
    return weight * multiplier**2


def _slope_of_square(weight: float, multiplier: Array) -> Array:
    return 2 * weight * multiplier


QUADRATIC = Penalty.square(0.5)
"""The paper's penalty φ(λ) = λ²/2."""
