"""Rules for the multipliers of a constrained training loop: pure functions of arrays of any library, or of floats.

A training loop minimises f(x) + ⟨λ, g(x)⟩ by any optimiser. After its step the rule moves λ by the violations g(x),
measured on the same minibatch. Inequalities g ≤ 0 have λ ≥ 0, equalities g = 0 have λ of either sign.

Proved for convex f and g with bounded subgradients and a primal of regret O(√T): with steps of order 1/√T, `ascent`,
`optimistic` and `Entropic` (for λ* below a known bound) and, without one, `Regularised` have mean regret and violation
that vanish (`docs/proofs/guarantees.md`). Nothing is proved for neural networks, for ν > 0, or for `Adaptive`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import Array
from longterm._base.display import ReprMixin
from longterm._base.selection import maximum, where
from longterm.errors import InputError
from longterm.money.prices import entropic_step

__all__ = [
    "Adaptive",
    "Entropic",
    "ProportionalIntegral",
    "Regularised",
    "Rule",
    "TrainingMultiplierState",
    "ascent",
    "init",
    "optimistic",
    "update",
]


class TrainingMultiplierState(NamedTuple):
    """Multipliers and their history, one entry per constraint.

    Attributes
    ----------
    multiplier, floor : array (m,)
        λ and its lower bound: 0 for an inequality g ≤ 0, −∞ for an equality g = 0.
    estimate, visits : array (m,)
        Running mean of the violations, and the number of updates.
    size, step : array (m,)
        Largest |violation|, and the present step of `Adaptive`.
    flips, age, longest : array (m,)
        Changes of the estimate's sign, updates since the last one, and the longest time between two.
    """

    multiplier: Array
    floor: Array
    estimate: Array
    visits: Array
    size: Array
    step: Array
    flips: Array
    age: Array
    longest: Array


History = tuple[Array, ...]
"""The fields of a state from `size` on."""


class Rule(ReprMixin):
    """A rule that changes multipliers after each step. `start` is the first λ.

    `smoothing` is the weight of the old value in the running mean of violations.
    """

    start: float = 0.0
    smoothing: float = 0.9
    first_step: ClassVar[float] = 0.0
    takes_equalities: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks = {
            "step": validate.positive_scalar,
            "start": validate.positive_scalar,
            "theta_0": validate.positive_scalar,
            "gain": validate.non_negative_scalar,
            "beta": validate.open_unit_interval,
            "smoothing": _share,
        }
        for name in checks.keys() & getattr(self, "__dataclass_fields__", {}).keys():
            validate.validate_fields(self, checks[name], name)

    @abstractmethod
    def move(
        self, state: TrainingMultiplierState, violations: Array, before: Array, after: Array
    ) -> tuple[Array, History]:
        """Return λ before its projection, given the running means before and after these violations."""


@dataclass(frozen=True, repr=False)
class ProportionalIntegral(Rule):
    """Change the multiplier with the violation and with its trend, which damps oscillations.

    This is νPI (Sohrabi et al. 2024): λ ← λ + η (g_t + κ (ξ_t − ξ_{t−1})), ξ_t = ν ξ_{t−1} + (1 − ν) g_t.

    Parameters
    ----------
    step, gain : float
        η > 0 and κ ≥ 0.
    smoothing : float
        ν in [0, 1).
    """

    step: float
    gain: float = 0.0
    smoothing: float = 0.0

    def move(
        self, state: TrainingMultiplierState, violations: Array, before: Array, after: Array
    ) -> tuple[Array, History]:
        return state.multiplier + self.step * (violations + self.gain * (after - before)), state[4:]


def ascent(step: float) -> ProportionalIntegral:
    """Return projected gradient ascent, λ ← [λ + η g]₊."""
    return ProportionalIntegral(step)


def optimistic(step: float) -> ProportionalIntegral:
    """Return optimistic ascent, λ ← [λ + η (2 g_t − g_{t−1})]₊."""
    return ProportionalIntegral(step, gain=1.0)


@dataclass(frozen=True, repr=False)
class Entropic(Rule):
    """Change the multiplier by factors: λ ← λ e^{η g}, for inequalities.

    Parameters
    ----------
    step, start : float
        η, per unit of the violation, and the first λ.
    """

    step: float
    start: float = 0.01
    takes_equalities: ClassVar[bool] = False

    def move(
        self, state: TrainingMultiplierState, violations: Array, before: Array, after: Array
    ) -> tuple[Array, History]:
        return entropic_step(state.multiplier, self.step * violations, 0.0 * violations + self.start), state[4:]


@dataclass(frozen=True, repr=False)
class Regularised(Rule):
    """Change the multiplier as A-OGD does, with a pull towards 0 that fades.

    λ ← [λ + μ_t (g − θ_t λ)]₊ with θ_t = θ_0/t^β and μ_t = 1/(θ_t (t + 1)); see `Multiplier`.

    Parameters
    ----------
    theta_0, beta : float
        θ_0 > 0 (larger favours the objective) and β in (0, 1) (larger favours the constraints).
    """

    theta_0: float
    beta: float = 2 / 3

    def move(
        self, state: TrainingMultiplierState, violations: Array, before: Array, after: Array
    ) -> tuple[Array, History]:
        t = state.visits + 1.0
        theta = self.theta_0 / t**self.beta
        return state.multiplier + (violations - theta * state.multiplier) / (theta * (t + 1.0)), state[4:]


@dataclass(frozen=True, repr=False)
class Adaptive(Rule):
    """The default: integral and proportional steps whose size follows from the signs of the violations.

    M λ ← M λ + s (g_t + 10 (ξ_t − ξ_{t−1}))/M, with ξ the running mean of the violations and M the largest |g| so far.
    The unit of g does not matter: λ g is the same in every unit. When M grows, M λ is kept. The step s has the unit of
    the objective. It starts at 0.001, which suits objectives of order 0.01 to 1000. It grows by 2 % per update, up to
    10⁴, while a violation has lasted longer than any time between two changes of ξ's sign. Means below M/1000 may be
    rounding errors and do not count as lasting. The n-th change multiplies s by 1 − 0.75/(n + 1), so that s ~ n^−¾.

    Decreasing a step at changes of sign only is Kesten's rule (1958). It converges, with an exponent in (½, 1], for one
    constraint, independent noise and g decreasing in λ. The growth, and λ and x moving together, have no proof.
    """

    first_step: ClassVar[float] = 0.001

    def move(
        self, state: TrainingMultiplierState, violations: Array, before: Array, after: Array
    ) -> tuple[Array, History]:
        _, floor, _, _, size, step, flips, age, longest = state
        size, age = maximum(size, abs(violations)), age + 1.0
        flipped = before * after < 0.0
        lasting = (age > longest) & (after > floor) & (abs(after) > _ROUNDING * size) & (step < _LARGEST_STEP)
        step = where(flipped, step * (1.0 - _DECAY / (flips + 2.0)), where(lasting, step * (1.0 + _GROWTH), step))
        unit = size + _TINY
        moved = (state.multiplier * state.size + step * (violations + _GAIN * (after - before)) / unit) / unit
        longest = maximum(longest, flipped * (age - 1.0))
        return moved, (size, step, flips + flipped, where(flipped, 0.0, age), longest)


_GROWTH, _DECAY, _GAIN, _LARGEST_STEP, _ROUNDING, _TINY = 0.02, 0.75, 10.0, 1e4, 1e-3, 1e-30


def init(zeros: Array, rule: Rule, equality: Array = False) -> TrainingMultiplierState:
    """Return the state before the first update, for constraints in the shape, library and dtype of `zeros`.

    Entries of `equality` are True for constraints g = 0 and False for g ≤ 0.
    """
    blank = TrainingMultiplierState(*(zeros + 0.0 for _ in TrainingMultiplierState._fields))
    floor = where(equality, zeros - math.inf, zeros)
    return blank._replace(multiplier=zeros + rule.start, floor=floor, step=zeros + rule.first_step)


def update(rule: Rule, state: TrainingMultiplierState, violations: Array) -> TrainingMultiplierState:
    """Return the state after violations (m,).

    Entries are independent, so Python floats do as well as arrays: one constraint at a time.
    """
    before = where(state.visits == 0.0, violations, state.estimate)
    after = before + (1.0 - rule.smoothing) * (violations - before)
    moved, history = rule.move(state, violations, before, after)
    return TrainingMultiplierState(maximum(moved, state.floor), state.floor, after, state.visits + 1.0, *history)


def constraint_kinds(constraints: int, rule: Rule, equality: Any) -> NDArray[np.bool_]:
    """Return True for each equality, as an array (m,). Raise unless the arguments of a training loop fit together."""
    count = validate.count("constraints", constraints)
    if not isinstance(rule, Rule):
        raise InputError(
            "rule", f"{rule!r} is not a rule", "Give one of longterm.compat.multipliers, such as ascent(0.1)"
        )
    kinds = np.asarray(equality)
    if kinds.dtype != bool or kinds.shape not in ((), (count,)):
        raise InputError(
            "equality", f"{equality!r} is not understood", f"Give True, False or a list of {count} booleans"
        )
    if kinds.any() and not rule.takes_equalities:
        what = f"{type(rule).__name__} keeps multipliers positive"
        raise InputError("rule", what, "Write the equality as two inequalities, or use another rule")
    return np.broadcast_to(kinds, (count,)).copy()


def precision_error(dtype: Any) -> InputError:
    """Return the error for multipliers that are not in single or double precision."""
    remedy = "Use float32 or float64 for the multipliers. Violations may have half precision"
    return InputError("dtype", f"{dtype} is too coarse for small steps", remedy)


def violations_error(violations: Any, shape: tuple[int, ...], wanted: str) -> InputError:
    """Return the error for violations that are not floats, or not in the wanted kind of array, or not in this shape."""
    given = f"has type {type(violations).__name__}"
    if hasattr(violations, "shape"):
        given += f", dtype {violations.dtype} and shape {tuple(violations.shape)}"
    return InputError("violations", given, f"Give a {wanted} of floats, one per multiplier: shape {tuple(shape)}")


def _share(name: str, value: Any) -> float:
    share = validate.non_negative_scalar(name, value)
    if share >= 1.0:
        raise InputError(name, f"{value!r} is not below 1", "Give 0.9 for a mean over about ten updates")
    return share
