"""Rules for the multipliers of a constrained training loop: pure functions of arrays of any library, or of floats.

A training loop minimises f(x) + ⟨λ, g(x)⟩ by any optimiser. After its step the rule moves λ by the violations g(x),
measured on the same minibatch. Inequalities g ≤ 0 have λ ≥ 0, equalities g = 0 have λ of either sign.

Proved for convex f and g with bounded subgradients and a primal of regret O(√T): with steps of order 1/√T, `ascent`,
`optimistic` and `Entropic` (for λ* below a known bound) and, without one, `Regularised` have mean regret and violation
that vanish (`docs/proofs/guarantees.md`). Nothing is proved for neural networks, for ν > 0, or for `Adaptive`.
"""

from __future__ import annotations

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
    multiplier, estimate, visits : array (m,)
        λ, the running mean of the violations, and the number of updates.
    size, step : array (m,)
        Largest |estimate|, and the present step of `Adaptive`.
    flips, age, longest : array (m,)
        Changes of the estimate's sign, updates since the last one, and the longest time between two.
    """

    multiplier: Array
    estimate: Array
    visits: Array
    size: Array
    step: Array
    flips: Array
    age: Array
    longest: Array


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
    def move(self, old: DualState, new: DualState, violations: Array, equality: Array) -> tuple[Array, Array]:
        """Return the next λ before its projection, and the next step, given the running means before and after."""


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

    def move(self, old: DualState, new: DualState, violations: Array, equality: Array) -> tuple[Array, Array]:
        return old.multiplier + self.step * (violations + self.gain * (new.estimate - old.estimate)), old.step


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

    def move(self, old: DualState, new: DualState, violations: Array, equality: Array) -> tuple[Array, Array]:
        return entropic_step(old.multiplier, self.step * violations, 0.0 * violations + self.start), old.step


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

    def move(self, old: DualState, new: DualState, violations: Array, equality: Array) -> tuple[Array, Array]:
        theta = self.theta_0 / new.visits**self.beta
        return old.multiplier + (violations - theta * old.multiplier) / (theta * (new.visits + 1.0)), old.step


@dataclass(frozen=True, repr=False)
class Adaptive(Rule):
    """The default: integral and proportional steps whose size follows from the signs of the violations.

    λ ← λ + s (g_t + 10 (ξ_t − ξ_{t−1}))/max|ξ|, with ξ the running mean of the violations. The step s starts at 0.01,
    which suits objectives of order 0.01 to 1000. It grows by 2 % per update, up to 10⁴, while a violation has lasted
    more than twice the longest time between two changes of ξ's sign. It is multiplied by 1 − 0.5/(n + 1) at the n-th
    change of sign. Decreasing a step at changes of sign only is Kesten's rule (1958), which converges for one
    constraint, independent noise and g decreasing in λ. The growth, and λ and x moving together, have no proof.
    """

    first_step: ClassVar[float] = 0.01

    def move(self, old: DualState, new: DualState, violations: Array, equality: Array) -> tuple[Array, Array]:
        lasting = (new.age > 2.0 * new.longest) & ((new.estimate > 0.0) | equality) & (old.step < _LARGEST_STEP)
        kept = where(new.age == 0.0, old.step * (1.0 - _DECAY / (new.flips + 1.0)), old.step)
        step = where(lasting, old.step * (1.0 + _GROWTH), kept)
        change = violations + _GAIN * (new.estimate - old.estimate)
        return old.multiplier + step * change / (new.size + _TINY), step


_GROWTH, _DECAY, _GAIN, _LARGEST_STEP, _TINY = 0.02, 0.5, 10.0, 1e4, 1e-30


def init(zeros: Array, rule: Rule) -> DualState:
    """Return the state before the first update, for constraints in the shape, library and dtype of `zeros`."""
    blank = DualState(*(zeros + 0.0 for _ in DualState._fields))
    return blank._replace(multiplier=zeros + rule.start, step=zeros + rule.first_step)


def update(rule: Rule, state: DualState, violations: Array, equality: Array) -> DualState:
    """Return the state after violations (m,); `equality` holds True for g = 0 and False for g ≤ 0.

    Entries are independent, so Python floats do as well as arrays: one constraint at a time.
    """
    nu, none = rule.smoothing, abs(0.0 * violations)
    before = where(state.visits == 0.0, violations, state.estimate)
    estimate = nu * before + (1.0 - nu) * violations
    flipped = estimate * before < 0.0
    old = DualState(state.multiplier, before, *state[2:])
    new = DualState(
        state.multiplier,
        estimate,
        state.visits + 1.0,
        maximum(state.size, abs(estimate)),
        state.step,
        where(flipped, state.flips + 1.0, state.flips),
        where(flipped, none, state.age + 1.0),
        where(flipped, maximum(state.longest, state.age), state.longest),
    )
    moved, step = rule.move(old, new, violations, equality)
    return new._replace(multiplier=where(equality | (moved > 0.0), moved, none), step=step)


def require_arguments(constraints: int, rule: Rule, has_equalities: bool) -> None:
    """Raise unless the number is positive and the rule fits the kinds of constraints."""
    if constraints < 1:
        raise InputError("constraints", f"{constraints!r} is not positive", "Give the number of constraints")
    if has_equalities and not rule.takes_equalities:
        what = f"{type(rule).__name__} keeps multipliers positive"
        raise InputError("rule", what, "Give two inequalities for an equality, or another rule")


def require_shape(violations: Array, multipliers: Array) -> None:
    """Raise unless there is one violation per multiplier."""
    if tuple(violations.shape) != tuple(multipliers.shape):
        expected = f"Give one per multiplier, shape {tuple(multipliers.shape)}"
        raise InputError("violations", f"has shape {tuple(violations.shape)}", expected)
