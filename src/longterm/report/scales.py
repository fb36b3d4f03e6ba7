"""What figures show of a result: the kind of axis, which measures need a panel of their own, how fast a curve grows."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.experiments.result import Result

DECADES = 4
"""At most so many powers of ten on either side of a signed axis: more would bury the curves in what is next to zero."""


FEWEST_ROUNDS = 3
"""Kept rounds in the last decade without which no line is fitted."""


class Scale(NamedTuple):
    """A vertical axis."""

    kind: Literal["log", "symlog"]
    """Logarithmic; or logarithmic on both sides of zero."""
    threshold: float
    """A signed axis is linear between ± this."""


def logarithmic_scale(values: FloatArray) -> Scale:
    """For all the values of a panel, as logarithmic as their signs allow.

    Examples
    --------
    >>> import numpy as np
    >>> logarithmic_scale(np.array([1.0, 30.0])), logarithmic_scale(np.array([-1.0, 300.0]))
    (Scale(kind='log', threshold=0.0), Scale(kind='symlog', threshold=1.0))
    """
    finite = np.abs(values[np.isfinite(values)])
    if np.all(values[np.isfinite(values)] > 0):
        return Scale("log", 0.0)
    positive = finite[finite > 0]
    if not positive.size:
        return Scale("symlog", 1.0)
    lowest, highest = np.floor(np.log10(np.quantile(positive, 0.05, method="lower"))), np.ceil(np.log10(positive.max()))
    return Scale("symlog", float(10.0 ** max(lowest, highest - DECADES)))


def scale_of(result: Result, measure: str) -> Scale:
    """For the means of all curves; a band may leave a logarithmic axis at its lower edge."""
    return logarithmic_scale(np.concatenate([curve.mean(measure) for curve in result.curves]))


def panels(result: Result) -> list[tuple[str, ...]]:
    """Regret, then the violations, those together that are the same numbers for every curve.

    Where g ≥ 0 everywhere the signed and the hard violation are equal; with one constraint the signed one is also
    the worst constraint's. Two equal panels would make the reader look for a difference.
    """
    regret, *violations = result.measures
    groups: list[tuple[str, ...]] = [(regret,)]
    for measure in violations:
        for k, group in enumerate(groups[1:], start=1):
            if all(np.allclose(c.measures[group[0]], c.measures[measure], rtol=1e-9, atol=1e-9) for c in result.curves):
                groups[k] = (*group, measure)
                break
        else:
            groups.append((measure,))
    return groups


def last_decade_slope(rounds: NDArray[np.int64], values: FloatArray) -> float | None:
    """The a of |values| ≈ c·t^a, fitted by least squares in logarithms over the rounds t ≥ T/10.

    None where that says nothing: a zero, a change of sign or a missing value among them, or fewer than three rounds.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.array([1, 10, 20, 50, 100])
    >>> round(last_decade_slope(t, -3 * t**0.75), 6), last_decade_slope(t, t - 50.0)
    (0.75, None)
    """
    last = 10 * rounds >= rounds[-1]
    t, decade = rounds[last].astype(np.float64), np.asarray(values, dtype=np.float64)[last]
    if len(t) < FEWEST_ROUNDS or not np.all(np.isfinite(decade)) or not (np.all(decade > 0) or np.all(decade < 0)):
        return None
    return float(np.polyfit(np.log(t), np.log(np.abs(decade)), 1)[0])
