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
from typing import ClassVar, NamedTuple

from longterm import _validate as validate
from longterm._arrays import Array
from longterm._display import ReprMixin
from longterm.decisions.prices import entropic_step, maximum, where
from longterm.errors import InputError


class DualState(NamedTuple):
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
    """A rule for multipliers; `start` is the first λ, `smoothing` the weight of the old value in the running mean."""

    start: float = 0.0
    smoothing: float = 0.9
    first_step: ClassVar[float] = 0.0
    takes_equalities: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0.0 <= self.smoothing < 1.0:
            what = f"{self.smoothing!r} is not in [0, 1)"
            raise InputError("smoothing", what, "Give 0.9 for a mean over about ten updates")
        for name in ("step", "start", "theta_0"):
            if name in getattr(self, "__dataclass_fields__", ()):
                validate.validate_fields(self, validate.positive_scalar, name)

    @abstractmethod
    def move(self, state: DualState, violations: Array, before: Array, after: Array) -> tuple[Array, History]:
        """Return λ before its projection, given the running means before and after these violations."""


@dataclass(frozen=True, repr=False)
class ProportionalIntegral(Rule):
    """νPI: λ ← λ + η (g_t + κ (ξ_t − ξ_{t−1})), ξ_t = ν ξ_{t−1} + (1 − ν) g_t (Sohrabi et al. 2024).

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

    def move(self, state: DualState, violations: Array, before: Array, after: Array) -> tuple[Array, History]:
        return state.multiplier + self.step * (violations + self.gain * (after - before)), state[4:]


def ascent(step: float) -> ProportionalIntegral:
    """Return projected gradient ascent, λ ← [λ + η g]₊."""
    return ProportionalIntegral(step)


def optimistic(step: float) -> ProportionalIntegral:
    """Return optimistic ascent, λ ← [λ + η (2 g_t − g_{t−1})]₊."""
    return ProportionalIntegral(step, gain=1.0)


@dataclass(frozen=True, repr=False)
class Entropic(Rule):
    """Multiplicative steps λ ← λ e^{η g} for inequalities.

    Parameters
    ----------
    step, start : float
        η, per unit of the violation, and the first λ.
    """

    step: float
    start: float = 0.01
    takes_equalities: ClassVar[bool] = False

    def move(self, state: DualState, violations: Array, before: Array, after: Array) -> tuple[Array, History]:
        return entropic_step(state.multiplier, self.step * violations, 0.0 * violations + self.start), state[4:]


@dataclass(frozen=True, repr=False)
class Regularised(Rule):
    """A-OGD's ascent λ ← [λ + μ_t (g − θ_t λ)]₊ with θ_t = θ_0/t^β and μ_t = 1/(θ_t (t + 1)); see `Multiplier`.

    Parameters
    ----------
    theta_0, beta : float
        θ_0 > 0 (larger favours the objective) and β in (0, 1) (larger favours the constraints).
    """

    theta_0: float
    beta: float = 2 / 3

    def move(self, state: DualState, violations: Array, before: Array, after: Array) -> tuple[Array, History]:
        t = state.visits + 1.0
        theta = self.theta_0 / t**self.beta
        return state.multiplier + (violations - theta * state.multiplier) / (theta * (t + 1.0)), state[4:]


@dataclass(frozen=True, repr=False)
class Adaptive(Rule):
    """The default: integral and proportional steps whose size follows from the signs of the violations.

    M λ ← M λ + s (g_t + 10 (ξ_t − ξ_{t−1}))/M, with ξ the running mean of the violations and M the largest |g| so far.
    The unit of g does not matter: λ g is the same in every unit. When M grows, M λ is kept. The step s has the unit of
    the objective. It starts at 0.001, which suits objectives of order 0.001 to 1000. It grows by 2 % per update, up to
    10⁴, while a violation has lasted longer than any time between two changes of ξ's sign. The n-th change multiplies
    it by 1 − 0.75/(n + 1), so that s ~ n^−¾. Decreasing a step at changes of sign only is Kesten's rule (1958). It
    converges, with an exponent in (½, 1], for one constraint, independent noise and g decreasing in λ. The growth, and
    λ and x moving together, have no proof.
    """

    first_step: ClassVar[float] = 0.001

    def move(self, state: DualState, violations: Array, before: Array, after: Array) -> tuple[Array, History]:
        _, floor, _, _, size, step, flips, age, longest = state
        size, age = maximum(size, abs(violations)), age + 1.0
        flipped = before * after < 0.0
        lasting = (age > longest) & (after > floor) & (step < _LARGEST_STEP)
        step = where(lasting, step * (1.0 + _GROWTH), step)
        step = where(flipped, state.step * (1.0 - _DECAY / (flips + 2.0)), step)
        unit = size + _TINY
        moved = (state.multiplier * state.size + step * (violations + _GAIN * (after - before)) / unit) / unit
        longest = where(flipped, maximum(longest, age - 1.0), longest)
        return moved, (size, step, where(flipped, flips + 1.0, flips), where(flipped, 0.0, age), longest)


_GROWTH, _DECAY, _GAIN, _LARGEST_STEP, _TINY = 0.02, 0.75, 10.0, 1e4, 1e-30


def init(zeros: Array, rule: Rule, equality: Array = False) -> DualState:
    """Return the state before the first update, for constraints in the shape, library and dtype of `zeros`.

    Entries of `equality` are True for constraints g = 0 and False for g ≤ 0.
    """
    blank = DualState(*(zeros + 0.0 for _ in DualState._fields))
    floor = where(equality, zeros - math.inf, zeros)
    return blank._replace(multiplier=zeros + rule.start, floor=floor, step=zeros + rule.first_step)


def update(rule: Rule, state: DualState, violations: Array) -> DualState:
    """Return the state after violations (m,).

    Entries are independent, so Python floats do as well as arrays: one constraint at a time.
    """
    before = where(state.visits == 0.0, violations, state.estimate)
    after = before + (1.0 - rule.smoothing) * (violations - before)
    moved, history = rule.move(state, violations, before, after)
    return DualState(maximum(moved, state.floor), state.floor, after, state.visits + 1.0, *history)


def require_arguments(constraints: int, rule: Rule, has_equalities: bool) -> None:
    """Raise unless the number is positive and the rule fits the kinds of constraints."""
    if constraints < 1:
        raise InputError("constraints", f"{constraints!r} is not positive", "Give the number of constraints")
    if has_equalities and not rule.takes_equalities:
        what = f"{type(rule).__name__} keeps multipliers positive"
        raise InputError("rule", what, "Give two inequalities for an equality, or another rule")


def require_shape(violations: Array, multipliers: Array) -> None:
    """Raise unless there is one violation per multiplier."""
    if violations.shape != multipliers.shape:
        expected = f"Give one per multiplier, shape {tuple(multipliers.shape)}"
        raise InputError("violations", f"has shape {tuple(violations.shape)}", expected)
