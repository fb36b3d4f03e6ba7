"""Upper bounds that a theorem gives for a learner on a problem, by measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._base.arrays import ROUNDING, FloatArray
from longterm.errors import InputError
from longterm.problems.constants import Constants

REGRET: Final = "regret"
"""Σ_t f_t(x_t) − f_t(x*)."""
SIGNED: Final = "signed_violation"
"""Σ_t max_j g_j(x_t)."""
HARD: Final = "hard_violation"
"""Σ_t [max_j g_j(x_t)]₊."""
SQUARED: Final = "squared_violation"
"""Σ_t [max_j g_j(x_t)]₊²."""
LONG_TERM: Final = "long_term_violation"
"""max_j Σ_t g_j(x_t)."""
MEASURES: Final = (REGRET, SIGNED, HARD, SQUARED, LONG_TERM)
"""The measures that can be bounded, named as in a trace."""

MAX_HORIZON = 10_000_000
"""The last round that `Bounds.informative_from` tries."""
HORIZONS_AT_ONCE = 64
"""The number of horizons at which `Bounds.informative_from` evaluates a theorem in one call."""

Rounds = NDArray[np.int64]
"""One horizon T or several, as an array."""
BoundValues = Mapping[str, FloatArray]
"""Upper bounds by measure."""
Theorem = Callable[[Rounds], BoundValues]
"""A function from horizons to bounds by measure."""


class NoTheoremError(InputError):
    """No theorem covers this learner on this problem.

    Parameters
    ----------
    why, remedy : str
        The reason, and what to do about it.
    """

    def __init__(self, why: str, remedy: str = "See learner.bound(problem, rounds).reason") -> None:
        super().__init__("bound", why, remedy)
        self.why = why


def require_covered(declared: Mapping[str, tuple[ArrayLike, float]], remedy: str) -> None:
    """Raise if a constant that a rule was made with is below the one of the problem.

    Parameters
    ----------
    declared : mapping of str to (array_like, float)
        By symbol, the rule's constant and the problem's.
    remedy : str
        What to do about it.
    """
    for symbol, (made_with, least) in declared.items():
        if np.any(np.asarray(made_with) < least * (1 - ROUNDING)):
            smallest = float(np.min(np.asarray(made_with)))
            raise NoTheoremError(f"it was made for {symbol} = {smallest:g}, but the problem has {least:g}", remedy)


@dataclass(frozen=True, eq=False)
class Bounds(Mapping[str, FloatArray]):
    """Look up what a theorem guarantees after T rounds, for each measure.

    The mapping is empty if there is no theorem, and `reason` says why.

    Parameters
    ----------
    rounds : array of int
        The horizons T, in the requested shape.
    values_by_measure : mapping of str to array
        The bounds. Axes are horizons, then those of a grid of learners.
    constants : Constants
        The constants of the problem, which give the trivial bounds.
    assumptions : tuple of str
        The assumptions of the theorem beyond convexity and the problem's constants.
    reason : str
        The reason if there is no theorem, otherwise empty.
    theorem : callable, optional
        The theorem as a function of the horizon.

    Examples
    --------
    >>> import longterm as lt
    >>> problem = lt.problems.two_dimensional()
    >>> bounds = lt.AOGD.for_problem(problem).bound(problem, 800)
    >>> sorted(bounds), bool(bounds.vacuous("signed_violation")), bounds.informative_from("signed_violation")
    (['regret', 'signed_violation'], True, 870)
    """

    rounds: NDArray[np.int64]
    values_by_measure: Mapping[str, FloatArray]
    constants: Constants
    assumptions: tuple[str, ...] = ()
    reason: str = ""
    theorem: Theorem | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        if not self.values_by_measure:
            return f"Bounds(none: {self.reason})"
        last = (f"{name} ≤ {np.max(values):.4g}{self._remark(name)}" for name, values in self.values_by_measure.items())
        return f"Bounds({', '.join(last)} after {np.max(self.rounds)} rounds)"

    def _remark(self, measure: str) -> str:
        return " (vacuous)" if np.any(np.reshape(self.vacuous(measure), (self.rounds.size, -1))[-1]) else ""

    def __getitem__(self, measure: str) -> FloatArray:
        try:
            return self.values_by_measure[measure]
        except KeyError:
            known = ", ".join(self.values_by_measure) or self.reason
            raise KeyError(f"no bound on {measure!r} is known here ({known})") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_measure)

    def __len__(self) -> int:
        return len(self.values_by_measure)

    def trivial(self, measure: str) -> FloatArray:
        """Return the bound without a theorem: F·T for the regret, D·T for a violation, D²·T for its square."""
        return _trivial(measure, self.constants, self.rounds, self[measure].ndim)

    def vacuous(self, measure: str) -> NDArray[np.bool_]:
        """Return True where the bound is not below the trivial one."""
        return np.asarray(self[measure] >= self.trivial(measure))

    def informative_from(self, measure: str) -> int | None:
        """Return the first T at which the bound, for all learners of a grid, is below `trivial`.

        None if there is none up to ten million rounds.
        """
        if self.theorem is None:
            return None
        low, top = 0, HORIZONS_AT_ONCE
        while True:
            rounds = np.unique(np.geomspace(low + 1, top, HORIZONS_AT_ONCE).astype(np.int64))
            values = np.asarray(self.theorem(rounds)[measure])
            informative = values < _trivial(measure, self.constants, rounds, values.ndim)
            found = np.flatnonzero(informative.reshape(len(rounds), -1).all(axis=1))
            if len(found):
                first = int(found[0])
                low, top = int(rounds[first - 1]) if first else low, int(rounds[first])
                if top == low + 1:
                    return top
            elif top == MAX_HORIZON:
                return None
            else:
                low, top = top, min(8 * top, MAX_HORIZON)

    def __str__(self) -> str:
        if not self:
            return f"no theorem: {self.reason}"
        lines = []
        for measure, values in self.items():
            value, T = np.max(np.reshape(values, (self.rounds.size, -1))[-1]), self.rounds.flat[-1]
            line = f"{measure} ≤ {value:.6g} at T = {T}"
            if np.any(np.reshape(self.vacuous(measure), (self.rounds.size, -1))[-1]):
                start = None if self.theorem is None else self.informative_from(measure)
                never = "" if self.theorem is None else ": not below the trivial bound for any T up to ten million"
                line += f" (vacuous{never if start is None else f' until T = {start}'})"
            lines.append(line)
        return "\n".join(lines + [f"assumes {assumption}" for assumption in self.assumptions])


def _trivial(measure: str, constants: Constants, rounds: NDArray[np.int64], axes: int) -> FloatArray:
    each = {
        REGRET: constants.loss_range,
        SQUARED: constants.constraint_bound**2,
    }.get(measure, constants.constraint_bound)
    T = rounds.astype(np.float64)
    return np.asarray(each * T.reshape(T.shape + (1,) * (axes - T.ndim)))


def horizons_of(rounds: NDArray[np.int64], batch_shape: tuple[int, ...] = ()) -> FloatArray:
    """Return T as floats, followed by one axis of length 1 for each axis of a grid of learners."""
    T = rounds.astype(np.float64)
    return T.reshape(T.shape + (1,) * len(batch_shape))
